package expand

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
)

// hybridOf is a hybrid query of a text and of vectors, with more members of the
// body.
func hybridOf(members string) string {
	return `{"query":{"hybrid":{"queries":[{"match":{"body":"car rental"}},{"knn":{"v":{"vector":[1,0],"k":100}}}],"pagination_depth":100}}` + members + `}`
}

// A pipeline normalizes the scores of each sub-query and mixes them by weights.
// So there is one in for one out, scored in the query, without what would stop
// the pipeline (dfs on several shards) or rescore vectors.
func TestTextInAHybridQueryIsExpandedInItsPlace(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(*Profile)
		cluster func(*fakeCluster)
		want    form.Scoring
		why     reason.Reason
	}{
		"one shard":               {want: form.Saturated, why: reason.Hybrid},
		"effort low":              {change: func(o *Profile) { o.Effort = form.Low }, want: form.Saturated, why: reason.Hybrid},
		"several shards":          {cluster: func(c *fakeCluster) { c.shards = 3 }, want: form.Grouped, why: reason.Hybrid},
		"without scripts":         {cluster: func(c *fakeCluster) { c.scripts = false }, want: form.Grouped, why: reason.NoScripts},
		"linear, as is asked for": {change: func(o *Profile) { o.Scoring = form.Linear }, want: form.Linear},
		"mode soft":               {change: soft, want: form.Saturated, why: reason.Hybrid},
		"mode hard":               {change: func(o *Profile) { o.Mode = ModeHard }, want: form.Saturated, why: reason.Hybrid},
		"mode vectors":            {change: func(o *Profile) { o.Mode = ModeVectors }, want: form.Saturated, why: reason.Hybrid},
	} {
		t.Run(name, func(t *testing.T) {
			c, m := rental(t)
			if c.scripts, c.scale = true, 1; tt.cluster != nil {
				tt.cluster(c)
			}
			o := widening()
			if tt.change != nil {
				tt.change(&o)
			}
			r := expandIn(t, c, m, o, hybridOf(`,"size":20`))
			check.Must(t, r.Rewritten && r.onlyRerank() == nil && r.Clauses[0].Form == tt.want.String(), "%+v", r)
			body := string(r.Body)
			for _, member := range []string{`"rescore"`, `search_type`} {
				check.That(t, !strings.Contains(body+r.RawQuery, member), "%s in %s %s", member, body, r.RawQuery)
			}
			check.That(t, strings.HasSuffix(body, `,{"knn":{"v":{"vector":[1,0],"k":100}}}],"pagination_depth":100}},"size":20}`) && strings.Count(body, `"hybrid"`) == 1, "other members changed: %s", body)
			explained, err := json.Marshal(r.Clauses[0])
			why := string(tt.why)
			check.That(t, err == nil && (why == "" || strings.Contains(string(explained), `"`+why+`"`)), "%s is not said in %s", why, explained)
		})
	}
}

func TestHybridQueryGoesAsItCameWhere(t *testing.T) {
	for name, tt := range map[string]struct {
		req    Request
		change func(*Profile)
		want   reason.Reason
	}{
		"min_score":    {Request{Body: []byte(hybridOf(`,"min_score":1`))}, func(o *Profile) { o.NormalizeScores = true }, reason.MinScore},
		"switched off": {Request{Body: []byte(hybridOf(""))}, func(o *Profile) { o.Hybrid = false }, reason.NoClause},
		"_rank_eval":   {Request{Endpoint: EndpointRankEval, Body: []byte(`{"requests":[{"id":"1","request":` + hybridOf("") + `,"ratings":[]}],"metric":{}}`)}, nil, reason.Hybrid},
	} {
		t.Run(name, func(t *testing.T) {
			c, m := rental(t)
			o := widening()
			if tt.change != nil {
				tt.change(&o)
			}
			tt.req.Index = "docs"
			r, err := New(c, m, o).Expand(t.Context(), &tt.req)
			check.That(t, err == nil && !r.Rewritten && r.Reason == tt.want, "%+v, %v, want %s", r, err, tt.want)
		})
	}
}

// Its hits are the first by the words, with scores that no pipeline mixes.
func TestFeedbackOfAHybridQueryAsksByTheSubQueryOfText(t *testing.T) {
	first, second := expandTwice(t, &Request{RawQuery: "search_pipeline=mixed", Body: []byte(hybridOf(""))})
	pass := first.firstPass()
	check.Must(t, pass != nil && pass.RawQuery == "" && strings.HasSuffix(string(pass.Body), `"query":{"match":{"body":"car rental"}}}`), "%+v", pass)
	check.That(t, strings.Contains(string(second.Body), "tariff"), "no term of the hits in %s", second.Body)
}

// The texts of five sub-queries share what one search may have.
func TestSubQueriesOfAHybridQueryShareTheTerms(t *testing.T) {
	words := strings.TrimSpace(strings.Repeat("car rental cheap ", 67))
	queries := strings.TrimSuffix(strings.Repeat(`{"match":{"body":"`+words+`"}},`, 5), ",")
	r := expandBody(t, with(func(o *Profile) { o.Scoring = form.Linear }), `{"query":{"hybrid":{"queries":[`+queries+`]}}}`)
	added := 0
	for _, c := range r.Clauses {
		if added += len(c.Added); len(c.Added) == 0 {
			t.Errorf("nothing is added to %s", c.Path)
		}
	}
	if added > 20 { // 16, and one at least for each
		t.Errorf("%d terms are added", added)
	}
}

