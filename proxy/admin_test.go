package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/proxy/report"
)

func TestMetricNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	build(Options{Nodes: poolOf(nodes.Options{URLs: []string{"http://a"}, Registerer: registry}), Registry: registry})
	families, err := registry.Gather()
	check.Must(t, err == nil && len(families) != 0, "%d families, %v", len(families), err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	check.That(t, err == nil && len(problems) == 0, "%v, %v", problems, err)
}

func TestShowExpansion(t *testing.T) {
	rewrites := expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
		until, ok := ctx.Deadline()
		check.That(t, ok && time.Until(until) >= 50*time.Millisecond && time.Until(until) <= showBudget, "the expander has until %v, %v", until, ok)
		return &expand.Result{
			Rewritten: true, RawQuery: "was=" + r.RawQuery + "&index=" + r.Index, Body: []byte(`{"html":"<b>&","n":1.0000000000000000001,"was":` + string(r.Body) + `}`),
			Clauses: []expand.Explanation{{Path: "query.match", Field: "body", Added: []expand.Added{{Term: "hire", From: "rental", Similarity: 0.5, Weight: 1, Boost: 0.25}}}},
		}, nil
	})
	shown := func(rawQuery string) string {
		return `{"rewritten":true,"raw_query":"` + rawQuery + `","body":{"html":"<b>&","n":1.0000000000000000001,"was":{}},` +
			`"clauses":[{"path":"query.match","field":"body","added":[{"term":"hire","from":"rental","similarity":0.5,"weight":1,"boost":0.25}]}]}` + "\n"
	}
	fault := func(status int, why string) string {
		cause := `"type":"akin_request_exception","reason":"` + why + `"}`
		return fmt.Sprintf(`{"error":{"root_cause":[{%s],%s,"status":%d}`, cause, cause, status)
	}
	for name, tt := range map[string]struct {
		target, body string
		expander     Expander
		status       int
		answer       string
	}{
		"rewritten":          {"/help?x=%zz;", "{}", rewrites, 200, shown("was=x=%zz;&index=help")},
		"date math":          {"/%3Clogs-%7Bnow%2Fd%7D%3E", "{}", rewrites, 200, shown("was=&index=<logs-{now/d}>")},
		"all indices":        {"", "{}", rewrites, 200, shown("was=&index=")},
		"all indices, slash": {"/?akin=explain&a", "{}", rewrites, 200, shown("was=a&index=")},
		"left alone":         {"/help?a", "{}", expander(leaveAlone), 200, `{"rewritten":false,"reason":"left alone","raw_query":"a","clauses":[]}` + "\n"},
		"failed":             {"/help", "{}", fails(errors.New("redis: refused")), 200, `{"rewritten":false,"cause":"error","error":"redis: refused","raw_query":"","clauses":[]}` + "\n"},
		"panicked":           {"/help", "{}", expander(panics), 200, `{"rewritten":false,"cause":"panic","error":"panic","raw_query":"","clauses":[]}` + "\n"},
		"too large":          {"/help", strings.Repeat(" ", 101), rewrites, 413, fault(413, "the body is larger than max_body")},
		"switched off":       {"/help", "{}", nil, 404, fault(404, "expansion is switched off")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, Options{Expander: tt.expander, MaxBody: 100})
			status, answer := askServer(s, http.MethodPost, "/_akin/expand"+tt.target, tt.body)
			check.That(t, status == tt.status && answer == tt.answer, "got %d\n%s\nwant %d\n%s", status, answer, tt.status, tt.answer)
			check.Equal(t, 0, counter(t, s.opts.Registry, "akin_requests_total"), "requests are counted for what is only shown")
		})
	}
	if status, answer := askAdmin(t, Options{Expander: rewriteTo("{not JSON")}, http.MethodPost, "/_akin/expand/a", "{}"); status != 500 || !json.Valid([]byte(answer)) {
		t.Errorf("a broken expansion: %d %s", status, answer)
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
	const lines = "{\"index\":\"a\"}\n{\"query\":{}}\n"
	body := `{"x":"` + strings.Repeat("y", 90) + `"}`
	for name, tt := range map[string]struct {
		query, coding, body string
		status              int
		answer              string // the part that matters
	}{
		"search":               {"?a=b", "", "{}", 200, `"raw_query":"own search a=b","body":{}`},
		"named search":         {"?akin_endpoint=search", "", "{}", 200, `"raw_query":"own search ","body":{}`},
		"count":                {"?akin_endpoint=count&a=b", "", "{}", 200, `"raw_query":"own count a=b","body":{}`},
		"validate":             {"?akin_endpoint=validate", "", "{}", 200, `"own validate "`},
		"explain":              {"?akin_endpoint=explain", "", "{}", 200, `"own explain "`},
		"rank_eval":            {"?akin_endpoint=rank_eval", "", "{}", 200, `"own rank_eval "`},
		"msearch":              {"?akin_endpoint=msearch", "", lines, 200, `"own msearch ","body":"{\"index\":\"a\"}\n{\"query\":{}}\n"`},
		"failures":             {"", "", "{}", 200, `"failures":["analyze: refused"]`},
		"profile":              {"?akin_profile=fast", "", "{}", 200, `"fast search "`},
		"unknown endpoint":     {"?akin_endpoint=_search", "", "{}", 400, "akin_endpoint is none of search, msearch, count, validate, explain, rank_eval"},
		"unknown profile":      {"?akin_profile=secret", "", "{}", 404, "no profile has that name"},
		"profile switched off": {"?akin_profile=none", "", "{}", 404, "expansion is switched off"},
		"gzip":                 {"", "gzip", pack(t, body), 200, `"raw_query":"own search ","body":` + body},
		"nothing":              {"", "gzip", "", 200, `"raw_query":"own search "`},
		"identity":             {"", "identity", body, 200, `"body":` + body},
		"no gzip":              {"", "gzip", body, 400, "no sound gzip"},
		"gzip that breaks off": {"", "gzip", pack(t, body)[:30], 400, "no sound gzip"},
		"gzip of too much":     {"", "gzip", pack(t, strings.Repeat(" ", 200)), 413, "larger than max_body"},
		"too much gzip":        {"", "gzip", strings.Repeat("x", 101), 413, "larger than max_body"},
		"another coding":       {"", "br", body, 415, "neither plain nor gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, Options{Expander: echo("own"), Profiles: map[string]Expander{"fast": echo("fast"), "none": nil}, MaxBody: 100})
			w := answerAdmin(s, adminRequest(http.MethodPost, "/_akin/expand/help"+tt.query, tt.body), "Content-Encoding", tt.coding)
			check.That(t, w.Code == tt.status && strings.Contains(w.Body.String(), tt.answer) && json.Valid(w.Body.Bytes()), "got %d %s, want %d with %s", w.Code, w.Body, tt.status, tt.answer)
		})
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

func TestServeCutsOffWhatDoesNotEnd(t *testing.T) {
	reached := make(chan struct{})
	node := startNode(t, func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		<-r.Context().Done()
	})
	proxy, _, stop := startServe(t, build(Options{Nodes: nodesAt(node), ShutdownTimeout: 20 * time.Millisecond}))
	c := dial(t, proxy)
	io.WriteString(c, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	receive(t, "the request at the node", reached)
	err := stop()
	check.That(t, errors.Is(err, context.DeadlineExceeded), "Serve = %v, want a deadline", err)
	if got, _ := io.ReadAll(c); len(got) > 0 { // nothing, or a reset
		t.Errorf("the request was answered with %q", got)
	}
}

func TestServeEndsWhenAListenerFails(t *testing.T) {
	s := build(Options{Nodes: nodesAt("http://a")})
	broken, fine := httptest.NewUnstartedServer(nil), httptest.NewUnstartedServer(nil)
	broken.Listener.Close()
	ended := make(chan error, 1)
	go func() { ended <- NewFront(s, nil).Serve(t.Context(), fine.Listener, broken.Listener) }()
	err := receive(t, "the end", ended)
	check.That(t, err != nil && strings.Contains(err.Error(), "proxy: listener: "), "Serve = %v", err)
	check.That(t, s.draining.Load(), "the server does not know that it ends")
}

// Probes and scrapers need no token and no name that is known; all that shows or
// sends searches does. Who else may come in is tested with Gate.
func TestTokenOfTheAdminPort(t *testing.T) {
	s := newServer(t, Options{Nodes: nodesAt("http://127.0.0.1:9"), Gate: Gate{Token: "0123456789abcdef", Exposed: true}})
	t.Cleanup(s.Close)
	for route, open := range map[string]bool{
		"GET /healthz": true, "GET /readyz": true, "GET /metrics": true,
		"GET /": false, "GET /playground": false, "GET /playground.js": false, "GET /playground.css": false,
		"POST /_akin/expand/a": false, "GET /_akin/explanations": false, "GET /_akin/explanations/1": false, "GET /_akin/searches": false,
		"GET /_akin/playground/setup": false, "POST /_akin/playground/search": false,
		"POST /_akin/playground/analysis": false, "POST /_akin/playground/neighbors": false,
	} {
		method, path, _ := strings.Cut(route, " ")
		for _, credentials := range []string{"", "Bearer 0123456789abcdef"} {
			w := answerAdmin(s, adminRequest(method, path, "{}"), "Authorization", credentials)
			check.That(t, (w.Code == http.StatusUnauthorized) == (credentials == "" && !open), "%s with %q: %d", route, credentials, w.Code)
		}
		r := adminRequest(method, path, "{}")
		r.Host = "attacker.example" // as a page has it that had the name resolved to akin's address
		w := answerAdmin(s, r, "Authorization", "Bearer 0123456789abcdef")
		check.That(t, (w.Code == http.StatusForbidden && strings.Contains(w.Body.String(), `"type":"akin_request_exception"`)) == !open, "%s by another name: %d %s", route, w.Code, w.Body)
	}
}

// They have texts of searches, which browsers are not to keep.
func TestBrowsersKeepNoTexts(t *testing.T) {
	s := newServer(t, Options{})
	for _, path := range []string{"/_akin/explanations", "/_akin/explanations/1", searchesPath} {
		h := answerAdmin(s, adminRequest(http.MethodGet, path, "")).Header()
		check.That(t, h.Get("Cache-Control") == "no-store" && h.Get("X-Content-Type-Options") == "nosniff", "%s: %v", path, h)
	}
}

func TestWrongTokensAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book logBook
		w := &wrongTokens{log: book.logger()}
		logged := func(want string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, line := range book.lines(t) {
				got = append(got, fmt.Sprintf("%v last_from=%v", line["count"], line["last_from"]))
			}
			check.Equal(t, want, strings.Join(got, "; "))
		}
		note := func(n int) {
			for i := range n {
				w.note(fmt.Sprintf("10.0.0.1:%d", i))
			}
		}
		note(1)
		logged("1 last_from=10.0.0.1:0")
		note(2999)
		check.Elapse(59 * time.Second)
		logged("")
		check.Elapse(2 * time.Second)
		logged("2999 last_from=10.0.0.1:2998")
		check.Elapse(10 * time.Minute)
		logged("")
		note(3) // long after the last line
		logged("1 last_from=10.0.0.1:0")
		w.flush()
		logged("2 last_from=10.0.0.1:2")
		check.Elapse(10 * time.Minute)
		logged("")
	})
}

