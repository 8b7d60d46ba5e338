package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/report"
)

// A waiting expander expands where the originals find fewer hits than below.
type waiting struct {
	expander

	below []int
}

func (w waiting) Below(*expand.Request) []int { return w.below }

// totalOf is the answer to a search that finds so many hits.
func totalOf(hits int) string {
	return fmt.Sprintf(`{"took":1,"timed_out":false,"_shards":{"total":3,"failed":0},"hits":{"total":{"value":%d,"relation":"eq"},"hits":[{"_id":"original"}]}}`, hits)
}

const fewAnswer = `{"took":2,"timed_out":false,"_shards":{"failed":0},"hits":{"total":{"value":7},"hits":[{"_id":"related"}]}}`

func TestFewHitsAreAnsweredByTheExpandedSearch(t *testing.T) {
	const path, refusal = "/i/_search", `{"error":{"type":"too_many_clauses"},"status":400}`
	for name, tt := range map[string]struct {
		path             string
		below            int
		status           int // of the original
		answer           string
		expanded         string // what the cluster answers to the rewritten search, "" for a 400
		expander         expander
		want             string // "original" or "related"
		sent             int
		result, outcome  string
		reason, fallback string
	}{
		"few":                 {path, 10, 200, totalOf(9), fewAnswer, nil, fewAnswer, 2, fewExpanded, report.Rewritten, "", ""},
		"enough":              {path, 10, 200, totalOf(10), fewAnswer, nil, "", 1, fewEnough, report.Unchanged, reasonEnoughHits, ""},
		"never":               {path, 0, 200, totalOf(0), fewAnswer, nil, "", 1, fewEnough, report.Unchanged, reasonEnoughHits, ""},
		"total as a number":   {path, 10, 200, `{"_shards":{"failed":0},"hits":{"total":12,"hits":[]}}`, fewAnswer, nil, "", 1, fewEnough, report.Unchanged, reasonEnoughHits, ""},
		"no total":            {path, 10, 200, `{"_shards":{"failed":0},"hits":{"hits":[]}}`, fewAnswer, nil, fewAnswer, 2, fewExpanded, report.Rewritten, "", ""},
		"a count":             {"/i/_count", 10, 200, `{"count":3,"_shards":{"failed":0}}`, `{"count":8,"_shards":{"failed":0}}`, nil, `{"count":8,"_shards":{"failed":0}}`, 2, fewExpanded, report.Rewritten, "", ""},
		"a count is enough":   {"/i/_count", 10, 200, `{"count":30,"_shards":{"failed":0}}`, "", nil, "", 1, fewEnough, report.Unchanged, reasonEnoughHits, ""},
		"a shard failed":      {path, 10, 200, strings.Replace(totalOf(1), `"failed":0`, `"failed":1`, 1), fewAnswer, nil, "", 1, fewFailed, report.Unchanged, reasonEnoughHits, ""},
		"out of time":         {path, 10, 200, strings.Replace(totalOf(1), `false`, `true`, 1), fewAnswer, nil, "", 1, fewFailed, report.Unchanged, reasonEnoughHits, ""},
		"it is refused":       {path, 10, 400, refusal, fewAnswer, nil, "", 1, fewFailed, report.Unchanged, reasonEnoughHits, ""},
		"no JSON":             {path, 10, 200, `<html>`, fewAnswer, nil, "", 1, fewUnread, report.Unchanged, reasonEnoughHits, ""},
		"breaks off":          {path, 10, 200, `{"took":`, fewAnswer, nil, "", 1, fewUnread, report.Unchanged, reasonEnoughHits, ""},
		"nothing to add":      {path, 10, 200, totalOf(1), fewAnswer, leaveAlone, "", 1, fewExpanded, report.Unchanged, "left alone", ""},
		"the expander fails":  {path, 10, 200, totalOf(1), fewAnswer, func(context.Context, *expand.Request) (*expand.Result, error) { panic("oops") }, "", 1, fewExpanded, report.FailedOpen, causePanic, ""},
		"expanded is refused": {path, 10, 200, totalOf(1), "", nil, "", 2, fewExpanded, report.Rewritten, "", originalAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var sent []string
			node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, string(body))
				if r.URL.Path != "/prefix"+tt.path {
					t.Errorf("sent to %s", r.URL.Path)
				}
				w.Header().Set("Content-Type", "application/json")
				status, text := tt.status, tt.answer
				if string(body) == rewritten {
					if status, text = 200, tt.expanded; text == "" {
						status, text = 400, refusal
					}
				}
				w.WriteHeader(status)
				_, _ = io.WriteString(w, text)
			}))
			defer node.Close()
			e := tt.expander
			if e == nil {
				e = rewriteTo(rewritten)
			}
			addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL + "/prefix"), Expander: waiting{e, []int{tt.below}}})
			got := exchangeRaw(t, addr, searchOf(tt.path, jsonType, original))
			_, body, _ := strings.Cut(got, "\r\n\r\n")
			if want := tt.want; want == "" && body != tt.answer || want != "" && body != want {
				t.Errorf("the client got %q", got)
			}
			if len(sent) != tt.sent || sent[0] != original {
				t.Errorf("the node got %q", sent)
			}
			if counter(t, registry, "akin_few_hits_total", "result", tt.result) != 1 || counter(t, registry, "akin_few_hits_total") != 1 ||
				counter(t, registry, "akin_requests_total", "outcome", tt.outcome, "reason", tt.reason) != 1 || counter(t, registry, "akin_requests_total") != 1 {
				t.Errorf("not counted once as %s, %s, %q", tt.result, tt.outcome, tt.reason)
			}
			if tt.fallback != "" && counter(t, registry, "akin_rejected_searches_total", "original", tt.fallback) != 1 {
				t.Errorf("not counted as %s", tt.fallback)
			}
		})
	}
}

