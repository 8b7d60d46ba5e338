package proxy

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
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

func (rerankerFunc) Begin(context.Context, *expand.Rerank) {}

func (rerankerFunc) Remember(context.Context, *expand.Rerank, []expand.Hit) error { return nil }

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

// startRerank starts a proxy that has hits reranked, with much time for it.
func startRerank(t *testing.T, how expander, by Reranker, answer func(n int, r rawRequest) string) *rig {
	t.Helper()
	return start(t, Options{Expander: how, Reranker: by, RerankBudget: patience, Budget: patience, Templates: true}, answer)
}

// reranked checks what became of the searches whose hits were to be reranked.
func (p *rig) reranked(t *testing.T, results ...string) {
	t.Helper()
	p.counted(t, float64(len(results)), "akin_reranked_total")
	for _, result := range results {
		n := len(results) - len(slices.DeleteFunc(slices.Clone(results), func(r string) bool { return r == result }))
		p.counted(t, float64(n), "akin_reranked_total", "result", result)
	}
}

// asked checks for what the node was asked.
func (p *rig) asked(t *testing.T, kinds string) {
	t.Helper()
	check.Equal(t, kinds, p.kinds(), "asked")
}

// scoresFail fails with an error.
func scoresFail(context.Context, *expand.Rerank, []expand.Hit) ([]expand.HitScore, error) {
	return nil, errors.New("a reason")
}

func TestHitsGoOutInTheRerankersOrder(t *testing.T) {
	for _, write := range []func(string) string{func(text string) string { return answerOf(text) }, inChunks} {
		var asked []expand.Hit
		p := startRerank(t, rerankAll, rerankerFunc(func(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error) {
			asked = hits
			return backwards(ctx, by, hits)
		}), cluster(func(int, rawRequest) string { return write(threeHits) }))
		got := p.post(t, "/t/_search", jsonType+"Accept-Encoding: br\n", "{}")
		p.asked(t, "frame page")
		sent := p.all()[0]
		check.That(t, sent.body == rerankedBody && len(sent.get("Accept-Encoding")) == 0, "sent %q", sent)
		want := bodyOf(write(cutPages(t, threeHits, []*expand.Rerank{rerankOf(0, 2)}, []float64{0, .25, .5})))
		check.That(t, bodyOf(got) == want && (strings.Contains(got, "chunked") || strings.Contains(got, fmt.Sprintf("Content-Length: %d\r\n", len(want)))), "got %s\nwant %s", got, want)
		check.That(t, len(asked) == 3 && asked[0].Routing == "zz" && asked[1].Version == 7, "asked for %+v", asked)
		p.reranked(t, rerankedHits)
		p.counted(t, 1, "akin_rerank_duration_seconds")
	}
}

// akin asks for an answer without a coding where it changes the answer.
func TestAnswersThatAreChangedGoOutAsGzipToClientsThatAcceptIt(t *testing.T) {
	for accepted, coded := range map[string]bool{"br, gzip;q=0.5": true, "gzip;q=0": false} {
		p := startRerank(t, rerankAll, rerankerFunc(backwards), cluster(func(int, rawRequest) string { return answerOf(threeHits) }))
		got := p.post(t, "/t/_search", jsonType+"Accept-Encoding: "+accepted+"\n", "{}")
		want := cutPages(t, threeHits, []*expand.Rerank{rerankOf(0, 2)}, []float64{0, .25, .5})
		check.Equal(t, coded, strings.Contains(got, "Content-Encoding: gzip\r\n"), accepted)
		res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got)), nil)
		check.OK(t, err)
		body := io.Reader(res.Body)
		if coded {
			body, err = gzip.NewReader(body)
			check.OK(t, err)
		}
		text, err := io.ReadAll(body)
		check.OK(t, err)
		check.OK(t, res.Body.Close())
		check.Equal(t, want, string(text), accepted)
	}
}

