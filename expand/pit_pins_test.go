package expand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/simmatrix"
)

// A world is a cluster and a matrix that can be exchanged for others while an
// expander uses them.
type world struct {
	cluster atomic.Pointer[fakeCluster]
	matrix  atomic.Pointer[fakeMatrix]
	// fields and graph replace what fakeCluster answers, where they are set.
	fields []string
	graph  bool
	// before, unless nil, is called before each analysis.
	before func() error
	// fieldsErr is what Fields returns, unless nil.
	fieldsErr error
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := new(world)
	c, m := rental(tb)
	c.stopWords = "the"
	w.cluster.Store(c)
	w.matrix.Store(m)
	return w
}

// change makes everything different: the neighbors, the statistics, the scale,
// the number of shards, scripts, synonyms and the fields.
func (w *world) change(tb testing.TB) {
	tb.Helper()
	c := &fakeCluster{
		docCount: 5000, scale: 1, scripts: false, shards: 3, synonyms: map[string]string{"car": "vehicle"},
		docFreqs: map[string]int64{"car": 500, "rental": 7, "wagon": 11, "loan": 40, "boat": 3, "sofa": 9},
	}
	w.cluster.Store(c)
	w.matrix.Store(matrixOf(tb, c, map[string][]simmatrix.Neighbor{
		"car":     {{Term: "wagon", Similarity: 0.7}},
		"vehicle": {{Term: "boat", Similarity: 0.7}},
		"rental":  {{Term: "loan", Similarity: 0.6}},
		"zebra":   {{Term: "sofa", Similarity: 0.9}},
		"the":     {{Term: "sofa", Similarity: 0.9}},
	}))
	w.fields = []string{"body", "title", "unbound", "zone"}
	w.graph = false
}

