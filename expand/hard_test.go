package expand

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/simmatrix"
)

func expandHard(tb testing.TB, e *Expander, req Request) *Result {
	tb.Helper()
	if req.Index == "" {
		req.Index = "docs"
	}
	r := expanded(tb, e, &req)
	return r
}

// The figures were worked out apart from the code, by v_j = Σ_i x_i w_i w_j s_ij
// with w the idf in 2,000 documents and s rounded to 16 bits, over ‖Wx‖ = 4.8068
// and the engine's idf in 1,000 documents. The index does not hold "gone".
func TestHardFormExplainsItsTerms(t *testing.T) {
	r := expandHard(t, hardRental(t, nil), Request{Body: []byte(`{"query":{"match":{"body":{"query":"car rental","boost":3}}}}`)})
	var got []string
	for _, a := range r.Clauses[0].Added {
		got = append(got, fmt.Sprintf("%s from %s s=%.4f v=%.4f b=%.4f", a.Term, a.From, a.Similarity, a.Weight, a.Boost))
	}
	want := []string{
		"lease from rental s=0.4000 v=9.8498 b=0.3937",
		"automobile from car s=0.8000 v=9.8065 b=0.4476",
		"hire from rental s=0.5000 v=6.5246 b=0.3888",
	}
	check.Equal(t, want, got)
	check.That(t, strings.Contains(rounded(r.Body), `"value":"lease","boost":1.1812}`), "the clause's boost does not multiply: %s", rounded(r.Body))
}

// A hardWorld is random: S is not symmetric and relates terms of the text to
// each other, and terms may lack weights or be held by no document.
type hardWorld struct {
	terms   []string
	s       map[[2]string]float64
	cluster *fakeCluster
	matrix  *fakeMatrix
	exact   *fakeWeights
}

func newHardWorld(tb testing.TB, rng *rand.Rand) *hardWorld {
	tb.Helper()
	w := &hardWorld{
		s:       map[[2]string]float64{},
		cluster: &fakeCluster{docCount: 10_000, docFreqs: map[string]int64{}, scale: 2.2, scripts: true},
		exact:   &fakeWeights{docs: 3000, docFreqs: map[string]int64{}, scripted: rng.IntN(2) == 0, factor: 1 / 10_000.0},
	}
	rows := map[string][]simmatrix.Neighbor{}
	for i := range 12 {
		term := fmt.Sprintf("t%02d", i)
		w.terms = append(w.terms, term)
		if rng.IntN(8) > 0 {
			w.cluster.docFreqs[term] = 1 + rng.Int64N(9000)
		}
		if rng.IntN(8) > 0 {
			w.exact.docFreqs[term] = 1 + rng.Int64N(3000)
		}
	}
	for _, i := range w.terms {
		for _, j := range w.terms {
			if v := simmatrix.QuantizeSimilarity(rng.Float64()); i != j && v > 0 && rng.IntN(2) == 0 {
				w.s[[2]string{i, j}] = float64(v)
				rows[i] = append(rows[i], simmatrix.Neighbor{Term: j, Similarity: v})
			}
		}
	}
	w.matrix = matrixOf(tb, w.cluster, rows)
	return w
}

func (w *hardWorld) expander(o Profile) *Expander {
	return New(w.cluster, w.matrix, o).WithWeights(w.exact)
}

// weight is the diagonal of W, as the definition says: a term without a row
// counts as one of a single document.
func (w *hardWorld) weight(term string) float64 {
	n, df := float64(w.exact.docs), float64(max(w.exact.docFreqs[term], 1))
	return math.Log(1 + (n-df+0.5)/(df+0.5))
}

// norm is ‖Wy‖.
func (w *hardWorld) norm(y map[string]float64) float64 {
	sum := 0.0
	for term, tf := range y {
		sum += math.Pow(w.weight(term)*tf, 2)
	}
	return math.Sqrt(sum)
}

// product is (Wx)ᵀS(Wy), entry by entry of the whole matrix.
func (w *hardWorld) product(x, y map[string]float64) float64 {
	sum := 0.0
	for _, i := range w.terms {
		for _, j := range w.terms {
			s := w.s[[2]string{i, j}]
			if i == j {
				s = 1
			}
			sum += x[i] * w.weight(i) * s * w.weight(j) * y[j]
		}
	}
	return sum
}