// Of templates, those whose hits are reranked are sent as the searches that
// ask for them, also where no term was added.
func TestHitsOfTemplatesOfMultiSearchAreReranked(t *testing.T) {
	p := startRerank(t, results(expand.Result{
		Rewritten: true, Body: []byte("{}\n" + rerankedBody + "\n{\"index\":\"b\"}\n{\"query\":{}}\n"),
		Parts: partsOf(rerankOf(0, 2), nil), Clauses: []expand.Explanation{{Path: "[0].query.match", Phase: "rerank"}},
	}), rerankerFunc(backwards), func(n int, r rawRequest) string {
		if strings.Contains(r.line, renderPath) {
			return renders(`{"query":{}}`)(n, r)
		}
		return frames(`{"responses":[`+threeHits+`,`+threeHits+`]}`)(n, r)
	})
	got := bodyOf(p.post(t, "/_msearch/template", ndjsonType, templateLines))
	check.Equal(t, `{"responses":[`+cutPages(t, threeHits, []*expand.Rerank{rerankOf(0, 2)}, []float64{0, .25, .5})+`,`+threeHits+`]}`, got)
	sent := p.searches()
	check.That(t, len(sent) == 2 && sent[1].asks() == asksPage && strings.Count(sent[0].body, sealed) == 1, "sent %q", sent)
}

// Whatever goes wrong, the client gets the hits of its page in the engine's
// order, with the engine's scores, and nothing that it has not asked for. What
// else an answer or scores may lack is tested in package answer.
func TestRerankingFailsOpenToTheEnginesOrder(t *testing.T) {
	empty, _, _ := strings.Cut(strings.Replace(threeHits, "1.5", "null", 1), `{"_index"`)
	empty += `]},"profile":{}}`
	for name, c := range map[string]struct {
		answer, result string
		reranker       Reranker
		ids            string
	}{
		"an error": {threeHits, "error", rerankerFunc(scoresFail), "1 2"},
		"out of time": {threeHits, "budget", rerankerFunc(func(ctx context.Context, _ *expand.Rerank, _ []expand.Hit) ([]expand.HitScore, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}), "1 2"},
		"a panic": {threeHits, "panic", rerankerFunc(func(context.Context, *expand.Rerank, []expand.Hit) ([]expand.HitScore, error) { panic("a mistake") }), "1 2"},
		"too few scores": {threeHits, "error", rerankerFunc(func(context.Context, *expand.Rerank, []expand.Hit) ([]expand.HitScore, error) {
			return softOf(1), nil
		}), "1 2"},
		"no reranker": {threeHits, "error", nil, "1 2"},
		"no version":  {strings.Replace(threeHits, `"_version":2,`, "", 1), "no_ids", rerankerFunc(backwards), "1 2"},
		"no hits":     {empty, "no_hits", rerankerFunc(backwards), ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, Options{Expander: expander(rerankAll), Reranker: c.reranker, RerankBudget: 20 * time.Millisecond}, frames(c.answer))
			got := p.search(t, "/t/_search")
			want := cutPages(t, c.answer, []*expand.Rerank{rerankOf(0, 2)})
			check.That(t, got == want && hitIDs(got) == c.ids, "got %s\nwant %s", got, want)
			p.asked(t, map[bool]string{true: "frame order", false: "frame"}[c.ids != ""])
			p.reranked(t, c.result)
		})
	}
}

// Scores that lack what the error says order the hits, and it is counted.
func TestHitsGoOutInTheOrderOfWhatIsThere(t *testing.T) {
	p := startRerank(t, rerankAll, rerankerFunc(func(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error) {
		scores, _ := backwards(ctx, by, hits)
		return scores, expand.ErrNotRemembered
	}), frames(threeHits))
	got := p.search(t, "/t/_search")
	check.Equal(t, cutPages(t, threeHits, []*expand.Rerank{rerankOf(0, 2)}, []float64{0, .25, .5}), got)
	p.asked(t, "frame page")
	p.reranked(t, rerankNotRemembered)
}

