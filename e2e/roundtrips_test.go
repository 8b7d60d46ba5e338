package e2e

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

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
	target, err := url.Parse(e.url)
	if err != nil {
		tb.Fatal(err)
	}
	r := &recorder{}
	forward := &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(target)
			pr.Out.URL.RawQuery = pr.In.URL.RawQuery
		},
		Transport: client.Transport,
		// Noted before akin sees the answer, so that what it asks next starts later.
		ModifyResponse: func(resp *http.Response) error {
			in := resp.Request
			if in.Method == http.MethodHead {
				return nil // akin looks whether a node answers, every ten seconds
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			start, _ := in.Context().Value(tripKey{}).(time.Time)
			r.log = append(r.log, trip{in.Method + " " + in.URL.Path, in.Header.Get("X-Opaque-Id"), start, time.Now()})
			return nil
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		start := time.Now()
		time.Sleep(delay)
		forward.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), tripKey{}, start)))
	}))
	tb.Cleanup(server.Close)
	r.url = server.URL
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
		time.Sleep(10 * tripDelay)
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

func TestLongestChain(t *testing.T) {
	at := func(start, end int) trip {
		return trip{start: time.UnixMilli(int64(start)), end: time.UnixMilli(int64(end))}
	}
	for _, test := range []struct {
		name  string
		trips []trip
		want  int
	}{
		{"none", nil, 0},
		{"side by side", []trip{at(0, 30), at(1, 31), at(2, 40)}, 1},
		{"one after the other", []trip{at(30, 60), at(0, 30), at(61, 90)}, 3},
		{"two stages of two", []trip{at(0, 30), at(0, 33), at(34, 60), at(35, 61)}, 2},
		{"a long one during two", []trip{at(0, 90), at(0, 30), at(31, 60)}, 2},
	} {
		if got := longestChain(test.trips); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

// TestRoundTripsOfASearch counts what a search costs. The rows come from
// Redis, so that reading them is one of the three round trips allowed; two
// are left for the cluster. A change that adds a request of akin's own to a
// search for a new text has to say what for, here and in docs/performance.md.
func TestRoundTripsOfASearch(t *testing.T) {
	const name = "akin-e2e-trips"
	eachEngine(t, func(t *testing.T, e *engine) {
		redis := commonRedis(t)
		makeRelated(t, e)
		pushMatrix(t, redis, name, relatedFile(t, vectorsA))
		r := startRecorder(t, e, tripDelay)
		a := startAkin(t, section{
			"cluster":   section{"urls": []string{r.url}},
			"expansion": section{"budget": widePatience},
			"matrices":  []section{{"name": name}},
			"redis":     section{"url": redis.url},
		})
		a.awaitMatrix(t, name)
		r.settle()

		before, sent := tripsOfSearch(t, a, r, "cold", "car boat")
		if chain := longestChain(before); chain > 2 {
			t.Errorf("a cold search waits %d times for the cluster before it is sent, want at most 2: %v", chain, names(before))
		}
		if len(sent) != 1 {
			t.Errorf("a cold search is sent %d times", len(sent))
		}
		for _, test := range []struct {
			text string
			want []string
		}{
			{"car red", []string{"POST /" + relatedIndex + "/_analyze", "POST /" + relatedIndex + "/_termvectors"}},
			{"red boat", []string{"POST /" + relatedIndex + "/_analyze"}}, // whose frequencies are known
		} {
			r.settle()
			before, sent = tripsOfSearch(t, a, r, test.text, test.text)
			if got := names(before); !slices.Equal(got, test.want) || len(sent) != 1 {
				t.Errorf("a search for the new text %q: %v before it, sent %d times; want %v and once", test.text, got, len(sent), test.want)
			}
		}
		r.settle()
		before, sent = tripsOfSearch(t, a, r, "warm", "car boat")
		if len(before) != 0 || len(sent) != 1 {
			t.Errorf("a warm search: %v before it, sent %d times; want no other request and once", names(before), len(sent))
		}
		if n := a.metric(t, requestsMetric, rewrittenOutcome); n != 4 {
			t.Errorf("%v of 4 searches were rewritten", n)
		}
	})
}

// tripsOfSearch searches through akin and returns akin's own requests and
// those that carry the search.
func tripsOfSearch(t *testing.T, a *akin, r *recorder, id, text string) (own, sent []trip) {
	t.Helper()
	answer := exchange(t, a.url, rawRequest{
		method: "POST", target: relatedPath,
		header: []string{jsonType, "X-Opaque-Id: " + id}, body: relatedSearch(text),
	})
	if answer.status != "200 OK" {
		t.Fatalf("%s: %s", answer.status, answer.body)
	}
	for _, trip := range r.take() {
		if trip.opaqueID == id && trip.what == "POST "+relatedPath {
			sent = append(sent, trip)
		} else {
			own = append(own, trip)
		}
	}
	return own, sent
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