func (w *world) Analyze(ctx context.Context, indices esclient.Indices, field, analyzer, text string) (*esclient.Analysis, error) {
	if w.before != nil {
		if err := w.before(); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a, err := w.cluster.Load().Analyze(ctx, indices, field, analyzer, text)
	if err == nil {
		a.Graph = w.graph
	}
	return a, err
}

func (w *world) Statistics(ctx context.Context, i esclient.Indices, field string, terms []string, docFreqs []int64) (esclient.FieldStatistics, error) {
	return w.cluster.Load().Statistics(ctx, i, field, terms, docFreqs)
}

func (w *world) DocumentTerms(
	ctx context.Context, i esclient.Indices, field string, docs []esclient.StoredDocument, filter esclient.TermFilter,
) (*esclient.DocumentTerms, error) {
	return w.cluster.Load().DocumentTerms(ctx, i, field, docs, filter)
}

func (w *world) Fields(ctx context.Context, i esclient.Indices, pattern string) ([]string, error) {
	if w.fieldsErr != nil || w.fields != nil {
		return w.fields, w.fieldsErr
	}
	return w.cluster.Load().Fields(ctx, i, pattern)
}

func (w *world) ReadsQuery(ctx context.Context, pipeline string) (bool, error) {
	return w.cluster.Load().ReadsQuery(ctx, pipeline)
}

func (w *world) Pin() Pinned { return w.matrix.Load() }

var (
	_ Cluster  = (*world)(nil)
	_ Matrices = (*world)(nil)
)

// pitPage is a page of the point in time with the number given.
func pitPage(pit int, query, more string) string {
	return fmt.Sprintf(`{%s,"query":%s,"size":3%s}`, pitMember(pit), query, more)
}

func pitMember(pit int) string { return fmt.Sprintf(`"pit":{"id":%q}`, pitIDs[pit].id) }

// nextPage makes a page, as it is written, a later one; it leaves "" as it is.
func nextPage(body string) string {
	if body == "" {
		return ""
	}
	return strings.TrimSuffix(body, "}") + secondPage + "}"
}

func expandPage(tb testing.TB, e *Expander, body string) *Result {
	tb.Helper()
	r := expanded(tb, e, &Request{Body: []byte(body)})
	return r
}

const secondPage = `,"search_after":[1.5]`

// TestPagesOfAPointInTimeAreWrittenLikeTheFirst changes all that expansion asks
// for between the pages. Beside a field with neighbors stands another that is left
// alone on the first page, and would not be on the second.
func TestPagesOfAPointInTimeAreWrittenLikeTheFirst(t *testing.T) {
	hard := func(o *Profile) { o.Mode = ModeHard }
	for name, tt := range map[string]struct {
		query, more string
		change      func(o *Profile)
		alone       bool // nothing is written, then or later
	}{
		"alone":                 {query: carMatch},
		"no neighbors beside":   {query: `{"bool":{"must":[` + carMatch + `,{"match":{"body":"zebra"}}]}}`},
		"a pattern":             {query: `{"multi_match":{"query":"car","fields":["*"]}}`},
		"highlighted":           {query: carMatch, more: `,"highlight":{"fields":{"body":{}}}`},
		"hard":                  {query: carMatch, change: hard},
		"all without neighbors": {query: `{"match":{"body":"zebra"}}`, alone: true},
		"all without text":      {query: `{"match":{"sku":"car"}}`, alone: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, f := newWorld(t), rentalWeights()
			o := widening()
			if tt.change != nil {
				tt.change(&o)
			}
			e := New(w, w, o).WithWeights(f)
			first := expandPage(t, e, pitPage(0, tt.query, tt.more))
			check.Must(t, first.Rewritten != tt.alone && strings.Contains(string(first.Body), "reciprocal") == (name == "hard"), "rewritten %t: %s", first.Rewritten, first.Body)
			direct := expanded(t, e, &Request{Index: "pit-one", Body: []byte(`{"query":` + tt.query + `,"size":3` + tt.more + secondPage + `}`)})
			check.Equal(t, string(direct.Body), nextPage(strings.Replace(string(first.Body), pitMember(0)+",", "", 1)), "the first page differs from a search without a point in time (-without +with)")
			w.change(t)
			f.docFreqs, f.linearErr = map[string]int64{"car": 3}, esclient.ErrNoNorms
			e.limits.Learn(Limit{LimitClauses, "", 5})
			for range 2 {
				next := expandPage(t, e, pitPage(0, tt.query, tt.more+secondPage))
				check.Equal(t, nextPage(string(first.Body)), string(next.Body), "the second page is written otherwise (-first +second)")
				diff := cmp.Diff(first.Clauses, next.Clauses)
				check.That(t, diff == "" && first.RawQuery == next.RawQuery && first.Reason == next.Reason, "the second page is explained otherwise (-first +second):\n%s", diff)
			}
			fresh := expandPage(t, e, pitPage(1, tt.query, ""))
			check.That(t, !bytes.Contains(fresh.Body, []byte("automobile")) && (!cmp.Equal(first.Clauses, fresh.Clauses) || name == "all without text"), "a new point in time keeps what the old one got: %s", fresh.Body)
		})
	}
}

// Each differs from the first in something that its terms depend on.
func TestOtherSearchesOnAPointInTimeGetTheirOwnTerms(t *testing.T) {
	w := newWorld(t)
	options := with(func(o *Profile) { o.Scoring = form.Linear })
	e := New(w, w, options)
	const query = `{"match":{"body":{"query":"car","analyzer":"simple"}}}`
	expandPage(t, e, pitPage(0, query, ""))
	w.change(t)
	for name, tt := range map[string]struct {
		query, more string
		e           *Expander
		old         bool
	}{
		"the same":       {query, "", e, true},
		"other spaces":   {` {"match" : {"body":{"query":"car", "analyzer":"simple"}}}`, "", e, true},
		"other order":    {`{"match":{"body":{"analyzer":"simple","query":"car"}}}`, "", e, true},
		"other boost":    {`{"match":{"body":{"query":"car","analyzer":"simple","boost":2}}}`, "", e, false},
		"other text":     {`{"match":{"body":{"query":"car rental","analyzer":"simple"}}}`, "", e, false},
		"one more":       {`{"bool":{"must":[` + query + `,{"match":{"body":"car"}}]}}`, "", e, false},
		"runtime fields": {query, `,"runtime_mappings":{"x":{"type":"long"}}`, e, false},
		"other options":  {query, "", e.With(options), false},
		"other matrices": {query, "", e.WithMatrices(w), false},
	} {
		r := expandPage(t, tt.e, pitPage(0, tt.query, tt.more))
		check.Equal(t, tt.old, bytes.Contains(r.Body, []byte("automobile")), name, string(r.Body), "old terms")
	}
}

