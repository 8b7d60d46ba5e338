package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
)

// rerankAs has every search's hits reranked in a way.
func rerankAs(by *expand.Rerank) expander {
	return func(_ context.Context, r *expand.Request) (*expand.Result, error) {
		return &expand.Result{
			Rewritten: true, RawQuery: r.RawQuery, Body: []byte(rerankedBody), Parts: partsOf(by),
			Clauses: []expand.Explanation{{Path: "query.match", Field: "body", Form: "linear", Phase: "rerank"}},
		}, nil
	}
}

// sides answers searches for pages and for the engine's order by two functions,
// nil for as a cluster that has the hits, and others with text.
func sides(text string, page, order func(r rawRequest) string) func(int, rawRequest) string {
	return func(n int, r rawRequest) string {
		if by := map[string]func(rawRequest) string{asksPage: page, asksOrder: order}[r.asks()]; by != nil {
			return by(r)
		}
		if r.body == `{"query":{}}` {
			return answerOf(originalAnswer)
		}
		return frames(text)(n, r)
	}
}

// Pages are asked for as the client, where and in the way it searches.
func TestPagesAreAskedForAsTheClient(t *testing.T) {
	for _, fails := range []bool{false, true} {
		node := startRawNode(t, frames(threeHits))
		addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rerankAll), Reranker: rerankerFunc(
			func(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error) {
				if fails {
					return nil, errors.New("a reason")
				}
				return backwards(ctx, by, hits)
			})})
		exchangeRaw(t, addr, searchOf("/t/_search", jsonType+"Authorization: Basic x\nX-Opaque-Id: o\nAccept-Encoding: gzip\nAccept: text/html\nX-Akin: explain\n", `{"query":{}}`))
		requests := node.all()
		if len(requests) != 2 {
			t.Fatalf("asked for %s", node.kinds())
		}
		side, want := requests[1], "routing=zz"
		if fails {
			want = "preference=a"
		}
		if line := "POST /t/_search?" + want + " HTTP/1.1"; side.line != line {
			t.Errorf("sent %s, want %s", side.line, line)
		}
		auth, opaque := side.get("Authorization"), side.get("X-Opaque-Id")
		if !slices.Equal(auth, []string{"Basic x"}) || !slices.Equal(opaque, []string{"o"}) || len(side.get("Accept-Encoding")) > 0 || len(side.get("X-Akin")) > 0 {
			t.Errorf("sent %q", side.header)
		}
		if body := string(rerankOf(0, 2).PageOf([]expand.Hit{{Index: "t", ID: "3\n", SeqNo: 3}, {Index: "t", ID: "2", SeqNo: 4}}).Body); !fails && side.body != body {
			t.Errorf("sent %s, want %s", side.body, body)
		}
	}
}

// A side search goes to the index expression, also to none.
func TestPathsOfSideSearches(t *testing.T) {
	for want, s := range map[string]expand.SideSearch{
		"/_search?filter_path=a":                                 {},
		"/a%2C-b%2A/_search?filter_path=a":                       {Index: "a,-b*"},
		"/_search?filter_path=a&expand_wildcards=all&routing=x":  {RawQuery: "expand_wildcards=all&routing=x"},
		"/%3Cl-%7Bnow%2Fd%7D%3E/_search?filter_path=a&routing=x": {Index: "<l-{now/d}>", RawQuery: "routing=x"},
	} {
		if got := sideCall(s, "filter_path=a"); !strings.EqualFold(got.Path, want) && strings.ReplaceAll(got.Path, "*", "%2A") != want || got.Method != http.MethodPost {
			t.Errorf("%s %s, want %s", got.Method, got.Path, want)
		}
	}
}

