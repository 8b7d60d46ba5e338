package expand

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/simmatrix"
)

// Where only the order of hits may change, the query needs no added term: the
// rescore has them.
func TestSameMatchesAreFoundByTheClientsQuery(t *testing.T) {
	const match = `{"match":{"body":"car"}}`
	for name, change := range map[string]func(o *Profile){"": func(*Profile) {}, "with names": named} {
		r := expandBody(t, with(func(o *Profile) { o.Matching = Same; change(o) }), `{"query":`+match+`}`)
		query, rescore, _ := strings.Cut(string(r.Body), `,"rescore":`)
		check.That(t, (name != "" || query == `{"query":`+match) && strings.Contains(rescore, "automobile"), "%s: %s", name, r.Body)
		if name != "" {
			checkNamed(t, r)
		}
	}
}

// written returns what is explained of the clauses that were rewritten.
func written(r *Result) []Explanation {
	var out []Explanation
	for _, c := range r.Clauses {
		if c.Form != "" {
			out = append(out, c)
		}
	}
	return out
}

func TestPhaseFollowsWhatTheRequestAllows(t *testing.T) {
	const query = `"query":{"match":{"body":"car"}}`
	for name, tt := range map[string]struct {
		endpoint       Endpoint
		body, rawQuery string
		change         func(o *Profile)
		phase          string
		reason         reason.Reason
	}{
		"not asked for":       {body: `{` + query + `}`, change: func(o *Profile) { o.NoRescore = true }, phase: "query"},
		"grouped":             {body: `{` + query + `}`, change: func(o *Profile) { o.Scoring, o.NoRescore = form.Grouped, false }, phase: "query"},
		"aggregations":        {body: `{` + query + `,"aggs":{"t":{"top_hits":{}}}}`, phase: "rescore"},
		"terminated early":    {body: `{` + query + `,"terminate_after":10,"timeout":"1s"}`, phase: "rescore"},
		"post_filter":         {body: `{` + query + `,"post_filter":{"term":{"a":1}}}`, phase: "rescore"},
		"sort in the URL":     {body: `{` + query + `}`, rawQuery: `sort=n&track_scores=true`, phase: "query", reason: reason.Sort},
		"retriever":           {body: `{"retriever":{"standard":{` + query + `}}}`, phase: "query", reason: reason.Retriever},
		"vectors":             {body: `{` + query + `,"knn":{"field":"v","query_vector":[1],"k":1,"num_candidates":2}}`, phase: "query", reason: reason.Vectors},
		"a knn query":         {body: `{"query":{"bool":{"should":[{"match":{"body":"car"}},{"knn":{"v":{"vector":[1],"k":1}}}]}}}`, phase: "query", reason: reason.Vectors},
		"a neural query":      {body: `{"query":{"bool":{"must":{"match":{"body":"car"}},"should":{"neural" : {"v":{"query_text":"car"}}}}}}`, phase: "query", reason: reason.Vectors},
		"a sparse query":      {body: `{"query":{"dis_max":{"queries":[{"match":{"body":"car"}},{"neural_sparse": {"v":{"query_tokens":{"car":1}}}}]}}}`, phase: "query", reason: reason.Vectors},
		"a hybrid query":      {body: `{"query":{"bool":{"should":[{"hybrid":{"queries":[{"match":{"title":"car"}}]}},{"match":{"body":"car"}}]}}}`, phase: "query", reason: reason.Vectors},
		"knn of a function":   {body: `{"query":{"function_score":{"query":{"match":{"body":"car"}},"functions":[{"filter":{"knn":{"v":{"vector":[1],"k":1}}},"weight":2}]}}}`, phase: "query", reason: reason.Vectors},
		"words about them":    {body: `{"query":{"bool":{"must":{"match":{"body":"car"}},"filter":[{"term":{"knn":"hybrid"}},{"term":{"a":"\"knn\":{"}}]}}}`, phase: "rescore"},
		"knn of aggregations": {body: `{` + query + `,"aggs":{"a":{"filter":{"knn":{"v":{"vector":[1],"k":1}}}}}}`, phase: "rescore"},
		"named in escapes":    {body: `{"query":{"match":{"body":{"query":"car","\u005fname":"x"}}}}`, phase: "query", reason: reason.Named},
		"inner hits":          {body: `{"query":{"nested":{"path":"n","score_mode":"max","inner_hits":{},"query":{"match":{"n.body":"car"}}}}}`, phase: "query", reason: reason.Named},
		"no hits":             {body: `{"size":0,` + query + `,"aggs":{"t":{"top_hits":{}}}}`, phase: "query", reason: reason.NoScores},
		"explain":             {endpoint: EndpointExplain, body: `{` + query + `}`, phase: "query", reason: reason.SearchType},
		"validate":            {endpoint: EndpointValidate, body: `{` + query + `}`, phase: "query", reason: reason.Endpoint},
	} {
		t.Run(name, func(t *testing.T) {
			c, m := rental(t)
			c.shards = 5
			o := widening()
			if tt.change != nil {
				tt.change(&o)
			}
			r, err := New(c, m, o).Expand(t.Context(), &Request{Endpoint: tt.endpoint, RawQuery: tt.rawQuery, Body: []byte(tt.body)})
			check.Must(t, err == nil && len(written(r)) == 1, "error %v, result %+v", err, r)
			got := written(r)[0]
			check.That(t, got.Phase == tt.phase && got.Reason == tt.reason, "phase %q, reason %q; want %q, %q", got.Phase, got.Reason, tt.phase, tt.reason)
			if got := strings.Contains(string(r.Body), `"query_weight":0.000001`); got != (tt.phase == "rescore") {
				t.Errorf("rescored: %t\n%s", got, r.Body)
			}
			takesDFS := tt.endpoint == EndpointSearch && o.Scoring == form.Auto && !strings.Contains(tt.body, `,"knn":{"field"`)
			check.Equal(t, takesDFS, strings.Contains(r.RawQuery, dsl.DFS), r.RawQuery, "raw query dfs")
			check.That(t, json.Valid(r.Body), "not JSON: %s", r.Body)
		})
	}
}

