package expand

import (
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/reason"
)

// titles are vectors of the field title.
type titles struct{}

func (titles) Knows(field string) bool { return field == "title" }

// byVectorsOf expands a search whose hits vectors of titles order.
func byVectorsOf(tb testing.TB, o Profile, req *Request) *Result {
	tb.Helper()
	c, m := rental(tb)
	c.shards = 2
	o.Rerank = ByEmbeddings
	req.Index = "docs"
	return expanded(tb, New(c, m, o).WithDocuments(titles{}), req)
}

// The search is that of the mode bm25, whose hits come back without what
// belongs to the page.
func TestEmbeddingsOrderWhatTheModeBM25Finds(t *testing.T) {
	const body = `{"from":5,"size":20,"_source":["a"],"query":{"match":{"title":"cheap car"}},"aggs":{"c":{"max":{"field":"d"}}}}`
	for _, mode := range []Mode{ModeBM25, ModeAuto} {
		o := with(func(o *Profile) { o.Mode = mode })
		plain := expandBody(t, with(func(o *Profile) { o.Mode = ModeBM25 }), body)
		res := byVectorsOf(t, o, &Request{Body: []byte(body)})
		r := res.onlyRerank()
		check.Must(t, r != nil, "not reranked: %+v", res)
		check.Equal(t, "cheap car", r.Text)
		check.Equal(t, []any{100, 5, 20, 0.5, false, 0}, []any{r.Window, r.From, r.Size, r.TextWeight, r.BySeqNo, len(r.Fields) + len(r.Sums)})
		check.Equal(t, queryOf(t, plain.Body), queryOf(t, res.Body))
		check.Equal(t, plain.Clauses[0].Phase, res.Clauses[0].Phase, "the engine scores as before")
		check.That(t, strings.Contains(string(res.Body), `"rescore"`) && strings.Contains(string(r.InOrder.Body), `"rescore"`) &&
			!strings.Contains(string(r.Page.Body), `"rescore"`), "%s\n%s\n%s", res.Body, r.InOrder.Body, r.Page.Body)
		check.That(t, strings.Contains(res.RawQuery, "dfs") && strings.Contains(r.InOrder.RawQuery, "dfs"), "%s %s", res.RawQuery, r.InOrder.RawQuery)
	}
	bare := byVectorsOf(t, widening(), &Request{Body: []byte(`{"query":{"match":{"title":"plain"}}}`)})
	check.That(t, bare.Rewritten && bare.onlyRerank() != nil && bare.AddedTerms() == 0, "no word is added: %+v", bare)
}

// In the mode auto vectors go on from the order of the soft cosine where hits
// are remembered. Where no word is added they order the engine's hits.
func TestEmbeddingsOrderWhatTheSoftModeFindsWhereHitsAreRemembered(t *testing.T) {
	const match = `{"match":{"title":"cheap car"}}`
	known := remembered{"docs\ntitle": true}
	for _, c := range []struct {
		query  string
		hits   HitMemory
		warm   bool // a follow-up
		by     string
		fields int
		why    reason.Reason
	}{
		{match, known, false, "cheap car", 1, ""},
		{match, remembered{}, false, "cheap car", 0, reason.NotRemembered},
		{match, remembered{}, true, "cheap car", 1, ""},
		{`{"match":{"title":"plain"}}`, known, false, "plain", 0, reason.NoNeighbors},
		{`{"match":{"title":"plain"}}`, known, true, "", 0, reason.NoNeighbors},
		{`{"bool":{"must":` + match + `,"should":{"match":{"unbound":"car"}}}}`, known, false, "cheap car", 0, reason.OtherScores},
	} {
		cluster, matrices := rental(t)
		e := New(cluster, matrices, with(func(o *Profile) { o.Mode, o.Rerank = ModeAuto, ByEmbeddings })).WithHits(c.hits).WithDocuments(titles{})
		res := expanded(t, e, &Request{Index: "docs", Body: []byte(`{"query":` + c.query + `}`), Warm: c.warm})
		by, fields := "", 0
		if r := res.onlyRerank(); r != nil {
			by, fields = r.Text, len(r.Fields)
		}
		check.Equal(t, []any{c.by, c.fields, c.why}, []any{by, fields, res.Clauses[0].Reason}, c.query)
		check.Equal(t, c.why == reason.NotRemembered, len(res.Parts) == 1 && res.Parts[0].FollowUp != nil, c.query)
	}
}