// What decides whether related words find, or put hits in order, may stand
// beside the query.
func TestSearchesOnAPointInTimeThatUseScoresOtherwiseAreExpandedApart(t *testing.T) {
	const query = `{"match":{"body":"car rental"}}`
	for name, tt := range map[string]struct {
		more   string
		fixed  reason.Reason
		enough int
	}{
		"sorted":           {`,"sort":["price"]`, "", 0},
		"the first alone":  {`,"terminate_after":5`, "", 0},
		"beside vectors":   {`,"knn":{"field":"v","query_vector":[1],"k":1,"num_candidates":1}`, "", 0},
		"answered later":   {"", reason.Endpoint, 0},
		"sorted by scores": {`,"sort":["_score"]`, "", 50},
	} {
		c, m := rental(t)
		e := New(c, m, with(auto))
		req := &Request{Body: []byte(pitPage(0, query, tt.more)), Fixed: tt.fixed}
		alone := expanded(t, e, req)
		e = New(c, m, with(auto))
		check.Equal(t, 50, expandPage(t, e, pitPage(0, query, "")).Parts[0].Enough.Hits, name)
		r := expanded(t, e, req)
		check.Equal(t, tt.enough, r.Parts[0].Enough.Hits, name)
		check.Equal(t, string(alone.Body), string(r.Body), name)
	}
}

// With fewer terms than the clauses have use for, it matters which is the
// first.
func TestMembersOfAPageMayChangeTheirOrder(t *testing.T) {
	w := newWorld(t)
	e := New(w, w, with(func(o *Profile) { o.Scoring, o.MaxAddedTerms = form.Linear, 3 }))
	const must, should = `"must":[{"match":{"body":"car"}}]`, `"should":[{"match":{"body":"rental"}}]`
	first := expandPage(t, e, pitPage(0, `{"bool":{`+must+`,`+should+`}}`, ""))
	w.change(t)
	next := expandPage(t, e, pitPage(0, `{"bool":{`+should+`,`+must+`}}`, secondPage))
	diff := cmp.Diff(first.Clauses, next.Clauses)
	check.That(t, diff == "" && first.AddedTerms() == 3, "(-first +second):\n%s", diff)
}

// Only the first page could be, because the others have a search_after, and
// scores would not go on from one to the next.
func TestPointsInTimeAreNotRescored(t *testing.T) {
	for _, o := range []Profile{widening(), with(func(o *Profile) { o.NoRescore = false })} {
		w := newWorld(t)
		e := New(w, w, o)
		for _, more := range []string{"", `,"from":10`, secondPage, `,"sort":["_score"]`} {
			r := expandPage(t, e, pitPage(0, `{"match":{"body":"car"}}`, more))
			c := r.Clauses[0]
			check.That(t, r.Rewritten && c.Phase == "query" && c.Form == "saturated" && c.Reason == reason.PointInTime, "with %s: %+v", more, c)
		}
	}
}

