package soft

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/internal/recovery"
)

// pets returns a search for "cat" and three documents, and S in which a cat
// is like a dog.
func pets(tb testing.TB) (*fakeVectors, []expand.RerankField, []expand.Hit) {
	tb.Helper()
	m := &fakeMatrix{version: "pets@1", docs: 100}
	m.set(tb, "cat", 10, map[string]float64{"dog": 0.5})
	m.set(tb, "dog", 10, map[string]float64{"cat": 0.5})
	v := &fakeVectors{docs: map[docName]map[string]map[string]int64{
		{"i", "1"}: {"body": {"dog": 1}},
		{"i", "2"}: {"body": {"cat": 2}},
		{"i", "3"}: {"body": {"fish": 1}},
	}, versions: map[docName]int64{}}
	var hits []expand.Hit
	for k := range 3 {
		hits = append(hits, expand.Hit{Index: "i", ID: strconv.Itoa(k + 1), SeqNo: int64(k), PrimaryTerm: 1, Version: 1})
	}
	return v, []expand.RerankField{{Field: "body", Boost: 1, Terms: []string{"cat"}, Freqs: []float64{1}, Similarities: m}}, hits
}

// petSums are what the search for a cat sums.
var petSums = []expand.Sum{{Fields: []expand.SumField{{Boost: 1, Words: []expand.SumWord{
	{Weight: 2, Terms: []string{"cat", "dog"}, Boosts: []float64{1, .5}},
}}}}}

func newReranker(t *testing.T, v TermVectors) *Reranker {
	t.Helper()
	r := New(Options{Vectors: v, Bytes: 1 << 20, TTL: time.Minute})
	t.Cleanup(r.Close)
	return r
}

func matrixIn(fields []expand.RerankField) *fakeMatrix {
	m, _ := fields[0].Similarities.(*fakeMatrix)
	return m
}

// checkScores compares scores with those wanted, to the rounding of S.
func checkScores(t *testing.T, scores []expand.HitScore, want ...float64) {
	t.Helper()
	got := softs(scores)
	check.Must(t, len(got) == len(want), "got %v, want %v", got, want)
	for k := range want {
		if !(math.Abs(got[k]-want[k]) <= 1e-4) { // NaN is none
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// wantScores wants these soft cosines of hits.
func wantScores(t *testing.T, r *Reranker, fields []expand.RerankField, hits []expand.Hit, want ...float64) {
	t.Helper()
	wantBy(t, r, by(fields), hits, want...)
}

func wantBy(t *testing.T, r *Reranker, search *expand.Rerank, hits []expand.Hit, want ...float64) []expand.HitScore {
	t.Helper()
	got, err := r.Scores(t.Context(), search, hits)
	check.OK(t, err)
	checkScores(t, got, want...)
	return got
}

// scored returns why hits got no scores.
func scored(t *testing.T, r *Reranker, fields []expand.RerankField, hits []expand.Hit) error {
	t.Helper()
	_, err := r.Scores(t.Context(), by(fields), hits)
	return err
}

func TestOneCallAsksForAllHitsOnce(t *testing.T) {
	v, fields, hits := pets(t)
	hits[1].Routing = "r"
	r := newReranker(t, v)
	for range 3 {
		wantScores(t, r, fields, hits, .5, 1, 0)
	}
	want := [][]documents.VectorRequest{{
		{Index: "i", ID: "1", Fields: []string{"body"}},
		{Index: "i", ID: "2", Routing: "r", Fields: []string{"body"}},
		{Index: "i", ID: "3", Fields: []string{"body"}},
	}}
	check.Equal(t, want, v.calls)
	s := r.Stats()
	check.That(t, s.Hits == 6 && s.Misses == 3 && s.Bytes != 0, "counted %+v", s)
	m := matrixIn(fields)
	check.That(t, m.calls == 1 && m.asked == 3, "%d calls for %d rows, want 1 for 3", m.calls, m.asked)
}

func TestChangedDocumentsAreAskedForAnew(t *testing.T) {
	v, fields, hits := pets(t)
	r := newReranker(t, v)
	check.OK(t, scored(t, r, fields, hits))
	v.docs[docName{"i", "3"}]["body"] = map[string]int64{"cat": 1}
	v.versions[docName{"i", "3"}] = 2
	hits[2].SeqNo, hits[2].Version = 9, 2
	wantScores(t, r, fields, hits, .5, 1, 1)
	check.That(t, len(v.calls) == 2 && len(v.calls[1]) == 1, "asked for %v", v.calls)
}

// A search may have seen another state than the one whose terms come back:
// that is not the hit's, and not remembered as such.
func TestTermsOfAnotherStateAreNotUsed(t *testing.T) {
	for name, change := range map[string]func(v *fakeVectors){
		"changed": func(v *fakeVectors) { v.versions[docName{"i", "2"}] = 2 },
		"gone":    func(v *fakeVectors) { delete(v.docs, docName{"i", "2"}) },
	} {
		t.Run(name, func(t *testing.T) {
			v, fields, hits := pets(t)
			doc := v.docs[docName{"i", "2"}]
			change(v)
			r := newReranker(t, v)
			err := scored(t, r, fields, hits)
			check.Must(t, errors.Is(err, ErrMissing), "got %v", err)
			v.docs[docName{"i", "2"}], v.versions[docName{"i", "2"}] = doc, 1 // as the search has seen it
			wantScores(t, r, fields, hits, .5, 1, 0)
			check.Equal(t, 1, len(v.calls[1]))
		})
	}
}

func TestWhatIsFetchedOutlivesTheSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, fields, hits := pets(t)
		v.wait = make(chan struct{})
		r := New(Options{Vectors: v, Bytes: 1 << 20})
		defer r.Close()
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := r.Scores(ctx, by(fields), hits)
			failed <- err
		}()
		synctest.Wait()
		cancel()
		check.Error(t, context.Canceled, <-failed)
		close(v.wait)
		synctest.Wait()
		wantScores(t, r, fields, hits, .5, 1, 0)
		check.Equal(t, 1, v.count())
	})
}