func TestIndicesThatRefuseTheWindowAreNotRescored(t *testing.T) {
	for _, tt := range []struct {
		limit  int
		index  string
		phase  string
		reason reason.Reason
	}{
		{0, "docs", "rescore", ""},
		{99, "docs", "query", reason.RescoreWindow},
		{99, "other", "rescore", ""},
		{100, "docs", "rescore", ""},
	} {
		c, m := rental(t)
		e := New(c, m, widening())
		e.limits.Learn(Limit{LimitRescore, "docs", int64(tt.limit)})
		r, err := e.Expand(t.Context(), &Request{Index: tt.index, Body: []byte(carRental)})
		check.Must(t, err == nil && len(written(r)) == 1, "error %v, result %+v", err, r)
		got := written(r)[0]
		if got.Form != "saturated" || got.Phase != tt.phase || got.Reason != tt.reason || strings.Contains(string(r.Body), `"rescore"`) != (tt.phase == "rescore") {
			t.Errorf("limit %d, %s: form %q, phase %q, reason %q; want saturated, %q, %q", tt.limit, tt.index, got.Form, got.Phase, got.Reason, tt.phase, tt.reason)
		}
	}
}

func TestLearnedLimitsAreBounded(t *testing.T) {
	c, m := rental(t)
	e := New(c, m, widening())
	for i := range 3 * maxLimits {
		e.limits.Learn(Limit{LimitRescore, strconv.Itoa(i), 10})
		n := len(e.limits.known)
		check.Must(t, e.limits.of(LimitRescore, strconv.Itoa(i)) == 10 && n <= maxLimits, "limit %d of %d", i, n)
	}
}

