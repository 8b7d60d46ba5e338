package proxy

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/report"
)

const (
	template = `{ "id":"shop", "params":{"words":"car","n":1.0e0}, "explain" : true }`
	// rendered has a number, a name twice and space that have to stay.
	rendered = `{ "query":{"match":{"body":"car"}}, "size":1.50e0, "size":2 }`
	// sealedSearch is rewritten as it is sent in place of template.
	sealedSearch = `{"source":"{{{akin}}}","params":{"akin":"{\"query\":{\"bool\":{\"should\":[]}}}"},"explain":true}`
	// Two templates, the second one inline, and what is sent for them where the
	// first search alone is rewritten.
	templateLines = "{}\n" + template + "\n{\"index\":\"b\"}\n{\"source\":\"{}\"}\n"
	sealedLines   = "{}\n" + sealedSearch + "\n{\"index\":\"b\"}\n{\"source\":\"{}\"}\n"
)

// renders answers the path of templates with output, and all else with an empty
// object.
func renders(output string) func(int, rawRequest) string {
	return func(_ int, r rawRequest) string {
		if strings.Contains(r.line, renderPath) {
			return answerWith(200, jsonType, `{"template_output":`+output+`}`)
		}
		return emptyAnswer
	}
}

func TestTemplateIsRenderedAndItsSearchRewritten(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		for _, encoding := range []string{"", "gzip"} {
			node := startRawNode(t, renders(rendered))
			addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL + "/es"), Templates: true, Budget: patience, Expander: expander(func(_ context.Context, r *expand.Request) (*expand.Result, error) {
				want := expand.Request{
					Endpoint: expand.EndpointSearch, Index: "a", RawQuery: "routing=x", Body: []byte(rendered), Fixed: reason.Answer,
					Discloses: expand.DiscloseProfile | expand.DiscloseExplain,
				}
				if diff := cmp.Diff(want, *r); diff != "" {
					t.Errorf("the expander got (-want +got):\n%s", diff)
				}
				return &expand.Result{Rewritten: true, RawQuery: "routing=x&search_type=dfs_query_then_fetch", Body: []byte(rewritten)}, nil
			})})
			body, header := template, jsonType
			if encoding != "" {
				body, header = pack(t, template), header+"Content-Encoding: gzip\n"
			}
			header += "Authorization: Basic YTpi\nX-Opaque-Id: 7\nX-Akin-Profile: \nX-Hop: 1\nConnection: X-Hop\nAccept: application/yaml\nAccept-Encoding: gzip\n"
			exchangeRaw(t, addr, method+strings.TrimPrefix(searchOf("/a/_search/template?akin=explain&routing=x", header, body), "POST"))
			got := node.all()
			if len(got) != 2 {
				t.Fatalf("the node got %q", got)
			}
			question := []string{"Accept: application/json", "Authorization: Basic YTpi", "Content-Type: application/json", "Host: " + node.addr, "X-Opaque-Id: 7", fmt.Sprintf("Content-Length: %d", len(template))}
			if got[0].line != "POST /es/_render/template HTTP/1.1" || got[0].body != template || !sameLines(question, got[0].header) {
				t.Errorf("the question is %q", got[0])
			}
			if want := method + " /es/a/_search/template?routing=x&search_type=dfs_query_then_fetch&allow_partial_search_results=false HTTP/1.1"; got[1].line != want || got[1].body != sealedSearch {
				t.Errorf("the node got %q", got[1])
			}
			if n := counter(t, registry, "akin_requests_total", "outcome", report.Rewritten); n != 1 {
				t.Errorf("counted %v times", n)
			}
		}
	}
}

// sameLines compares header lines in any order.
func sameLines(a, b []string) bool {
	count := map[string]int{}
	for _, line := range a {
		count[line]++
	}
	for _, line := range b {
		count[line]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

func TestTemplatesOfMultiSearchAreRenderedAndTheirSearchesRewritten(t *testing.T) {
	node := startRawNode(t, renders("{\n  \"query\": {}\n}"))
	addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Templates: true, Expander: expander(func(_ context.Context, r *expand.Request) (*expand.Result, error) {
		const searches = "{}\n{\"query\":{}}\n{\"index\":\"b\"}\n{\"query\":{}}\n"
		if r.Endpoint != expand.EndpointMultiSearch || string(r.Body) != searches {
			t.Errorf("the expander got %+v with body %q", r, r.Body)
		}
		return &expand.Result{
			Rewritten: true, Body: []byte(strings.Replace(searches, `{"query":{}}`, rewritten, 1)),
			Clauses: []expand.Explanation{{Path: "[0].query", Form: "linear"}, {Path: "[1].query"}},
		}, nil
	})})
	exchangeRaw(t, addr, searchOf("/_msearch/template", ndjsonType, templateLines))
	got := node.searches()
	if len(got) != 1 || got[0].line != "POST /_msearch/template HTTP/1.1" || got[0].body != sealedLines || !cmp.Equal(got[0].get("Content-Type"), []string{"application/x-ndjson"}) {
		t.Errorf("the node got %q", got)
	}
	if n := len(node.all()); n != 3 {
		t.Errorf("the node got %d requests, want a question for each template", n)
	}
}