func TestHitsWithoutIDsAreReranked(t *testing.T) {
	by := rerankOf(1, 2)
	by.BySeqNo = true
	several := strings.Replace(threeNumbers, `"total":1`, `"total":2`, 1)
	for _, c := range []struct{ answer, result, kinds, hits string }{
		{threeNumbers, rerankedHits, "frame page", documents[1].hit("0.25") + "," + documents[0].hit("0.0")},
		{several, rerankUnnamed, "frame order", documents[1].hit("1.25") + "," + documents[2].hit("1.0")},
	} {
		node := startRawNode(t, frames(c.answer))
		addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rerankAs(by), Reranker: rerankerFunc(backwards)})
		best := map[string]string{rerankedHits: "0.5", rerankUnnamed: "1.5"}[c.result]
		head, _, _ := strings.Cut(c.answer, "1.5")
		want := head + best + `,"hits":[` + c.hits + `]},"profile":{}}`
		if got := postSearch(t, addr, "/t/_search"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if node.kinds() != c.kinds || counter(t, registry, "akin_reranked_total", "result", c.result) != 1 {
			t.Errorf("asked for %s, or not counted as %s", node.kinds(), c.result)
		}
	}
}

// refusals are answers to searches for pages that have not what is wanted.
var refusals = map[string]func(r rawRequest) string{
	"500":             func(rawRequest) string { return answerWith(500, jsonType, `{"error":{"type":"x"},"status":500}`) },
	"403":             func(rawRequest) string { return answerWith(403, jsonType, `{"error":{"type":"x"},"status":403}`) },
	"429":             func(rawRequest) string { return answerWith(429, jsonType, `{"error":{"type":"x"},"status":429}`) },
	"broken off":      func(rawRequest) string { return hangUp },
	"broken JSON":     func(r rawRequest) string { return answerOf(sideHits(r)[:60]) },
	"no JSON":         func(rawRequest) string { return answerOf("<html>") },
	"nothing":         func(rawRequest) string { return answerOf("") },
	"an empty object": func(rawRequest) string { return answerOf("{}") },
	"timed out": func(r rawRequest) string {
		return answerOf(strings.Replace(sideHits(r), `"timed_out":false`, `"timed_out":true`, 1))
	},
	"a shard failed": func(r rawRequest) string {
		return answerOf(strings.Replace(sideHits(r), `{"failed":0}`, failedShards(shardFailure), 1))
	},
	"too long": func(rawRequest) string {
		return answerOf(`{"hits":{"hits":[]},"x":"` + strings.Repeat("x", limits.MaxAnswer) + `"}`)
	},
}

// Where a page is not to be had, or not whole, the engine's order goes out, is
// counted and logged.
func TestPagesThatAreNotToBeHadLeaveTheEnginesOrder(t *testing.T) {
	pages := map[string]func(r rawRequest) string{
		"a hit is gone": func(r rawRequest) string {
			return answerOf(strings.Replace(sideHits(r), documents[1].hit("0.0")+",", "", 1))
		},
		"all hits are gone": func(rawRequest) string { return answerOf(`{"hits":{"hits":[]}}`) },
		"another index":     func(r rawRequest) string { return answerOf(strings.ReplaceAll(sideHits(r), `"t"`, `"u"`)) },
		"no scores":         func(r rawRequest) string { return answerOf(strings.ReplaceAll(sideHits(r), "0.0", "null")) },
	}
	for name, page := range refusals {
		if name != "429" { // then the cluster is asked for the original only
			pages[name] = page
		}
	}
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			var book logBook
			node := startRawNode(t, sides(threeHits, page, nil))
			addr, registry := startProxy(t, Options{
				Nodes: nodesAt(node.URL), Expander: expander(rerankAll), Reranker: rerankerFunc(backwards), Logger: book.logger(), RerankBudget: patience,
			})
			if got, want := postSearch(t, addr, "/t/_search"), cutPages(t, threeHits, []*expand.Rerank{rerankOf(0, 2)}); got != want || hitIDs(got) != "1 2" {
				t.Errorf("got %s\nwant %s", got, want)
			}
			if kinds := node.kinds(); !strings.HasSuffix(kinds, "page order") {
				t.Errorf("asked for %s", kinds)
			}
			if counter(t, registry, "akin_reranked_total", "result", rerankChanged) != 1 || counter(t, registry, "akin_reranked_total") != 1 {
				t.Error("not counted as changed")
			}
			if text := book.text(); !strings.Contains(text, `"failing open"`) || !strings.Contains(text, `"cause":"`+rerankChanged+`"`) {
				t.Errorf("logged %s", text)
			}
		})
	}
}