func TestWrongTokensOfTheAdminPortAreLogged(t *testing.T) {
	const token = "0123456789abcdef"
	var lines strings.Builder
	s := build(Options{
		Nodes: nodesAt("http://127.0.0.1:9"), Gate: Gate{Token: token}, Logger: slog.New(slog.NewTextHandler(&lines, nil)),
	})
	ask := func(path, credentials string, want int) {
		check.Equal(t, want, answerAdmin(s, adminRequest(http.MethodGet, path, ""), "Authorization", credentials).Code, path, credentials)
	}
	ask(explanationsPath, "", http.StatusUnauthorized) // a browser asks for the password after that
	ask(explanationsPath, "Bearer "+token, http.StatusOK)
	ask("/metrics", "Bearer wrong", http.StatusOK)
	check.That(t, lines.Len() <= 0, "logged without a guess: %s", lines.String())
	const guesses = 3000
	for range guesses {
		ask(explanationsPath, "Bearer a guess", http.StatusUnauthorized)
	}
	s.Close() // the rest is not lost
	got := lines.String()
	if n := strings.Count(got, "\n"); n != 2 || !strings.Contains(got, "count=1 ") || !strings.Contains(got, fmt.Sprintf("count=%d ", guesses-1)) {
		t.Errorf("%d lines:\n%s", n, got)
	}
	check.That(t, !strings.Contains(got, "guess") && !strings.Contains(got, token), "a token is logged:\n%s", got)
}

