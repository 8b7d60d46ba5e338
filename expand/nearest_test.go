package expand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/simmatrix"
)

// iceCream is a cluster and a matrix in which "ice" and "cream" have neighbors.
func iceCream(tb testing.TB) (*fakeCluster, *fakeMatrix) {
	tb.Helper()
	c := &fakeCluster{docCount: 1000, scale: 2.2, scripts: true, docFreqs: map[string]int64{"ice": 400, "cream": 50, "gelato": 10, "snow": 20, "rare": 1}}
	m := matrixOf(tb, c, map[string][]simmatrix.Neighbor{
		"ice":   {{Term: "gelato", Similarity: 0.6}, {Term: "snow", Similarity: 0.4}},
		"cream": {{Term: "gelato", Similarity: 0.8}},
	})
	m.nearest = map[string]string{"iec": "ice", "icecream": "ice cream", "rare": "cream", "ic": "ice"}
	return c, m
}

func expandIn(tb testing.TB, c *fakeCluster, m *fakeMatrix, o Profile, body string) *Result {
	tb.Helper()
	r := expanded(tb, New(c, m, o), &Request{Index: "docs", Body: []byte(body)})
	return r
}

func TestWordThatNoDocumentHasGetsTheRowOfTheNearestKnownWord(t *testing.T) {
	c, m := iceCream(t)
	o := with(func(o *Profile) { o.Scoring = form.Linear })
	r := expandIn(t, c, m, o, `{"query":{"match":{"body":"iec cream"}}}`)
	idf := func(term string) float64 { return simmatrix.IDF(c.docFreqs[term], c.docCount) }
	got := r.Clauses[0]
	diff := cmp.Diff([]NearestWord{{Term: "iec", Known: "ice"}}, got.Nearest)
	check.That(t, diff == "" && slices.Equal(got.NoRow, []string{"iec"}), "no row %q, nearest (-want +got):\n%s", got.NoRow, diff)
	var added []string
	for _, a := range got.Added {
		added = append(added, a.From+" "+a.Term)
	}
	// The word itself, though 40 % of the documents have it, then its neighbors.
	if want := []string{"iec ice", "cream gelato", "iec snow"}; !slices.Equal(added, want) {
		t.Fatalf("added %q, want %q", added, want)
	}
	ice, snow := got.Added[0], got.Added[2]
	check.That(t, math.Abs(ice.Weight-0.5*idf("ice")) <= 1e-4 && math.Abs(ice.Boost-0.5) <= 1e-4 && math.Abs(snow.Similarity-0.2) <= 1e-4, "ice weighs %v and has the boost %v, snow the similarity %v", ice.Weight, ice.Boost, snow.Similarity)
	check.That(t, ice.Fit == 0 && snow.Fit != 0, "ice has the fit %v, though it counts in full, and snow %v", ice.Fit, snow.Fit)
	saturated := expandIn(t, c, m, with(func(o *Profile) { o.NoRescore = true }), `{"query":{"match":{"body":"iec"}}}`)
	b := saturated.Clauses[0].Added[0].Boost
	check.That(t, math.Abs(b-0.5) <= 1e-4, "in the saturated form an occurrence of ice is %v of one of iec, want their similarity", b)
}

func TestCompoundThatNoDocumentHasGetsTheRowsOfBothWords(t *testing.T) {
	c, m := iceCream(t)
	r := expandIn(t, c, m, widening(), `{"query":{"match":{"body":"icecream"}}}`)
	want := []NearestWord{{Term: "icecream", Known: "ice"}, {Term: "icecream", Known: "cream"}}
	check.Equal(t, want, r.Clauses[0].Nearest, "nearest")
	body := string(r.Body)
	for _, word := range []string{"ice", "cream", "gelato", "snow"} {
		check.That(t, strings.Contains(body, `"value":"`+word+`"`), "%s is not looked for: %s", word, body)
	}
}