// softNorm is √((Wy)ᵀS(Wy)).
func (w *hardWorld) softNorm(y map[string]float64) float64 { return math.Sqrt(w.product(y, y)) }

// measure is (Wx)ᵀS(Wy)/(‖Wx‖·‖Wy‖), or the soft cosine.
func (w *hardWorld) measure(mode Mode, x, y map[string]float64) float64 {
	sum := w.product(x, y)
	switch {
	case sum == 0:
		return 0
	case mode == ModeSoftCosine:
		return sum / w.softNorm(x) / w.softNorm(y)
	default:
		return sum / w.norm(x) / w.norm(y)
	}
}

// engine scores one document with these fields, whose terms have these
// frequencies, and its norms.
func (w *hardWorld) engine(tb testing.TB, fields map[string]map[string]float64) *engine {
	tb.Helper()
	e := &engine{tb: tb, cluster: w.cluster, linear: map[string]esclient.Linear{}, norms: map[string]float64{}, doc: map[string]map[string]float64{}}
	for field, y := range fields {
		e.doc[field], e.doc[field+".linear"] = y, y
		e.linear[field+".linear"] = linearOf(field, w.exact)
		e.norms["akin_norm."+field], e.norms["akin_soft_norm."+field] = w.norm(y), w.softNorm(y)
	}
	return e
}

// document makes a document of whole frequencies of terms that the index
// holds.
func (w *hardWorld) document(rng *rand.Rand) map[string]float64 {
	y := map[string]float64{}
	for _, term := range w.terms {
		if w.cluster.docFreqs[term] > 0 && rng.IntN(3) == 0 {
			y[term] = float64(1 + rng.IntN(9))
		}
	}
	return y
}

// TestHardFormComputesTheMeasure holds the score of what is written, as an
// engine computes it, against the definition, in one field and in several.
func TestHardFormComputesTheMeasure(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	positive := 0
	for n := range rounds(400) {
		w := newHardWorld(t, rng)
		var words []string
		x := map[string]float64{}
		for range 1 + rng.IntN(5) {
			term := w.terms[rng.IntN(4)]
			words = append(words, term)
			x[term]++
		}
		text := strings.Join(words, " ")
		body, title := w.document(rng), w.document(rng)
		mode := []Mode{ModeHard, ModeSoftCosine}[n/2%2]
		inBody, inTitle := w.measure(mode, x, body), w.measure(mode, x, title)
		best := max(3*inBody, 2*inTitle)
		for query, want := range map[string]float64{
			`{"match":{"body":{"query":"` + text + `","boost":2.5}}}`:                                                            2.5 * inBody,
			`{"multi_match":{"query":"` + text + `","fields":["body^3","title^2"],"tie_breaker":0.3}}`:                           best + 0.3*(3*inBody+2*inTitle-best),
			`{"multi_match":{"query":"` + text + `","fields":["body^0.5","title"],"type":"most_fields"}}`:                        0.5*inBody + inTitle,
			`{"bool":{"must":[{"match":{"body":"` + text + `"}}],"should":[{"match":{"title":{"query":"` + text + `"}}}]}}`:      inBody + inTitle,
			`{"multi_match":{"query":"` + text + `","fields":["body","title^3"],"minimum_should_match":1,"type":"best_fields"}}`: max(inBody, 3*inTitle),
		} {
			o := with(func(o *Profile) { // which heeds nothing of the other modes
				o.Mode, o.Scoring, o.NoRescore, o.MaxAddedTerms, o.MaxDocShare, o.NormalizeScores = mode, form.Linear, n%2 == 0, 1, 0.001, true
				o.SoftWeight = 1
			})
			r := expandHard(t, w.expander(o), Request{Body: []byte(`{"query":` + query + `}`)})
			e := w.engine(t, map[string]map[string]float64{"body": body, "title": title})
			got := e.search(r.Body, "query")
			if strings.Contains(query, `"bool"`) && !got.found && inBody == 0 {
				continue // the title alone is not enough
			}
			if got.score > 0 {
				positive++
			}
			check.Must(t, math.Abs(got.score-want) <= 1e-6*max(1, want) && got.found == (want > 0), "case %d: found %t, score %v; the measure is %v of\n%v, %v by\n%s", n, got.found, got.score, want, body, title, r.Body)
		}
	}
	check.That(t, positive >= rounds(1000), "%d documents have a score, the test shows little", positive)
}

