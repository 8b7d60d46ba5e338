package expand

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/simmatrix"
)

func named(o *Profile) { o.NameAdded = true }

// namesIn returns the names of all queries in a value, sorted, each once.
func namesIn(value any) (names []string) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			names = append(names, namesIn(element)...)
		}
	case map[string]any:
		for name, member := range v {
			if name == "_name" {
				names = append(names, member.(string))
			}
			names = append(names, namesIn(member)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checkNamed holds the names in the rewritten search against the terms that are
// said to be added: they stand in the query, and nowhere else.
func checkNamed(t *testing.T, r *Result) {
	t.Helper()
	var want []string
	for _, c := range r.Clauses {
		for _, a := range c.Added {
			want = append(want, form.AddedName+c.Field+":"+a.Term)
		}
		for _, f := range c.Feedback {
			want = append(want, form.AddedName+c.Field+":"+f.Term)
		}
	}
	slices.Sort(want)
	var body map[string]any
	check.OK(t, json.Unmarshal(r.Body, &body))
	diff := cmp.Diff(slices.Compact(want), namesIn(body["query"]))
	check.That(t, diff == "" && len(want) != 0, "names of %s (-want +got):\n%s", r.Body, diff)
	delete(body, "query")
	if names := namesIn(body); len(names) > 0 {
		t.Errorf("beside the query there are %q in %s", names, r.Body)
	}
}

// crowded has twenty neighbors of car, which is in so many of a million
// documents.
func crowded(t *testing.T, docFreq int64) (*fakeCluster, *fakeMatrix) {
	t.Helper()
	c := &fakeCluster{docCount: 1_000_000, scale: 2.2, scripts: true, docFreqs: map[string]int64{"car": docFreq, "rental": 20}}
	var neighbors []simmatrix.Neighbor
	for i := range 20 {
		term := "neighbor" + strconv.Itoa(i)
		neighbors, c.docFreqs[term] = append(neighbors, simmatrix.Neighbor{Term: term, Similarity: 0.5}), 5000
	}
	return c, matrixOf(t, c, map[string][]simmatrix.Neighbor{"car": neighbors})
}

func TestAddedClausesHaveNames(t *testing.T) {
	const match = `{"query":{"match":{"body":"car rental"}}}`
	for name, tt := range map[string]struct {
		body   string
		change func(o *Profile)
	}{
		"rescored":               {match, func(*Profile) {}},
		"linear":                 {match, func(o *Profile) { o.Scoring = form.Linear }},
		"grouped":                {match, func(o *Profile) { o.Scoring = form.Grouped }},
		"saturated":              {match, func(o *Profile) { o.NoRescore = true }},
		"the same matches":       {match, func(o *Profile) { o.Matching = Same }},
		"finding for reranking":  {match, soft},
		"highlighted":            {`{"highlight":{"fields":{"body":{}}},` + match[1:], func(o *Profile) { o.MarkRelated = true }},
		"counted words":          {`{"query":{"match":{"body":{"query":"car rental","operator":"and"}}}}`, func(*Profile) {}},
		"two fields":             {`{"query":{"multi_match":{"query":"car rental","fields":["body","title^2"]}}}`, func(*Profile) {}},
		"linear beside rescored": {`{"query":{"bool":{"must":[{"match":{"body":"car"}},{"match":{"body":{"query":"rental","fuzziness":1}}}]}}}`, func(*Profile) {}},
		"nested":                 {`{"query":{"nested":{"path":"n","query":{"match":{"n.body":"car"}}}}}`, func(*Profile) {}},
		"segments":               {match, func(o *Profile) { o.Segments = []form.Segments{bodySegments(nil)} }},
		"sorted":                 {`{"sort":["n"],` + match[1:], func(*Profile) {}},
	} {
		t.Run(name, func(t *testing.T) {
			checkNamed(t, expandBody(t, with(func(o *Profile) { tt.change(o); named(o) }), tt.body))
		})
		for _, docFreq := range []int64{9_999, 10_000} { // with sets, and with terms left to the rescore
			t.Run(name+", crowded", func(t *testing.T) {
				c, m := crowded(t, docFreq)
				r := expanded(t, New(c, m, with(func(o *Profile) { tt.change(o); named(o) })), &Request{Index: "docs", Body: []byte(tt.body)})
				checkNamed(t, r)
			})
		}
	}
	t.Run("hard", func(t *testing.T) {
		e := hardRental(t, func(_ *fakeCluster, _ *fakeWeights, o *Profile) { named(o) })
		r := expandHard(t, e, Request{Body: []byte(match)})
		checkNamed(t, r)
		check.Equal(t, "hard", r.Clauses[0].Form, r.Clauses)
	})
	t.Run("feedback", func(t *testing.T) {
		for _, change := range []func(o *Profile){func(*Profile) {}, func(o *Profile) { o.NoRescore = true }} {
			_, second := expandTwice(t, &Request{Body: []byte(match)}, named, change)
			checkNamed(t, second)
		}
	})
	t.Run("fields of the same term", func(t *testing.T) {
		r := expandBody(t, with(named), `{"query":{"multi_match":{"query":"car","fields":["body","title"],"type":"cross_fields"}}}`)
		for _, name := range []string{"akin:body:automobile", "akin:title:automobile", "akin:body:lease", "akin:title:lease"} {
			check.Equal(t, 1, strings.Count(string(r.Body), `"_name":"`+name+`"`), name, string(r.Body))
		}
	})
	t.Run("for one request", func(t *testing.T) {
		checkNamed(t, expandRequest(t, &Request{Body: []byte(match), NameAdded: true}, nil))
	})
	t.Run("several searches", func(t *testing.T) {
		r := expandRequest(t, &Request{Endpoint: EndpointMultiSearch, Body: []byte("{}\n" + match + "\n"), NameAdded: true}, nil)
		check.That(t, strings.Contains(string(r.Body), `"_name":"akin:body:automobile"`), "%s", r.Body)
	})
}

// Of the set of a term-centric clause one field may have no term.
func TestFieldWithoutTermsOfASetFindsNothingByTheirNames(t *testing.T) {
	c, m := crowded(t, 9_999)
	c.inTitle = map[string]int64{"car": 9_999}
	body := `{"query":{"multi_match":{"query":"car","fields":["body","title"],"type":"cross_fields"}}}`
	r := expanded(t, New(c, m, with(func(o *Profile) { soft(o); named(o) })), &Request{Index: "docs", Body: []byte(body)})
	got := string(r.Body)
	check.That(t, !strings.Contains(got, `"should":[]`) && strings.Contains(got, `"terms":{"title":[],`), "title has no term of the set, and the query is\n%s", got)
}

// TestNamesChangeNoHitAndNoScore compares searches with and without names.
func TestNamesChangeNoHitAndNoScore(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	vocabulary := []string{"car", "rental"}
	for i := range 20 {
		vocabulary = append(vocabulary, "neighbor"+strconv.Itoa(i))
	}
	for _, docFreq := range []int64{9_999, 10_000} {
		c, m := crowded(t, docFreq)
		for _, v := range append(slices.Clip(writings), writing{"reranked", soft, "10", "query"}) {
			plain := New(c, m, with(v.change))
			withNames := New(c, m, with(func(o *Profile) { v.change(o); named(o) }))
			for range rounds(20) {
				query := strings.ReplaceAll(randomQuery(rng, 0), "cheap", "car")
				was, is := v.expanded(t, plain, query), v.expanded(t, withNames, query)
				if v.member == "rescore" && !strings.Contains(string(was), `"rescore"`) {
					continue
				}
				for range 10 {
					e := &engine{tb: t, cluster: c, doc: document(rng.IntN, []string{"body", "title"}, vocabulary)}
					got, want := e.search(is, v.member), e.search(was, v.member)
					check.Must(t, got == want, "%s: %v with names, else %v:\n%s\n%s", v.name, got, want, is, was)
				}
			}
		}
	}
}

func TestWhereAddedClausesHaveNoNames(t *testing.T) {
	const query = `"query":{"match":{"body":"car"}}`
	const clientsOwn = `"query":{"match":{"body":{"query":"car","_name":"mine"}}}`
	security := func(context.Context, esclient.Indices) error { return nil }
	for name, tt := range map[string]struct {
		req      Request
		hide     Disclosure
		filtered bool
		secured  bool
		named    bool
	}{
		"a search":                        {req: Request{Body: []byte(`{` + query + `}`)}, named: true},
		"a count":                         {req: Request{Endpoint: EndpointCount, Body: []byte(`{` + query + `}`)}},
		"a verdict":                       {req: Request{Endpoint: EndpointValidate, Body: []byte(`{` + query + `}`)}},
		"an explanation":                  {req: Request{Endpoint: EndpointExplain, Body: []byte(`{` + query + `}`)}},
		"ratings":                         {req: Request{Endpoint: EndpointRankEval, Body: []byte(`{"requests":[{"id":"a","request":{` + query + `},"ratings":[]}]}`)}},
		"no hits":                         {req: Request{Body: []byte(`{"size":0,` + query + `}`)}},
		"completions":                     {req: Request{Body: []byte(`{"suggest":{"s":{"prefix":"ca","completion":{"field":"c"}}},` + query + `}`)}},
		"top hits only":                   {req: Request{Body: []byte(`{"size":0,"aggs":{"a":{"top_hits":{}}},` + query + `}`)}},
		"hidden from explanations":        {req: Request{Body: []byte(`{` + query + `}`)}, hide: DiscloseExplain},
		"a cluster with security":         {req: Request{Body: []byte(`{` + query + `}`)}, hide: DiscloseSecured, secured: true},
		"security, and nothing is hidden": {req: Request{Body: []byte(`{` + query + `}`)}, secured: true, named: true},
		"terms of the first hits":         {req: Request{Body: []byte(`{` + query + `}`), Feedback: FeedbackOn}, secured: true},
		"a cluster without security":      {req: Request{Body: []byte(`{` + query + `}`)}, hide: DiscloseSecured, named: true},
		"an alias with a filter":          {req: Request{Body: []byte(`{` + query + `}`)}, filtered: true},
		"the client's own names":          {req: Request{Body: []byte(`{` + clientsOwn + `}`)}, named: true},
		"names that may be the same":      {req: Request{Body: []byte(`{` + strings.Replace(clientsOwn, "mine", "akin:body:automobile", 1) + `}`)}},
		"the same names escaped":          {req: Request{Body: []byte(`{` + strings.Replace(clientsOwn, "mine", `\u0061kin\u003abody:automobile`, 1) + `}`)}},
		"a text that says so":             {req: Request{Body: []byte(`{"query":{"multi_match":{"query":"akin: caf\u00e9 car","fields":["body"]}}}`)}, named: true},
	} {
		t.Run(name, func(t *testing.T) {
			req := tt.req
			if tt.secured {
				req.Allowed = security
			}
			r := expandRequest(t, &req, func(c *fakeCluster, o *Profile) { c.filtered, o.HideFrom, o.NameAdded = tt.filtered, tt.hide, true })
			got := strings.Contains(string(r.Body), `"_name":"akin:body:lease"`)
			check.That(t, got == tt.named && r.Rewritten, "named %t, want %t: %s", got, tt.named, r.Body)
		})
	}
}

func TestNamesOfOddTermsAreQuoted(t *testing.T) {
	c, _ := rental(t)
	odd := "quo\"te\\ \u2028\x01\U0001F697:"
	c.docFreqs[odd] = 7
	m := matrixOf(t, c, map[string][]simmatrix.Neighbor{"car": {{Term: odd, Similarity: 0.5}}})
	r := expanded(t, New(c, m, with(named)), &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"car"}}}`)})
	checkNamed(t, r)
}

// Pages of a point in time that ask for names and those that do not are told
// apart.
func TestPagesKeepTheirNames(t *testing.T) {
	c, m := rental(t)
	e := New(c, m, widening())
	for _, want := range []bool{false, true, false, true} {
		r := expanded(t, e, &Request{NameAdded: want, Body: []byte(`{"query":{"match":{"body":"car"}},"pit":{"id":"` + pitIDs[0].id + `"}}`)})
		check.Equal(t, want, strings.Contains(string(r.Body), "akin:body:automobile"), string(r.Body))
	}
}
