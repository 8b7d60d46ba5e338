package expand

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/vectors"
)

// switching are a matrix and weights of which each pin has the next version.
type switching struct {
	*fakeMatrix
	pins *atomic.Int64
}

func (s switching) Pin() Pinned { return numbered{s.fakeMatrix, s.pins.Add(1)} }

type numbered struct {
	*fakeMatrix
	version int64
}

func (n numbered) For(context.Context, esclient.Indices, string) (Bound, error) {
	return Bound{Rows: n}, nil
}

func (n numbered) Version() string { return fmt.Sprint("test@", n.version) }

type switchingWeights struct {
	*fakeWeights
	pins *atomic.Int64
}

func (s switchingWeights) Pin() PinnedWeights {
	s.pins.Add(1)
	return s.fakeWeights
}

func TestAllSearchesOfARequestHaveOnePin(t *testing.T) {
	c, m := rental(t)
	const fields = `{"query":{"multi_match":{"query":"car rental","fields":["body","title"]}}}`
	requests := map[string]Request{
		"a search":   {Body: []byte(fields)},
		"_msearch":   {Endpoint: EndpointMultiSearch, Body: []byte(strings.Repeat("{}\n"+fields+"\n", 9))},
		"_rank_eval": {Endpoint: EndpointRankEval, Body: []byte(`{"requests":[` + strings.Repeat(`{"id":"a","request":`+fields+`,"ratings":[]},`, 8) + `{"id":"b","request":` + fields + `,"ratings":[]}]}`)},
	}
	for name, request := range requests {
		for _, mode := range []Mode{ModeBM25, ModeSoft, ModeHard} {
			var versions, weights atomic.Int64
			e := New(c, switching{m, &versions}, with(func(o *Profile) {
				o.Mode, o.Feedback = mode, FeedbackOptions{Documents: 3, Terms: 5, Weight: 0.5}
			})).WithWeights(switchingWeights{rentalWeights(), &weights})
			in := request
			in.Index = "docs"
			first := expanded(t, e, &in)
			for _, res := range []*Result{first, withHits(t, e, first, firstHits)} {
				check.Must(t, res.Rewritten, "%s, mode %v: %+v", name, mode, res)
				for _, clause := range res.Clauses {
					check.That(t, clause.Matrix == "test@1", "%s, mode %v: %s of %s has the matrix %q", name, mode, clause.Path, clause.Field, clause.Matrix)
				}
			}
			n := weights.Load()
			check.That(t, n <= 1, "%s, mode %v: weights were pinned %d times", name, mode, n)
		}
	}
}

// switchingVectors counts how often it is asked, and has another answer each
// time.
type switchingVectors struct {
	VectorSource

	asked *atomic.Int64
}

func (s switchingVectors) Model(ctx context.Context, indices esclient.Indices, field string) (*vectors.Model, bool, error) {
	if s.asked.Add(1) > 1 {
		return nil, false, esclient.ErrNoVectors
	}
	return s.VectorSource.Model(ctx, indices, field)
}

func TestAllSearchesOfARequestHaveOneModelOfVectors(t *testing.T) {
	c, m := rental(t)
	var asked atomic.Int64
	e := New(c, m, with(func(o *Profile) { o.Mode = ModeVectors })).WithVectors(switchingVectors{fakeVectors{model: vectorModel(t, vectors.RankFeatures)}, &asked})
	body := strings.Repeat("{}\n"+`{"query":{"match":{"title":"car rental"}}}`+"\n", 6)
	res, err := e.Expand(t.Context(), &Request{Endpoint: EndpointMultiSearch, Index: "docs", Body: []byte(body)})
	check.Must(t, err == nil && res.Rewritten && asked.Load() == 1, "asked %d times: %+v, %v", asked.Load(), res, err)
	for _, clause := range res.Clauses {
		check.Equal(t, "vectors", clause.Form, clause)
	}
}