func TestTemplateIsForwardedAsItCameWhen(t *testing.T) {
	fails := expander(func(context.Context, *expand.Request) (*expand.Result, error) { return nil, context.DeadlineExceeded })
	odd := expander(func(context.Context, *expand.Request) (*expand.Result, error) {
		return &expand.Result{Rewritten: true, Body: []byte("{}\n{}\n")}, nil
	})
	invalid := rewriteTo("{\"query\":\"\xff\"}")
	rewrites := rewriteTo(rewritten)
	const search, multi = "/a/_search/template", "/a/_msearch/template"
	good := answerWith(200, jsonType, `{"template_output":{}}`)
	many := strings.Repeat("{}\n"+template+"\n", maxTemplates+1)
	tests := []struct {
		name, target, body string
		render             string // the answer to the question
		expander           expander
		outcome, reason    string
	}{
		{"the cluster does not know it", search, template, answerWith(404, jsonType, `{"error":{}}`), rewrites, report.Unchanged, reasonNotRendered},
		{"the client may not render", search, template, answerWith(403, jsonType, `{"error":{}}`), rewrites, report.Unchanged, reasonNotRendered},
		{"it renders to no JSON", search, template, answerWith(200, jsonType, `{"template_output": oops}`), rewrites, report.Unchanged, reasonNotRendered},
		{"it renders to nothing", search, template, answerWith(200, jsonType, `{}`), rewrites, report.Unchanged, reasonNotRendered},
		{"the answer is no JSON", search, template, answerWith(200, jsonType, ``), rewrites, report.Unchanged, reasonNotRendered},
		{"nobody answers", search, template, hangUp, rewrites, report.FailedOpen, "error"},
		{"the answer breaks off", search, template, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{" + hangUp, rewrites, report.FailedOpen, "error"},
		{"the rendered search is too long", search, template, answerWith(200, jsonType, `{"template_output":"`+strings.Repeat("x", 20_000)+`"}`), rewrites, report.Unchanged, reasonTooLarge},
		{"the answer is too long", search, template, answerWith(200, jsonType, strings.Repeat(" ", limits.MaxAnswer+1)), rewrites, report.FailedOpen, "error"},
		{"the expander fails", search, template, good, fails, report.FailedOpen, "budget"},
		{"the expander leaves it alone", search, template, good, leaveAlone, report.Unchanged, "left alone"},
		{"the expander panics", search, template, good, func(context.Context, *expand.Request) (*expand.Result, error) { panic("oops") }, report.FailedOpen, "panic"},
		{"the rewritten search is no UTF-8", search, template, good, invalid, report.FailedOpen, "error"},
		{"it has an option that is not known", search, `{"id":"a","simulate":true}`, "", rewrites, report.Unchanged, reasonBody},
		{"it has a member twice", search, `{"id":"a","id":"b"}`, "", rewrites, report.Unchanged, reasonBody},
		{"it is not all", search, `{"id":"a"} {}`, "", rewrites, report.Unchanged, reasonBody},
		{"it is no JSON", search, `id=a`, "", rewrites, report.Unchanged, reasonBody},
		{"a parameter means nothing to templates", search + "?q=car", template, "", rewrites, report.Unchanged, reasonParameters},
		{"it is in a parameter", search + "?source=%7B%7D", template, "", rewrites, report.Unchanged, reasonParameters},
		{"one of several is not rendered", multi, templateLines, answerWith(404, jsonType, "{}"), rewrites, report.Unchanged, reasonNotRendered},
		{"one of several renders to no JSON", multi, templateLines, answerWith(200, jsonType, `{"template_output": oops}`), rewrites, report.Unchanged, reasonNotRendered},
		{"nobody answers for one of several", multi, templateLines, hangUp, rewrites, report.FailedOpen, "error"},
		{"one of several has an unknown option", multi, "{}\n{\"id\":1,\"x\":1}\n", "", rewrites, report.Unchanged, reasonBody},
		{"the last line has no end", multi, strings.TrimSuffix(templateLines, "\n"), "", rewrites, report.Unchanged, reasonBody},
		{"the first line is empty", multi, "\n" + templateLines, "", rewrites, report.Unchanged, reasonBody},
		{"a template is missing", multi, templateLines + "{}\n", "", rewrites, report.Unchanged, reasonBody},
		{"there are too many", multi, many, "", rewrites, report.Unchanged, reasonTooMany},
		{"lines get lost", multi, templateLines, good, odd, report.FailedOpen, "error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			node := startRawNode(t, func(_ int, r rawRequest) string {
				if strings.Contains(r.line, renderPath) {
					return tt.render
				}
				return emptyAnswer
			})
			addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Templates: true, Expander: tt.expander, MaxBody: 16_000, Budget: patience})
			exchangeRaw(t, addr, searchOf(tt.target, jsonType, tt.body))
			got := node.searches()
			if len(got) != 1 || got[0].line != "POST "+tt.target+" HTTP/1.1" || got[0].body != tt.body {
				t.Errorf("the node got %q", got)
			}
			if asked := len(node.all()) > len(got); asked != (tt.render != "") {
				t.Errorf("the node was asked: %v", asked)
			}
			if n := counter(t, registry, "akin_requests_total", "outcome", tt.outcome, "reason", tt.reason); n != 1 {
				t.Errorf("counted %v times under %s, %q", n, tt.outcome, tt.reason)
			}
			if n := counter(t, registry, "akin_requests_total"); n != 1 {
				t.Errorf("%v outcomes for one request", n)
			}
		})
	}
}