// clientKey is the key of the client in a context.
type clientKey struct{}

func TestNeitherAClientNorAnIndexTakesAllFetches(t *testing.T) {
	for name, greedy := range map[string]func(i int) (client, index string){
		"one index, many clients":  func(i int) (client, index string) { return strconv.Itoa(i), "i" },
		"one client, many indices": func(i int) (client, index string) { return "greedy", strconv.Itoa(i) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, fields, _ := pets(t)
				v.wait = make(chan struct{})
				r := New(Options{Vectors: v, Bytes: 1 << 20, Client: func(ctx context.Context) string {
					client, _ := ctx.Value(clientKey{}).(string)
					return client
				}})
				defer r.Close()
				search := func(client, index string) error {
					_, err := r.Scores(context.WithValue(t.Context(), clientKey{}, client), by(fields), []expand.Hit{{Index: index, ID: "1"}})
					return err
				}
				var searches sync.WaitGroup
				for i := range maxFetches / 2 {
					searches.Go(func() { _ = search(greedy(i)) })
				}
				synctest.Wait()
				check.Error(t, cache.ErrBusy, search(greedy(-1)))
				for range maxFetches / 4 {
					searches.Go(func() {
						err := search("modest", "other")
						check.That(t, !errors.Is(err, cache.ErrBusy), "another one: %v", err)
					})
				}
				synctest.Wait()
				close(v.wait)
				searches.Wait()
				synctest.Wait()
				check.Equal(t, 0, r.loader.Taken())
			})
		})
	}
}

