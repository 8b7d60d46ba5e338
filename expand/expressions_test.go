package expand

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
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
		"linear": {
			linear, nil, original, 10,
			[]string{
				`{"query":{"bool":{"should":[` + original + `,{"bool":{"must":[` + phrase + `,"boost":0.6`,
				`"must_not":[{"bool":{"filter":[{"term":{"body":{"value":"heart"}}},{"term":{"body":{"value":"attack"}}}]}}]}}`,
			},
			nil, "",
		},
		"grouped": {
			func(o *Profile) { o.Scoring = form.Grouped }, nil, original, 10,
			[]string{`{"term":{"body":{"value":"heart"}}},` + phrase + `,"boost":0.31`, `{"term":{"body":{"value":"attack"}}},` + phrase + `,"boost":0.29`},
			nil, "",
		},
		"saturated": {func(o *Profile) { o.NoRescore = true }, nil, original, 10, []string{phrase + `}}},"script":`, `"c":0.999,"b":1}`}, nil, ""},
		"rescored":  {func(*Profile) {}, nil, original, 10, []string{`"rescore"`, `{"bool":{"should":[` + original + `,` + phrase}, nil, ""},
		"no scores": {func(*Profile) {}, nil, original, 0, []string{`{"bool":{"should":[` + original + `,` + phrase + `}}`}, nil, ""},
		"a filter": {
			func(o *Profile) { o.Filters = true }, nil, `{"bool":{"filter":[{"match":{"body":"heart attack"}}],"must":{"match_all":{}},"must_not":{"match":{"body":"heart attack"}}}}`, 10,
			[]string{`"filter":[{"bool":{"should":[` + original + `,` + phrase + `}}}]}}],"must":{"match_all":{}},"must_not":` + original},
			nil, "",
		},
		"related words in a filter": {
			func(o *Profile) { o.Filters = true }, nil, `{"bool":{"filter":{"match":{"body":"symptoms"}}}}`, 10, nil, []string{"signs"}, reason.NotScoring,
		},
		"a filter whose scores would be averaged": {
			func(o *Profile) { o.Filters = true }, nil, `{"bool":{"filter":{"nested":{"path":"a","query":{"match":{"body":"heart attack"}}}}}}`, 10, []string{phrase}, nil, "",
		},
		"a filter where scores are averaged": {
			func(o *Profile) { o.Filters = true }, nil, `{"nested":{"path":"a","query":{"bool":{"filter":{"match":{"body":"heart attack"}}}}}}`, 10,
			nil,
			[]string{"myocardial"},
			reason.NoNeighbors,
		},
		"a filter, not configured": {
			func(*Profile) {}, nil, `{"bool":{"filter":{"match":{"body":"heart attack"}}}}`, 10, nil, []string{"myocardial"}, reason.NotScoring,
		},
		"all words": {
			linear, nil, `{"match":{"body":{"query":"heart attack","operator":"and"}}}`, 10,
			[]string{`{"bool":{"should":[{"term":{"body":{"value":"heart"}}},` + phrase, `{"bool":{"should":[{"term":{"body":{"value":"attack"}}},` + phrase},
			nil, "",
		},
		"words that are counted": { // a document with the phrase may or may not be one that the text finds
			linear, nil, `{"match":{"body":{"query":"heart attack symptoms","minimum_should_match":1}}}`, 10,
			[]string{
				`{"term":{"body":{"value":"attack"}}}]}}]}},{"bool":{"must_not":[{"match":{"body":{"query":"heart attack symptoms","minimum_should_match":1}}}],` +
					`"should":[{"term":{"body":{"value":"heart"}}},{"term":{"body":{"value":"attack"}}},{"term":{"body":{"value":"symptoms"}}}]}}`,
			},
			nil, "",
		},
		"the same matches": {func(o *Profile) { o.Matching, o.Scoring = Same, form.Linear }, nil, original, 10, nil, []string{"match_phrase"}, reason.NoNeighbors},
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
			[]string{`{"dis_max":{"tie_breaker":0,"queries":[` + phrase + `,"boost":0.6145555}}},{"match_phrase":{"title":{"query":"myocardial`},
			nil, "",
		},
		"cross_fields of all words": {
			linear, nil, `{"multi_match":{"query":"heart attack","type":"cross_fields","operator":"and","fields":["body","title"]}}`, 10,
			[]string{`{"term":{"body":{"value":"heart"}}},` + phrase + `}}},{"term":{"title":{"value":"heart"}}},{"match_phrase":{"title"`},
			nil, "",
		},
		"combined_fields": {linear, nil, `{"combined_fields":{"query":"heart attack","fields":["body","title"]}}`, 10, nil, []string{"myocardial"}, reason.NoNeighbors},
		"a phrase": {
			func(*Profile) {}, nil, `{"match_phrase":{"body":"heart attack symptoms"}}`, 10,
			[]string{`{"dis_max":{"queries":[{"match_phrase":{"body":"heart attack symptoms"}},{"match_phrase":{"body":{"query":"myocardial infarction symptoms","analyzer":"whitespace","boost":0.7`},
			[]string{"signs"},
			"",
		},
		"a phrase, not all together": {
			func(*Profile) {}, nil, `{"match_phrase":{"body":{"query":"car heart attack","slop":2,"boost":3}}}`, 10,
			[]string{`"query":"automobile myocardial infarction","analyzer":"whitespace","slop":2,"boost":2`, `"query":"automobile heart attack"`, `"query":"car myocardial infarction"`},
			nil, "",
		},
		"a phrase without scores": {func(*Profile) {}, nil, `{"match_phrase":{"body":"heart attack"}}`, 0, []string{phrase}, nil, ""},
		"a phrase with related words": {
			func(o *Profile) { o.Phrases = true }, nil, `{"match_phrase":{"body":"heart attack symptoms"}}`, 10,
			[]string{`{"bool":{"must":[{"dis_max":{"queries":[{"match_phrase":{"body":"heart attack symptoms"}}`, `"signs"`},
			nil, "",
		},
		"a phrase that must find the same": {
			func(*Profile) {}, nil, `{"nested":{"path":"a","query":{"match_phrase":{"body":"heart attack"}}}}`, 10, nil, []string{"myocardial"}, reason.Phrase,
		},
		"phrases by fields": {
			func(*Profile) {}, nil, `{"multi_match":{"query":"heart attack","type":"phrase","fields":["body","title^2"]}}`, 10,
			[]string{phrase + `,"boost":0.6`, `{"match_phrase":{"title":{"query":"myocardial infarction","analyzer":"whitespace","boost":1.2`},
			nil, "",
		},
		"a phrase that ends in a prefix": {
			func(*Profile) {}, nil, `{"match_phrase_prefix":{"body":{"query":"heart attack car","slop":1,"max_expansions":5,"boost":3}}}`, 10,
			[]string{`{"dis_max":{"queries":[{"match_phrase_prefix":`, `,{"match_phrase_prefix":{"body":{"query":"myocardial infarction car","analyzer":"whitespace","max_expansions":5,"slop":1,"boost":3}}}]}}`},
			[]string{"automobile"},
			"",
		},
		"one word before a prefix": {
			func(o *Profile) { o.Phrases = true }, func(c *fakeCluster) { c.phrases = mapping.ByPairs }, `{"multi_match":{"query":"car att","type":"phrase_prefix","fields":["body"]}}`, 10,
			[]string{`,{"match_phrase_prefix":{"body":{"query":"automobile att","analyzer":"whitespace"}}}]}}`},
			nil, "",
		},
		"a stop word before a prefix": {
			func(*Profile) {}, func(c *fakeCluster) { c.stopWords = "in" }, `{"match_phrase_prefix":{"body":"heart attack in wom"}}`, 10, nil, []string{"myocardial"}, reason.Phrase,
		},
		"a prefix alone": {func(*Profile) {}, nil, `{"match_phrase_prefix":{"body":"car"}}`, 10, nil, []string{"automobile"}, reason.Phrase},
		"a word as good, in many documents": {
			linear, nil, `{"match":{"body":"car"}}`, 10,
			[]string{`{"match":{"body":"car"}},{"bool":{"must":[{"term":{"body":{"value":"automobile","boost":2.`},
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

func TestFiltersAndPhrasesFindByExactWordsOfAMatrixWithoutExpressions(t *testing.T) {
	c, _ := attacks(t)
	m := matrixOf(t, c, map[string][]simmatrix.Neighbor{"car": {{Term: "automobile", Similarity: 1}}})
	for query, want := range map[string]string{
		`{"bool":{"filter":{"match":{"body":"car"}}}}`: `{"term":{"body":{"value":"automobile"}}}`,
		`{"match_phrase":{"body":"car"}}`:              `{"term":{"body":{"value":"automobile"`,
		`{"match_phrase":{"body":"a car"}}`:            `{"match_phrase":{"body":{"query":"a automobile"`,
	} {
		r := expanded(t, New(c, m, with(func(o *Profile) { o.Filters = true })), &Request{Index: "docs", Body: []byte(`{"query":` + query + `}`)})
		check.That(t, strings.Contains(string(r.Body), want), "%s: %s", query, r.Body)
	}
}

// In fields that are not text, where a term may be no number.
func TestWordsWithExactOnesAreLookedForInFieldsOfTextOnly(t *testing.T) {
	c, m := attacks(t)
	for _, scoring := range []form.Scoring{form.Auto, form.Linear} {
		o := DefaultProfile()
		o.Scoring = scoring
		for _, query := range []string{
			`{"simple_query_string":{"query":"car ill","fields":["body","sku"]}}`,
			`{"simple_query_string":{"query":"car ill","fields":["body","sku"],"default_operator":"and"}}`,
			`{"multi_match":{"query":"car ill","fields":["body","sku"],"type":"cross_fields"}}`,
		} {
			r := expanded(t, New(c, m, o), &Request{Index: "docs", Body: []byte(`{"query":` + query + `}`)})
			check.That(t, strings.Contains(string(r.Body), "automobile") && !strings.Contains(string(r.Body), `{"term":{"sku"`), "%s: %s", query, r.Body)
		}
	}
}

// As wi-fi is beside wi and fi.
func TestOneWordOfWhichTheEngineMakesPhrasesFindsWhatIsExact(t *testing.T) {
	c, m := attacks(t)
	c.graph, c.whole, c.synonyms = true, 1, map[string]string{"car": "symptoms"}
	const clause = `{"match":{"body":{"query":"car","operator":"and"}}}`
	const either = `{"dis_max":{"queries":[` + clause + `,{"term":{"body":{"value":"automobile","boost":`
	for size, want := range map[int]string{
		10: `{"query":{"bool":{"must":[` + either, // related words put these in order
		0:  `{"query":` + either,
	} {
		r := expanded(t, New(c, m, DefaultProfile()), &Request{Index: "docs", Body: fmt.Appendf(nil, `{"query":%s,"size":%d}`, clause, size)})
		check.That(t, strings.HasPrefix(string(r.Body), want), "size %d: %s", size, r.Body)
	}
	c.whole = 0
	r := expanded(t, New(c, m, DefaultProfile()), &Request{Index: "docs", Body: []byte(`{"query":` + clause + `}`)})
	check.That(t, !strings.Contains(string(r.Body), "automobile"), "%s", r.Body)
}

func TestExplanationsNameWhatStandsForWords(t *testing.T) {
	c, m := attacks(t)
	r := expanded(t, New(c, m, widening()), &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"heart attack of a car"}}}`)})
	want := []Alternative{
		{Term: "myocardial infarction", For: "heart attack", Similarity: 1, Found: "heart attack", Key: "\x1fmyocardial\x1finfarction", ForKey: "\x1fheart\x1fattack"},
		{Term: "automobile", For: "car", Similarity: 1, Found: "car", At: 4, Key: "automobile", ForKey: "car"},
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
		r := expanded(t, New(c, m, widening()), &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"car"}}}`)})
		if !json.Valid(r.Body) || !strings.Contains(string(r.Body), `{"span_gap":{"body":1}}`) {
			t.Errorf("%q: %s", words, r.Body)
		}
	}
}