func TestTextBesideVectorsIsWrittenAsInAHybridQuery(t *testing.T) {
	for name, body := range map[string]string{
		"a sum":     `{"query":{"bool":{"should":[{"match":{"body":"car rental"}},{"knn":{"v":{"vector":[1,0],"k":100}}}]}}}`,
		"semantic":  `{"query":{"bool":{"should":[{"match":{"body":"car rental"}},{"semantic":{"field":"v","query":"car rental"}}]}}}`,
		"sparse":    `{"query":{"bool":{"should":[{"match":{"body":"car rental"}},{"sparse_vector":{"field":"v","query":"car rental"}}]}}}`,
		"inside":    `{"retriever":{"standard":{"query":{"bool":{"should":[{"match":{"body":"car rental"}},{"knn":{"field":"v"}}]}}}}}`,
		"collapsed": `{"query":{"match":{"body":"car rental"}},"knn":{"field":"v","query_vector":[1,0],"k":10},"collapse":{"field":"a"}}`,
		"knn":       `{"query":{"match":{"body":"car rental"}},"knn":{"field":"v","query_vector":[1,0],"k":10,"num_candidates":100}}`,
		"retriever": `{"retriever":{"rrf":{"retrievers":[{"standard":{"query":{"match":{"body":"car rental"}}}},{"knn":{"field":"v"}}]}}}`,
	} {
		for _, effort := range []form.Effort{form.Low, form.Normal, form.High} {
			c, m := rental(t)
			c.scripts, c.scale = true, 1
			r := expandIn(t, c, m, with(func(o *Profile) { o.Effort = effort }), body)
			check.That(t, r.Clauses[0].Form == form.Saturated.String() && !strings.Contains(string(r.Body), `"rescore"`), "%s, effort %s: %+v", name, effort, r.Clauses[0])
		}
	}
}

// Elasticsearch searches for retrievers inside others without the search_type.
func TestTextInRetrieversIsGroupedOnSeveralShards(t *testing.T) {
	const standard = `{"standard":{"query":{"match":{"body":"car rental"}}}}`
	for body, want := range map[string]form.Scoring{
		standard: form.Saturated,
		`{"rrf":{"retrievers":[` + standard + `,{"knn":{"field":"v"}}]}}`: form.Grouped,
		`{"pinned":{"ids":["1"],"retriever":` + standard + `}}`:           form.Grouped,
	} {
		c, m := rental(t)
		c.shards = 3
		r := expandIn(t, c, m, widening(), `{"retriever":`+body+`}`)
		check.That(t, r.Clauses[0].Form == want.String() && strings.Contains(r.RawQuery, "search_type") == (want == form.Saturated), "%s: %q %+v", body, r.RawQuery, r.Clauses[0])
	}
}

// A request processor may read the query by JSON path, and find nothing.
func TestSearchesWhosePipelineReadsTheQueryGoAsTheyCame(t *testing.T) {
	for name, tt := range map[string]struct {
		parameters, members string
		defaults            []string
		want                reason.Reason // "" where the search is rewritten
		fails               bool
	}{
		"none":                         {},
		"named, safe":                  {parameters: "search_pipeline=safe"},
		"named":                        {parameters: "search_pipeline=reads", want: reason.SearchPipeline},
		"named in the body":            {members: `,"search_pipeline":"reads"`, want: reason.SearchPipeline},
		"named, hidden from akin":      {parameters: "search_pipeline=hidden", want: reason.SearchPipeline},
		"named, not there":             {parameters: "search_pipeline=gone", want: reason.UnknownToCluster},
		"named, in no time":            {parameters: "search_pipeline=slow", fails: true},
		"no name":                      {members: `,"search_pipeline":1`, want: reason.SearchPipeline},
		"by default":                   {defaults: []string{"safe", "reads"}, want: reason.SearchPipeline},
		"by default, safe":             {defaults: []string{"safe"}},
		"by default, hidden from akin": {defaults: []string{"hidden"}},
		"by default, another named":    {parameters: "search_pipeline=safe", defaults: []string{"reads"}},
		"by default, none asked for":   {parameters: "search_pipeline=_none", defaults: []string{"reads"}},
		"inline":                       {members: `,"search_pipeline":{"request_processors":[{"ml_inference":{"model_id":"m"}}]}`, want: reason.SearchPipeline},
		"inline, safe":                 {members: `,"search_pipeline":{"request_processors":[{"filter_query":{}},{"oversample":{}}],"response_processors":[{"rerank":{}}]}`},
	} {
		for _, body := range []string{`{"query":{"match":{"body":"car rental"}}` + tt.members + `}`, hybridOf(tt.members)} {
			c, m := rental(t)
			c.pipelines = tt.defaults
			r, err := New(c, m, widening()).Expand(t.Context(), &Request{Index: "docs", RawQuery: tt.parameters, Body: []byte(body)})
			switch {
			case tt.fails:
				check.That(t, err != nil, "%s: no error, %+v", name, r)
			case err != nil || r.Rewritten != (tt.want == "") || tt.want != "" && r.Reason != tt.want:
				t.Errorf("%s: %+v, %v, want %q", name, r, err, tt.want)
			}
		}
	}
}

// The bodies of docs/hybrid.md have one text each.
func TestSearchesOfThePageOnHybridSearchAreExpanded(t *testing.T) {
	page, err := os.ReadFile("../docs/hybrid.md")
	check.OK(t, err)
	blocks := strings.Split(string(page), "```json\n")[1:]
	check.Must(t, len(blocks) == 2, "%d blocks", len(blocks))
	for _, block := range blocks {
		body, _, _ := strings.Cut(block, "\n```")
		r := expandBody(t, widening(), body)
		check.That(t, r.Rewritten && r.AddedTerms() != 0, "%s: %+v", body, r)
	}
}
