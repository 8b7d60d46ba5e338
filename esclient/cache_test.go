package esclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/internal/recovery"
)

// library returns a fake that answers as a recorded engine about its index.
func library(tb testing.TB) *clustertest.Fake {
	tb.Helper()
	r := clustertest.Engines(tb, "testdata")[0]
	f := clustertest.New()
	for call, name := range map[string]string{
		"GET /library":               "schema",
		"POST /library/_analyze":     "analyze",
		"POST /library/_termvectors": "vectors",
		"GET /":                      "info",
	} {
		f.Replay(tb, call, r, name)
	}
	return f.On("POST /library/_search", func(w http.ResponseWriter, req *http.Request) {
		name := "scripts"
		if strings.Contains(req.URL.RawQuery, "_explanation") {
			name = "explain"
		}
		w.WriteHeader(r.Answers[name].Status)
		_, _ = w.Write(r.Answers[name].Body)
	})
}

// The terms of the recorded analysis of "The Running Cars" in title.
var runningCars = &Analysis{Terms: []string{"run", "car"}, Positions: []int{1, 2}, Written: []string{"Running", "Cars"}, Analyzer: "english", Shards: 1}

var searchTerms = []string{"car", "boat", "none"}

// statistics asks for searchTerms and returns the frequencies too.
func statistics(ctx context.Context, c *Cached) (FieldStatistics, []int64, error) {
	dfs := make([]int64, len(searchTerms))
	st, err := c.Statistics(ctx, at("library"), "title", searchTerms, dfs)
	return st, dfs, err
}

// trips returns the round trips of a millisecond each since start.
func trips(start time.Time) int { return int(time.Since(start) / time.Millisecond) }

func TestColdAnalysisTakesOneRoundTrip(t *testing.T) {
	for _, tt := range []struct {
		name, index, analyzer string
		trips                 int
	}{
		{"one index", "library", "", 1},
		{"one index, named analyzer", "library", "english", 1},
		{"a pattern", "lib*", "", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := library(t).Replay(t, "GET /lib*", clustertest.Engines(t, "testdata")[0], "schema")
				c := cached(t, f.Slow(time.Millisecond))
				start := time.Now()
				got, err := c.Analyze(t.Context(), at(tt.index), "title", tt.analyzer, "The Running Cars")
				diff := cmp.Diff(runningCars, got)
				check.That(t, err == nil && diff == "" && trips(start) == tt.trips, "%v, %d round trips, want %d, %s", err, trips(start), tt.trips, diff)
				start = time.Now() // with the field known
				_, err = c.Analyze(t.Context(), at(tt.index), "title", tt.analyzer, "other")
				check.That(t, err == nil && trips(start) == 1, "%v, %d round trips for another text, want 1", err, trips(start))
			})
		})
	}
}

func TestGuessOfTheIndexAnalyzerIsDroppedWhereTheSearchAnalyzerDiffers(t *testing.T) {
	f := clustertest.New().Reply("GET /i", http.StatusOK, `{"i":`+mapped(`"f":{"type":"text","search_analyzer":"other"}`, "")+`}`)
	f.On("POST /i/_analyze", func(w http.ResponseWriter, r *http.Request) {
		term := "index"
		if strings.Contains(readAll(r), `"analyzer":"other"`) {
			term = "search"
		}
		_, _ = fmt.Fprintf(w, `{"tokens":[{"token":%q}]}`, term)
	})
	got := analyze(t, cached(t, f), "i", "f", "x")
	check.That(t, slices.Equal(got.Terms, []string{"search"}), "%v", got)
}

func TestGuessThatIsRefusedIsMadeGood(t *testing.T) {
	// An alias of two indices: _analyze takes neither.
	index := mapped(`"f":{"type":"text"}`, "")
	f := clustertest.New().Reply("GET /alias", http.StatusOK, `{"a":`+index+`,"b":`+index+`}`).
		Reply("POST /alias/_analyze", http.StatusBadRequest, `{}`).
		Reply("POST /a/_analyze", http.StatusOK, `{"tokens":[{"token":"x"}]}`)
	got := analyze(t, cached(t, f), "alias", "f", "x")
	check.That(t, slices.Equal(got.Terms, []string{"x"}) && got.Shards == 4, "%v", got)
}

