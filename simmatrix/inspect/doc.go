// Package inspect computes statistics of a matrix, checks what its header
// claims, and compares two matrices.
package inspect
