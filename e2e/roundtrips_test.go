package e2e

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// forwardTo returns a handler that hands everything on to a server.
func forwardTo(tb testing.TB, server string) *httputil.ReverseProxy {
	tb.Helper()
	target, err := url.Parse(server)
	if err != nil {
		tb.Fatal(err)
	}
	return &httputil.ReverseProxy{
		Transport: client.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.URL.RawQuery = r.In.URL.RawQuery
		},
	}
}

// between starts a server before an engine that handles requests itself, or has
// forward hand them on. It returns its address.
func between(tb testing.TB, e *engine, handle func(w http.ResponseWriter, r *http.Request, forward http.Handler)) string {
	tb.Helper()
	forward := forwardTo(tb, e.url)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, forward) }))
	tb.Cleanup(server.Close)
	return server.URL
}

// A trip is one request of akin's to the cluster.
type trip struct {
	what       string
	opaqueID   string // of the client's request
	start, end time.Time
}

// A recorder is between akin and an engine. It notes every request, and may
// delay it, so that requests that could go side by side overlap.
type recorder struct {
	url string
	mu  sync.Mutex
	log []trip
}

// tripDelay is long against an engine's answer to a small request.
const tripDelay = 30 * time.Millisecond

type tripKey struct{}

func startRecorder(tb testing.TB, e *engine, delay time.Duration) *recorder {
	tb.Helper()
	r := &recorder{}
	forward := forwardTo(tb, e.url)
	// Noted before akin sees the answer, so that what it asks next starts later.
	forward.ModifyResponse = func(resp *http.Response) error {
		in := resp.Request
		if in.Method == http.MethodHead {
			return nil // akin looks whether a node answers, every ten seconds
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		start, _ := in.Context().Value(tripKey{}).(time.Time)
		r.log = append(r.log, trip{in.Method + " " + in.URL.Path, in.Header.Get("X-Opaque-Id"), start, time.Now()})
		return nil
	}
	r.url = between(tb, e, func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
		start := time.Now()
		time.Sleep(delay) // The delay is what the recorder is for.
		forward.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), tripKey{}, start)))
	})
	return r
}

// take returns the trips since the last call.
func (r *recorder) take() []trip {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.log
	r.log = nil
	return log
}

// settle waits until akin has asked nothing for ten times the delay.
func (r *recorder) settle() {
	for busy := true; busy; busy = len(r.take()) > 0 {
		r.take()
		time.Sleep(10 * tripDelay) // No sign tells that akin will ask nothing more.
	}
}

// longestChain returns the largest number of trips of which each began after
// the one before it had ended: how often the search had to wait.
func longestChain(trips []trip) int {
	sorted := slices.SortedFunc(slices.Values(trips), func(a, b trip) int { return a.end.Compare(b.end) })
	chain, end := 0, time.Time{}
	for _, s := range sorted {
		if !s.start.Before(end) {
			chain, end = chain+1, s.end
		}
	}
	return chain
}

// names returns the trips in the order in which they began.
func names(trips []trip) []string {
	sorted := slices.SortedFunc(slices.Values(trips), func(a, b trip) int {
		return cmp.Or(a.start.Compare(b.start), cmp.Compare(a.what, b.what))
	})
	what := make([]string, 0, len(sorted))
	for _, s := range sorted {
		what = append(what, s.what)
	}
	return what
}

// TestRoundTripsOfASearch counts what a search costs, by the name of the index
// and by that of an alias. The rows come from Redis, so that reading them is one
// of the three round trips allowed; two are left for the cluster. Mappings,
// analyzers, the scale of scores and whether scripts run are known when akin is
// ready. A change that adds a request of akin's own to a search for a new text
// has to say what for, here and in docs/performance.md.
func TestRoundTripsOfASearch(t *testing.T) {
	const (
		name, alias      = "akin-e2e-trips", relatedIndex + "-alias"
		analyze, vectors = "POST /" + relatedIndex + "/_analyze", "POST /" + relatedIndex + "/_termvectors"
	)
	eachEngine(t, func(t *testing.T, e *engine) {
		redis := commonRedis(t)
		makeRelated(t, e)
		e.must(t, http.MethodPut, "/"+relatedIndex+"/_alias/"+alias, "")
		pushMatrix(t, redis, name, relatedFile(t, vectorsA))
		for _, index := range []string{relatedIndex, alias} {
			r := startRecorder(t, e, tripDelay)
			a := setupWide(t, e, section{
				"cluster": section{"urls": []string{r.url}}, "redis": redis.section(),
				"matrices": []section{{"name": name, "indices": []string{relatedIndex + "*"}}},
			})
			for _, tt := range []struct {
				text string
				want []string // nil: any number of these, in two stages
			}{
				{"car boat", nil},
				{"car red", []string{analyze, vectors}},
				{"red boat", []string{analyze}}, // whose frequencies are known
				{"car boat", []string{}},
			} {
				r.settle()
				var own, sent []trip
				answer := exchange(t, a.url, post("/"+index+"/_search", relatedSearch(tt.text), "X-Opaque-Id: of-the-client"))
				for _, trip := range r.take() {
					if trip.opaqueID == "of-the-client" && strings.HasSuffix(trip.what, "/_search") {
						sent = append(sent, trip)
					} else {
						own = append(own, trip)
					}
				}
				got := names(own)
				stray := slices.ContainsFunc(got, func(what string) bool {
					return !strings.HasSuffix(what, "_analyze") && !strings.HasSuffix(what, "termvectors")
				})
				if answer.status != "200 OK" || len(sent) != 1 || longestChain(own) > 2 || stray || tt.want != nil && !slices.Equal(got, tt.want) {
					t.Errorf("%s, %q: %s, sent %d times, before it %v, want %v", index, tt.text, answer.status, len(sent), got, tt.want)
				}
			}
			if n := a.metric(t, requestsMetric, rewrittenOutcome); n != 4 {
				t.Errorf("%v of 4 searches were rewritten", n)
			}
		}
	})
}