func TestColdStatisticsTakeOneRoundTripAndWarmAnswersNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := library(t)
		c := cached(t, f.Slow(time.Millisecond))
		for i, want := range []int{1, 0, 0} {
			a := analyze(t, c, "library", "title", "The Running Cars")
			calls, start := f.Asked(""), time.Now()
			st, dfs, err := statistics(t.Context(), c)
			// elasticsearch-7.10.2, the first of the recorded engines.
			check.That(t, err == nil && cmp.Equal(a, runningCars) && st == (FieldStatistics{DocCount: 3, Scale: 2.2, Scripts: true}) && slices.Equal(dfs, []int64{2, 1, 0}), "round %d: %v, %+v, %v, %v", i, a, st, dfs, err)
			check.That(t, trips(start) == want && (i <= 0 || f.Asked("") == calls), "round %d took %d round trips, %d calls, want %d", i, trips(start), f.Asked("")-calls, want)
		}
		s := c.Stats()
		if s.Analysis.Hits != 2 || s.Analysis.Misses != 1 || s.Statistics.Hits != 2 || s.Statistics.Misses != 1 ||
			s.Analysis.Failures+s.Statistics.Failures != 0 || s.Analysis.Bytes == 0 || s.Statistics.Bytes == 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

// Each request that is added here is in the way of every search for a new text;
// docs/performance.md says what they are for.
func TestNewTextOfAKnownFieldTakesTwoRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := library(t)
		c := cached(t, f.Slow(time.Millisecond))
		ask := func(text, term string) {
			analyze(t, c, "library", "title", text)
			_, err := c.Statistics(t.Context(), at("library"), "title", []string{term}, make([]int64, 1))
			check.OK(t, err)
		}
		ask("The Running Cars", "car")
		known, start := len(f.Calls()), time.Now()
		ask("boats", "boat")
		calls := f.Calls()[known:]
		check.That(t, len(calls) == 2 && f.Asked("/_analyze") == 2 && f.Asked("/_termvectors") == 2, "a new text: %q, want an _analyze and a _termvectors", calls)
		check.Equal(t, 2*time.Millisecond, time.Since(start))
		known = len(f.Calls())
		ask("a boat, a car", "car")
		calls = f.Calls()[known:]
		check.That(t, len(calls) == 1 && f.Asked("/_analyze") == 3, "a new text of known terms: %q, want an _analyze", calls)
	})
}

func TestCallersOfOneKeyShareALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := library(t).Slow(time.Millisecond)
		c := cached(t, f)
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				check.Error(t, nil, check.ErrOf(c.Analyze(t.Context(), at("library"), "title", "", "The Running Cars")))
				_, _, err := statistics(t.Context(), c)
				check.Error(t, nil, err)
			})
		}
		callers.Wait()
		for call, want := range map[string]int{
			"GET /library": 1, "/_analyze": 1, "_termvectors": 1, "_explanation": 1, "filter_path=_shards ": 1,
		} {
			check.Equal(t, want, f.Asked(call), call)
		}
	})
}

func TestCallerWhoseTimeIsUpLeavesAndTheMemoryFills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := library(t).Slow(100 * time.Millisecond)
		c := cached(t, f)
		hurry := func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			t.Cleanup(cancel)
			return ctx
		}
		start := time.Now()
		_, err := c.Analyze(hurry(), at("library"), "title", "", "The Running Cars")
		check.That(t, errors.Is(err, context.DeadlineExceeded) && time.Since(start) == 50*time.Millisecond, "error %v after %v", err, time.Since(start))
		check.Elapse(time.Second)
		check.Error(t, nil, check.ErrOf(c.Analyze(hurry(), at("library"), "title", "", "The Running Cars")), "from a memory that has had time to fill")
		if _, dfs, err := statistics(hurry(), c); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("df %v, error %v", dfs, err)
		}
		check.Elapse(time.Second)
		if _, _, err := statistics(hurry(), c); err != nil {
			t.Errorf("error %v from a memory that has had time to fill", err)
		}
		check.That(t, f.Asked("/_analyze") == 1 && f.Asked("_termvectors") == 1, "calls %q", f.Calls())
	})
}

func TestAnswersHoldForTheTimeToLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := library(t)
		c := cached(t, f)
		askAll := func() {
			analyze(t, c, "library", "title", "The Running Cars")
			_, _, err := statistics(t.Context(), c)
			check.OK(t, err)
		}
		askAll()
		cold := f.Asked("")
		check.Elapse(59 * time.Second)
		askAll()
		check.Equal(t, cold, f.Asked(""), f.Asked("")-cold, "calls before the time was over")
		check.Elapse(2 * time.Second)
		askAll()
		check.Equal(t, 2*cold, f.Asked(""), f.Asked("")-cold, cold, "calls after the time was over")
	})
}