func TestOnlyWordsThatNoDocumentHasGetTheRowOfAnother(t *testing.T) {
	const words = `{"query":{"match":{"body":"ice rare zeppelin"}}}`
	typo := func(text string) string { return `{"query":{"match":{"body":"` + text + `"}}}` }
	for name, tt := range map[string]struct {
		body   string
		change func(*fakeCluster, *fakeMatrix, *Profile)
	}{
		"one that documents have, and what is near nothing": {words, nil},
		"switched off":                       {typo("iec"), func(_ *fakeCluster, _ *fakeMatrix, o *Profile) { o.NearestWords = false }},
		"the analyzer's variant of another":  {typo("cream"), func(c *fakeCluster, _ *fakeMatrix, _ *Profile) { c.synonyms = map[string]string{"cream": "iec"} }},
		"a variant of a repeated word":       {typo("cream ice cream"), func(c *fakeCluster, _ *fakeMatrix, _ *Profile) { c.synonyms = map[string]string{"cream": "iec"} }},
		"one that is in the text already":    {typo("iec ice"), nil},
		"an own row, though without a term":  {typo("iec"), func(_ *fakeCluster, m *fakeMatrix, _ *Profile) { m.rows["iec"] = m.rows["cream"] }},
		"the last word, of which it is part": {`{"query":{"match_bool_prefix":{"body":"cream ic"}}}`, nil},
	} {
		c, m := iceCream(t)
		o := widening()
		if tt.change != nil {
			tt.change(c, m, &o)
		}
		for _, clause := range expandIn(t, c, m, o, tt.body).Clauses {
			check.That(t, len(clause.Nearest) == 0, "%s: nearest %v", name, clause.Nearest)
		}
	}
}

// In fields that are searched together a word is known that one of them has.
func TestNearestWordsOfFieldsThatAreSearchedTogether(t *testing.T) {
	c, m := iceCream(t)
	r := expandIn(t, c, m, widening(), `{"query":{"multi_match":{"query":"iec cream","fields":["title","body"],"type":"cross_fields"}}}`)
	check.That(t, len(r.Clauses) != 0 && len(r.Clauses[0].Nearest) == 1, "cross_fields: %+v", r.Clauses)
	m.nearest["cie"] = "ice"
	if r = expandIn(t, c, m, widening(), `{"query":{"match":{"body":"iec cie"}}}`); len(r.Clauses[0].Nearest) != 1 {
		t.Errorf("ice stands for two words: %v", r.Clauses[0].Nearest)
	}
	c.statisticsErr = errors.New("away")
	var stage *StageError
	if _, err := New(c, m, widening()).Expand(t.Context(), &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"iec"}}}`)}); !errors.As(err, &stage) || stage.Stage != StageStatistics {
		t.Errorf("error %v, want one of the statistics, which fails open", err)
	}
}

func TestWordThatAnotherFieldOfTheClauseHasIsLeftAlone(t *testing.T) {
	for kind, tt := range map[string]struct{ has, want int }{"best_fields": {1, 0}, "cross_fields": {1, 0}, "most_fields": {0, 2}} {
		c, m := iceCream(t)
		c.inTitle = map[string]int64{"iec": int64(tt.has), "ice": 7, "cream": 7, "gelato": 7}
		r := expandIn(t, c, m, widening(), `{"query":{"multi_match":{"query":"iec cream","fields":["title","body"],"type":"`+kind+`"}}}`)
		n := 0
		for _, clause := range r.Clauses {
			n += len(clause.Nearest)
		}
		check.Equal(t, tt.want, n, kind, tt.has)
	}
}

func TestNearestWordIsAlwaysScoredWhereMostNeighborsOnlyFind(t *testing.T) {
	c, m := iceCream(t)
	m.nearest["caerm"] = "cream"
	var row []simmatrix.Neighbor
	for k := range 30 { // all tell more than the nearest words, by v·√df
		term := "n" + strconv.Itoa(k)
		c.docFreqs[term] = 99
		row = append(row, simmatrix.Neighbor{Term: term, Similarity: 0.9})
	}
	m.rows["car"] = matrixOf(t, c, map[string][]simmatrix.Neighbor{"car": row}).rows["car"]
	c.docFreqs["car"], c.docFreqs["cream"] = 5, 1
	var body struct {
		Query any `json:"query"`
	}
	check.OK(t, json.Unmarshal(expandIn(t, c, m, widening(), `{"query":{"match":{"body":"iec caerm car"}}}`).Body, &body))
	finding := fmt.Sprint(body.Query)
	for _, word := range []string{"ice", "cream"} {
		check.That(t, strings.Contains(finding, "value:"+word), "%s is not scored: %s", word, finding)
	}
}

// asked notes what a matrix is asked for.
type asked struct {
	*fakeMatrix
	nearest, rows []string
	calls         int // for rows
	lookedUp      func()
}

func (m *asked) Pin() Pinned { return m }

func (m *asked) For(context.Context, esclient.Indices, string) (Bound, error) {
	return Bound{Rows: m}, nil
}

func (m *asked) Nearest(word string) ([]string, float32) {
	m.nearest = append(m.nearest, word)
	if m.lookedUp != nil {
		m.lookedUp()
	}
	return m.fakeMatrix.Nearest(word)
}

func (m *asked) Rows(ctx context.Context, terms []string, rows []simmatrix.Row) error {
	m.calls++
	m.rows = append(m.rows, terms...)
	return m.fakeMatrix.Rows(ctx, terms, rows)
}

func TestNearestWordsOfAFewWordsOfASearchAreLookedFor(t *testing.T) {
	c, m := iceCream(t)
	var many []string
	for i := range 3 * mostNear {
		typo, known := "typo"+strconv.Itoa(i), "known"+strconv.Itoa(i)
		m.nearest[typo], c.docFreqs[known] = known, 5
		many = append(many, typo, "had"+strconv.Itoa(i))
		c.docFreqs["had"+strconv.Itoa(i)] = 1
	}
	watched := &asked{fakeMatrix: m}
	body := fmt.Sprintf(`{"query":{"bool":{"should":[{"multi_match":{"query":%q,"fields":["body","title"]}},{"match":{"body":"iec caerm"}}]}}}`, strings.Join(many, " "))
	m.nearest["caerm"] = "cream"
	r := expanded(t, New(c, watched, widening()), &Request{Index: "docs", Body: []byte(body)})
	// A word is looked up once for both fields, and each clause has its turn.
	if want := []string{"typo0", "iec", "typo1", "caerm", "typo2", "typo3", "typo4", "typo5"}; !slices.Equal(watched.nearest, want) {
		t.Errorf("looked up: %q, want %q", watched.nearest, want)
	}
	for i, want := range []int{mostNear - 2, mostNear - 2, 2} {
		check.Equal(t, want, len(r.Clauses[i].Nearest), i)
	}
	if got := watched.rows[len(watched.rows)-mostNear:]; watched.calls != 2 || !slices.Equal(got, []string{"known0", "ice", "known1", "cream", "known2", "known3", "known4", "known5"}) {
		t.Errorf("%d calls for rows, want one of the text and one of the known words; the last ones: %q", watched.calls, got)
	}
}

func TestNobodyLooksForNearestWordsWhenTheSearchIsOver(t *testing.T) {
	c, m := iceCream(t)
	ctx, cancel := context.WithCancel(t.Context())
	watched := &asked{fakeMatrix: m, lookedUp: cancel}
	_, err := New(c, watched, widening()).Expand(ctx, &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"iec typo other"}}}`)})
	check.That(t, errors.Is(err, context.Canceled) && len(watched.nearest) == 1, "looked up after the search was canceled: %q, error %v", watched.nearest, err)
}

