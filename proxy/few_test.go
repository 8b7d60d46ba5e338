package proxy

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
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
		want             string // what the client gets, "" for the answer to the original
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
		"the expander fails":  {path, 10, 200, totalOf(1), fewAnswer, panics, "", 1, fewExpanded, report.FailedOpen, causePanic, ""},
		"expanded is refused": {path, 10, 200, totalOf(1), "", nil, "", 2, fewExpanded, report.Rewritten, "", originalAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			e := tt.expander
			if e == nil {
				e = rewriteTo(rewritten)
			}
			node := startRawNode(t, func(_ int, r rawRequest) string {
				check.That(t, strings.HasPrefix(r.line, "POST /prefix"+tt.path+" "), "sent to %s", r.line)
				if r.body != rewritten {
					return answerWith(tt.status, jsonType, tt.answer)
				} else if tt.expanded == "" {
					return answerWith(400, jsonType, refusal)
				}
				return answerOf(tt.expanded)
			})
			p := start(t, Options{Nodes: nodesAt(node.URL + "/prefix"), Expander: waiting{e, []int{tt.below}}}, nil)
			p.rawNode = node
			got, want := bodyOf(p.post(t, tt.path, jsonType, original)), tt.want
			if want == "" {
				want = tt.answer
			}
			check.Equal(t, want, got, "the client")
			p.arrived(t, []string{original, rewritten}[:tt.sent]...)
			p.counted(t, 1, "akin_few_hits_total")
			p.counted(t, 1, "akin_few_hits_total", "result", tt.result)
			p.became(t, tt.outcome, tt.reason)
			if tt.fallback != "" {
				p.counted(t, 1, "akin_rejected_searches_total", "original", tt.fallback)
			}
		})
	}
}

func TestOfSeveralSearchesThoseWithFewHitsAreExpanded(t *testing.T) {
	const first, second, third = "{}\n{\"query\":{\"match\":{\"a\":\"1\"}}}\n", "{}\n{\"query\":{\"match\":{\"a\":\"2\"}}}\n", "{}\n{\"query\":{\"match\":{\"a\":\"3\"}}}\n"
	const path2 = "[1].query.match"
	failed := `{"error":{"type":"parsing_exception"},"status":400}`
	for name, tt := range map[string]struct {
		answers, expanded []string // expanded are the answers to the rewritten searches
		again, want       string
		paths             []string
	}{
		"one":        {[]string{totalOf(20), totalOf(1), totalOf(30)}, []string{fewAnswer}, second, responses(totalOf(20), fewAnswer, totalOf(30)), []string{path2}},
		"two":        {[]string{totalOf(2), totalOf(20), totalOf(1)}, []string{fewAnswer, fewAnswer}, first + third, responses(fewAnswer, totalOf(20), fewAnswer), []string{"[0].query.match", "[2].query.match"}},
		"none":       {[]string{totalOf(20), totalOf(20), totalOf(20)}, nil, "", responses(totalOf(20), totalOf(20), totalOf(20)), nil},
		"one fails":  {[]string{failed, totalOf(1), totalOf(20)}, []string{fewAnswer}, second, responses(failed, fewAnswer, totalOf(20)), []string{path2}},
		"odd answer": {[]string{totalOf(20), totalOf(1), totalOf(30)}, nil, second, responses(totalOf(20), totalOf(1), totalOf(30)), []string{path2}},
	} {
		t.Run(name, func(t *testing.T) {
			e := func(_ context.Context, r *expand.Request) (*expand.Result, error) {
				res := &expand.Result{Rewritten: true, Body: append([]byte("rewritten "), r.Body...), Parts: make([]expand.Part, strings.Count(string(r.Body), "{}"))}
				for k := range res.Parts {
					res.Clauses = append(res.Clauses, expand.Explanation{Path: fmt.Sprintf("[%d].query.match", k), Form: "linear"})
				}
				return res, nil
			}
			p := start(t, Options{Expander: waiting{e, []int{10, 10, 10}}}, func(_ int, r rawRequest) string {
				if strings.HasPrefix(r.body, "rewritten ") {
					return answerOf(responses(tt.expanded...))
				}
				return answerOf(responses(tt.answers...))
			})
			got := p.post(t, "/i/_msearch", "X-Akin: explain\n"+ndjsonType+"Accept-Encoding: gzip\n", first+second+third)
			diff := cmp.Diff(tt.want, bodyOf(got))
			check.That(t, diff == "" && strings.Contains(got, fmt.Sprintf("Content-Length: %d\r\n", len(tt.want))), "the client got %q", got)
			var paths []string // by the numbers that the client knows
			if tt.again == "" {
				p.arrived(t, first+second+third)
			} else {
				p.arrived(t, first+second+third, "rewritten "+tt.again)
			}
			clauses, _ := p.explained(t, got)["clauses"].([]any)
			for _, c := range clauses {
				paths = append(paths, fmt.Sprint(c.(map[string]any)["path"]))
			}
			check.Equal(t, tt.paths, paths, "explained")
		})
	}
}
