package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/report"
)

const (
	ndjsonType = "Content-Type: application/x-ndjson\n"
	gzipCoding = "Content-Encoding: gzip\n"
	// lines holds three searches; rewrittenLines adds to the first and the last.
	lines          = "{}\n{\"query\":{\"match\":{\"body\":\"car\"}}}\n{\"index\":\"b\"}\n{\"size\":1.0e0}\n\n{\"query\":{}}\n"
	rewrittenLines = "{}\n{\"added\":1}\n{\"index\":\"b\"}\n{\"size\":1.0e0}\n\n{\"added\":3}\n"
)

// rewriteFirstAndLast rewrites lines.
func rewriteFirstAndLast(_ context.Context, r *expand.Request) (*expand.Result, error) {
	return &expand.Result{
		Rewritten: true, RawQuery: r.RawQuery, Body: []byte(rewrittenLines),
		Clauses: []expand.Explanation{
			{Path: "[0].query.match", Form: "linear", Added: make([]expand.Added, 2)},
			{Path: "[1]", Reason: "no_clause"},
			{Path: "[2].query", Form: "linear", Added: make([]expand.Added, 1)},
		},
	}, nil
}

// errRedis is what causeOfRedis calls "redis".
var errRedis = errors.New("connection refused")

func causeOfRedis(err error) string {
	if errors.Is(err, errRedis) {
		return "redis"
	}
	return defaultCause(err)
}

// results answers every search with the same result.
func results(r expand.Result) expander {
	return func(context.Context, *expand.Request) (*expand.Result, error) { return &r, nil }
}

// fails returns an expander with an error.
func fails(err error) expander {
	return func(context.Context, *expand.Request) (*expand.Result, error) { return nil, err }
}

// panics is an expander that does so with the text of a search.
func panics(context.Context, *expand.Request) (*expand.Result, error) { panic("a secret car") }

// outlasts waits until its time is over.
func outlasts(ctx context.Context, _ *expand.Request) (*expand.Result, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("analyze: %w", ctx.Err())
}

// Whatever keeps a search from being expanded, the node gets the bytes that the
// client sent, under the headers that the client sent, and it is counted.
func TestSearchIsForwardedAsItCameWhen(t *testing.T) {
	rewrites := rewriteTo(rewritten)
	large := `{"x":"` + strings.Repeat("y", 2048) + `"}`
	all := Options{Expander: rewrites, Templates: true}
	with := func(e expander) Options { return Options{Expander: e} }
	for _, tt := range []struct {
		name                 string
		o                    Options
		target, header, body string
		outcome, reason      string
	}{
		{"the row store is away", with(fails(errRedis)), "", jsonType, original, report.FailedOpen, "redis"},
		{"the budget is spent", with(outlasts), "", jsonType, original, report.FailedOpen, "budget"},
		{"the expander panics", with(panics), "", jsonType, original, report.FailedOpen, "panic"},
		{"the expander has a reason", with(results(expand.Result{Reason: "size 0"})), "", jsonType, original, report.Unchanged, "size 0"},
		{"a clause has a reason", with(results(expand.Result{Clauses: []expand.Explanation{{}, {Reason: "not text"}, {Reason: "later"}}})), "", jsonType, original, report.Unchanged, "not text"},
		{"nothing has a reason", with(results(expand.Result{})), "", jsonType, original, report.Unchanged, reasonNothing},
		{"the body is larger than the cap", all, "", jsonType, large, report.Unchanged, reasonTooLarge},
		{"it is CBOR", all, "", "Content-Type: application/cbor\n", "\xa0", report.Unchanged, reasonContentType},
		{"it is newline-delimited", all, "", ndjsonType, original, report.Unchanged, reasonContentType},
		{"several are in YAML", all, "/_msearch", "Content-Type: application/yaml\n", lines, report.Unchanged, reasonContentType},
		{"it has no type", all, "", "", original, report.Unchanged, reasonContentType},
		{"it has two types", all, "", jsonType + jsonType, original, report.Unchanged, reasonContentType},
		{"it is deflated", all, "", jsonType + "Content-Encoding: deflate\n", original, report.Unchanged, reasonEncoding},
		{"it is packed twice", all, "", jsonType + gzipCoding + gzipCoding, pack(t, pack(t, original)), report.Unchanged, reasonEncoding},
		{"its gzip has a wrong header", all, "", jsonType + gzipCoding, original, report.Unchanged, reasonEncoding},
		{"its gzip breaks off", all, "", jsonType + gzipCoding, pack(t, original)[:40], report.Unchanged, reasonEncoding},
		{"its gzip is a bomb", all, "", jsonType + gzipCoding, pack(t, strings.Repeat(" ", 1<<20)), report.Unchanged, reasonTooLarge},
		{"the client switches akin off", all, "", jsonType + "X-Akin: OFF\n", original, report.Unchanged, reasonOff},
		{"no profile has the name", all, "", jsonType + "X-Akin-Profile: made-up\n", original, report.Unchanged, reasonUnknownProfile},
		{"there are no matrices", Options{}, "", jsonType + "X-Akin: on\n", original, report.Unchanged, reasonDisabled},
		{"templates are switched off", Options{Expander: rewrites}, "/a/_search/template", jsonType, original, report.Unchanged, reasonTemplateOff},
		{"failures would be filtered away", all, "/_msearch?filter_path=-responses.error", jsonType, original, report.Unchanged, answer.HiddenByFilter},
		{"failures could not be read", all, "/a/_async_search", jsonType + "Accept: application/yaml\n", original, report.Unchanged, answer.HiddenByFormat},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Budget, tt.o.MaxBody, tt.o.Cause = 20*time.Millisecond, 1500, causeOfRedis
			if tt.target == "" {
				tt.target = "/help/_search?pretty&q=a;b"
			}
			p := start(t, tt.o, nil)
			toClient := p.post(t, tt.target, tt.header, tt.body)
			check.That(t, strings.HasSuffix(toClient, "\r\n\r\n{}"), "the client got %q", toClient)
			got := p.only(t)
			check.That(t, got.line == "POST "+tt.target+" HTTP/1.1" && got.body == tt.body, "the node got %q with body %q, want %q", got.line, got.body, tt.body)
			want := []string{"Host: " + p.rawNode.addr, fmt.Sprintf("Content-Length: %d", len(tt.body))}
			for line := range strings.Lines(tt.header) {
				if !strings.HasPrefix(line, "X-Akin") {
					want = append(want, strings.TrimSuffix(line, "\n"))
				}
			}
			check.Equal(t, slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got.header)), "header lines")
			p.became(t, tt.outcome, tt.reason)
		})
	}
}

