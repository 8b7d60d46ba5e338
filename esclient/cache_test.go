package esclient

import (
	"context"
	"encoding/json"
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

func TestColdAnalysisTakesOneRoundTrip(t *testing.T) {
	tests := []struct {
		name, index, analyzer string
		trips                 int
	}{
		{"one index", "library", "", 1},
		{"one index, named analyzer", "library", "english", 1},
		{"a pattern", "lib*", "", 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := library(t)
				f.Replay(t, "GET /lib*", clustertest.Engines(t, "testdata")[0], "schema")
				c := cached(t, f.Slow(time.Millisecond))
				start := time.Now()
				got, err := c.Analyze(t.Context(), at(test.index), "title", test.analyzer, "The Running Cars")
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(runningCars, got); diff != "" {
					t.Error(diff)
				}
				if trips := int(time.Since(start) / time.Millisecond); trips != test.trips {
					t.Errorf("%d round trips, want %d", trips, test.trips)
				}
				// With the field known, another text takes one.
				start = time.Now()
				if _, err := c.Analyze(t.Context(), at(test.index), "title", test.analyzer, "other"); err != nil {
					t.Fatal(err)
				}
				if trips := int(time.Since(start) / time.Millisecond); trips != 1 {
					t.Errorf("%d round trips for another text, want 1", trips)
				}
			})
		})
	}
}

func TestGuessOfTheIndexAnalyzerIsDroppedWhereTheSearchAnalyzerDiffers(t *testing.T) {
	f := clustertest.New().Reply(
		"GET /i", http.StatusOK, `{"i":`+mapped(`"f":{"type":"text","search_analyzer":"other"}`, "")+`}`).
		On(

			"POST /i/_analyze", func(w http.ResponseWriter, r *http.Request) {
				b := make([]byte, 1000)
				n, _ := r.Body.Read(b)
				term := "index"
				if strings.Contains(string(b[:n]), `"analyzer":"other"`) {
					term = "search"
				}
				_, _ = fmt.Fprintf(w, `{"tokens":[{"token":%q}]}`, term)
			})

	got, err := cached(t, f).Analyze(t.Context(), at("i"), "f", "", "x")
	if err != nil || !slices.Equal(got.Terms, []string{"search"}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestGuessThatIsRefusedIsMadeGood(t *testing.T) {
	// An alias of two indices: _analyze takes neither.
	f := clustertest.New().Reply(
		"GET /alias", http.StatusOK, `{"a":`+mapped(`"f":{"type":"text"}`, "")+`,"b":`+mapped(`"f":{"type":"text"}`, "")+`}`).Reply(

		"POST /alias/_analyze", http.StatusBadRequest, `{}`).Reply(

		"POST /a/_analyze", http.StatusOK, `{"tokens":[{"token":"x"}]}`)

	got, err := cached(t, f).Analyze(t.Context(), at("alias"), "f", "", "x")
	if err != nil || !slices.Equal(got.Terms, []string{"x"}) || got.Shards != 4 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestColdStatisticsTakeOneRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cached(t, library(t).Slow(time.Millisecond))
		if _, err := c.Analyze(t.Context(), at("library"), "title", "", "The Running Cars"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		st, dfs, err := statistics(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if trips := time.Since(start) / time.Millisecond; trips != 1 {
			t.Errorf("%d round trips, want 1", trips)
		}
		// elasticsearch-7.10.2, the first of the recorded engines.
		want := FieldStatistics{DocCount: 3, Scale: 2.2, Scripts: true}
		if diff := cmp.Diff(want, st); diff != "" || !slices.Equal(dfs, []int64{2, 1, 0}) {
			t.Errorf("df %v, %s", dfs, diff)
		}
	})
}

func TestWarmAnswersMakeNoCall(t *testing.T) {
	f := library(t)
	c := cached(t, f)
	var calls int
	for i := range 3 {
		a, err := c.Analyze(t.Context(), at("library"), "title", "", "The Running Cars")
		if err != nil {
			t.Fatal(err)
		}
		st, dfs, err := statistics(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(a, runningCars) || st.DocCount != 3 || !slices.Equal(dfs, []int64{2, 1, 0}) {
			t.Errorf("round %d: %v, %v, %v", i, a, st, dfs)
		}
		if i == 0 {
			calls = f.Asked("")
		}
	}
	if f.Asked("") != calls {
		t.Errorf("%d calls after %d cold ones", f.Asked("")-calls, calls)
	}
	s := c.Stats()
	if s.Analysis.Hits != 2 || s.Analysis.Misses != 1 || s.Statistics.Hits != 2 || s.Statistics.Misses != 1 ||
		s.Analysis.Failures+s.Statistics.Failures != 0 || s.Analysis.Bytes == 0 || s.Statistics.Bytes == 0 {
		t.Errorf("stats %+v", s)
	}
}

// Each request that is added here is in the way of every search for a new text;
// docs/performance.md says what they are for.
func TestNewTextOfAKnownFieldTakesTwoRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := library(t)
		c := cached(t, f.Slow(time.Millisecond))
		ask := func(text, term string) {
			if _, err := c.Analyze(t.Context(), at("library"), "title", "", text); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Statistics(t.Context(), at("library"), "title", []string{term}, make([]int64, 1)); err != nil {
				t.Fatal(err)
			}
		}
		ask("The Running Cars", "car")
		known, start := len(f.Calls()), time.Now()
		ask("boats", "boat")
		if calls := f.Calls()[known:]; len(calls) != 2 || f.Asked("/_analyze") != 2 || f.Asked("/_termvectors") != 2 {
			t.Errorf("a new text: %q, want an _analyze and a _termvectors", calls)
		}
		if took := time.Since(start); took != 2*time.Millisecond {
			t.Errorf("a new text waits %v, want 2 requests of 1 ms", took)
		}
		known = len(f.Calls())
		ask("a boat, a car", "car")
		if calls := f.Calls()[known:]; len(calls) != 1 || f.Asked("/_analyze") != 3 {
			t.Errorf("a new text of known terms: %q, want an _analyze", calls)
		}
	})
}

