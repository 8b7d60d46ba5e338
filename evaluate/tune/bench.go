package tune

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/demo"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/evaluate/judged"
	"github.com/akin-search/akin/evaluate/measure"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/shape"
)

// A Bench scores judged queries under settings, as akin would rank them.
type Bench struct {
	Index    *Index
	Matrices []combine.Input
	// Options are those of the expander of a profile.
	Options func(configs.Rewriting) expand.Options
	Queries []judged.Query
	// Bodies are the searches of the queries.
	Bodies [][]byte
	Grades map[string]map[string]int

	recent []shapedMatrix // the last ones, the latest first
}

type shapedMatrix struct {
	shape  string
	matrix *simmatrix.Matrix
}

// Measured is how many documents of a ranking count.
const Measured = 10

// Score returns the nDCG@10 of each query under a setting, nil for direct
// search.
func (b *Bench) Score(ctx context.Context, s *Setting) ([]float64, error) {
	rankings, err := b.Rank(ctx, s)
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(rankings))
	for i, hits := range rankings {
		ids := make([]string, len(hits))
		for k, h := range hits {
			ids[k] = h.ID
		}
		scores[i] = measure.NDCG(ids, b.Grades[b.Queries[i].ID], Measured)
	}
	return scores, nil
}

// Rank returns the hits of each query under a setting, nil for direct search.
func (b *Bench) Rank(ctx context.Context, s *Setting) ([][]demo.Hit, error) {
	var e *expand.Expander
	if s != nil {
		m, err := b.shaped(ctx, s.Shape)
		if err != nil {
			return nil, err
		}
		e = expand.New(b.Index, source{b.Index, rows{m}}, b.Options(s.Rewriting))
	}
	rankings := make([][]demo.Hit, len(b.Bodies))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, body := range b.Bodies {
		group.Go(func() (err error) {
			rankings[i], err = b.Index.search(ctx, e, body)
			return err
		})
	}
	return rankings, group.Wait()
}

// shaped returns the matrix of a shape. Settings that are next to each other
// mostly have one of the last.
func (b *Bench) shaped(ctx context.Context, s Shape) (*simmatrix.Matrix, error) {
	const remembered = 4
	key := fmt.Sprint(s)
	if k := slices.IndexFunc(b.recent, func(r shapedMatrix) bool { return r.shape == key }); k >= 0 {
		return b.recent[k].matrix, nil
	}
	m, err := s.Apply(ctx, b.Matrices)
	if err == nil {
		b.recent = slices.Insert(b.recent, 0, shapedMatrix{key, m})
		b.recent = b.recent[:min(len(b.recent), remembered)]
	}
	return m, err
}

// source gives an expander one matrix for the fields of an index.
type source struct {
	index *Index
	rows  rows
}

// Pin implements [expand.Matrices].
func (s source) Pin() expand.Pinned { return s }

// For implements [expand.Pinned].
func (s source) For(_ context.Context, _ esclient.Indices, field string) (expand.Bound, error) {
	if s.index.statistics[field] == nil {
		return expand.Bound{}, nil
	}
	return expand.Bound{Rows: s.rows, Named: true}, nil
}

// rows are those of a matrix.
type rows struct{ m *simmatrix.Matrix }

// Version implements [expand.Rows].
func (r rows) Version() string { return r.m.Checksum() }

// Docs implements [expand.Rows].
func (r rows) Docs() int64 { return int64(r.m.Meta().Docs) } //nolint:gosec // of an index

// Rows implements [expand.Rows].
func (r rows) Rows(_ context.Context, terms []string, rows []simmatrix.Row) error {
	for k, term := range terms {
		rows[k] = r.m.Row(term)
	}
	return nil
}

// IsFirst reports whether [Shape.Apply] returns the first matrix as it is.
func (s *Shape) IsFirst() bool {
	return len(s.Weights) == 0 && s.Exponent == 1 && s.Threshold == 0 && s.Neighbors == 0
}

// Apply returns the matrix of a shape. Without weights the first matrix is the
// one.
func (s *Shape) Apply(ctx context.Context, matrices []combine.Input) (m *simmatrix.Matrix, err error) {
	inputs := slices.Clone(matrices[:max(1, len(s.Weights))])
	for k, w := range s.Weights {
		inputs[k].Weight = w
	}
	if len(s.Weights) > 0 {
		inputs = slices.DeleteFunc(inputs, func(in combine.Input) bool { return in.Weight == 0 })
	}
	if m = inputs[0].Matrix; len(inputs) > 1 {
		o := combine.DefaultOptions()
		o.Rule = combine.RuleWeighted
		m, err = combine.Matrices(ctx, inputs, o, nil)
	}
	if err == nil && s.Exponent != 1 {
		m, err = shape.Raise(m, s.Exponent)
	}
	if err == nil && (s.Threshold > 0 || s.Neighbors > 0) {
		m, err = shape.Sparsify(m, shape.SparsifyOptions{Threshold: s.Threshold, Neighbors: s.Neighbors})
	}
	return m, err
}
