package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/freeport"
)

// A badSearch is a search that akin cannot expand, or the cluster not answer.
type badSearch struct {
	name string
	rawRequest

	// outcome is what it is counted as, "" where that depends on the engine,
	// and reason a part of the reason that is counted with it.
	outcome, reason string
}

func badSearches() []badSearch {
	post := func(target, body string) rawRequest {
		return rawRequest{method: "POST", target: target, header: []string{jsonType}, body: body}
	}
	const closed, empty, keyword = "/akin-e2e-closed/_search", "/akin-e2e-empty/_search", "/akin-e2e-keyword/_search"
	match := `{"query":{"match":{"body":"car"}}}`
	deep := strings.Repeat(`{"bool":{"must":`, 200) + `{"match":{"body":"car"}}` + strings.Repeat(`}}`, 200)
	return []badSearch{
		{"not JSON", post(relatedPath, `query=car`), "unchanged", "not_json"},
		{"half of it", post(relatedPath, match[:20]), "unchanged", "not_json"},
		{"an array", post(relatedPath, `[]`), "unchanged", "not_json"},
		{"a name twice", post(relatedPath, `{"size":1,"size":2,"query":{"match":{"body":"car"}}}`), "unchanged", "not_json"},
		{"too deep", post(relatedPath, `{"query":`+deep+`}`), "unchanged", "too_deep"},
		{"nested without end", post(relatedPath, strings.Repeat(`{"query":`, 20000)), "unchanged", ""},
		{"larger than the cap", post(relatedPath, match+strings.Repeat(" ", 2<<20)), "unchanged", "large"},
		{"unknown field", post(relatedPath, `{"query":{"match":{"nothing":"car"}}}`), "unchanged", ""},
		{"number field", post(relatedPath, `{"query":{"match":{"n":"car"}}}`), "unchanged", ""},
		{"unknown index", post("/akin-e2e-none/_search", match), "", ""},
		{"unknown among known", post("/"+relatedIndex+",akin-e2e-none/_search", match), "", ""},
		{"closed index", post(closed, match), "", ""},
		{"no mapping", post(empty, match), "unchanged", ""},
		{"keyword in one of two", post("/akin-e2e-keyword,"+relatedIndex+"/_search", match), "unchanged", ""},
		{"keyword", post(keyword, match), "unchanged", ""},
		{"unknown analyzer", post(relatedPath, `{"query":{"match":{"body":{"query":"car","analyzer":"nosuch"}}}}`), "", ""},
		{"unknown option", post(relatedPath, `{"query":{"match":{"body":{"query":"car","nosuch":1}}}}`), "unchanged", ""},
		{"unknown clause", post(relatedPath, `{"query":{"mtch":{"body":"car"}}}`), "unchanged", "no_clause"},
		{"unknown key besides the query", post(relatedPath, `{"nosuch":1,"query":{"match":{"body":"car"}}}`), "", ""},
		{"bad index name", post("/-akin*,,/_search", match), "", ""},
		{"two queries in one", post(relatedPath, `{"query":{"match":{"body":"car"},"match_all":{}}}`), "", ""},
		{"no text", post(relatedPath, `{"query":{"match":{"body":""}}}`), "unchanged", ""},
		{"null", post(relatedPath, `{"query":{"match":{"body":null}}}`), "", ""},
		{"min_score inside", post(relatedPath, `{"query":{"function_score":{"query":{"match":{"body":"car"}},"min_score":0.1}}}`), "unchanged", "min_score"},
		{"min_score, escaped", post(relatedPath, `{"min\u005fscore":0.1,"query":{"match":{"body":"car"}}}`), "unchanged", "min_score"},
		{"semicolon in q", rawRequest{method: "GET", target: relatedPath + "?q=car;red&df=body"}, "unchanged", "semicolon"},
		{"a word without neighbors", post(relatedPath, `{"query":{"match":{"body":"red"}}}`), "unchanged", ""},
	}
}