// Of several searches only those that find little are sent again.
func TestOfSeveralSearchesThoseWithFewHitsAreExpanded(t *testing.T) {
	const first, second, third = "{}\n{\"query\":{\"match\":{\"a\":\"1\"}}}\n", "{}\n{\"query\":{\"match\":{\"a\":\"2\"}}}\n", "{}\n{\"query\":{\"match\":{\"a\":\"3\"}}}\n"
	failed := `{"error":{"type":"parsing_exception"},"status":400}`
	responses := func(all ...string) string { return `{"took":5,"responses":[` + strings.Join(all, ",") + `]}` }
	for name, tt := range map[string]struct {
		answers, expanded []string // expanded are the answers to the rewritten searches
		again, want       string
	}{
		"one":        {[]string{totalOf(20), totalOf(1), totalOf(30)}, []string{fewAnswer}, second, responses(totalOf(20), fewAnswer, totalOf(30))},
		"two":        {[]string{totalOf(2), totalOf(20), totalOf(1)}, []string{fewAnswer, fewAnswer}, first + third, responses(fewAnswer, totalOf(20), fewAnswer)},
		"none":       {[]string{totalOf(20), totalOf(20), totalOf(20)}, nil, "", responses(totalOf(20), totalOf(20), totalOf(20))},
		"one fails":  {[]string{failed, totalOf(1), totalOf(20)}, []string{fewAnswer}, second, responses(failed, fewAnswer, totalOf(20))},
		"odd answer": {[]string{totalOf(20), totalOf(1), totalOf(30)}, nil, second, responses(totalOf(20), totalOf(1), totalOf(30))},
	} {
		t.Run(name, func(t *testing.T) {
			var again string
			node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "application/json")
				if text, ok := strings.CutPrefix(string(body), "rewritten "); ok {
					again = text
					_, _ = io.WriteString(w, responses(tt.expanded...))
					return
				}
				_, _ = io.WriteString(w, responses(tt.answers...))
			}))
			defer node.Close()
			e := func(_ context.Context, r *expand.Request) (*expand.Result, error) {
				res := &expand.Result{Rewritten: true, Body: append([]byte("rewritten "), r.Body...), Parts: make([]expand.Part, strings.Count(string(r.Body), "{}"))}
				for k := range res.Parts {
					res.Clauses = append(res.Clauses, expand.Explanation{Path: fmt.Sprintf("[%d].query.match", k), Form: "linear"})
				}
				return res, nil
			}
			s := newServer(t, Options{Nodes: nodesAt(node.URL), Expander: waiting{e, []int{10, 10, 10}}})
			addr := startServer(t, s)
			got := exchangeRaw(t, addr, searchOf("/i/_msearch", "X-Akin: explain\nContent-Type: application/x-ndjson\nAccept-Encoding: gzip\n", first+second+third))
			_, body, _ := strings.Cut(got, "\r\n\r\n")
			if diff := cmp.Diff(tt.want, body); diff != "" || again != tt.again || !strings.Contains(got, fmt.Sprintf("Content-Length: %d\r\n", len(tt.want))) {
				t.Errorf("the node got %q again, the client %q", again, got)
			}
			_, id, _ := strings.Cut(got, "X-Akin-Explanation: ")
			id, _, _ = strings.Cut(id, "\r\n")
			var record struct{ Clauses []struct{ Path string } }
			getAdmin(t, s, "/_akin/explanations/"+id, &record)
			for k, c := range record.Clauses { // by the numbers that the client knows
				if want := fmt.Sprintf("[%d].query.match", strings.Index("123", tt.again[strings.Index(tt.again, `"a":"`)+5+k*len(first):][:1])); c.Path != want {
					t.Errorf("clause %d of %q is explained as %s, want %s", k, tt.again, c.Path, want)
				}
			}
			if len(record.Clauses) != strings.Count(tt.again, "{}") {
				t.Errorf("%d clauses are explained", len(record.Clauses))
			}
		})
	}
}