func TestFailuresAreToldAndNotRemembered(t *testing.T) {
	failure := errors.New("a reason")
	for name, change := range map[string]func(v *fakeVectors, m *fakeMatrix, off bool){
		"vectors": func(v *fakeVectors, _ *fakeMatrix, off bool) {
			if v.err = failure; off {
				v.err = nil
			}
		},
		"rows": func(_ *fakeVectors, m *fakeMatrix, off bool) {
			if m.err = failure; off {
				m.err = nil
			}
		},
		"panic": func(v *fakeVectors, _ *fakeMatrix, off bool) { v.panics = !off },
	} {
		t.Run(name, func(t *testing.T) {
			v, fields, hits := pets(t)
			r := newReranker(t, v)
			change(v, matrixIn(fields), false)
			err := scored(t, r, fields, hits)
			check.That(t, errors.Is(err, failure) || name == "panic" && errors.Is(err, recovery.ErrPanic), "got %v", err)
			change(v, matrixIn(fields), true)
			wantScores(t, r, fields, hits, .5, 1, 0)
		})
	}
}

// The cluster tells no terms of an alias, and nothing says that it does not:
// there a field that never had any is doubtful, one that had some may be
// empty.
func TestUnreadableFieldsWithoutTermsAreDoubted(t *testing.T) {
	v, fields, hits := pets(t)
	v.unreadable = map[string]bool{"alias": true}
	r := newReranker(t, v)
	fields[0].Field = "alias"
	for range 2 {
		check.Error(t, ErrNoTerms, scored(t, r, fields, hits))
	}
	check.Equal(t, []string{"i.alias"}, v.askedFields)
	four := v.add("4", map[string]map[string]int64{"alias": {"cat": 1}})
	check.OK(t, scored(t, r, fields, []expand.Hit{four}))
	wantScores(t, r, fields, hits, 0, 0, 0)
}

// In a field that the cluster tells the terms of, none are none, whatever the
// hits before had.
func TestReadableFieldsMayBeEmpty(t *testing.T) {
	v, fields, hits := pets(t)
	for _, ttl := range []time.Duration{0, time.Minute} {
		r := New(Options{Vectors: v, Bytes: 1 << 20, TTL: ttl})
		defer r.Close()
		with := append(slices.Clone(fields), fields[0])
		with[1].Field = "notes"
		v.askedFields = nil
		for range 3 {
			wantScores(t, r, with, hits, .5/math.Sqrt2, 1/math.Sqrt2, 0)
		}
		n := len(v.askedFields)
		check.That(t, (ttl != 0 || n == 3) && (ttl <= 0 || n == 1), "TTL %v: asked %d times", ttl, n)
	}
}

// An index that is created again counts from 0 again.
func TestIndicesMadeAnewHaveOtherDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, fields, hits := pets(t)
		v.uuids = map[string]string{"i": "first"}
		r := New(Options{Vectors: v, Bytes: 1 << 20, TTL: time.Minute})
		defer r.Close()
		for range 2 {
			check.OK(t, scored(t, r, fields, hits))
		}
		v.uuids["i"] = "second"
		v.docs[docName{"i", "3"}]["body"] = map[string]int64{"cat": 1}
		check.Elapse(time.Minute)
		wantScores(t, r, fields, hits, .5, 1, 1)
		check.Equal(t, []string{"i", "i"}, v.askedUUIDs)
	})
}

// What is remembered stays whether it is used or not, but not for ever, and not
// all ends at the same time.
func TestVectorsThatAreUsedStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, fields, _ := pets(t)
		var hits []expand.Hit
		for k := range 50 {
			id := fmt.Sprint("d", k)
			hits = append(hits, v.add(id, map[string]map[string]int64{"body": {"cat": 1}}))
		}
		r := New(Options{Vectors: v, Bytes: 1 << 20, TTL: time.Minute})
		defer r.Close()
		search := func() int {
			before := v.count()
			check.OK(t, scored(t, r, fields, hits))
			if v.count() == before {
				return 0
			}
			return len(v.calls[before])
		}
		if n := search(); n != 50 {
			t.Fatalf("asked for %d documents", n)
		}
		const pause = vectorLife / 24
		most, all := 0, 0
		for spent := pause; spent < 2*vectorLife; spent += pause {
			check.Elapse(pause)
			n := search()
			if most, all = max(most, n), all+n; n > 0 && spent < vectorLife/2 {
				t.Errorf("asked again after %v", spent)
			}
		}
		check.That(t, all >= 50 && most <= 25, "asked for %d again, %d at once", all, most)
		check.Elapse(vectorLife*3/2 + time.Second)
		check.Equal(t, 50, search())
	})
}