func TestEachSearchFailsOpenForItself(t *testing.T) {
	for name, c := range map[string]struct {
		answer, result string
		fails          rerankerFunc
	}{
		"an error":   {threeSearches, "error", scoresFail},
		"no version": {strings.Replace(threeSearches, `"_version":2,`, "", 1), "no_ids", backwards},
	} {
		t.Run(name, func(t *testing.T) {
			p := startRerank(t, rerankFirstAndLast, rerankerFunc(func(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error) {
				if len(by.Fields) == 0 { // it is the first search
					return c.fails(ctx, by, hits)
				}
				return backwards(ctx, by, hits)
			}), frames(c.answer))
			got, want := p.search(t, "/_msearch"), cutPages(t, c.answer, firstAndLast(), nil, nil, []float64{0, .25, .5})
			check.That(t, got == want, "got %s\nwant %s", got, want)
			kinds := p.kinds()
			check.That(t, kinds == "frame order page" || kinds == "frame page order", "asked for %s", kinds)
			p.reranked(t, c.result, rerankedHits)
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
			time.Sleep(900 * time.Millisecond) // The cluster is slow.
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
		_, results, _, _ := s.reranking.answer(t.Context(), expand.EndpointMultiSearch, reranks, []byte(answer), asksNobody)
		check.Equal(t, time.Second, time.Since(start), "it took")
		check.Equal(t, want, results)
		check.Equal(t, searches, asked.Load(), "asked for the scores of searches")
	})
}

// Where an answer cannot be cut to the client's page the original search goes
// out after it. Where it was too long or odd, the searches of that index, profile
// and endpoint are not sent twice for a while.
func TestAnswersThatCannotBeCutAreFollowedByTheOriginal(t *testing.T) {
	brokenOff := func(text string) string {
		return strings.Replace(answerOf(text), "Content-Length: ", "Content-Length: 9", 1) + hangUp
	}
	const one, several = "/t/_search", "/t/_msearch"
	for name, c := range map[string]struct {
		target, answer string
		again          bool
	}{
		"not asked for as gzip": {one, answerOf(pack(t, threeHits), "Content-Encoding: gzip"), false},
		"no JSON":               {one, strings.Replace(answerOf(threeHits), "application/json", "text/html", 1), false},
		"broken":                {one, answerOf(threeHits[:len(threeHits)-20]), false},
		"broken off":            {one, brokenOff(threeHits), true},
		"no hits in it":         {one, answerOf(`{"_shards":` + wholeShards + `}`), false},
		"too long":              {one, inChunks(threeHits + strings.Repeat(" ", limits.MaxAnswer+1-len(threeHits))), false},
		"several, too long":     {several, answerOf(threeSearches[:len(threeSearches)-1] + `,"x":"` + strings.Repeat("x", limits.MaxAnswer) + `"}`), false},
		"several, broken off":   {several, brokenOff(threeSearches), true},
		"several, one missing":  {several, answerOf(`{"responses":[` + threeHits + `,{}]}`), false},
		"its pages too long":    {one, answerOf(threeHits), false},
	} {
		t.Run(name, func(t *testing.T) {
			var fixed []reason.Reason
			e := expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
				switch fixed = append(fixed, r.Fixed); {
				case r.Fixed != "":
					return leaveAlone(ctx, r)
				case r.Endpoint == expand.EndpointMultiSearch:
					return rerankFirstAndLast(ctx, r)
				}
				return rerankAll(ctx, r)
			})
			p := start(t, Options{Expander: e, Profiles: map[string]Expander{"p": e}, Reranker: rerankerFunc(backwards), OnRefused: neverTold(t)}, func(_ int, r rawRequest) string {
				switch {
				case r.body == someSearch:
					return answerOf(originalAnswer)
				case r.asks() != asksFrame:
					return answerOf(`{"hits":{"hits":[]},"x":"` + strings.Repeat("x", limits.MaxAnswer) + `"}`)
				}
				return c.answer
			})
			other := map[string]string{one: several, several: one}[c.target]
			for n, target := range []string{c.target, c.target, c.target + "?akin_profile=p", "/other" + c.target[2:], other} {
				check.Equal(t, originalAnswer, p.search(t, target), target)
				if n == 0 {
					sent := p.all()
					check.That(t, sent[0].body == map[string]string{one: rerankedBody, several: rewrittenSearches}[c.target] && sent[len(sent)-1].body == someSearch, "sent %.500q", sent)
					p.reranked(t, slices.Repeat([]string{rerankUnreadable}, map[string]int{one: 1, several: 2}[c.target])...)
				}
			}
			want := []reason.Reason{"", reason.TooLong, "", "", ""}
			if c.again {
				want[1] = ""
			}
			check.Equal(t, want, fixed)
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
		p := startRerank(t, func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
			res, err := rerankAll(ctx, r)
			res.Parts[0].Rerank.Feedback.Documents = 5
			return res, err
		}, c.reranker, frames(c.answer))
		p.search(t, "/t/_search")
		p.counted(t, 1, "akin_feedback_total")
		p.counted(t, 1, "akin_feedback_total", "result", result)
	}
}

