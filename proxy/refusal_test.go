package proxy

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/report"
)

const searches = 60

// mostRepeated is how many of the searches may be sent once more: the one that
// the retry budget begins with, and its share.
const mostRepeated = 1 + searches/10

// neverTold fails the test when a refusal is reported.
func neverTold(t *testing.T) func(*expand.Refusal) bool {
	t.Helper()
	return func(*expand.Refusal) bool {
		t.Error("reported a refusal")
		return false
	}
}

// An answer that says that the cluster has too much to do, or that the client
// may not search, reaches the client as it came. More searches would make it
// worse.
func TestOverloadIsNotAmplified(t *testing.T) {
	reason := `{"error":{"type":"x","reason":"` + strings.Repeat("y", 2*maxLooked) + `"}}`
	for _, tt := range []struct {
		status, most int
		header, body string
	}{
		{429, mostRepeated, jsonType, reason},
		{502, mostRepeated, "Content-Type: text/html\n", "<html>"},
		{503, mostRepeated, jsonType + "Content-Encoding: gzip\n", pack(t, reason)},
		{504, mostRepeated, "", ""},
		{500, mostRepeated, jsonType, `{"error":{"root_cause":[{"type":"circuit_breaking_exception"}]},"status":500}`},
		{401, 0, jsonType, reason},
		{403, 0, jsonType, reason},
	} {
		t.Run(strconv.Itoa(tt.status), func(t *testing.T) {
			node := startRawNode(t, func(int, rawRequest) string { return answerWith(tt.status, tt.header, tt.body) })
			addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(rewritten), OnRefused: neverTold(t)})
			for range searches {
				got := exchangeRaw(t, addr, searchOf("/a/_search", jsonType, original))
				if !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", tt.status)) || !strings.HasSuffix(got, "\r\n\r\n"+tt.body) {
					t.Fatalf("the client got %.300q", got)
				}
			}
			asked := func(r rawRequest) bool { return strings.HasPrefix(r.line, "HEAD ") } // how the node is
			sent := len(slices.DeleteFunc(node.all(), asked))
			refused, unsent := counter(t, registry, "akin_rejected_searches_total", "original", "rejected"), counter(t, registry, "akin_rejected_searches_total", "original", "not_sent")
			paused := counter(t, registry, "akin_requests_total", "reason", reasonPaused)
			if sent > searches+tt.most || sent-searches != int(refused) {
				t.Errorf("%d requests for %d searches, %v of them counted as sent again", sent, searches, refused)
			}
			if refused+unsent+paused != searches {
				t.Errorf("%v originals are counted as rejected, %v as not sent, %v as paused", refused, unsent, paused)
			}
			if paused > 0 { // the originals are refused, too: nothing is learned
				t.Errorf("rewriting was paused for %v of %d searches", paused, searches)
			}
		})
	}
}

// The budget is for a node that has too much to do, not for searches that were
// rewritten badly.
func TestOriginalIsSentWithoutLimitWhereTheRewrittenSearchIsTheReason(t *testing.T) {
	node := startRawNode(t, func(_ int, r rawRequest) string {
		if r.body == rewritten {
			return answerWith(500, jsonType, `{"error":{"type":"too_many_clauses"}}`)
		}
		return emptyAnswer
	})
	addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(rewritten), OnRefused: func(*expand.Refusal) bool { return true }})
	for range searches {
		if got := exchangeRaw(t, addr, searchOf("/a/_search", jsonType, original)); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Fatalf("the client got %q", got)
		}
	}
	if n := len(node.all()); n != 2*searches {
		t.Errorf("%d requests for %d searches", n, searches)
	}
}

// Where filter_path would hide failures of shards, akin asks for an error
// instead: to the original it is none.
func TestErrorThatAkinAskedForIsFollowedByTheOriginal(t *testing.T) {
	node := startRawNode(t, func(_ int, r rawRequest) string {
		if strings.Contains(r.line, "allow_partial_search_results") {
			return answerWith(503, jsonType, `{"error":{"root_cause":[],"type":"search_phase_execution_exception","reason":"Partial shards failure"},"status":503}`)
		}
		return emptyAnswer
	})
	addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(rewritten), OnRefused: func(*expand.Refusal) bool { return true }})
	for range searches {
		if got := exchangeRaw(t, addr, searchOf("/a/_search?filter_path=hits", jsonType, original)); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Fatalf("the client got %q", got)
		}
	}
}

