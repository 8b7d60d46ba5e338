package expand

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/simmatrix"
)

// fakeVectors are models of the vectors of every field but "bare".
type fakeVectors struct {
	model *vectors.Model
	mixed bool
	err   error
}

func (f fakeVectors) Model(_ context.Context, _ esclient.Indices, field string) (m *vectors.Model, mixed bool, err error) {
	if field == "bare" {
		return nil, false, esclient.ErrNoVectors
	}
	return f.model, f.mixed, f.err
}

// vectorModel returns a model in which car and rental are similar to nothing.
// Both are in one of ten documents, so that a query for both has the values √½.
func vectorModel(tb testing.TB, store vectors.Store) *vectors.Model {
	tb.Helper()
	rows := []simmatrix.TermRow{{Term: "car", DocFreq: 1}, {Term: "rental", DocFreq: 1}}
	s, err := simmatrix.New(simmatrix.Meta{Docs: 10, Symmetric: true, Dominant: true}, rows)
	check.OK(tb, err)
	meta := vectors.Meta{Store: store, Normalization: vectors.Soft, Strength: 1}
	if !store.Dense() {
		return check.Got(vectors.New(meta, s, s))(tb)
	}
	meta.Store = vectors.SparseVector
	sparse := check.Got(vectors.New(meta, s, s))(tb)
	return check.Got(sparse.Dense(store, []float32{1, 0}))(tb) // as learned from a document about cars
}

// vectorRental returns an expander of rental in ModeVectors, by vectors only.
func vectorRental(tb testing.TB, store vectors.Store, change func(*Profile)) *Expander {
	tb.Helper()
	c, m := rental(tb)
	o := with(func(o *Profile) { o.Mode, o.SoftWeight = ModeVectors, 1 })
	if change != nil {
		change(&o)
	}
	return New(c, m, o).WithVectors(fakeVectors{model: vectorModel(tb, store)})
}

func expandVectors(t *testing.T, e *Expander, req Request) *Result {
	t.Helper()
	if !bytes.Contains(req.Body, []byte(`"pit"`)) {
		req.Index = "docs"
	}
	r := expanded(t, e, &req)
	return r
}

const (
	carMatch  = `{"match":{"body":"car"}}`
	carOnly   = `{"query":` + carMatch + `}`
	unranked  = `{"bool":{"must":[` + carMatch + `],"boost":1e-06}}`
	carSparse = `{"term":{"akin_vector.body":{"value":"car"}}}`
)

