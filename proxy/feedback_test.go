package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
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

// asksForHits wants a first pass for each search, and writes with their hits as
// again does, or the ids of those of the first.
type asksForHits struct {
	expander

	searches int // 0 is 1
	again    expander
}

func (e asksForHits) Expand(context.Context, *expand.Request) (*expand.Result, error) {
	part := expand.Part{FirstPass: &expand.FirstPass{
		SideSearch: expand.SideSearch{Index: "i,j", RawQuery: "routing=a", Body: []byte(firstPassBody)}, Documents: 2, Fields: []string{"body"},
	}}
	return &expand.Result{Rewritten: true, Body: []byte(withoutFeedback), Parts: slices.Repeat([]expand.Part{part}, max(e.searches, 1))}, nil
}

func (e asksForHits) WithFirstHits(ctx context.Context, _ *expand.Result, hits [][]expand.FirstHit) (*expand.Result, error) {
	if e.again != nil {
		return e.again(ctx, nil)
	}
	var ids []string
	for _, h := range hits[0] {
		ids = append(ids, fmt.Sprint(h.ID, h.Score, h.Fields["body"].Terms))
	}
	return &expand.Result{Rewritten: true, Body: []byte(`{"query":{"with":"` + strings.Join(ids, " ") + `"}}`)}, nil
}

// startFeedback starts a proxy whose expander wants a first pass.
func startFeedback(t *testing.T, o Options, terms hitTermsFunc, reply func(n int, r rawRequest) string) *rig {
	t.Helper()
	o.HitTerms, o.Budget = terms, cmp.Or(o.Budget, patience)
	if o.Expander == nil {
		o.Expander = asksForHits{}
	}
	if o.Cause == nil {
		o.Cause = func(err error) string {
			switch {
			case errors.Is(err, context.DeadlineExceeded):
				return "budget"
			case errors.Is(err, context.Canceled):
				return "client_gone"
			}
			return "other"
		}
	}
	return start(t, o, reply)
}

// The first pass goes out as the client, and its hits change the search.
func TestFirstHitsChangeTheSearch(t *testing.T) {
	p := startFeedback(t, Options{}, termsOfAll, inTurn(answerOf(firstTwo)))
	p.post(t, "/i,j/_search", jsonType+"Authorization: Basic x\nX-Akin: feedback\n", someSearch)
	p.arrived(t, firstPassBody, `{"query":{"with":"12 [t1]"}}`)
	first := p.all()[0]
	check.That(t, strings.HasPrefix(first.line, "POST /i%2Cj/_search?filter_path="+answer.HitsPath+"&routing=a ") && first.get("Authorization") != nil && first.get("X-Akin") == nil, "first pass: %q", first)
	p.counted(t, 1, "akin_feedback_total", "result", feedbackUsed)
}

