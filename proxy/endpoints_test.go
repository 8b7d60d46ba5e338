package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/report"
)

const (
	ndjsonType = "Content-Type: application/x-ndjson\n"
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

// answer returns an answer on the wire.
func answerWith(status int, header, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d X\r\n%sContent-Length: %d\r\n\r\n%s", status, strings.ReplaceAll(header, "\n", "\r\n"), len(body), body)
}

// searches returns the requests that are not akin's own.
func (n *rawNode) searches() []rawRequest {
	var kept []rawRequest
	for _, r := range n.all() {
		if !strings.Contains(r.line, renderPath) {
			kept = append(kept, r)
		}
	}
	return kept
}

func TestEveryEndpointIsRewrittenInPlace(t *testing.T) {
	names := strings.NewReplacer("{index}", "a%2Cb", "{id}", "1%2F2")
	for _, route := range routes {
		if route.isTemplate() {
			continue // TestTemplates…
		}
		for _, method := range route.methods {
			t.Run(method+" "+route.shape, func(t *testing.T) {
				node := startRawNode(t, nil)
				index := ""
				if strings.Contains(route.shape, "{index}") {
					index = "a,b"
				}
				later := reason.Reason("")
				if strings.HasSuffix(route.shape, "/_async_search") {
					later = reason.Endpoint
				}
				addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
					if want := (expand.Request{Endpoint: route.endpoint, Index: index, RawQuery: "x=1", Body: r.Body, Fixed: later}); !cmp.Equal(want, *r) || string(r.Body) != original {
						t.Errorf("the expander got %+v with body %q", *r, r.Body)
					}
					return rewriteTo(rewritten)(ctx, r)
				})})
				target := names.Replace(route.shape) + "?x=1"
				exchangeRaw(t, addr, method+strings.TrimPrefix(searchOf(target, jsonType, original), "POST"))
				got := node.searches()
				if len(got) != 1 || got[0].line != method+" "+target+" HTTP/1.1" || got[0].body != rewritten {
					t.Errorf("the node got %q", got)
				}
				if n := counter(t, registry, "akin_requests_total", "outcome", report.Rewritten); n != 1 {
					t.Errorf("counted %v times as rewritten", n)
				}
			})
		}
	}
}

func TestMultiSearchIsReadInTheTypesOfItsLines(t *testing.T) {
	vnd := "Content-Type: application/vnd.elasticsearch+x-ndjson; compatible-with=8\n"
	tests := []struct {
		name, header, body string
		reason             string // why it is not rewritten
	}{
		{"ndjson", ndjsonType, lines, ""},
		{"json", jsonType, lines, ""},
		{"versioned", vnd, lines, ""},
		{"upper case, charset", "Content-Type: Application/X-NDJSON;charset=utf-8\n", lines, ""},
		{"gzip", ndjsonType + "Content-Encoding: gzip\n", pack(t, lines), ""},
		{"yaml", "Content-Type: application/yaml\n", lines, reasonContentType},
		{"smile", "Content-Type: application/smile\n", lines, reasonContentType},
		{"zstd", ndjsonType + "Content-Encoding: zstd\n", lines, reasonEncoding},
		{"too large", ndjsonType, lines + strings.Repeat("{}\n", 1000), reasonTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			node := startRawNode(t, nil)
			addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), MaxBody: 1000, Expander: expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
				if r.Endpoint != expand.EndpointMultiSearch || string(r.Body) != lines {
					t.Errorf("the expander got %+v", r)
				}
				return rewriteFirstAndLast(ctx, r)
			})})
			exchangeRaw(t, addr, searchOf("/a/_msearch", tt.header, tt.body))
			got := node.only(t)
			want, labels := rewrittenLines, []string{"outcome", report.Rewritten}
			if tt.reason != "" {
				want, labels = tt.body, []string{"outcome", report.Unchanged, "reason", tt.reason}
			}
			if got.body != want || !strings.HasPrefix(tt.header, "Content-Type: "+strings.Join(got.get("Content-Type"), "|")+"\n") {
				t.Errorf("the node got %q", got)
			}
			if n := counter(t, registry, "akin_requests_total", labels...); n != 1 {
				t.Errorf("counted %v times under %s", n, labels)
			}
		})
	}
}

