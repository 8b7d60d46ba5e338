// Package inspect counts what is in a matrix, checks what its header claims,
// and compares two matrices.
package inspect