// What a rescored search looks for is looked for as well where the same search
// cannot be rescored.
func TestTotalsAgreeHoweverTheSearchIsRun(t *testing.T) {
	// terms returns the neighbors that a query scores, and all that it finds by.
	terms := func(part string) (scored, all []string) {
		for _, m := range regexp.MustCompile(`("value":)?"(neighbor\d+)"`).FindAllStringSubmatch(part, -1) {
			if all = append(all, m[2]); m[1] != "" {
				scored = append(scored, m[2])
			}
		}
		slices.Sort(scored)
		slices.Sort(all)
		return scored, all
	}
	expand := func(endpoint Endpoint, body string, change func(o *Profile)) *Result {
		e := warmExpander(t, form.Auto)
		o := widening()
		change(&o)
		r, err := e.With(o).Expand(t.Context(), &Request{Endpoint: endpoint, Body: []byte(body)})
		if err != nil || !r.Rewritten {
			t.Fatal(r, err)
		}
		return r
	}
	const query = `"query":{"match":{"body":"boundary layer transition"}}`
	asIs := func(*Profile) {}
	found, ordered, _ := strings.Cut(string(expand(EndpointSearch, `{`+query+`}`, asIs).Body), `"rescore"`)
	finding, want := terms(found)
	check.Must(t, len(want) == 30 && len(finding) == 6, "looks for %q and scores %q, want 30 terms of which 6 are scored", want, finding)
	for name, tt := range map[string]struct {
		r      *Result
		scored int
	}{
		"named":          {expand(EndpointSearch, `{"query":{"match":{"body":{"query":"boundary layer transition","_name":"n"}}}}`, asIs), 12},
		"sorted":         {expand(EndpointSearch, `{"sort":["n"],"track_scores":true,`+query+`}`, asIs), 12},
		"counted":        {expand(EndpointCount, `{`+query+`}`, asIs), 0},
		"no hits":        {expand(EndpointSearch, `{"size":0,`+query+`}`, asIs), 0},
		"explained":      {expand(EndpointExplain, `{`+query+`}`, asIs), 13},
		"never rescored": {expand(EndpointSearch, `{`+query+`}`, func(o *Profile) { o.NoRescore = true }), 30},
	} {
		scored, all := terms(string(tt.r.Body))
		diff := cmp.Diff(want, all)
		check.That(t, diff == "" && tt.r.AddedTerms() == 30, "%s: looks for others (-rescored +%s):\n%s", name, name, diff)
		check.Equal(t, tt.scored, len(scored), name, scored, "scores terms")
	}
	// Terms that only order are fewer: there is nothing to find by the others.
	same := expand(EndpointSearch, `{`+query+`}`, func(o *Profile) { o.NoRescore, o.Matching = true, Same })
	if scored, all := terms(string(same.Body)); len(scored) != 12 || len(all) != 12 || same.AddedTerms() != 12 || !slices.Contains(want, scored[0]) {
		t.Errorf("same matches: scores %q of %q", scored, all)
	}
	inOrder, _ := terms(ordered)
	if explained, _ := terms(string(expand(EndpointExplain, `{`+query+`}`, asIs).Body)); !slices.Equal(inOrder, explained) {
		t.Errorf("explains by %q, orders by %q", explained, inOrder)
	}
}

