package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/report"
)

const (
	original  = "{ \"query\" : {\"match\":{\"body\":\"car\"}}, \"from\": 1.0e0 }\n"
	rewritten = `{"query":{"bool":{"should":[]}}}`
)

func pack(tb testing.TB, s string) string {
	tb.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	io.WriteString(gz, s)
	if err := gz.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// searchOf returns a raw request for a search.
func searchOf(target, header, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\nHost: a\nConnection: close\n%sContent-Length: %d\n\n%s", target, header, len(body), body)
}

const jsonType = "Content-Type: application/json\n"

// Whatever keeps a search from being expanded, the node gets the bytes that the
// client sent, under the headers that the client sent, and it is counted.
func TestSearchIsForwardedAsItCameWhen(t *testing.T) {
	errRedis := errors.New("connection refused")
	fails := func(err error) expander {
		return func(context.Context, *expand.Request) (*expand.Result, error) { return nil, err }
	}
	result := func(r expand.Result) expander {
		return func(context.Context, *expand.Request) (*expand.Result, error) { return &r, nil }
	}
	rewrites := rewriteTo(rewritten)
	large := `{"x":"` + strings.Repeat("y", 2048) + `"}`
	tests := []struct {
		name            string
		expander        expander
		header, body    string
		outcome, reason string
	}{
		{"the row store is away", fails(errRedis), jsonType, original, report.FailedOpen, "redis"},
		{"the budget is spent", func(ctx context.Context, _ *expand.Request) (*expand.Result, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("analyze: %w", ctx.Err())
		}, jsonType, original, report.FailedOpen, "budget"},
		{"the expander panics", func(context.Context, *expand.Request) (*expand.Result, error) { panic("oops") }, jsonType, original, report.FailedOpen, "panic"},
		{"the expander runs out of bounds", func(_ context.Context, r *expand.Request) (*expand.Result, error) {
			return &expand.Result{Body: r.Body[len(r.Body)+1:]}, nil
		}, jsonType, original, report.FailedOpen, "panic"},
		{"the expander has a reason", result(expand.Result{Reason: "size 0"}), jsonType, original, report.Unchanged, "size 0"},
		{"a clause has a reason", result(expand.Result{Clauses: []expand.Explanation{{}, {Reason: "not text"}, {Reason: "later"}}}), jsonType, original, report.Unchanged, "not text"},
		{"nothing has a reason", result(expand.Result{}), jsonType, original, report.Unchanged, reasonNothing},
		{"the body is larger than the cap", rewrites, jsonType, large, report.Unchanged, reasonTooLarge},
		{"it is CBOR", rewrites, "Content-Type: application/cbor\n", "\xa0", report.Unchanged, reasonContentType},
		{"it is SMILE", rewrites, "Content-Type: application/smile\n", ":)\n", report.Unchanged, reasonContentType},
		{"it is YAML", rewrites, "Content-Type: application/yaml\n", "---\n", report.Unchanged, reasonContentType},
		{"it is newline-delimited", rewrites, "Content-Type: application/x-ndjson\n", original, report.Unchanged, reasonContentType},
		{"it has no type", rewrites, "", original, report.Unchanged, reasonContentType},
		{"it has two types", rewrites, jsonType + jsonType, original, report.Unchanged, reasonContentType},
		{"it is deflated", rewrites, jsonType + "Content-Encoding: deflate\n", original, report.Unchanged, reasonEncoding},
		{"it is packed twice", rewrites, jsonType + "Content-Encoding: gzip\nContent-Encoding: gzip\n", pack(t, pack(t, original)), report.Unchanged, reasonEncoding},
		{"its gzip has a wrong header", rewrites, jsonType + "Content-Encoding: gzip\n", original, report.Unchanged, reasonEncoding},
		{"its gzip breaks off", rewrites, jsonType + "Content-Encoding: gzip\n", pack(t, original)[:40], report.Unchanged, reasonEncoding},
		{"its gzip is a bomb", rewrites, jsonType + "Content-Encoding: gzip\n", pack(t, strings.Repeat(" ", 1<<20)), report.Unchanged, reasonTooLarge},
		{"the client switches akin off", rewrites, jsonType + "X-Akin: OFF\n", original, report.Unchanged, reasonOff},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			node := startRawNode(t, nil)
			addr, registry := startProxy(t, Options{
				Nodes:    nodesAt(node.URL),
				Expander: tt.expander,
				Budget:   20 * time.Millisecond,
				MaxBody:  1500,
				Cause: func(err error) string {
					if errors.Is(err, errRedis) {
						return "redis"
					}
					return defaultCause(err)
				},
			})
			answer := exchangeRaw(t, addr, searchOf("/help/_search?pretty&q=a;b", tt.header, tt.body))
			if !strings.HasSuffix(answer, "\r\n\r\n{}") {
				t.Errorf("the client got %q", answer)
			}
			got := node.only(t)
			if got.line != "POST /help/_search?pretty&q=a;b HTTP/1.1" || got.body != tt.body {
				t.Errorf("the node got %q with body %q, want %q", got.line, got.body, tt.body)
			}
			want := []string{"Host: " + node.addr, fmt.Sprintf("Content-Length: %d", len(tt.body))}
			for line := range strings.Lines(tt.header) {
				if !strings.HasPrefix(line, "X-Akin") {
					want = append(want, strings.TrimSuffix(line, "\n"))
				}
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got.header))); diff != "" {
				t.Errorf("header lines (-want +got):\n%s", diff)
			}
			if n := counter(t, registry, "akin_requests_total", "outcome", tt.outcome, "reason", tt.reason); n != 1 {
				t.Errorf("counted %v times under %s, %q, want once", n, tt.outcome, tt.reason)
			}
			if n := counter(t, registry, "akin_requests_total"); n != 1 {
				t.Errorf("%v outcomes for one request", n)
			}
		})
	}
}

