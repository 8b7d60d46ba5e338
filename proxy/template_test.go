package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy/report"
)

// renderPath is the endpoint that renders templates.
const renderPath = "/_render/template"

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
	for method, coding := range map[string]string{"GET": "", "POST": gzipCoding} {
		node := startRawNode(t, renders(rendered))
		p := start(t, Options{Nodes: nodesAt(node.URL + "/es"), Templates: true, Budget: patience, Expander: expander(func(_ context.Context, r *expand.Request) (*expand.Result, error) {
			want := expand.Request{
				Endpoint: expand.EndpointSearch, Index: "a", RawQuery: "routing=x", Body: []byte(rendered), Fixed: reason.Answer,
				Discloses: expand.DiscloseProfile | expand.DiscloseExplain,
			}
			check.Equal(t, want, *r, "the expander")
			return &expand.Result{Rewritten: true, RawQuery: "routing=x&search_type=dfs_query_then_fetch", Body: []byte(rewritten)}, nil
		})}, nil)
		body := template
		if coding != "" {
			body = pack(t, template)
		}
		header := jsonType + coding + "Authorization: Basic YTpi\nX-Opaque-Id: 7\nX-Akin-Profile: \nX-Hop: 1\nConnection: X-Hop\nAccept: application/yaml\nAccept-Encoding: gzip\n"
		exchangeRaw(t, p.addr, method+strings.TrimPrefix(searchOf("/a/_search/template?akin=explain&routing=x", header, body), "POST"))
		got := node.all()
		check.Must(t, len(got) == 2, "the node got %q", got)
		question := []string{"Accept: application/json", "Authorization: Basic YTpi", fmt.Sprintf("Content-Length: %d", len(template)), "Content-Type: application/json", "Host: " + node.addr, "X-Opaque-Id: 7"}
		diff := cmp.Diff(question, slices.Sorted(slices.Values(got[0].header)))
		check.That(t, diff == "" && got[0].line == "POST /es/_render/template HTTP/1.1" && got[0].body == template, "the question is %q (-want +got):\n%s", got[0], diff)
		if want := method + " /es/a/_search/template?routing=x&search_type=dfs_query_then_fetch&allow_partial_search_results=false HTTP/1.1"; got[1].line != want || got[1].body != sealedSearch {
			t.Errorf("the node got %q", got[1])
		}
		p.became(t, report.Rewritten, "")
	}
}

func TestTemplatesOfMultiSearchAreRenderedAndTheirSearchesRewritten(t *testing.T) {
	p := start(t, Options{Templates: true, Expander: expander(func(_ context.Context, r *expand.Request) (*expand.Result, error) {
		const searches = "{}\n{\"query\":{}}\n{\"index\":\"b\"}\n{\"query\":{}}\n"
		check.That(t, r.Endpoint == expand.EndpointMultiSearch && string(r.Body) == searches, "the expander got %+v with body %q", r, r.Body)
		return &expand.Result{
			Rewritten: true, Body: []byte(strings.Replace(searches, `{"query":{}}`, rewritten, 1)),
			Clauses: []expand.Explanation{{Path: "[0].query", Form: "linear"}, {Path: "[1].query"}},
		}, nil
	})}, renders("{\n  \"query\": {}\n}"))
	p.post(t, "/_msearch/template", ndjsonType, templateLines)
	p.arrived(t, sealedLines)
	if got := p.searches()[0]; got.line != "POST /_msearch/template HTTP/1.1" || !slices.Equal(got.get("Content-Type"), []string{"application/x-ndjson"}) {
		t.Errorf("the node got %q", got)
	}
	check.Equal(t, 3, len(p.all()), "requests, a question for each template")
}

func TestTemplateThatIsNotRenderedStaysBesideOthers(t *testing.T) {
	p := start(t, Options{Templates: true, Expander: expander(func(_ context.Context, r *expand.Request) (*expand.Result, error) {
		check.Equal(t, "{}\n{\"query\":{}}\n{\"index\":\"b\"}\n{}\n", string(r.Body))
		return &expand.Result{
			Rewritten: true, Body: []byte(strings.Replace(string(r.Body), `{"query":{}}`, rewritten, 1)),
			Clauses: []expand.Explanation{{Path: "[0].query", Form: "linear"}, {Path: "[1]", Reason: reason.NoClause}},
		}, nil
	})}, func(n int, r rawRequest) string {
		if strings.Contains(r.line, renderPath) && r.body != template {
			return answerWith(404, jsonType, "{}")
		}
		return renders(`{"query":{}}`)(n, r)
	})
	p.post(t, "/_msearch/template", ndjsonType, templateLines)
	p.arrived(t, sealedLines)
}