// Engines count 10,000 hits and page through as many: where the text itself
// finds them, sets of related words would only cost.
func TestTextsThatFindManyAreNotSearchedForWithSets(t *testing.T) {
	const query = `"query":{"match":{"body":"car rental"}}`
	for name, tt := range map[string]struct {
		docFreq        int64
		rawQuery, body string
		filtered       bool
		secured, set   bool
	}{
		"found by many":           {docFreq: 10_000, body: `{` + query + `,"size":5}`},
		"found by fewer":          {docFreq: 9_999, body: `{` + query + `}`, set: true},
		"in a filtered search":    {docFreq: 10_000, body: `{"query":{"bool":{"must":{"match":{"body":"car rental"}},"filter":{"term":{"a":1}}}}}`, set: true},
		"all words":               {docFreq: 10_000, body: `{"query":{"match":{"body":{"query":"car rental","operator":"and"}}}}`, set: true},
		"filtered afterwards":     {docFreq: 10_000, body: `{` + query + `,"post_filter":{"term":{"a":1}}}`, set: true},
		"aggregated":              {docFreq: 10_000, body: `{` + query + `,"aggs":{"a":{"terms":{"field":"a"}}}}`, set: true},
		"counted":                 {docFreq: 10_000, body: `{` + query + `,"track_total_hits":true}`, set: true},
		"counted by the URL":      {docFreq: 10_000, rawQuery: "track_total_hits=true", body: `{` + query + `}`, set: true},
		"counted for old clients": {docFreq: 10_000, rawQuery: "rest_total_hits_as_int=true", body: `{` + query + `}`, set: true},
		"the same with no value":  {docFreq: 10_000, rawQuery: "rest_total_hits_as_int", body: `{` + query + `}`, set: true},
		"in an alias's documents": {docFreq: 10_000, filtered: true, body: `{` + query + `}`, set: true},
		"routed":                  {docFreq: 10_000, rawQuery: "routing=a", body: `{` + query + `}`, set: true},
		"of a client with rights": {docFreq: 10_000, secured: true, body: `{` + query + `}`, set: true},
		"through a pipeline":      {docFreq: 10_000, rawQuery: "search_pipeline=p", body: `{` + query + `}`, set: true},
		"with a pipeline":         {docFreq: 10_000, body: `{` + query + `,"search_pipeline":{"request_processors":[]}}`, set: true},
	} {
		c := &fakeCluster{docCount: 1_000_000, scale: 2.2, scripts: true, filtered: tt.filtered, docFreqs: map[string]int64{"car": tt.docFreq, "rental": 20}}
		var neighbors []simmatrix.Neighbor
		for i := range 10 {
			term := "neighbor" + strconv.Itoa(i)
			neighbors, c.docFreqs[term] = append(neighbors, simmatrix.Neighbor{Term: term, Similarity: 0.5}), 5000
		}
		m := matrixOf(t, c, map[string][]simmatrix.Neighbor{"car": neighbors})
		for _, req := range []Request{
			{Index: "docs", RawQuery: tt.rawQuery, Body: []byte(tt.body)},
			{Endpoint: EndpointMultiSearch, Index: "docs", RawQuery: tt.rawQuery, Body: []byte("{}\n" + tt.body + "\n")},
		} {
			if req.Endpoint == EndpointMultiSearch && strings.HasPrefix(tt.rawQuery, "track") {
				continue // which does not have it
			}
			if tt.secured {
				req.Allowed = func(context.Context, esclient.Indices) error { return nil }
			}
			low, soft := widening(), widening()
			low.Effort, soft.Mode = form.Low, ModeSoft
			for k, o := range []Profile{widening(), low, soft} {
				res := expanded(t, New(c, m, o), &req)
				found, rescore, _ := strings.Cut(string(res.Body), `"rescore"`)
				set := strings.Contains(found, `"terms"`)
				check.That(t, set == tt.set && (rescore != "" || k > 0) && strings.Contains(found, "neighbor"), "%s, profile %d, endpoint %d: %s", name, k, req.Endpoint, res.Body)
			}
		}
	}
}

// However many words are related, and however closely, in a query that only
// finds they score at most .6 of what the text can, so that they do not push
// its best hits out of the window.
func TestRelatedWordsDoNotPushTheBestHitsOutOfTheWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for range rounds(300) {
		c := &fakeCluster{docCount: 100_000, scale: 2.2, scripts: true, docFreqs: map[string]int64{"car": 1 + rng.Int64N(9000), "rental": 1 + rng.Int64N(9000)}}
		rows := map[string][]simmatrix.Neighbor{}
		all := []string{"car", "rental"}
		for n := range 1 + rng.IntN(40) {
			term := fmt.Sprintf("related%d", n)
			all = append(all, term)
			c.docFreqs[term] = 1 + rng.Int64N(9000)
			of := all[rng.IntN(2)]
			rows[of] = append(rows[of], simmatrix.Neighbor{Term: term, Similarity: float32(1+rng.IntN(98)) / 100})
		}
		o := with(func(o *Profile) {
			o.Effort, o.Strength, o.Mode = Efforts[rng.IntN(3)], []float64{0.5, 1, 5}[rng.IntN(3)], []Mode{ModeBM25, ModeSoft}[rng.IntN(2)]
			o.Scoring, o.Matching = form.Saturated, Widen
		})
		req := &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"car rental"}}}`)}
		r := expanded(t, New(c, matrixOf(t, c, rows), o), req)
		e := &engine{tb: t, cluster: c, doc: map[string]map[string]float64{"body": {}}}
		e.doc["body"]["car"], e.doc["body"]["rental"] = 1, 1
		best := e.search(req.Body, "query").score
		clear(e.doc["body"])
		for _, term := range all[2:] {
			e.doc["body"][term] = 1
		}
		related := e.search(r.Body, "query")
		check.Must(t, related.found, "%s finds no related word", r.Body)
		check.Must(t, related.score <= 0.6*best*1.0001, "related words alone score %v, the text up to %v:\n%s", related.score, best, r.Body)
	}
}