func TestExplanationsTellWhatBecameOfTheHits(t *testing.T) {
	onlyFirst := rerankerFunc(func(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error) {
		if len(by.Fields) > 0 && by.Fields[0].Field == "" {
			return nil, errors.New("a reason")
		}
		return backwards(ctx, by, hits)
	})
	for _, c := range []struct {
		target, answer string
		how            expander
		reranked, sent string
	}{
		{"/t/_search", threeHits, rerankAll, "reranked", "rewritten"},
		{"/t/_search", strings.Replace(threeHits, `"_id":"2",`, "", 1), rerankAll, "no_ids", "rewritten"},
		{"/t/_search", `{"hits":{}}`, rerankAll, "unreadable", "original"},
		{"/_msearch", threeSearches, rerankFirstAndLast, "[0] reranked, [2] error", "rewritten"},
		{"/_msearch", `{"responses":[]}`, rerankFirstAndLast, "[0] unreadable, [2] unreadable", "original"},
	} {
		p := startRerank(t, c.how, onlyFirst, frames(c.answer))
		shown := p.explained(t, p.post(t, c.target+"?akin=explain", jsonType, "{}\n{}\n"))
		check.That(t, shown["reranked"] == c.reranked && shown["sent"] == c.sent && shown["rejected"] == nil, "%v, want %s, %s", shown, c.reranked, c.sent)
	}
}

// asksNobody answers searches for pages like a cluster.
func asksNobody(_ context.Context, r esapi.Request) (int, []byte, error) {
	asked, _ := r.(esclient.HTTPRequest)
	body, _ := io.ReadAll(asked.Body)
	return http.StatusOK, []byte(sideHits(rawRequest{body: string(body)})), nil
}

