//go:build !amd64

package simmatrix

// fastestMultiply returns the multiply for this processor.
func fastestMultiply() multiply { return multiplyPortable }
