package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/report"
)

// rerankerFunc is a Reranker made of a function.
type rerankerFunc func(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error)

func (f rerankerFunc) Scores(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error) {
	return f(ctx, by, hits)
}

// backwards scores the last hit highest.
func backwards(_ context.Context, _ *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error) {
	scores := make([]float64, len(hits))
	for i := range scores {
		scores[i] = float64(i) / 4
	}
	return softOf(scores...), nil
}

const rerankedBody = `{"size":3,"query":{"match_all":{}}}`

// rerankAll has every search's three hits reranked, for a page of two.
func rerankAll(_ context.Context, r *expand.Request) (*expand.Result, error) {
	by := rerankOf(0, 2)
	by.Fields = []expand.RerankField{{Field: "body"}}
	return &expand.Result{
		Rewritten: true, RawQuery: r.RawQuery, Body: []byte(rerankedBody), Parts: partsOf(by),
		Clauses: []expand.Explanation{{Path: "query.match", Field: "body", Form: "linear", Phase: "rerank"}},
	}, nil
}

const originalAnswer = `{"hits":{"hits":[{"_id":"original"}]}}`

// answerOf returns a node's answer in HTTP.
func answerOf(body string, header ...string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s",
		len(body), strings.Join(append(header, ""), "\r\n"), body)
}

// inChunks returns a node's answer in HTTP, without its length.
func inChunks(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
}

// hitIDs returns the ids in an answer in their order.
func hitIDs(answer string) string {
	var ids []string
	for _, part := range strings.Split(answer, `"_id":"`)[1:] {
		id, _, _ := strings.Cut(part, `"`)
		ids = append(ids, id)
	}
	return strings.Join(ids, " ")
}

func TestHitsGoOutInTheRerankersOrder(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		node := startRawNode(t, cluster(func(int, rawRequest) string {
			if chunked {
				return inChunks(threeHits)
			}
			return answerOf(threeHits)
		}))
		var asked []expand.Hit
		addr, registry := startProxy(t, Options{
			Nodes: nodesAt(node.URL), Expander: expander(rerankAll),
			Reranker: rerankerFunc(func(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error) {
				asked = hits
				return backwards(ctx, by, hits)
			}),
		})
		got := exchangeRaw(t, addr, "POST /t/_search HTTP/1.1\nHost: x\nAccept-Encoding: gzip, br\nContent-Type: application/json\nContent-Length: 2\nConnection: close\n\n{}")
		if kinds := node.kinds(); kinds != "frame page" {
			t.Fatalf("asked for %s", kinds)
		}
		sent := node.all()[0]
		if sent.body != rerankedBody || len(sent.get("Accept-Encoding")) > 0 {
			t.Errorf("sent %q", sent)
		}
		r := rerankOf(0, 2)
		want := cutPages(t, threeHits, []*expand.Rerank{r}, []float64{0, .25, .5})
		head, body, _ := strings.Cut(got, "\r\n\r\n")
		if chunked {
			_, body, _ = strings.Cut(body, "\r\n")
			body, _, _ = strings.Cut(body, "\r\n")
		} else if !strings.Contains(head, fmt.Sprintf("Content-Length: %d", len(want))) {
			t.Errorf("%s: the length is not %d", head, len(want))
		}
		if body != want {
			t.Errorf("chunked %v: got %s\nwant %s", chunked, body, want)
		}
		if len(asked) != 3 || asked[0].Routing != "zz" || asked[1].Version != 7 {
			t.Errorf("asked for %+v", asked)
		}
		if counter(t, registry, "akin_reranked_total", "result", rerankedHits) != 1 || counter(t, registry, "akin_rerank_duration_seconds") != 1 {
			t.Error("not counted")
		}
	}
}

