//go:build !amd64

package learn

// fastestMultiply returns the multiply for this processor.
func fastestMultiply() multiply { return multiplyPortable }
