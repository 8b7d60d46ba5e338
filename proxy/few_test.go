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
		"expanded is late":    {path, 10, 200, totalOf(1), strings.Replace(fewAnswer, "false", "true", 1), nil, "", 2, fewExpanded, report.Rewritten, "", ""},
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
			got := p.post(t, "/i/_msearch", "X-Akin: explain\n"+ndjsonType+"Accept-Encoding: br\n", first+second+third)
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

// An orderer rewrites a search so that its hits are put in order, and again, so
// that it finds more.
type orderer struct {
	expander

	enough []expand.Enough
	wide   expander // nil: "wide" and the body
}

func (o orderer) Expand(ctx context.Context, r *expand.Request) (*expand.Result, error) {
	if r.Again != nil && o.wide != nil {
		return o.wide(ctx, r)
	}
	name, how := "ordered ", expand.Ordered
	if r.Again != nil {
		name, how = "wide ", expand.Widened
	}
	parts := strings.Count(string(r.Body), "{}")
	res := &expand.Result{Rewritten: true, Body: append([]byte(name), r.Body...), Parts: make([]expand.Part, max(parts, 1))}
	for k := range res.Parts {
		res.Parts[k].How = how
		if r.Again == nil {
			res.Parts[k].Enough = o.enough[k]
		}
		res.Clauses = append(res.Clauses, expand.Explanation{Path: fmt.Sprintf("[%d].query.match", k), Form: name})
	}
	return res, nil
}