// A body of unknown length is found to be too large only while it is read; what
// was read and what was not must come together again.
func TestChunkedSearchLargerThanTheCapIsForwardedWhole(t *testing.T) {
	body := strings.Repeat("0123456789", 100_000)
	node := startRawNode(t, nil)
	addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(rewritten), MaxBody: 1234})
	exchangeRaw(t, addr, fmt.Sprintf("POST /_search HTTP/1.1\nHost: a\nConnection: close\n%sTransfer-Encoding: chunked\n\n%x\r\n%s\r\n0\r\n\r\n", jsonType, len(body), body))
	got := node.only(t)
	if got.body != body || got.get("Content-Length") != nil {
		t.Errorf("the node got %d bytes under %q, want %d, chunked", len(got.body), got.header, len(body))
	}
	if n := counter(t, registry, "akin_requests_total", "outcome", report.Unchanged, "reason", reasonTooLarge); n != 1 {
		t.Errorf("counted %v times", n)
	}
}

// A search that announces too large a body is not waited for.
func TestAnnouncedTooLargeSearchStreams(t *testing.T) {
	reached := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		io.Copy(io.Discard, r.Body)
	}))
	defer upstream.Close()
	addr, _ := startProxy(t, Options{Nodes: nodesAt(upstream.URL), Expander: rewriteTo(rewritten), MaxBody: 9})
	c := dial(t, addr)
	defer c.Close()
	io.WriteString(c, "POST /_search HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n")
	receive(t, "the request at the node", reached)
}

func TestChunkedSearchWithoutTypeIsForwardedAsItCame(t *testing.T) {
	node := startRawNode(t, nil)
	addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(rewritten)})
	exchangeRaw(t, addr, "POST /_search HTTP/1.1\nHost: a\nConnection: close\nTransfer-Encoding: chunked\n\n2\r\n{}\r\n0\r\n\r\n")
	if got := node.only(t); got.body != "{}" || got.get("Content-Type") != nil || got.get("Transfer-Encoding") == nil {
		t.Errorf("the node got %q", got)
	}
	if n := counter(t, registry, "akin_requests_total", "outcome", report.Unchanged, "reason", reasonContentType); n != 1 {
		t.Errorf("counted %v times", n)
	}
}