func TestLargeDocumentsAreAskedForFewerAtATime(t *testing.T) {
	v, fields, hits := pets(t)
	v.most = 1
	wantScores(t, newReranker(t, v), fields, hits, .5, 1, 0)
	if n := v.count(); n != 5 { // of 3, 1, 2, 1 and 1
		t.Errorf("%d calls", n)
	}
	v.err = esclient.ErrTooLarge
	check.Error(t, ErrTooLarge, scored(t, newReranker(t, v), fields, hits))
}

func TestHitsWithTooManyTermsAreNotScored(t *testing.T) {
	v, fields, hits := pets(t)
	large := map[string]int64{}
	for n := range maxTerms/2 + 1 {
		large[strconv.Itoa(n)] = 1
	}
	for _, id := range []string{"1", "2"} {
		v.docs[docName{"i", id}]["body"] = large
	}
	r := newReranker(t, v)
	check.Error(t, ErrTooLarge, scored(t, r, fields, hits))
}

func TestManyDocumentsAreAskedForInSeveralCalls(t *testing.T) {
	v, fields, _ := pets(t)
	fields = append(fields, fields[0])
	fields[1].Field = "title"
	var hits []expand.Hit
	for k := range 2*docsAtOnce + 1 {
		id := fmt.Sprint("d", k)
		hits = append(hits, v.add(id, map[string]map[string]int64{"body": {"cat": 1}, "title": {"cat": 1}}))
	}
	got, err := newReranker(t, v).Scores(t.Context(), by(fields), hits)
	check.OK(t, err)
	var asked []int
	for _, call := range v.calls {
		asked = append(asked, len(call))
	}
	diff := cmp.Diff([]int{docsAtOnce, docsAtOnce, 1}, asked)
	check.That(t, diff == "" && slices.Min(softs(got)) >= .999, "scores %v, calls (-want +got)\n%s", got, diff)
}

func TestVersionsOfSAreToldApart(t *testing.T) {
	v, fields, hits := pets(t)
	r := newReranker(t, v)
	check.OK(t, scored(t, r, fields, hits))
	next := &fakeMatrix{version: "pets@2", docs: 100}
	next.set(t, "cat", 10, map[string]float64{"fish": 0.25})
	next.set(t, "fish", 10, nil)
	next.set(t, "dog", 10, nil)
	was := fields[0].Similarities
	fields[0].Similarities = next
	for _, c := range []struct {
		s    expand.Rows
		want []float64
	}{{next, []float64{0, 1, .25}}, {was, []float64{.5, 1, 0}}} {
		fields[0].Similarities = c.s
		wantScores(t, r, fields, hits, c.want...)
	}
	check.Equal(t, 1, len(v.calls))
}

func TestMemoryIsBounded(t *testing.T) {
	const limit = 64 << 10
	v, fields, _ := pets(t)
	r := New(Options{Vectors: v, Bytes: limit})
	defer r.Close()
	for n := range 300 {
		var hits []expand.Hit
		for k := range 10 {
			id := fmt.Sprint(n, "-", k)
			hits = append(hits, v.add(id, map[string]map[string]int64{"body": {fmt.Sprint("only in ", id): 1, "cat": 1}}))
		}
		got, err := r.Scores(t.Context(), by(fields), hits)
		check.OK(t, err)
		all := softs(got)
		check.Must(t, slices.Max(all) == slices.Min(all) && all[0] > 0, "got %v", got)
		// A memory ends with the next search.
		b := r.Stats().Bytes
		check.Must(t, b <= 2*limit, "%d bytes after %d searches, at most about %d", b, n, limit)
	}
	check.That(t, r.Stats().Forgotten != 0, "not counted")
}