// Search_after goes on with the scores of the original, which went out in place
// of the first page.
func TestWhereTheFirstPageFailedAllAreLeftAlone(t *testing.T) {
	broken := errors.New("broken")
	const query = `{"multi_match":{"query":"car","fields":["bod*"]}}`
	for name, breaks := range map[string]func(w *world){
		"analysis":   func(w *world) { w.cluster.Load().analyzeErr = broken },
		"statistics": func(w *world) { w.cluster.Load().statisticsErr = broken },
		"rows":       func(w *world) { w.matrix.Load().err = broken },
		"fields":     func(w *world) { w.fieldsErr = broken },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			breaks(w)
			e := New(w, w, widening())
			_, err := e.Expand(t.Context(), &Request{Body: []byte(pitPage(0, query, ""))})
			check.Must(t, errors.Is(err, broken), "error %v", err)
			healed := newWorld(t)
			w.cluster.Store(healed.cluster.Load())
			w.matrix.Store(healed.matrix.Load())
			w.fieldsErr = nil
			for range 2 {
				r := expandPage(t, e, pitPage(0, query, secondPage))
				check.That(t, !r.Rewritten && r.Reason == reason.PITFirstPage, "rewritten: %t, reason %q", r.Rewritten, r.Reason)
			}
			if r := expandPage(t, e, pitPage(1, query, "")); !r.Rewritten {
				t.Errorf("a new point in time: reason %q", r.Reason)
			}
			if r := expandPage(t, e, pitPage(0, `{"match":{"body":"rental"}}`, "")); !r.Rewritten {
				t.Errorf("another search: reason %q", r.Reason)
			}
		})
	}
}

// Where the time was up the original went out, and where the client had gone
// nothing did.
func TestOnlyPagesThatSomebodyGotCount(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-late.Done()
	page := []byte(pitPage(0, `{"match":{"body":"car"}}`, ""))
	for name, ctx := range map[string]context.Context{"gone": ended, "late": late} {
		w := newWorld(t)
		e := New(w, w, widening())
		if _, err := e.Expand(ctx, &Request{Body: page}); !errors.Is(err, ctx.Err()) {
			t.Fatalf("%s: error %v", name, err)
		}
		first := expandPage(t, e, string(page))
		check.Equal(t, name == "gone", first.Rewritten, name, first.Reason)
		next, err := e.Expand(late, &Request{Body: page})
		check.That(t, err == nil && bytes.Equal(next.Body, first.Body), "%s: what is remembered needs no time: error %v", name, err)
	}
}

// TestOneOfTheFirstPagesCounts lets a page come while another, with the same
// search, waits for the cluster.
func TestOneOfTheFirstPagesCounts(t *testing.T) {
	broken := errors.New("broken")
	page := pitPage(0, `{"match":{"body":"car"}}`, "")
	for name, tt := range map[string]struct {
		inner, outer error
		rewritten    bool
	}{
		"both work":        {nil, nil, true},
		"the later fails":  {nil, broken, true},
		"the former fails": {broken, nil, false},
		"both fail":        {broken, broken, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			e := New(w, w, widening())
			var inner *Result
			w.before = func() error {
				w.before = func() error { return tt.inner }
				inner, _ = e.Expand(t.Context(), &Request{Body: []byte(page)})
				w.change(t)
				return tt.outer
			}
			outer, err := e.Expand(t.Context(), &Request{Body: []byte(page)})
			w.before = nil
			if tt.inner != nil && tt.outer != nil {
				check.That(t, errors.Is(err, broken), "error %v", err)
				outer = expandPage(t, e, page)
			} else if err != nil {
				t.Fatal(err)
			}
			check.That(t, outer.Rewritten == tt.rewritten && (!outer.Rewritten || bytes.Equal(inner.Body, outer.Body)), "rewritten: %t, want %t\n%s", outer.Rewritten, tt.rewritten, outer.Body)
		})
	}
}

// TestSlicesOfAPointInTimeGetTheSameTerms sends them at the same time, while the
// matrix changes.
func TestSlicesOfAPointInTimeGetTheSameTerms(t *testing.T) {
	w := newWorld(t)
	e := New(w, w, widening())
	old, changed := w.matrix.Load(), newWorld(t)
	changed.change(t)
	bodies := make([]string, 16)
	var all sync.WaitGroup
	for i := range bodies {
		all.Go(func() {
			w.matrix.Store([]*fakeMatrix{old, changed.matrix.Load()}[i%2])
			r, err := e.Expand(t.Context(), &Request{Body: []byte(pitPage(0, `{"match":{"body":"car rental"}}`, ""))})
			if err != nil {
				t.Error(err)
				return
			}
			bodies[i] = string(r.Body)
		})
	}
	all.Wait()
	for _, body := range bodies {
		check.Equal(t, bodies[0], body, "written differently")
	}
}

