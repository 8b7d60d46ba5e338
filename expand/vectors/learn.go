package vectors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/learn"
)

// Errors of [Learn].
var (
	ErrNotSymmetric = errors.New("the matrix is not symmetric")
	ErrNoDocuments  = errors.New("no document has a term that the model knows")
)

// A NotPositiveError says that S is not positive semi-definite. With a strength
// of about Enough it is.
type NotPositiveError struct{ Eigenvalue, Enough float64 }

// Error names the strength that would do.
func (e *NotPositiveError) Error() string {
	return fmt.Sprintf("the matrix is not positive definite: it has an eigenvalue of %.2f at most; a strength of about %.2g or less makes it so, "+
		"and so does a matrix that is built symmetric and dominant", e.Eigenvalue, e.Enough)
}

// New returns a model with the rows of s, similarities scaled by the strength,
// and the document frequencies of weights, a matrix as from "norms snapshot". A
// term that weights lacks counts as in one document. It is for sparse vectors;
// see [Learn]. The error wraps [ErrModel].
func New(meta Meta, s, weights *simmatrix.Matrix) (*Model, error) {
	m, err := newTable(meta, s, weights)
	if err != nil {
		return nil, err
	}
	if meta.Store.Dense() {
		return nil, fmt.Errorf("%w: a %s has to be learned", ErrModel, meta.Store)
	}
	return newModel(m.meta, m.matrix, nil)
}

// newTable returns a model without id and vectors.
func newTable(meta Meta, s, weights *simmatrix.Matrix) (*Model, error) {
	meta.Matrix, meta.Weights = s.Checksum(), weights.Checksum()
	if err := meta.Check(); err != nil {
		return nil, err
	}
	if weights.Meta().Docs == 0 {
		return nil, fmt.Errorf("%w: the weights do not know the number of documents", ErrModel)
	}
	var rows []simmatrix.TermRow
	for term, row := range s.Rows() {
		t := simmatrix.TermRow{Term: term, DocFreq: weights.Row(term).DocFreq()}
		for n := range row.All() {
			n.Similarity = float32(float64(n.Similarity) * meta.Strength)
			n.Origins = 0
			t.Neighbors = append(t.Neighbors, n)
		}
		rows = append(rows, t)
	}
	known := s.Table().Terms
	for term, row := range weights.Rows() {
		if _, ok := slices.BinarySearch(known, term); !ok {
			rows = append(rows, simmatrix.TermRow{Term: term, DocFreq: row.DocFreq()})
		}
	}
	m, err := simmatrix.New(simmatrix.Meta{Source: "model of vectors", Docs: weights.Meta().Docs}, rows)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return &Model{meta: meta, matrix: m, table: m.Table()}, nil
}

// newModel computes the id.
func newModel(meta Meta, m *simmatrix.Matrix, vectors []float32) (*Model, error) {
	model := &Model{meta: meta, matrix: m, table: m.Table(), vectors: vectors}
	sum, err := model.write(io.Discard)
	model.id = idOf(sum)
	return model, err
}

