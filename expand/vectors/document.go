package vectors

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/akin-search/akin/simmatrix"
)

// A Documents makes vectors of documents. It is immutable and safe for
// concurrent use.
type Documents struct {
	*Model

	columns simmatrix.Columns
	sums    *sync.Pool // of *[]float64, all 0, one per term
}

// Documents returns a maker of documents' vectors. It takes eight more bytes
// per entry of S.
func (m *Model) Documents() Documents {
	return Documents{m, m.table.ByColumn(), &sync.Pool{New: func() any {
		sums := make([]float64, m.Len())
		return &sums
	}}}
}

// A Cut is what was cut from a sparse vector.
type Cut struct {
	Coordinates int // how many were cut
	// Share is the cut share of the sum of coordinates, in [0, 1).
	Share float64
	// Largest is the largest coordinate cut. The score of a query q is too low by
	// at most Σ_t q_t times this, and never too high.
	Largest float64
}

// Sparse returns S·Wy divided by the norm of y, for the term frequencies of a
// document: its largest coordinates, as many as the model says, ties in
// ascending order of terms, sorted by term. It drops terms whose names are too
// long for the engines. The coordinate of term i is
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

// spread returns S·Wy, unordered.
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

// Dense returns the vector of a document with these term frequencies, and the
// share of ⟨y, y⟩ in its coordinates, in [0, 1]; nil if the model knows no term
// of it. With [Soft] the vector is z/√⟨y, y⟩ and a last dimension that makes it
// unit length (the notes, theorem 4.3), so that stores by cosine and by dot
// product rank alike. If a query and a document have the shares a and b of
// their norms, a soft score is wrong by at most √(1−a)·√(1−b).
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
	Cut   Cut     // of a sparse vector
	Dense float64 // share of ⟨y, y⟩ that a dense vector lacks
	Empty bool    // no coordinates; it is not stored
}

// Members returns the vector of a document with these term frequencies, and the
// model's id, as a JSON object to merge into the document. A sparse vector is
// in an array, because an object would be merged with the existing one. stale
// says that the document has a vector, which must go even without a new one.
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
