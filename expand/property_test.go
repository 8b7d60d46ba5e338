package expand

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/simmatrix"
)

// TestLinearFormComputesTheSoftInnerProduct holds the written boosts against
// design: with λ = 1 and nothing cut off, Σ_j boost_j·idf_j·tf_j over the added
// terms plus the original's own Σ_i x_i idf_i tf_i is (Wx)ᵀS(Wy), W = √idf,
// y = tf, where the part of each added term is multiplied by its fit and all of
// them such that their sum at y = 1 stays.
func TestLinearFormComputesTheSoftInnerProduct(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		c := &fakeCluster{docCount: 10_000, docFreqs: map[string]int64{}}
		terms := make([]string, 12)
		for i := range terms {
			terms[i] = fmt.Sprintf("t%02d", i)
			c.docFreqs[terms[i]] = 1 + rng.Int64N(900)
		}
		s := map[[2]string]float64{}
		rows := map[string][]simmatrix.Neighbor{}
		for i := range 3 { // the query's terms are t00 to t02
			for j := 3; j < len(terms); j++ {
				if rng.IntN(2) == 0 {
					continue
				}
				v := simmatrix.QuantizeSimilarity(rng.Float64())
				s[[2]string{terms[i], terms[j]}] = float64(v)
				rows[terms[i]] = append(rows[terms[i]], simmatrix.Neighbor{Term: terms[j], Similarity: v})
			}
		}
		var words []string
		x := map[string]float64{}
		for range 1 + rng.IntN(5) {
			term := terms[rng.IntN(3)]
			words = append(words, term)
			x[term]++
		}
		text := strings.Join(words, " ")
		o := with(func(o *Profile) { o.Scoring, o.Strength, o.MaxDocShare = form.Linear, 5, 1 })
		m := matrixOf(t, c, rows)
		m.power = 3
		r := expanded(t, New(c, m, o), &Request{Body: []byte(`{"query":{"match":{"f":"` + text + `"}}}`)})
		y := map[string]float64{}
		for _, term := range terms {
			y[term] = float64(rng.IntN(4))
		}
		idfOf := func(term string) float64 { return simmatrix.IDF(c.docFreqs[term], c.docCount) }
		norm := 0.0
		for i, xi := range x {
			norm = math.Hypot(norm, xi*idfOf(i))
		}
		var want, got, sum, sumFit, related float64
		for j, yj := range y {
			var v, fit float64
			for i, xi := range x {
				sij := s[[2]string{i, j}]
				v += xi * math.Sqrt(idfOf(i)*idfOf(j)) * sij
				fit += xi * idfOf(i) / norm * math.Cbrt(sij)
			}
			sum, sumFit, related = sum+v, sumFit+v*fit, related+v*fit*yj
		}
		for i, xi := range x {
			want += xi * y[i] * idfOf(i)
			got += xi * y[i] * idfOf(i)
		}
		if related > 0 {
			want += related * sum / sumFit
		}
		if len(r.Clauses) > 0 {
			for _, a := range r.Clauses[0].Added {
				got += a.Boost * idfOf(a.Term) * y[a.Term]
			}
		}
		if math.Abs(got-want) > 1e-7*max(1, want) { // cube roots have the precision of a float32
			t.Fatalf("case %d: engine's sum %v, (Wx)ᵀS(Wy) = %v", n, got, want)
		}
	}
}