func TestExplanationsSayWhyWhatStandsForWordsIsLeftOut(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Profile)
		fix    func(*fakeCluster)
		query  string
		want   []LeftOut
	}{
		"combined_fields": {func(*Profile) {}, nil, `{"combined_fields":{"query":"heart attack","fields":["body"]}}`, []LeftOut{{Reason: LeftOutCombined}}},
		"no positions":    {func(*Profile) {}, nil, `{"match":{"bare":"heart attack"}}`, []LeftOut{{Reason: LeftOutPositions}}},
		"a graph":         {func(*Profile) {}, func(c *fakeCluster) { c.graph = true }, `{"match":{"body":"heart attack"}}`, []LeftOut{{Reason: LeftOutGraph}}},
		"a word in a graph": {
			func(*Profile) {}, func(c *fakeCluster) { c.graph = true }, `{"match":{"body":"car"}}`,
			[]LeftOut{{Term: "automobile", From: "car", Similarity: 1, Reason: LeftOutGraph}},
		},
		"the same matches": {
			func(o *Profile) { o.Matching, o.Scoring = Same, form.Linear }, nil, `{"match":{"body":"heart attack"}}`, []LeftOut{{Reason: LeftOutOrdered}},
		},
		"no document": {
			func(*Profile) {}, func(c *fakeCluster) { delete(c.docFreqs, "infarction") }, `{"match":{"body":"heart attack"}}`, []LeftOut{{Reason: LeftOutAbsent}},
		},
		"switched off": {func(o *Profile) { o.Expressions = false }, nil, `{"match":{"bare":"heart attack"}}`, nil},
	} {
		c, m := attacks(t)
		if tt.fix != nil {
			tt.fix(c)
		}
		r := expanded(t, New(c, m, with(tt.change)), &Request{Index: "docs", Body: []byte(`{"query":` + tt.query + `}`)})
		for k := range tt.want {
			if tt.want[k].Term != "" {
				continue
			}
			tt.want[k].Term, tt.want[k].From, tt.want[k].Similarity = "myocardial infarction", "heart attack", 1
		}
		if d := cmp.Diff(tt.want, r.Clauses[0].LeftOut); d != "" || r.Rewritten {
			t.Errorf("%s: rewritten %t, %s", name, r.Rewritten, d)
		}
	}
}

