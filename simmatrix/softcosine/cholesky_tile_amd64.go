package softcosine

import "golang.org/x/sys/cpu"

// subtractFMA is the [subtraction] of processors with AVX2 and FMA.
//
//go:noescape
func subtractFMA(t *tile, a, b []float64)

// spreadFMA is the [spread] of processors with AVX2 and FMA. It checks no rows.
//
//go:noescape
func spreadFMA(x [][edge]float64, rows []int32, values []float64, v *[edge]float64)

func fastestSubtraction() subtraction {
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		return subtractFMA
	}
	return subtractPortable
}

func fastestSpread() spread {
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		return spreadFMA
	}
	return spreadPortable
}