// TestMemoryOfPointsInTimeIsBounded remembers more searches than there is room
// for.
func TestMemoryOfPointsInTimeIsBounded(t *testing.T) {
	w := newWorld(t)
	e := New(w, w, with(func(o *Profile) { o.Scoring = form.Linear }))
	heaviest := 0
	for i := range 2000 {
		var text strings.Builder
		text.WriteString("car")
		for k := range 63 {
			fmt.Fprintf(&text, " %060d", 100*i+k)
		}
		body := pitPage(0, `{"match":{"body":"`+text.String()+`"}}`, "")
		r := expandPage(t, e, body)
		check.Must(t, r.Rewritten, "%v", r.Reason)
		if i%100 == 99 {
			heaviest = max(heaviest, int(e.pits.Stats().Bytes))
		}
	}
	n := int(e.pits.Stats().Entries)
	check.That(t, heaviest <= maxPITBytes && heaviest >= maxPITBytes/2 && n < 2000, "%d searches, at most %d bytes, want at most %d", n, heaviest, maxPITBytes)
	// 64 terms of 60 bytes, in the query and twice in its explanation.
	each := int(e.pits.Stats().Bytes) / n
	check.That(t, each >= 2*64*60 && each <= 4*64*60, "a search weighs %d bytes", each)
}

func TestPagesThatAreOnlyLookedAtDecideNothing(t *testing.T) {
	const query = `{"match":{"body":"car"}}`
	w := newWorld(t)
	e := New(w, w, widening())
	w.cluster.Load().analyzeErr = errors.New("broken")
	check.Must(t, check.ErrOf(e.Expand(t.Context(), &Request{Body: []byte(pitPage(0, query, "")), Preview: true})) != nil, "no error")
	w.cluster.Load().analyzeErr = nil
	looked, err := e.Expand(t.Context(), &Request{Body: []byte(pitPage(0, query, "")), Preview: true})
	if err != nil || !looked.Rewritten {
		t.Fatal(looked, err)
	}
	w.change(t)
	r := expandPage(t, e, pitPage(0, query, ""))
	check.That(t, r.Rewritten && string(r.Body) != string(looked.Body), "reason %q: the page that is sent is to be expanded by what holds now:\n%s", r.Reason, r.Body)
}

// laterWeights are weights that can be exchanged for others.
type laterWeights struct{ *fakeWeights }

// A whole matrix in memory would stay there for as long as the pages of a point
// in time are remembered, however often the matrix is replaced.
func TestAPointInTimeHoldsNoMatrix(t *testing.T) {
	for name, query := range map[string]string{
		"saturated":        `{"match":{"body":"car rental"}}`,
		"several fields":   `{"multi_match":{"query":"car rental","fields":["body","title","unbound"]}}`,
		"no neighbors":     `{"match":{"body":"zebra"}}`,
		"hard":             `{"match":{"body":"car"}}`,
		"hard, not to use": `{"match":{"bare":"car"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			weights := &laterWeights{rentalWeights()}
			o := widening()
			if strings.HasPrefix(name, "hard") {
				o.Mode = ModeHard
			}
			e := New(w, w, o).WithWeights(weights)
			held, heldWeights := weak.Make(w.matrix.Load()), weak.Make(weights.fakeWeights)
			first := expandPage(t, e, pitPage(0, query, ""))
			w.change(t)
			weights.fakeWeights = rentalWeights()
			for range 3 { // what pools of memory hold goes after two
				runtime.GC()
			}
			check.That(t, held.Value() == nil && heldWeights.Value() == nil, "what the first page was expanded with is held: matrix %t, weights %t", held.Value() != nil, heldWeights.Value() != nil)
			next := expandPage(t, e, pitPage(0, query, ""))
			check.That(t, next.Clauses[0].Matrix == first.Clauses[0].Matrix, "the later page tells of matrix %q, the first of %q", next.Clauses[0].Matrix, first.Clauses[0].Matrix)
			runtime.KeepAlive(w)
		})
	}
}