// Two fields with the same text, of which one finds no phrases.
func TestFieldsKeepTheirOwnAlternatives(t *testing.T) {
	c, m := attacks(t)
	r := expanded(t, New(c, m, widening()), &Request{Index: "docs", Body: []byte(`{"query":{"multi_match":{"query":"heart attack","fields":["bare","body"]}}}`)})
	if bare, body := r.Clauses[0], r.Clauses[1]; len(bare.Alternatives) != 0 || len(bare.LeftOut) != 1 || len(body.Alternatives) != 1 || len(body.LeftOut) != 0 {
		t.Errorf("%+v", r.Clauses)
	}
}

// The mode soft finds by expressions and ranks by words, also by those that are
// as good as others.
func TestSoftModeSumsWordsThatAreAsGood(t *testing.T) {
	c, m := attacks(t)
	r := expanded(t, New(c, m, with(func(o *Profile) { o.Mode, o.SoftWeight = ModeSoft, .25 })), &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"car heart attack"}}}`)})
	if !strings.Contains(string(r.Body), `"query":"myocardial infarction"`) {
		t.Errorf("the hits are found by %s", r.Body)
	}
	words := r.onlyRerank().Sums[0].Fields[0].Words
	if d := cmp.Diff([]SumWord{{words[0].Weight, []string{"car", "automobile"}, []float64{1, 1}}, {words[1].Weight, []string{"heart"}, []float64{1}}, {words[2].Weight, []string{"attack"}, []float64{1}}}, words); d != "" {
		t.Error(d)
	}
}

// Without the fit a word of the text that others add to counts for more.
func TestSoftModeSumsWordsThatAreNeighborsOfOthers(t *testing.T) {
	c, m := rental(t)
	r := expanded(t, New(c, m, with(func(o *Profile) { o.Mode, o.Fit, o.SoftWeight, o.Strength = ModeSoft, false, .25, 4 })),
		&Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"car lease"}}}`)})
	car, lease := simmatrix.IDF(50, 1000), simmatrix.IDF(5, 1000)
	words := r.onlyRerank().Sums[0].Fields[0].Words
	if got, want := words[1].Weight, lease+0.1*math.Sqrt(car*lease); math.Abs(got-want) > 1e-4 || len(words[1].Terms) != 1 || !slices.Equal(words[0].Terms, []string{"car", "automobile"}) {
		t.Errorf("%+v, want the weight %v of lease", words, want)
	}
}