func TestOnlyTermsThatAreNotKnownAreAskedFor(t *testing.T) {
	f := library(t)
	c := cached(t, f)
	dfs := make([]int64, 2)
	if _, err := c.Statistics(t.Context(), at("library"), "title", []string{"car", "none"}, dfs); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Statistics(t.Context(), at("library"), "title", []string{"boat", "car"}, dfs); err != nil {
		t.Fatal(err)
	}
	if f.Asked(`"doc":{"title":["car","none"]}`) != 1 || f.Asked(`"doc":{"title":["boat"]}`) != 1 ||
		f.Asked("_termvectors") != 2 || !slices.Equal(dfs, []int64{1, 2}) {
		t.Errorf("df %v, calls %q", dfs, f.Calls())
	}
}

func TestCallersOfOneKeyShareALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := library(t).Slow(time.Millisecond)
		c := cached(t, f)
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				if _, err := c.Analyze(t.Context(), at("library"), "title", "", "The Running Cars"); err != nil {
					t.Error(err)
				}
				if _, _, err := statistics(t.Context(), c); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		for call, want := range map[string]int{
			"GET /library": 1, "/_analyze": 1, "_termvectors": 1, "_explanation": 1, "filter_path=_shards ": 1,
		} {
			if got := f.Asked(call); got != want {
				t.Errorf("%d calls of %s, want %d", got, call, want)
			}
		}
	})
}

func TestTermsThatJoinAlikeDoNotShareALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		freqs := map[string]int64{"a\x00b": 11, "c": 12, "a": 13, "b\x00c": 14}
		f := library(t).On("POST /library/_termvectors", func(w http.ResponseWriter, req *http.Request) {
			var body struct {
				Doc struct{ Title []string }
			}
			if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			terms := map[string]any{}
			for _, term := range body.Doc.Title {
				terms[term] = map[string]int64{"doc_freq": freqs[term]}
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"found": true, "term_vectors": map[string]any{"title": map[string]any{
				"field_statistics": map[string]int64{"doc_count": 100, "sum_doc_freq": 1000, "sum_ttf": 1000}, "terms": terms,
			}}})
		}).Slow(time.Millisecond)
		c := cached(t, f)
		var callers sync.WaitGroup
		for _, terms := range [][]string{{"a\x00b", "c"}, {"a", "b\x00c"}} {
			callers.Go(func() {
				got := make([]int64, 2)
				_, err := c.Statistics(t.Context(), at("library"), "title", terms, got)
				if want := []int64{freqs[terms[0]], freqs[terms[1]]}; err != nil || !slices.Equal(got, want) {
					t.Errorf("%q: %v, %v; want %v", terms, got, err, want)
				}
			})
		}
		callers.Wait()
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
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 50*time.Millisecond {
			t.Errorf("error %v after %v", err, time.Since(start))
		}
		time.Sleep(time.Second)
		if _, err := c.Analyze(hurry(), at("library"), "title", "", "The Running Cars"); err != nil {
			t.Errorf("error %v from a memory that has had time to fill", err)
		}
		if _, dfs, err := statistics(hurry(), c); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("df %v, error %v", dfs, err)
		}
		time.Sleep(time.Second)
		if _, _, err := statistics(hurry(), c); err != nil {
			t.Errorf("error %v from a memory that has had time to fill", err)
		}
		if f.Asked("/_analyze") != 1 || f.Asked("_termvectors") != 1 {
			t.Errorf("calls %q", f.Calls())
		}
	})
}

func TestAnswersHoldForTheTimeToLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := library(t)
		c := cached(t, f)
		askAll := func() {
			if _, err := c.Analyze(t.Context(), at("library"), "title", "", "The Running Cars"); err != nil {
				t.Fatal(err)
			}
			if _, _, err := statistics(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		askAll()
		cold := f.Asked("")
		time.Sleep(59 * time.Second)
		askAll()
		if f.Asked("") != cold {
			t.Errorf("%d calls before the time was over", f.Asked("")-cold)
		}
		time.Sleep(2 * time.Second)
		askAll()
		if f.Asked("") != 2*cold {
			t.Errorf("%d calls after the time was over, want %d", f.Asked("")-cold, cold)
		}
	})
}

func TestFailureIsAnsweredFromMemoryForASecond(t *testing.T) {
	tests := []struct {
		name   string
		answer http.HandlerFunc
	}{
		{"refusal", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }},
		{"garbage", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := library(t).On("GET /library", test.answer).On("POST /library/_termvectors", test.answer)
				c := cached(t, f)
				for range 10 {
					for _, text := range []string{"a", "b"} {
						if a, err := c.Analyze(t.Context(), at("library"), "title", "", text); err == nil {
							t.Errorf("analysis %v", a)
						}
					}
				}
				if n := f.Asked("GET /library"); n != 1 {
					t.Errorf("a sick cluster was asked %d times for a mapping, want 1", n)
				}
				time.Sleep(1100 * time.Millisecond)
				r := clustertest.Engines(t, "testdata")[0]
				f.Replay(t, "GET /library", r, "schema")
				if _, err := c.Analyze(t.Context(), at("library"), "title", "", "a"); err != nil {
					t.Errorf("error %v from a cluster that is well again", err)
				}
				for range 10 {
					if st, _, err := statistics(t.Context(), c); err == nil {
						t.Errorf("statistics %v", st)
					}
				}
				if n := f.Asked("_termvectors"); n != 1 {
					t.Errorf("a sick cluster was asked %d times for vectors, want 1", n)
				}
				time.Sleep(1100 * time.Millisecond)
				f.Replay(t, "POST /library/_termvectors", r, "vectors")
				if _, _, err := statistics(t.Context(), c); err != nil {
					t.Errorf("error %v from a cluster that is well again", err)
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
			if _, err := c.Analyze(t.Context(), at("library"), "title.raw", "", "a"); !errors.Is(err, mapping.ErrNotText) {
				t.Fatalf("error %v", err)
			}
			time.Sleep(10 * time.Second)
		}
		if n := f.Asked("GET /library"); n != 1 {
			t.Errorf("asked %d times, want 1", n)
		}
		if s := c.Stats().Analysis; s.Failures != 0 || s.Hits != 4 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestClusterThatHangsEndsTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := clustertest.New().On("GET /library", clustertest.Hang).On("POST /library/_analyze", clustertest.Hang)
		start := time.Now()
		_, err := cached(t, f).Analyze(t.Context(), at("library"), "title", "", "a")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 6*time.Second {
			t.Errorf("error %v after %v", err, time.Since(start))
		}
	})
}

func TestLoadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var under, most atomic.Int32
		f := library(t)
		f.On("POST /library/_analyze", func(w http.ResponseWriter, r *http.Request) {
			most.Store(max(most.Load(), under.Add(1)))
			clustertest.Hang(w, r)
			under.Add(-1)
		})

		c := cached(t, f)
		var busy atomic.Int32
		var callers sync.WaitGroup
		for i := range 100 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := c.Analyze(ctx, at("library"), "title", "", fmt.Sprint("text ", i))
				switch {
				case errors.Is(err, cache.ErrBusy):
					busy.Add(1)
				case !errors.Is(err, context.DeadlineExceeded):
					t.Errorf("error %v", err)
				}
			})
		}
		callers.Wait()
		if busy.Load() != 100-maxLoads/2 || most.Load() > maxLoads/2 || c.Stats().Busy != uint64(busy.Load()) {
			t.Errorf("%d callers refused, %d calls at once", busy.Load(), most.Load())
		}
		// Being busy passes.
		time.Sleep(10 * time.Second)
		r := clustertest.Engines(t, "testdata")[0]
		f.Replay(t, "POST /library/_analyze", r, "analyze")
		if _, err := c.Analyze(t.Context(), at("library"), "title", "", "The Running Cars"); err != nil {
			t.Error(err)
		}
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
				if n := 3*maxLoads - busy.Load(); n != maxLoads/2 {
					t.Errorf("the greedy ones have %d loads", n)
				}
				for i := range maxLoads {
					ctx := context.WithValue(t.Context(), clientKey{}, "modest")
					if _, err := c.Fields(ctx, at("quick"), fmt.Sprint("a*", i)); err != nil {
						t.Fatalf("another one: %v", err)
					}
				}
				callers.Wait()
				ctx, index := greedy(t.Context(), -1)
				if _, err := c.Fields(ctx, at(index), "b*"); errors.Is(err, cache.ErrBusy) {
					t.Error("places are not given back")
				}
				synctest.Wait()
				if n := c.loader.Taken(); n != 0 {
					t.Errorf("%d places are left taken", n)
				}
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
			time.Sleep(time.Millisecond)
			under.Add(-1)
		}
		c := cached(t, clustertest.New().On("GET /library", slow).On("POST /library/_analyze", slow))
		failed := make(chan error)
		go func() {
			_, err := c.Analyze(context.Background(), at("library"), "title", "", "a")
			failed <- err
		}()
		synctest.Wait()
		if under.Load() != 2 {
			t.Fatalf("%d calls under way, want 2", under.Load())
		}
		start := time.Now()
		c.Close()
		if under.Load() != 0 {
			t.Errorf("%d calls under way after Close", under.Load())
		}
		if err := <-failed; err == nil {
			t.Error("a caller got an answer from a closed cache")
		}
		if time.Since(start) > time.Second {
			t.Errorf("Close took %v", time.Since(start))
		}
		if _, err := c.Analyze(t.Context(), at("library"), "title", "", "b"); !errors.Is(err, cache.ErrClosed) {
			t.Errorf("error %v, want %v", err, cache.ErrClosed)
		}
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
		for _, index := range []string{"library", "other"} {
			if _, err := c.Analyze(t.Context(), at(index), "title", "", "The Running Cars"); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := statistics(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	askAll()
	if c.generations.slot("library") == c.generations.slot("other") {
		t.Skip("the two share a counter in this run")
	}
	c.Forget("library")
	askAll()
	for call, want := range map[string]int{"GET /library": 2, "GET /other": 1, "_termvectors": 2, "_explanation": 2} {
		if got := f.Asked(call); got != want {
			t.Errorf("%d calls of %s, want %d", got, call, want)
		}
	}
}

func TestScaleThatWasGuessedIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := clustertest.Engines(t, "testdata")[0]
		explanation := "explain nothing"
		search := func(w http.ResponseWriter, asked *http.Request) {
			answer := []byte(`{"_shards":{"total":1,"successful":1,"failed":0}}`)
			if strings.Contains(asked.URL.RawQuery, "_explanation") {
				answer = r.Body(t, explanation)
			}
			_, _ = w.Write(answer)
		}
		f := library(t).On("POST /library/_search", search)
		c := cached(t, f)
		for range 3 {
			st, _, err := statistics(t.Context(), c)
			if err != nil || st.Scale != 2.2 {
				t.Errorf("%+v, %v, want the scale that goes with the version", st, err)
			}
		}
		if n := f.Asked("_explanation"); n != 1 {
			t.Errorf("asked %d times, want 1", n)
		}
		time.Sleep(guessTime + time.Second)
		explanation = "explain low"
		if st, _, err := statistics(t.Context(), c); err != nil || st.Scale != 1.9 {
			t.Errorf("%+v, %v, want the scale of the explanation", st, err)
		}
		if n := f.Asked("_termvectors"); n != 1 {
			t.Errorf("terms counted %d times, want 1", n)
		}
	})
}