// What the original finds; with matching widen also what any related word is
// in, or for a clause that counts words one of each; and a count finds the
// same.
func TestHardFormFindsWhatItShould(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	widened := 0
	for _, matching := range []bool{false, true} {
		hard := hardRental(t, func(_ *fakeCluster, _ *fakeWeights, o *Profile) { o.Matching = sameIf(matching) })
		c, m := rental(t)
		bm25 := New(c, m, with(func(o *Profile) {
			o.Scoring, o.Matching, o.MaxAddedTerms, o.MaxDocShare = form.Linear, sameIf(matching), 1000, 1
		}))
		for range rounds(200) {
			query := randomQuery(rng, 0)
			body := writing{size: "10"}.expanded(t, hard, query)
			check.Must(t, strings.Contains(query, "cross_fields") == !strings.Contains(string(body), "function_score"), "%s became %s", query, body)
			count := writing{size: "0"}.expanded(t, hard, query)
			linear := writing{size: "10"}.expanded(t, bm25, query)
			for range 10 {
				doc := document(rng.IntN, []string{"body", "title"}, rentalTerms)
				e := &engine{tb: t, cluster: c, doc: doc, linear: map[string]esclient.Linear{}}
				for _, field := range []string{"body", "title"} {
					e.linear[field+".linear"], doc[field+".linear"] = linearOf(field, rentalWeights()), doc[field]
				}
				original := e.search([]byte(`{"query":`+query+`}`), "query").found
				got := e.search(body, "query").found
				check.Must(t, (!matching || got == original) && (!original || got) && (!e.search(linear, "query").found || got), "found %t with same matches %t in %v by\n%s\nthe original: %t", got, matching, doc, body, original)
				counted := e.search(count, "query").found
				check.Must(t, counted == got, "found %t, counted %t in %v by\n%s\n%s", got, counted, doc, body, count)
				if got && !original {
					widened++
				}
			}
		}
	}
	check.That(t, widened != 0, "no search was widened")
}

func TestHardFormIsCutByWhatTermsBring(t *testing.T) {
	// v is 9.85 for lease, 9.81 for automobile and 6.52 for hire; in the title all
	// count twice.
	const both = `{"query":{"multi_match":{"query":"car rental","fields":["body","title^2"]}}}`
	base := 4 + 4 // the original and the terms of the text
	for added, want := range map[int][2]string{
		6: {"lease automobile hire", "lease automobile hire"},
		5: {"lease automobile", "lease automobile hire"},
		4: {"lease", "lease automobile hire"},
		3: {"", "lease automobile hire"},
		2: {"", "lease automobile"},
		0: {"", ""},
	} {
		e := hardRental(t, nil)
		e.limits.Learn(Limit{LimitClauses, "docs", int64(base + added)})
		r := expandHard(t, e, Request{Body: []byte(both)})
		for i, c := range r.Clauses {
			var found []string
			for _, a := range c.Added {
				found = append(found, a.Term)
			}
			why := reason.Reason("")
			if len(found) < 3 {
				why = reason.Truncated
			}
			got := strings.Join(found, " ")
			check.That(t, got == want[i] && c.Reason == why && c.Form == "hard", "%d added, field %d: %q, form %q, reason %q; want %q", added, i, got, c.Form, c.Reason, want[i])
		}
	}
	e := hardRental(t, nil)
	e.limits.Learn(Limit{LimitClauses, "docs", int64(base - 1)})
	if r := expandHard(t, e, Request{Body: []byte(both)}); r.Rewritten || r.Reason != reason.TermLimit {
		t.Errorf("rewritten %t, reason %q although not even the text's terms fit in", r.Rewritten, r.Reason)
	}
}