// Of a long text few terms get neighbors, and all what is as good as they are.
func TestLongTextsKeepWhatIsAsGood(t *testing.T) {
	c, m := attacks(t)
	r := expanded(t, New(c, m, with(func(o *Profile) { o.MaxQueryTerms = 1 })), &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"symptoms car heart attack"}}}`)})
	if e := r.Clauses[0]; len(e.Alternatives) != 2 || len(e.Added) != 1 {
		t.Errorf("%+v", e)
	}
	if e := expanded(t, New(c, m, with(func(o *Profile) { o.MaxQueryTerms, o.Expressions = 1, false })), &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"symptoms car"}}}`)}).Clauses[0]; len(e.Added) != 1 {
		t.Errorf("switched off: %+v", e)
	}
}

// Feedback reads no first hits for phrases that are only read differently.
func TestPhrasesGetNoFeedback(t *testing.T) {
	c, m := attacks(t)
	e := New(c, m, with(func(o *Profile) { o.Feedback.Documents = 5 }))
	r := expanded(t, e, &Request{Index: "docs", Body: []byte(`{"query":{"match_phrase":{"body":"heart attack"}}}`)})
	if !r.Rewritten || r.Parts[0].FirstPass != nil {
		t.Errorf("%+v", r.Parts)
	}
}