func TestARequestAsksForEmbeddingsOrNone(t *testing.T) {
	body := []byte(`{"query":{"match":{"title":"car"}}}`)
	check.That(t, byVectorsOf(t, widening(), &Request{Body: body, Embeddings: EmbeddingsOff}).onlyRerank() == nil, "reranked")
	c, m := rental(t)
	e := New(c, m, widening()).WithDocuments(titles{})
	check.That(t, expanded(t, e, &Request{Index: "docs", Body: body}).onlyRerank() == nil, "reranked, but not configured")
	check.That(t, expanded(t, e, &Request{Index: "docs", Body: body, Embeddings: EmbeddingsOn}).onlyRerank() != nil, "not reranked")
	soft := with(func(o *Profile) { o.Mode = ModeSoft })
	r := expanded(t, e.With(soft), &Request{Index: "docs", Body: body, Embeddings: EmbeddingsOn}).onlyRerank()
	check.That(t, r != nil && r.Text == "", "the mode soft orders by embeddings: %+v", r)
}

func TestTheTextIsThatOfTheClausesInTheFields(t *testing.T) {
	for body, want := range map[string]string{
		`{"query":{"bool":{"must":[{"match":{"title":"cheap"}}],"should":[{"match":{"title":"car"}},{"match":{"title":"cheap"}},{"match":{"body":"rental"}}]}}}`: "cheap car",
		`{"query":{"bool":{"must":{"match":{"title":"car"}},"filter":{"match":{"title":"rental"}},"must_not":{"match":{"title":"cheap"}}}}}`:                     "car",
		`{"query":{"multi_match":{"query":"cheap car","fields":["body","title"]}}}`:                                                                              "cheap car",
	} {
		r := byVectorsOf(t, widening(), &Request{Body: []byte(body)}).onlyRerank()
		check.That(t, r != nil && r.Text == want, "%s: %+v", body, r)
	}
	long := strings.Repeat("ü", 5000)
	r := byVectorsOf(t, widening(), &Request{Body: []byte(`{"query":{"match":{"title":"` + long + `"}}}`)}).onlyRerank()
	check.That(t, r != nil && len(r.Text) == maxEmbedded && strings.Trim(r.Text, "ü") == "", "%+v", r)
}

func TestReasonsWhyEmbeddingsDoNotOrder(t *testing.T) {
	const car = `"query":{"match":{"title":"car"}}`
	for body, want := range map[string]reason.Reason{
		`{` + car + `,"sort":["d"]}`:             reason.Sort,
		`{` + car + `,"collapse":{"field":"d"}}`: reason.Collapse,
		`{` + car + `,"from":100}`:               reason.Window,
		`{` + car + `,"size":5000}`:              reason.Window,
		`{"query":{"match":{"body":"car"}}}`:     reason.NoEmbeddings,
		`{"query":{"bool":{"must":{"match":{"title":"car"}},"should":{"term":{"d":1}}}}}`:                     reason.OtherScores,
		`{"query":{"hybrid":{"queries":[{"match":{"title":"car"}},{"match":{"title":"rental"}}]}}}`:           reason.Hybrid,
		`{"size":5,"query":{"match":{"title":{"query":"cheap car rental","operator":"and"}}},"explain":true}`: reason.Answer,
	} {
		res := byVectorsOf(t, widening(), &Request{Body: []byte(body)})
		check.That(t, res.onlyRerank() == nil, "%s: reranked", body)
		got := []reason.Reason{res.Reason}
		for _, c := range res.Clauses {
			got = append(got, c.Reason)
		}
		check.That(t, slices.Contains(got, want), "%s: %v, want %s", body, got, want)
	}
}