// Where the engine's order is not to be had either, the original search is sent.
func TestWithoutAnyPageTheOriginalIsSent(t *testing.T) {
	for name, refuse := range refusals {
		for _, ordered := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ordered), func(t *testing.T) {
				reranker := Reranker(nil)
				if ordered {
					reranker = rerankerFunc(backwards)
				}
				node := startRawNode(t, sides(threeHits, refuse, refuse))
				addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rerankAll), Reranker: reranker, RerankBudget: patience})
				if got := postSearch(t, addr, "/t/_search"); got != originalAnswer {
					t.Errorf("got %s", got)
				}
				requests := node.all()
				if last := requests[len(requests)-1]; last.body != `{"query":{}}` || strings.Count(node.kinds(), asksFrame) != 2 {
					t.Errorf("sent %q", requests)
				}
				if counter(t, registry, "akin_reranked_total", "result", rerankUnreadable) != 1 || counter(t, registry, "akin_reranked_total") != 1 {
					t.Error("not counted as unreadable")
				}
			})
		}
	}
}

// Of several searches, one whose page is not to be had goes out in the engine's
// order; without that no one's page does.
func TestEachOfSeveralPagesFailsForItself(t *testing.T) {
	third := func(r rawRequest) bool {
		return strings.Contains(r.body, `"from":1`) || strings.Contains(r.body, `"_seq_no":[4,0]`)
	}
	gone := func(r rawRequest) string {
		if third(r) {
			return answerOf(`{"hits":{"hits":[]}}`)
		}
		return answerOf(sideHits(r))
	}
	refused := func(r rawRequest) string {
		if third(r) {
			return answerWith(503, jsonType, `{}`)
		}
		return answerOf(sideHits(r))
	}
	for _, c := range []struct {
		order   func(r rawRequest) string
		want    string
		results map[string]float64
	}{
		{nil, orderedSearches(t, []float64{0, .25, .5}, nil), map[string]float64{rerankedHits: 1, rerankChanged: 1}},
		{refused, originalAnswer, map[string]float64{rerankUnreadable: 2}},
	} {
		node := startRawNode(t, sides(threeSearches, gone, c.order))
		addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rerankFirstAndLast), Reranker: rerankerFunc(backwards), RerankBudget: patience})
		if got := postSearch(t, addr, "/_msearch"); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
		sum := 0.0
		for result, n := range c.results {
			sum += n
			if got := counter(t, registry, "akin_reranked_total", "result", result); got != n {
				t.Errorf("%v are counted as %s", got, result)
			}
		}
		if got := counter(t, registry, "akin_reranked_total"); got != sum {
			t.Errorf("%v are counted", got)
		}
	}
}

// Nothing is asked for where the page begins behind the last hit.
func TestPagesBehindTheLastHitAreEmpty(t *testing.T) {
	for _, named := range []bool{true, false} {
		answer, kinds, best := threeHits, "frame", "0.5"
		if !named { // then the cluster says that there is none
			answer, kinds, best = strings.Replace(threeHits, `"_id":"2",`, "", 1), "frame order", "1.5"
		}
		node := startRawNode(t, frames(answer))
		addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rerankAs(rerankOf(3, 2)), Reranker: rerankerFunc(backwards), RerankBudget: patience})
		head, _, _ := strings.Cut(threeHits, "1.5")
		if got, want := postSearch(t, addr, "/t/_search"), head+best+`,"hits":[]},"profile":{}}`; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if node.kinds() != kinds {
			t.Errorf("asked for %s", node.kinds())
		}
	}
}

// Long hits are put in whole, and their memory is given back.
func TestLongHitsArePutIn(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		memory int64
		ids    string
	}{{64 << 20, `3\n 2 1`}, {3 << 20, "original"}} {
		node := startRawNode(t, func(_ int, r rawRequest) string {
			switch {
			case r.body == `{"query":{}}`:
				return answerOf(originalAnswer)
			case r.asks() == asksFrame:
				return answerOf(threeHits)
			}
			return answerOf(strings.ReplaceAll(sideHits(r), `"_source":{`, `"x":"`+long+`","_source":{`))
		})
		memory := limits.New(c.memory)
		addr, _ := startProxy(t, Options{
			Nodes: nodesAt(node.URL), Expander: rerankAs(rerankOf(0, 3)), Reranker: rerankerFunc(backwards), Memory: memory, MaxBody: 8 << 20, RerankBudget: patience,
		})
		got := postSearch(t, addr, "/t/_search")
		if hitIDs(got) != c.ids || c.ids != "original" && strings.Count(got, long) != 3 {
			t.Errorf("got %d bytes with %s, asked for %s", len(got), hitIDs(got), node.kinds())
		}
		waitFor(t, "the memory to be given back", func() bool { return heldBytes(memory) == 0 })
	}
}

