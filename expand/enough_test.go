package expand

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/simmatrix"
)

func auto(o *Profile) { o.Matching, o.Enough, o.EnoughAll = Auto, 50, 10 }

func TestAutoGivesEachWordFewerNeighborsWhereTheyAreDear(t *testing.T) {
	for name, tt := range map[string]struct {
		docs   int64
		effort form.Effort
		want   int
	}{
		"a small index":            {99_999, form.Normal, 2 * perWord},
		"a small index, low":       {99_999, form.Low, 2 * fewPerWord},
		"an index of 100,000 docs": {100_000, form.Normal, 2 * fewPerWord},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := rental(t)
			c.docCount = tt.docs
			rows := map[string][]simmatrix.Neighbor{}
			for _, word := range []string{"car", "rental"} {
				for k := range 9 {
					neighbor := word + strings.Repeat("x", k+1)
					c.docFreqs[neighbor] = 30
					rows[word] = append(rows[word], simmatrix.Neighbor{Term: neighbor, Similarity: 0.5})
				}
			}
			e := New(c, matrixOf(t, c, rows), with(func(o *Profile) {
				auto(o)
				o.EnoughAll, o.Effort = 1000, tt.effort
			}))
			r := expanded(t, e, &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":{"query":"car rental","operator":"and"}}}}`)})
			if got := strings.Count(string(r.Body), `x","boost"`); got != tt.want {
				t.Errorf("%d neighbors in %s, want %d", got, r.Body, tt.want)
			}
		})
	}
}

