package expand

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
)

// The causes are those of OpenSearch 2.19 and 3.8 and Elasticsearch 7.10 and
// 8.19, as the proxy finds them in their answers.
func TestLimitsAreReadFromRefusals(t *testing.T) {
	const (
		clauses = "maxClauseCount is set to 1024"
		nested  = "Query contains too many nested clauses; maxClauseCount is set to 512"
		rescore = "Rescore window [100] is too large. It must be less than [80]. This prevents allocating massive heaps for storing the results to be rescored. This limit can be set by changing the [index.max_rescore_window] index level setting."
		results = "Result window is too large, from + size must be less than or equal to: [70] but was [100]. See the scroll api for a more efficient way to request large data sets. This limit can be set by changing the [index.max_result_window] index level setting."
	)
	illegal := func(reason string) Cause { return Cause{"illegal_argument_exception", reason} }
	many := func(reason string) Cause { return Cause{"too_many_clauses", reason} }
	failed := Cause{"search_phase_execution_exception", "all shards failed"}
	for name, tt := range map[string]struct {
		causes []Cause
		want   Limit
	}{
		"one bool":           {[]Cause{failed, {"query_shard_exception", "failed to create query: " + clauses}, many(clauses)}, Limit{LimitClauses, "docs", 1024}},
		"nested":             {[]Cause{failed, {"too_many_nested_clauses", nested}}, Limit{LimitClauses, "docs", 512}},
		"Elasticsearch 8":    {[]Cause{illegal("Query rewrite failed: too many clauses"), many("maxClauseCount is set to 1100")}, Limit{LimitClauses, "docs", 1100}},
		"rescore":            {[]Cause{failed, illegal(rescore)}, Limit{LimitRescore, "docs", 80}},
		"results":            {[]Cause{failed, illegal(results)}, Limit{LimitResults, "docs", 70}},
		"another error":      {[]Cause{{"parsing_exception", "unknown query [" + clauses + "]"}}, Limit{}},
		"none":               {nil, Limit{}},
		"a quoted text":      {[]Cause{{"query_shard_exception", "failed to create query: " + clauses}, {"number_format_exception", clauses}}, Limit{}},
		"of another type":    {[]Cause{illegal(clauses), many(rescore)}, Limit{}},
		"more before":        {[]Cause{many("car " + clauses), illegal("car " + results)}, Limit{}},
		"more behind":        {[]Cause{many(clauses + " car"), illegal(rescore + " car")}, Limit{}},
		"cut":                {[]Cause{illegal(rescore[:60])}, Limit{}},
		"no number":          {[]Cause{many("maxClauseCount is set to x")}, Limit{}},
		"too large a number": {[]Cause{many("maxClauseCount is set to 99999999999999999999")}, Limit{}},
		"too small a number": {[]Cause{many("maxClauseCount is set to 63")}, Limit{}},
		"more than was sent": {[]Cause{many("maxClauseCount is set to 1200")}, Limit{}},
		"a script":           {[]Cause{{"script_exception", "runtime error"}, illegal(rescore), many(clauses)}, Limit{}},
		"a window of others": {[]Cause{illegal(strings.Replace(rescore, "[100]", "[101]", 1))}, Limit{}},
		"a window that fits": {[]Cause{illegal(strings.Replace(results, "[100]", "[70]", 1))}, Limit{}},
		"too small a window": {[]Cause{illegal(strings.Replace(results, "[70]", "[63]", 1)), illegal(strings.Replace(rescore, "[80]", "[63]", 1))}, Limit{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Refusal{Index: "docs", ClauseCount: 1200, Causes: tt.causes}
			got, ok := r.Limit()
			check.That(t, got == tt.want && ok == (tt.want.N > 0), "%+v, %t; want %+v", got, ok, tt.want)
		})
	}
}

