package expand

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand/reason"
)

func TestSearchesThatAreNotRankedHard(t *testing.T) {
	withOther := func(other string) string {
		return `{"query":{"bool":{"must":[{"match":{"body":"car"}}],"should":[` + other + `]}}}`
	}
	several := func(c *fakeCluster, _ *fakeWeights, _ *Profile) { c.shards = 3 }
	for name, tt := range map[string]struct {
		change func(c *fakeCluster, f *fakeWeights, o *Profile)
		req    Request
		want   reason.Reason
	}{
		"no weights":          {nil, Request{Body: []byte(`{"query":{"match":{"unweighted":"car"}}}`)}, reason.NoWeights},
		"weights of nothing":  {func(_ *fakeCluster, f *fakeWeights, _ *Profile) { f.docs = 0 }, Request{Body: []byte(carRental)}, reason.NoWeights},
		"no linear field":     {nil, Request{Body: []byte(`{"query":{"match":{"crooked":"car"}}}`)}, reason.NoLinear},
		"no norms":            {nil, Request{Body: []byte(`{"query":{"match":{"bare":"car"}}}`)}, reason.NoNorms},
		"mixed":               {func(_ *fakeCluster, f *fakeWeights, _ *Profile) { f.linearErr = fmt.Errorf("a: %w", mapping.ErrMixed) }, Request{Body: []byte(carRental)}, reason.Mixed},
		"nested":              {nil, Request{Body: []byte(`{"query":{"nested":{"path":"n","score_mode":"max","query":{"match":{"n.body":"car"}}}}}`)}, reason.NoNorms},
		"fuzziness":           {nil, Request{Body: []byte(`{"query":{"match":{"body":{"query":"car","fuzziness":1}}}}`)}, reason.NotAdditive},
		"cross_fields":        {nil, Request{Body: []byte(`{"query":{"multi_match":{"query":"car","fields":["body","title"],"type":"cross_fields"}}}`)}, reason.NotAdditive},
		"combined_fields":     {nil, Request{Body: []byte(`{"query":{"combined_fields":{"query":"car","fields":["body","title"]}}}`)}, reason.NotAdditive},
		"a beginning":         {nil, Request{Body: []byte(`{"query":{"match_bool_prefix":{"body":"car ren"}}}`)}, reason.NotAdditive},
		"synonyms":            {func(c *fakeCluster, _ *fakeWeights, _ *Profile) { c.synonyms = map[string]string{"car": "auto"} }, Request{Body: []byte(carRental)}, reason.NotAdditive},
		"a graph":             {func(c *fakeCluster, _ *fakeWeights, _ *Profile) { c.graph = true }, Request{Body: []byte(carRental)}, reason.NotAdditive},
		"a phrase beside":     {nil, Request{Body: []byte(withOther(`{"match_phrase":{"body":"car rental"}}`))}, reason.Phrase},
		"an expanded phrase":  {func(_ *fakeCluster, _ *fakeWeights, o *Profile) { o.Phrases = true }, Request{Body: []byte(withOther(`{"match_phrase":{"body":"car rental"}}`))}, reason.NotAdditive},
		"syntax beside":       {nil, Request{Body: []byte(withOther(`{"query_string":{"query":"car AND rental"}}`))}, reason.Syntax},
		"no matrix beside":    {nil, Request{Body: []byte(withOther(`{"match":{"unbound":"car"}}`))}, reason.NoMatrix},
		"no text beside":      {nil, Request{Body: []byte(withOther(`{"match":{"sku":"car"}}`))}, reason.NotText},
		"no weights beside":   {nil, Request{Body: []byte(withOther(`{"match":{"unweighted":"car"}}`))}, reason.NoWeights},
		"no norms in a field": {nil, Request{Body: []byte(`{"query":{"multi_match":{"query":"car","fields":["body","bare"]}}}`)}, reason.NoNorms},
		"a minimum of scores": {func(_ *fakeCluster, _ *fakeWeights, o *Profile) { o.NormalizeScores = true }, Request{Body: []byte(`{"min_score":3,` + carRental[1:])}, reason.MinScore},
		"a rescore, vectors":  {nil, Request{Body: []byte(`{"rescore":{"query":{"rescore_query":{"match_all":{}}}},"knn":{"field":"v","query_vector":[1],"k":1},` + carRental[1:])}, reason.Rescore},
		"a rescore, a scroll": {nil, Request{RawQuery: "scroll=1m", Body: []byte(`{"rescore":{"query":{"rescore_query":{"match_all":{}}}},` + carRental[1:])}, reason.Rescore},
		"a rescore":           {nil, Request{Body: []byte(`{"rescore":{"query":{"rescore_query":{"match":{"body":"car"}}}},` + carRental[1:])}, reason.Rescore},
		"a runtime field":     {nil, Request{Body: []byte(`{"runtime_mappings":{"body.linear":{"type":"keyword"}},` + carRental[1:])}, reason.RuntimeField},
		"a runtime norm":      {nil, Request{Body: []byte(`{"runtime_mappings":{"akin_norm.body":{"type":"double"}},` + carRental[1:])}, reason.RuntimeField},
		"too deep": {
			nil, Request{Body: []byte(`{"query":` + nestedIn(18, `{"match":{"body":"car"}}`) + `}`)}, reason.TooDeep,
		},
		"routing":          {several, Request{RawQuery: "routing=a", Body: []byte(carRental)}, reason.Routing},
		"a routed alias":   {func(c *fakeCluster, _ *fakeWeights, _ *Profile) { c.shards, c.routed = 3, true }, Request{Body: []byte(carRental)}, reason.Routing},
		"a search_type":    {several, Request{RawQuery: "search_type=query_then_fetch", Body: []byte(carRental)}, reason.SearchType},
		"an explanation":   {several, Request{Endpoint: EndpointExplain, Body: []byte(carRental)}, reason.SearchType},
		"rated searches":   {several, Request{Endpoint: EndpointRankEval, Body: []byte(`{"requests":[{"id":"a","request":` + carRental + `,"ratings":[]}]}`)}, reason.SearchType},
		"a list of fields": {nil, Request{Body: []byte(`{"query":{"simple_query_string":{"query":"car","fields":["body","title"]}}}`)}, reason.NotAdditive},
	} {
		t.Run(name, func(t *testing.T) {
			e := hardRental(t, tt.change)
			r := expandHard(t, e, tt.req)
			bm25 := expandHard(t, e.With(func() Profile { o := e.profile; o.Mode = ModeBM25; return o }()), tt.req)
			diff := cmp.Diff(string(bm25.Body), string(r.Body))
			check.That(t, diff == "" && r.RawQuery == bm25.RawQuery, "not written as in ModeBM25 (-bm25 +got):\n%s", diff)
			check.That(t, r.Rewritten, "not rewritten at all")
			said := 0
			for i, c := range r.Clauses {
				switch {
				case c.Reason == tt.want:
					said++
				case c.Reason == "" || bm25.Clauses[i].Form != "":
					t.Errorf("clause %d, form %q, says %q, want %q", i, c.Form, c.Reason, tt.want)
				}
			}
			check.That(t, said != 0, "no clause says %q: %+v", tt.want, r.Clauses)
		})
	}
	t.Run("nothing to ask", func(t *testing.T) {
		c, m := rental(t)
		o := with(func(o *Profile) { o.Mode = ModeHard })
		r := expandHard(t, New(c, m, o), Request{Body: []byte(carRental)})
		check.That(t, r.Clauses[0].Reason == reason.NoWeights, "without weights: %q", r.Clauses[0].Reason)
	})
}