// TestWithoutFitEachTermScoresByTheFormula holds all forms at λ = 1 against
// Σ_i x_i w_i s_ij w_j for documents with one term j, a term of the text or not,
// so rare in it that nothing is saturated.
func TestWithoutFitEachTermScoresByTheFormula(t *testing.T) {
	const rare = 1e-6 // tf/(tf+K)
	rng := rand.New(rand.NewPCG(11, 12))
	raised := 0
	for scoring, strength := range map[form.Scoring]float64{form.Linear: 5, form.Grouped: 2, form.Saturated: 4} {
		for range rounds(200) {
			c := &fakeCluster{docCount: 10_000, docFreqs: map[string]int64{}, scale: 2.2, scripts: true}
			s, rows := map[[2]string]float64{}, map[string][]simmatrix.Neighbor{}
			names := strings.Fields("a b c d e f g h")
			for _, term := range names {
				c.docFreqs[term] = 1 + rng.Int64N(5000)
			}
			for _, i := range names[:4] {
				s[[2]string{i, i}] = 1
				for _, j := range names {
					if v := simmatrix.QuantizeSimilarity(0.99 * rng.Float64()); i != j && rng.IntN(3) > 0 {
						s[[2]string{i, j}] = float64(v)
						rows[i] = append(rows[i], simmatrix.Neighbor{Term: j, Similarity: v})
					}
				}
			}
			x, words := map[string]float64{}, []string(nil)
			for range 1 + rng.IntN(5) {
				word := names[rng.IntN(4)]
				words = append(words, word)
				x[word]++
			}
			o := with(func(o *Profile) {
				o.Fit, o.NoRescore, o.Scoring, o.Strength, o.MaxDocShare = false, true, scoring, strength, 1
			})
			body := []byte(`{"query":{"match":{"body":"` + strings.Join(words, " ") + `"}}}`)
			if r := expanded(t, New(c, matrixOf(t, c, rows), o), &Request{Body: body}); r.Rewritten {
				body = r.Body
			}
			idf := func(term string) float64 { return simmatrix.IDF(c.docFreqs[term], c.docCount) }
			for _, j := range names {
				want := 0.0
				for i, xi := range x {
					want += xi * math.Sqrt(idf(i)*idf(j)) * s[[2]string{i, j}]
				}
				e := &engine{tb: t, cluster: c, doc: map[string]map[string]float64{"body": {j: rare}}}
				if got := e.search(body, "query").score / (c.scale * rare); math.Abs(got-want) > 1e-4*want {
					t.Fatalf("%v: %s scores %v, (Wx)ᵀS(Wy) is %v: %s", scoring, j, got, want, body)
				}
				if x[j] > 0 && want > x[j]*idf(j)*1.001 {
					raised++
				}
			}
		}
	}
	check.That(t, raised > 100, "%d words of texts are neighbors of others", raised)
}

// fuzzOptions are all choices of an expansion as bits.
func fuzzOptions(bits uint16) (o Profile, change func(c *fakeCluster)) {
	o = with(func(o *Profile) {
		o.Scoring, o.NoRescore = form.Scoring(bits%4), bits>>2%3 == 1
		o.NormalizeScores, o.Phrases, o.RescoreQueries = bits>>4&1 == 1, bits>>5&1 == 1, bits>>6&1 == 1
		o.Matching, o.MarkRelated, o.NameAdded = sameIf(bits>>7&1 == 1), bits>>8&1 == 1, bits>>14&1 == 1
		o.DefaultFields = []string{"body", "title"}
		if bits>>12&1 == 1 {
			o.Mode = ModeHard
		}
		o.Fit = bits>>15 == 0
		if bits>>13&1 == 1 {
			o.Feedback = FeedbackOptions{Documents: 3, Terms: 1 + int(bits>>14)*5, Weight: 0.3}
		}
	})
	return o, func(c *fakeCluster) {
		c.scripts, c.shards = bits>>9&1 == 0, 1+int(bits>>10&1)
		if bits>>11&1 == 1 {
			c.synonyms = map[string]string{"car": "auto"}
		}
	}
}