// A body of unknown length is found to be too large, or to have no type, only
// while it is read; what was read and what was not must come together again.
func TestChunkedSearchIsForwardedWholeWhen(t *testing.T) {
	for reason, tt := range map[string]struct{ header, body string }{
		reasonTooLarge:    {jsonType, strings.Repeat("0123456789", 100_000)},
		reasonContentType: {"", "{}"},
	} {
		p := start(t, Options{Expander: rewriteTo(rewritten), MaxBody: 1234}, nil)
		exchangeRaw(t, p.addr, fmt.Sprintf("POST /_search HTTP/1.1\nHost: a\nConnection: close\n%sTransfer-Encoding: chunked\n\n%x\r\n%s\r\n0\r\n\r\n", tt.header, len(tt.body), tt.body))
		if got := p.only(t); got.body != tt.body || got.get("Transfer-Encoding") == nil || strings.Join(got.get("Content-Type"), "") != strings.TrimPrefix(strings.TrimSpace(tt.header), "Content-Type: ") {
			t.Errorf("%s: the node got %d bytes under %q, want %d, chunked", reason, len(got.body), got.header, len(tt.body))
		}
		p.became(t, report.Unchanged, reason)
	}
}

func TestAnnouncedTooLargeSearchStreams(t *testing.T) {
	reached := make(chan struct{})
	node := startNode(t, func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		io.Copy(io.Discard, r.Body)
	})
	c := dial(t, start(t, Options{Nodes: nodesAt(node), Expander: rewriteTo(rewritten), MaxBody: 9}, nil).addr)
	io.WriteString(c, "POST /_search HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n")
	receive(t, "the request at the node", reached)
	c.Close()
}

func TestBodyOfExactlyTheCapIsExpanded(t *testing.T) {
	body := `{"x":"` + strings.Repeat("y", 2000) + `"}`
	for header, sent := range map[string]string{jsonType: body, jsonType + gzipCoding: pack(t, body)} {
		p := start(t, Options{Expander: rewriteTo(rewritten), MaxBody: int64(len(body))}, nil)
		p.post(t, "/_search", header, sent)
		p.arrived(t, rewritten)
	}
}

