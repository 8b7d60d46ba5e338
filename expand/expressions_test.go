package expand

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/simmatrix"
)

// attacks is a cluster and a matrix in which "heart attack" has an exact synonym
// of two words, and "car" one of one word.
func attacks(tb testing.TB) (*fakeCluster, *fakeMatrix) {
	tb.Helper()
	c := &fakeCluster{docCount: 1000, scale: 2.2, scripts: true, docFreqs: map[string]int64{
		"heart": 50, "attack": 60, "myocardial": 8, "infarction": 9, "car": 40, "automobile": 300, "symptoms": 30, "signs": 20,
	}}
	key := func(words ...string) string {
		e, err := simmatrix.Expression(words, []int{0, 1}[:len(words)])
		if err != nil {
			tb.Fatal(err)
		}
		return e
	}
	return c, matrixOf(tb, c, map[string][]simmatrix.Neighbor{
		key("heart", "attack"): {{Term: key("myocardial", "infarction"), Similarity: 1}},
		"car":                  {{Term: "automobile", Similarity: 1}},
		"symptoms":             {{Term: "signs", Similarity: 0.5}},
	})
}

func TestExpressionsAreWrittenAsAlternativesOfTheWordsThatTheyStandFor(t *testing.T) {
	const (
		phrase   = `{"match_phrase":{"body":{"query":"myocardial infarction","analyzer":"whitespace"`
		original = `{"match":{"body":"heart attack"}}`
	)
	linear := func(o *Profile) { o.Scoring = form.Linear }
	for name, tt := range map[string]struct {
		change func(*Profile)
		fix    func(*fakeCluster)
		query  string
		size   int
		want   []string // parts of what is sent
		not    []string
		reason reason.Reason // of the only explanation
	}{
		"linear": {linear, nil, original, 10, []string{`{"query":{"bool":{"should":[{"dis_max":{"queries":[` + original + `,` + phrase + `,"boost":0.6`}, nil, ""},
		"grouped": {
			func(o *Profile) { o.Scoring = form.Grouped }, nil, original, 10,
			[]string{`{"term":{"body":{"value":"heart"}}},` + phrase + `,"boost":0.31`, `{"term":{"body":{"value":"attack"}}},` + phrase + `,"boost":0.29`},
			nil, "",
		},
		"saturated": {func(o *Profile) { o.NoRescore = true }, nil, original, 10, []string{phrase + `}}},"script":`, `"c":0.999,"b":1}`}, nil, ""},
		"rescored":  {func(*Profile) {}, nil, original, 10, []string{`"rescore"`, `{"dis_max":{"queries":[` + original + `,` + phrase}, nil, ""},
		"no scores": {func(*Profile) {}, nil, original, 0, []string{`{"bool":{"should":[` + original + `,` + phrase + `}}`}, nil, ""},
		"all words": {
			linear, nil, `{"match":{"body":{"query":"heart attack","operator":"and"}}}`, 10,
			[]string{`{"bool":{"should":[{"term":{"body":{"value":"heart"}}},` + phrase, `{"bool":{"should":[{"term":{"body":{"value":"attack"}}},` + phrase},
			nil, "",
		},
		"the same matches": {func(o *Profile) { o.SameMatches, o.Scoring = true, form.Linear }, nil, original, 10, nil, []string{"match_phrase"}, reason.NoNeighbors},
		"pairs": {
			linear, func(c *fakeCluster) { c.phrases = mapping.ByPairs }, original, 10,
			[]string{`{"span_near":{"clauses":[{"span_term":{"body":"myocardial"}},{"span_term":{"body":"infarction"}}],"slop":0,"in_order":true,"boost":0.6`},
			[]string{"match_phrase"},
			"",
		},
		"no positions": {linear, func(c *fakeCluster) { c.phrases = mapping.NoPhrases }, original, 10, nil, []string{"myocardial"}, reason.NoNeighbors},
		"a graph":      {linear, func(c *fakeCluster) { c.graph = true }, original, 10, nil, []string{"myocardial"}, reason.NoNeighbors},
		"cross_fields": {
			linear, nil, `{"multi_match":{"query":"heart attack","type":"cross_fields","fields":["body","title"]}}`, 10,
			[]string{`{"dis_max":{"tie_breaker":0,"queries":[` + phrase + `,"boost":0.6145555}}},{"match_phrase":{"title":{"query":"myocardial`}, nil, "",
		},
		"cross_fields of all words": {
			linear, nil, `{"multi_match":{"query":"heart attack","type":"cross_fields","operator":"and","fields":["body","title"]}}`, 10,
			[]string{`{"term":{"body":{"value":"heart"}}},` + phrase + `}}},{"term":{"title":{"value":"heart"}}},{"match_phrase":{"title"`}, nil, "",
		},
		"combined_fields": {linear, nil, `{"combined_fields":{"query":"heart attack","fields":["body","title"]}}`, 10, nil, []string{"myocardial"}, reason.NoNeighbors},
		"a phrase": {
			func(*Profile) {}, nil, `{"match_phrase":{"body":"heart attack symptoms"}}`, 10,
			[]string{`{"dis_max":{"queries":[{"match_phrase":{"body":"heart attack symptoms"}},{"match_phrase":{"body":{"query":"myocardial infarction symptoms","analyzer":"whitespace","boost":0.7`},
			[]string{"signs"}, "",
		},
		"a phrase, not all together": {
			func(*Profile) {}, nil, `{"match_phrase":{"body":{"query":"car heart attack","slop":2,"boost":3}}}`, 10,
			[]string{`"query":"automobile myocardial infarction","analyzer":"whitespace","slop":2,"boost":2`, `"query":"automobile heart attack"`, `"query":"car myocardial infarction"`}, nil, "",
		},
		"a phrase without scores": {func(*Profile) {}, nil, `{"match_phrase":{"body":"heart attack"}}`, 0, []string{phrase}, nil, ""},
		"a phrase with related words": {
			func(o *Profile) { o.Phrases = true }, nil, `{"match_phrase":{"body":"heart attack symptoms"}}`, 10,
			[]string{`{"bool":{"must":[{"dis_max":{"queries":[{"match_phrase":{"body":"heart attack symptoms"}}`, `"signs"`}, nil, "",
		},
		"a phrase that must find the same": {
			func(*Profile) {}, nil, `{"nested":{"path":"a","query":{"match_phrase":{"body":"heart attack"}}}}`, 10, nil, []string{"myocardial"}, reason.Phrase,
		},
		"phrases by fields": {
			func(*Profile) {}, nil, `{"multi_match":{"query":"heart attack","type":"phrase","fields":["body","title^2"]}}`, 10,
			[]string{phrase + `,"boost":0.6`, `{"match_phrase":{"title":{"query":"myocardial infarction","analyzer":"whitespace","boost":1.2`}, nil, "",
		},
		"a phrase whose last word is a prefix": {func(*Profile) {}, nil, `{"match_phrase_prefix":{"body":"heart attack sym"}}`, 10, nil, []string{"myocardial"}, reason.Phrase},
		"a reading keeps the rest of the text": {
			linear, nil, `{"match":{"body":"heart attack car"}}`, 10,
			[]string{`{"bool":{"should":[` + phrase + `,"boost":0.6`, `}}},{"term":{"body":{"value":"car"}}}]}}`}, nil, "",
		},
		"a word as good, in many documents": {
			linear, nil, `{"match":{"body":"car"}}`, 10,
			[]string{`{"dis_max":{"queries":[{"match":{"body":"car"}},{"term":{"body":{"value":"automobile","boost":2.`},
			nil, "",
		},
		"switched off":          {func(o *Profile) { o.Expressions = false }, nil, original, 10, nil, []string{"myocardial"}, reason.NoNeighbors},
		"beside related words":  {linear, nil, `{"match":{"body":"heart attack symptoms"}}`, 10, []string{phrase, `"signs"`}, nil, ""},
		"with names":            {func(o *Profile) { o.NameAdded, o.Scoring = true, form.Linear }, nil, original, 10, []string{`"_name":"akin:body:myocardial infarction"`}, nil, ""},
		"in a text beside none": {linear, nil, `{"match":{"body":"attack heart"}}`, 10, nil, []string{"myocardial"}, reason.NoNeighbors},
	} {
		c, m := attacks(t)
		if tt.fix != nil {
			tt.fix(c)
		}
		r := expanded(t, New(c, m, with(tt.change)), &Request{Index: "docs", Body: fmt.Appendf(nil, `{"query":%s,"size":%d}`, tt.query, tt.size)})
		for _, part := range tt.want {
			if !strings.Contains(string(r.Body), part) {
				t.Errorf("%s: no %s in %s", name, part, r.Body)
			}
		}
		for _, part := range tt.not {
			if strings.Contains(string(r.Body), part) {
				t.Errorf("%s: %s in %s", name, part, r.Body)
			}
		}
		if tt.reason != "" && (len(r.Clauses) == 0 || r.Clauses[0].Reason != tt.reason) {
			t.Errorf("%s: %+v", name, r.Clauses)
		}
	}
}