// Reading the answer takes of the same time.
func TestBudgetBeginsWithTheAnswer(t *testing.T) {
	s := newServer(t, Options{RerankBudget: 1, Reranker: rerankerFunc(func(context.Context, *expand.Rerank, []expand.Hit) ([]expand.HitScore, error) {
		t.Error("asked for scores although there is no time")
		return nil, nil
	})})
	r := rerankOf(0, 2)
	out, results, _, _ := s.reranking.answer(t.Context(), expand.EndpointSearch, []*expand.Rerank{r}, []byte(threeHits), asksNobody)
	check.That(t, hitIDs(string(out)) == "1 2" && slices.Equal(results, []string{"budget"}), "%s: %s", results, out)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A client that leaves while the answer to its search is read makes that break
// off, which says nothing of the search. One that leaves while its page is asked
// for is not worth another search. Nothing of it is counted.
func TestClientsThatLeaveAreAskedNoMoreFor(t *testing.T) {
	for name, c := range map[string]struct {
		path, answer string
		how          expander
		kinds        string // what is asked for after the answer
	}{
		"before the shards":       {"/t/_search", threeHits[:20], rerankAll, ""},
		"behind the shards":       {"/t/_search", threeHits[:len(threeHits)-30], rerankAll, ""},
		"of several searches":     {"/_msearch", threeSearches[:len(threeSearches)-30], rerankFirstAndLast, ""},
		"not to be ordered":       {"/_msearch", responses(goodItem)[:30], rewriteFirstAndLast, ""},
		"while the page is asked": {"/t/_search", threeHits, rerankAll, "page"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			node := startRawNode(t, func(int, rawRequest) string { leave(); return hangUp })
			s := newServer(t, Options{Nodes: nodesAt(node.URL), Expander: c.how, Reranker: rerankerFunc(backwards), RerankBudget: patience, OnRefused: neverTold(t)})
			requests := 0
			s.transport = roundTripper(func(*http.Request) (*http.Response, error) {
				requests++
				body := io.Reader(strings.NewReader(c.answer))
				if c.kinds == "" {
					body = io.MultiReader(body, readerFunc(func([]byte) (int, error) {
						leave()
						return 0, ctx.Err()
					}))
				}
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: -1, Body: io.NopCloser(body)}, nil
			})
			defer func() {
				err, _ := recover().(error)
				check.That(t, errors.Is(err, http.ErrAbortHandler), "recovered %v, want %v", err, http.ErrAbortHandler)
				check.That(t, requests == 1 && node.kinds() == c.kinds, "%d requests were sent, and asked for %s", requests, node.kinds())
				for _, name := range []string{"akin_reranked_total", "akin_unchecked_responses_total", "akin_rejected_searches_total", "akin_upstream_errors_total"} {
					check.Equal(t, 0, counter(t, s.opts.Registry, name), name)
				}
				got := s.explanations.Last(1)[0]
				check.That(t, got.Sent == "rewritten" && got.Reranked == "" && !got.Refused, "the record says %+v", got)
				check.That(t, s.unrerankable.empty(), "the next search is left in the engine's order")
			}()
			req := httptest.NewRequestWithContext(ctx, http.MethodPost, c.path, strings.NewReader("{}\n{}\n"))
			req.Header.Set("Content-Type", "application/json")
			s.proxy.ServeHTTP(httptest.NewRecorder(), req)
		})
	}
}

func TestRefusedSearchesAreNotReranked(t *testing.T) {
	failed := strings.NewReplacer(wholeShards, failedShards(shardFailure))
	for _, c := range []struct {
		target, answer string
		how            expander
	}{
		{"/t/_search", answerOf(failed.Replace(threeHits)), rerankAll},
		{"/t/_search", answerWith(400, jsonType, "{}"), rerankAll},
		{"/_msearch", answerOf(failed.Replace(threeSearches)), rerankFirstAndLast},
		{"/_msearch", answerOf(`{"responses":[` + threeHits + `,{"error":{}},{"error":{"reason":"from + size"}}]}`), rerankFirstAndLast},
	} {
		p := startRerank(t, c.how, rerankerFunc(backwards), inTurn(c.answer, answerOf(originalAnswer)))
		check.Equal(t, originalAnswer, p.search(t, c.target))
		p.reranked(t)
		p.counted(t, 1, "akin_rejected_searches_total", "original", "accepted")
	}
}

// A shard that no node serves is missing from the original's answer, too.
func TestHitsOfTheShardsThatAreThereAreReranked(t *testing.T) {
	unserved := failedShards(unservedOne)
	p := startRerank(t, rerankAll, rerankerFunc(backwards), func(_ int, r rawRequest) string {
		if r.asks() == asksPage {
			return answerOf(strings.Replace(sideHits(r), `{"failed":0}`, unserved, 1))
		}
		return answerOf(strings.Replace(threeHits, wholeShards, unserved, 1))
	})
	check.Equal(t, `3\n 2`, hitIDs(p.search(t, "/t/_search")))
}

func TestTheExpanderKnowsWhichAnswersStayAsTheyAre(t *testing.T) {
	var got reason.Reason
	p := start(t, Options{Expander: expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
		got = r.Fixed
		return leaveAlone(ctx, r)
	})}, nil)
	for target, want := range map[string]reason.Reason{
		"/t/_search": "", "/t/_search?format=json": "", "/t/_search?format=yaml": reason.Answer, "/_async_search": reason.Endpoint,
		"/t/_msearch": "", "/_msearch?pretty&filter_path=": "", "/_msearch?filter_path=responses": reason.Answer,
	} {
		got = "not asked"
		if p.search(t, target); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
	check.Equal(t, reason.Answer, p.server.fixed(searchFor(expand.EndpointMultiSearch, "", "format=yaml", "")), "of several answers in YAML")
}

