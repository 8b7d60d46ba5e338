//go:build !amd64

package learn

func fastestMultiply() multiply { return multiplyPortable }
