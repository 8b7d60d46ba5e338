// Package shape changes which terms and entries a matrix has: it removes
// entries (sparsify) and terms (filter), and turns surface words into index
// terms (project).
package shape