func TestNothingIsRememberedWithoutMemory(t *testing.T) {
	v, fields, hits := pets(t)
	r := New(Options{Vectors: v})
	defer r.Close()
	for range 3 {
		wantScores(t, r, fields, hits, .5, 1, 0)
	}
}

func TestClosedRerankersEndTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, fields, hits := pets(t)
		v.wait = make(chan struct{})
		r := New(Options{Vectors: v, Bytes: 1 << 20})
		failed := make(chan error)
		go func() { failed <- scored(t, r, fields, hits) }()
		synctest.Wait()
		r.Close()
		check.Error(t, context.Canceled, <-failed)
		check.Error(t, cache.ErrClosed, scored(t, r, fields, hits))
	})
}

// What is remembered is looked up within the time, too.
func TestScoresEndWithTheirContext(t *testing.T) {
	v, fields, hits := pets(t)
	r := newReranker(t, v)
	check.OK(t, scored(t, r, fields, hits))
	for asked := range 2 {
		w, err := r.open(fields, hits)
		check.OK(t, err)
		check.Error(t, context.Canceled, check.ErrOf(w.recall(&endingContext{t.Context(), asked})), asked)
	}
	check.Error(t, context.Canceled, check.ErrOf(r.Scores(&endingContext{t.Context(), 0}, by(fields), hits)))
}

// A search that panics leaves its scratch in disorder: the next one must not
// compute with it.
func TestAPanicSpoilsNoOtherSearch(t *testing.T) {
	v, fields, hits := pets(t)
	r := newReranker(t, v)
	check.OK(t, scored(t, r, fields, hits))
	bad := []expand.RerankField{fields[0]}
	bad[0].Terms, bad[0].Freqs = []string{"cat", "dog"}, []float64{1} // none for the dog
	fish := []expand.RerankField{fields[0]}
	fish[0].Terms = []string{"fish"}
	for range 20 { // a pool may forget
		func() {
			defer func() {
				check.Must(t, recover() != nil, "no panic")
			}()
			_, _ = r.Scores(t.Context(), by(bad), hits)
		}()
		wantScores(t, r, fish, hits, 0, 0, 1) // and no trace of the cat
	}
}

// endingContext ends after it was asked a number of times.
type endingContext struct {
	context.Context //nolint:containedctx // It is one.
	left            int
}

func (c *endingContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestAComparisonThatEndsEarlyLeavesNoTrace(t *testing.T) {
	v, fields, hits := pets(t)
	r := newReranker(t, v)
	check.OK(t, scored(t, r, fields, hits))
	asked, ended := 0, true
	for ; ended; asked++ {
		forgetSquares(r, fields, hits) // to be computed with the scratch again
		w := recalled(t, r, fields, hits)
		s := new(scratch)
		_, err := w.scores(&endingContext{t.Context(), asked}, s, &expand.Rerank{Sums: petSums})
		if ended = errors.Is(err, context.Canceled); err != nil && !ended {
			t.Fatal(err)
		}
		for _, dense := range [][]float64{s.x, s.e, s.y} {
			check.That(t, !slices.ContainsFunc(dense, func(value float64) bool { return value != 0 }), "asked %d times: left %v", asked, *s)
		}
	}
	check.That(t, asked > len(hits), "it ended early %d times, want once before each hit", asked-1)
}

// Hits whose terms are not to be had, or would be too many, are left out.
func TestTermsLeavesOutHits(t *testing.T) {
	v, _, hits := pets(t)
	large := map[string]int64{}
	for n := range maxReturned + 1 {
		large[strconv.Itoa(n)] = 1
	}
	v.docs[docName{"i", hits[1].ID}]["body"] = large
	v.failed = map[docName]error{{"i", hits[0].ID}: errors.New("this document only")}
	got, err := newReranker(t, v).Terms(t.Context(), []string{"body"}, hits)
	check.OK(t, err)
	for k, fields := range got {
		check.That(t, (fields == nil) == (k < 2), "hit %d: %d terms", k, len(fields["body"].Terms))
	}
}
