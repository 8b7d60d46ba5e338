package proxy

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/report"
)

// rewrittenSearches is what rerankFirstAndLast sends.
const rewrittenSearches = "{}\n" + rerankedBody + "\n{}\n{}\n{}\n" + rerankedBody + "\n"

// firstAndLast are how the hits of the first and the third search are ordered.
// The second is the client's.
func firstAndLast() []*expand.Rerank {
	third := rerankOf(1, 2)
	third.Fields = fieldsOf(1)
	return []*expand.Rerank{rerankOf(0, 2), nil, third}
}

// partsOf returns searches whose hits are reranked as given.
func partsOf(reranks ...*expand.Rerank) []expand.Part {
	parts := make([]expand.Part, len(reranks))
	for i, r := range reranks {
		parts[i].Rerank = r
	}
	return parts
}

// fieldsOf returns k fields, so that a reranker can tell searches apart.
func fieldsOf(k int) []expand.RerankField { return make([]expand.RerankField, k) }

// rerankFirstAndLast has the hits of two of three searches reranked. No
// term was added to them.
func rerankFirstAndLast(_ context.Context, r *expand.Request) (*expand.Result, error) {
	return &expand.Result{
		Rewritten: true, RawQuery: r.RawQuery, Body: []byte(rewrittenSearches), Parts: partsOf(firstAndLast()...),
		Clauses: []expand.Explanation{
			{Path: "[0].query.match", Phase: "rerank"}, {Path: "[1]", Reason: reason.NoClause}, {Path: "[2].query.match", Phase: "rerank"},
		},
	}, nil
}

// orderedSearches is threeSearches with the hits of the first search ordered by
// first, and those of the third by third.
func orderedSearches(t *testing.T, first, third []float64) string {
	t.Helper()
	return cutPages(t, threeSearches, firstAndLast(), first, nil, third)
}

func TestHitsOfMultiSearchGoOutInTheRerankersOrder(t *testing.T) {
	node := startRawNode(t, frames(threeSearches))
	addr, registry := startProxy(t, Options{
		Nodes: nodesAt(node.URL), Expander: expander(rerankFirstAndLast), Reranker: rerankerFunc(backwards), RerankBudget: patience,
	})
	want := orderedSearches(t, []float64{0, .25, .5}, []float64{0, .25, .5})
	for n, path := range []string{"/_msearch", "/t/_msearch?typed_keys=true&rest_total_hits_as_int=true"} {
		if got := postSearch(t, addr, path); got != want {
			t.Errorf("%s: got %s\nwant %s", path, got, want)
		}
		sent := node.searches()[3*n:]
		if len(sent) != 3 || sent[0].body != rewrittenSearches || len(sent[0].get("Accept-Encoding")) > 0 || sent[1].asks() != asksPage || sent[2].asks() != asksPage {
			t.Errorf("%s: sent %q", path, sent)
		}
		if got := counter(t, registry, "akin_reranked_total", "result", rerankedHits); got != float64(2*(n+1)) {
			t.Errorf("%s: %v searches are counted", path, got)
		}
		if got := counter(t, registry, "akin_rerank_duration_seconds"); got != float64(n+1) {
			t.Errorf("%s: %v times are counted", path, got)
		}
	}
}

// The page of one search may go out in the engine's order and others not.
func TestEachSearchFailsOpenForItself(t *testing.T) {
	for _, c := range []struct {
		name, answer, result string
		fails                func(ctx context.Context) ([]expand.HitScore, error)
	}{
		{"an error", threeSearches, "error", func(context.Context) ([]expand.HitScore, error) { return nil, errors.New("a reason") }},
		{"out of time", threeSearches, "budget", func(ctx context.Context) ([]expand.HitScore, error) { <-ctx.Done(); return nil, ctx.Err() }},
		{"a panic", threeSearches, "panic", func(context.Context) ([]expand.HitScore, error) { panic("a mistake") }},
		{"too few scores", threeSearches, "error", func(context.Context) ([]expand.HitScore, error) { return softOf(1), nil }},
		{"no version", strings.Replace(threeSearches, `"_version":2,`, "", 1), "no_ids", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := startRawNode(t, frames(c.answer))
			addr, registry := startProxy(t, Options{
				Nodes: nodesAt(node.URL), Expander: expander(rerankFirstAndLast), RerankBudget: 200 * time.Millisecond,
				Reranker: rerankerFunc(func(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error) {
					if len(by.Fields) == 0 && c.fails != nil { // it is the first search
						return c.fails(ctx)
					}
					return backwards(ctx, by, hits)
				}),
			})
			want := cutPages(t, c.answer, firstAndLast(), nil, nil, []float64{0, .25, .5})
			if got := postSearch(t, addr, "/_msearch"); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
			if kinds := node.kinds(); kinds != "frame order page" && kinds != "frame page order" {
				t.Errorf("asked for %s", kinds)
			}
			for _, result := range []string{c.result, rerankedHits} {
				if n := counter(t, registry, "akin_reranked_total", "result", result); n != 1 {
					t.Errorf("%v are counted as %s", n, result)
				}
			}
		})
	}
}

