package enrich

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/learn"
)

// Errors of [LearnVectors].
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

// LearnVectors returns a model for dense vectors by the latent semantic
// analysis of documents in an orthonormal basis: of EᵀB, where S = E·Eᵀ, and B
// is WY with each document divided by its norm (Novotný 2018, Implementation
// Notes for the Soft Cosine Measure, section 4). E is not needed. With the
// leading eigenvectors of
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
// the same model on the same kind of processor. The error may wrap
// [vectors.ErrModel], [ErrNotSymmetric] or [ErrNoDocuments], or be a
// [*NotPositiveError].
func LearnVectors(
	ctx context.Context, meta vectors.Meta, s, weights *simmatrix.Matrix, docs [][]vectors.Coordinate, progress simmatrix.Progress,
) (*vectors.Model, error) {
	if !meta.Store.Dense() {
		return nil, fmt.Errorf("%w: a %s needs no learning", vectors.ErrModel, meta.Store)
	}
	if err := meta.Check(); err != nil {
		return nil, err
	}
	inSpace := meta
	inSpace.Store = vectors.SparseVector
	inSpace.Dims = 0
	m, err := vectors.New(inSpace, s, weights)
	if err != nil {
		return nil, err
	}
	table := m.Matrix().Table()
	if err = checkPositive(ctx, table, meta.Strength); err != nil {
		return nil, err
	}
	b := newSample(m, docs)
	if len(b) == 0 {
		return nil, ErrNoDocuments
	}
	stage := simmatrix.NewStage(progress, "dimensions", learn.Products+1)
	gram := learn.Symmetric{Size: len(b), Rank: m.Len(), Multiply: func(ctx context.Context, dst, src blas64.General) error {
		return learn.EachPanel(ctx, dst, src, func() func(out, in []learn.PanelRow) {
			sums := make([]learn.PanelRow, m.Len())
			terms := make([]learn.PanelRow, m.Len())
			return func(out, in []learn.PanelRow) {
				b.spread(table, terms, sums, in)
				for d, doc := range b {
					for _, e := range doc {
						addTo(&out[d], e.value, &terms[e.row])
					}
				}
			}
		})
	}}
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // has to give the same numbers every time
	u, roots, err := learn.Leading(ctx, gram, meta.Rank(), random, stage)
	if err != nil {
		return nil, err
	}
	t := blas64.General{Rows: m.Len(), Cols: len(roots), Stride: len(roots), Data: make([]float64, m.Len()*len(roots))}
	err = learn.EachPanel(ctx, t, u, func() func(out, in []learn.PanelRow) {
		sums := make([]learn.PanelRow, m.Len())
		return func(out, in []learn.PanelRow) { b.spread(table, out, sums, in) }
	})
	if err != nil {
		return nil, err
	}
	coordinates := make([]float32, len(t.Data))
	for i, v := range t.Data {
		coordinates[i] = float32(v / roots[i%len(roots)])
	}
	stage.Add(1)
	return m.Dense(meta.Store, coordinates)
}

// A sample is documents B, without documents and terms that the model does not
// know.
type sample [][]entry

type entry struct {
	row   int
	value float64
}

func newSample(m *vectors.Model, docs [][]vectors.Coordinate) sample {
	known := m.Matrix().Table().Terms
	var b sample
	for _, y := range docs {
		var doc []entry
		for _, c := range m.SparseQuery(y) {
			if row, ok := slices.BinarySearch(known, c.Term); ok {
				doc = append(doc, entry{row, c.Value})
			}
		}
		if len(doc) > 0 {
			b = append(b, doc)
		}
	}
	return b
}

// spread sets out = S·B·in, using sums.
func (b sample) spread(s *simmatrix.Table, out, sums, in []learn.PanelRow) {
	clear(sums)
	for d, doc := range b {
		for _, e := range doc {
			addTo(&sums[e.row], e.value, &in[d])
		}
	}
	copy(out, sums)
	for i := range out {
		cols, sims := s.Row(i)
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

// checkPositive returns an error if s, scaled by a strength, is not symmetric,
// or found not to be positive semi-definite. A dominant S always is.
func checkPositive(ctx context.Context, s *simmatrix.Table, strength float64) error {
	if !s.Meta.Symmetric {
		return fmt.Errorf("%w: see the option symmetric of a build", ErrNotSymmetric)
	}
	if s.Meta.Dominant {
		return nil
	}
	smallest, err := learn.Smallest(ctx, len(s.Terms), func(dst, src []float64) {
		for i, v := range src {
			cols, sims := s.Row(i)
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
	enough := strength / (1 - smallest)
	twoDigits := math.Pow(10, 1-math.Floor(math.Log10(enough))) // never 0, which is not a strength
	return &NotPositiveError{smallest, math.Floor(enough*twoDigits) / twoDigits}
}

// rounding is above the error of an eigenvalue: similarities are stored in
// steps of 1/65535.
const rounding = 1e-3
