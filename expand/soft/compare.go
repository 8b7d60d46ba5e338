package soft

import "context"

// A scratch is memory for one computation, dense over the numbers of terms.
// Its vectors are all zeros between computations, those that end early among
// them, but not those that panic.
type scratch struct {
	// x is Wx, e is ½(S+Sᵀ)Wx, and y is Wy.
	x, e, y []float64
	// at is where a term stands in the terms of the column; of other terms it says
	// nothing.
	at []int32
}

// grow makes room for n terms.
func (s *scratch) grow(n int) {
	if n <= len(s.x) {
		return
	}
	n += n / 4 // the next search may bring a few more
	s.x, s.e, s.y, s.at = make([]float64, n), make([]float64, n), make([]float64, n), make([]int32, n)
}

// compare adds b·(Wx)ᵀS(Wy) and b·(Wy)ᵀS(Wy) of each hit to products and
// squares, and returns (Wx)ᵀS(Wx).
func (c *column) compare(ctx context.Context, s *scratch, products, squares []float64) (square float64, err error) {
	for k, term := range c.terms {
		s.at[term] = int32(k)
	}
	square = c.spread(s)
	for k, v := range c.vectors {
		if err = ctx.Err(); err != nil {
			break
		}
		y := c.weighted[k]
		if y == nil {
			y = c.weigh(s, v)
		}
		sum := 0.0
		for i, term := range v.terms {
			sum += y.values[i] * s.e[term]
		}
		products[k] += c.Boost * sum
		squares[k] += c.Boost * y.square
	}
	c.clear(s)
	return square, err
}

// spread sets s.e and returns (Wx)ᵀS(Wx). For a term j of a hit e_j is
//
//	w_j x_j + ½ Σ_i w_i x_i s_ij + ½ Σ_i s_ji w_i x_i
//
// of which the first sum comes from the rows of the text's terms, and the
// second from their columns.
func (c *column) spread(s *scratch) (square float64) {
	for i, term := range c.query {
		x := c.rows[s.at[term]].w * c.Freqs[i]
		s.x[term] = x
		s.e[term] += x
		r := c.rows[s.at[term]]
		for k, other := range r.terms {
			s.e[other] += x / 2 * float64(r.sims[k])
		}
		for _, n := range c.columns[i] {
			s.e[n.term] += x / 2 * float64(n.sim)
		}
	}
	for _, term := range c.query {
		square += s.x[term] * (s.x[term] + gather(s.x, c.rows[s.at[term]]))
	}
	return square
}

// clear takes back what spread has set.
func (c *column) clear(s *scratch) {
	for i, term := range c.query {
		s.x[term], s.e[term] = 0, 0
		for _, other := range c.rows[s.at[term]].terms {
			s.e[other] = 0
		}
		for _, n := range c.columns[i] {
			s.e[n.term] = 0
		}
	}
}

// weigh returns Wy with (Wy)ᵀS(Wy), which is the same for S and for Sᵀ, so
// also for ½(S+Sᵀ). It does not depend on the search: it is computed once.
func (c *column) weigh(s *scratch, v *vector) *weighted {
	y := &weighted{space: c.space, values: make([]float64, len(v.terms))}
	for i, term := range v.terms {
		y.values[i] = c.rows[s.at[term]].w * v.freqs[i]
		s.y[term] = y.values[i]
	}
	for i, term := range v.terms {
		y.square += y.values[i] * (y.values[i] + gather(s.y, c.rows[s.at[term]]))
	}
	for _, term := range v.terms {
		s.y[term] = 0
	}
	v.weighted.Store(y)
	return y
}

// gather returns Σ_k s_k·dense[k] over a row.
func gather(dense []float64, r *row) (sum float64) {
	for k, term := range r.terms {
		sum += float64(r.sims[k]) * dense[term]
	}
	return sum
}