// TestHardFormKeepsUnderTheLimit also holds counts to what the searches find.
func TestHardFormKeepsUnderTheLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	cut := 0
	for range 300 {
		e := hardRental(t, nil)
		query := randomQuery(rng, 0)
		if strings.Contains(query, "cross_fields") {
			continue
		}
		free := writing{size: "10"}.expanded(t, e, query)
		limit := 1 + rng.IntN(60)
		e.limits.Learn(Limit{LimitClauses, "docs", int64(limit)})
		bodies := map[string][]byte{}
		for _, size := range []string{"0", "10"} {
			bodies[size] = writing{size: size}.expanded(t, e, query)
			counter, original := &engine{tb: t, cluster: &fakeCluster{}}, &engine{tb: t, cluster: &fakeCluster{}}
			counter.search(bodies[size], "query")
			original.search([]byte(`{"query":`+query+`}`), "query")
			check.Must(t, counter.clauseCount <= max(limit, original.clauseCount), "%d clauses, limit %d:\n%s", counter.clauseCount, limit, bodies[size])
		}
		for _, term := range []string{"lease", "automobile", "hire"} {
			value := `"` + term + `"`
			if strings.Contains(query, term) {
				continue // the measure has the terms of the text, too
			}
			check.Must(t, strings.Contains(string(bodies["0"]), value) == strings.Contains(string(bodies["10"]), value), "%s is counted or searched for alone with limit %d:\n%s\n%s", term, limit, bodies["0"], bodies["10"])
		}
		if string(free) != string(bodies["10"]) {
			cut++
		}
	}
	check.That(t, cut != 0, "no search was cut")
}

// TestHardFormIsNotWrittenTooDeep goes down level by level.
func TestHardFormIsNotWrittenTooDeep(t *testing.T) {
	for _, clause := range []string{
		`{"match":{"body":"car rental"}}`,
		`{"match":{"body":{"query":"car rental","operator":"and"}}}`,
		`{"multi_match":{"query":"car rental","fields":["body","title"]}}`,
		`{"multi_match":{"query":"car rental","fields":["body","title"],"operator":"and"}}`,
	} {
		for _, matching := range []bool{false, true} {
			e := hardRental(t, func(_ *fakeCluster, _ *fakeWeights, o *Profile) { o.Matching = sameIf(matching) })
			deepest := 0
			for depth := range maxLevels {
				query := nestedIn(depth, clause)
				r := expandHard(t, e, Request{Body: []byte(`{"query":` + query + `}`)})
				if r.Clauses[0].Form != "hard" {
					continue
				}
				written := &engine{tb: t, cluster: &fakeCluster{}}
				if written.search(r.Body, "query"); written.depth > maxLevels {
					t.Errorf("depth %d: %d levels", depth, written.depth)
				}
				deepest = max(deepest, written.depth)
			}
			check.Equal(t, maxLevels, deepest, clause, matching)
		}
	}
}

// With the clause itself and the terms of the text as many as clusters take
// where they say nothing, else as they say, but for a 64th.
func TestHardFormHasABoundOnItsTerms(t *testing.T) {
	c := &fakeCluster{docCount: 1000, docFreqs: map[string]int64{"car": 3, "bus": 3}}
	rows := map[string][]simmatrix.Neighbor{}
	neighbors := make([]string, 12_000)
	for k := range neighbors {
		neighbors[k] = fmt.Sprintf("n%05d", k)
		c.docFreqs[neighbors[k]] = 2
		of := []string{"car", "bus"}[k%2]
		rows[of] = append(rows[of], simmatrix.Neighbor{Term: neighbors[k], Similarity: float32(12_000-k) / 65535})
	}
	m := matrixOf(t, c, rows)
	f := rentalWeights()
	f.docFreqs["bus"] = f.docFreqs["car"]
	for _, limit := range []int{0, 300, 5000, 50_000} {
		e := New(c, m, with(func(o *Profile) { o.Mode = ModeHard })).WithWeights(f)
		if limit > 0 {
			e.limits.Learn(Limit{LimitClauses, "docs", int64(limit)})
		}
		for query, words := range map[string]int{
			`{"match":{"body":"car bus"}}`:                                    2 + 2,
			`{"multi_match":{"query":"car bus","fields":["body","title^2"]}}`: 4 + 4,
		} {
			r := expandHard(t, e, Request{Body: []byte(`{"query":` + query + `}`)})
			want := map[int]int{0: 1024 - 16, 300: 300 - 4, 5000: 5000 - 78}[limit] - words
			if limit == 50_000 {
				want = maxExactTerms
			}
			check.Equal(t, want, r.AddedTerms(), limit, query)
			for _, cl := range r.Clauses {
				n := len(cl.Added)
				check.That(t, cl.Reason == reason.Truncated && (n <= 0 || cl.Added[n-1].Term == neighbors[n-1]), "limit %d, %s: %d terms, reason %q, not the best ones", limit, query, n, cl.Reason)
			}
			written := &engine{tb: t, cluster: &fakeCluster{}}
			if written.search(r.Body, "query"); written.clauseCount != want+words {
				t.Errorf("limit %d, %s: %d clauses", limit, query, written.clauseCount)
			}
		}
	}
}