// Learn returns a model for dense vectors by the latent semantic analysis of
// documents in an orthonormal basis: of EᵀB, where S = E·Eᵀ, and B is WY with
// each document divided by its norm (the notes, section 4). E is not needed.
// With the leading eigenvectors of
//
//	BᵀSB = U·Λ·Uᵀ
//
// EᵀB has the left singular vectors V = EᵀB·U·Λ^-½, and a text x the
// coordinates
//
//	Vᵀ·Eᵀ·Wx = Λ^-½·Uᵀ·Bᵀ·S·Wx = Σ_i w_i·x_i·T_i,   T = S·B·U·Λ^-½
//
// Only T is kept. If the documents have fewer dimensions than meta says, so has
// the model. S must be symmetric and positive semi-definite. docs, the
// documents' term frequencies, should be a sample of all. The same input gives
// the same model on the same kind of processor. The error may wrap [ErrModel],
// [ErrNotSymmetric] or [ErrNoDocuments], or be a [*NotPositiveError].
func Learn(ctx context.Context, meta Meta, s, weights *simmatrix.Matrix, docs [][]Coordinate, progress simmatrix.Progress) (*Model, error) {
	if !meta.Store.Dense() {
		return nil, fmt.Errorf("%w: a %s needs no learning", ErrModel, meta.Store)
	}
	m, err := newTable(meta, s, weights)
	if err == nil {
		err = m.checkPositive(ctx)
	}
	if err != nil {
		return nil, err
	}
	b := m.sample(docs)
	if len(b) == 0 {
		return nil, ErrNoDocuments
	}
	stage := simmatrix.NewStage(progress, "dimensions", learn.Products+1)
	gram := learn.Symmetric{Size: len(b), Rank: m.Len(), Multiply: func(ctx context.Context, dst, src blas64.General) error {
		return learn.EachPanel(ctx, dst, src, func() func(out, in []learn.PanelRow) {
			sums, terms := make([]learn.PanelRow, m.Len()), make([]learn.PanelRow, m.Len())
			return func(out, in []learn.PanelRow) {
				m.spread(terms, sums, b, in)
				for d, doc := range b {
					for _, e := range doc {
						addTo(&out[d], e.value, &terms[e.row])
					}
				}
			}
		})
	}}
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // has to give the same numbers every time
	u, roots, err := learn.Leading(ctx, gram, m.meta.rank(), random, stage)
	if err != nil {
		return nil, err
	}
	t := blas64.General{Rows: m.Len(), Cols: len(roots), Stride: len(roots), Data: make([]float64, m.Len()*len(roots))}
	err = learn.EachPanel(ctx, t, u, func() func(out, in []learn.PanelRow) {
		sums := make([]learn.PanelRow, m.Len())
		return func(out, in []learn.PanelRow) { m.spread(out, sums, b, in) }
	})
	if err != nil {
		return nil, err
	}
	m.meta.Dims += len(roots) - m.meta.rank()
	vectors := make([]float32, len(t.Data))
	for i, v := range t.Data {
		vectors[i] = float32(v / roots[i%len(roots)])
	}
	stage.Add(1)
	return newModel(m.meta, m.matrix, vectors)
}

// A sample is documents B, without documents and terms that the model does not
// know.
type sample [][]entry

type entry struct {
	row   int
	value float64
}

func (m *Model) sample(docs [][]Coordinate) sample {
	var b sample
	for _, y := range docs {
		wy := m.weigh(y)
		norm := m.norm(wy)
		var doc []entry
		for _, p := range wy {
			if p.row >= 0 && p.Value > 0 {
				doc = append(doc, entry{p.row, p.Value / norm})
			}
		}
		if len(doc) > 0 {
			b = append(b, doc)
		}
	}
	return b
}

// spread sets out = S·B·in, using sums.
func (m *Model) spread(out, sums []learn.PanelRow, b sample, in []learn.PanelRow) {
	clear(sums)
	for d, doc := range b {
		for _, e := range doc {
			addTo(&sums[e.row], e.value, &in[d])
		}
	}
	copy(out, sums)
	for i := range out {
		cols, sims := m.table.Row(i)
		for k, col := range cols {
			addTo(&out[i], float64(simmatrix.FromUnits(sims[k])), &sums[col])
		}
	}
}

func addTo(to *learn.PanelRow, factor float64, from *learn.PanelRow) {
	for k := range to {
		to[k] += factor * from[k]
	}
}

// checkPositive returns an error if S is not symmetric, or found not to be
// positive semi-definite. A dominant S always is.
func (m *Model) checkPositive(ctx context.Context) error {
	about := m.table.Meta
	if !about.Symmetric {
		return fmt.Errorf("%w: see the option symmetric of a build", ErrNotSymmetric)
	}
	if about.Dominant {
		return nil
	}
	smallest, err := learn.Smallest(ctx, m.Len(), func(dst, src []float64) {
		for i, v := range src {
			cols, sims := m.table.Row(i)
			for k, col := range cols {
				v += float64(simmatrix.FromUnits(sims[k])) * src[col]
			}
			dst[i] = v
		}
	}, rand.New(rand.NewPCG(2, 1))) //nolint:gosec // has to give the same numbers every time
	if err != nil || smallest > -rounding {
		return err
	}
	// λ·S + (1 − λ)·I has the eigenvalues 1 + λ·(e − 1).
	enough := m.meta.Strength / (1 - smallest)
	twoDigits := math.Pow(10, 1-math.Floor(math.Log10(enough))) // never 0, which is not a strength
	return &NotPositiveError{smallest, math.Floor(enough*twoDigits) / twoDigits}
}

// rounding is above the error of an eigenvalue: similarities are stored in
// steps of 1/65535.
const rounding = 1e-3
