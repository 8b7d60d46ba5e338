package simmatrix

import "iter"

// Similarities yields the similarity of every entry off the diagonal, with the
// place in its row: 0 is that of the nearest neighbor. Rows come in the order
// of [Matrix.Terms]. It costs a fraction of [Matrix.Rows] where the terms are
// not asked for, as for the distribution of similarities.
func (m *Matrix) Similarities() iter.Seq2[int, float32] {
	return func(yield func(int, float32) bool) {
		for i := range m.table.Terms {
			_, sims := m.table.Row(i)
			for k, u := range sims {
				if !yield(k, FromUnits(u)) {
					return
				}
			}
		}
	}
}