func TestFieldsShareTheNeighborsThatAreLookedAt(t *testing.T) {
	for _, tt := range []struct{ sizes, want []int }{
		{[]int{5, 5}, []int{5, 5}},
		{[]int{50, 50}, []int{10, 10}},
		{[]int{3, 50, 0}, []int{3, 17, 0}},
		{[]int{50, 4, 6, 50}, []int{5, 4, 5, 5}},
		{[]int{20, 0}, []int{20, 0}},
	} {
		var targets []*target
		for _, n := range tt.sizes {
			neighbors := make([]simmatrix.Neighbor, n)
			for k := range neighbors {
				neighbors[k] = simmatrix.Neighbor{Term: fmt.Sprintf("n%02d", k), Similarity: 0.9}
			}
			row, err := simmatrix.PackRow(1, neighbors)
			check.OK(t, err)
			f := &target{Field: &form.Field{Terms: new(terms.Selection)}, rows: &fakeMatrix{}}
			f.Terms.Start(terms.Read([]string{"a"}, []int{0}))
			f.Terms.Origins[0].Row = row
			targets = append(targets, f)
		}
		gather(targets, 20)
		for i, c := range targets {
			n := len(c.Terms.Candidates)
			check.That(t, n == tt.want[i] && c.Truncated == (n < tt.sizes[i]), "of %v, field %d: %d are left, truncated %t; want %v", tt.sizes, i, n, c.Truncated, tt.want)
		}
	}
}

