package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/report"
)

// hitTermsFunc is a HitTerms made of a function.
type hitTermsFunc func(ctx context.Context, fields []string, hits []expand.Hit) ([]map[string]expand.FieldTerms, error)

func (f hitTermsFunc) Terms(ctx context.Context, fields []string, hits []expand.Hit) ([]map[string]expand.FieldTerms, error) {
	return f(ctx, fields, hits)
}

// termsOfAll gives each hit a term, but for those with the id "gone".
func termsOfAll(_ context.Context, fields []string, hits []expand.Hit) ([]map[string]expand.FieldTerms, error) {
	out := make([]map[string]expand.FieldTerms, len(hits))
	for i, h := range hits {
		if h.ID != "gone" {
			out[i] = map[string]expand.FieldTerms{fields[0]: {Terms: []string{"t" + h.ID}, Freqs: []float64{1}}}
		}
	}
	return out, nil
}

const (
	firstPassBody   = `{"size":2,"query":{"first":{}}}`
	withoutFeedback = `{"query":{"expanded":{}}}`
	firstTwo        = `{"hits":{"hits":[{"_index":"i","_id":"1","_score":2,"_seq_no":5,"_primary_term":1,"_version":3},` +
		`{"_index":"i","_id":"gone","_score":1,"_seq_no":6,"_primary_term":1,"_version":1}]}}`
)

// asksForHits wants a first pass, and writes the ids of its hits.
func asksForHits(_ context.Context, r *expand.Request) (*expand.Result, error) {
	if len(r.FirstHits) == 0 {
		return &expand.Result{Rewritten: true, Body: []byte(withoutFeedback), Parts: []expand.Part{{FirstPass: &expand.FirstPass{
			SideSearch: expand.SideSearch{Index: "i,j", RawQuery: "routing=a", Body: []byte(firstPassBody)}, Documents: 2, Fields: []string{"body"},
		}}}}, nil
	}
	var ids []string
	for _, h := range r.FirstHits[0] {
		ids = append(ids, fmt.Sprint(h.ID, h.Score, h.Fields["body"].Terms))
	}
	return &expand.Result{Rewritten: true, Body: []byte(`{"query":{"with":"` + strings.Join(ids, " ") + `"}}`)}, nil
}

// The first pass goes out as the client, and its hits change the search.
func TestFirstHitsChangeTheSearch(t *testing.T) {
	node := startRawNode(t, func(int, rawRequest) string { return answerOf(firstTwo) })
	addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(asksForHits), HitTerms: hitTermsFunc(termsOfAll)})
	exchangeRaw(t, addr, searchOf("/i,j/_search", jsonType+"Authorization: Basic x\nX-Akin: feedback\n", `{"query":{}}`))
	requests := node.all()
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	first, second := requests[0], requests[1]
	if !strings.HasPrefix(first.line, "POST /i%2Cj/_search?filter_path="+answer.HitsPath+"&routing=a ") || first.body != firstPassBody ||
		first.get("Authorization") == nil || first.get("X-Akin") != nil {
		t.Errorf("first pass: %s\n%s", first.line, first.body)
	}
	if want := `{"query":{"with":"12 [t1]"}}`; second.body != want {
		t.Errorf("search: %s, want %s", second.body, want)
	}
	if n := counter(t, registry, "akin_feedback_total", "result", feedbackUsed); n != 1 {
		t.Errorf("%v counted", n)
	}
}