// A probe that the cluster does not answer says neither that scripts run nor
// that they do not, and nothing of the scale: what the cluster told before holds,
// and without that the search is not expanded.
func TestProbesThatFailLeaveWhatIsKnown(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"429": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"503": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"a block": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, aBlock)
		},
		"no shard": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"_shards":{"successful":0}}`) },
		"no JSON":  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `<html>`) },
		"a bad shard": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"_shards":{"successful":1,"failed":1}}`)
		},
	}
	for name, fails := range answers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sick atomic.Bool
				f := library(t)
				r := clustertest.Engines(t, "testdata")[0]
				f.On("POST /library/_search", func(w http.ResponseWriter, asked *http.Request) {
					body, _ := io.ReadAll(asked.Body)
					switch script := strings.Contains(string(body), "script_score"); {
					case sick.Load() && script:
						fails(w, asked)
					case script:
						_, _ = io.WriteString(w, `{"_shards":{"total":1,"successful":1,"failed":0}}`)
					default:
						_, _ = w.Write(r.Body(t, "explain low"))
					}
				})
				c := cached(t, f)
				sick.Store(true)
				for range 2 { // the first one asks, the second one remembers the failure
					if st, _, err := statistics(t.Context(), c); err == nil {
						t.Errorf("without knowing: %+v", st)
					}
				}
				time.Sleep(failureTime)
				sick.Store(false)
				known, _, err := statistics(t.Context(), c)
				if err != nil || !known.Scripts || known.Scale != 1.9 {
					t.Fatalf("%+v, %v, want scripts and a scale", known, err)
				}
				sick.Store(true)
				time.Sleep(time.Hour) // what was remembered is over
				if st, _, err := statistics(t.Context(), c); err != nil || st != known {
					t.Errorf("%+v, %v, want what was known, %+v", st, err, known)
				}
			})
		})
	}
}

// The same for the scale, which the version tells where the probe does not.
func TestScaleThatIsNotKnownIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := clustertest.Engines(t, "testdata")[0]
		var status atomic.Int64
		status.Store(http.StatusTooManyRequests)
		f := library(t).On("POST /library/_search", func(w http.ResponseWriter, asked *http.Request) {
			if strings.Contains(asked.URL.RawQuery, "_explanation") {
				w.WriteHeader(int(status.Load()))
				_, _ = w.Write(r.Body(t, "explain low"))
				return
			}
			_, _ = io.WriteString(w, `{"_shards":{"total":1,"successful":1,"failed":0}}`)
		}).Reply("GET /", http.StatusServiceUnavailable, `{}`)
		c := cached(t, f)
		if st, _, err := statistics(t.Context(), c); err == nil {
			t.Errorf("%+v of a cluster that says nothing", st)
		}
		status.Store(http.StatusOK)
		time.Sleep(failureTime)
		if st, _, err := statistics(t.Context(), c); err != nil || st.Scale != 1.9 {
			t.Errorf("%+v, %v, want the scale of the explanation", st, err)
		}
		status.Store(http.StatusServiceUnavailable)
		time.Sleep(time.Hour)
		if st, _, err := statistics(t.Context(), c); err != nil || st.Scale != 1.9 {
			t.Errorf("%+v, %v, want the scale of before", st, err)
		}
	})
}

func TestPanicOfALoadIsAnError(t *testing.T) {
	f := clustertest.New().On("GET /library", func(http.ResponseWriter, *http.Request) { panic("broken") })
	if _, err := cached(t, f).Analyze(t.Context(), at("library"), "title", "", "a"); err == nil ||
		!errors.Is(err, recovery.ErrPanic) {
		t.Errorf("error %v", err)
	}
}

