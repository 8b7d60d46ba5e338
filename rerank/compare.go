package rerank

import "context"

// A scratch is memory for one computation, dense over the numbers of terms.
// Its vectors are all zeros between computations, those that end early among
// them, but not those that panic.
type scratch struct {
	// x is Wx, and e is ½(S+Sᵀ)Wx times w, at the terms of the hits.
	x, e []float64
	// y is Wy, and at is where a term stands in the terms of the column; of
	// other terms it says nothing.
	y  []float64
	at []int32
	// filter has a bit for each term of the text, perhaps the bit of others, too.
	filter [filterBits / 64]uint64
}

const filterBits = 4096

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
		sum := 0.0
		for i, term := range v.terms {
			sum += v.freqs[i] * s.e[term]
		}
		products[k] += c.Boost * sum
		squares[k] += c.Boost * c.square(s, v)
	}
	for _, term := range c.terms {
		s.e[term] = 0
	}
	return square, err
}

// spread sets s.e at all terms of the column and returns (Wx)ᵀS(Wx). For a
// term j it is
//
//	w_j (w_j x_j + ½ Σ_i w_i x_i s_ij + ½ Σ_i s_ji w_i x_i)
//
// of which the first sum runs over the rows of the text's terms and the
// second over the row of j.
func (c *column) spread(s *scratch) (square float64) {
	clear(s.filter[:])
	for i, term := range c.query {
		s.x[term] = c.rows[s.at[term]].w * c.Freqs[i]
		s.filter[term%filterBits/64] |= 1 << (term % 64)
	}
	// The rows reach terms that are in no hit: their sums are cleared at once.
	for _, term := range c.query {
		r, half := c.rows[s.at[term]], s.x[term]/2
		for k, other := range r.terms {
			s.y[other] += half * float64(r.sims[k])
		}
		square += s.x[term] * (s.x[term] + s.few(r))
	}
	for k, term := range c.terms {
		r := c.rows[k]
		s.e[term] = r.w * (s.x[term] + s.y[term] + s.few(r)/2)
	}
	for _, term := range c.query {
		for _, other := range c.rows[s.at[term]].terms {
			s.y[other] = 0
		}
	}
	for _, term := range c.query {
		s.x[term] = 0
	}
	return square
}

// square returns (Wy)ᵀS(Wy). It is the same for S and for Sᵀ, so also for
// ½(S+Sᵀ), and does not depend on the search: it is computed once.
func (c *column) square(s *scratch, v *vector) float64 {
	if known := v.square.Load(); known != nil && known.space == c.space {
		return known.value
	}
	for i, term := range v.terms {
		s.y[term] = c.rows[s.at[term]].w * v.freqs[i]
	}
	sum := 0.0
	for _, term := range v.terms {
		sum += s.y[term] * (s.y[term] + gather(s.y, c.rows[s.at[term]]))
	}
	for _, term := range v.terms {
		s.y[term] = 0
	}
	v.square.Store(&square{c.space, sum})
	return sum
}

// few returns Σ_k s_k·x_k over a row, of which the text has few terms: the filter
// is much smaller than x, which takes several times as long to look into.
func (s *scratch) few(r *row) (sum float64) {
	for k, term := range r.terms {
		if s.filter[uint32(term)%filterBits/64]>>(uint32(term)%64)&1 != 0 { //nolint:gosec // numbers are not negative
			sum += float64(r.sims[k]) * s.x[term]
		}
	}
	return sum
}

// gather returns Σ_k s_k·dense[k] over a row.
func gather(dense []float64, r *row) (sum float64) {
	for k, term := range r.terms {
		sum += float64(r.sims[k]) * dense[term]
	}
	return sum
}