// What is given in the query string has a body when it comes back, and that has
// a type.
func TestSearchWithoutBodyGetsAType(t *testing.T) {
	for _, target := range []string{"/a/_count?q=car", "/a/_msearch?source=%7B%7D%0A%7B%7D%0A&source_content_type=application/x-ndjson", "/a/_explain/1?source=%7B%7D"} {
		node := startRawNode(t, nil)
		addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(func(context.Context, *expand.Request) (*expand.Result, error) {
			return &expand.Result{Rewritten: true, Body: []byte(rewritten)}, nil
		})})
		exchangeRaw(t, addr, "GET "+target+" HTTP/1.1\nHost: a\nConnection: close\n\n")
		got := node.only(t)
		path, _, _ := strings.Cut(target, "?")
		if got.line != "GET "+path+" HTTP/1.1" || got.body != rewritten || !cmp.Equal(got.get("Content-Type"), []string{"application/json"}) {
			t.Errorf("%s: the node got %q", target, got)
		}
	}
}

func TestEndpointIsForwardedAsItCameWhen(t *testing.T) {
	all := Options{Templates: true}
	tests := []struct {
		name, target string
		options      Options
		reason       string
	}{
		{"templates are switched off", "/a/_search/template", Options{}, reasonTemplateOff},
		{"templates are switched off, several", "/_msearch/template", Options{}, reasonTemplateOff},
		{"the answer will not say whether a query is valid", "/_validate/query?filter_path=_shards", all, answer.HiddenByFilter},
		{"the answer leaves something out", "/_msearch?filter_path=-responses.error", all, answer.HiddenByFilter},
		{"the answer leaves something out of a part", "/_rank_eval?filter_path=metric_score%2c-failures", all, answer.HiddenByFilter},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			node := startRawNode(t, nil)
			tt.options.Nodes, tt.options.Expander = nodesAt(node.URL), rewriteTo(rewritten)
			addr, registry := startProxy(t, tt.options)
			exchangeRaw(t, addr, searchOf(tt.target, jsonType, original))
			if got := node.only(t); got.body != original || got.line != "POST "+tt.target+" HTTP/1.1" {
				t.Errorf("the node got %q", got)
			}
			if n := counter(t, registry, "akin_requests_total", "outcome", report.Unchanged, "reason", tt.reason); n != 1 {
				t.Errorf("counted %v times", n)
			}
		})
	}
}

func TestFailuresOfSingleSearchesAreCountedWhileTheRestIsRewritten(t *testing.T) {
	errRedis := errors.New("connection refused")
	for _, some := range []bool{true, false} {
		node := startRawNode(t, nil)
		addr, registry := startProxy(t, Options{
			Nodes: nodesAt(node.URL),
			Cause: func(err error) string {
				if errors.Is(err, errRedis) {
					return "redis"
				}
				return defaultCause(err)
			},
			Expander: expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
				res, err := rewriteFirstAndLast(ctx, r)
				if !some {
					res = &expand.Result{}
				}
				res.Parts = []expand.Part{{Err: &expand.StageError{Stage: expand.StageRows, Err: errRedis}}, {Err: context.DeadlineExceeded}, {Err: errRedis}}
				return res, err
			}),
		})
		exchangeRaw(t, addr, searchOf("/_msearch", ndjsonType, lines))
		want, rewrites := rewrittenLines, 1.0
		if !some {
			want, rewrites = lines, 0
		}
		if got := node.only(t); got.body != want {
			t.Errorf("the node got %q", got.body)
		}
		for _, count := range []struct {
			want   float64
			labels []string
		}{
			{rewrites, []string{"outcome", report.Rewritten}},
			{2, []string{"outcome", report.FailedOpen, "reason", "redis"}},
			{1, []string{"outcome", report.FailedOpen, "reason", "budget"}},
			{0, []string{"outcome", report.Unchanged}},
		} {
			if got := counter(t, registry, "akin_requests_total", count.labels...); got != count.want {
				t.Errorf("counted %v times under %s, want %v", got, count.labels, count.want)
			}
		}
	}
}