// Whatever becomes of the first pass, the expanded search goes out.
func TestSearchGoesOutWithoutFeedbackWhen(t *testing.T) {
	status := func(code int) string {
		return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", code, http.StatusText(code))
	}
	fails := func(err error) hitTermsFunc {
		return func(context.Context, []string, []expand.Hit) ([]map[string]expand.FieldTerms, error) { return nil, err }
	}
	for name, c := range map[string]struct {
		answer string // to the first pass
		terms  hitTermsFunc
		result string
	}{
		"it is refused":                   {status(http.StatusBadRequest), termsOfAll, feedbackRefused},
		"the cluster is overloaded":       {status(http.StatusTooManyRequests), termsOfAll, feedbackRefused},
		"it finds nothing":                {answerOf(`{"hits":{"hits":[]}}`), termsOfAll, feedbackNoHits},
		"its time is over":                {answerOf(`{"timed_out":true,` + firstTwo[1:]), termsOfAll, feedbackPartial},
		"one of its shards fails":         {answerOf(`{"_shards":{"failed":1},` + firstTwo[1:]), termsOfAll, feedbackPartial},
		"its answer is no JSON":           {answerOf(`<html>`), termsOfAll, feedbackAnswer},
		"its hits have no state":          {answerOf(`{"hits":{"hits":[{"_index":"i","_id":"1","_score":1}]}}`), termsOfAll, feedbackAnswer},
		"its hits have no scores":         {answerOf(`{"hits":{"hits":[{"_index":"i","_id":"1","_score":null,"_seq_no":1}]}}`), termsOfAll, feedbackAnswer},
		"there are too many hits":         {answerOf(threeHits), termsOfAll, feedbackAnswer},
		"all hits have changed":           {answerOf(strings.ReplaceAll(firstTwo, `"1"`, `"gone"`)), termsOfAll, feedbackNoTerms},
		"their terms are not to be had":   {answerOf(firstTwo), fails(errors.New("no")), "other"},
		"their terms come too late":       {answerOf(firstTwo), waits, "budget"},
		"reading their terms panics":      {answerOf(firstTwo), func(context.Context, []string, []expand.Hit) ([]map[string]expand.FieldTerms, error) { panic("x") }, causePanic},
		"the connection of a node breaks": {hangUp, termsOfAll, feedbackRefused},
	} {
		t.Run(name, func(t *testing.T) {
			node := startRawNode(t, func(_ int, r rawRequest) string {
				if r.body == firstPassBody {
					return c.answer
				}
				return answerOf(`{"hits":{"hits":[]}}`)
			})
			addr, registry := startProxy(t, Options{
				Nodes: nodesAt(node.URL), Expander: expander(asksForHits), HitTerms: c.terms, Budget: 200 * time.Millisecond,
				Cause: func(err error) string {
					if errors.Is(err, context.DeadlineExceeded) {
						return "budget"
					}
					return "other"
				},
			})
			got := exchangeRaw(t, addr, searchOf("/i/_search", jsonType, `{"query":{}}`))
			requests := node.all()
			if last := requests[len(requests)-1].body; !strings.HasPrefix(got, "HTTP/1.1 200") || last != withoutFeedback {
				t.Errorf("sent %s, answered %s", last, got)
			}
			if n := counter(t, registry, "akin_feedback_total", "result", c.result); n != 1 {
				t.Errorf("%v counted as %s", n, c.result)
			}
			if n := counter(t, registry, "akin_requests_total", "outcome", report.Rewritten); n != 1 {
				t.Errorf("%v searches rewritten", n)
			}
		})
	}
}

// waits ends with its context.
func waits(ctx context.Context, _ []string, _ []expand.Hit) ([]map[string]expand.FieldTerms, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Where the second expansion fails, if only for one of several searches, all of
// them go out as the first one left them.
func TestASecondExpansionThatFailsLeavesTheFirst(t *testing.T) {
	for name, second := range map[string]func() (*expand.Result, error){
		"all of it": func() (*expand.Result, error) { return nil, errors.New("no") },
		"one of several": func() (*expand.Result, error) {
			return &expand.Result{Rewritten: true, Parts: []expand.Part{{Err: errors.New("no")}}}, nil
		},
		"it panics":       func() (*expand.Result, error) { panic("x") },
		"nothing is left": func() (*expand.Result, error) { return &expand.Result{}, nil },
	} {
		node := startRawNode(t, func(int, rawRequest) string { return answerOf(firstTwo) })
		addr, registry := startProxy(t, Options{
			Nodes: nodesAt(node.URL), HitTerms: hitTermsFunc(termsOfAll),
			Expander: expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
				if len(r.FirstHits) > 0 {
					return second()
				}
				return asksForHits(ctx, r)
			}),
		})
		exchangeRaw(t, addr, searchOf("/i/_search", jsonType, `{"query":{}}`))
		if requests := node.all(); len(requests) != 2 || requests[1].body != withoutFeedback {
			t.Errorf("%s: %+v", name, requests)
		}
		if counter(t, registry, "akin_feedback_total", "result", feedbackUsed) != 0 || counter(t, registry, "akin_feedback_total") != 1 {
			t.Errorf("%s: counted as used", name)
		}
	}
}

