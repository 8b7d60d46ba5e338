package expand

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/simmatrix"
)

// softRental returns an expander of rental in ModeSoftCosine.
func softRental(tb testing.TB, change func(c *fakeCluster, f *fakeWeights, o *Profile)) *Expander {
	tb.Helper()
	return hardRental(tb, func(c *fakeCluster, f *fakeWeights, o *Profile) {
		o.Mode, f.scripted = ModeSoftCosine, true
		if change != nil {
			change(c, f, o)
		}
	})
}

// The figures were worked out apart from the code: w is the idf in 2,000
// documents, car 2.8097 and rental 3.8994, ⟨x, x⟩ = 2.8097² + 3.8994² without an
// entry between the two, v as in the mode hard, M = 2.2·(ln(1 + 950.5/50.5) +
// ln(1 + 980.5/20.5)), and w/(1 − w) = 1/4. The boost of car is M/4·2.8097²/⟨x,
// x⟩^½.
func TestSoftCosineIsWrittenBesideTheClause(t *testing.T) {
	r := expandHard(t, softRental(t, func(_ *fakeCluster, _ *fakeWeights, o *Profile) { o.MaxAddedTerms, o.SoftWeight = 1, .2 }),
		Request{Body: []byte(`{"query":{"match":{"body":"car rental"}}}`)})
	query, rescore, _ := strings.Cut(rounded(r.Body), `,"rescore":`)
	check.That(t, !strings.Contains(query, "function_score"), "the query has the measure: %s", query)
	for _, want := range []string{
		`"rescore_query":{"bool":{"should":[{"bool":{"should":[`,
		`{"function_score":{"query":{"bool":{"should":[{"term":{"body.linear":{"value":"car","boost":6.21`,
		`{"term":{"body.linear":{"value":"lease","boost":`,
		`]}},"field_value_factor":{"field":"akin_soft_norm.body","modifier":"reciprocal","missing":7.5},"boost_mode":"multiply"}}]}}`,
	} {
		check.That(t, strings.Contains(rescore, want), "no %s in %s", want, rescore)
	}
	check.Equal(t, "saturated + softcosine", r.Clauses[0].Form)
	check.Equal(t, "rescore", r.Clauses[0].Phase)
	check.Equal(t, reason.Reason(""), r.Clauses[0].Reason)
}

// The score of a document is that of the mode bm25 and w/(1 − w)·M times the
// measure by its definition, M by its own.
func TestSoftCosineIsAddedToTheScoreOfBM25(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	positive, rescored := 0, 0
	for n := range rounds(400) {
		w := newHardWorld(t, rng)
		w.cluster.scripts = n%4 > 0
		var words []string
		x, most := map[string]float64{}, 0.0
		for range 1 + rng.IntN(5) {
			term := w.terms[rng.IntN(4)]
			words = append(words, term)
			x[term]++
			most += simmatrix.IDF(w.cluster.docFreqs[term], w.cluster.docCount) * w.cluster.scale
		}
		text := strings.Join(words, " ")
		body, title := w.document(rng), w.document(rng)
		inBody, inTitle := most/3*w.measure(ModeSoftCosine, x, body), most/3*w.measure(ModeSoftCosine, x, title) // w/(1 − w) = 1/3
		best := max(3*inBody, 2*inTitle)
		for query, want := range map[string]float64{
			`{"match":{"body":{"query":"` + text + `","boost":2.5}}}`:                                             2.5 * inBody,
			`{"multi_match":{"query":"` + text + `","fields":["body^3","title^2"],"tie_breaker":0.3}}`:            best + 0.3*(3*inBody+2*inTitle-best),
			`{"bool":{"must":[{"match":{"body":"` + text + `"}}],"should":[{"match":{"title":"` + text + `"}}]}}`: inBody + inTitle,
			`{"match":{"body":{"query":"` + text + `","operator":"and"}}}`:                                        inBody,
		} {
			o := with(func(o *Profile) {
				o.Mode, o.SoftWeight, o.MaxAddedTerms, o.NoRescore = ModeSoftCosine, 0.25, 200, n%3 == 0
			})
			r := expandHard(t, w.expander(o), Request{Body: []byte(`{"query":` + query + `}`)})
			o.Mode = ModeBM25
			plain := expandHard(t, New(w.cluster, w.matrix, o), Request{Body: []byte(`{"query":` + query + `}`)})
			e := w.engine(t, map[string]map[string]float64{"body": body, "title": title})
			of := func(r *Result) hit {
				switch {
				case !r.Rewritten:
					return e.search([]byte(`{"query":`+query+`}`), "query")
				case strings.Contains(string(r.Body), `"rescore"`):
					rescored++
					return e.search(r.Body, "rescore")
				}
				return e.search(r.Body, "query")
			}
			got, without := of(r), of(plain)
			if !without.found {
				continue // and so are not rescored
			}
			if strings.Contains(query, `"bool"`) && !strings.Contains(string(r.Body), `"rescore"`) {
				continue // what the clause in should does not find is not scored by it
			}
			if want > 0 {
				positive++
			}
			check.Must(t, math.Abs(got.score-without.score-want) <= 1e-5*max(1, got.score) && got.found,
				"case %d: score %v with and %v without the measure, which is %v, of\n%v, %v by\n%s", n, got, without, want, body, title, r.Body)
			check.Must(t, e.search(r.Body, "query").found, "%s is not found by\n%s", text, r.Body)
		}
	}
	check.That(t, positive >= rounds(300) && rescored >= rounds(300), "%d documents have a score and %d searches a rescore, the test shows little", positive, rescored)
}