// Items and shards tell of an overload in an answer whose status is good.
func TestOverloadInsideAnAnswerIsNotAmplified(t *testing.T) {
	const (
		busyItem   = `{"error":{"root_cause":[{"type":"rejected_execution_exception","reason":"x"}],"type":"search_phase_execution_exception","reason":"all shards failed"},"status":429}`
		busyShard  = `{"shard":0,"index":"b","reason":{"type":"es_rejected_execution_exception","reason":"x"}}`
		deniedItem = `{"error":{"root_cause":[{"type":"security_exception","reason":"x"}],"type":"security_exception"},"status":403}`
	)
	for name, tt := range map[string]struct {
		target, answer string
		rewrite        expander
		most           int
	}{
		"an item":         {"/_msearch", responses(busyItem, goodItem, goodItem), rewriteFirstAndLast, mostRepeated},
		"two items":       {"/_msearch", responses(busyItem, goodItem, busyItem), rewriteFirstAndLast, mostRepeated},
		"a shard":         {"/_search", searchAnswer(failedShards(busyShard)), rewriteFirstAndLast, mostRepeated},
		"a denied item":   {"/_msearch", responses(deniedItem, goodItem, goodItem), rewriteFirstAndLast, 0},
		"a badly written": {"/_msearch", responses(busyItem, goodItem, badItem), rewriteFirstAndLast, searches},
		"a shard beside":  {"/_search", searchAnswer(failedShards(busyShard, shardFailure)), rewriteFirstAndLast, searches},
	} {
		t.Run(name, func(t *testing.T) {
			node := startRawNode(t, func(int, rawRequest) string { return answerWith(200, jsonType, tt.answer) })
			addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: tt.rewrite, OnRefused: neverTold(t)})
			for range searches {
				if got := exchangeRaw(t, addr, searchOf(tt.target, jsonType, lines)); !strings.HasSuffix(got, "\r\n\r\n"+tt.answer) {
					t.Fatalf("the client got %q", got)
				}
			}
			if n := len(node.all()) - searches; n > tt.most || tt.most == searches && n != searches {
				t.Errorf("%d searches were sent again", n)
			}
		})
	}
}

// A page that came is still cut to what the client asked for where a search
// with it met an overload.
func TestPagesBesideAnOverloadAreCut(t *testing.T) {
	busy := `{"error":{"type":"rejected_execution_exception","reason":"x"},"status":429}`
	node := startRawNode(t, frames(`{"responses":[`+threeHits+`,{},`+busy+`]}`))
	s := newServer(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rerankFirstAndLast), Reranker: rerankerFunc(backwards)})
	for s.upstream.MayRepeat() { // until nothing is left
	}
	proxy := httptest.NewServer(s.proxy)
	defer proxy.Close()
	got := postSearch(t, strings.TrimPrefix(proxy.URL, "http://"), "/_msearch")
	if !strings.HasSuffix(got, busy+`]}`) || strings.Count(got, `"_index"`) >= strings.Count(threeHits, `"_index"`) {
		t.Errorf("got %s", got)
	}
	if got := node.kinds(); got != "frame page" {
		t.Errorf("asked for %s", got)
	}
}

// A search that the cluster refuses in its rewritten form alone would run twice
// each time.
func TestShapesThatWereRefusedAreNotRewrittenAgain(t *testing.T) {
	node := startRawNode(t, func(_ int, r rawRequest) string {
		if r.body == rewritten {
			return answerWith(400, jsonType, `{"error":{"type":"x_content_parse_exception","reason":"x"},"status":400}`)
		}
		return emptyAnswer
	})
	told := 0
	news := false
	addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(rewritten), OnRefused: func(*expand.Refusal) bool {
		told++
		return news
	}})
	search := func(target, header, body string) (requests int) {
		before := len(node.all())
		if got := exchangeRaw(t, addr, searchOf(target, header, body)); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("the client got %q", got)
		}
		return len(node.all()) - before
	}
	const car, boats = `{"query":{"match":{"body":"car"}},"size":3}`, ` {"query":{"match":{"body":"two boats"}},"size":10}`
	const anotherUser = jsonType + "Authorization: Basic YTpi\n"
	for _, step := range []struct {
		name, target, header, body string
		news                       bool
		requests                   int
	}{
		{"a limit was learned", "/a/_search", jsonType, car, true, 2},
		{"the first", "/a/_search", jsonType, car, false, 2},
		{"a limit was learned again", "/a/_search", jsonType, car, true, 2},
		{"the second", "/a/_search", jsonType, boats, false, 2},
		{"the third", "/a/_search", jsonType, car, false, 2},
		{"the same", "/a/_search", jsonType, car, false, 1},
		{"other words", "/a/_search", jsonType, boats, false, 1},
		{"packed", "/a/_search", jsonType + "Content-Encoding: gzip\n", pack(t, car), false, 1},
		{"another user", "/a/_search", anotherUser, car, false, 2},
		{"another index", "/b/_search", jsonType, car, false, 2},
		{"another profile", "/a/_search?akin_profile=none", jsonType, car, false, 1},
		{"another field", "/a/_search", jsonType, `{"query":{"match":{"title":"car"}},"size":3}`, false, 2},
		{"another parameter", "/a/_search?routing=x", jsonType, car, false, 2},
	} {
		news = step.news
		if got := search(step.target, step.header, step.body); got != step.requests {
			t.Errorf("%s: %d requests, want %d", step.name, got, step.requests)
		}
	}
	if n := counter(t, registry, "akin_requests_total", "outcome", report.Unchanged, "reason", reasonRejected); n != 3 || told != 9 {
		t.Errorf("%v searches are counted, reported %d", n, told)
	}
}