// The calls of one load run side by side, in goroutines of their own.
func TestPanicBesideALoadIsAnErrorAndCounted(t *testing.T) {
	f := linearFake(map[string]linearIndex{"i": {body: withMulti(english), settings: similarity("type=BM25", "k1=10000", "b=0")}})
	f.On("POST /_search", func(http.ResponseWriter, *http.Request) { panic("broken") })
	f.On("GET /library", func(http.ResponseWriter, *http.Request) { panic("broken") })
	registry := prometheus.NewRegistry()
	c := client(t, f)
	c.guard = recovery.New(slog.New(slog.DiscardHandler), registry)
	cached := NewCached(c, CacheOptions{AnalysisBytes: 4 << 20, StatisticsBytes: 4 << 20, TTL: time.Minute})
	defer cached.Close()
	if _, err := cached.Linear(t.Context(), at("i"), "body", normPath, weightsPath, weightsID); !errors.Is(err, recovery.ErrPanic) {
		t.Errorf("error %v", err)
	}
	if _, err := cached.Analyze(t.Context(), at("library"), "title", "", "a"); !errors.Is(err, recovery.ErrPanic) {
		t.Errorf("error %v", err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%v, %v", families, err)
	}
	counted := 0.0
	for _, m := range families[0].GetMetric() {
		counted += m.GetCounter().GetValue()
	}
	if counted != 2 {
		t.Errorf("%v panics are counted, want 2", counted)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	const bound = 64 << 10
	c := NewCached(client(t, library(t)), CacheOptions{AnalysisBytes: bound, StatisticsBytes: bound, TTL: time.Minute})
	defer c.Close()
	for i := range 2000 {
		if _, err := c.Analyze(t.Context(), at("library"), "title", "", fmt.Sprint("text ", i)); err != nil {
			t.Fatal(err)
		}
		terms := []string{fmt.Sprint("term ", i)}
		if _, err := c.Statistics(t.Context(), at("library"), "title", terms, make([]int64, 1)); err != nil {
			t.Fatal(err)
		}
	}
	s := c.Stats()
	if s.Analysis.Bytes > bound || s.Analysis.Bytes < bound/4 || s.Statistics.Bytes > bound || s.Statistics.Bytes < bound/4 {
		t.Errorf("%d and %d bytes held of %d", s.Analysis.Bytes, s.Statistics.Bytes, bound)
	}
}

func TestManyCallersAtOnce(t *testing.T) {
	f := library(t)
	c := cached(t, f)
	var callers sync.WaitGroup
	for g := range 8 {
		callers.Go(func() {
			for i := range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%3)*time.Millisecond)
				if i%3 == 0 {
					ctx = t.Context()
				}
				a, err := c.Analyze(ctx, at("library"), "title", "", fmt.Sprint("text ", i%7))
				if err == nil && !slices.Equal(a.Terms, runningCars.Terms) {
					t.Errorf("analysis %v", a)
				}
				st, dfs, err := statistics(ctx, c)
				if err == nil && (st.DocCount != 3 || !slices.Equal(dfs, []int64{2, 1, 0})) {
					t.Errorf("%+v, %v", st, dfs)
				}
				if g == 0 && i%50 == 0 {
					c.Forget("library")
				}
				_ = c.Stats()
				cancel()
			}
		})
	}
	callers.Wait()
}

func TestWarmAnswersDoNotAllocate(t *testing.T) {
	c, terms, dfs := warm(t)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := c.Analyze(t.Context(), at("library"), "title", "", "The Running Cars"); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("Analyze allocates %v times, want 1 at most", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := c.Statistics(t.Context(), at("library"), "title", terms, dfs); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("Statistics allocates %v times, want none", n)
	}
}

// warm returns a cache that knows a text and 60 terms.
func warm(tb testing.TB) (*Cached, []string, []int64) {
	tb.Helper()
	c := cached(tb, library(tb))
	terms, dfs := make([]string, 60), make([]int64, 60)
	for i := range terms {
		terms[i] = fmt.Sprint("term", i)
	}
	if _, err := c.Analyze(tb.Context(), at("library"), "title", "", "The Running Cars"); err != nil {
		tb.Fatal(err)
	}
	if _, err := c.Statistics(tb.Context(), at("library"), "title", terms, dfs); err != nil {
		tb.Fatal(err)
	}
	return c, terms, dfs
}

func BenchmarkAnalyzeWarm(b *testing.B) {
	c, _, _ := warm(b)
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Analyze(ctx, at("library"), "title", "", "The Running Cars"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStatisticsWarm60Terms(b *testing.B) {
	c, terms, dfs := warm(b)
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Statistics(ctx, at("library"), "title", terms, dfs); err != nil {
			b.Fatal(err)
		}
	}
}