// A dry run sends the original, and names the record of what would have become
// of it; explain sends the rewritten search and does the same.
func TestControlledSearch(t *testing.T) {
	for _, tt := range []struct{ control, sent, outcome, reason string }{
		{"dry-run", original, report.Unchanged, reasonDryRun},
		{"explain", rewritten, report.Rewritten, ""},
		{"off", original, report.Unchanged, reasonOff},
		{"explain, off", original, report.Unchanged, reasonOff},
	} {
		node := startRawNode(t, nil)
		addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(rewritten)})
		got := exchangeRaw(t, addr, searchOf("/a/_count", jsonType+"X-Akin: "+tt.control+"\n", original))
		if marked := strings.Contains(got, explanationHeader); marked != (tt.control != "off") {
			t.Errorf("%s: the client got %q", tt.control, got)
		}
		if arrived := node.only(t); arrived.body != tt.sent || arrived.get("X-Akin") != nil {
			t.Errorf("%s: the node got %q", tt.control, arrived)
		}
		if n := counter(t, registry, "akin_requests_total", "outcome", tt.outcome, "reason", tt.reason); n != 1 {
			t.Errorf("%s: counted %v times", tt.control, n)
		}
	}
}

// In shadow mode no client gets the answer to anything but its own search.
func TestShadowModeAnswersWithTheOriginal(t *testing.T) {
	for _, target := range []string{"/a/_count", "/a/_validate/query", "/a/_search?scroll=1m", "/_async_search"} {
		for _, share := range []float64{1e-300, 1} {
			node := startRawNode(t, nil)
			addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(rewritten), Shadow: share})
			exchangeRaw(t, addr, searchOf(target, jsonType, original))
			if got := node.only(t); got.body != original {
				t.Errorf("%s: the node got %q", target, got)
			}
			if n := counter(t, registry, "akin_requests_total", "outcome", report.Unchanged, "reason", reasonShadow); n != 1 {
				t.Errorf("%s: counted %v times", target, n)
			}
		}
	}
}

// The objects are those of OpenSearch 2.19, shortened.
func TestOnRefusedGetsTheErrorsOfTheAnswer(t *testing.T) {
	clauses := `{"error":{"root_cause":[{"type":"query_shard_exception","reason":"failed to create query","index":"a"}],"type":"search_phase_execution_exception",` +
		`"reason":"all shards failed","failed_shards":[{"shard":0,"reason":{"type":"query_shard_exception","reason":"failed","caused_by":{"type":"too_many_clauses",` +
		`"reason":"maxClauseCount is set to 1024","script":{"type":"x","reason":"y"}}}}]},"status":400}`
	want := "search_phase_execution_exception " + strings.Repeat("query_shard_exception ", 2) + "too_many_clauses"
	deep := strings.Repeat(`{"type":"x","caused_by":`, 100) + "{}" + strings.Repeat("}", 100)
	long := strings.Repeat(`{"type":"x"},`, 200) + "{}"
	tests := []struct{ name, header, body, want string }{
		{"plain", jsonType, clauses, want},
		{"gzip", jsonType + "Content-Encoding: gzip\n", pack(t, clauses), want},
		{"behind much", jsonType, clauses + strings.Repeat(" ", 1<<20), want},
		{"beyond the bound", jsonType, strings.Repeat(" ", 1<<20) + clauses, ""},
		{"cut", jsonType, clauses[:120], " query_shard_exception"},
		{"deep", jsonType, `{"error":` + deep + "}", strings.Repeat("x ", 16-1) + "x"},
		{"many", jsonType, `{"error":{"root_cause":[` + long + "]}}", strings.Repeat(" x", 64-1)},
		{"broken gzip", jsonType + "Content-Encoding: gzip\n", clauses, ""},
		{"another encoding", jsonType + "Content-Encoding: deflate\n", "xyz", ""},
		{"a text", jsonType, `{"error":"too_many_clauses","status":400}`, ""},
		{"of a proxy", "Content-Type: text/html\n", "<html>", ""},
		{"empty", "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			node := startRawNode(t, func(n int, _ rawRequest) string {
				if n == 1 {
					return answerWith(400, tt.header, tt.body)
				}
				return emptyAnswer
			})
			told := make(chan string, 2)
			addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(rewritten), OnRefused: func(r *expand.Refusal) bool {
				var types []string
				for _, c := range r.Causes {
					types = append(types, c.Type)
				}
				told <- r.Index + ": " + strings.Join(types, " ")
				return false
			}})
			exchangeRaw(t, addr, searchOf("/help/_search", jsonType, original))
			if got := receive(t, "the refusal", told); got != "help: "+tt.want {
				t.Errorf("reported %.300q, want %q", got, tt.want)
			}
		})
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// startSlowNode starts a node that answers by a function of ours, and returns
// its URL.
func startSlowNode(t *testing.T, answer func(w http.ResponseWriter)) string {
	t.Helper()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answer(w)
	}))
	t.Cleanup(node.Close)
	return node.URL
}