func TestWhoMayComeIn(t *testing.T) {
	const token = "0123456789abcdef"
	open, closed := Gate{}, Gate{Token: token, Exposed: true, Hosts: []string{"akin.example.org"}}
	basic := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, tt := range map[string]struct {
		gate   Gate
		url    string
		change func(*http.Request)
		status int
	}{
		"this machine, no token set":         {open, "http://127.0.0.1:9281/", nil, 0},
		"other machines, no token set":       {Gate{Exposed: true}, "http://10.0.0.1:9281/", nil, 403},
		"no token set, one sent":             {Gate{Exposed: true}, "http://10.0.0.1:9281/", header("Authorization", "Bearer "), 403},
		"no token sent":                      {closed, "http://10.0.0.1:9281/", nil, 401},
		"this machine, no token sent":        {Gate{Token: token}, "http://127.0.0.1:9281/", nil, 401},
		"bearer":                             {closed, "http://10.0.0.1:9281/", header("Authorization", "Bearer "+token), 0},
		"empty bearer":                       {closed, "http://10.0.0.1:9281/", header("Authorization", "Bearer "), 401},
		"password of any user":               {closed, "http://10.0.0.1:9281/", basic("anybody", token), 0},
		"password without a user":            {closed, "http://10.0.0.1:9281/", basic("", token), 0},
		"token as the user":                  {closed, "http://10.0.0.1:9281/", basic(token, ""), 401},
		"beginning of the token":             {closed, "http://10.0.0.1:9281/", basic("akin", token[:15]), 401},
		"more than the token":                {closed, "http://10.0.0.1:9281/", basic("akin", token+"0"), 401},
		"other scheme":                       {closed, "http://10.0.0.1:9281/", header("Authorization", token), 401},
		"name that is known":                 {closed, "http://Akin.example.org:9281/", basic("", token), 0},
		"name of this machine":               {open, "http://LocalHost:9281/", nil, 0},
		"address of version 6":               {open, "http://[fd00::7]:9281/", nil, 0},
		"address of version 6, no port":      {open, "http://[::1]/", nil, 0},
		"name that begins like an address":   {open, "http://127.0.0.1.attacker.example/", nil, 403},
		"name that ends like one known":      {closed, "http://x.akin.example.org/", basic("", token), 403},
		"post that a browser calls crossing": {open, "http://127.0.0.1:9281/", header("Sec-Fetch-Site", "cross-site"), 403},
		"post that the user typed":           {open, "http://127.0.0.1:9281/", header("Sec-Fetch-Site", "none"), 0},
		"name that a page had resolved":      {open, "http://evil.example.org:9281/", nil, 403},
		"name, with the token of a browser":  {closed, "http://evil.example.org:9281/", basic("", token), 403},
		"post of another site, with a token": {closed, "http://10.0.0.1:9281/", func(r *http.Request) { basic("", token)(r); r.Header.Set("Origin", "http://evil.example.org") }, 403},
		"post of the page itself":            {closed, "http://10.0.0.1:9281/", func(r *http.Request) { basic("", token)(r); r.Header.Set("Origin", "http://10.0.0.1:9281") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, tt.url, strings.NewReader("{}"))
			if tt.change != nil {
				tt.change(r)
			}
			h := http.Header{}
			status, why := tt.gate.Refuses(r, h)
			check.That(t, status == tt.status && (why == "") == (status == 0), "refused with %d %q, want %d", status, why, tt.status)
			asks := h.Get("WWW-Authenticate") != ""
			check.That(t, asks == (status == 401) && !strings.Contains(why, token), "asks for a password: %v, says %q", asks, why)
		})
	}
}