// FuzzExpand holds any bytes, with any choice of options, against the promise
// to change nothing but what stands around the clauses that are rewritten.
func FuzzExpand(f *testing.F) {
	for i, seed := range []string{
		carRental, `{}`, `[]`, ``, `{"query":{"bool":{"must":[{"match":{"body":"car"}},{"multi_match":{"query":"rental","fields":["a^2","b"]}}],"filter":{"match":{"body":"car"}}}},"highlight":{"fields":{}}}`,
		`{"highlight":{},"query":{"nested":{"path":"x","query":{"match":{"b\u006fdy":{"query":"car","operator":"and"}}}}}}`,
		`{"query":{"query_string":{"query":"car rental","default_field":"body"}},"sort":["_score"]}`,
		`{"query":{"match":{"body":{"query":"car rental","minimum_should_match":"2<75%"}}}}`, `{"query":` + strings.Repeat(`{"bool":{"must":`, 35),
		`{"query":{"multi_match":{"query":"car rental","fields":["body^3","ti*"],"type":"cross_fields","operator":"and"}}, "size":3}`,
		`{"query":{"multi_match":{"query":"car rental","fields":["*"],"type":"most_fields","tie_breaker":0.2}},"highlight":{"fields":{"body":{}}}}`,
		`{"query":{"match_bool_prefix":{"body":"car re"}},"rescore":{"query":{"rescore_query":{"match_phrase":{"body":"car rental"}}}}}`,
		`{"retriever":{"rrf":{"retrievers":[{"standard":{"query":{"match":{"body":"car"}}}},{"retriever":{"standard":{"query":{"simple_query_string":{"query":"car"}}}}}]}}}`,
		`{"query":{"function_score":{"query":{"match":{"body":"car"}},"min_score":1}},"size":0}`,
		`{"query":{"boosting":{"positive":{"combined_fields":{"query":"car","fields":["body","title"],"minimum_should_match":1}},"negative":{"match_all":{}},"negative_boost":0.1}}}`,
		`{"pit":{"id":"x"},"query":{"match":{"body":"car"}}}`,
		`{"query":{"bool":{"should":[{"nested":{"path":"n","score_mode":"max","inner_hits":{"highlight":{"fields":{}}},"query":{"nested":{"path":"n.m","query":{"match":{"body":"car"}},"inner_hits":{"highl\u0069ght":{ }}}}}},{"has_child":{"type":"c","query":{"match":{"body":"rental"}},"inner_hits":{"highlight":{"highlight_query":{"match_all":{}}}}}}]}},"highlight":{}}`,
		`{"aggs":{"a":{"terms":{"field":"k"},"aggregations":{"top_hits":{"top_hits":{"highlight":{"fields":{}}}}}}},"query":{"match":{"body":"car rental"}},"highlight":{"order":"score"}}`,
		`{"collapse":{"field":"k","inner_hits":[{"name":"a","highlight":{"fields":{}}},{"highlight":{}}]},"query":{"match":{"body":"car"}},"aggs":{"h":{"top_hits":{"highlight":{}}}}}`,
		`{"highlight":{"fields":{}},"retriever":{"rrf":{"retrievers":[{"standard":{"query":{"term":{"a":"b"}},"collapse":{"inner_hits":{"highlight":{}}}}},{"standard":{"query":{"match":{"body":"car"}}}}]}}}`,
		`{"highlight":{"fields":{}},"query":{"hybrid":{"filter":{"match":{"body":"car"}},"queries":[{"match":{"body":"car rental"}},{"knn":{"v":{"vector":[1],"k":5}}},{"hybrid":{"queries":[{"match":{"body":"car"}}]}},{"bool":{"must":{"multi_match":{"query":"rental","fields":["body","title"]}}}}],"pagination_depth":50}},"rescore":{"query":{"rescore_query":{"match":{"body":"car"}}}}}`,
		`{"query":{"hybrid":{"queries":[{"match_phrase":{"body":"car rental"}},{"nested":{"path":"n","score_mode":"max","query":{"match":{"body":"car"}}}}]}},"search_pipeline":"safe","collapse":{"field":"k"}}`,
		`{"query":{"bool":{"should":[{"match":{"body":"car rental"}},{"semantic":{"field":"v","query":"car"}}]}}}`,
	} {
		for k := range 12 {
			f.Add([]byte(seed), uint16(i+701*k))
		}
	}
	for k := range 8 {
		f.Add([]byte(carRental), uint16(1<<13+k*0x1041))
	}
	for k := range 12 { // without the fit, and with words of the text that are related
		for _, options := range []string{``, `,"operator":"and"`, `,"minimum_should_match":"2<75%"`} {
			f.Add([]byte(`{"query":{"match":{"body":{"query":"car automobile lease rental car"`+options+`}}}}`), uint16(1<<15+k*0x0abd))
		}
	}
	// Mode hard, highlight related, and no term that is related.
	f.Add([]byte(`{"query":{"bool":{"must":[{"match":{"":"0"}}]}},"highlight":{}}`), uint16(4996))
	f.Fuzz(func(t *testing.T, body []byte, bits uint16) {
		before := string(body)
		o, change := fuzzOptions(bits)
		r := expandRequest(t, &Request{Body: body}, func(c *fakeCluster, p *Profile) {
			change(c)
			*p = o
		})
		check.Must(t, string(body) == before, "the request's body was changed to %q", body)
		if r.firstPass() != nil {
			checkFeedback(t, body, r, func(c *fakeCluster, p *Profile) {
				change(c)
				*p = o
			})
		}
		if !r.Rewritten {
			check.Must(t, len(r.Body) == 0 && r.Reason != "", "not rewritten: body %q, reason %q", r.Body, r.Reason)
			return
		}
		check.Must(t, json.Valid(r.Body), "Expand(%q) = %q: not JSON", body, r.Body)
		err := strip(body, r.Body)
		check.That(t, err == nil, "Expand(%q) = %q: %v", body, r.Body, err)
		// Beside vectors neither the pipeline nor the vectors may notice.
		hybrid := dsl.Parser{Hybrid: true}
		if s, why := hybrid.Parse(body, &dsl.Parameters{}); why == "" && (s.Hybrid || s.Compound) {
			was, _ := takeApart(body)
			is, _ := takeApart(r.Body)
			check.That(t, len(was.names) == len(is.names) && !strings.Contains(r.RawQuery, "search_type"), "Expand(%q) = %q, %q", body, r.Body, r.RawQuery)
		}
	})
}