func TestExplanationsNameWhatStandsForWords(t *testing.T) {
	c, m := attacks(t)
	r := expanded(t, New(c, m, DefaultProfile()), &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"heart attack of a car"}}}`)})
	want := []Alternative{
		{Term: "myocardial infarction", For: "heart attack", Similarity: 1, Found: "heart attack", Key: "\x1fmyocardial\x1finfarction"},
		{Term: "automobile", For: "car", Similarity: 1, Found: "car", At: 4, Key: "automobile"},
	}
	if d := cmp.Diff(want, r.Clauses[0].Alternatives); d != "" {
		t.Error(d)
	}
}

// Where the cluster takes fewer clauses, related words go first, then
// alternatives, and the explanation says so.
func TestExpressionsStayWithinTheLimitOfClauses(t *testing.T) {
	c, m := attacks(t)
	var rows []simmatrix.Neighbor
	for k := range 300 {
		term := fmt.Sprintf("syn%d", k)
		c.docFreqs[term] = 5
		rows = append(rows, simmatrix.Neighbor{Term: term, Similarity: 1})
	}
	more := matrixOf(t, c, map[string][]simmatrix.Neighbor{"car": rows})
	m.rows["car"] = more.rows["car"]
	e := New(c, m, with(func(o *Profile) { o.Scoring = form.Linear }))
	e.limits.Learn(Limit{LimitClauses, "docs", 100})
	r := expanded(t, e, &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"car symptoms"}}}`)})
	if r.ClauseCount > 100 || !r.Rewritten || strings.Contains(string(r.Body), "signs") {
		t.Errorf("%d clauses: %.300s", r.ClauseCount, r.Body)
	}
	if n := len(r.Clauses[0].Alternatives); n < 50 || r.Clauses[0].Reason != reason.Truncated {
		t.Errorf("%d alternatives, reason %q", n, r.Clauses[0].Reason)
	}
}

// What a matrix calls an expression is bytes that a body may not break.
func TestOddExpressionsMakeValidBodies(t *testing.T) {
	c, m := attacks(t)
	for _, words := range [][]string{{`a"b`, "c"}, {"new york", "city"}, {"\x00", "x"}, {"ä", "漢"}} {
		for _, w := range words {
			c.docFreqs[w] = 3
		}
		key, err := simmatrix.Expression(words, []int{0, 2})
		if err != nil {
			t.Fatal(err)
		}
		m.rows["car"] = matrixOf(t, c, map[string][]simmatrix.Neighbor{"car": {{Term: key, Similarity: 1}}}).rows["car"]
		r := expanded(t, New(c, m, DefaultProfile()), &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"car"}}}`)})
		if !json.Valid(r.Body) || !strings.Contains(string(r.Body), `{"span_gap":{"body":1}}`) {
			t.Errorf("%q: %s", words, r.Body)
		}
	}
}