// Whatever goes wrong, the client gets the hits of its page in the engine's
// order, with the engine's scores, and nothing that it has not asked for.
func TestRerankingFailsOpenToTheEnginesOrder(t *testing.T) {
	empty, _, _ := strings.Cut(strings.Replace(threeHits, "1.5", "null", 1), `{"_index"`)
	empty += `]},"profile":{}}`
	for _, c := range []struct {
		name, answer, result string
		reranker             Reranker
		ids                  string
	}{
		{"an error", threeHits, "error", rerankerFunc(func(context.Context, *expand.Rerank, []expand.Hit) ([]expand.HitScore, error) {
			return nil, errors.New("a reason")
		}), "1 2"},
		{"out of time", threeHits, "budget", rerankerFunc(func(ctx context.Context, _ *expand.Rerank, _ []expand.Hit) ([]expand.HitScore, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}), "1 2"},
		{"a panic", threeHits, "panic", rerankerFunc(func(context.Context, *expand.Rerank, []expand.Hit) ([]expand.HitScore, error) {
			panic("a mistake")
		}), "1 2"},
		{"too few scores", threeHits, "error", rerankerFunc(func(context.Context, *expand.Rerank, []expand.Hit) ([]expand.HitScore, error) {
			return softOf(1), nil
		}), "1 2"},
		{"no number", threeHits, "error", rerankerFunc(func(context.Context, *expand.Rerank, []expand.Hit) ([]expand.HitScore, error) {
			return softOf(1, math.NaN(), 3), nil
		}), "1 2"},
		{"no reranker", threeHits, "error", nil, "1 2"},
		{"no version", strings.Replace(threeHits, `"_version":2,`, "", 1), "no_ids", rerankerFunc(backwards), "1 2"},
		{"no id", strings.Replace(threeHits, `"_id":"3\n",`, "", 1), "no_ids", rerankerFunc(backwards), "1 2"},
		{"no hits", empty, "no_hits", rerankerFunc(backwards), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := startRawNode(t, frames(c.answer))
			addr, registry := startProxy(t, Options{
				Nodes: nodesAt(node.URL), Expander: expander(rerankAll), Reranker: c.reranker, RerankBudget: 20 * time.Millisecond,
			})
			got := postSearch(t, addr, "/t/_search")
			r := rerankOf(0, 2)
			if want := cutPages(t, c.answer, []*expand.Rerank{r}); got != want || hitIDs(got) != c.ids {
				t.Errorf("got %s\nwant %s", got, want)
			}
			if kinds := node.kinds(); kinds != "frame order" && c.ids != "" || kinds != "frame" && c.ids == "" {
				t.Errorf("asked for %s", kinds)
			}
			if counter(t, registry, "akin_reranked_total", "result", c.result) != 1 {
				t.Errorf("not counted as %s", c.result)
			}
		})
	}
}

