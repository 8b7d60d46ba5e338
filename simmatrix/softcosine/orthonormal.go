package softcosine

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Orthonormalize returns the lower triangular E with positive diagonal and S =
// E·Eᵀ by the algorithm of Sidorov, section 2.5, row by row:
//
//	Σ_{i≤j} e_ji·x_i = s_jk    for j < k           (eq. 23)
//	x_k = √(1 − Σ_{i<k} x_i²)                      (eq. 25)
//
// gonum's [mat.Cholesky] makes the same in a fraction of the time.
func Orthonormalize(s *Similarities) (*mat.TriDense, error) {
	if !s.Symmetric() {
		return nil, fmt.Errorf("orthonormalize: %w", ErrNotSymmetric)
	}
	n := s.Len()
	if n == 0 {
		return new(mat.TriDense), nil
	}
	e := mat.NewTriDense(n, mat.Lower, nil)
	raw := e.RawTriangular()
	for k := range n {
		row := raw.Data[k*raw.Stride : k*raw.Stride+k+1]
		cols, sims := s.Row(k)
		for l := 0; l < len(cols) && int(cols[l]) < k; l++ {
			row[cols[l]] = sims[l]
		}
		square := 1.0 // of what is left of the vector's length
		for j := range k {
			known := raw.Data[j*raw.Stride : j*raw.Stride+j+1]
			rest := row[j]
			for i, v := range known[:j] {
				rest -= v * row[i]
			}
			row[j] = rest / known[j]
			square -= row[j] * row[j]
		}
		if !(square > pivotFloor(n, 1)) { // written so that NaN fails
			return nil, &PivotError{Row: k, Pivot: square}
		}
		row[k] = math.Sqrt(square)
	}
	return e, nil
}