// oddHits are first hits with terms that are written in many ways, or in none.
// Those of fields depend on the search.
func oddHits(fields []string) (hits []FirstHit) {
	for i, terms := range [][]string{
		{"car", "tariff", "quo\"te", "back\\slash", "\u2028", "\x00"}, {"tariff", "", "unheard"}, {}, {"\u6c7d\u8f66", strings.Repeat("long", 1000)},
	} {
		h := FirstHit{ID: strconv.Itoa(i), Score: math.Pow(10, float64(40*i-40)), Fields: map[string]FieldTerms{}}
		for k, name := range fields {
			d := FieldTerms{Terms: terms}
			for n := range terms {
				d.Freqs = append(d.Freqs, float64(n*i+k))
			}
			h.Fields[name] = d
		}
		hits = append(hits, h)
	}
	return append(hits, FirstHit{ID: "none", Score: -1})
}

// checkFeedback adds terms of first hits to a search: what comes out has to
// find what the first result finds.
func checkFeedback(t *testing.T, body []byte, first *Result, change func(c *fakeCluster, o *Profile)) {
	t.Helper()
	pass := first.firstPass()
	check.Must(t, json.Valid(pass.Body), "first pass %q: not JSON", pass.Body)
	hits := oddHits(pass.Fields)
	c, m := rental(t)
	o := widening()
	change(c, &o)
	e := New(c, m, o)
	again := expanded(t, e, &Request{Body: body})
	for _, h := range hits {
		for _, d := range h.Fields {
			for k, term := range d.Terms {
				if _, known := c.docFreqs[term]; !known && term != "unheard" {
					c.docFreqs[term] = int64(1 + k)
				}
			}
		}
	}
	r := withHits(t, e, again, hits)
	check.Must(t, r.firstPass() == nil && (!first.Rewritten || r.Rewritten), "Expand(%q): rewritten %t with feedback, first passes %v", body, r.Rewritten, r.firstPass())
	check.Must(t, !r.Rewritten || json.Valid(r.Body), "Expand(%q) with feedback = %q: not JSON", body, r.Body)
	if r.Rewritten {
		err := strip(body, r.Body)
		check.That(t, err == nil, "Expand(%q) with feedback = %q: %v", body, r.Body, err)
	}
	was, is := foundTerms(first), foundTerms(r)
	check.That(t, slices.Equal(was, is), "Expand(%q) adds %v, with feedback %v", body, was, is)
}

func foundTerms(r *Result) (found []string) {
	for _, c := range r.Clauses {
		for _, a := range c.Added {
			found = append(found, c.Path+" "+c.Field+" "+a.Term)
		}
	}
	return found
}

// FuzzMultiSearch holds the lines of _msearch against the same promise.
func FuzzMultiSearch(f *testing.F) {
	for i, seed := range []string{
		"{}\n" + carRental + "\n", "{\"index\":\"a\"}\r\n" + carRental + "\r\n\n{}\n", "\n{}\n" + carRental + "\n", "{}\n" + carRental,
		"{ } \n" + carRental + "\n{\"search_type\":\"query_then_fetch\"}\n" + carRental + "\n[]\n" + carRental + "\n",
	} {
		for k := range 8 {
			f.Add([]byte(seed), uint16(i+1301*k))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, bits uint16) {
		o, change := fuzzOptions(bits)
		r := expandRequest(t, &Request{Endpoint: EndpointMultiSearch, Body: body}, func(c *fakeCluster, p *Profile) {
			change(c)
			*p = o
		})
		if !r.Rewritten {
			return
		}
		was, is := bytes.Split(body, []byte("\n")), bytes.Split(r.Body, []byte("\n"))
		check.Must(t, len(was) == len(is), "%d lines became %d", len(was), len(is))
		for i := range was {
			if i%2 == 1 {
				err := strip(was[i], is[i])
				check.That(t, err == nil, "line %d: %q became %q: %v", i, was[i], is[i], err)
				continue
			}
			header := bytes.Replace(is[i], []byte(`"search_type":"dfs_query_then_fetch"`), nil, 1)
			if !bytes.Equal(was[i], is[i]) && !bytes.Equal(was[i], header) &&
				!bytes.Equal(was[i], bytes.Replace(header, []byte("{,"), []byte("{"), 1)) && string(header) != "{}" {
				t.Errorf("header %d: %q became %q", i, was[i], is[i])
			}
		}
	})
}