func TestRewrittenSearch(t *testing.T) {
	const (
		vnd       = "application/vnd.elasticsearch+json; compatible-with=8"
		vndLines  = "Content-Type: application/vnd.elasticsearch+x-ndjson; compatible-with=8"
		typed     = "Content-Type: application/json"
		get       = "GET /a/_search?x=1 HTTP/1.1\nHost: a\nConnection: close\n"
		chunked   = "POST /a/_search?x=1 HTTP/1.1\nHost: a\nConnection: close\nTransfer-Encoding: chunked\n"
		oddCase   = "Content-Type: Application/JSON;charset=UTF-8"
		search    = "/a/_search?x=1"
		several   = "/a/_msearch?x=1"
		undefined = "X-Akin: later\n"
	)
	for _, tt := range []struct {
		name, request string
		sees          string   // the body that the expander sees
		header        []string // of the request that the node gets, Host and Content-Length aside
	}{
		{"post", searchOf(search, jsonType, original), original, []string{typed}},
		{"get with body", get + "Content-Length: 2\n" + jsonType + "\n{}", "{}", []string{typed}},
		{"get without body", get + "\n", "", []string{typed}},
		{"a type without a body", get + "Content-Type: text/plain\n\n", "", []string{typed}},
		{"version in Accept", get + "Accept: " + vnd + "\n\n", "", []string{"Accept: " + vnd, "Content-Type: " + vnd}},
		{"version in both", searchOf(search, "Accept: "+vnd+"\nContent-Type: "+vnd+"\n", original), original, []string{"Accept: " + vnd, "Content-Type: " + vnd}},
		{"charset", searchOf(search, oddCase+"\n", original), original, []string{oddCase}},
		{"gzip", searchOf(search, jsonType+gzipCoding, pack(t, original)), original, []string{typed}},
		{"identity", searchOf(search, jsonType+"Content-Encoding: identity\n", original), original, []string{typed}},
		{"chunked", chunked + jsonType + fmt.Sprintf("\n%x\r\n%s\r\n0\r\n\r\n", len(original), original), original, []string{typed}},
		{"empty and chunked", chunked + "\n0\r\n\r\n", "", []string{typed}},
		{"a 100 is expected", searchOf(search, jsonType+"Expect: 100-continue\n", original), original, []string{typed}},
		{"client's headers", searchOf(search, jsonType+"Authorization: Basic YTpi\nX-Opaque-Id: 7\n"+undefined, original), original, []string{"Authorization: Basic YTpi", typed, "X-Opaque-Id: 7"}},
		{"another value of the parameter", searchOf("/a/_search?akin=later&x=1", jsonType, original), original, []string{typed}},
		{"several", searchOf(several, ndjsonType, lines), lines, []string{strings.TrimSpace(ndjsonType)}},
		{"several as JSON", searchOf(several, jsonType, lines), lines, []string{typed}},
		{"several, versioned", searchOf(several, vndLines+"\n", lines), lines, []string{vndLines}},
		{"several, gzip", searchOf(several, ndjsonType+gzipCoding, pack(t, lines)), lines, []string{strings.TrimSpace(ndjsonType)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, Options{Expander: expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
				check.That(t, string(r.Body) == tt.sees && r.Index == "a" && r.RawQuery == "x=1", "the expander got %+v with body %q", r, r.Body)
				until, ok := ctx.Deadline()
				check.That(t, ok && time.Until(until) <= 50*time.Millisecond, "the expander has until %v, %v", until, ok)
				res, err := rewriteTo(rewritten)(ctx, r)
				res.RawQuery = "y=%zz;"
				return res, err
			})}, nil)
			exchangeRaw(t, p.addr, tt.request)
			got := p.only(t)
			if want := strings.NewReplacer("akin=later&", "", "x=1", "y=%zz;").Replace(line(tt.request)); got.line != want || got.body != rewritten {
				t.Errorf("the node got %q with body %q, want %q", got.line, got.body, want)
			}
			want := append([]string{"Host: " + p.rawNode.addr, fmt.Sprintf("Content-Length: %d", len(rewritten))}, tt.header...)
			check.Equal(t, slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got.header)), "header lines")
			p.became(t, report.Rewritten, "")
			p.counted(t, 3, "akin_added_terms_total")
			p.counted(t, 1, "akin_search_stage_duration_seconds", "stage", "expand")
			p.counted(t, 1, "akin_search_stage_duration_seconds", "stage", "upstream")
		})
	}
}

func TestEveryEndpointIsRewrittenInPlace(t *testing.T) {
	names := strings.NewReplacer("{index}", "a%2Cb", "{id}", "1%2F2")
	for _, route := range routes {
		if route.isTemplate() {
			continue // TestTemplates…
		}
		for _, method := range route.methods {
			t.Run(method+" "+route.shape, func(t *testing.T) {
				index, later := "", reason.Reason("")
				if strings.Contains(route.shape, "{index}") {
					index = "a,b"
				}
				if strings.HasSuffix(route.shape, "/_async_search") {
					later = reason.Endpoint
				}
				p := start(t, Options{Expander: expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
					want := (expand.Request{Endpoint: route.endpoint, Index: index, RawQuery: "x=1", Body: []byte(original), Fixed: later})
					check.That(t, cmp.Equal(want, *r), "the expander got %+v with body %q", *r, r.Body)
					return rewriteTo(rewritten)(ctx, r)
				})}, nil)
				target := names.Replace(route.shape) + "?x=1"
				exchangeRaw(t, p.addr, method+strings.TrimPrefix(searchOf(target, jsonType, original), "POST"))
				if got := p.only(t); got.line != method+" "+target+" HTTP/1.1" || got.body != rewritten {
					t.Errorf("the node got %q", got)
				}
				p.became(t, report.Rewritten, "")
			})
		}
	}
}