func TestFailureIsAnsweredFromMemoryForASecond(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"refusal": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"garbage": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := clustertest.Engines(t, "testdata")[0]
				f := library(t)
				c := cached(t, f)
				for _, of := range []struct {
					call, recorded string
					ask            func(i int) error
				}{
					{"GET /library", "schema", func(i int) error {
						_, err := c.Analyze(t.Context(), at("library"), "title", "", []string{"a", "b"}[i%2])
						return err
					}},
					{"POST /library/_termvectors", "vectors", func(int) error { _, _, err := statistics(t.Context(), c); return err }},
				} {
					f.On(of.call, answer)
					for i := range 20 {
						check.That(t, of.ask(i) != nil, "%s: no error", of.call)
					}
					check.Equal(t, 1, f.Asked(of.call), of.call)
					check.Elapse(1100 * time.Millisecond)
					f.Replay(t, of.call, r, of.recorded)
					err := of.ask(0)
					check.That(t, err == nil, "%s: error %v from a cluster that is well again", of.call, err)
				}
				if s := c.Stats(); s.Analysis.Failures == 0 || s.Statistics.Failures == 0 {
					t.Errorf("stats %+v", s)
				}
			})
		})
	}
}

func TestFieldThatIsNotTextIsRememberedForTheTimeToLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := library(t)
		c := cached(t, f)
		for range 5 {
			_, err := c.Analyze(t.Context(), at("library"), "title.raw", "", "a")
			check.Must(t, errors.Is(err, mapping.ErrNotText), "error %v", err)
			check.Elapse(10 * time.Second)
		}
		check.Equal(t, 1, f.Asked("GET /library"))
		s := c.Stats().Analysis
		check.That(t, s.Failures == 0 && s.Hits == 4, "stats %+v", s)
	})
}

// clientKey is the key of the client in a context.
type clientKey struct{}

func TestNeitherAClientNorAnIndexTakesAllLoads(t *testing.T) {
	for name, greedy := range map[string]func(ctx context.Context, i int) (context.Context, string){
		"one index, many clients": func(ctx context.Context, i int) (context.Context, string) {
			return context.WithValue(ctx, clientKey{}, fmt.Sprint("client ", i)), "slow"
		},
		"one client, many indices": func(ctx context.Context, i int) (context.Context, string) {
			return context.WithValue(ctx, clientKey{}, "greedy"), fmt.Sprint("slow-", i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := clustertest.New().On("GET ", clustertest.Hang).On("POST ", clustertest.Hang).Reply("GET /quick", http.StatusOK, `{"quick":{}}`)
				c := NewCached(client(t, f), CacheOptions{
					AnalysisBytes: 4 << 20, StatisticsBytes: 4 << 20, TTL: time.Minute,
					Client: func(ctx context.Context) string { client, _ := ctx.Value(clientKey{}).(string); return client },
				})
				defer c.Close()
				var busy atomic.Int32
				var callers sync.WaitGroup
				for i := range 3 * maxLoads {
					callers.Go(func() {
						ctx, index := greedy(t.Context(), i)
						if _, err := c.Fields(ctx, at(index), fmt.Sprint("a*", i)); errors.Is(err, cache.ErrBusy) {
							busy.Add(1)
						}
					})
				}
				synctest.Wait()
				check.Equal(t, maxLoads/2, 3*maxLoads-busy.Load())
				for i := range maxLoads {
					ctx := context.WithValue(t.Context(), clientKey{}, "modest")
					_, err := c.Fields(ctx, at("quick"), fmt.Sprint("a*", i))
					check.Must(t, err == nil, "another one: %v", err)
				}
				callers.Wait()
				ctx, index := greedy(t.Context(), -1)
				if _, err := c.Fields(ctx, at(index), "b*"); errors.Is(err, cache.ErrBusy) {
					t.Error("places are not given back")
				}
				synctest.Wait()
				check.Equal(t, 0, c.loader.Taken())
			})
		})
	}
}

func TestCloseEndsAndWaitsForLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var under atomic.Int32
		slow := func(w http.ResponseWriter, r *http.Request) {
			under.Add(1)
			clustertest.Hang(w, r)
			time.Sleep(time.Millisecond) // The call takes that long to end.
			under.Add(-1)
		}
		c := cached(t, clustertest.New().On("GET /library", slow).On("POST /library/_analyze", slow))
		failed := make(chan error)
		go func() {
			_, err := c.Analyze(context.Background(), at("library"), "title", "", "a")
			failed <- err
		}()
		synctest.Wait()
		check.Must(t, under.Load() == 2, "%d calls under way, want 2", under.Load())
		start := time.Now()
		c.Close()
		check.Equal(t, 0, under.Load())
		check.That(t, <-failed != nil, "a caller got an answer from a closed cache")
		check.That(t, time.Since(start) <= time.Second, "Close took %v", time.Since(start))
		check.Error(t, cache.ErrClosed, check.ErrOf(c.Analyze(t.Context(), at("library"), "title", "", "b")))
		if _, _, err := statistics(t.Context(), c); !errors.Is(err, cache.ErrClosed) {
			t.Errorf("error %v, want %v", err, cache.ErrClosed)
		}
	})
}

func TestForgottenIndexIsAskedForAgain(t *testing.T) {
	f := library(t)
	f.Replay(t, "GET /other", clustertest.Engines(t, "testdata")[0], "schema")
	c := cached(t, f)
	askAll := func() {
		analyze(t, c, "library", "title", "The Running Cars")
		analyze(t, c, "other", "title", "The Running Cars")
		_, _, err := statistics(t.Context(), c)
		check.OK(t, err)
	}
	askAll()
	if c.generations.slot("library") == c.generations.slot("other") {
		t.Skip("the two share a counter in this run")
	}
	c.Forget("library")
	askAll()
	for call, want := range map[string]int{"GET /library": 2, "GET /other": 1, "_termvectors": 2, "_explanation": 2} {
		check.Equal(t, want, f.Asked(call), call)
	}
}

// An alias may name another index at any time.
func TestWhatIsKnownOfAnIndexThatIsGoneIsForgotten(t *testing.T) {
	f := library(t)
	c := cached(t, f)
	analyze(t, c, "library", "title", "The Running Cars")
	f.Reply("POST /library/_analyze", http.StatusNotFound, `{"error":{"root_cause":[{"type":"index_not_found_exception","reason":"no such index [library]"}]},"status":404}`)
	for asked := range 2 {
		_, err := c.Analyze(t.Context(), at("library"), "title", "", "another text")
		check.That(t, err != nil, "an analysis without the index")
		check.Equal(t, 1+asked, f.Asked("GET /library"))
	}
}

// probed is library with answers of its own to the two probes.
func probed(t *testing.T, scale, scripts http.HandlerFunc) *clustertest.Fake {
	t.Helper()
	return library(t).On("POST /library/_search", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.RawQuery, "_explanation") {
			scale(w, r)
		} else {
			scripts(w, r)
		}
	})
}

// says answers so with status 200.
func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

func TestScaleThatWasGuessedIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := clustertest.Engines(t, "testdata")[0]
		explanation := "explain nothing"
		f := probed(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(r.Body(t, explanation)) }, says(`{"_shards":{"successful":1}}`))
		c := cached(t, f)
		wantScale := func(want float64) {
			t.Helper()
			st, _, err := statistics(t.Context(), c)
			check.That(t, err == nil && st.Scale == want, "%+v, %v, want %v", st, err, want)
		}
		for range 3 {
			wantScale(2.2) // which goes with the version
		}
		check.Equal(t, 1, f.Asked("_explanation"))
		check.Elapse(guessTime + time.Second)
		explanation = "explain low"
		wantScale(1.9)
		check.Equal(t, 1, f.Asked("_termvectors"))
	})
}

// A probe that the cluster does not answer says neither that scripts run nor
// that they do not, and nothing of the scale, which the version would tell: what
// the cluster told before holds, and without that the search is not expanded.
func TestProbesThatFailLeaveWhatIsKnown(t *testing.T) {
	status := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); _, _ = io.WriteString(w, body) }
	}
	for name, fail := range map[string]struct{ scripts, scale http.HandlerFunc }{
		"scripts: 429":         {scripts: status(http.StatusTooManyRequests, "")},
		"scripts: 503":         {scripts: status(http.StatusServiceUnavailable, "")},
		"scripts: a block":     {scripts: status(http.StatusForbidden, aBlock)},
		"scripts: no shard":    {scripts: says(`{"_shards":{"successful":0}}`)},
		"scripts: no JSON":     {scripts: says(`<html>`)},
		"scripts: a bad shard": {scripts: says(`{"_shards":{"successful":1,"failed":1}}`)},
		"scale: 429":           {scale: status(http.StatusTooManyRequests, "{}")},
		"scale: 503":           {scale: status(http.StatusServiceUnavailable, "{}")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sick atomic.Bool
				either := func(fail, well http.HandlerFunc) http.HandlerFunc {
					return func(w http.ResponseWriter, r *http.Request) {
						if fail != nil && sick.Load() {
							fail(w, r)
						} else {
							well(w, r)
						}
					}
				}
				explained := says(string(clustertest.Engines(t, "testdata")[0].Body(t, "explain low")))
				f := probed(t, either(fail.scale, explained), either(fail.scripts, says(`{"_shards":{"total":1,"successful":1,"failed":0}}`)))
				f.Reply("GET /", http.StatusServiceUnavailable, `{}`)
				c := cached(t, f)
				sick.Store(true)
				for range 2 { // the first one asks, the second one remembers the failure
					st, _, err := statistics(t.Context(), c)
					check.That(t, err != nil, "without knowing: %+v", st)
				}
				check.Elapse(failureTime)
				sick.Store(false)
				known, _, err := statistics(t.Context(), c)
				check.Must(t, err == nil && known.Scripts && known.Scale == 1.9, "%+v, %v, want scripts and a scale", known, err)
				sick.Store(true)
				check.Elapse(time.Hour) // what was remembered is over
				if st, _, err := statistics(t.Context(), c); err != nil || st != known {
					t.Errorf("%+v, %v, want what was known, %+v", st, err, known)
				}
			})
		})
	}
}

