package vectors

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/akin-search/akin/simmatrix"
)

// A Documents makes the vectors of documents. It is immutable and safe for use
// by any number of goroutines.
type Documents struct {
	*Model

	columns simmatrix.Columns
	sums    *sync.Pool // of *[]float64 that are 0, one for each term
}

// Documents returns what makes the vectors of documents. It takes eight bytes
// more for each entry of S.
func (m *Model) Documents() Documents {
	return Documents{m, m.table.ByColumn(), &sync.Pool{New: func() any {
		sums := make([]float64, m.Len())
		return &sums
	}}}
}

// A Cut is what a sparse vector has lost.
type Cut struct {
	Coordinates int // how many are left out
	// Share of the sum of the coordinates, in [0, 1), is left out.
	Share float64
	// Largest is the largest coordinate left out. The score of a query q is too
	// low by at most Σ_t q_t times this, and never too high.
	Largest float64
}

// Sparse returns S·Wy divided by the norm of y, for the frequencies of a
// document's terms: its largest coordinates, as many as the model says, ties in
// ascending order of the terms, and sorted by term. Terms whose names as
// features are too long for the engines are left out. The coordinate of term i
// is
//
//	y'_i = Σ_j s_ij·w_j·y_j / ‖y‖
func (d Documents) Sparse(y []Coordinate) ([]Coordinate, Cut) {
	wy := d.weigh(y)
	out := d.spread(wy)
	norm := d.norm(wy)
	out = slices.DeleteFunc(out, func(c Coordinate) bool { return c.Value <= 0 })
	for i := range out {
		out[i].Value /= norm
	}
	slices.SortFunc(out, func(a, b Coordinate) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Term, b.Term))
	})
	var cut Cut
	kept, all := out[:0], total(out)
	for _, c := range out {
		short := len(c.Term) <= maxName/len("%25") || len(FeatureName(c.Term)) <= maxName // enough for a feature
		if short && (d.meta.Terms == 0 || len(kept) < d.meta.Terms) {
			kept = append(kept, c)
			continue
		}
		cut = Cut{cut.Coordinates + 1, cut.Share + c.Value/all, max(cut.Largest, c.Value)}
	}
	slices.SortFunc(kept, func(a, b Coordinate) int { return cmp.Compare(a.Term, b.Term) })
	return kept, cut
}

// spread returns S·Wy, in no particular order.
func (d Documents) spread(wy []place) []Coordinate {
	pooled, _ := d.sums.Get().(*[]float64)
	defer d.sums.Put(pooled)
	sums := *pooled
	var out []Coordinate
	var reached []uint32
	add := func(i uint32, v float64) {
		if v > 0 && sums[i] == 0 {
			reached = append(reached, i)
		}
		sums[i] += max(v, 0)
	}
	for _, p := range wy {
		if p.row < 0 {
			out = append(out, p.Coordinate)
			continue
		}
		add(uint32(p.row), p.Value) //nolint:gosec // a matrix has fewer rows
		rows, _, sims := d.columns.Column(p.row)
		for k, i := range rows {
			add(i, float64(simmatrix.FromUnits(sims[k]))*p.Value)
		}
	}
	for _, i := range reached {
		out = append(out, Coordinate{d.table.Terms[i], sums[i]})
		sums[i] = 0
	}
	return out
}

func total(x []Coordinate) (sum float64) {
	for _, c := range x {
		sum += c.Value
	}
	return sum
}

// Dense returns the vector of a document with the given frequencies of terms,
// and the share of ⟨y, y⟩ that its coordinates have, in [0, 1]; nil for a
// document that the model knows no term of. With [Soft] the vector is z/√⟨y, y⟩
// and, in the last dimension, what makes it of unit length (the notes, theorem
// 4.3), so that stores by cosine and by dot product rank alike. For queries of
// the shares a and b of their norms, a soft score is wrong by √(1−a)·√(1−b) at
// most.
func (d Documents) Dense(y []Coordinate) (vector []float32, share float64) {
	wy := d.weigh(y)
	z := d.project(wy)
	square := dot(z, z)
	if square == 0 {
		return nil, 0
	}
	share = min(square/d.square(wy), 1)
	vector = narrow(z, d.norm(wy))
	if d.meta.Normalization == Soft {
		rest := 1.0
		for _, v := range vector {
			rest -= float64(v) * float64(v)
		}
		vector = append(vector, float32(math.Sqrt(max(rest, 0))))
	}
	return vector, share
}

// A Loss is what a document's vector has lost.
type Loss struct {
	Cut   Cut     // of a sparse one
	Dense float64 // the share of ⟨y, y⟩ that a dense one has not
	Empty bool    // it has no coordinates, and is not stored
}

// Members returns the vector of a document with the given frequencies of terms,
// and the id of the model, as a JSON object to merge into the document. A
// sparse vector stands in an array: an object would be merged with the one that
// is there. stale says that the document has a vector, which has to go even
// where it gets no other.
func (d Documents) Members(y []Coordinate, stale bool) ([]byte, Loss) {
	var vector []byte
	var loss Loss
	if d.meta.Store.Dense() {
		z, share := d.Dense(y)
		loss = Loss{Empty: z == nil, Dense: 1 - share}
		vector = Array(z)
		if loss.Empty {
			vector = []byte("null")
		}
	} else {
		x, cut := d.Sparse(y)
		loss = Loss{Empty: len(x) == 0, Cut: cut}
		vector = slices.Concat([]byte{'['}, Features(x), []byte{']'})
		if loss.Empty {
			vector = []byte("[]")
		}
	}
	name := quote(Name(d.meta.Field))
	b := []byte{'{'}
	if !loss.Empty || stale {
		b = fmt.Appendf(b, "%q:{%s:%s},", Object, name, vector)
	}
	return fmt.Appendf(b, "%q:{%s:%s}}", ModelObject, name, quote(d.id)), loss
}