func TestAdjustedAlternatives(t *testing.T) {
	c, m := attacks(t)
	r := expanded(t, New(c, m, widening()), &Request{
		Index: "docs", Body: []byte(`{"query":{"match":{"body":"heart attack of a car"}}}`), Changes: Changes{Adjusted: []Adjustment{{"myocardial infarction", 0.5}, {"automobile", 0}}},
	})
	if a := r.Clauses[0].Alternatives; len(a) != 1 || a[0].Similarity != 0.5 || strings.Contains(string(r.Body), "automobile") {
		t.Errorf("%+v", a)
	}
}

// manyAttacks is a text of n terms in which each pair of words is an expression
// with two expressions in its place, up to so many.
func manyAttacks(tb testing.TB, n, expressions int) (*fakeCluster, *fakeMatrix, string) {
	tb.Helper()
	c, m := attacks(tb)
	rows, words := map[string][]simmatrix.Neighbor{}, make([]string, n)
	key := func(words ...string) string {
		e, err := simmatrix.Expression(words, []int{0, 1})
		if err != nil {
			tb.Fatal(err)
		}
		return e
	}
	for k := range words {
		words[k] = fmt.Sprintf("w%d", k)
		c.docFreqs[words[k]] = int64(k%90 + 1)
		if k%2 == 1 && k < 2*expressions {
			rows[key(words[k-1], words[k])] = []simmatrix.Neighbor{{Term: key("myocardial", "infarction"), Similarity: 1}, {Term: key("signs", "symptoms"), Similarity: 0.5}}
		}
	}
	maps.Copy(m.rows, matrixOf(tb, c, rows).rows)
	return c, m, strings.Join(words, " ")
}