func TestBodyOfExactlyTheCapIsExpanded(t *testing.T) {
	body := `{"x":"` + strings.Repeat("y", 2000) + `"}`
	for name, request := range map[string]string{
		"plain": searchOf("/_search", jsonType, body),
		"gzip":  searchOf("/_search", jsonType+"Content-Encoding: gzip\n", pack(t, body)),
	} {
		t.Run(name, func(t *testing.T) {
			node := startRawNode(t, nil)
			addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(rewritten), MaxBody: int64(len(body))})
			exchangeRaw(t, addr, request)
			if got := node.only(t).body; got != rewritten {
				t.Errorf("the node got %q", got)
			}
		})
	}
}

func TestRewrittenSearch(t *testing.T) {
	vnd := "application/vnd.elasticsearch+json; compatible-with=8"
	chunk := func(s string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(s), s) }
	tests := []struct {
		name, request string
		sees          string   // the body that the expander sees
		header        []string // of the request that the node gets, Host and Content-Length aside
	}{
		{"post", searchOf("/a/_search?x=1", jsonType, original), original, []string{"Content-Type: application/json"}},
		{"get with body", "GET /a/_search?x=1 HTTP/1.1\nHost: a\nConnection: close\nContent-Length: 2\n" + jsonType + "\n{}", "{}", []string{"Content-Type: application/json"}},
		{"get without body", "GET /a/_search?x=1 HTTP/1.1\nHost: a\nConnection: close\n\n", "", []string{"Content-Type: application/json"}},
		{"a type without a body", "GET /a/_search?x=1 HTTP/1.1\nHost: a\nConnection: close\nContent-Type: text/plain\n\n", "", []string{"Content-Type: application/json"}},
		{"version in Accept", "GET /a/_search?x=1 HTTP/1.1\nHost: a\nConnection: close\nAccept: " + vnd + "\n\n", "", []string{"Accept: " + vnd, "Content-Type: " + vnd}},
		{"version in both", searchOf("/a/_search?x=1", "Accept: "+vnd+"\nContent-Type: "+vnd+"\n", original), original, []string{"Accept: " + vnd, "Content-Type: " + vnd}},
		{"charset", searchOf("/a/_search?x=1", "Content-Type: Application/JSON;charset=UTF-8\n", original), original, []string{"Content-Type: Application/JSON;charset=UTF-8"}},
		{"gzip", searchOf("/a/_search?x=1", jsonType+"Content-Encoding: gzip\n", pack(t, original)), original, []string{"Content-Type: application/json"}},
		{"identity", searchOf("/a/_search?x=1", jsonType+"Content-Encoding: identity\n", original), original, []string{"Content-Type: application/json"}},
		{"chunked", "POST /a/_search?x=1 HTTP/1.1\nHost: a\nConnection: close\n" + jsonType + "Transfer-Encoding: chunked\n\n" + chunk(original), original, []string{"Content-Type: application/json"}},
		{"empty and chunked", "POST /a/_search?x=1 HTTP/1.1\nHost: a\nConnection: close\nTransfer-Encoding: chunked\n\n0\r\n\r\n", "", []string{"Content-Type: application/json"}},
		{"client's headers", searchOf("/a/_search?x=1", jsonType+"Authorization: Basic YTpi\nX-Opaque-Id: 7\nX-Akin: later\n", original), original, []string{"Authorization: Basic YTpi", "Content-Type: application/json", "X-Opaque-Id: 7"}},
		{"another value of the parameter", searchOf("/a/_search?akin=later&x=1", jsonType, original), original, []string{"Content-Type: application/json"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			node := startRawNode(t, nil)
			addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
				want := &expand.Request{Endpoint: expand.EndpointSearch, Index: "a", RawQuery: "x=1", Body: []byte(tt.sees)}
				if got := *r; !cmp.Equal(string(want.Body), string(got.Body)) || got.Index != want.Index || got.RawQuery != want.RawQuery {
					t.Errorf("the expander got %+v, want %+v", got, want)
				}
				if until, ok := ctx.Deadline(); !ok || time.Until(until) > 50*time.Millisecond {
					t.Errorf("the expander has until %v, %v", until, ok)
				}
				res, err := rewriteTo(rewritten)(ctx, r)
				res.RawQuery = "y=%zz;"
				return res, err
			})})
			exchangeRaw(t, addr, tt.request)
			got := node.only(t)
			method, _, _ := strings.Cut(tt.request, " ")
			if got.line != method+" /a/_search?y=%zz; HTTP/1.1" || got.body != rewritten {
				t.Errorf("the node got %q with body %q", got.line, got.body)
			}
			want := append([]string{"Host: " + node.addr, fmt.Sprintf("Content-Length: %d", len(rewritten))}, tt.header...)
			if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got.header))); diff != "" {
				t.Errorf("header lines (-want +got):\n%s", diff)
			}
			if n := counter(t, registry, "akin_requests_total", "outcome", report.Rewritten); n != 1 {
				t.Errorf("counted %v times as rewritten", n)
			}
			if n := counter(t, registry, "akin_added_terms_total"); n != 3 {
				t.Errorf("%v added terms are counted, want 3", n)
			}
			for _, stage := range []string{"expand", "upstream"} {
				if n := counter(t, registry, "akin_search_stage_duration_seconds", "stage", stage); n != 1 {
					t.Errorf("stage %s was timed %v times", stage, n)
				}
			}
		})
	}
}