// The documents of rental: car 50, rental 20, cheap 90 of 1,000.
func TestAutoSaysHowManyHitsAreEnough(t *testing.T) {
	const match = `"query":{"match":{"body":"car rental"}}`
	both := func(option string) string { return `{"match":{"body":{"query":"car rental",` + option + `}}}` }
	for name, tt := range map[string]struct {
		endpoint       Endpoint
		rawQuery, body string
		fixed          reason.Reason
		change         func(c *fakeCluster, m *fakeMatrix, o *Profile)
		want           Enough
		wide           bool // at once
	}{
		"enough in sum":  {body: `{` + match + `}`, want: Enough{50, 10}},
		"too few in sum": {body: `{` + match + `}`, change: func(_ *fakeCluster, _ *fakeMatrix, o *Profile) { o.Enough = 71 }, wide: true},
		"too few of a part that was read": {
			body:   `{` + match + `}`,
			change: func(c *fakeCluster, _ *fakeMatrix, o *Profile) { o.Enough = 71; c.docCount = 2000 }, want: Enough{71, 10},
		},
		"frequencies of before the index grew": {
			body:   `{` + match + `}`,
			change: func(c *fakeCluster, _ *fakeMatrix, o *Profile) { o.Enough, c.docFreqs["car"] = 71, 90 }, wide: true,
		},
		"the rarest of all words": {body: `{"query":` + both(`"operator":"and"`) + `}`, want: Enough{10, 10}},
		"too few of the rarest":   {body: `{"query":` + both(`"operator":"and"`) + `}`, change: func(_ *fakeCluster, _ *fakeMatrix, o *Profile) { o.EnoughAll = 21 }, wide: true},
		"of both fields": {
			body:   `{"query":{"multi_match":{"query":"car rental","fields":["body","title"],"operator":"and"}}}`,
			change: func(_ *fakeCluster, _ *fakeMatrix, o *Profile) { o.EnoughAll = 40 }, want: Enough{40, 10},
		},
		"of both words in one field": {
			body:   `{"query":{"multi_match":{"query":"car rental","fields":["body","title"],"operator":"and"}}}`,
			change: func(_ *fakeCluster, _ *fakeMatrix, o *Profile) { o.EnoughAll = 41 }, wide: true,
		},
		"a word and its synonym": {
			body: `{"query":` + both(`"operator":"and"`) + `}`,
			change: func(c *fakeCluster, _ *fakeMatrix, o *Profile) {
				o.EnoughAll, c.synonyms = 50, map[string]string{"rental": "cheap"}
			}, want: Enough{50, 10},
		},
		"the default fields":    {body: `{"query":{"query_string":{"query":"rental"}}}`, change: func(_ *fakeCluster, _ *fakeMatrix, o *Profile) { o.DefaultFields = []string{"body"} }, want: Enough{50, 10}},
		"some words must match": {body: `{"query":` + both(`"minimum_should_match":2`) + `}`, want: Enough{10, 10}},
		"a word without a row":  {body: `{"query":{"match":{"body":"rental zeppelin"}}}`, want: Enough{50, 10}},
		"in a filter's company": {body: `{"query":{"bool":{"must":[{"match":{"body":"rental"}}],"filter":{"term":{"a":1}}}}}`, wide: true},
		"counted words beside": {
			body: `{"query":{"bool":{"must":[{"match":{"body":"car rental"}}],"should":[` + both(`"operator":"and"`) + `]}}}`, want: Enough{50, 10},
		},
		"counted words, any of them": {body: `{"query":{"bool":{"should":[` + both(`"operator":"and"`) + `]}}}`, want: Enough{10, 10}},
		"beside what finds more":     {body: `{"query":{"bool":{"should":[{"match":{"body":"rental"}},{"term":{"a":1}}]}}}`, want: Enough{50, 10}},
		"the last word is a prefix":  {body: `{"query":{"match_bool_prefix":{"body":"rental ca"}}}`, want: Enough{50, 10}},
		"misspelled words match":     {body: `{"query":{"match":{"body":{"query":"rental","fuzziness":1}}}}`, want: Enough{50, 10}},
		"no neighbor":                {body: `{"query":{"match":{"body":"zeppelin"}}}`},
		"never":                      {body: `{` + match + `}`, change: func(_ *fakeCluster, _ *fakeMatrix, o *Profile) { o.Enough = 0 }},
		"never, of all words":        {body: `{"query":` + both(`"operator":"and"`) + `}`, change: func(_ *fakeCluster, _ *fakeMatrix, o *Profile) { o.EnoughAll = 0 }},
		"all that engines count":     {body: `{` + match + `}`, change: func(c *fakeCluster, m *fakeMatrix, o *Profile) { o.Enough, c.docCount = 10_000, 1000*m.docs }, want: Enough{10_000, 10}},
		"all, of a few":              {body: `{` + match + `}`, change: func(_ *fakeCluster, _ *fakeMatrix, o *Profile) { o.Enough = 10_000 }, wide: true},
		"frequencies of a larger index": {
			body:   `{` + match + `}`,
			change: func(c *fakeCluster, _ *fakeMatrix, o *Profile) { c.docCount, o.MaxDocShare = 100, 1 }, want: Enough{50, 10},
		},
		"more words than are expanded": {body: `{` + match + `}`, change: func(_ *fakeCluster, _ *fakeMatrix, o *Profile) { o.Enough, o.MaxQueryTerms = 60, 1 }, want: Enough{60, 10}},
		"a word of all documents": {body: `{"query":{"match":{"body":"car"}}}`, change: func(c *fakeCluster, m *fakeMatrix, o *Profile) {
			c.docFreqs["car"] = c.docCount
			m.rows["car"] = matrixOf(t, c, map[string][]simmatrix.Neighbor{"car": {{Term: "automobile", Similarity: 0.8}}}).rows["car"]
			o.Enough = 1000
		}, want: Enough{1000, 10}},
		"words that find nothing beside":  {body: `{"query":{"bool":{"should":[{"match":{"body":"rental"}},{"match":{"body":"zeppelin"}}]}}}`, want: Enough{50, 10}},
		"words that find nothing, needed": {body: `{"query":{"bool":{"must":[{"match":{"body":"rental"}},{"match":{"body":"zeppelin"}}]}}}`, wide: true},
		"behind a post_filter":            {body: `{"post_filter":{"term":{"a":1}},` + match + `}`, want: Enough{50, 10}},
		"another page":                    {body: `{"from":20,` + match + `}`, want: Enough{50, 0}},
		"after a hit":                     {body: `{"search_after":[1],"sort":["_score"],` + match + `}`, want: Enough{50, 0}},
		"after a hit, in a retriever":     {body: `{"retriever":{"standard":{"search_after":[1],` + match + `}}}`, want: Enough{50, 0}},
		"of each group, in a retriever":   {body: `{"retriever":{"standard":{"collapse":{"field":"a"},` + match + `}}}`, want: Enough{50, 0}},
		"the first, in a retriever":       {body: `{"retriever":{"standard":{"terminate_after":5,` + match + `}}}`, wide: true},
		"sorted, in a retriever":          {body: `{"retriever":{"standard":{"sort":["price"],` + match + `}}}`},
		"a hit of each group":             {body: `{"collapse":{"field":"a"},` + match + `}`, want: Enough{50, 0}},
		"a pipeline may cut hits":         {rawQuery: "search_pipeline=cut", body: `{` + match + `}`, want: Enough{50, 0}},
		"hits without some parts":         {rawQuery: "filter_path=hits.hits._source.a", body: `{` + match + `}`, want: Enough{50, 0}},
		"no hits":                         {body: `{"size":0,` + match + `}`, want: Enough{50, 0}},
		"a count":                         {endpoint: EndpointCount, body: `{` + match + `}`, want: Enough{50, 10}},
		"a validation":                    {endpoint: EndpointValidate, body: `{` + match + `}`},
		"a scroll":                        {rawQuery: "scroll=1m", body: `{` + match + `}`},
		"a scroll that finds too few":     {rawQuery: "scroll=1m", body: `{"query":{"match":{"body":"rental"}}}`, wide: true},
		"only the first of each shard":    {body: `{"terminate_after":5,` + match + `}`, wide: true}, // it finds no more by related words anyway
		"sorted":                          {body: `{"sort":["price"],` + match + `}`},
		"sorted, with scores":             {body: `{"sort":["price"],"track_scores":true,"query":{"match":{"body":"rental"}}}`},
		"sorted by index order":           {body: `{"sort":["_doc"],` + match + `}`},
		"sorted by a script":              {body: `{"sort":{"_script":{"type":"number","script":"-_score"}},` + match + `}`},
		"asynchronous":                    {fixed: reason.Endpoint, body: `{` + match + `}`},
		"asynchronous, too few":           {fixed: reason.Endpoint, body: `{"query":{"match":{"body":"rental"}}}`, wide: true},
		"judged":                          {endpoint: EndpointRankEval, body: `{"requests":[{"id":"a","request":{` + match + `},"ratings":[]}]}`},
		"judged, too few":                 {endpoint: EndpointRankEval, body: `{"requests":[{"id":"a","request":{"query":{"match":{"body":"rental"}}},"ratings":[]}]}`, wide: true},
		"sorted by the score second":      {body: `{"sort":[{"price":"asc"},"_score"],` + match + `}`},
		"sorted by the score first":       {body: `{"sort":[{"_score":{}},"price"],` + match + `}`, want: Enough{50, 10}},
		"a parameter sorts second":        {rawQuery: "sort=price:asc,_score", body: `{` + match + `}`},
		"a parameter sorts first":         {rawQuery: "sort=_score:desc,price", body: `{` + match + `}`, want: Enough{50, 10}},
		"vectors":                         {body: `{"query":{"bool":{"should":[{"match":{"body":"rental"}},{"knn":{"v":{"vector":[1],"k":1}}}]}}}`},
		"one of its documents is more":    {body: `{"query":{"match":{"body":"rental"}}}`, change: func(_ *fakeCluster, m *fakeMatrix, _ *Profile) { m.docs = 0 }, want: Enough{50, 10}},
	} {
		t.Run(name, func(t *testing.T) {
			c, m := rental(t)
			o := with(auto)
			if tt.change != nil {
				tt.change(c, m, &o)
			}
			req := &Request{Endpoint: tt.endpoint, Index: "docs", RawQuery: tt.rawQuery, Body: []byte(tt.body), Fixed: tt.fixed}
			r := expanded(t, New(c, m, o), req)
			check.Equal(t, tt.want, r.Parts[0].Enough)
			req.Again = new(Result)
			wide := expanded(t, New(c, m, o), req)
			check.Equal(t, tt.wide, string(wide.Body) == string(r.Body) && r.Rewritten, string(r.Body))
			check.Equal(t, Enough{}, wide.Parts[0].Enough, "a wide search")
			o.Matching = Widen
			widened := string(expanded(t, New(c, m, o), req).Body)
			if strings.Contains(tt.body, "operator") || strings.Contains(tt.body, "minimum_should_match") {
				check.That(t, widened != string(wide.Body), "a wide search that counts words has its own hits first: %s", wide.Body)
			} else {
				check.Equal(t, widened, string(wide.Body), "a wide search is one of widen")
			}
		})
	}
}