func TestNearestWordThatTheIndexHasLostDoesNotMakeItsOriginTheRarest(t *testing.T) {
	added := func(c *fakeCluster, m *fakeMatrix) map[string]float64 {
		weights := map[string]float64{}
		for _, a := range expandIn(t, c, m, with(func(o *Profile) { o.Scoring = form.Linear }), `{"query":{"match":{"body":"iec cream"}}}`).Clauses[0].Added {
			weights[a.Term] = a.Weight
		}
		return weights
	}
	c, m := iceCream(t)
	want := added(c, m)
	delete(want, "ice")
	c.docFreqs["ice"] = 0 // since the matrix was made
	check.Equal(t, want, added(c, m), "weights of the others (-with ice +without)")
}

// The parts of a compound anywhere in a document do not count as the word.
func TestCompoundMeansItsPartsInARowWhereWordsAreCounted(t *testing.T) {
	inARow := `{"match_phrase":{"body":{"query":"ice cream"`
	for option, want := range map[string]int{`"operator":"and"`: 1, `"minimum_should_match":"100%"`: 1, `"operator":"or"`: 2} {
		c, m := iceCream(t)
		for _, text := range []string{"icecream", "icecream snow"} {
			r := expandIn(t, c, m, widening(), `{"query":{"match":{"body":{"query":"`+text+`",`+option+`}}}}`)
			got := r.Clauses[0].Nearest
			check.That(t, len(got) == want && (want == 2) != (got[0].Known == "ice cream"), "%s, %s: nearest %v, want %d", text, option, got, want)
			check.That(t, strings.Contains(string(r.Body), inARow) == (want == 1), "%s, %s: %s", text, option, r.Body)
		}
	}
	for name, o := range map[string]Profile{"without expressions": with(func(o *Profile) { o.Expressions = false }), "where no phrases are found": widening()} {
		c, m := iceCream(t)
		if o.Expressions {
			c.phrases = mapping.NoPhrases
		}
		r := expandIn(t, c, m, o, `{"query":{"match":{"body":{"query":"icecream snow","operator":"and"}}}}`)
		check.That(t, r.Clauses[0].Nearest == nil, "%s: nearest %v", name, r.Clauses[0].Nearest)
	}
}