// The calls of one load run side by side, in goroutines of their own.
func TestPanicOfALoadIsAnErrorAndCounted(t *testing.T) {
	f := linearFake(map[string]linearIndex{"i": {body: withMulti(english), settings: similarity("type=BM25", "k1=10000", "b=0")}})
	f.On("POST /_search", func(http.ResponseWriter, *http.Request) { panic("broken") })
	f.On("GET /library", func(http.ResponseWriter, *http.Request) { panic("broken") })
	registry := prometheus.NewRegistry()
	c := client(t, f)
	c.guard = recovery.New(slog.New(slog.DiscardHandler), registry)
	cached := NewCached(c, CacheOptions{AnalysisBytes: 4 << 20, StatisticsBytes: 4 << 20, TTL: time.Minute})
	defer cached.Close()
	check.Error(t, recovery.ErrPanic, check.ErrOf(linear(t, cached)))
	check.Error(t, recovery.ErrPanic, check.ErrOf(cached.Analyze(t.Context(), at("library"), "title", "", "a")))
	families, err := registry.Gather()
	check.Must(t, err == nil && len(families) == 1, "%v, %v", families, err)
	counted := 0.0
	for _, m := range families[0].GetMetric() {
		counted += m.GetCounter().GetValue()
	}
	check.Equal(t, 2, counted)
}

func TestMemoryIsBounded(t *testing.T) {
	const bound = 64 << 10
	c := NewCached(client(t, library(t)), CacheOptions{AnalysisBytes: bound, StatisticsBytes: bound, TTL: time.Minute})
	defer c.Close()
	for i := range 2000 {
		analyze(t, c, "library", "title", fmt.Sprint("text ", i))
		_, err := c.Statistics(t.Context(), at("library"), "title", []string{fmt.Sprint("term ", i)}, make([]int64, 1))
		check.OK(t, err)
	}
	s := c.Stats()
	check.That(t, s.Analysis.Bytes <= bound && s.Analysis.Bytes >= bound/4 && s.Statistics.Bytes <= bound && s.Statistics.Bytes >= bound/4, "%d and %d bytes held of %d", s.Analysis.Bytes, s.Statistics.Bytes, bound)
}

// warm returns questions about a text and 60 terms that a cache knows.
func warm(tb testing.TB) (analysis, counts func() error) {
	tb.Helper()
	c := cached(tb, library(tb))
	terms, dfs := make([]string, 60), make([]int64, 60)
	for i := range terms {
		terms[i] = fmt.Sprint("term", i)
	}
	ctx := tb.Context()
	analysis = func() error {
		_, err := c.Analyze(ctx, at("library"), "title", "", "The Running Cars")
		return err
	}
	counts = func() error { _, err := c.Statistics(ctx, at("library"), "title", terms, dfs); return err }
	check.OK(tb, analysis())
	check.OK(tb, counts())
	return analysis, counts
}

func TestWarmAnswersDoNotAllocate(t *testing.T) {
	analysis, counts := warm(t)
	n := testing.AllocsPerRun(100, func() { check.OK(t, analysis()) })
	check.That(t, n <= 1, "Analyze allocates %v times, want 1 at most", n)
	n = testing.AllocsPerRun(100, func() { check.OK(t, counts()) })
	check.That(t, n <= 0, "Statistics allocates %v times, want none", n)
}