func TestRefusalsTellThatWhatWasKnownHasChanged(t *testing.T) {
	expensive := "[script score] queries cannot be executed when 'search.allow_expensive_queries' is set to false."
	for name, tt := range map[string]struct {
		causes []Cause
		want   bool
	}{
		"no such index":  {[]Cause{{"index_not_found_exception", "no such index [docs]"}}, true},
		"closed":         {[]Cause{{"index_closed_exception", "closed"}}, true},
		"another field":  {[]Cause{{"search_phase_execution_exception", ""}, {"query_shard_exception", "failed to create query"}}, true},
		"no field":       {[]Cause{{"script_exception", ""}, {"illegal_argument_exception", "No field found for [norm] in mapping"}}, true},
		"no scripts":     {[]Cause{{"exception", expensive}}, true},
		"many clauses":   {[]Cause{{"query_shard_exception", ""}, {"too_many_clauses", "maxClauseCount is set to 2"}}, false},
		"a script":       {[]Cause{{"query_shard_exception", ""}, {"script_exception", ""}}, false},
		"another":        {[]Cause{{"parsing_exception", "index_not_found_exception"}}, false},
		"nothing stated": {nil, false},
	} {
		check.Equal(t, tt.want, (&Refusal{Causes: tt.causes}).Moved(), name)
	}
}

// The smallest limit that is named counts, until the cluster itself is asked;
// after ten minutes it is learned again.
func TestLimitsAreLearnedCorrectedAndForgotten(t *testing.T) {
	c, m := rental(t)
	e := New(c, m, widening())
	synctest.Test(t, func(t *testing.T) {
		var told []int64
		e.limits.OnChange = func(l Limit) { told = append(told, l.N) }
		profile := e.With(widening())
		for _, step := range []struct {
			n    int64
			news bool
			want int64
		}{{500, true, 500}, {800, false, 500}, {500, false, 500}, {400, true, 400}} {
			news := profile.limits.Learn(Limit{LimitClauses, "docs", step.n})
			check.That(t, news == step.news && e.limits.of(LimitClauses, "docs") == step.want, "%d: news %t, limit %d", step.n, news, e.limits.of(LimitClauses, "docs"))
		}
		e.limits.Correct(Limit{LimitClauses, "docs", 1024})
		e.limits.Learn(Limit{LimitRescore, "docs", 90})
		e.limits.Correct(Limit{LimitRescore, "docs", 50})
		check.That(t, !e.limits.Learn(Limit{LimitClauses, "docs", 64}), "a refusal goes before the cluster's own answer")
		e.limits.Correct(Limit{LimitClauses, "docs", 512}) // the default that Elasticsearch 8 tells
		if a, b, c := e.limits.of(LimitClauses, "docs"), e.limits.of(LimitRescore, "docs"), e.limits.of(LimitClauses, "other"); a != 1024 || b != 50 || c != 0 {
			t.Errorf("the limits are %d, %d and %d", a, b, c)
		}
		check.Equal(t, 2, len(e.limits.All()), "limits are listed")
		check.Elapse(limitTime + time.Second)
		check.That(t, e.limits.of(LimitClauses, "docs") == 0 && len(e.limits.All()) == 0, "not forgotten")
		check.Equal(t, []int64{500, 400, 1024, 90, 50, 0, 0}, told, "reported")
	})
}

