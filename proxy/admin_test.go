package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy/report"
)

// askAdmin sends a request to the admin handler of a server for o.
func askAdmin(t *testing.T, o Options, method, target, body string) (status int, answer string) {
	t.Helper()
	s := build(o)
	w := httptest.NewRecorder()
	s.admin.ServeHTTP(w, adminRequest(method, target, body))
	return w.Code, w.Body.String()
}

// adminRequest returns a request to the admin port by its address.
func adminRequest(method, target, body string) *http.Request {
	return httptest.NewRequest(method, "http://127.0.0.1:9281"+target, strings.NewReader(body))
}

func TestMetricsShowTheInjectedRegistry(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "akin_matrix_version", Help: "h"}, func() float64 { return 7 }))
	status, answer := askAdmin(t, Options{Registry: registry}, http.MethodGet, "/metrics", "")
	for _, want := range []string{
		"akin_matrix_version 7\n",
		"akin_requests_total{effort=\"\",outcome=\"passed_through\",reason=\"\"} 0\n",
		"akin_search_stage_duration_seconds_count{effort=\"\",stage=\"expand\"} 0\n",
	} {
		if status != http.StatusOK || !strings.Contains(answer, want) {
			t.Errorf("got %d, without %q", status, want)
		}
	}
}

func TestMetricNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	build(Options{Nodes: poolOf(nodes.Options{URLs: []string{"http://a"}, Registerer: registry}), Registry: registry})
	families, err := registry.Gather()
	if err != nil || len(families) == 0 {
		t.Fatalf("%d families, %v", len(families), err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestTwoServersCannotShareARegistry(t *testing.T) {
	o := Options{Nodes: nodesAt("http://a"), Registry: prometheus.NewRegistry(), Guard: recovery.New(slog.New(slog.DiscardHandler), prometheus.NewRegistry())}
	build(o)
	defer func() {
		if recover() == nil {
			t.Error("a second one has the metrics of the first")
		}
	}()
	build(o)
}

func TestShowExpansion(t *testing.T) {
	clause := expand.Explanation{Path: "query.match", Field: "body", Added: []expand.Added{{Term: "hire", From: "rental", Similarity: 0.5, Weight: 1, Boost: 0.25}}}
	rewrites := expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
		if until, ok := ctx.Deadline(); !ok || time.Until(until) < 50*time.Millisecond || time.Until(until) > showBudget {
			t.Errorf("the expander has until %v, %v", until, ok)
		}
		return &expand.Result{
			Rewritten: true,
			RawQuery:  "was=" + r.RawQuery + "&index=" + r.Index,
			Body:      []byte(`{"html":"<b>&","n":1.0000000000000000001,"was":` + string(r.Body) + `}`),
			Clauses:   []expand.Explanation{clause},
		}, nil
	})
	const shownClause = `[{"path":"query.match","field":"body","added":[{"term":"hire","from":"rental","similarity":0.5,"weight":1,"boost":0.25}]}]`
	tests := []struct {
		name, target, body string
		expander           Expander
		status             int
		answer             string
	}{
		{
			"rewritten", "/_akin/expand/help?x=%zz;", "{}", rewrites, 200,
			`{"rewritten":true,"raw_query":"was=x=%zz;&index=help","body":{"html":"<b>&","n":1.0000000000000000001,"was":{}},"clauses":` + shownClause + "}\n",
		},
		{
			"date math", "/_akin/expand/%3Clogs-%7Bnow%2Fd%7D%3E", "{}", rewrites, 200,
			`{"rewritten":true,"raw_query":"was=&index=<logs-{now/d}>","body":{"html":"<b>&","n":1.0000000000000000001,"was":{}},"clauses":` + shownClause + "}\n",
		},
		{
			"all indices", "/_akin/expand", "{}", rewrites, 200,
			`{"rewritten":true,"raw_query":"was=&index=","body":{"html":"<b>&","n":1.0000000000000000001,"was":{}},"clauses":` + shownClause + "}\n",
		},
		{
			"all indices, slash", "/_akin/expand/?akin=explain&a", "{}", rewrites, 200,
			`{"rewritten":true,"raw_query":"was=a&index=","body":{"html":"<b>&","n":1.0000000000000000001,"was":{}},"clauses":` + shownClause + "}\n",
		},
		{
			"left alone", "/_akin/expand/help?a", "{}", expander(leaveAlone), 200,
			`{"rewritten":false,"reason":"left alone","raw_query":"a","clauses":[]}` + "\n",
		},
		{
			"failed", "/_akin/expand/help", "{}", expander(func(context.Context, *expand.Request) (*expand.Result, error) {
				return nil, errors.New("redis: refused")
			}), 200,
			`{"rewritten":false,"cause":"error","error":"redis: refused","raw_query":"","clauses":[]}` + "\n",
		},
		{
			"panicked", "/_akin/expand/help", "{}", expander(func(context.Context, *expand.Request) (*expand.Result, error) { panic(1) }), 200,
			`{"rewritten":false,"cause":"panic","error":"panic","raw_query":"","clauses":[]}` + "\n",
		},
		{
			"too large", "/_akin/expand/help", strings.Repeat(" ", 101), rewrites, 413,
			`{"error":{"root_cause":[{"type":"akin_request_exception","reason":"the body is larger than max_body"}],"type":"akin_request_exception","reason":"the body is larger than max_body"},"status":413}`,
		},
		{
			"switched off", "/_akin/expand/help", "{}", nil, 404,
			`{"error":{"root_cause":[{"type":"akin_request_exception","reason":"expansion is switched off"}],"type":"akin_request_exception","reason":"expansion is switched off"},"status":404}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, answer := askAdmin(t, Options{Expander: tt.expander, MaxBody: 100}, http.MethodPost, tt.target, tt.body)
			if status != tt.status || answer != tt.answer {
				t.Errorf("got %d\n%s\nwant %d\n%s", status, answer, tt.status, tt.answer)
			}
		})
	}
}

// echo rewrites to what it was asked, with a failure.
func echo(name string) expander {
	return func(_ context.Context, r *expand.Request) (*expand.Result, error) {
		kind := ""
		for _, n := range []string{"search", "msearch", "count", "validate", "explain", "rank_eval"} {
			if e, _ := report.Endpoint(n); e == r.Endpoint {
				kind = n
			}
		}
		return &expand.Result{
			Rewritten: true, RawQuery: name + " " + kind + " " + r.RawQuery, Body: r.Body,
			Parts: []expand.Part{{Err: errors.New("analyze: refused")}},
		}, nil
	}
}

func TestShowExpansionOfOtherEndpointsAndProfiles(t *testing.T) {
	o := Options{Expander: echo("own"), Profiles: map[string]Expander{"fast": echo("fast"), "none": nil}}
	const lines = "{\"index\":\"a\"}\n{\"query\":{}}\n"
	for _, tt := range []struct {
		name, query, body string
		status            int
		answer            string // the part that matters
	}{
		{"search", "?a=b", "{}", 200, `"raw_query":"own search a=b","body":{}`},
		{"named search", "?akin_endpoint=search", "{}", 200, `"raw_query":"own search ","body":{}`},
		{"count", "?akin_endpoint=count&a=b", "{}", 200, `"raw_query":"own count a=b","body":{}`},
		{"validate", "?akin_endpoint=validate", "{}", 200, `"own validate "`},
		{"explain", "?akin_endpoint=explain", "{}", 200, `"own explain "`},
		{"rank_eval", "?akin_endpoint=rank_eval", "{}", 200, `"own rank_eval "`},
		{"msearch", "?akin_endpoint=msearch", lines, 200, `"own msearch ","body":"{\"index\":\"a\"}\n{\"query\":{}}\n"`},
		{"failures", "", "{}", 200, `"failures":["analyze: refused"]`},
		{"profile", "?akin_profile=fast", "{}", 200, `"fast search "`},
		{"unknown endpoint", "?akin_endpoint=_search", "{}", 400, "akin_endpoint is none of search, msearch, count, validate, explain, rank_eval"},
		{"unknown profile", "?akin_profile=secret", "{}", 404, "no profile has that name"},
		{"profile switched off", "?akin_profile=none", "{}", 404, "expansion is switched off"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, o)
			w := httptest.NewRecorder()
			s.admin.ServeHTTP(w, adminRequest(http.MethodPost, "/_akin/expand/help"+tt.query, tt.body))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.answer) || !json.Valid(w.Body.Bytes()) {
				t.Errorf("got %d %s, want %d with %s", w.Code, w.Body, tt.status, tt.answer)
			}
		})
	}
}

func TestShowExpansionTakesPackedBodies(t *testing.T) {
	body := `{"x":"` + strings.Repeat("y", 90) + `"}`
	for _, tt := range []struct {
		name, encoding, body string
		status               int
		answer               string
	}{
		{"gzip", "gzip", pack(t, body), 200, `"raw_query":"own search ","body":` + body},
		{"nothing", "gzip", "", 200, `"raw_query":"own search "`},
		{"identity", "identity", body, 200, `"body":` + body},
		{"no gzip", "gzip", body, 400, "no sound gzip"},
		{"gzip that breaks off", "gzip", pack(t, body)[:30], 400, "no sound gzip"},
		{"gzip of too much", "gzip", pack(t, strings.Repeat(" ", 200)), 413, "larger than max_body"},
		{"too much gzip", "gzip", strings.Repeat("x", 101), 413, "larger than max_body"},
		{"another coding", "br", body, 415, "neither plain nor gzip"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, Options{Expander: echo("own"), MaxBody: 100})
			r := adminRequest(http.MethodPost, "/_akin/expand/help", tt.body)
			r.Header.Set("Content-Encoding", tt.encoding)
			w := httptest.NewRecorder()
			s.admin.ServeHTTP(w, r)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.answer) {
				t.Errorf("got %d %s, want %d with %s", w.Code, w.Body, tt.status, tt.answer)
			}
		})
	}
}

// An expansion that is only shown counts as no request.
func TestShownExpansionIsNotCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	askAdmin(t, Options{Expander: rewriteTo("{}"), Registry: registry}, http.MethodPost, "/_akin/expand/a", "{}")
	if n := counter(t, registry, "akin_requests_total"); n != 0 {
		t.Errorf("%v requests are counted", n)
	}
}

func TestBrokenExpansionIsShownAsAnError(t *testing.T) {
	status, answer := askAdmin(t, Options{Expander: rewriteTo("{not JSON")}, http.MethodPost, "/_akin/expand/a", "{}")
	if status != http.StatusInternalServerError || !json.Valid([]byte(answer)) {
		t.Errorf("got %d %s", status, answer)
	}
}

func TestAdminPortServesNothingElse(t *testing.T) {
	for target, want := range map[string]int{"/": 303, "/a/_search": 404, "/healthz/": 404, "/_akin": 404} {
		if status, _ := askAdmin(t, Options{}, http.MethodGet, target, ""); status != want {
			t.Errorf("GET %s = %d, want %d", target, status, want)
		}
	}
}

// startServe runs Serve until the returned function is called, which returns
// what Serve returned.
func startServe(t *testing.T, s *Server) (proxy, admin string, stop func() error) {
	t.Helper()
	listeners := [2]*httptest.Server{httptest.NewUnstartedServer(nil), httptest.NewUnstartedServer(nil)} // for their free ports
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- NewFront(s, nil).Serve(ctx, listeners[0].Listener, listeners[1].Listener) }()
	t.Cleanup(cancel)
	return listeners[0].Listener.Addr().String(), listeners[1].Listener.Addr().String(), func() error {
		cancel()
		return receive(t, "the end of Serve", ended)
	}
}

// A request in flight gets its answer after the stop, /readyz tells of the
// draining meanwhile, and then both ports are closed.
func TestServeDrains(t *testing.T) {
	reached, proceed := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(reached)
		<-proceed
		io.WriteString(w, "late")
	}))
	defer upstream.Close()
	s := build(Options{Nodes: nodesAt(upstream.URL)})
	proxy, admin, stop := startServe(t, s)

	answers := make(chan string, 1)
	go func() {
		res, err := client.Get("http://" + proxy + "/slow")
		if err != nil {
			answers <- err.Error()
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		answers <- string(body)
	}()
	receive(t, "the request at the node", reached)
	ended := make(chan error, 1)
	go func() { ended <- stop() }()

	var answer string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && !strings.Contains(answer, "shutting down"); time.Sleep(time.Millisecond) {
		res, err := client.Get("http://" + admin + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		answer = string(body)
	}
	if answer != `{"status":"not ready","reasons":["shutting down"]}` {
		t.Errorf("/readyz says %s", answer)
	}
	close(proceed)
	if got := receive(t, "the answer", answers); got != "late" {
		t.Errorf("the client got %q", got)
	}
	if err := receive(t, "the end", ended); err != nil {
		t.Errorf("Serve = %v", err)
	}
	for _, addr := range []string{proxy, admin} {
		if res, err := client.Get("http://" + addr + "/healthz"); err == nil {
			res.Body.Close()
			t.Errorf("%s still answers", addr)
		}
	}
}

func TestServeCutsOffWhatDoesNotEnd(t *testing.T) {
	reached := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		<-r.Context().Done()
	}))
	defer upstream.Close()
	s := build(Options{Nodes: nodesAt(upstream.URL), ShutdownTimeout: 20 * time.Millisecond})
	proxy, _, stop := startServe(t, s)
	failed := make(chan error, 1)
	go func() {
		res, err := client.Get("http://" + proxy + "/slow")
		if err == nil {
			res.Body.Close()
		}
		failed <- err
	}()
	receive(t, "the request at the node", reached)
	if err := stop(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Serve = %v, want a deadline", err)
	}
	if err := receive(t, "the end of the request", failed); err == nil {
		t.Error("the request was answered")
	}
}

func TestServeEndsWhenAListenerFails(t *testing.T) {
	s := build(Options{Nodes: nodesAt("http://a")})
	broken, fine := httptest.NewUnstartedServer(nil), httptest.NewUnstartedServer(nil)
	broken.Listener.Close()
	ended := make(chan error, 1)
	go func() { ended <- NewFront(s, nil).Serve(t.Context(), fine.Listener, broken.Listener) }()
	if err := receive(t, "the end", ended); err == nil || !strings.Contains(err.Error(), "proxy: listener: ") {
		t.Errorf("Serve = %v", err)
	}
	if diff := cmp.Diff(true, s.draining.Load()); diff != "" {
		t.Error("the server does not know that it ends")
	}
}

// TestAdminPortKeepsWebPagesOut sends what a page in an operator's browser can
// send: to a name that it had resolved to akin's address, and from its own
// site.
func TestAdminPortKeepsWebPagesOut(t *testing.T) {
	tests := []struct {
		name, method, path, host string
		header                   map[string]string
		status                   int
	}{
		{"by address", "GET", "/_akin/explanations", "10.0.0.7:9281", nil, 200},
		{"by an address of version 6", "GET", "/_akin/explanations", "[fd00::7]:9281", nil, 200},
		{"by an address of version 6 without port", "GET", "/_akin/explanations", "[::1]", nil, 200},
		{"by localhost", "POST", "/_akin/expand/help", "LocalHost:9281", nil, 200},
		{"by a name that is configured", "POST", "/_akin/expand/help", "akin-admin.Search.svc:9281", nil, 200},
		{"by another name", "GET", "/_akin/explanations", "attacker.example:9281", nil, 403},
		{"by another name, one record", "GET", "/_akin/explanations/1", "attacker.example", nil, 403},
		{"by another name, a post", "POST", "/_akin/expand/help", "attacker.example", nil, 403},
		{"by a name that begins like an address", "GET", "/_akin/explanations", "127.0.0.1.attacker.example", nil, 403},
		{"by a name that ends like one that is configured", "GET", "/_akin/explanations", "x.akin-admin.search.svc", nil, 403},
		{"health by another name", "GET", "/healthz", "akin.pods", nil, 200},
		{"readiness by another name", "GET", "/readyz", "akin.pods", nil, 200},
		{"metrics by another name", "GET", "/metrics", "akin.pods", nil, 200},
		{"a post of a page of its own", "POST", "/_akin/expand/help", "localhost:9281", map[string]string{"Origin": "http://localhost:9281"}, 200},
		{"a post of a page of another site", "POST", "/_akin/expand/help", "localhost:9281", map[string]string{"Origin": "https://attacker.example"}, 403},
		{"a post of a page without an origin", "POST", "/_akin/expand/help", "127.0.0.1:9281", map[string]string{"Origin": "null"}, 403},
		{"a post that the browser calls cross-site", "POST", "/_akin/expand", "127.0.0.1:9281", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"a post that the user typed", "POST", "/_akin/expand/help", "127.0.0.1:9281", map[string]string{"Sec-Fetch-Site": "none"}, 200},
	}
	s := build(Options{
		Nodes: nodesAt("http://127.0.0.1:9"), Expander: expander(leaveAlone), Gate: Gate{Hosts: []string{"akin-admin.search.svc"}},
	})
	t.Cleanup(s.Close)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := adminRequest(tt.method, tt.path, "{}")
			r.Host = tt.host
			for name, value := range tt.header {
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			s.admin.ServeHTTP(w, r)
			if w.Code != tt.status {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, tt.status)
			}
			if tt.status == http.StatusForbidden && !strings.Contains(w.Body.String(), `"type":"akin_request_exception"`) {
				t.Errorf("not in the shape of the cluster's errors: %s", w.Body)
			}
		})
	}
}