func TestVectorsAreWrittenWithTheOriginal(t *testing.T) {
	same := func(o *Profile) { o.Matching = Same }
	// car is in 50 of 1000 documents: M = 2.2·ln(1 + 950.5/50.5).
	blend := func(o *Profile) { o.SoftWeight = 0.5 }
	const model = `{"term":{"akin_vector_model.body":{"value":"MODEL"}}}`
	for name, tt := range map[string]struct {
		store      vectors.Store
		change     func(*Profile)
		body, want string
	}{
		"sparse":       {vectors.SparseVector, nil, carOnly, `{"query":{"bool":{"should":[` + unranked + `,` + carSparse + `]}}}`},
		"same matches": {vectors.SparseVector, same, carOnly, `{"query":{"bool":{"must":[` + unranked + `],"should":[` + carSparse + `]}}}`},
		"counted": {
			vectors.SparseVector, nil, `{"query":{"match":{"body":{"query":"car rental","operator":"and"}}}}`,
			`{"query":{"bool":{"must":[{"bool":{"must":[{"match":{"body":{"query":"car rental","operator":"and"}}}],"boost":1e-06}}],"should":[` +
				`{"term":{"akin_vector.body":{"value":"car","boost":0.70710677}}},{"term":{"akin_vector.body":{"value":"rental","boost":0.70710677}}}]}}}`,
		},
		"features": {
			vectors.RankFeatures, nil, carOnly,
			`{"query":{"bool":{"should":[` + unranked + `,{"rank_feature":{"field":"akin_vector.body.car","linear":{},"boost":1}}]}}}`,
		},
		"a blend": {
			vectors.RankFeatures, blend, carOnly,
			`{"query":{"bool":{"should":[` + carMatch + `,{"rank_feature":{"field":"akin_vector.body.car","linear":{},"boost":6.570919}}]}}}`,
		},
		"boosts and fields": {
			vectors.SparseVector, nil, `{"query":{"multi_match":{"query":"car","fields":["body","title^3"],"boost":2,"tie_breaker":0.5}}}`,
			`{"query":{"bool":{"should":[{"bool":{"must":[{"multi_match":{"query":"car","fields":["body","title^3"],"boost":2,"tie_breaker":0.5}}],"boost":1e-06}},` +
				`{"dis_max":{"tie_breaker":0.5,"queries":[{"bool":{"should":[{"term":{"akin_vector.body":{"value":"car","boost":2}}}]}},` +
				`{"bool":{"should":[{"term":{"akin_vector.title":{"value":"car","boost":6}}}]}}]}}]}}}`,
		},
		"names of features": {
			vectors.RankFeatures, nil, `{"query":{"match":{"body":"v1.5%"}}}`,
			`{"query":{"bool":{"should":[{"bool":{"must":[{"match":{"body":"v1.5%"}}],"boost":1e-06}},` +
				`{"rank_feature":{"field":"akin_vector.body.v1%2E5%25","linear":{},"boost":1}}]}}}`,
		},
		"dense": {
			vectors.DenseVector, nil, carOnly,
			`{"query":{"bool":{"should":[` + unranked + `,{"bool":{"must":{"knn":{"field":"akin_vector.body","query_vector":[1,0],"k":100,"num_candidates":100,"boost":1}},"filter":` +
				model + `}}]}}}`,
		},
		"dense, same matches": {
			vectors.DenseVector, same, carOnly,
			`{"query":{"bool":{"must":[` + unranked + `],"should":[{"bool":{"must":{"knn":{"field":"akin_vector.body","query_vector":[1,0],"k":100,"num_candidates":100,` +
				`"filter":{"bool":{"filter":[` + carMatch + `]}},"boost":1}},"filter":` + model + `}}]}}}`,
		},
		"dense, OpenSearch": {
			vectors.KNNVector, func(o *Profile) { o.RerankWindow = 7 }, carOnly,
			`{"query":{"bool":{"should":[` + unranked + `,{"bool":{"must":{"knn":{"akin_vector.body":{"vector":[1,0],"k":7,"boost":1}}},"filter":` + model + `}}]}}}`,
		},
		"highlights": {
			vectors.SparseVector, nil, `{"query":` + carMatch + `,"highlight":{"fields":{"body":{}}}}`,
			`{"query":{"bool":{"should":[` + unranked + `,` + carSparse + `]}},"highlight":{"highlight_query":` + carMatch + `,"fields":{"body":{}}}}`,
		},
		"a count": {vectors.SparseVector, nil, `{"size":0,"query":` + carMatch + `}`, `{"size":0,"query":{"bool":{"should":[` + unranked + `,` + carSparse + `]}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := expandVectors(t, vectorRental(t, tt.store, tt.change), Request{Body: []byte(tt.body)})
			_, id, _ := strings.Cut(r.Clauses[0].Matrix, "@")
			got := strings.NewReplacer("[-1,0]", "[1,0]", id, "MODEL").Replace(string(r.Body)) // an eigenvector has no sign
			check.Equal(t, tt.want, got)
			c := r.Clauses[0]
			check.That(t, c.Form == "vectors" && c.Phase == "query" && c.Reason == "" && strings.HasPrefix(c.Matrix, string(tt.store)+"@"), "explained as %+v", c)
		})
	}
}

// TestVectorsOfOtherModelsAreLeftOut has documents whose vectors are by another
// model.
func TestVectorsOfOtherModelsAreLeftOut(t *testing.T) {
	for store, want := range map[vectors.Store]string{
		vectors.RankFeatures: `{"bool":{"should":[{"rank_feature":{"field":"akin_vector.body.car","linear":{},"boost":1}}],"minimum_should_match":1,"filter":MODEL}}`,
		vectors.KNNVector:    `{"bool":{"must":{"knn":{"akin_vector.body":{"vector":[1,0],"k":100,"filter":{"bool":{"filter":[MODEL]}},"boost":1}}},"filter":MODEL}}`,
	} {
		m := vectorModel(t, store)
		r := expandVectors(t, vectorRental(t, store, nil).WithVectors(fakeVectors{model: m, mixed: true}), Request{Body: []byte(carOnly)})
		got := strings.NewReplacer("[-1,0]", "[1,0]", `{"term":{"akin_vector_model.body":{"value":"`+m.ID()+`"}}}`, "MODEL").Replace(string(r.Body))
		check.Equal(t, `{"query":{"bool":{"should":[`+unranked+`,`+want+`]}}}`, got, store)
	}
}

// TestSearchesThatAreNotRankedByVectors are expanded as in ModeBM25.
func TestSearchesThatAreNotRankedByVectors(t *testing.T) {
	search := func(member string) Request { return Request{Body: []byte(`{` + member + `,` + carOnly[1:])} }
	sparse, dense := vectors.SparseVector, vectors.DenseVector
	for name, tt := range map[string]struct {
		store  vectors.Store
		change func(*Profile)
		req    Request
		want   reason.Reason
	}{
		"no vectors":        {sparse, nil, Request{Body: []byte(`{"query":{"match":{"bare":"car"}}}`)}, reason.NoVectors},
		"in a field":        {sparse, nil, Request{Body: []byte(`{"query":{"multi_match":{"query":"car","fields":["body","bare"]}}}`)}, reason.NoVectors},
		"nested":            {sparse, nil, Request{Body: []byte(`{"query":{"nested":{"path":"n","query":{"match":{"n.body":"car"}}}}}`)}, reason.NoVectors},
		"a phrase beside":   {sparse, nil, Request{Body: []byte(`{"query":{"bool":{"must":` + carMatch + `,"should":{"match_phrase":{"body":"car rental"}}}}}`)}, reason.Phrase},
		"many terms":        {sparse, func(o *Profile) { o.MaxQueryTerms = 1 }, Request{Body: []byte(carRental)}, reason.TooManyTerms},
		"a minimum":         {sparse, func(o *Profile) { o.NormalizeScores = true }, search(`"min_score":1`), reason.MinScore},
		"a rescore":         {sparse, nil, search(`"rescore":{"query":{"rescore_query":{"match_all":{}}}}`), reason.Rescore},
		"a point in time":   {sparse, nil, search(`"pit":{"id":"` + pitIDs[0].id + `"}`), reason.PointInTime},
		"a runtime field":   {sparse, nil, search(`"runtime_mappings":{"akin_vector.body":{"type":"keyword"}}`), reason.RuntimeField},
		"unknown words":     {dense, nil, Request{Body: []byte(`{"query":{"match":{"body":"cheap"}}}`)}, reason.NoVectors},
		"dense, a sort":     {dense, nil, search(`"sort":["_score","n"]`), reason.Sort},
		"dense, a collapse": {dense, nil, search(`"collapse":{"field":"n"}`), reason.Collapse},
		"dense, its own":    {dense, nil, search(`"knn":{"field":"v","query_vector":[1],"k":1}`), reason.Vectors},
		"dense, a count":    {dense, nil, Request{Endpoint: EndpointCount, Body: []byte(carOnly)}, reason.Endpoint},
		"dense, no hits":    {dense, nil, search(`"size":0`), reason.NoScores},
		"dense, a name": {
			dense, nil, Request{Body: []byte(`{"query":{"match":{"body":{"query":"car rental","operator":"and","_name":"x"}}}}`)}, reason.Named,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := vectorRental(t, tt.store, tt.change)
			r := expandVectors(t, e, tt.req)
			bm25 := expandVectors(t, e.With(func() Profile { o := e.profile; o.Mode = ModeBM25; return o }()), tt.req)
			diff := cmp.Diff(string(bm25.Body), string(r.Body))
			check.That(t, diff == "" && r.Rewritten, "not written as in ModeBM25 (-bm25 +got):\n%s", diff)
			check.That(t, strings.Contains(reasonsOf(r), string(tt.want)), "the reasons are %s, want %s", reasonsOf(r), tt.want)
		})
	}
}

func reasonsOf(r *Result) string {
	var all []string
	for _, c := range r.Clauses {
		all = append(all, string(c.Reason))
	}
	return strings.Join(all, " ")
}

// TestBlendedClausesCountByThemselves has one clause, and one field of another,
// without vectors.
func TestBlendedClausesCountByThemselves(t *testing.T) {
	e := vectorRental(t, vectors.SparseVector, func(o *Profile) { o.SoftWeight = 0.5 })
	r := expandVectors(t, e, Request{Body: []byte(`{"query":{"bool":{"should":[{"match":{"bare":"car"}},{"multi_match":{"query":"car","fields":["body","bare"]}}]}}}`)})
	forms := []string{}
	for _, c := range r.Clauses {
		forms = append(forms, c.Field+" "+c.Form+" "+string(c.Reason))
	}
	check.Equal(t, []string{"bare saturated no_vectors", "body vectors ", "bare  no_vectors"}, forms)
	n := strings.Count(string(r.Body), "akin_vector.body")
	check.That(t, n == 1 && !strings.Contains(string(r.Body), "akin_vector.bare"), "%d queries in vectors: %s", n, r.Body)
}

func TestVectorsThatDoNotFitAreLeftOut(t *testing.T) {
	e := vectorRental(t, vectors.SparseVector, nil)
	const words = "a b c d e f g h i j k l m n o p q r s t u v w x y z "
	e.limits.Learn(Limit{Kind: LimitClauses, Index: "docs", N: 64})
	body := `{"query":{"bool":{"must":[{"match":{"body":"` + words + `"}},{"match":{"title":"` + words + `"}}]}}}`
	r := expandVectors(t, e, Request{Body: []byte(body)})
	check.That(t, r.ClauseCount <= 104 && reasonsOf(r) == strings.Repeat(" term_limit", 2)[1:] && !r.Rewritten, "%d clauses, reasons %s", r.ClauseCount, reasonsOf(r))
}

// TestVectorsAreNotWrittenTooDeep goes down level by level.
func TestVectorsAreNotWrittenTooDeep(t *testing.T) {
	for _, store := range []vectors.Store{vectors.SparseVector, vectors.DenseVector} {
		for _, clause := range []string{
			`{"match":{"body":"car rental"}}`,
			`{"match":{"body":{"query":"car rental","operator":"and"}}}`,
			`{"multi_match":{"query":"car rental","fields":["body","title"]}}`,
		} {
			for _, mixed := range []bool{false, true} {
				e := vectorRental(t, store, nil)
				if mixed {
					e = e.WithVectors(fakeVectors{model: vectorModel(t, store), mixed: true})
				}
				deepest := 0
				for depth := range maxLevels {
					query := nestedIn(depth, clause)
					r := expandVectors(t, e, Request{Body: []byte(`{"query":` + query + `}`)})
					if r.Clauses[0].Form != "vectors" {
						continue
					}
					levels := levelsOf(t, r.Body)
					check.That(t, levels <= maxLevels, "%s, depth %d: %d levels", store, depth, levels)
					deepest = max(deepest, levels)
				}
				check.That(t, deepest >= maxLevels-2, "%s, %s: the deepest has %d levels", store, clause, deepest)
			}
		}
	}
}

// levelsOf returns how many queries are nested in each other in a search.
func levelsOf(t *testing.T, body []byte) int {
	t.Helper()
	var levels func(name string, v any) int
	levels = func(name string, v any) (deepest int) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				deepest = max(deepest, levels(name, one))
			}
		case map[string]any:
			for inner, value := range v {
				deepest = max(deepest, levels(inner, value))
			}
			if slices.Contains([]string{"query", "must", "should", "filter", "queries"}, name) {
				deepest++
			}
		}
		return deepest
	}
	var search any
	check.OK(t, json.Unmarshal(body, &search))
	return levels("", search)
}

func TestSearchFailsWhereModelsAreNotKnown(t *testing.T) {
	e := vectorRental(t, vectors.SparseVector, nil).WithVectors(fakeVectors{err: errors.New("no answer")})
	_, err := e.Expand(t.Context(), &Request{Index: "docs", Body: []byte(carOnly)})
	stage, ok := errors.AsType[*StageError](err)
	check.That(t, ok && stage.Stage == StageVectors, "%v, want a failure of the stage vectors", err)
}