func TestTemplateIsForwardedAsItCameWhen(t *testing.T) {
	odd := results(expand.Result{Rewritten: true, Body: []byte("{}\n{}\n")})
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
		{"the client may not render", search, template, answerWith(403, jsonType, `{"error":{}}`), rewrites, report.Unchanged, string(reason.NotAuthorized)},
		{"it renders to no JSON", search, template, answerWith(200, jsonType, `{"template_output": oops}`), rewrites, report.Unchanged, reasonNotRendered},
		{"it renders to nothing", search, template, answerWith(200, jsonType, `{}`), rewrites, report.Unchanged, reasonNotRendered},
		{"the answer is no JSON", search, template, answerWith(200, jsonType, ``), rewrites, report.Unchanged, reasonNotRendered},
		{"nobody answers", search, template, hangUp, rewrites, report.FailedOpen, "error"},
		{"the answer breaks off", search, template, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{" + hangUp, rewrites, report.FailedOpen, "error"},
		{"the rendered search is too long", search, template, answerWith(200, jsonType, `{"template_output":"`+strings.Repeat("x", 20_000)+`"}`), rewrites, report.Unchanged, reasonTooLarge},
		{"the answer is too long", search, template, answerWith(200, jsonType, strings.Repeat(" ", limits.MaxAnswer+1)), rewrites, report.FailedOpen, "error"},
		{"the expander fails", search, template, good, fails(context.DeadlineExceeded), report.FailedOpen, "budget"},
		{"the expander leaves it alone", search, template, good, leaveAlone, report.Unchanged, "left alone"},
		{"the expander panics", search, template, good, panics, report.FailedOpen, "panic"},
		{"the rewritten search is no UTF-8", search, template, good, invalid, report.FailedOpen, "error"},
		{"it has an option that is not known", search, `{"id":"a","simulate":true}`, "", rewrites, report.Unchanged, reasonBody},
		{"it has a member twice", search, `{"id":"a","id":"b"}`, "", rewrites, report.Unchanged, reasonBody},
		{"it is not all", search, `{"id":"a"} {}`, "", rewrites, report.Unchanged, reasonBody},
		{"it is no JSON", search, `id=a`, "", rewrites, report.Unchanged, reasonBody},
		{"a parameter means nothing to templates", search + "?q=car", template, "", rewrites, report.Unchanged, reasonParameters},
		{"it is in a parameter", search + "?source=%7B%7D", template, "", rewrites, report.Unchanged, reasonParameters},
		{"none of several is rendered", multi, templateLines, answerWith(404, jsonType, "{}"), rewrites, report.Unchanged, reasonNotRendered},
		{"all of several render to no JSON", multi, templateLines, answerWith(200, jsonType, `{"template_output": oops}`), rewrites, report.Unchanged, reasonNotRendered},
		{"nobody answers for one of several", multi, templateLines, hangUp, rewrites, report.FailedOpen, "error"},
		{"all of several have an unknown option", multi, "{}\n{\"id\":1,\"x\":1}\n", "", rewrites, report.Unchanged, reasonBody},
		{"the last line has no end", multi, strings.TrimSuffix(templateLines, "\n"), "", rewrites, report.Unchanged, reasonBody},
		{"the first line is empty", multi, "\n" + templateLines, "", rewrites, report.Unchanged, reasonBody},
		{"a template is missing", multi, templateLines + "{}\n", "", rewrites, report.Unchanged, reasonBody},
		{"there are too many", multi, many, "", rewrites, report.Unchanged, reasonTooMany},
		{"lines get lost", multi, templateLines, good, odd, report.FailedOpen, "error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, Options{Templates: true, Expander: tt.expander, MaxBody: 16_000, Budget: patience}, func(_ int, r rawRequest) string {
				if strings.Contains(r.line, renderPath) {
					return tt.render
				}
				return emptyAnswer
			})
			p.post(t, tt.target, jsonType, tt.body)
			p.arrived(t, tt.body)
			check.Equal(t, "POST "+tt.target+" HTTP/1.1", p.searches()[0].line, "the node")
			asked := len(p.all()) > 1
			check.That(t, asked == (tt.render != ""), "the node was asked: %v", asked)
			p.became(t, tt.outcome, tt.reason)
		})
	}
}