// None waits for another: what one asks the cluster for is on its way when the
// time is over.
func TestSearchesOfOneRequestShareTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const searches, fast = 16, 5
		var asked atomic.Int64
		s := newServer(t, Options{RerankBudget: time.Second, Reranker: rerankerFunc(func(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error) {
			asked.Add(1)
			if len(by.Fields) >= fast {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			time.Sleep(900 * time.Millisecond)
			return backwards(ctx, by, hits)
		})})
		var reranks []*expand.Rerank
		var want []string
		for k := range searches {
			by := rerankOf(k, 2)
			by.Window, by.Fields = searches, fieldsOf(k)
			reranks = append(reranks, by)
			want = append(want, map[bool]string{true: rerankedHits, false: "budget"}[k < fast])
		}
		answer := `{"responses":[` + strings.TrimSuffix(strings.Repeat(threeHits+",", searches), ",") + `]}`
		start := time.Now()
		_, results, _ := s.reranking.answer(t.Context(), expand.EndpointMultiSearch, reranks, []byte(answer), asksNobody)
		if took := time.Since(start); took != time.Second {
			t.Errorf("it took %v", took)
		}
		if diff := cmp.Diff(want, results); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if n := asked.Load(); n != searches {
			t.Errorf("asked for the scores of %d searches", n)
		}
	})
}

func TestAnswersToSeveralSearchesThatCannotBeCutAreFollowedByTheOriginal(t *testing.T) {
	long := threeSearches[:len(threeSearches)-1] + `,"x":"` + strings.Repeat("x", limits.MaxAnswer) + `"}`
	for name, answer := range map[string]string{
		"no JSON":       strings.Replace(answerOf(threeSearches), "application/json", "text/html", 1),
		"broken":        answerOf(threeSearches[:len(threeSearches)-20]),
		"broken off":    strings.Replace(answerOf(threeSearches), "Content-Length: ", "Content-Length: 9", 1) + hangUp,
		"too long":      answerOf(long),
		"one missing":   answerOf(`{"responses":[` + threeHits + `,{}]}`),
		"one too many":  answerOf(strings.Replace(threeSearches, `],"more"`, `,{}],"more"`, 1)),
		"one without":   answerOf(`{"responses":[` + threeHits + `,{},{"status":200}]}`),
		"too many hits": answerOf(strings.Replace(threeSearches, `[{"_index"`, `[{},{"_index"`, 1)),
	} {
		t.Run(name, func(t *testing.T) { checkNotCut(t, "/_msearch", answer, rerankFirstAndLast, 2) })
	}
}

// What failed of a search that asks for other hits than the client's is looked
// for before the hits are, also where no term was added to it.
func TestFailuresOfSearchesToRerankAreFollowedByTheOriginal(t *testing.T) {
	for name, answer := range map[string]string{
		"an error":       `{"responses":[` + threeHits + `,{"error":{}},{"error":{"reason":"from + size"}}]}`,
		"a failed shard": strings.Replace(threeSearches, `{"total":2,"successful":2,"skipped":0,"failed":0}`, failedShards(shardFailure), 1),
	} {
		t.Run(name, func(t *testing.T) {
			node := startRawNode(t, func(n int, _ rawRequest) string {
				if n == 1 {
					return answerOf(answer)
				}
				return answerOf(originalAnswer)
			})
			addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rerankFirstAndLast), Reranker: rerankerFunc(backwards)})
			if got := postSearch(t, addr, "/_msearch"); got != originalAnswer {
				t.Errorf("got %s", got)
			}
			if counter(t, registry, "akin_reranked_total") != 0 || counter(t, registry, "akin_rejected_searches_total", "original", "accepted") != 1 {
				t.Error("counted as reranked, or not as refused")
			}
		})
	}
}