// A text without neighbors has a cosine all the same.
func TestSoftCosineOfAWordWithoutNeighbors(t *testing.T) {
	r := expandHard(t, softRental(t, nil), Request{Body: []byte(`{"query":{"match":{"body":"lease"}}}`)})
	check.That(t, strings.Contains(string(r.Body), `"query":{"match":{"body":"lease"}},"rescore"`) && strings.Contains(string(r.Body), "function_score"), "%s", r.Body)
	check.Equal(t, "linear + softcosine", r.Clauses[0].Form)
}

func TestSearchesThatAreNotRankedBySoftCosine(t *testing.T) {
	const car = `{"query":{"match":{"body":"car"}}}`
	for name, tt := range map[string]struct {
		change func(c *fakeCluster, f *fakeWeights, o *Profile)
		body   string
		want   reason.Reason
	}{
		"no weights":        {nil, `{"query":{"match":{"unweighted":"car"}}}`, reason.NoWeights},
		"no linear field":   {nil, `{"query":{"match":{"crooked":"car"}}}`, reason.NoLinear},
		"no norms":          {nil, `{"query":{"match":{"bare":"car"}}}`, reason.NoNorms},
		"stale norms":       {func(_ *fakeCluster, f *fakeWeights, _ *Profile) { f.linearErr = esclient.ErrNoNorms }, car, reason.NoNorms},
		"fuzzy":             {nil, `{"query":{"match":{"body":{"query":"car","fuzziness":1}}}}`, reason.NotAdditive},
		"min_score":         {nil, `{"min_score":0.5,"query":{"match":{"body":"car"}}}`, reason.MinScore},
		"cross_fields":      {nil, `{"query":{"multi_match":{"query":"car","fields":["body","title"],"type":"cross_fields"}}}`, reason.NotAdditive},
		"long":              {func(_ *fakeCluster, _ *fakeWeights, o *Profile) { o.MaxQueryTerms = 1 }, `{"query":{"match":{"body":"car rental"}}}`, reason.TooManyTerms},
		"shards, no script": {func(c *fakeCluster, f *fakeWeights, _ *Profile) { c.shards, c.routed, f.scripted = 3, true, false }, car, reason.Routing},
		"no frequencies":    {func(c *fakeCluster, f *fakeWeights, _ *Profile) { c.uncounted, f.scripted = true, false }, car, reason.NoFrequencies},
		"hybrid":            {nil, `{"query":{"hybrid":{"queries":[{"match":{"body":"car"}}]}}}`, reason.Hybrid},
	} {
		t.Run(name, func(t *testing.T) {
			for _, weight := range []float64{0.2, 1} {
				e := softRental(t, func(c *fakeCluster, f *fakeWeights, o *Profile) {
					if o.SoftWeight = weight; tt.change != nil {
						tt.change(c, f, o)
					}
				})
				r := expandHard(t, e, Request{Body: []byte(tt.body)})
				if tt.want == reason.MinScore || tt.want == reason.TooManyTerms && weight == 1 { // not expanded at all
					check.That(t, !r.Rewritten && (r.Reason == tt.want || r.Clauses[0].Reason == tt.want), "%+v", r)
					continue
				}
				check.That(t, r.Rewritten && r.Clauses[0].Reason == tt.want && !strings.Contains(string(r.Body), "function_score"), "weight %v: %q\n%s", weight, r.Clauses[0].Reason, r.Body)
			}
		})
	}
}