// A search that the cluster refuses in both forms says nothing of akin: one user
// must not switch expansion off for those whose searches have the same shape. And
// one that is taken ends a row of failures.
func TestSearchesThatAreRefusedInBothFormsTeachNothing(t *testing.T) {
	const wrongSearch, unlucky, rightSearch = `{"query":{"match":{"body":"foo"}},"size":100000}`,
		`{"query":{"match":{"body":"bar"}},"size":10}`, `{"query":{"match":{"body":"foo"}},"size":10}`
	node := startRawNode(t, func(_ int, r rawRequest) string {
		if strings.Contains(r.body, "100000") || strings.HasPrefix(r.body, " ") && strings.Contains(r.body, "bar") {
			return answerWith(400, jsonType, `{"error":{"type":"query_shard_exception","reason":"x"},"status":400}`)
		}
		return emptyAnswer
	})
	addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), OnRefused: func(*expand.Refusal) bool { return false }, Expander: expander(
		func(_ context.Context, r *expand.Request) (*expand.Result, error) {
			return &expand.Result{Rewritten: true, RawQuery: r.RawQuery, Body: append([]byte(" "), r.Body...)}, nil
		})})
	search := func(body string) (requests int) {
		before := len(node.all())
		exchangeRaw(t, addr, searchOf("/a/_search", jsonType, body))
		return len(node.all()) - before
	}
	for range searches {
		if got := search(wrongSearch); got != 2 {
			t.Fatalf("%d requests for a search that is wrong, want 2", got)
		}
	}
	for range searches {
		if got := search(unlucky) + search(unlucky) + search(rightSearch); got != 5 {
			t.Fatalf("%d requests for one that is right among others, want 5", got)
		}
	}
	if n := counter(t, registry, "akin_requests_total", "outcome", report.Unchanged); n != 0 {
		t.Errorf("%v searches were not rewritten", n)
	}
}

// A shadow runs for each search of its shape as well.
func TestShapesOfRefusedShadowsAreRemembered(t *testing.T) {
	n := startShadowNode(t, page(hitsPage("0")), statusPage(400, "{}"))
	addr, registry := startProxy(t, shadowOptions(n))
	for n := range maxFailures {
		postOriginal(t, "http://"+addr+"/a/_search")
		awaitShadow(t, registry, report.ShadowRejected, float64(n+1))
	}
	postOriginal(t, "http://"+addr+"/a/_search")
	if got := n.arrived(); len(got) != 2*maxFailures+1 || counter(t, registry, "akin_requests_total", "reason", reasonRejected) != 1 {
		t.Errorf("the node got %q", got)
	}
}

// An overloaded cluster says nothing of what is known of its indices.
func TestOverloadOfAShadowTeachesNothing(t *testing.T) {
	for _, status := range []int{403, 429, 503} {
		n := startShadowNode(t, page(hitsPage("0")), statusPage(status, "{}"))
		o := shadowOptions(n)
		o.OnRefused = neverTold(t)
		addr, registry := startProxy(t, o)
		for k := range 2 {
			postOriginal(t, "http://"+addr+"/a/_search")
			awaitShadow(t, registry, report.ShadowRejected, float64(k+1))
		}
	}
}

// The answer that is thrown away has opened a scroll that the client knows
// nothing of.
func TestScrollOfARefusedSearchIsCleared(t *testing.T) {
	partly := `{"_scroll_id":"c2Nyb2xs",` + searchAnswer(failedShards(shardFailure))[1:]
	cleared := make(chan rawRequest, 1)
	node := startRawNode(t, func(n int, r rawRequest) string {
		if strings.HasPrefix(r.line, "DELETE ") {
			cleared <- r
			return emptyAnswer
		}
		if n == 1 {
			return answerWith(200, jsonType, partly)
		}
		return answerWith(200, jsonType, `{"_scroll_id":"of the client"}`)
	})
	addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(rewritten)})
	got := exchangeRaw(t, addr, searchOf("/a/_search?scroll=1m", jsonType+"Authorization: Basic YTpi\n", original))
	if !strings.HasSuffix(got, `{"_scroll_id":"of the client"}`) {
		t.Errorf("the client got %q", got)
	}
	r := receive(t, "the end of the scroll", cleared)
	if diff := cmp.Diff([]string{"DELETE /_search/scroll HTTP/1.1", `{"scroll_id":["c2Nyb2xs"]}`, "Basic YTpi"}, []string{r.line, r.body, strings.Join(r.get("Authorization"), ",")}); diff != "" {
		t.Errorf("the node got (-want +got):\n%s", diff)
	}
}