func TestNamesAndAbbreviationsAreNoMisspellings(t *testing.T) {
	for _, tt := range []struct {
		text      string
		keepsCase bool
		want      int
	}{
		{"IEC cream", false, 0},
		{"Iec cream", false, 1}, // as at the start of a sentence
		{"cream Iec", true, 0},
		{"Iec cream Iec", true, 0},
		{"Cream Iec", true, 1}, // where capitals say nothing
		{"cream iec", true, 1},
	} {
		c, m := iceCream(t)
		c.keepsCase, m.nearest["Iec"] = tt.keepsCase, "ice"
		r := expandIn(t, c, m, widening(), `{"query":{"match":{"body":"`+tt.text+`"}}}`)
		check.Equal(t, tt.want, len(r.Clauses[0].Nearest), tt.text)
	}
}

func TestFuzzyClausesLookForWordsOfLikeSpellingThemselves(t *testing.T) {
	c, m := iceCream(t)
	r := expandIn(t, c, m, widening(), `{"query":{"match":{"body":{"query":"iec cream","fuzziness":"AUTO"}}}}`)
	got := r.Clauses[0]
	check.That(t, len(got.Nearest) == 0 && len(got.Added) != 0, "nearest %v, added %v", got.Nearest, got.Added)
}

func TestVeryLongWordThatNoDocumentHasIsLeftAlone(t *testing.T) {
	c, m := iceCream(t)
	long := strings.Repeat("garden", 170)
	r := expandIn(t, c, m, widening(), `{"query":{"match":{"body":"`+long+` cream"}}}`)
	got := r.Clauses[0]
	check.That(t, slices.Equal(got.NoRow, []string{long}) && len(got.Added) == 1 && got.Added[0].Term == "gelato", "%+v", got)
}