// What one index refuses says nothing of the others that are searched by the
// same path.
func TestLimitsAreLearnedOfEachSearchOfMultiSearch(t *testing.T) {
	lines := []byte("{\"index\":\"small\"}\n" + carRental + "\n{}\n" + carRental + "\n{\"index\":[\"docs\",\"more\"]}\n" + carRental + "\n")
	for _, path := range []string{"", "docs"} {
		req := &Request{Endpoint: EndpointMultiSearch, Index: path, Body: lines}
		c, m := rental(t)
		e := New(c, m, widening())
		res := expanded(t, e, req)
		check.Equal(t, []string{"small", path, "docs,more"}, indexOfEach(res))
		e.limits.Learn(Limit{LimitRescore, res.Parts[0].Index, 10})
		var got []reason.Reason
		for _, clause := range expanded(t, e, req).Clauses {
			got = append(got, clause.Reason)
		}
		check.Equal(t, []reason.Reason{reason.RescoreWindow, "", ""}, got, path)

		e = New(c, m, with(soft))
		e.limits.Learn(Limit{LimitResults, res.Parts[0].Index, 50})
		var windows []int
		for _, r := range expanded(t, e, req).Reranks() {
			windows = append(windows, r.Window)
		}
		check.Equal(t, []int{50, 100, 100}, windows, path)
	}
}

func FuzzLimits(f *testing.F) {
	f.Add("too_many_clauses", "maxClauseCount is set to 1024", 2000)
	f.Add("illegal_argument_exception", "Rescore window [100] is too large. It must be less than [10].", 1)
	f.Fuzz(func(t *testing.T, kind, reason string, clauseCount int) {
		r := &Refusal{ClauseCount: clauseCount, Causes: []Cause{{kind, reason}}}
		limit, ok := r.Limit()
		check.That(t, !ok || limit.N >= 0 && strings.Contains(reason, strconv.FormatInt(limit.N, 10)) && (limit.Kind != LimitClauses || limit.N < int64(clauseCount)), "%q: %+v", reason, limit)
	})
}

func TestSearchesAreKeptUnderTheLearnedLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	c, m := rental(t)
	cut := 0
	for _, v := range writings {
		x := New(c, m, with(v.change))
		for range 60 {
			query := randomQuery(rng, 0)
			free := v.expanded(t, x, query)
			limit := 1 + rng.IntN(40)
			x.limits.Learn(Limit{LimitClauses, "docs", int64(limit)})
			body := v.expanded(t, x, query)
			*x.limits = Limits{}
			if string(body) != string(free) {
				cut++
			}
			for _, member := range []string{"query", "rescore"} {
				if member == "rescore" && !strings.Contains(string(body), `"rescore"`) {
					continue
				}
				e := &engine{tb: t, cluster: c}
				e.search(body, member)
				o := &engine{tb: t, cluster: c}
				o.search([]byte(`{"query":`+query+`}`), "query")
				check.Must(t, e.clauseCount <= max(limit, o.clauseCount), "%s: %d clauses, limit %d, original %d:\n%s", v.name, e.clauseCount, limit, o.clauseCount, body)
			}
		}
	}
	check.That(t, cut != 0, "no search was cut")
}

func TestWeakestTermsOfTheFieldWithTheMostAreCutFirst(t *testing.T) {
	body := `{"query":{"bool":{"must":[{"match":{"body":"rental"}},{"match":{"body":"cheap"}},{"match":{"body":"car"}}]}}}`
	parsed, why := new(dsl.Parser).Parse([]byte(body), new(dsl.Parameters))
	check.Must(t, why == "", "%v", why)
	words := 3 + parsed.ClauseCount
	for added, want := range map[int][]string{
		5: {"hire lease", "hire", "automobile lease"},
		4: {"hire lease", "hire", "automobile"},
		3: {"hire", "hire", "automobile"},
		2: {"hire", "hire", ""},
		1: {"hire", "", ""},
		0: nil,
	} {
		limit := words + added
		t.Run(strconv.Itoa(added), func(t *testing.T) {
			c, m := rental(t)
			e := New(c, m, with(func(o *Profile) { o.Scoring = form.Linear }))
			e.limits.Learn(Limit{LimitClauses, "", int64(limit)})
			r := expanded(t, e, &Request{Body: []byte(body)})
			check.That(t, r.Rewritten == (want != nil), "rewritten: %t", r.Rewritten)
			for i, c := range r.Clauses {
				var got []string
				for _, a := range c.Added {
					got = append(got, a.Term)
				}
				check.That(t, want == nil || strings.Join(got, " ") == want[i], "clause %d: added %q, want one of %q", i, got, want)
				check.That(t, (len(got) == 0) == (c.Reason == reason.TermLimit), "clause %d: %d added, reason %q", i, len(got), c.Reason)
			}
		})
	}
}

