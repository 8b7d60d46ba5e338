package softcosine

// A spread subtracts multiples of a vector from vectors:
//
//	x[rows[k]] = x[rows[k]] − values[k]·v    for all k
//
// There are as many rows as values, each only once, and x has them all; v is
// not among them.
type spread func(x [][edge]float64, rows []int32, values []float64, v *[edge]float64)

func spreadPortable(x [][edge]float64, rows []int32, values []float64, v *[edge]float64) {
	for k, i := range rows {
		to, factor := &x[i], values[k]
		to[0] -= factor * v[0]
		to[1] -= factor * v[1]
		to[2] -= factor * v[2]
		to[3] -= factor * v[3]
		to[4] -= factor * v[4]
		to[5] -= factor * v[5]
		to[6] -= factor * v[6]
		to[7] -= factor * v[7]
	}
}