func TestSearchGoesOutWithoutFeedbackWhen(t *testing.T) {
	termsFail := func(context.Context, []string, []expand.Hit) ([]map[string]expand.FieldTerms, error) {
		return nil, errors.New("no")
	}
	termsPanic := func(context.Context, []string, []expand.Hit) ([]map[string]expand.FieldTerms, error) { panic("x") }
	termsWait := func(ctx context.Context, _ []string, _ []expand.Hit) ([]map[string]expand.FieldTerms, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for name, c := range map[string]struct {
		answer string // to the first pass
		terms  hitTermsFunc
		result string
	}{
		"it is refused":                   {answerWith(400, jsonType, "{}"), termsOfAll, feedbackRefused},
		"the cluster is overloaded":       {answerWith(429, jsonType, "{}"), termsOfAll, feedbackRefused},
		"it finds nothing":                {answerOf(`{"hits":{"hits":[]}}`), termsOfAll, feedbackNoHits},
		"its time is over":                {answerOf(`{"timed_out":true,` + firstTwo[1:]), termsOfAll, feedbackPartial},
		"one of its shards fails":         {answerOf(`{"_shards":{"failed":1},` + firstTwo[1:]), termsOfAll, feedbackPartial},
		"its answer is no JSON":           {answerOf(`<html>`), termsOfAll, feedbackAnswer},
		"its hits have no state":          {answerOf(`{"hits":{"hits":[{"_index":"i","_id":"1","_score":1}]}}`), termsOfAll, feedbackAnswer},
		"its hits have no scores":         {answerOf(`{"hits":{"hits":[{"_index":"i","_id":"1","_score":null,"_seq_no":1}]}}`), termsOfAll, feedbackAnswer},
		"there are too many hits":         {answerOf(threeHits), termsOfAll, feedbackAnswer},
		"all hits have changed":           {answerOf(strings.ReplaceAll(firstTwo, `"1"`, `"gone"`)), termsOfAll, feedbackNoTerms},
		"their terms are not to be had":   {answerOf(firstTwo), termsFail, "other"},
		"their terms come too late":       {answerOf(firstTwo), termsWait, "budget"},
		"reading their terms panics":      {answerOf(firstTwo), termsPanic, causePanic},
		"the connection of a node breaks": {hangUp, termsOfAll, feedbackRefused},
	} {
		t.Run(name, func(t *testing.T) {
			p := startFeedback(t, Options{Budget: 200 * time.Millisecond}, c.terms, inTurn(c.answer, answerOf(`{"hits":{"hits":[]}}`)))
			got := p.post(t, "/i/_search", jsonType, someSearch)
			check.That(t, strings.HasPrefix(got, "HTTP/1.1 200"), "answered %s", got)
			p.arrived(t, firstPassBody, withoutFeedback)
			p.counted(t, 1, "akin_feedback_total", "result", c.result)
			p.became(t, report.Rewritten, "")
		})
	}
}

// Where the second expansion fails, if only for one of several searches, all of
// them go out as the first one left them.
func TestASecondExpansionThatFailsLeavesTheFirst(t *testing.T) {
	for name, second := range map[string]expander{
		"all of it":       fails(errors.New("no")),
		"one of several":  results(expand.Result{Rewritten: true, Parts: []expand.Part{{Err: errors.New("no")}}}),
		"it panics":       panics,
		"nothing is left": results(expand.Result{}),
	} {
		t.Run(name, func(t *testing.T) {
			p := startFeedback(t, Options{Expander: asksForHits{again: second}}, termsOfAll, inTurn(answerOf(firstTwo)))
			p.search(t, "/i/_search")
			p.arrived(t, firstPassBody, withoutFeedback)
			p.counted(t, 0, "akin_feedback_total", "result", feedbackUsed)
			p.counted(t, 1, "akin_feedback_total")
		})
	}
}

// A client that leaves between the passes is waited for by nothing, and counted.
func TestClientMayLeaveBetweenThePasses(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	p := startFeedback(t, Options{}, func(ctx context.Context, _ []string, _ []expand.Hit) ([]map[string]expand.FieldTerms, error) {
		close(asked)
		defer close(ended)
		<-ctx.Done()
		return nil, ctx.Err()
	}, inTurn(answerOf(firstTwo)))
	c := dial(t, p.addr)
	io.WriteString(c, strings.ReplaceAll(searchOf("/i/_search", jsonType, someSearch), "\n", "\r\n"))
	receive(t, "the first pass", asked)
	c.Close()
	receive(t, "its end", ended)
	waitFor(t, "it to be counted", func() bool { return p.value(t, "akin_feedback_total", "result", "client_gone") == 1 })
}

// With as many first passes as one client may have under way, searches go out
// without feedback.
func TestFirstPassesAreBoundedInNumber(t *testing.T) {
	var waiting, others sync.WaitGroup
	waiting.Add(maxFirstPasses / 2)
	done := make(chan struct{})
	p := startFeedback(t, Options{}, func(ctx context.Context, fields []string, hits []expand.Hit) ([]map[string]expand.FieldTerms, error) {
		waiting.Done()
		<-done
		return termsOfAll(ctx, fields, hits)
	}, inTurn(answerOf(firstTwo)))
	for range maxFirstPasses / 2 {
		others.Go(func() { p.search(t, "/i/_search") })
	}
	waiting.Wait()
	p.search(t, "/i/_search")
	close(done)
	others.Wait()
	check.Equal(t, withoutFeedback, p.all()[maxFirstPasses/2].body, "sent")
	p.counted(t, 1, "akin_feedback_total", "result", feedbackBusy)
	p.counted(t, maxFirstPasses/2, "akin_feedback_total", "result", feedbackUsed)
}

func TestOnlyTheFirstSearchesOfManyHaveFeedback(t *testing.T) {
	p := startFeedback(t, Options{Expander: asksForHits{searches: mostWithFeedback + 3}}, termsOfAll, func(int, rawRequest) string { return answerOf(firstTwo) })
	p.search(t, "/i/_search")
	check.Equal(t, mostWithFeedback+1, len(p.all()), "sent")
	p.counted(t, mostWithFeedback, "akin_feedback_total", "result", feedbackUsed)
	p.counted(t, 3, "akin_feedback_total", "result", feedbackTooMany)
}

func TestFirstPassesAreBoundedInMemory(t *testing.T) {
	memory := limits.New(2 << 20)
	p := startFeedback(t, Options{Memory: memory}, func(_ context.Context, fields []string, hits []expand.Hit) ([]map[string]expand.FieldTerms, error) {
		many := expand.FieldTerms{Terms: make([]string, 20_000), Freqs: make([]float64, 20_000)}
		return []map[string]expand.FieldTerms{{fields[0]: many}, nil}[:len(hits)], nil
	}, inTurn(answerOf(firstTwo)))
	p.search(t, "/i/_search")
	p.arrived(t, firstPassBody, withoutFeedback)
	p.counted(t, 1, "akin_feedback_total", "result", reasonMemory)
	check.Equal(t, 0, heldBytes(memory), "bytes are still held")
}