// TestWhatCannotBeExpandedAnswersAsWithoutAkin compares answers byte for byte,
// except for what two direct searches differ in, and looks at the metrics.
func TestWhatCannotBeExpandedAnswersAsWithoutAkin(t *testing.T) {
	file := relatedFile(t, vectorsA)
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		e.makeIndex(t, "akin-e2e-closed", relatedDefinition)
		e.must(t, http.MethodPost, "/akin-e2e-closed/_close", "")
		e.makeIndex(t, "akin-e2e-empty", `{"settings":{"number_of_shards":1,"number_of_replicas":0}}`)
		e.makeIndex(t, "akin-e2e-keyword", `{"settings":{"number_of_shards":1,"number_of_replicas":0},
			"mappings":{"properties":{"body":{"type":"keyword"}}}}`)
		a := serveRelated(t, e, file, nil)
		for _, s := range badSearches() {
			t.Run(s.name, func(t *testing.T) {
				labels := []string{`outcome="` + s.outcome, s.reason}
				before := a.metric(t, requestsMetric, labels...)
				direct, through := exchange(t, e.url, s.rawRequest).stable(t), exchange(t, a.url, s.rawRequest).stable(t)
				if diff := cmp.Diff(direct, through); diff != "" {
					t.Errorf("(-direct +through akin):\n%s", diff)
				}
				if s.outcome != "" && a.metric(t, requestsMetric, labels...) != before+1 {
					t.Errorf("not counted under %v:\n%s", labels, requestMetrics(t, a))
				}
			})
		}
		if n := a.metric(t, requestsMetric, rewrittenOutcome); n > 3 {
			t.Errorf("%v of the searches were rewritten:\n%s", n, requestMetrics(t, a))
		}
	})
}