func TestTextsOfManyExpressionsStayWithinTheLimits(t *testing.T) {
	for _, words := range []int{1024, 700, 40} {
		c, m, text := manyAttacks(t, words, 300)
		for _, scoring := range []form.Scoring{form.Linear, form.Grouped, form.Saturated} {
			for _, query := range []string{
				`{"match":{"body":%q}}`, `{"match":{"body":{"query":%q,"operator":"and"}}}`, `{"match_phrase":{"body":%q}}`,
				`{"multi_match":{"query":%q,"type":"cross_fields","fields":["body","title"]}}`,
			} {
				for _, limit := range []int64{0, 1024, 2048} {
					e := New(c, m, with(func(o *Profile) { o.Scoring, o.MaxQueryTerms = scoring, 1024 }))
					if limit > 0 {
						e.limits.Learn(Limit{LimitClauses, "docs", limit})
					}
					body := fmt.Sprintf(`{"query":`+query+`}`, text)
					r := expanded(t, e, &Request{Index: "docs", Body: []byte(body)})
					x, left := r.Clauses[0], false
					for _, l := range x.LeftOut {
						left = left || l.Reason == LeftOutLimit
					}
					switch most := int(max(limit, 1024)); {
					case r.Rewritten && (r.ClauseCount > most || !json.Valid(r.Body) || len(x.Alternatives) == 0):
						t.Errorf("%d words, %s, %s, limit %d: %d clauses, %d alternatives", words, scoring, query, limit, r.ClauseCount, len(x.Alternatives))
					case len(x.Alternatives) < 600 && words > 600 && !left:
						t.Errorf("%d words, %s, %s, limit %d: %d alternatives, and nothing is left out: %q", words, scoring, query, limit, len(x.Alternatives), x.Reason)
					case words == 700 && limit == 2048 && scoring != form.Saturated && strings.HasPrefix(query, `{"match":{"body":%q}`) && len(x.Alternatives) < 40:
						t.Errorf("%s: %d alternatives of a long text", scoring, len(x.Alternatives))
					case words == 40 && len(x.Alternatives) < 8:
						t.Errorf("%d words, %s, %s, limit %d: %d alternatives, %+v", words, scoring, query, limit, len(x.Alternatives), x.LeftOut)
					}
				}
			}
		}
	}
}