// Zeppelin and blimp are in no document, and nothing stands for them.
func TestWordsThatNoDocumentHasNeedNotMatchWhereTheSearchIsRelaxed(t *testing.T) {
	all := func(text string) string {
		return `{"query":{"match":{"body":{"query":"` + text + `","operator":"and"}}}}`
	}
	for name, tt := range map[string]struct {
		body     string
		relax    Relax
		optional []string
		finds    string // a document of these words
		found    bool
	}{
		"the other word is enough":        {all("cream zeppelin"), RelaxUnknown, []string{"zeppelin"}, "cream", true},
		"its neighbor is, too":            {all("cream zeppelin"), RelaxUnknown, []string{"zeppelin"}, "gelato", true},
		"one without neighbors":           {all("gelato zeppelin"), RelaxUnknown, []string{"zeppelin"}, "gelato", true},
		"one of them":                     {all("cream rare zeppelin"), RelaxUnknown, []string{"zeppelin"}, "cream", false},
		"by default all words must":       {all("cream zeppelin"), RelaxNone, nil, "cream", false},
		"the nearest known word must":     {all("iec zeppelin cream"), RelaxUnknown, []string{"zeppelin"}, "cream", false},
		"all words of the search":         {all("blimp zeppelin"), RelaxUnknown, nil, "cream", false},
		"a number of words":               {`{"query":{"match":{"body":{"query":"cream zeppelin","minimum_should_match":2}}}}`, RelaxUnknown, nil, "cream", false},
		"a filter finds what it found":    {`{"query":{"bool":{"filter":{"match":{"body":{"query":"cream zeppelin","operator":"and"}}}}}}`, RelaxUnknown, nil, "cream", false},
		"several fields with all words":   {`{"query":{"multi_match":{"query":"cream zeppelin","fields":["body","title"],"operator":"and"}}}`, RelaxUnknown, []string{"zeppelin"}, "cream", true},
		"a field that is not read":        {`{"query":{"multi_match":{"query":"cream zeppelin","fields":["body","sku"],"operator":"and"}}}`, RelaxUnknown, nil, "cream", false},
		"fields that are searched as one": {`{"query":{"multi_match":{"query":"cream zeppelin","fields":["body","title"],"type":"cross_fields","operator":"and"}}}`, RelaxUnknown, []string{"zeppelin"}, "cream", true},
	} {
		for _, scoring := range []form.Scoring{form.Linear, form.Grouped, form.Saturated} {
			for _, matching := range []Matching{Widen, Auto} {
				c, m := iceCream(t)
				o := with(func(o *Profile) { o.Relax, o.Scoring, o.Matching = tt.relax, scoring, matching })
				e, req := New(c, m, o), &Request{Index: "docs", Body: []byte(tt.body)}
				r := expanded(t, e, req)
				if len(r.Parts) > 0 && r.Parts[0].Enough.Hits > 0 {
					check.That(t, !r.Rewritten, "%s: the first search is %s", name, r.Body)
					req.Again = r
					r = expanded(t, e, req)
				}
				var optional []string
				if len(r.Clauses) > 0 {
					optional = r.Clauses[0].Optional
				}
				check.Equal(t, tt.optional, optional, name+": optional words")
				body := req.Body
				if r.Rewritten {
					body = r.Body
				}
				oracle := &engine{tb: t, cluster: c, doc: map[string]map[string]float64{"body": {tt.finds: 1}, "title": {}}}
				check.That(t, oracle.search(body, "query").found == tt.found, "%s: a document with %s is found: %t by\n%s", name, tt.finds, !tt.found, body)
			}
		}
	}
}

func TestAWordNeedNotMatchBesideTheOneThatIsBeingTyped(t *testing.T) {
	c, m := iceCream(t)
	o := with(func(o *Profile) { o.Relax = RelaxUnknown })
	r := expandIn(t, c, m, o, `{"query":{"match_bool_prefix":{"body":{"query":"zeppelin cre","operator":"and"}}}}`)
	check.Equal(t, []string{"zeppelin"}, r.Clauses[0].Optional, "optional words")
	check.Equal(t, Widened, r.Parts[0].How, "what it does")
}

func TestExpressionsHaveTheNearestKnownWordsOfUnknownOnes(t *testing.T) {
	c, m := attacks(t)
	m.nearest = map[string]string{"atack": "attack", "heartattack": "heart attack"}
	c.docFreqs["chest"] = 40
	typed, err := simmatrix.Expression([]string{"chest", "atack"}, []int{0, 1})
	check.OK(t, err)
	for key := range m.rows {
		if simmatrix.IsExpression(key) {
			m.rows[typed] = m.rows[key]
		}
	}
	linear := func(o *Profile) { o.Scoring = form.Linear }
	for name, tt := range map[string]struct {
		text   string
		change func(o *Profile)
		want   string // what is found, with its similarity
	}{
		"a typo":                     {"heart atack symptoms", linear, "heart atack 0.50"},
		"none":                       {"heart attack", linear, "heart attack 1.00"},
		"a typo that is in one":      {"chest atack", linear, "chest atack 1.00"},
		"words apart":                {"heart of an atack", linear, ""},
		"two words":                  {"heartattack", linear, ""},
		"without nearest words":      {"heart atack", func(o *Profile) { o.NearestWords = false }, ""},
		"without expressions":        {"heart atack", func(o *Profile) { o.Expressions = false }, ""},
		"by the saturated form":      {"heart atack", func(o *Profile) { o.NoRescore = true }, "heart atack 0.50"},
		"where hits are only sorted": {"heart atack", func(o *Profile) { o.Matching = Auto }, "heart atack 0.50"},
	} {
		r, found := expandIn(t, c, m, with(tt.change), `{"query":{"match":{"body":"`+tt.text+`"}}}`), ""
		for _, a := range r.Clauses[0].Alternatives {
			found = fmt.Sprintf("%s %.2f", a.Found, a.Similarity)
		}
		check.Equal(t, tt.want, found, name)
		check.Equal(t, found != "", strings.Contains(string(r.Body), `"query":"myocardial infarction"`), name)
	}
}