// A shadow is compared as it would have come out: with the hits that the
// client asked for, in the reranker's order.
func TestShadowsAreReranked(t *testing.T) {
	inA := strings.NewReplacer(`"3\n"`, `"3"`, `"t"`, `"a"`)
	p := startShadowFunc(t, Options{Reranker: rerankerFunc(backwards), Expander: expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
		res, err := rerankAll(ctx, r)
		res.Body = []byte(rewritten)
		return res, err
	})}, func(r rawRequest) string {
		switch {
		case r.asks() == asksPage:
			return answerOf(inA.Replace(sideHits(r)))
		case r.body == rewritten:
			return answerOf(inA.Replace(threeHits))
		}
		return answerOf(hitsPage("3", "3", "2"))
	})
	check.Equal(t, "3 x 2 x", hitIDs(p.search(t, "/a/_search")))
	p.awaitShadow(t, report.ShadowCompared, 1)
	all := p.all()
	check.That(t, all[len(all)-1].get("Accept-Encoding") == nil, "asked for gzip")
	p.reranked(t)
	// All three hits of the window would be an overlap of two thirds.
	check.Equal(t, 1, p.overlap(t), "overlap")
}

// Pages are asked for as the client, where and in the way it searches.
// Elasticsearch 8 writes hits as 7 does for clients that ask for it.
func TestPagesAreAskedForAsTheClient(t *testing.T) {
	const vnd = "application/vnd.elasticsearch+json; compatible-with=7"
	page := string(rerankOf(0, 2).PageOf([]expand.Hit{{Index: "t", ID: "3\n", SeqNo: 3}, {Index: "t", ID: "2", SeqNo: 4}}).Body)
	for _, c := range []struct {
		by                           rerankerFunc
		kind, accept, query, typedAs string
	}{
		{backwards, "application/json", "text/html", "routing=zz", "application/json"},
		{scoresFail, "application/json", "text/html", "preference=a", "application/json"},
		{backwards, vnd, vnd, "routing=zz", vnd},
	} {
		p := startRerank(t, rerankAll, c.by, frames(threeHits))
		p.post(t, "/t/_search", "Content-Type: "+c.kind+"\nAccept: "+c.accept+"\nAuthorization: Basic x\nX-Opaque-Id: o\nAccept-Encoding: gzip\nX-Akin: explain\n", someSearch)
		side := p.all()[len(p.all())-1]
		want := []string{"Accept: " + c.typedAs, "Authorization: Basic x", fmt.Sprintf("Content-Length: %d", len(side.body)), "Content-Type: " + c.typedAs, "Host: " + p.rawNode.addr, "X-Opaque-Id: o"}
		diff := cmp.Diff(want, slices.Sorted(slices.Values(side.header)))
		check.That(t, diff == "" && side.line == "POST /t/_search?"+c.query+" HTTP/1.1", "sent %s (-want +got)\n%s", side.line, diff)
		check.That(t, side.asks() != asksPage || side.body == page, "sent %s, want %s", side.body, page)
	}
}

func TestPathsOfSideSearches(t *testing.T) {
	for want, s := range map[string]expand.SideSearch{
		"/_search?filter_path=a":                                 {},
		"/a%2C-b%2A/_search?filter_path=a":                       {Index: "a,-b*"},
		"/_search?filter_path=a&expand_wildcards=all&routing=x":  {RawQuery: "expand_wildcards=all&routing=x"},
		"/%3Cl-%7Bnow%2Fd%7D%3E/_search?filter_path=a&routing=x": {Index: "<l-{now/d}>", RawQuery: "routing=x"},
	} {
		got := sideCall(s, "filter_path=a")
		check.That(t, (strings.EqualFold(got.Path, want) || strings.ReplaceAll(got.Path, "*", "%2A") == want) && got.Method == http.MethodPost, "%s %s, want %s", got.Method, got.Path, want)
	}
}