// The expectation of a search is met when its body is read, so that the node is
// not asked again and the client is told once.
func TestSearchWithExpectContinue(t *testing.T) {
	node := startRawNode(t, nil)
	addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(rewritten)})
	c := dial(t, addr)
	io.WriteString(c, "POST /_search HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	br := bufio.NewReader(c)
	if line, err := br.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	io.WriteString(c, "{}")
	rest, err := io.ReadAll(br)
	if err != nil || strings.Count(string(rest), "HTTP/1.1") != 1 {
		t.Errorf("then got %q, %v", rest, err)
	}
	if got := node.only(t); got.get("Expect") != nil || got.body != rewritten {
		t.Errorf("the node got %q", got)
	}
}

func TestSearchesPassUnreadWithoutExpander(t *testing.T) {
	node := startRawNode(t, nil)
	addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL)})
	exchangeRaw(t, addr, searchOf("/_search?akin=off&pretty", jsonType+"X-Akin: on\n", original))
	if got := node.only(t); got.body != original || got.line != "POST /_search?pretty HTTP/1.1" || got.get("X-Akin") != nil {
		t.Errorf("the node got %q", got)
	}
	exchangeRaw(t, addr, searchOf("/_search", jsonType, original))
	if n := counter(t, registry, "akin_requests_total", "outcome", report.Unchanged, "reason", reasonDisabled); n != 1 {
		t.Errorf("counted %v times", n)
	}
}