// These stay in the mode.
func TestHardFormOfSearchesWithMoreInThem(t *testing.T) {
	for name, query := range map[string]string{
		"other queries":          `{"bool":{"must":[{"match":{"body":"car"}},{"term":{"body":"x"}}],"filter":[{"match":{"sku":"y"}}]}}`,
		"functions":              `{"function_score":{"query":{"match":{"body":"car"}},"weight":2}}`,
		"no terms beside":        `{"bool":{"must":[{"match":{"body":"car"}}],"should":[{"match":{"title":"the"}}]}}`,
		"children":               `{"has_child":{"type":"c","score_mode":"max","query":{"match":{"body":"car"}}}}`,
		"a text without related": `{"match":{"body":"zebra"}}`,
		"a named query":          `{"match":{"body":{"query":"car","_name":"a"}}}`,
		"a query string":         `{"query_string":{"query":"car","default_field":"body"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			e := hardRental(t, func(c *fakeCluster, _ *fakeWeights, _ *Profile) { c.stopWords = "the" })
			body := []byte(`{"query":` + query + `}`)
			r := expandHard(t, e, Request{Body: body})
			hard := slices.ContainsFunc(r.Clauses, func(c Explanation) bool { return c.Form == "hard" && c.Reason == "" })
			check.That(t, hard && strings.Contains(string(r.Body), "reciprocal"), "clauses %+v of %s", r.Clauses, r.Body)
			err := strip(body, r.Body)
			check.Error(t, nil, err)
		})
	}
}

func TestHardFormWithoutScores(t *testing.T) {
	for name, tt := range map[string]struct {
		req      Request
		matching bool
		want     string
		reason   reason.Reason
	}{
		"count": {
			req:  Request{Endpoint: EndpointCount, Body: []byte(carRental)},
			want: `{"query":{"bool":{"should":[{"match":{"body":"car rental"}},{"terms":{"body":["lease","automobile","hire"]}}]}}}`,
		},
		"nothing related": {req: Request{RawQuery: "size=0", Body: []byte(`{"query":{"match":{"body":"zebra"}}}`)}, reason: reason.NoNeighbors},
		"same":            {req: Request{Body: []byte(`{"size":0,"query":{"bool":{"must":{"nested":{"query":{"match":{"body":"car"}}}}}}}`)}, reason: reason.NoScores},
	} {
		t.Run(name, func(t *testing.T) {
			r := expandHard(t, hardRental(t, func(c *fakeCluster, _ *fakeWeights, o *Profile) { c.shards, o.Matching = 3, sameIf(tt.matching) }), tt.req)
			check.That(t, string(r.Body) == tt.want && r.Clauses[0].Reason == tt.reason && (r.RawQuery == "" || !r.Rewritten), "raw query %q, body %s, clauses %+v", r.RawQuery, r.Body, r.Clauses)
		})
	}
}

func TestHardFormOfSeveralShardsGathersStatistics(t *testing.T) {
	for _, scripted := range []bool{false, true} {
		for endpoint, tt := range map[Endpoint]struct{ body, want string }{
			EndpointSearch:      {carRental, "a=b&search_type=dfs_query_then_fetch"},
			EndpointMultiSearch: {"{}\n" + carRental + "\n", `{"search_type":"dfs_query_then_fetch"}`},
		} {
			e := hardRental(t, func(c *fakeCluster, f *fakeWeights, _ *Profile) { c.shards, f.scripted = 3, scripted })
			r := expandHard(t, e, Request{Endpoint: endpoint, RawQuery: "a=b", Body: []byte(tt.body)})
			said := r.RawQuery + string(r.Body)
			check.That(t, r.Rewritten && strings.Contains(said, tt.want) == !scripted && strings.Contains(said, "reciprocal"), "endpoint %d, scripted %t: %s", endpoint, scripted, said)
		}
	}
	// Of these, a script scores on one document what it scores on another.
	e := hardRental(t, func(c *fakeCluster, f *fakeWeights, _ *Profile) { c.shards, c.routed, f.scripted = 3, true, true })
	r := expandHard(t, e, Request{Endpoint: EndpointExplain, RawQuery: "routing=a", Body: []byte(carRental)})
	check.That(t, r.Clauses[0].Form == "hard" && r.RawQuery == "routing=a", "raw query %q, clauses %+v", r.RawQuery, r.Clauses)
}