func TestManySearchesInOneRequestShareTheTermsOfTheHardForm(t *testing.T) {
	const words, neighbors, searches = 60, 200, maxSearches
	c := &fakeCluster{docCount: 1000, docFreqs: map[string]int64{}, scale: 2.2, scripts: true}
	rows, text := map[string][]simmatrix.Neighbor{}, make([]string, words)
	for i := range text {
		text[i] = fmt.Sprintf("word%d", i)
		c.docFreqs[text[i]] = 5
		for k := range neighbors {
			term := fmt.Sprintf("neighbor%d-%d", i, k)
			c.docFreqs[term] = int64(1 + k)
			rows[text[i]] = append(rows[text[i]], simmatrix.Neighbor{Term: term, Similarity: float32(neighbors-k) / 256})
		}
	}
	f := rentalWeights()
	e := New(c, matrixOf(t, c, rows), with(func(o *Profile) { o.Mode = ModeHard })).WithWeights(f)
	body := []byte(strings.Repeat("{}\n"+`{"query":{"match":{"body":"`+strings.Join(text, " ")+`"}}}`+"\n", searches))
	for _, limit := range []int{0, 1 << 17} {
		if limit > 0 {
			e.limits.Learn(Limit{LimitClauses, "docs", int64(limit)})
		}
		if !raceEnabled {
			expandHard(t, e, Request{Endpoint: EndpointMultiSearch, Body: body}) // fills the memory that is used again
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := expandHard(t, e, Request{Endpoint: EndpointMultiSearch, Body: body})
		runtime.ReadMemStats(&after)
		n := r.AddedTerms()
		check.That(t, n == maxSharedTerms && r.Clauses[searches-1].Reason == reason.Truncated, "limit %d: %d terms added, reason %q", limit, n, r.Clauses[searches-1].Reason)
		check.That(t, len(r.Body) <= 8<<20, "limit %d: %d bytes became %d", limit, len(body), len(r.Body))
		allocated := after.TotalAlloc - before.TotalAlloc
		t.Logf("limit %d: %d bytes became %d, %d allocated", limit, len(body), len(r.Body), allocated)
		if allocated > 128<<20 && !raceEnabled { // with it, memory that is used again is dropped now and then
			t.Errorf("limit %d: %d bytes allocated", limit, allocated)
		}
	}
	few := expandHard(t, e, Request{Endpoint: EndpointMultiSearch, Body: body[:2*len(body)/searches]})
	check.Equal(t, 2*maxExactTerms, few.AddedTerms(), "terms added to two searches")
}

// meeting is a cluster and a matrix whose calls wait for each other.
type meeting struct {
	*fakeCluster
	*fakeMatrix
	before func(call string)
}

func (m *meeting) Pin() Pinned { return m }

func (m *meeting) For(context.Context, esclient.Indices, string) (Bound, error) {
	return Bound{Rows: m}, nil
}

func (m *meeting) Rows(ctx context.Context, of []string, rows []simmatrix.Row) error {
	m.before("rows")
	return m.fakeMatrix.Rows(ctx, of, rows)
}

func (m *meeting) Statistics(ctx context.Context, i esclient.Indices, field string, of []string, docFreqs []int64) (esclient.FieldStatistics, error) {
	m.before("statistics")
	return m.fakeCluster.Statistics(ctx, i, field, of, docFreqs)
}

func (m *meeting) Analyze(ctx context.Context, indices esclient.Indices, field, analyzer, text string) (*esclient.Analysis, error) {
	m.before("terms")
	return m.fakeCluster.Analyze(ctx, indices, field, analyzer, text)
}

// No call goes on before those have begun that it is not to be waited for by.
// The linear field is asked about while the terms and their rows are, and the
// weights while the statistics are.
func TestHardFormAsksSideBySide(t *testing.T) {
	begun := map[string]chan struct{}{}
	for _, call := range []string{"terms", "rows", "linear", "weights", "statistics"} {
		begun[call] = make(chan struct{})
	}
	await := map[string]string{"terms": "linear", "linear": "rows", "weights": "statistics", "statistics": "weights"}
	before := func(call string) {
		close(begun[call])
		if await[call] == "" {
			return
		}
		select {
		case <-begun[await[call]]:
		case <-time.After(10 * time.Second):
			t.Errorf("%s waits for %s", await[call], call)
		}
	}
	c, m := rental(t)
	f := rentalWeights()
	f.before = before
	world := &meeting{c, m, before}
	r := expandHard(t, New(world, world, with(func(o *Profile) { o.Mode = ModeHard })).WithWeights(f), Request{Body: []byte(carRental)})
	check.Equal(t, "hard", r.Clauses[0].Form, r.Clauses)
}

func TestHardFormHighlightsTheSearchedField(t *testing.T) {
	for name, tt := range map[string]struct {
		highlight  bool
		text, want string
	}{
		"original": {false, "car", `"highlight":{"highlight_query":{"match":{"body":"car"}},"fields"`},
		"related":  {true, "car", `"highlight":{"highlight_query":{"bool":{"should":[{"match":{"body":"car"}},{"term":{"body":{"value":"automobile"}}},{"term":{"body":{"value":"lease"}}}]}},"fields"`},
		// Still needed: the words of body.linear would be marked for "fields": {"*": {}}.
		"nothing related": {true, "zebra", `"highlight":{"highlight_query":{"match":{"body":"zebra"}},"fields"`},
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"query":{"match":{"body":"` + tt.text + `"}},"highlight":{"fields":{"body":{}}}}`
			r := expandHard(t, hardRental(t, func(_ *fakeCluster, _ *fakeWeights, o *Profile) { o.MarkRelated = tt.highlight }), Request{Body: []byte(body)})
			check.That(t, strings.Contains(string(r.Body), tt.want) && strings.Contains(string(r.Body), "reciprocal") && json.Valid(r.Body), "got\n%s\nwant in it\n%s", r.Body, tt.want)
		})
	}
}