// The original is sent once, as it came, and its answer counts, be it an error
// too.
func TestRefusedSearchIsFollowedByTheOriginal(t *testing.T) {
	answer := func(status int, body string) string {
		return fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
	}
	packed := pack(t, original)
	tests := []struct {
		name          string
		first, second int
		header, body  string
	}{
		{"too many clauses", 400, 200, jsonType, original},
		{"overload", 429, 200, jsonType, original},
		{"script error", 500, 200, jsonType, original},
		{"no such index", 404, 404, jsonType, original},
		{"gzip", 400, 200, jsonType + "Content-Encoding: gzip\n", packed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			node := startRawNode(t, func(n int, _ rawRequest) string {
				if n == 1 {
					return answer(tt.first, "refused")
				}
				return answer(tt.second, "of the original")
			})
			var mu sync.Mutex
			var refused []string
			addr, registry := startProxy(t, Options{
				Nodes:    nodesAt(node.URL),
				Expander: rewriteTo(rewritten),
				OnRefused: func(r *expand.Refusal) bool {
					mu.Lock()
					defer mu.Unlock()
					refused = append(refused, r.Index)
					return true
				},
			})
			got := exchangeRaw(t, addr, searchOf("/help/_search?x", tt.header, tt.body))
			if !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", tt.second)) || !strings.HasSuffix(got, "of the original") {
				t.Errorf("the client got %q", got)
			}
			requests := node.all()
			if len(requests) != 2 || requests[0].body != rewritten || requests[1].body != tt.body {
				t.Fatalf("the node got %q", requests)
			}
			if got, want := len(requests[1].get("Content-Encoding")), strings.Count(tt.header, "Encoding"); got != want {
				t.Errorf("the original has %d encodings, want %d", got, want)
			}
			original := "accepted"
			if tt.second != 200 {
				original = "rejected"
			}
			if n := counter(t, registry, "akin_rejected_searches_total", "original", original); n != 1 {
				t.Errorf("%v refusals are counted", n)
			}
			mu.Lock()
			defer mu.Unlock()
			var want []string                        // a search that is refused in both forms is the client's mistake
			if tt.second == 200 && tt.first != 429 { // nor is one that the cluster has no time for
				want = []string{"help"}
			}
			if diff := cmp.Diff(want, refused); diff != "" {
				t.Errorf("reported refusals (-want +got):\n%s", diff)
			}
		})
	}
}

// A search given in the query string has no body to go back to.
func TestRefusedSearchWithoutBodyIsFollowedByTheOriginal(t *testing.T) {
	node := startRawNode(t, func(n int, _ rawRequest) string {
		if n == 1 {
			return "HTTP/1.1 400 X\r\nContent-Length: 0\r\n\r\n"
		}
		return emptyAnswer
	})
	addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(rewritten)})
	exchangeRaw(t, addr, "GET /_search?q=car HTTP/1.1\nHost: a\nConnection: close\n\n")
	got := node.all()
	if len(got) != 2 || got[1].line != "GET /_search?q=car HTTP/1.1" || !cmp.Equal([]string{"Host: " + node.addr}, got[1].header) {
		t.Errorf("the node got %q", got)
	}
}

// A refusal too long to be read to its end is cut off.
func TestLongRefusalIsCutOff(t *testing.T) {
	cut := make(chan error, 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) != rewritten {
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
		piece := make([]byte, 1<<20)
		for {
			if _, err := w.Write(piece); err != nil {
				cut <- err
				return
			}
		}
	}))
	defer upstream.Close()
	addr, _ := startProxy(t, Options{Nodes: nodesAt(upstream.URL), Expander: rewriteTo(rewritten)})
	got := exchangeRaw(t, addr, searchOf("/_search", jsonType, original))
	if !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("the client got %q", got)
	}
	receive(t, "the end of the refusal", cut)
}

func TestUnansweredSearchIsNotRepeated(t *testing.T) {
	node := startRawNode(t, func(int, rawRequest) string { return hangUp })
	addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(rewritten)})
	got := exchangeRaw(t, addr, searchOf("/_search", jsonType, original))
	if !strings.HasPrefix(got, "HTTP/1.1 502 ") || len(node.all()) != 1 {
		t.Errorf("the client got %q after %d requests", got, len(node.all()))
	}
	if n := counter(t, registry, "akin_rejected_searches_total"); n != 0 {
		t.Errorf("%v refusals are counted", n)
	}
}

func TestSearchWhoseBodyBreaksOffIsTheClientsMistake(t *testing.T) {
	node := startRawNode(t, nil)
	addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(rewritten)})
	c := dial(t, addr)
	io.WriteString(c, "POST /_search HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{}")
	c.CloseWrite()
	got, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 400 ") || len(node.all()) != 0 {
		t.Errorf("the client got %q, %v; %d requests went on", got, err, len(node.all()))
	}
}