// TestDeepClausesTakeFlatterForms goes down level by level, for clauses that
// need few levels and many. An expression can stand for the words of one of the
// texts.
func TestDeepClausesTakeFlatterForms(t *testing.T) {
	c, m := rental(t)
	ce, me := attacks(t)
	signs := []FirstHit{{ID: "1", Score: 2, Fields: map[string]FieldTerms{"body": {Terms: []string{"signs", "heart"}, Freqs: []float64{3, 1}}}}}
	for name, clause := range map[string]string{
		"one field":       `{"match":{"body":"TEXT"}}`,
		"counted":         `{"match":{"body":{"query":"TEXT","operator":"and"}}}`,
		"fields":          `{"multi_match":{"query":"TEXT","fields":["body","title"]}}`,
		"fields, counted": `{"multi_match":{"query":"TEXT","fields":["body","title"],"operator":"and"}}`,
		"term-centric":    `{"multi_match":{"query":"TEXT","fields":["body","title"],"type":"cross_fields","operator":"and"}}`,
	} {
		for _, text := range []struct {
			words string
			e     *Expander
			hits  []FirstHit
		}{{"car rental", New(c, m, widening()), firstHits}, {"heart attack", New(ce, me, widening()), signs}} {
			clause := strings.Replace(clause, "TEXT", text.words, 1)
			for bits := range 4 {
				matching, second := bits&1 == 1, bits&2 == 2
				for _, scoring := range []form.Scoring{form.Auto, form.Linear, form.Grouped} {
					if matching && text.words == "heart attack" && (name == "term-centric" || !second && scoring == form.Linear) {
						continue // the linear form has no expressions there, and a term-centric clause then no first pass
					}
					t.Run(fmt.Sprintf("%s, %s, %s, same matches %t, feedback %t", name, text.words, scoring, matching, second), func(t *testing.T) {
						var forms []string
						req := Request{}
						e := text.e.With(with(func(o *Profile) {
							feedback(o)
							o.Scoring, o.Matching, o.NoRescore, o.NameAdded = scoring, sameIf(matching), true, true
						}))
						for depth := range 20 {
							query := nestedIn(depth, clause)
							req.Body = []byte(`{"query":` + query + `}`)
							r := expanded(t, e, &req)
							if second {
								r = withHits(t, e, r, text.hits)
							}
							used := r.Clauses[0].Form
							if len(forms) == 0 || forms[len(forms)-1] != used {
								forms = append(forms, used)
							}
							if scoring == form.Auto {
								check.That(t, (used == "saturated" || name == "term-centric") && used != "" || r.Clauses[0].Reason == reason.TooDeep, "depth %d: form %q, reason %q", depth, used, r.Clauses[0].Reason)
							}
							if r.Rewritten {
								written := &engine{tb: t, cluster: c}
								written.search(r.Body, "query")
								check.That(t, written.depth <= min(maxLevels, depth+maxLevels/2), "depth %d: %d levels in form %q", depth, written.depth, used)
							}
						}
						last := forms[len(forms)-1]
						check.That(t, last == "" && len(forms) >= 2, "forms %q, want the last to be none", forms)
					})
				}
			}
		}
	}
}

func indexOfEach(res *Result) (indices []string) {
	for _, p := range res.Parts {
		indices = append(indices, p.Index)
	}
	return indices
}

// nestedIn returns a clause in so many bool queries.
func nestedIn(depth int, clause string) string {
	return strings.Repeat(`{"bool":{"must":`, depth) + clause + strings.Repeat(`}}`, depth)
}
