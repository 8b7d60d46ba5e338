package soft

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"unique"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/simmatrix"
)

// rowsAtOnce is the number of rows per request.
const rowsAtOnce = 200

// A column is a field of the search and of its hits.
type column struct {
	expand.RerankField
	space  unique.Handle[space]
	number uint32 // of the space
	// query are the numbers of the text's terms.
	query []int32
	// vectors are those of the hits, nil if missing, and keys those that they are
	// cached under.
	vectors []*vector
	keys    []docKey
	// squares are (Wy)ᵀS(Wy) of the hits; fresh says which must be computed. Other
	// searches may share a vector.
	squares []float64
	fresh   []bool
	// w are the weights of terms by number, NaN if unknown.
	w []float64
	// terms are those whose rows are needed, ascending.
	terms []int32
	rows  []*row
}

// recallRows sets the needed terms of a column with complete vectors, and
// returns the places of missing rows.
func (m *store) recallRows(c *column) (missing []int) {
	c.query = m.terms.number(c.query[:0], c.Terms)
	n, _ := m.terms.size()
	c.w = m.weights.in(c.number, n)
	c.terms = c.lacking()
	c.rows = make([]*row, len(c.terms))
	for k, term := range c.terms {
		r, ok, _ := cache.Peek[*row](m.rows, rowKey{c.space, term})
		if !ok {
			missing = append(missing, k)
		}
		c.rows[k] = r
	}
	return missing
}

// fetchRows asks for missing rows.
func (m *store) fetchRows(ctx context.Context, c *column) error {
	for some := range slices.Chunk(m.recallRows(c), rowsAtOnce) {
		keys := make([]rowKey, len(some))
		for i, k := range some {
			keys[i] = rowKey{c.space, c.terms[k]}
		}
		found, err := cache.GetAll(ctx, m.rows, keys, func(ctx context.Context, keys []rowKey) (map[rowKey]*row, error) {
			return m.loadRows(ctx, &c.RerankField, keys)
		})
		if err != nil {
			return err
		}
		for i, k := range some {
			c.rows[k] = found[keys[i]]
		}
	}
	return nil
}

func (m *store) loadRows(ctx context.Context, f *expand.RerankField, keys []rowKey) (map[rowKey]*row, error) {
	slices.SortFunc(keys, func(a, b rowKey) int { return int(a.term) - int(b.term) })
	numbers := make([]int32, len(keys))
	for i, key := range keys {
		numbers[i] = key.term
	}
	terms := m.terms.texts(numbers)
	rows := make([]simmatrix.Row, len(terms))
	if err := f.Similarities.Rows(ctx, terms, rows); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Similarities.Version(), err)
	}
	weights, docs := rows, f.Similarities.Docs()
	if f.Weights != nil {
		weights, docs = make([]simmatrix.Row, len(terms)), f.Weights.Docs()
		if err := f.Weights.Rows(ctx, terms, weights); err != nil {
			return nil, fmt.Errorf("weights %s: %w", f.Weights.ID(), err)
		}
	}
	loaded := make(map[rowKey]*row, len(keys))
	for i, key := range keys {
		loaded[key] = m.newRow(rows[i], weights[i].DocFreq(), docs)
	}
	return loaded, nil
}