// Of a count only the related words are left, as in the mode bm25.
func TestCountsDoWithoutTheSoftCosine(t *testing.T) {
	c, m := rental(t)
	for _, body := range []string{`{"size":0,"query":{"match":{"body":"car"}}}`, `{"size":0,"query":{"match":{"body":"car rental"}}}`} {
		plain := expandHard(t, New(c, m, widening()), Request{Body: []byte(body)})
		got := expandHard(t, softRental(t, nil), Request{Body: []byte(body)})
		check.Equal(t, string(plain.Body), string(got.Body))
	}
}

func TestSoftCosineGoesFirstWhereTheClausesAreTooMany(t *testing.T) {
	const body = `{"query":{"match":{"body":"car rental"}}}`
	whole := func(_ *fakeCluster, _ *fakeWeights, o *Profile) { o.NoRescore = true }
	c, m := rental(t)
	plain := expandHard(t, New(c, m, with(func(o *Profile) { o.NoRescore = true })), Request{Body: []byte(body)})
	e := softRental(t, whole)
	e.limits.Learn(Limit{LimitClauses, "docs", int64(plain.ClauseCount)})
	r := expandHard(t, e, Request{Body: []byte(body)})
	check.Equal(t, string(plain.Body), string(r.Body))
	check.That(t, r.Clauses[0].Reason == reason.Truncated && r.Clauses[0].Form == "saturated", "%q, %q", r.Clauses[0].Reason, r.Clauses[0].Form)
}

func TestTextWithoutNeighborsAndWithoutRoomForTheMeasureIsLeftAlone(t *testing.T) {
	e := softRental(t, func(_ *fakeCluster, _ *fakeWeights, o *Profile) { o.NoRescore = true })
	e.limits.Learn(Limit{LimitClauses, "docs", 1})
	r := expandHard(t, e, Request{Body: []byte(`{"query":{"match":{"body":"lease"}}}`)})
	check.That(t, !r.Rewritten && r.Reason == reason.TermLimit, "rewritten %t, reason %q", r.Rewritten, r.Reason)
}

// TestSoftCosineIsNotWrittenTooDeep goes down level by level.
func TestSoftCosineIsNotWrittenTooDeep(t *testing.T) {
	for _, clause := range []string{
		`{"match":{"body":"car rental"}}`,
		`{"match":{"body":{"query":"car rental","operator":"and"}}}`,
		`{"multi_match":{"query":"car rental","fields":["body","title"]}}`,
	} {
		deepest, with, without := 0, 0, 0
		for depth := range maxLevels {
			query := nestedIn(depth, clause)
			r := expandHard(t, softRental(t, func(_ *fakeCluster, _ *fakeWeights, o *Profile) { o.NoRescore = true }), Request{Body: []byte(`{"query":` + query + `}`)})
			if !r.Rewritten {
				continue
			}
			written := &engine{tb: t, cluster: &fakeCluster{scale: 1}}
			written.search(r.Body, "query")
			deepest = max(deepest, written.depth)
			if strings.Contains(r.Clauses[0].Form, "softcosine") {
				with++
			} else {
				without++
			}
		}
		check.That(t, deepest == maxLevels && with > 0 && without > 0, "%d levels, %d forms with the measure and %d without", deepest, with, without)
	}
}
