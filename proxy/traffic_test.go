package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/e2e/check"
)

func TestAnswersAreCountedByKindAndStatusAndTimed(t *testing.T) {
	release := make(chan struct{})
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a/_doc/1":
			w.WriteHeader(http.StatusNotFound)
		case "/a/_doc/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "too short")
		case "/a/_search":
			<-release
			_, _ = io.WriteString(w, "{}")
		}
	}))
	defer node.Close()
	registry := prometheus.NewRegistry()
	s := newServer(t, Options{Nodes: nodesAt(node.URL), Registry: registry})
	front := httptest.NewServer(s.Handler())
	defer front.Close()
	get := func(path string) {
		res, err := http.Get(front.URL + path)
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}
	searched := make(chan struct{})
	go func() {
		defer close(searched)
		get("/a/_search")
	}()
	waitFor(t, "the search to be under way", func() bool { return counter(t, registry, "akin_requests_in_flight") == 1 })
	check.Equal(t, 0, counter(t, registry, "akin_request_duration_seconds"), "answers are timed before one is sent")
	close(release)
	<-searched
	get("/a/_doc/1")
	get("/a/_doc/cut")
	for _, want := range []struct {
		kind, code string
		n          float64
	}{{"search", "2xx", 1}, {"other", "4xx", 1}, {"other", "aborted", 1}, {"other", "2xx", 0}, {"search", "5xx", 0}} {
		waitFor(t, want.kind+" "+want.code, func() bool {
			return counter(t, registry, "akin_responses_total", "kind", want.kind, "code", want.code) == want.n
		})
	}
	if search, other := counter(t, registry, "akin_request_duration_seconds", "kind", "search"),
		counter(t, registry, "akin_request_duration_seconds", "kind", "other"); search != 1 || other != 2 {
		t.Errorf("%v searches and %v others are timed, want 1 and 2", search, other)
	}
	check.Equal(t, 0, counter(t, registry, "akin_requests_in_flight"), "requests are under way")
}

// A pass-through may not pay for being counted.
func TestCountingAnAnswerAllocatesNothing(t *testing.T) {
	count := noTraffic()
	check.Equal(t, 0, testing.AllocsPerRun(100, func() { count.End(count.Begin(), false, http.StatusOK) }), "allocations")
}

func TestESQLQueriesForTextAreCountedAndPassUnchanged(t *testing.T) {
	p := start(t, Options{}, nil)
	for n, tt := range []struct {
		target, body string
		counted      float64
	}{
		{"/_query", `{"query":"FROM books METADATA _score | WHERE MATCH(title, ?q)","params":[{"q":"car"}]}`, 1},
		{"/_query/async", `{"query":"FROM books | where qstr (\"title:car\")"}`, 1},
		{"/_query?format=csv", `{"query":"FROM books | WHERE title:\"car\" | LIMIT 5"}`, 1},
		{"/_query", `{"query":"FROM books | WHERE title : ?q","params":["car"]}`, 1},
		{"/_query", `{"query":"FROM books | WHERE year::long > 2000 AND title == \"a match\"","params":[{"q":"car"}]}`, 0},
		{"/_query", `{"query":"FROM books","filter":{"match":{"title":"car"}}}`, 0},
		{"/_query", `{"query":"FROM books` + strings.Repeat(" ", maxESQL) + `| WHERE MATCH(title, \"car\")"}`, 0},
		{"/_sql", `{"query":"SELECT * FROM books WHERE MATCH(title, 'car')"}`, 0},
	} {
		before := p.value(t, "akin_esql_searches_total")
		p.post(t, tt.target, "", tt.body)
		check.Equal(t, before+tt.counted, p.value(t, "akin_esql_searches_total"), tt.body)
		check.Equal(t, tt.body, p.all()[n].body, "the body")
	}
}