// What is expanded because it finds few hits finds more, however many are enough.
func TestAutoWidensSearchesWithFewHits(t *testing.T) {
	for _, when := range []When{Always, FewHits} {
		r := expandBody(t, with(func(o *Profile) { auto(o); o.When = when }), `{"query":{"match":{"body":"car rental"}}}`)
		wide := expandBody(t, with(func(o *Profile) { o.When = when }), `{"query":{"match":{"body":"car rental"}}}`)
		check.Equal(t, when == FewHits, string(wide.Body) == string(r.Body), string(r.Body))
		check.Equal(t, when == Always, r.Parts[0].Enough.Hits > 0)
	}
}

func TestAutoFindsByTheClientsQuery(t *testing.T) {
	const match, rescore = `{"match":{"body":"car rental"}}`, `,"rescore":{"window_size":100,`
	for effort, window := range map[Effort]string{Efforts[0]: "20", Efforts[1]: "100", Efforts[2]: "100"} {
		r := expandBody(t, with(func(o *Profile) { auto(o); o.Effort = effort }), `{"query":`+match+`}`)
		want := `{"query":` + match + strings.Replace(rescore, "100", window, 1)
		check.That(t, strings.HasPrefix(string(r.Body), want) && strings.Contains(string(r.Body), "automobile"), "%s", r.Body)
	}
	// What nothing puts in order stays as it is.
	for _, body := range []string{`{"size":0,"query":` + match + `}`, `{"sort":["price"],"query":` + match + `}`} {
		r := expandBody(t, with(auto), body)
		check.That(t, !r.Rewritten && r.Reason == "no_scores", "%s became %s: %s", body, r.Body, r.Reason)
	}
}