// lacking returns the terms whose rows are needed, ascending: those of the
// text, of hits without a square, and those without a weight.
func (c *column) lacking() []int32 {
	needed := map[int32]bool{}
	for _, term := range c.query {
		needed[term] = true
	}
	c.squares, c.fresh = make([]float64, len(c.vectors)), make([]bool, len(c.vectors))
	for k, v := range c.vectors {
		c.squares[k], c.fresh[k] = v.square, v.space != c.number
		for _, term := range v.terms {
			if c.fresh[k] || math.IsNaN(c.w[term]) {
				needed[term] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(needed))
}

// A scratch is memory for one computation, dense over term numbers. Its vectors
// are zero between computations, even after one that ended early, but not after
// a panic.
type scratch struct {
	// x is Wx, e is SᵀWx, and y is Wy.
	x, e, y []float64
	// at is a term's place in the column's terms; undefined for others.
	at []int32
}

// grow makes room for n terms.
func (s *scratch) grow(n int) {
	if n <= len(s.x) {
		return
	}
	n += n / 4 // the next search may bring a few more
	s.x = make([]float64, n)
	s.e = make([]float64, n)
	s.y = make([]float64, n)
	s.at = make([]int32, n)
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
		if c.fresh[k] {
			c.squares[k] = c.square(s, v)
		}
		sum := 0.0
		for i, term := range v.terms {
			sum += c.w[term] * v.freqs[i] * s.e[term]
		}
		products[k] += c.Boost * sum
		squares[k] += c.Boost * c.squares[k]
	}
	c.clear(s)
	return square, err
}

// spread sets s.e and returns (Wx)ᵀS(Wx). For a term j of a hit e_j is w_j x_j
// + Σ_i w_i x_i s_ij, from the rows of the text's terms.
func (c *column) spread(s *scratch) (square float64) {
	for i, term := range c.query {
		x := c.rows[s.at[term]].w * c.Freqs[i]
		s.x[term] = x
		s.e[term] += x
		r := c.rows[s.at[term]]
		for k, other := range r.terms {
			s.e[other] += x * float64(r.sims[k])
		}
	}
	for _, term := range c.query {
		square += s.x[term] * (s.x[term] + gather(s.x, c.rows[s.at[term]]))
	}
	return square
}

// clear resets what spread has set.
func (c *column) clear(s *scratch) {
	for _, term := range c.query {
		s.x[term], s.e[term] = 0, 0
		for _, other := range c.rows[s.at[term]].terms {
			s.e[other] = 0
		}
	}
}

// square returns (Wy)ᵀS(Wy), which does not depend on the search.
func (c *column) square(s *scratch, v *vector) (square float64) {
	for i, term := range v.terms {
		s.y[term] = c.w[term] * v.freqs[i]
	}
	for _, term := range v.terms {
		square += s.y[term] * (s.y[term] + gather(s.y, c.rows[s.at[term]]))
	}
	for _, term := range v.terms {
		s.y[term] = 0
	}
	return square
}

// BM25's constants, as in the engines.
const k1, b = 1.2, 0.75

// saturated returns the hits' scores in a field of a clause, see [expand.Sum].
// lengths are relative to the mean.
func (c *column) saturated(s *scratch, f *expand.SumField, number func(dst []int32, texts []string) []int32, lengths []float64) []float64 {
	var terms []int32
	for i := range f.Words {
		terms = number(terms, f.Words[i].Terms)
	}
	scores := make([]float64, len(c.vectors))
	if len(terms) == 0 { // all words may be stop words here
		return scores
	}
	s.grow(int(slices.Max(terms)) + 1)
	n := 0
	for i := range f.Words {
		for _, boost := range f.Words[i].Boosts { // a term counts for one word
			s.y[terms[n]], s.at[terms[n]] = boost, int32(i)
			n++
		}
	}
	words := make([]float64, len(f.Words)) // y
	for k, v := range c.vectors {
		clear(words)
		for i, term := range v.terms {
			if boost := s.y[term]; boost > 0 {
				words[s.at[term]] += boost * v.freqs[i] / (k1 * (1 - b + b*lengths[k]))
			}
		}
		for i, y := range words {
			scores[k] += f.Boost * f.Words[i].Weight * y / (1 + y)
		}
	}
	for _, term := range terms {
		s.y[term] = 0
	}
	return scores
}

// gather returns Σ_k s_k·dense[k] over a row.
func gather(dense []float64, r *row) (sum float64) {
	for k, term := range r.terms {
		sum += float64(r.sims[k]) * dense[term]
	}
	return sum
}