// The answers to searches for themselves are not those to several.
func TestAnswersToSeveralSearchesThatAreTooLongAreNotAskedForAgain(t *testing.T) {
	long := threeSearches[:len(threeSearches)-1] + `,"x":"` + strings.Repeat("x", limits.MaxAnswer) + `"}`
	node := startRawNode(t, func(_ int, r rawRequest) string {
		if r.body == rewrittenSearches {
			return answerOf(long)
		}
		return answerOf(originalAnswer)
	})
	var fixed []reason.Reason
	addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Reranker: rerankerFunc(backwards), Expander: expander(
		func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
			fixed = append(fixed, r.Fixed)
			if r.Fixed != "" || r.Endpoint != expand.EndpointMultiSearch {
				return leaveAlone(ctx, r)
			}
			return rerankFirstAndLast(ctx, r)
		})})
	for _, path := range []string{"/t/_msearch", "/t/_msearch", "/t/_search", "/other/_msearch"} {
		if got := postSearch(t, addr, path); got != originalAnswer {
			t.Errorf("got %.300s", got)
		}
	}
	if diff := cmp.Diff([]reason.Reason{"", reason.TooLong, "", ""}, fixed); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTheExpanderKnowsWhichAnswersToSeveralSearchesStayAsTheyAre(t *testing.T) {
	node := startRawNode(t, nil)
	var got *expand.Request
	addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(
		func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
			got = r
			return leaveAlone(ctx, r)
		})})
	for path, want := range map[string]reason.Reason{
		"/t/_msearch": "", "/_msearch?pretty&filter_path=": "", "/_msearch?filter_path=responses": reason.Answer,
	} {
		postSearch(t, addr, path)
		if got == nil || got.Fixed != want {
			t.Errorf("%s: %+v, want %q", path, got, want)
		}
	}
	s := newServer(t, Options{})
	if got := s.fixed(searchFor(expand.EndpointMultiSearch, "", "format=yaml", "")); got != reason.Answer {
		t.Errorf("of an answer in YAML: %q", got)
	}
}

// An explanation tells of each search that was to be reranked by its
// number.
func TestExplanationsTellWhatBecameOfTheHitsOfEachSearch(t *testing.T) {
	for _, c := range []struct {
		answer string
		want   report.Summary
	}{
		{threeSearches, report.Summary{Reranked: "[0] reranked, [2] error", Sent: "rewritten"}},
		{`{"responses":[]}`, report.Summary{Reranked: "[0] unreadable, [2] unreadable", Sent: "original"}},
	} {
		node := startRawNode(t, frames(c.answer))
		s := newServer(t, Options{
			Nodes: nodesAt(node.URL), Expander: expander(rerankFirstAndLast), RerankBudget: patience,
			Reranker: rerankerFunc(func(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error) {
				if len(by.Fields) > 0 {
					return nil, errors.New("a reason")
				}
				return backwards(ctx, by, hits)
			}),
		})
		w := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodPost, "/_msearch?akin=explain", strings.NewReader("{}\n{}\n"))
		req.Header.Set("Content-Type", "application/x-ndjson")
		s.proxy.ServeHTTP(w, req)
		e, ok := s.explanations.Find(w.Header().Get(explanationHeader), nil)
		if !ok {
			t.Fatalf("status %d, header %v", w.Code, w.Header())
		}
		if got := e.Summary; got.Reranked != c.want.Reranked || got.Sent != c.want.Sent || got.Refused {
			t.Errorf("%+v, want %+v", got, c.want)
		}
		s.upstream.CloseIdleConnections() // the node waits for them
	}
}

// Of templates, those whose hits are reranked are sent as the searches that
// ask for them, also where no term was added.
func TestHitsOfTemplatesOfMultiSearchAreReranked(t *testing.T) {
	render := renders(`{"query":{}}`)
	node := startRawNode(t, func(n int, r rawRequest) string {
		if strings.Contains(r.line, renderPath) {
			return render(n, r)
		}
		return frames(`{"responses":[`+threeHits+`,`+threeHits+`]}`)(n, r)
	})
	addr, _ := startProxy(t, Options{
		Nodes: nodesAt(node.URL), Templates: true, Reranker: rerankerFunc(backwards), RerankBudget: patience, Budget: patience,
		Expander: expander(func(context.Context, *expand.Request) (*expand.Result, error) {
			return &expand.Result{
				Rewritten: true, Body: []byte("{}\n" + rerankedBody + "\n{\"index\":\"b\"}\n{\"query\":{}}\n"),
				Parts: partsOf(rerankOf(0, 2), nil), Clauses: []expand.Explanation{{Path: "[0].query.match", Phase: "rerank"}},
			}, nil
		}),
	})
	got := exchangeRaw(t, addr, searchOf("/_msearch/template", ndjsonType, templateLines))
	want := `{"responses":[` + cutPages(t, threeHits, []*expand.Rerank{rerankOf(0, 2)}, []float64{0, .25, .5}) + `,` + threeHits + `]}`
	if _, body, _ := strings.Cut(got, "\r\n\r\n"); body != want {
		t.Errorf("got %s\nwant %s", body, want)
	}
	sent := node.searches()
	if len(sent) != 2 || sent[1].asks() != asksPage || !strings.Contains(sent[0].body, sealed) || strings.Count(sent[0].body, sealed) != 1 {
		t.Errorf("sent %q", sent)
	}
}