// What counts as much as the words finds documents, however many there are and
// whatever sorts them; related words only put them in order.
func TestAutoFindsByExactWordsAndExpressions(t *testing.T) {
	const phrase = `{"match_phrase":{"body":{"query":"myocardial infarction"`
	for _, more := range []string{"", `,"size":0`, `,"sort":["price"]`, `,"collapse":{"field":"a"}`} {
		c, m := attacks(t)
		m.rows["heart"] = matrixOf(t, c, map[string][]simmatrix.Neighbor{"heart": {{Term: "signs", Similarity: 0.5}}}).rows["heart"]
		r := expanded(t, New(c, m, with(auto)), &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"heart attack"}}` + more + `}`)})
		query, order, _ := strings.Cut(string(r.Body), `"rescore"`)
		check.That(t, r.Rewritten && strings.Contains(query, phrase) && !strings.Contains(query, "signs"), "%s: the query is %s", more, query)
		check.Equal(t, more == "", strings.Contains(order, "signs"), more, order)
	}
}

// Added scores would bring other hits over the bound.
func TestAutoSendsASearchWithABoundOfScoresAsTyped(t *testing.T) {
	for name, body := range map[string]string{
		"of all":       `{"min_score":1,"query":{"match":{"body":"car rental"}}}`,
		"of functions": `{"query":{"function_score":{"query":{"match":{"body":"car rental"}},"min_score":1}}}`,
		"counted":      `{"min_score":1,"query":{"match":{"body":{"query":"car rental","operator":"and"}}}}`,
	} {
		c, m := rental(t)
		e := New(c, m, with(func(o *Profile) { auto(o); o.NormalizeScores = true }))
		req := &Request{Index: "docs", Body: []byte(body)}
		r := expanded(t, e, req)
		check.That(t, !r.Rewritten && r.Reason == reason.MinScore && r.Parts[0].Enough.Hits > 0, "%s: %+v", name, r)
		req.Again = r
		wide := expanded(t, e, req)
		check.That(t, strings.Contains(string(wide.Body), "automobile") && wide.Parts[0].How == Widened, "%s: %s", name, wide.Body)
	}
}

// All pages of a point in time decide alike, by the total that each of them has.
func TestAutoOrdersOrWidensPagesOfAPointInTime(t *testing.T) {
	c, m := rental(t)
	e := New(c, m, with(auto))
	for page := range 2 {
		body := []byte(pitPage(0, `{"match":{"body":"car rental"}}`, strings.Repeat(`,"search_after":[1]`, page)))
		ordered := expanded(t, e, &Request{Body: body})
		wide := expanded(t, e, &Request{Body: body, Again: new(Result)})
		check.Equal(t, []Enough{{50, 0}, {}}, []Enough{ordered.Parts[0].Enough, wide.Parts[0].Enough}, page)
		check.That(t, string(ordered.Body) != string(wide.Body), "page %d: %s", page, wide.Body)
		sliced := expanded(t, e, &Request{Body: []byte(strings.Replace(string(body), "{", `{"slice":{"id":0,"max":2},`, 1))})
		check.Equal(t, Enough{}, sliced.Parts[0].Enough, "a slice")
		c.docFreqs["automobile"]++ // later pages do not see it
	}
}

// In every mode a search that finds too little is that of widen.
func TestAutoWidensAsWidenDoesInEveryMode(t *testing.T) {
	for _, mode := range []Mode{ModeBM25, ModeHard, ModeSoft, ModeSoftCosine} {
		for body, atOnce := range map[string]bool{
			`{"query":{"match":{"body":"rental"}}}`:     true,
			`{"query":{"match":{"body":"car rental"}}}`: false,
			// The modes hard and softcosine rank it as bm25 does.
			`{"query":{"multi_match":{"query":"rental","fields":["body","title"],"type":"cross_fields"}}}`: false,
		} {
			c, m := rental(t)
			o := with(func(o *Profile) { auto(o); o.Mode = mode })
			r := expanded(t, New(c, m, o).WithWeights(rentalWeights()), &Request{Index: "docs", Body: []byte(body)})
			again := expanded(t, New(c, m, o).WithWeights(rentalWeights()), &Request{Index: "docs", Body: []byte(body), Again: new(Result)})
			o.Matching = Widen
			want := expanded(t, New(c, m, o).WithWeights(rentalWeights()), &Request{Index: "docs", Body: []byte(body)})
			check.Equal(t, Widened, want.Parts[0].How)
			check.Equal(t, string(want.Body), string(again.Body), mode, body)
			check.Equal(t, atOnce, r.Parts[0].Enough == Enough{}, mode, body)
			check.Equal(t, atOnce, string(want.Body) == string(r.Body), mode, body, "at once")
		}
	}
}

// An ordered search finds what the client's search finds, in each mode and form
// and however its hits are put in order; a wide one finds all of it, and more.
func TestAutoFindsWhatTheOriginalFinds(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	ordered, widened := 0, 0
	for n := range rounds(500) {
		c, m := rental(t)
		c.scripts, c.shards = n%3 > 0, 1+n%2
		o := with(func(o *Profile) {
			auto(o)
			o.Enough, o.EnoughAll, o.MaxDocShare = 1, 1, 1 // else some are wide at once
			o.Mode, o.Scoring = Mode(rng.IntN(5)), form.Scoring(rng.IntN(4))
			o.NoRescore, o.NameAdded, o.Fit = rng.IntN(3) == 0, rng.IntN(3) == 0, rng.IntN(2) == 0
			o.Effort = append(Efforts, 0)[rng.IntN(4)]
			o.SoftWeight = []float64{0.2, 1}[rng.IntN(2)]
		})
		more := []string{"", `,"collapse":{"field":"a"}`, `,"size":0`, `,"sort":["_score","a"]`, `,"sort":["a"]`}[rng.IntN(5)]
		query := randomQuery(rng, 0)
		req := &Request{Index: "docs", Body: []byte(`{"query":` + query + more + `}`)}
		e := New(c, m, o).WithWeights(rentalWeights())
		bodies := [][]byte{req.Body, req.Body}
		for k, wide := range []bool{false, true} {
			req.Again = map[bool]*Result{true: new(Result)}[wide]
			r := expanded(t, e, req)
			check.Must(t, wide || r.Parts[0].How != Widened, "%s", r.Body)
			if r.Rewritten {
				bodies[k] = r.Body
			}
		}
		if strings.Contains(string(bodies[0]), "automobile") || strings.Contains(string(bodies[0]), "hire") {
			ordered++
		}
		for range 10 {
			doc := document(rng.IntN, []string{"body", "title"}, rentalTerms)
			e := &engine{tb: t, cluster: c, doc: doc, linear: map[string]esclient.Linear{}}
			for _, field := range []string{"body", "title"} {
				e.linear[field+".linear"], doc[field+".linear"] = linearOf(field, rentalWeights()), doc[field]
			}
			want := e.search(req.Body, "query").found
			got := e.search(bodies[0], "query").found
			wide := e.search(bodies[1], "query").found
			check.Must(t, got == want, "mode %d: found %t in %v by\n%s\nthe original\n%s", o.Mode, got, doc, bodies[0], req.Body)
			check.Must(t, wide || !want, "mode %d: not found in %v by\n%s\nthe original\n%s", o.Mode, doc, bodies[1], req.Body)
			if wide && !want {
				widened++
			}
		}
	}
	check.That(t, ordered > rounds(100) && widened > rounds(100), "%d are ordered, %d documents found by related words", ordered, widened)
}

// Where words are counted, a wide search leaves the hits of the search as typed
// as they are, and the others come behind them.
func TestAutoKeepsHitsAsTypedFirstWhereWordsAreCounted(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	more := 0
	for range rounds(500) {
		c, m := rental(t)
		o := with(func(o *Profile) {
			auto(o)
			o.Scoring = form.Scoring(rng.IntN(4))
			o.NoRescore, o.NormalizeScores, o.NameAdded = rng.IntN(3) == 0, rng.IntN(3) == 0, rng.IntN(3) == 0
			o.Effort = Efforts[rng.IntN(3)]
		})
		option := []string{`"operator":"and"`, `"minimum_should_match":2`, `"minimum_should_match":"75%"`}[rng.IntN(3)]
		query := `"query":"` + []string{"car rental", "cheap car rental", "car rental car"}[rng.IntN(3)] + `",` + option
		query = []string{
			`{"match":{"body":{` + query + `}}}`,
			`{"multi_match":{` + query + `,"fields":["body","title^2"],"tie_breaker":0.3}}`,
			`{"multi_match":{` + query + `,"fields":["body^3","title"],"type":"most_fields"}}`,
		}[rng.IntN(3)]
		req := &Request{Index: "docs", Body: []byte(`{"query":` + query + `}`), Again: new(Result)}
		r := expanded(t, New(c, m, o), req)
		check.Must(t, r.Parts[0].How == Widened, "%s", r.Body)
		member := "query"
		if strings.Contains(string(r.Body), `"rescore"`) {
			member = "rescore"
		}
		least, most := math.Inf(1), 0.0 // the scores of hits as typed, and of others
		for range 30 {
			doc := document(rng.IntN, []string{"body", "title"}, rentalTerms)
			for _, terms := range doc {
				for term := range terms {
					terms[term] = 0.1 + 0.9*terms[term] // no text is hundreds of times as long as others
				}
			}
			e := &engine{tb: t, cluster: c, doc: doc}
			typed, found, ordered := e.search(req.Body, "query"), e.search(r.Body, "query"), e.search(r.Body, member)
			check.Must(t, found.found || !typed.found, "not found in %v by\n%s", doc, r.Body)
			switch {
			case typed.found:
				check.Must(t, math.Abs(typed.score-ordered.score) <= 1e-5*typed.score, "%v has the score %v, as typed %v:\n%s", doc, ordered, typed, r.Body)
				least = min(least, typed.score, found.score)
			case found.found:
				more++
				check.Must(t, ordered.found && ordered.score > 0, "%v has the score %v in the %s:\n%s", doc, ordered, member, r.Body)
				most = max(most, found.score, ordered.score)
			}
		}
		check.Must(t, most < least, "others score up to %v, hits as typed from %v:\n%s", most, least, r.Body)
	}
	check.That(t, more > rounds(500), "%d documents were found by related words", more)
}

// Each look-up of a term costs the engine time in each segment.
func TestAutoWritesEachTermOfCountedWordsOnceBesideTheText(t *testing.T) {
	c, m := rental(t)
	body := `{"query":{"match":{"body":{"query":"car rental","operator":"and"}}}}`
	r := expanded(t, New(c, m, with(auto)), &Request{Index: "docs", Body: []byte(body), Again: new(Result)})
	for _, term := range []string{"car", "rental", "automobile", "hire"} {
		check.That(t, strings.Count(string(r.Body), `"`+term+`"`) == 1, "%s is not there once: %s", term, r.Body)
	}
}

// A second expansion uses what the first has pinned, even if another version has
// become active.
func TestAutoExpandsAgainWithTheSameVersions(t *testing.T) {
	c, m := rental(t)
	const body = `{"query":{"match":{"body":"car rental"}}}`
	e := New(c, m, with(auto))
	first := expanded(t, e, &Request{Index: "docs", Body: []byte(body)})
	_, other := rental(t)
	other.rows = nil
	again := expanded(t, e.WithMatrices(other), &Request{Index: "docs", Body: []byte(body), Again: first})
	check.That(t, strings.Contains(string(again.Body), "automobile") && again.Parts[0].How == Widened, "%s", again.Body)
}

// Where another measure puts hits in order, or feedback does, those as typed do
// not stay as they are.
func TestAutoKeepsHitsAsTypedOnlyWhereTheEngineRanks(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(o *Profile)
		want   bool
	}{
		"bm25":       {func(*Profile) {}, true},
		"hard":       {func(o *Profile) { o.Mode = ModeHard }, false},
		"soft":       {func(o *Profile) { o.Mode = ModeSoft }, false},
		"softcosine": {func(o *Profile) { o.Mode = ModeSoftCosine }, false},
		"feedback":   {func(o *Profile) { o.Feedback.Documents = 3 }, false},
		"widen":      {func(o *Profile) { o.Matching = Widen }, false},
	} {
		c, m := rental(t)
		req := &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":{"query":"car rental","operator":"and"}}}}`), Again: new(Result)}
		r := expanded(t, New(c, m, with(func(o *Profile) { auto(o); tt.change(o) })).WithWeights(rentalWeights()), req)
		check.Equal(t, tt.want, r.Clauses[0].AsTypedFirst, name)
		check.Equal(t, tt.want, strings.Contains(string(r.Body), `"boost":0.0001`), name, string(r.Body))
	}
}

// One search that fails does not keep the others of its request from being
// expanded again.
func TestFailedSearchesLeaveTheOthersTheirNumbers(t *testing.T) {
	c, m := rental(t)
	c.broken, c.analyzeErr = "title", errors.New("no answer")
	body := "{}\n" + `{"query":{"match":{"body":{"query":"car rental","operator":"and"}}}}` + "\n{}\n" + `{"query":{"match":{"title":"car"}}}` + "\n"
	r := expanded(t, New(c, m, with(auto)), &Request{Endpoint: EndpointMultiSearch, Index: "docs", Body: []byte(body)})
	check.That(t, r.Parts[0].Enough.Hits == 10 && r.Parts[1].Err != nil, "%+v", r.Parts)
}
