package e2e

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// A meaning is a query with the documents that it finds through akin, beyond
// those that it finds directly.
type meaning struct {
	name, query string
	// more are the ids that come in: none where only their order may change, nil
	// where the search is not expanded.
	more []string
	// modules says that the engine needs its modules for analysis.
	modules bool
	// combined says that the engine has to know combined_fields.
	combined bool
}

// fieldMeanings are queries on several fields.
var fieldMeanings = []meaning{
	{
		name: "best_fields and", query: `{"multi_match":{"fields":["title","body"],"query":"car red","operator":"and"}}`,
		more: []string{"auto-red-big", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-crimson"},
	},
	{
		name: "cross_fields and", query: `{"multi_match":{"fields":["title","body"],"type":"cross_fields","query":"car red","operator":"and"}}`,
		more: []string{"auto-red-big", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-crimson", "title:auto body:crimson"},
	},
	{
		name: "combined_fields and", query: `{"combined_fields":{"fields":["title^2","body"],"query":"car red","operator":"and"}}`,
		more: []string{"auto-red-big", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-crimson", "title:auto body:crimson"}, combined: true,
	},
	{
		name: "cross_fields minimum", query: `{"multi_match":{"fields":["title","body"],"type":"cross_fields","query":"car red boat","minimum_should_match":2}}`,
		more: []string{"auto-red-big", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-crimson", "title:auto body:crimson"},
	},
	{
		name: "wildcard", query: `{"multi_match":{"fields":["*title"],"query":"car"}}`,
		more: []string{"title:auto", "title:auto body:crimson", "subtitle:auto"},
	},
	{
		name: "wildcard and name", query: `{"multi_match":{"fields":["sub*^3","title"],"type":"most_fields","query":"car"}}`,
		more: []string{"title:auto", "title:auto body:crimson", "subtitle:auto"},
	},
	{
		name: "tie_breaker", query: `{"multi_match":{"fields":["title^2","subtitle"],"query":"car","tie_breaker":0.3}}`,
		more: []string{"title:auto", "title:auto body:crimson", "subtitle:auto"},
	},
	{name: "bool_prefix", query: `{"multi_match":{"fields":["title"],"type":"bool_prefix","query":"car fil"}}`, more: []string{"title:auto", "title:auto body:crimson"}},
	{name: "phrase", query: `{"multi_match":{"fields":["body"],"type":"phrase","query":"car red"}}`, more: []string{}},
}

// analyzerMeanings are queries whose text is analyzed in some special way.
var analyzerMeanings = []meaning{
	{name: "the field's own", query: `{"match":{"body.stem":"cars"}}`, more: []string{"auto", "auto-crimson", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-red-big"}},
	{name: "not stemmed", query: `{"match":{"body":"cars"}}`},
	{name: "the clause's", query: `{"match":{"body":{"query":"cars","analyzer":"english"}}}`, more: []string{"auto", "auto-crimson", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-red-big"}},
	{name: "search_analyzer", query: `{"match":{"mixed":"dogs"}}`, more: []string{"hounds"}},
	{name: "only stop words", query: `{"match":{"body.stem":{"query":"the of and","zero_terms_query":"none"}}}`},
	{name: "a language without blanks", query: `{"match":{"cjk":"日本"}}`, more: []string{"東京"}},
	{name: "synonyms", query: `{"match":{"body.syn":"quick"}}`, modules: true, more: []string{"rapid", "huge-ship-swift"}},
	{name: "synonyms and", query: `{"match":{"body.syn":{"query":"quick boat","operator":"and"}}}`, modules: true, more: []string{"huge-ship-swift"}},
	{name: "a synonym of several words", query: `{"match":{"body.words":"sports car"}}`, modules: true, more: []string{}}, // only as a phrase
	{name: "synonym and", query: `{"match":{"body.words":{"query":"coupe","operator":"and"}}}`, modules: true, more: []string{}},
	{name: "n-grams in the index", query: `{"match":{"body.grams":"car"}}`, modules: true, more: []string{"auto", "auto-crimson", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-red-big"}},
	{name: "n-grams in both", query: `{"match":{"body.gramsboth":"red"}}`, modules: true},
}

// known reports whether the engine knows what m needs.
func (e *engine) known(m meaning) bool {
	if m.combined {
		return e.family == "elasticsearch" && e.name != "elasticsearch7"
	}
	return e.scripts || !m.modules
}

func TestFieldsAndAnalyzersKeepTheirMeaning(t *testing.T) {
	matrix := semanticsMatrix(t)
	eachEngine(t, func(t *testing.T, e *engine) {
		// Fields of n-grams are not expanded unless a binding names them in full.
		contenders := serveSemantics(t, e, matrix, 1, nil, "*", "body.grams", "body.gramsboth")
		for _, m := range slices.Concat(fieldMeanings, analyzerMeanings) {
			if e.known(m) {
				t.Run(m.name, func(t *testing.T) { checkMeaning(t, e, contenders, m) })
			}
		}
		checkNoFallback(t, contenders)
	})
}

// checkMeaning compares what a query finds through akin with what it finds
// directly and what is to come in.
func checkMeaning(t *testing.T, e *engine, contenders []contender, m meaning) {
	t.Helper()
	direct := e.found(t, m.query)
	want := slices.Sorted(slices.Values(append(slices.Clone(direct), m.more...)))
	for _, c := range contenders {
		before := c.metric(t, requestsMetric, rewrittenOutcome)
		if got := c.found(t, m.query); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q and directly %q", c.name, got, m.more, direct)
		}
		if rewritten := c.metric(t, requestsMetric, rewrittenOutcome) > before; rewritten != (m.more != nil) {
			t.Errorf("%s: rewritten: %t: %s", c.name, rewritten, c.written(t, semanticsIndex, `{"query":`+m.query+`}`))
		}
	}
}

// TestFieldBoostsCountForRelatedWords looks for the document with the related
// word in the field of the larger boost.
func TestFieldBoostsCountForRelatedWords(t *testing.T) {
	matrix := semanticsMatrix(t)
	eachEngine(t, func(t *testing.T, e *engine) {
		contenders := serveSemantics(t, e, matrix, 1, nil)
		for _, kind := range []string{"best_fields", "most_fields", "cross_fields"} {
			for first, fields := range map[string]string{"title:auto": `"title^5","subtitle"`, "subtitle:auto": `"title","subtitle^5"`} {
				query := `{"query":{"multi_match":{"query":"car","type":"` + kind + `","fields":[` + fields + `]}},"size":200}`
				for _, c := range contenders {
					hits, err := c.search(t.Context(), semanticsPath, query)
					if err != nil {
						t.Fatal(err)
					}
					ids := slices.DeleteFunc(hits.ids(), func(id string) bool { return !strings.HasSuffix(id, "title:auto") })
					if len(ids) != 2 || ids[0] != first {
						t.Errorf("%s %s: %q, want %s first", c.name, query, ids, first)
					}
				}
			}
		}
	})
}

// TestKeywordFieldsKeepTheirScores: of several fields, one that is no text finds
// and scores as directly, while related words are found in the other.
func TestKeywordFieldsKeepTheirScores(t *testing.T) {
	matrix := semanticsMatrix(t)
	eachEngine(t, func(t *testing.T, e *engine) {
		contenders := serveSemantics(t, e, matrix, 1, nil)
		e.index(t, semanticsIndex, []document{{"tag:car", section{"tag": "car"}}})
		score := func(c cluster, query, id string) float64 {
			hits, err := c.search(t.Context(), semanticsPath, query)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range hits.Hits.Hits {
				if h.ID == id {
					return h.Score
				}
			}
			return 0
		}
		for _, kind := range []string{"best_fields", "most_fields"} {
			query := `{"query":{"multi_match":{"query":"car","type":"` + kind + `","fields":["title","tag^4"]}},"size":200}`
			want := score(e.cluster, query, "tag:car")
			for _, c := range contenders {
				if got := score(c.cluster, query, "tag:car"); want == 0 || math.Abs(got/want-1) > 1e-4 {
					t.Errorf("%s %s: the keyword scores %v, directly %v", c.name, kind, got, want)
				}
				if score(c.cluster, query, "title:auto") == 0 {
					t.Errorf("%s %s: the related word is not found", c.name, kind)
				}
				if body := string(c.written(t, semanticsIndex, query)); c.name != "linear" && strings.Count(body, `"multi_match"`) < 2 {
					t.Errorf("%s %s: the keyword has no query of its own: %s", c.name, kind, body)
				}
			}
		}
	})
}