// A client that leaves between the passes is waited for by nothing, and counted.
func TestClientMayLeaveBetweenThePasses(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	node := startRawNode(t, func(int, rawRequest) string { return answerOf(firstTwo) })
	addr, registry := startProxy(t, Options{
		Nodes: nodesAt(node.URL), Expander: expander(asksForHits), Budget: time.Minute,
		HitTerms: hitTermsFunc(func(ctx context.Context, _ []string, _ []expand.Hit) ([]map[string]expand.FieldTerms, error) {
			close(asked)
			defer close(ended)
			<-ctx.Done()
			return nil, ctx.Err()
		}),
		Cause: func(err error) string {
			if errors.Is(err, context.Canceled) {
				return "client_gone"
			}
			return "other"
		},
	})
	client := dial(t, addr)
	const body = `{"query":{}}`
	if _, err := fmt.Fprintf(client, "POST /i/_search HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
	for counter(t, registry, "akin_feedback_total", "result", "client_gone") != 1 {
		if t.Context().Err() != nil {
			t.Fatal("not counted")
		}
		time.Sleep(time.Millisecond)
	}
}

// With as many first passes as one client may have under way, and with no memory
// for the terms, searches go out without feedback.
func TestFirstPassesAreBounded(t *testing.T) {
	t.Run("in number", func(t *testing.T) {
		var waiting sync.WaitGroup
		waiting.Add(maxFirstPasses / 2)
		done := make(chan struct{})
		node := startRawNode(t, func(int, rawRequest) string { return answerOf(firstTwo) })
		addr, registry := startProxy(t, Options{
			Nodes: nodesAt(node.URL), Expander: expander(asksForHits), Budget: time.Minute,
			HitTerms: hitTermsFunc(func(ctx context.Context, fields []string, hits []expand.Hit) ([]map[string]expand.FieldTerms, error) {
				waiting.Done()
				<-done
				return termsOfAll(ctx, fields, hits)
			}),
		})
		var others sync.WaitGroup
		for range maxFirstPasses / 2 {
			others.Go(func() { exchangeRaw(t, addr, searchOf("/i/_search", jsonType, `{"query":{}}`)) })
		}
		waiting.Wait()
		exchangeRaw(t, addr, searchOf("/i/_search", jsonType, `{"query":{}}`))
		close(done)
		others.Wait()
		if requests := node.all(); requests[maxFirstPasses/2].body != withoutFeedback {
			t.Errorf("sent %s", requests[maxFirstPasses/2].body)
		}
		busy, used := counter(t, registry, "akin_feedback_total", "result", feedbackBusy), counter(t, registry, "akin_feedback_total", "result", feedbackUsed)
		if busy != 1 || used != maxFirstPasses/2 {
			t.Errorf("%v busy, %v with feedback", busy, used)
		}
	})
	t.Run("in memory", func(t *testing.T) {
		memory := limits.New(2 << 20)
		node := startRawNode(t, func(int, rawRequest) string { return answerOf(firstTwo) })
		addr, registry := startProxy(t, Options{
			Nodes: nodesAt(node.URL), Expander: expander(asksForHits), Memory: memory,
			HitTerms: hitTermsFunc(func(_ context.Context, fields []string, hits []expand.Hit) ([]map[string]expand.FieldTerms, error) {
				many := expand.FieldTerms{Terms: make([]string, 20_000), Freqs: make([]float64, 20_000)}
				return []map[string]expand.FieldTerms{{fields[0]: many}, nil}[:len(hits)], nil
			}),
		})
		exchangeRaw(t, addr, searchOf("/i/_search", jsonType, `{"query":{}}`))
		if requests := node.all(); requests[len(requests)-1].body != withoutFeedback {
			t.Errorf("sent %s", requests[len(requests)-1].body)
		}
		if n := counter(t, registry, "akin_feedback_total", "result", reasonMemory); n != 1 {
			t.Errorf("%v counted", n)
		}
		if n := heldBytes(memory); n != 0 {
			t.Errorf("%d bytes are still held", n)
		}
	})
}