// Rendering is part of the time that akin takes for itself.
func TestSlowRenderingIsNotWaitedFor(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	for target, body := range map[string]string{"/_search/template": template, "/_msearch/template": templateLines} {
		p := start(t, Options{Templates: true, Expander: rewriteTo(rewritten), Budget: 20 * time.Millisecond}, func(_ int, r rawRequest) string {
			if strings.Contains(r.line, renderPath) {
				<-stop
			}
			return emptyAnswer
		})
		p.post(t, target, jsonType, body)
		p.arrived(t, body)
		p.became(t, report.FailedOpen, "budget")
	}
}

func TestRefusedTemplateIsFollowedByTheOriginal(t *testing.T) {
	for _, tt := range []struct{ target, body, refusal string }{
		{"/a/_search/template", template, answerWith(400, jsonType, "{}")},
		{"/a/_msearch/template", templateLines, answerWith(400, jsonType, "{}")},
		{"/a/_msearch/template", templateLines, answerOf(responses(badItem, goodItem))},
	} {
		var searches atomic.Int32
		p := start(t, Options{Templates: true, Expander: expander(func(_ context.Context, r *expand.Request) (*expand.Result, error) {
			return &expand.Result{Rewritten: true, Body: r.Body, Clauses: []expand.Explanation{{Path: "[0].query", Form: "linear"}}}, nil
		})}, func(n int, r rawRequest) string {
			if strings.Contains(r.line, renderPath) || searches.Add(1) > 1 {
				return renders("{}")(n, r)
			}
			return tt.refusal
		})
		got, arrived := bodyOf(p.post(t, tt.target, jsonType, tt.body)), p.searches()
		check.That(t, got == "{}" && len(arrived) == 2 && arrived[1].body == tt.body && arrived[1].line == "POST "+tt.target+" HTTP/1.1", "the client got %q, the node %q", got, arrived)
		p.counted(t, 1, "akin_rejected_searches_total", "original", "accepted")
	}
}

// A sealed search is valid JSON whose parameter is the search, byte for byte,
// and it keeps the options of the template.
func FuzzSeal(f *testing.F) {
	f.Add(`{"id":"a","params":{"q":"car"}}`, `{"query":{"match":{"body":"car"}}}`)
	f.Add(`{"source":{"size":"{{n}}"},"profile":false,"explain":null}`, "{\"a\":\"}}}{{{akin}}} <&> \u2028 \\\"\n\"}")
	f.Add(`{"id":1,"params":{"explain":true}}`, "")
	f.Fuzz(func(t *testing.T, template, search string) {
		options, ok := templateOptions([]byte(template))
		body, err := sealOne(nil, []byte(template), []byte(search))
		if !ok || err != nil {
			return
		}
		var got, want struct {
			Source           string
			Params           struct{ Akin string }
			Explain, Profile json.RawMessage
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%q is no JSON: %v (options %q)", body, err, options)
		}
		check.That(t, got.Source == sealed && got.Params.Akin == search, "%q does not hold %q", body, search)
		// A second decoder for the options; parameters may have any type there.
		var plain map[string]json.RawMessage
		if err := json.Unmarshal([]byte(template), &plain); err != nil {
			return // jsontext allows a little more, such as very deep nesting
		}
		want.Explain, want.Profile = plain["explain"], plain["profile"]
		check.That(t, bytes.Equal(got.Explain, want.Explain) && bytes.Equal(got.Profile, want.Profile), "%q has other options than %q", body, template)
	})
}

// Several templates are rendered at the same time.
func TestPanicWhileATemplateIsRenderedIsAnError(t *testing.T) {
	guard := recovery.New(slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	ask := func(context.Context, esapi.Request) (int, []byte, error) { panic("a mistake") }
	_, _, err := renderAll(t.Context(), [][]byte{[]byte("{}"), []byte(`{"id":"a"}`)}, guard, ask)
	check.That(t, errors.Is(err, recovery.ErrPanic), "error %v", err)
}