func TestFailuresOfSingleSearchesAreCountedWhileTheRestIsRewritten(t *testing.T) {
	for _, some := range []bool{true, false} {
		p := start(t, Options{Cause: causeOfRedis, Expander: expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
			res, err := rewriteFirstAndLast(ctx, r)
			if !some {
				res = &expand.Result{}
			}
			res.Parts = []expand.Part{{Err: &expand.StageError{Stage: expand.StageRows, Err: errRedis}}, {Err: context.DeadlineExceeded}, {Err: errRedis}}
			return res, err
		})}, nil)
		p.post(t, "/_msearch", ndjsonType, lines)
		want, rewrites := lines, 0.0
		if some {
			want, rewrites = rewrittenLines, 1
		}
		p.arrived(t, want)
		p.counted(t, rewrites, "akin_requests_total", "outcome", report.Rewritten)
		p.counted(t, 2, "akin_requests_total", "outcome", report.FailedOpen, "reason", "redis")
		p.counted(t, 1, "akin_requests_total", "outcome", report.FailedOpen, "reason", "budget")
		p.counted(t, 0, "akin_requests_total", "outcome", report.Unchanged)
	}
}

func TestQueryTextIsLoggedOnlyWhenAsked(t *testing.T) {
	for _, asked := range []bool{false, true} {
		var log bytes.Buffer
		for _, e := range []expander{rewriteTo(`{"secret":"hire"}`), leaveAlone, panics} {
			p := start(t, Options{
				Expander: e, LogQueries: asked, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}, inTurn(answerWith(400, "", ""), emptyAnswer))
			p.post(t, "/help/_search?q=secret", jsonType, `{"secret":"car"}`)
		}
		check.That(t, log.Len() != 0 && strings.Contains(log.String(), "secret") == asked, "LogQueries %v: the log is\n%s", asked, log.String())
	}
}

func TestConcurrentSearchesDoNotMix(t *testing.T) {
	node := startNode(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.HasPrefix(string(body), "refuse") {
			w.WriteHeader(http.StatusBadRequest)
		}
		w.Write(body)
	})
	verbs := []string{"refuse ", "rewritten ", ""}
	p := start(t, Options{Nodes: nodesAt(node), Budget: patience, OnRefused: func(*expand.Refusal) bool { return true }, Expander: expander(func(_ context.Context, r *expand.Request) (*expand.Result, error) {
		id := string(r.Body)
		verb := verbs[id[len(id)-1]%3]
		return &expand.Result{Rewritten: verb != "", Body: []byte(verb + id)}, nil
	})}, nil)
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() {
			for i := range 50 {
				id := fmt.Sprintf("%d-%d", c, i)
				res, err := client.Post("http://"+p.addr+"/_search", "application/json", strings.NewReader(id))
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(res.Body)
				res.Body.Close()
				want := strings.TrimPrefix(verbs[id[len(id)-1]%3], "refuse ") + id
				check.That(t, err == nil && string(got) == want && res.StatusCode == http.StatusOK, "got %d %q, %v, want %q", res.StatusCode, got, err, want)
			}
		})
	}
	clients.Wait()
}

func TestSearchesAreCountedByTheirEffort(t *testing.T) {
	p := start(t, Options{Expander: results(expand.Result{
		Rewritten: true, Body: []byte(`{}`), Parts: make([]expand.Part, 1),
		Clauses: []expand.Explanation{{Path: "query.match", Field: "a", Form: "linear", Effort: "low"}},
	})}, nil)
	p.post(t, "/a/_search", jsonType, original)
	p.counted(t, 1, "akin_requests_total", "outcome", report.Rewritten, "effort", "low")
	p.counted(t, 1, "akin_search_stage_duration_seconds", "stage", "expand", "effort", "low")
	p.counted(t, 1, "akin_search_stage_duration_seconds", "stage", "upstream", "effort", "low")
}

func TestExpanderSeesTheClient(t *testing.T) {
	seen := make(chan string, 1)
	p := start(t, Options{Expander: expander(func(ctx context.Context, _ *expand.Request) (*expand.Result, error) {
		seen <- ClientOf(ctx)
		return &expand.Result{}, nil
	})}, nil)
	p.search(t, "/i/_search")
	got := <-seen
	check.That(t, got == "127.0.0.1" && ClientOf(t.Context()) == "", "got %q", got)
}

// line returns the first line of a text.
func line(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}