func TestQueryTextIsLoggedOnlyWhenAsked(t *testing.T) {
	panics := expander(func(context.Context, *expand.Request) (*expand.Result, error) { panic("about a secret car") })
	for _, asked := range []bool{false, true} {
		var log bytes.Buffer
		for _, e := range []expander{rewriteTo(`{"secret":"hire"}`), leaveAlone, panics} {
			node := startRawNode(t, func(n int, _ rawRequest) string {
				if n == 1 {
					return "HTTP/1.1 400 X\r\nContent-Length: 0\r\n\r\n"
				}
				return emptyAnswer
			})
			addr, _ := startProxy(t, Options{
				Nodes:      nodesAt(node.URL),
				Expander:   e,
				LogQueries: asked,
				Logger:     slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			exchangeRaw(t, addr, searchOf("/help/_search?q=secret", jsonType, `{"secret":"car"}`))
		}
		if log.Len() == 0 || strings.Contains(log.String(), "secret") != asked {
			t.Errorf("LogQueries %v: the log is\n%s", asked, log.String())
		}
	}
}

// Many clients at once, some searches rewritten and refused, some not: every
// client gets the answer to its own request.
func TestConcurrentSearchesDoNotMix(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.HasPrefix(string(body), "refuse") {
			w.WriteHeader(http.StatusBadRequest)
		}
		w.Write(body)
	}))
	defer upstream.Close()
	addr, _ := startProxy(t, Options{Nodes: nodesAt(upstream.URL), Budget: patience, OnRefused: func(*expand.Refusal) bool { return true }, Expander: expander(func(_ context.Context, r *expand.Request) (*expand.Result, error) {
		switch id := string(r.Body); id[len(id)-1] % 3 {
		case 0:
			return &expand.Result{Rewritten: true, Body: []byte("refuse " + id)}, nil
		case 1:
			return &expand.Result{Rewritten: true, Body: []byte("rewritten " + id)}, nil
		default:
			return &expand.Result{}, nil
		}
	})})
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() {
			for i := range 50 {
				id := fmt.Sprintf("%d-%d", c, i)
				res, err := client.Post("http://"+addr+"/_search", "application/json", strings.NewReader(id))
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(res.Body)
				res.Body.Close()
				want := id
				if id[len(id)-1]%3 == 1 {
					want = "rewritten " + id
				}
				if err != nil || string(got) != want || res.StatusCode != http.StatusOK {
					t.Errorf("got %d %q, %v, want %q", res.StatusCode, got, err, want)
				}
			}
		})
	}
	clients.Wait()
}

// The metrics of a search name the effort of what was written.
func TestSearchesAreCountedByTheirEffort(t *testing.T) {
	node := startRawNode(t, func(int, rawRequest) string { return answerOf(`{"hits":{"hits":[]}}`) })
	addr, registry := startProxy(t, Options{
		Nodes: nodesAt(node.URL),
		Expander: expander(func(_ context.Context, r *expand.Request) (*expand.Result, error) {
			return &expand.Result{
				Rewritten: true, RawQuery: r.RawQuery, Body: []byte(`{}`), Parts: make([]expand.Part, 1),
				Clauses: []expand.Explanation{{Path: "query.match", Field: "a", Form: "linear", Effort: "low"}},
			}, nil
		}),
	})
	exchangeRaw(t, addr, searchOf("/a/_search", jsonType, original))
	for metric, labels := range map[string][]string{
		"akin_requests_total":                {"outcome", report.Rewritten, "effort", "low"},
		"akin_search_stage_duration_seconds": {"stage", "expand", "effort", "low"},
	} {
		if n := counter(t, registry, metric, labels...); n != 1 {
			t.Errorf("%s of %q: %v", metric, labels, n)
		}
	}
	if n := counter(t, registry, "akin_search_stage_duration_seconds", "stage", "upstream", "effort", "low"); n != 1 {
		t.Errorf("%v times of the cluster are counted", n)
	}
}