func TestOrderedSearchThatFindsTooFewIsAnsweredByAWideOne(t *testing.T) {
	const path, refusal = "/i/_search", `{"error":{"type":"too_many_clauses"},"status":400}`
	page := func(total string, hits int) string {
		return `{"took":1,"timed_out":false,"_shards":{"failed":0},"hits":{` + total + `"hits":[` + strings.TrimSuffix(strings.Repeat(`{"_id":"o"},`, hits), ",") + `]}}`
	}
	for name, tt := range map[string]struct {
		enough          expand.Enough
		ordered, wide   string // answers
		expander        expander
		sent            []string
		result, how     string
		matching        string
		outcome, reason string
	}{
		"enough":               {expand.Enough{Hits: 10, Page: 10}, totalOf(10), fewAnswer, nil, []string{"ordered "}, fewEnough, expand.Ordered, "ordered: finds 10 itself", report.Rewritten, ""},
		"too few":              {expand.Enough{Hits: 10, Page: 10}, totalOf(9), fewAnswer, nil, []string{"ordered ", "wide "}, fewExpanded, expand.Widened, "widened: finds 9 itself", report.Rewritten, ""},
		"no hits":              {expand.Enough{Hits: 10, Page: 10}, totalOf(0), fewAnswer, nil, []string{"ordered ", "wide "}, fewExpanded, expand.Widened, "widened: finds 0 itself", report.Rewritten, ""},
		"counted less far":     {expand.Enough{Hits: 10, Page: 3}, page(`"total":{"value":2,"relation":"gte"},`, 3), fewAnswer, nil, []string{"ordered "}, fewUnread, expand.Ordered, "ordered: finds 2 itself", report.Rewritten, ""},
		"all that are counted": {expand.Enough{Hits: 10_000, Page: 3}, page(`"total":{"value":10000,"relation":"gte"},`, 3), fewAnswer, nil, []string{"ordered "}, fewEnough, expand.Ordered, "ordered: finds 10000 itself", report.Rewritten, ""},
		"not counted":          {expand.Enough{Hits: 10, Page: 3}, page("", 3), fewAnswer, nil, []string{"ordered "}, fewUnread, expand.Ordered, "ordered", report.Rewritten, ""},
		"told by its page":     {expand.Enough{Hits: 10, Page: 3}, page("", 2), fewAnswer, nil, []string{"ordered ", "wide "}, fewExpanded, expand.Widened, "widened: finds 2 itself", report.Rewritten, ""},
		"told by no page":      {expand.Enough{Hits: 10}, page("", 2), fewAnswer, nil, []string{"ordered "}, fewUnread, expand.Ordered, "ordered", report.Rewritten, ""},
		"a page of enough":     {expand.Enough{Hits: 2, Page: 3}, page("", 2), fewAnswer, nil, []string{"ordered "}, fewEnough, expand.Ordered, "ordered: finds 2 itself", report.Rewritten, ""},
		"a shard fails":        {expand.Enough{Hits: 10, Page: 3}, strings.Replace(totalOf(1), `"failed":0`, `"failed":1`, 1), "", nil, []string{"ordered ", original}, "", "", "ordered", report.Rewritten, ""},
		"out of time":          {expand.Enough{Hits: 10, Page: 3}, strings.Replace(totalOf(1), "false", "true", 1), fewAnswer, nil, []string{"ordered "}, fewFailed, expand.Ordered, "ordered", report.Rewritten, ""},
		"ordered is refused":   {expand.Enough{Hits: 10, Page: 3}, "", fewAnswer, nil, []string{"ordered ", original}, "", "", "ordered", report.Rewritten, ""},
		"the wide one, too":    {expand.Enough{Hits: 10, Page: 3}, totalOf(1), "", nil, []string{"ordered ", "wide "}, fewExpanded, expand.Ordered, "ordered: finds 1 itself", report.Rewritten, ""},
		"the wide one's shard": {expand.Enough{Hits: 10, Page: 3}, totalOf(1), strings.Replace(fewAnswer, `"failed":0`, `"failed":1`, 1), nil, []string{"ordered ", "wide "}, fewExpanded, expand.Ordered, "ordered: finds 1 itself", report.Rewritten, ""},
		"the wide one is late": {expand.Enough{Hits: 10, Page: 3}, totalOf(1), strings.Replace(fewAnswer, "false", "true", 1), nil, []string{"ordered ", "wide "}, fewExpanded, expand.Ordered, "ordered: finds 1 itself", report.Rewritten, ""},
		"nothing to find by":   {expand.Enough{Hits: 10, Page: 3}, totalOf(1), "", leaveAlone, []string{"ordered "}, fewExpanded, expand.Ordered, "ordered: finds 1 itself", report.Rewritten, ""},
		"the expander fails":   {expand.Enough{Hits: 10, Page: 3}, totalOf(1), "", panics, []string{"ordered "}, fewExpanded, expand.Ordered, "ordered: finds 1 itself", report.Rewritten, ""},
		"decided at once":      {expand.Enough{}, totalOf(1), fewAnswer, nil, []string{"ordered "}, "", expand.Ordered, "ordered", report.Rewritten, ""},
		"a page of many bytes": {expand.Enough{Hits: 10, Page: 3}, page(`"x":"`+strings.Repeat("x", 2*maxLooked)+`",`, 1), fewAnswer, nil, []string{"ordered "}, fewUnread, expand.Ordered, "ordered", report.Rewritten, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, Options{Expander: orderer{nil, []expand.Enough{tt.enough}, tt.expander}}, func(_ int, r rawRequest) string {
				reply := map[bool]string{true: tt.wide, false: tt.ordered}[strings.HasPrefix(r.body, "wide ")]
				switch {
				case r.body == original:
					return answerOf(totalOf(3))
				case reply == "":
					return answerWith(400, jsonType, refusal)
				}
				return answerOf(reply)
			})
			want := tt.ordered
			switch last := tt.sent[len(tt.sent)-1]; {
			case last == original:
				want = totalOf(3)
			case last == "wide " && tt.how == expand.Widened:
				want = tt.wide
			}
			got := p.post(t, path, jsonType+"X-Akin: explain\n", original)
			check.Equal(t, want, bodyOf(got), "the client")
			sent := make([]string, len(tt.sent))
			for k, s := range tt.sent {
				sent[k] = strings.TrimSuffix(s, original) + original
			}
			p.arrived(t, sent...)
			if tt.result != "" {
				p.counted(t, 1, "akin_few_hits_total", "result", tt.result)
			}
			if tt.how != "" {
				p.counted(t, 1, "akin_searches_total", "how", tt.how)
			}
			p.became(t, tt.outcome, tt.reason)
			check.Equal(t, any(tt.matching), p.explained(t, got)["matching"])
		})
	}
}

func TestOfSeveralOrderedSearchesThoseThatFindTooFewAreWide(t *testing.T) {
	const body = "{}\n{\"q\":1}\n{}\n{\"q\":2}\n{}\n{\"q\":3}\n"
	few := expand.Enough{Hits: 10, Page: 10}
	p := start(t, Options{Expander: orderer{nil, []expand.Enough{few, few, {}}, nil}}, func(_ int, r rawRequest) string {
		if strings.HasPrefix(r.body, "wide ") {
			return answerOf(responses(fewAnswer))
		}
		return answerOf(responses(totalOf(20), totalOf(1), totalOf(2)))
	})
	got := p.post(t, "/_msearch", "X-Akin: explain\nContent-Type: application/x-ndjson\n", body)
	check.Equal(t, responses(totalOf(20), fewAnswer, totalOf(2)), bodyOf(got))
	check.Equal(t, any("[0] ordered: finds 20 itself, [1] widened: finds 1 itself, [2] ordered"), p.explained(t, got)["matching"])
	p.arrived(t, "ordered "+body, "wide {}\n{\"q\":2}\n")
	p.counted(t, 2, "akin_searches_total", "how", expand.Ordered)
	p.counted(t, 1, "akin_searches_total", "how", expand.Widened)
	p.counted(t, 2, "akin_few_hits_total")
}