// A client that leaves while its page is asked for is not worth another search.
func TestClientsThatLeaveAreAskedNoMoreFor(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	gone := func(rawRequest) string {
		leave()
		return hangUp
	}
	node := startRawNode(t, sides(threeHits, gone, nil))
	registry := prometheus.NewRegistry()
	s := newServer(t, Options{
		Nodes: nodesAt(node.URL), Expander: expander(rerankAll), Reranker: rerankerFunc(backwards), Registry: registry, RerankBudget: patience,
		OnRefused: func(*expand.Refusal) bool { t.Error("reported a refusal"); return false },
	})
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("recovered %v, want %v", err, http.ErrAbortHandler)
		}
		if kinds := node.kinds(); kinds != "frame page" {
			t.Errorf("asked for %s", kinds)
		}
		checkGone(t, s, registry, 1)
		s.upstream.CloseIdleConnections()
	}()
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/t/_search", strings.NewReader("{}"))
	req.Header.Set("Content-Type", "application/json")
	s.proxy.ServeHTTP(httptest.NewRecorder(), req)
}

// The time for reranking is not that for the page.
func TestPagesMayComeAfterTheTimeForReranking(t *testing.T) {
	s := newServer(t, Options{RerankBudget: patience, Reranker: rerankerFunc(backwards)})
	var deadlines []bool
	ask := func(ctx context.Context, c esclient.Call) (int, []byte, error) {
		_, bounded := ctx.Deadline()
		deadlines = append(deadlines, bounded)
		return asksNobody(ctx, c)
	}
	ctx := context.WithoutCancel(t.Context())
	_, results, _ := s.reranking.answer(ctx, expand.EndpointSearch, []*expand.Rerank{rerankOf(0, 2)}, []byte(threeHits), ask)
	if !slices.Equal(results, []string{rerankedHits}) || !slices.Equal(deadlines, []bool{false}) {
		t.Errorf("%v, bounded %v", results, deadlines)
	}
}

// An overloaded cluster is asked for the original, and not for its page in the
// engine's order first.
func TestOverloadedClustersAreAskedForTheOriginalOnly(t *testing.T) {
	for _, status := range []int{429, 503} {
		node := startRawNode(t, sides(threeHits, func(rawRequest) string { return answerWith(status, jsonType, `{"status":1}`) }, nil))
		addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rerankAll), Reranker: rerankerFunc(backwards), RerankBudget: patience})
		if got := postSearch(t, addr, "/t/_search"); hitIDs(got) != "original" || node.kinds() != "frame page frame" {
			t.Errorf("%d: asked for %s, got %s", status, node.kinds(), got)
		}
	}
}

// Elasticsearch 8 writes hits as 7 does for clients that ask for it.
func TestPagesAreAskedForInTheVersionOfTheClient(t *testing.T) {
	const vnd = "application/vnd.elasticsearch+json; compatible-with=7"
	node := startRawNode(t, sides(threeHits, func(r rawRequest) string { return answerOf(sideHits(r)) }, nil))
	addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rerankAll), Reranker: rerankerFunc(backwards), RerankBudget: patience})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/t/_search", strings.NewReader(`{"query":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", vnd)
	req.Header.Set("Content-Type", vnd)
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	sent := node.all()
	page := sent[len(sent)-1]
	if node.kinds() != "frame page" || !slices.Equal(page.get("Accept"), []string{vnd}) || !slices.Equal(page.get("Content-Type"), []string{vnd}) {
		t.Errorf("asked for %s, the page with %q", node.kinds(), page.header)
	}
}
