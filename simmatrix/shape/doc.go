// Package shape changes which terms and entries a matrix has: it leaves out
// entries (sparsify), terms (filter), and brings surface words into the index
// terms that an analyzer makes of them (project).
package shape