// Rendering is part of the time that akin takes for itself.
func TestSlowRenderingIsNotWaitedFor(t *testing.T) {
	stop := make(chan struct{})
	node := startRawNode(t, func(_ int, r rawRequest) string {
		if strings.Contains(r.line, renderPath) {
			<-stop
		}
		return emptyAnswer
	})
	t.Cleanup(func() { close(stop) })
	for _, request := range []string{searchOf("/_search/template", jsonType, template), searchOf("/_msearch/template", jsonType, templateLines)} {
		addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Templates: true, Expander: rewriteTo(rewritten), Budget: 20 * time.Millisecond})
		exchangeRaw(t, addr, request)
		if n := counter(t, registry, "akin_requests_total", "outcome", report.FailedOpen, "reason", "budget"); n != 1 {
			t.Errorf("counted %v times", n)
		}
	}
	if got := node.searches(); len(got) != 2 || got[0].body != template || got[1].body != templateLines {
		t.Errorf("the node got %q", got)
	}
}

func TestRefusedTemplateIsFollowedByTheOriginal(t *testing.T) {
	for _, tt := range []struct{ target, body, refusal string }{
		{"/a/_search/template", template, answerWith(400, jsonType, "{}")},
		{"/a/_msearch/template", templateLines, answerWith(400, jsonType, "{}")},
		{"/a/_msearch/template", templateLines, answerWith(200, jsonType, responses(badItem, goodItem))},
	} {
		var searches atomic.Int32
		node := startRawNode(t, func(n int, r rawRequest) string {
			if strings.Contains(r.line, renderPath) || searches.Add(1) > 1 {
				return renders("{}")(n, r)
			}
			return tt.refusal
		})
		addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Templates: true, Expander: expander(func(_ context.Context, r *expand.Request) (*expand.Result, error) {
			return &expand.Result{Rewritten: true, Body: r.Body, Clauses: []expand.Explanation{{Path: "[0].query", Form: "linear"}}}, nil
		})})
		got := exchangeRaw(t, addr, searchOf(tt.target, jsonType, tt.body))
		arrived := node.searches()
		if !strings.HasSuffix(got, "\r\n\r\n{}") || len(arrived) != 2 || arrived[1].body != tt.body || arrived[1].line != "POST "+tt.target+" HTTP/1.1" {
			t.Errorf("the client got %q, the node %q", got, arrived)
		}
		if n := counter(t, registry, "akin_rejected_searches_total", "original", "accepted"); n != 1 {
			t.Errorf("%v refusals are counted", n)
		}
	}
}