// postSearch sends a search and returns the answer.
func postSearch(t *testing.T, addr, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+path, strings.NewReader(`{"query":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Where the answer cannot be cut to the client's page the original search
// goes out after it.
func TestAnswersThatCannotBeCutAreFollowedByTheOriginal(t *testing.T) {
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	if _, err := gz.Write([]byte(threeHits)); err != nil || gz.Close() != nil {
		t.Fatal(err)
	}
	long := threeHits[:len(threeHits)-1] + `,"x":"` + strings.Repeat("x", limits.MaxAnswer) + `"}`
	for name, answer := range map[string]string{
		"not asked for as gzip": answerOf(packed.String(), "Content-Encoding: gzip"),
		"no JSON":               strings.Replace(answerOf(threeHits), "application/json", "text/html", 1),
		"broken":                answerOf(threeHits[:len(threeHits)-20]),
		"broken off":            strings.Replace(answerOf(threeHits), "Content-Length: ", "Content-Length: 9", 1) + hangUp,
		"no hits in it":         answerOf(`{"_shards":` + wholeShards + `}`),
		"too long":              answerOf(long),
		"a little too long":     inChunks(threeHits + strings.Repeat(" ", limits.MaxAnswer+1-len(threeHits))),
		"too many":              answerOf(strings.Replace(threeHits, `[{"_index"`, `[{},{"_index"`, 1)),
	} {
		t.Run(name, func(t *testing.T) { checkNotCut(t, "/t/_search", answer, rerankAll, 1) })
	}
}

// checkNotCut makes sure that an answer which cannot be cut is followed by the
// original, and counted as unreadable for so many searches whose hits were to
// be reranked.
func checkNotCut(t *testing.T, target, answer string, rewrite expander, searches float64) {
	t.Helper()
	node := startRawNode(t, func(n int, _ rawRequest) string {
		if n == 1 {
			return answer
		}
		return answerOf(originalAnswer)
	})
	refused := false
	addr, registry := startProxy(t, Options{
		Nodes: nodesAt(node.URL), Expander: rewrite, Reranker: rerankerFunc(backwards),
		OnRefused: func(*expand.Refusal) bool { refused = true; return false },
	})
	if got := postSearch(t, addr, target); got != originalAnswer {
		t.Errorf("got %.300s", got)
	}
	if requests := node.all(); len(requests) != 2 || requests[1].body != `{"query":{}}` {
		t.Errorf("sent %.300q", requests)
	}
	if refused || counter(t, registry, "akin_reranked_total", "result", rerankUnreadable) != searches {
		t.Error("not counted as unreadable, or counted as refused")
	}
}

// Where the answer was too long, the searches of that index and profile are not
// sent twice for a while.
func TestAnswersThatAreTooLongAreNotAskedForAgain(t *testing.T) {
	long := threeHits[:len(threeHits)-1] + `,"x":"` + strings.Repeat("x", limits.MaxAnswer) + `"}`
	brokenOff := strings.Replace(answerOf(threeHits), "Content-Length: ", "Content-Length: 9", 1) + hangUp
	for name, c := range map[string]struct {
		answer string
		again  bool
	}{
		"too long": {answerOf(long), false}, "broken": {answerOf(threeHits[:len(threeHits)-20]), false}, "broken off": {brokenOff, true},
	} {
		t.Run(name, func(t *testing.T) {
			node := startRawNode(t, func(_ int, r rawRequest) string {
				if r.body == rerankedBody {
					return c.answer
				}
				return answerOf(originalAnswer)
			})
			var fixed []reason.Reason
			how := expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
				fixed = append(fixed, r.Fixed)
				if r.Fixed != "" {
					return leaveAlone(ctx, r)
				}
				return rerankAll(ctx, r)
			})
			addr, _ := startProxy(t, Options{
				Nodes: nodesAt(node.URL), Reranker: rerankerFunc(backwards), Expander: how, Profiles: map[string]Expander{"p": how},
			})
			for _, path := range []string{"/t/_search", "/t/_search", "/t/_search?akin_profile=p", "/other/_search"} {
				if got := postSearch(t, addr, path); got != originalAnswer {
					t.Errorf("got %.300s", got)
				}
			}
			want := []reason.Reason{"", reason.TooLong, "", ""}
			if c.again {
				want[1] = ""
			}
			if diff := cmp.Diff(want, fixed); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// What became of feedback in mode soft is what became of the hits.
func TestFeedbackOfRerankedHitsIsCounted(t *testing.T) {
	for result, c := range map[string]struct {
		answer   string
		reranker Reranker
	}{
		feedbackUsed:     {threeHits, rerankerFunc(backwards)},
		"error":          {threeHits, nil},
		feedbackNoHits:   {`{"hits":{"hits":[]}}`, rerankerFunc(backwards)},
		rerankUnreadable: {`{"hits":{}}`, rerankerFunc(backwards)},
	} {
		node := startRawNode(t, frames(c.answer))
		addr, registry := startProxy(t, Options{
			Nodes: nodesAt(node.URL), Reranker: c.reranker,
			Expander: expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
				res, err := rerankAll(ctx, r)
				res.Parts[0].Rerank.Feedback.Documents = 5
				return res, err
			}),
		})
		exchangeRaw(t, addr, searchOf("/t/_search", jsonType, "{}"))
		if counter(t, registry, "akin_feedback_total", "result", result) != 1 || counter(t, registry, "akin_feedback_total") != 1 {
			t.Errorf("%s is not counted", result)
		}
	}
}

// An explanation tells what became of the hits, and whose answer went out.
func TestExplanationsTellWhatBecameOfTheHits(t *testing.T) {
	for _, c := range []struct {
		answer   string
		reranker Reranker
		want     report.Summary
	}{
		{threeHits, rerankerFunc(backwards), report.Summary{Reranked: "reranked", Sent: "rewritten"}},
		{threeHits, nil, report.Summary{Reranked: "error", Sent: "rewritten"}},
		{`{"hits":{}}`, nil, report.Summary{Reranked: "unreadable", Sent: "original"}},
	} {
		node := startRawNode(t, frames(c.answer))
		s := newServer(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rerankAll), Reranker: c.reranker})
		w := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodPost, "/t/_search?akin=explain", strings.NewReader("{}"))
		req.Header.Set("Content-Type", "application/json")
		s.proxy.ServeHTTP(w, req)
		e, ok := s.explanations.Find(w.Header().Get(explanationHeader), nil)
		if !ok {
			t.Fatalf("status %d, header %v", w.Code, w.Header())
		}
		got := e.Summary
		if got.Reranked != c.want.Reranked || got.Sent != c.want.Sent || got.Refused {
			t.Errorf("%+v, want %+v", got, c.want)
		}
		s.upstream.CloseIdleConnections() // the node waits for them
	}
}

// asksNobody answers searches for pages like a cluster.
func asksNobody(_ context.Context, c esclient.Call) (int, []byte, error) {
	body, _ := c.Body.([]byte)
	return http.StatusOK, []byte(sideHits(rawRequest{body: string(body)})), nil
}

// Reading the answer takes of the same time.
func TestBudgetBeginsWithTheAnswer(t *testing.T) {
	s := newServer(t, Options{RerankBudget: 1, Reranker: rerankerFunc(func(context.Context, *expand.Rerank, []expand.Hit) ([]expand.HitScore, error) {
		t.Error("asked for scores although there is no time")
		return nil, nil
	})})
	r := rerankOf(0, 2)
	out, results, _ := s.reranking.answer(t.Context(), expand.EndpointSearch, []*expand.Rerank{r}, []byte(threeHits), asksNobody)
	if hitIDs(string(out)) != "1 2" || !slices.Equal(results, []string{"budget"}) {
		t.Errorf("%s: %s", results, out)
	}
}

// A client that leaves while the answer to its search is read makes that break
// off, which says nothing of the search.
func TestClientsThatLeaveAreNotCountedAsUnreadable(t *testing.T) {
	for name, c := range map[string]struct {
		path, answer string
		how          expander
	}{
		"before the shards":   {"/t/_search", threeHits[:20], rerankAll},
		"behind the shards":   {"/t/_search", threeHits[:len(threeHits)-30], rerankAll},
		"of several searches": {"/_msearch", threeSearches[:len(threeSearches)-30], rerankFirstAndLast},
		"not to be ordered":   {"/_msearch", responses(goodItem)[:30], rewriteFirstAndLast},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			registry := prometheus.NewRegistry()
			s := newServer(t, Options{
				Expander: c.how, Reranker: rerankerFunc(backwards), Registry: registry,
				OnRefused: func(*expand.Refusal) bool { t.Error("reported a refusal"); return false },
			})
			requests := 0
			s.transport = roundTripper(func(*http.Request) (*http.Response, error) {
				requests++
				rest := readerFunc(func([]byte) (int, error) {
					leave()
					return 0, ctx.Err()
				})
				return &http.Response{
					StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: -1,
					Body: io.NopCloser(io.MultiReader(strings.NewReader(c.answer), rest)),
				}, nil
			})
			defer func() {
				if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
					t.Errorf("recovered %v, want %v", err, http.ErrAbortHandler)
				}
				checkGone(t, s, registry, requests)
			}()
			req := httptest.NewRequestWithContext(ctx, http.MethodPost, c.path, strings.NewReader("{}\n{}\n"))
			req.Header.Set("Content-Type", "application/json")
			s.proxy.ServeHTTP(httptest.NewRecorder(), req)
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// checkGone makes sure that nothing was sent again for a client that left, and
// nothing counted.
func checkGone(t *testing.T, s *Server, registry *prometheus.Registry, requests int) {
	t.Helper()
	if requests != 1 {
		t.Errorf("%d requests arrived", requests)
	}
	for _, name := range []string{"akin_reranked_total", "akin_unchecked_responses_total", "akin_rejected_searches_total", "akin_upstream_errors_total"} {
		if n := counter(t, registry, name); n != 0 {
			t.Errorf("%s is %v", name, n)
		}
	}
	if got := s.explanations.Last(1)[0]; got.Sent != "rewritten" || got.Reranked != "" || got.Refused {
		t.Errorf("the record says %+v", got)
	}
	if s.unrerankable.count.Load() != 0 {
		t.Error("the next search is left in the engine's order")
	}
}

// What the cluster refuses, and shards that fail, are dealt with before.
func TestRefusedSearchesAreNotReranked(t *testing.T) {
	partial := strings.Replace(threeHits, `{"total":2,"successful":2,"skipped":0,"failed":0}`, failedShards(shardFailure), 1)
	for _, answer := range []string{answerOf(partial), strings.Replace(answerOf("{}"), "200 OK", "400 Bad Request", 1)} {
		node := startRawNode(t, func(n int, _ rawRequest) string {
			if n == 1 {
				return answer
			}
			return answerOf(originalAnswer)
		})
		addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rerankAll), Reranker: rerankerFunc(backwards)})
		if got := postSearch(t, addr, "/t/_search"); got != originalAnswer {
			t.Errorf("got %s", got)
		}
		if counter(t, registry, "akin_reranked_total") != 0 || counter(t, registry, "akin_rejected_searches_total") != 1 {
			t.Error("counted as reranked, or not as refused")
		}
	}
}

// A shard that no node serves is missing from the original's answer, too.
func TestHitsOfTheShardsThatAreThereAreReranked(t *testing.T) {
	partial := strings.Replace(threeHits, `{"total":2,"successful":2,"skipped":0,"failed":0}`, failedShards(unservedOne), 1)
	unserved := `"_shards":` + failedShards(unservedOne)
	node := startRawNode(t, func(_ int, r rawRequest) string {
		if r.asks() == asksPage {
			return answerOf(strings.Replace(sideHits(r), `"_shards":{"failed":0}`, unserved, 1))
		}
		return answerOf(partial)
	})
	addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rerankAll), Reranker: rerankerFunc(backwards)})
	if got := hitIDs(postSearch(t, addr, "/t/_search")); got != `3\n 2` {
		t.Errorf("got %s", got)
	}
}

func TestDryRunsAreNotReranked(t *testing.T) {
	node := startRawNode(t, func(int, rawRequest) string { return answerOf(originalAnswer) })
	addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rerankAll), Reranker: rerankerFunc(backwards)})
	if got := postSearch(t, addr, "/t/_search?akin=dry-run"); got != originalAnswer {
		t.Errorf("got %s", got)
	}
	if counter(t, registry, "akin_reranked_total") != 0 {
		t.Error("counted as reranked")
	}
}

func TestTheExpanderKnowsWhichAnswersStayAsTheyAre(t *testing.T) {
	node := startRawNode(t, nil)
	var got *expand.Request
	addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(
		func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
			got = r
			return leaveAlone(ctx, r)
		})})
	for path, want := range map[string]reason.Reason{
		"/t/_search": "", "/t/_search?format=json": "", "/t/_search?format=yaml": reason.Answer, "/_async_search": reason.Endpoint,
	} {
		postSearch(t, addr, path)
		if got == nil || got.Fixed != want {
			t.Errorf("%s: %+v, want %q", path, got, want)
		}
	}
}

// A shadow is compared as it would have come out: with the hits that the
// client asked for, in the reranker's order.
func TestShadowsAreReranked(t *testing.T) {
	inA := strings.NewReplacer(`"3\n"`, `"3"`, `"t"`, `"a"`)
	original := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if asked := (rawRequest{body: string(body)}); asked.asks() == asksPage {
			io.WriteString(w, inA.Replace(sideHits(asked)))
			return
		}
		io.WriteString(w, hitsPage("3", "3", "2"))
	}
	n := startShadowNode(t, original, page(inA.Replace(threeHits)))
	o := shadowOptions(n)
	o.Expander = expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
		res, err := rerankAll(ctx, r)
		res.Body = []byte(rewritten)
		return res, err
	})
	o.Reranker = rerankerFunc(backwards)
	addr, registry := startProxy(t, o)
	if got := hitIDs(postSearch(t, addr, "/a/_search")); got != "3 x 2 x" {
		t.Errorf("got %s", got)
	}
	awaitShadow(t, registry, report.ShadowCompared, 1)
	if n.header.Get("Accept-Encoding") != "" || counter(t, registry, "akin_reranked_total") != 0 {
		t.Error("asked for gzip, or counted as a client's search")
	}
	// All three hits of the window would be an overlap of two thirds.
	if sum := histogramSum(t, registry, "akin_shadow_overlap_at_10"); sum != 1 {
		t.Errorf("overlap %v", sum)
	}
}