// Of several searches, one whose page is not to be had goes out in the engine's
// order; without that no one's page does.
func TestEachOfSeveralPagesFailsForItself(t *testing.T) {
	ofThird := func(answer string) func(rawRequest) string {
		return func(r rawRequest) string {
			if strings.Contains(r.body, `"from":1`) || strings.Contains(r.body, `"_seq_no":[4,0]`) {
				return answer
			}
			return answerOf(sideHits(r))
		}
	}
	gone, refused := ofThird(answerOf(`{"hits":{"hits":[]}}`)), ofThird(answerWith(503, jsonType, `{}`))
	for _, c := range []struct {
		order   func(r rawRequest) string
		want    string
		results []string
	}{
		{nil, orderedSearches(t, []float64{0, .25, .5}, nil), []string{rerankedHits, rerankChanged}},
		{refused, originalAnswer, []string{rerankUnreadable, rerankUnreadable}},
	} {
		p := startRerank(t, rerankFirstAndLast, rerankerFunc(backwards), sides(threeSearches, gone, c.order))
		check.Equal(t, c.want, p.search(t, "/_msearch"))
		p.reranked(t, c.results...)
	}
}

// Nothing is asked for where the page begins behind the last hit.
func TestPagesBehindTheLastHitAreEmpty(t *testing.T) {
	head, _, _ := strings.Cut(threeHits, "1.5")
	for _, c := range []struct{ answer, kinds, best string }{
		{threeHits, "frame", "0.5"},
		{strings.Replace(threeHits, `"_id":"2",`, "", 1), "frame order", "1.5"}, // the cluster says that there is none
	} {
		p := startRerank(t, rerankAs(rerankOf(3, 2)), rerankerFunc(backwards), frames(c.answer))
		got, want := p.search(t, "/t/_search"), head+c.best+`,"hits":[]},"profile":{}}`
		check.That(t, got == want, "got  %s\nwant %s", got, want)
		p.asked(t, c.kinds)
	}
}

// Long hits are put in whole, and their memory is given back.
func TestLongHitsArePutIn(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	ofLong := func(r rawRequest) string {
		return answerOf(strings.ReplaceAll(sideHits(r), `"_source":{`, `"x":"`+long+`","_source":{`))
	}
	for room, ids := range map[int64]string{64 << 20: `3\n 2 1`, 3 << 20: "original"} {
		memory := limits.New(room)
		p := start(t, Options{
			Expander: rerankAs(rerankOf(0, 3)), Reranker: rerankerFunc(backwards), Memory: memory, MaxBody: 8 << 20, RerankBudget: patience,
		}, sides(threeHits, ofLong, ofLong))
		got := p.search(t, "/t/_search")
		check.That(t, hitIDs(got) == ids && (ids == "original" || strings.Count(got, long) == 3), "got %d bytes with %s, asked for %s", len(got), hitIDs(got), p.kinds())
		waitFor(t, "the memory to be given back", func() bool { return heldBytes(memory) == 0 })
	}
}

// The time for reranking is not that for the page.
func TestPagesMayComeAfterTheTimeForReranking(t *testing.T) {
	s := newServer(t, Options{RerankBudget: patience, Reranker: rerankerFunc(backwards)})
	var deadlines []bool
	ask := func(ctx context.Context, r esapi.Request) (int, []byte, error) {
		_, bounded := ctx.Deadline()
		deadlines = append(deadlines, bounded)
		return asksNobody(ctx, r)
	}
	ctx := context.WithoutCancel(t.Context())
	_, results, _, _ := s.reranking.answer(ctx, expand.EndpointSearch, []*expand.Rerank{rerankOf(0, 2)}, []byte(threeHits), ask)
	check.That(t, slices.Equal(results, []string{rerankedHits}) && slices.Equal(deadlines, []bool{false}), "%v, bounded %v", results, deadlines)
}
