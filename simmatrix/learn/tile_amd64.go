package learn

import "golang.org/x/sys/cpu"

// multiplyFMA is the [multiply] of processors with AVX2 and FMA.
//
//go:noescape
func multiplyFMA(t *tile, rows, panel []float32) bool

func fastestMultiply() multiply {
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		return multiplyFMA
	}
	return multiplyPortable
}