// A search that timed out may find enough.
func TestOrderedSearchThatTimedOutStays(t *testing.T) {
	few, late := expand.Enough{Hits: 10, Page: 10}, strings.Replace(totalOf(2), "false", "true", 1)
	p := start(t, Options{Expander: orderer{nil, []expand.Enough{few, few}, nil}}, func(_ int, r rawRequest) string {
		if strings.HasPrefix(r.body, "wide ") {
			return answerOf(responses(fewAnswer))
		}
		return answerOf(responses(late, totalOf(1)))
	})
	got := p.post(t, "/_msearch", ndjsonType, "{}\n{\"q\":1}\n{}\n{\"q\":2}\n")
	check.Equal(t, responses(late, fewAnswer), bodyOf(got))
	p.counted(t, 1, "akin_few_hits_total", "result", fewFailed)
	p.counted(t, 1, "akin_few_hits_total", "result", fewExpanded)
}

// Where the client gets the answer to the first search, this is told and counted.
func TestOrderedSearchStaysWhereTheWideOneGivesNoAnswer(t *testing.T) {
	const body = "{}\n{\"q\":1}\n{}\n{\"q\":2}\n"
	few := expand.Enough{Hits: 10, Page: 10}
	for name, wide := range map[string]string{
		"refused": answerWith(400, jsonType, `{"error":{"type":"too_many_clauses"},"status":400}`), "odd": answerOf(responses(fewAnswer, fewAnswer)),
		"no answer":       hangUp,
		"late":            answerOf(responses(strings.Replace(fewAnswer, "false", "true", 1))),
		"one shard fails": answerOf(responses(strings.Replace(fewAnswer, `"failed":0`, `"failed":1`, 1))),
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, Options{Expander: orderer{nil, []expand.Enough{few, few}, nil}}, func(_ int, r rawRequest) string {
				if strings.HasPrefix(r.body, "wide ") {
					return wide
				}
				return answerOf(responses(totalOf(20), totalOf(1)))
			})
			got := p.post(t, "/_msearch", "X-Akin: explain\nContent-Type: application/x-ndjson\n", body)
			check.Equal(t, responses(totalOf(20), totalOf(1)), bodyOf(got))
			p.counted(t, 2, "akin_searches_total", "how", expand.Ordered)
			p.counted(t, 0, "akin_searches_total", "how", expand.Widened)
			explained := p.explained(t, got)
			check.Equal(t, any("[0] ordered: finds 20 itself, [1] ordered: finds 1 itself"), explained["matching"])
			check.Equal(t, any("rewritten"), explained["sent"])
		})
	}
}

func TestShadowedSearchIsNotExpandedAgain(t *testing.T) {
	p := start(t, Options{Shadow: 1, Expander: orderer{nil, []expand.Enough{{Hits: 10, Page: 10}}, nil}}, func(int, rawRequest) string {
		return answerOf(totalOf(1))
	})
	got := p.post(t, "/i/_search", jsonType+"X-Akin: explain\n", original)
	check.Equal(t, any("ordered"), p.explained(t, got)["matching"])
	p.counted(t, 0, "akin_few_hits_total")
	p.arrived(t, original)
}

// Wide searches that the cluster rejects three times are not sent any more; the
// ordered ones, which it accepts, are.
func TestWideSearchesThatAreRejectedBackOff(t *testing.T) {
	few := expand.Enough{Hits: 10, Page: 10}
	for name, e := range map[string]Expander{
		"ordered before": orderer{nil, []expand.Enough{few}, nil},
		"as they came":   waiting{rewriteTo(rewritten), []int{10}},
	} {
		p := start(t, Options{Expander: e}, func(_ int, r rawRequest) string {
			if r.body == rewritten || strings.HasPrefix(r.body, "wide ") {
				return answerWith(400, jsonType, `{"error":{"type":"x"},"status":400}`)
			}
			return answerOf(totalOf(1))
		})
		for range 2 * maxFailures {
			check.Equal(t, totalOf(1), bodyOf(p.post(t, "/i/_search", jsonType, original)), name)
		}
		check.Equal(t, 3*maxFailures, len(p.searches()), name)
	}
}