// requestMetrics returns the lines of the metric of requests.
func requestMetrics(t *testing.T, a *akin) string {
	t.Helper()
	var lines []string
	for line := range strings.SplitSeq(string(a.admin.must(t, http.MethodGet, "/metrics", "")), "\n") {
		if strings.HasPrefix(line, requestsMetric) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// TestRefusedSearchIsAnsweredFromTheOriginal disables scripts while akin believes
// that it may use them.
func TestRefusedSearchIsAnsweredFromTheOriginal(t *testing.T) {
	file := relatedFile(t, vectorsA)
	eachEngine(t, func(t *testing.T, e *engine) {
		if !e.scripts {
			return // nothing to disable
		}
		if !e.ours {
			t.Skip("needs an engine of our own: it changes a cluster setting")
		}
		makeRelated(t, e)
		a := serveRelated(t, e, file, nil)
		if hits := a.searchRelated(t, relatedSearch("car")); !strings.Contains(strings.Join(hits.ids(), " "), "automobile") {
			t.Fatalf("not expanded at first: %v", hits.ids())
		}
		setExpensiveQueries(t, e, "false")
		t.Cleanup(func() { setExpensiveQueries(t, e, "null") })
		r := rawRequest{method: "POST", target: relatedPath, header: []string{jsonType}, body: relatedSearch("car")}
		direct, through := exchange(t, e.url, r).stable(t), exchange(t, a.url, r).stable(t)
		if diff := cmp.Diff(direct, through); diff != "" {
			t.Errorf("(-direct +through akin):\n%s", diff)
		}
		if n := a.metric(t, "akin_rejected_searches_total"); n != 1 {
			t.Errorf("akin_rejected_searches_total = %v, want 1", n)
		}
	})
}

func setExpensiveQueries(t *testing.T, e *engine, value string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // it is called when the test has ended, too
	_, answer, err := e.call(ctx, http.MethodPut, "/_cluster/settings", `{"transient":{"search.allow_expensive_queries":`+value+`}}`)
	if err != nil || !strings.Contains(string(answer), `"acknowledged":true`) {
		t.Errorf("search.allow_expensive_queries=%s: %v %s", value, err, answer)
	}
}

// TestClusterAwayIsA502InItsOwnShape: no node listens.
func TestClusterAwayIsA502InItsOwnShape(t *testing.T) {
	port, err := freeport.Pick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := launchAkin(t, section{
		"cluster":  section{"urls": []string{"http://127.0.0.1:" + port}},
		"matrices": []section{{"name": "main", "file": relatedFile(t, vectorsA)}},
	})
	for _, r := range []rawRequest{
		{method: "GET", target: "/_cat/health"},
		{method: "POST", target: "/i/_search", header: []string{jsonType}, body: relatedSearch("car")},
		{method: "POST", target: "/_bulk", header: []string{ndjsonType}, body: "{}\n", chunked: true},
	} {
		checkUnanswered(t, exchange(t, a.url, r))
	}
	if n := a.metric(t, "akin_upstream_errors_total"); n != 3 {
		t.Errorf("akin_upstream_errors_total = %v, want 3", n)
	}
	status, answer, err := a.admin.call(t.Context(), http.MethodGet, "/readyz", "")
	if err != nil || status != http.StatusServiceUnavailable || len(answer) < len(`{"status":""}`) {
		t.Errorf("/readyz: %d %s %v, want 503 with a reason", status, answer, err)
	}
	if status, _, err := a.admin.call(t.Context(), http.MethodGet, "/healthz", ""); err != nil || status != http.StatusOK {
		t.Errorf("/healthz: %d %v, want 200", status, err)
	}
}

// checkUnanswered checks that an answer is an error as a cluster writes it.
func checkUnanswered(t *testing.T, answer rawResponse) {
	t.Helper()
	type cause struct{ Type, Reason string }
	var body struct {
		Error struct {
			RootCause []cause `json:"root_cause"`
			Type      string
			Reason    string
		}
		Status int
	}
	if err := json.Unmarshal([]byte(answer.body), &body); err != nil {
		t.Fatalf("%s is not JSON: %v", answer.body, err)
	}
	if answer.status != "502 Bad Gateway" || body.Status != 502 || body.Error.Type == "" || body.Error.Reason == "" || len(body.Error.RootCause) != 1 {
		t.Errorf("answer %s %s, want a 502 in the shape of Elasticsearch", answer.status, answer.body)
	}
	if got := answer.header.Get("Content-Type"); !strings.HasPrefix(got, "application/json") {
		t.Errorf("Content-Type %q", got)
	}
}

// TestRequestThatTheClusterDropsIsNotRepeated: a write may have happened.
func TestRequestThatTheClusterDropsIsNotRepeated(t *testing.T) {
	var received atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("X-Test") != "" {
			received.Add(1)
		}
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	a := launchAkin(t, section{
		"cluster":  section{"urls": []string{server.URL}},
		"matrices": []section{{"name": "main", "file": relatedFile(t, vectorsA)}},
	})
	for i, r := range []rawRequest{
		{method: "POST", target: "/i/_doc", header: []string{jsonType, "X-Test: 1"}, body: "{}"},
		{method: "POST", target: "/i/_search", header: []string{jsonType, "X-Test: 1"}, body: relatedSearch("car")},
		{method: "DELETE", target: "/i", header: []string{"X-Test: 1"}},
	} {
		checkUnanswered(t, exchange(t, a.url, r))
		if got := int(received.Load()); got != i+1 {
			t.Fatalf("%s %s: the cluster has received %d requests, want %d", r.method, r.target, got, i+1)
		}
	}
}

// TestAnotherNodeAnswersWhereOneIsAway gives akin a dead node and a live one.
func TestAnotherNodeAnswersWhereOneIsAway(t *testing.T) {
	e := oneEngine(t)
	makeRelated(t, e)
	port, err := freeport.Pick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{"http://127.0.0.1:" + port, e.url}},
		"expansion": section{"budget": widePatience},
		"matrices":  []section{{"name": "main", "file": relatedFile(t, vectorsA)}},
	})
	a.awaitMatrix(t, "main")
	for range 10 {
		if hits := a.searchRelated(t, relatedSearch("car")); len(hits.ids()) != 4 {
			t.Errorf("hits %v, want the three with car and automobile", hits.ids())
		}
		a.must(t, http.MethodPost, "/"+relatedIndex+"/_refresh", "")
	}
}

// garbageServer answers every connection with bytes that no Redis sends.
func garbageServer(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buf := make([]byte, 4096)
				for {
					if _, err := conn.Read(buf); err != nil {
						return
					}
					if _, err := fmt.Fprint(conn, "HTTP/1.1 400 Bad Request\r\n\r\nno redis here\r\n"); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}