// Whatever the matrix and the text, a search stays a search for its text.
func TestAnySearchWithAlternativesIsValid(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	words := []string{"a", "b", "c", "d", `e"`, "the", "ä"}
	some := func() (terms []string, positions []int) {
		at := 0
		for range 2 + rng.IntN(3) {
			terms, positions = append(terms, words[rng.IntN(len(words))]), append(positions, at)
			at += 1 + rng.IntN(3)/2
		}
		return terms, positions
	}
	for range rounds(3000) {
		c := &fakeCluster{docCount: 1000, scale: 2.2, scripts: rng.IntN(4) > 0, docFreqs: map[string]int64{}, stopWords: "the", graph: rng.IntN(10) == 0}
		if rng.IntN(5) == 0 {
			c.synonyms = map[string]string{"b": "c"}
		}
		if rng.IntN(5) == 0 {
			c.phrases = mapping.ByPairs
		}
		for _, w := range words {
			c.docFreqs[w] = rng.Int64N(400)
		}
		term := func() string {
			if rng.IntN(3) == 0 {
				return words[rng.IntN(len(words))]
			}
			e, err := simmatrix.Expression(some())
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		rows := map[string][]simmatrix.Neighbor{}
		for range 8 {
			from, seen := term(), map[string]bool{}
			for range 1 + rng.IntN(4) {
				if to := term(); to != from && !seen[to] {
					seen[to] = true
					rows[from] = append(rows[from], simmatrix.Neighbor{Term: to, Similarity: []float32{1, 1, 0.5}[rng.IntN(3)]})
				}
			}
		}
		for from, row := range rows {
			if len(row) == 0 {
				delete(rows, from)
			}
		}
		text := make([]string, 1+rng.IntN(9))
		for k := range text {
			text[k] = append(words, "unknown")[rng.IntN(len(words)+1)]
		}
		query := fmt.Sprintf([]string{
			`{"match":{"body":%q}}`, `{"match":{"body":{"query":%q,"operator":"and"}}}`, `{"match":{"body":{"query":%q,"minimum_should_match":2}}}`,
			`{"match_phrase":{"body":%q}}`, `{"match_phrase":{"body":{"query":%q,"slop":1}}}`, `{"match_bool_prefix":{"body":%q}}`,
			`{"multi_match":{"query":%q,"fields":["bare","title"]}}`, `{"multi_match":{"query":%q,"type":"cross_fields","fields":["body","title"]}}`,
			`{"multi_match":{"query":%q,"type":"phrase","fields":["body","bare"]}}`, `{"multi_match":{"query":%q,"type":"cross_fields","operator":"and","fields":["body","title"]}}`,
			`{"combined_fields":{"query":%q,"fields":["body","title"]}}`, `{"match_phrase_prefix":{"body":{"query":%q,"max_expansions":5}}}`,
		}[rng.IntN(12)], strings.Join(text, " "))
		clause := query
		if rng.IntN(4) == 0 {
			query = `{"bool":{"must":{"match_all":{}},"filter":[` + query + `]}}`
		}
		o := with(func(o *Profile) {
			o.Scoring = []form.Scoring{form.Auto, form.Linear, form.Grouped, form.Saturated}[rng.IntN(4)]
			o.Mode = []Mode{ModeBM25, ModeSoft}[rng.IntN(2)]
			o.Filters = rng.IntN(2) == 0
			o.Matching, o.NoRescore, o.Phrases = Matching(rng.IntN(10)/4), rng.IntN(2) == 0, rng.IntN(4) == 0
			o.NormalizeScores, o.NameAdded, o.MarkRelated = rng.IntN(4) == 0, rng.IntN(4) == 0, rng.IntN(2) == 0
		})
		body := fmt.Sprintf(`{"query":%s,"size":%d,"highlight":{"fields":{"body":{}}}}`, query, 10*rng.IntN(2))
		m := matrixOf(t, c, rows)
		m.nearest = map[string]string{"unknown": "a"}
		r := expanded(t, New(c, m, o), &Request{Index: "docs", Body: []byte(body)})
		if r.Rewritten && (!json.Valid(r.Body) || !strings.Contains(string(r.Body), clause)) {
			t.Fatalf("%s became %s", body, r.Body)
		}
		if empty := `"should":[]`; strings.Contains(string(r.Body), empty) || strings.Contains(string(r.Body), `"queries":[]`) {
			t.Fatalf("%s became %s", body, r.Body)
		}
	}
}

func TestSegmentsAndSecondPassesHaveAlternatives(t *testing.T) {
	const want = `"query":"myocardial infarction","analyzer":"whitespace"`
	c, m := attacks(t)
	req := &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"heart attack"}}}`)}
	segments := with(func(o *Profile) { o.Segments = []form.Segments{bodySegments(nil)} })
	if r := expanded(t, New(c, m, segments), req); !strings.Contains(string(r.Body), `{"match_phrase":{"segments.text":{`+want) {
		t.Errorf("segments: %s", r.Body)
	}
	c.docFreqs["tariff"] = 7
	e := New(c, m, with(feedback))
	first := expanded(t, e, req)
	if first.firstPass() == nil {
		t.Fatalf("%+v", first)
	}
	if r := withHits(t, e, first, firstHits); !strings.Contains(string(r.Body), want) || !strings.Contains(string(r.Body), "tariff") {
		t.Errorf("with terms of the first hits: %s", r.Body)
	}
}
