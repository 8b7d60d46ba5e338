package proxy

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/report"
)

// sampled says whether a search is one of the share that gets a shadow. It must
// be harmless to send twice: one for a scroll opens a second context.
func sampled(share float64, m match, rawQuery string) bool {
	return strings.HasSuffix(m.shape, "/_search") && !answer.Has(rawQuery, "scroll") &&
		rand.Float64() < share //nolint:gosec // A sample, no secret.
}

// shadow sends the original search, whose answer the client gets, and has it
// expanded and sent after that: neither waits for the other, and the shadow
// finds the cluster a little warmer.
func (s *Server) shadow(out *http.Request, x *search) (*http.Response, error) {
	var again *http.Request
	hold := s.opts.Memory.Hold(limits.Shadow, x.client.Name)
	fits := max(len(x.body.plain), len(x.body.raw)) <= MaxAnswer
	if fits && hold.Take(int64(len(x.body.plain)+len(x.body.raw))) && s.shadows.Reserve() {
		again = out.Clone(s.shadows.Context()) // not the client's, which ends with its answer
		again.Body, again.RemoteAddr = nil, "" // what is said of the address is there already
	} else {
		hold.Release()
		s.metrics.Shadow.Count(report.ShadowDropped)
	}
	if x.body.whole {
		setBody(out, x.body.raw)
	}
	end := func(outcome string) {
		hold.Release()
		s.shadows.Release()
		s.metrics.Shadow.Count(outcome)
	}
	start := time.Now()
	res, err := s.upstream.RoundTrip(out)
	took := time.Since(start)
	switch {
	case again == nil:
	case err != nil:
		end(report.ShadowUnanswered)
	case res.StatusCode != http.StatusOK:
		end(report.ShadowRejected)
	default:
		own := *x // the client's search may not be over yet
		own.hold = hold
		own.report = report.Search{Record: x.report.Record}
		header := res.Header.Clone()
		res.Body = keepShadowed(res.Body, hold, func(answer []byte, outcome string) {
			if outcome != "" {
				end(outcome)
				return
			}
			s.shadows.Start(func(ctx context.Context) {
				outcome := report.ShadowFailed // where it panics
				_ = s.guard.Do("shadowing", func() error {
					outcome = s.runShadow(again.WithContext(ctx), &own, took, header, answer)
					return nil
				})
				if s.shadows.Context().Err() == nil && outcome != report.ShadowCompared { // else it was cut off by the end of the server
					s.metrics.Shadow.Count(outcome)
				}
			}, hold.Release)
		})
	}
	return res, err
}

// runShadow has a search expanded and sent, and compares the answer with that
// to the original. The request out is the original without its body.
func (s *Server) runShadow(out *http.Request, x *search, took time.Duration, h http.Header, answer []byte) (outcome string) {
	original, err := readTopHits(h, answer, x.hold)
	switch {
	case err != nil:
		return shadowOutcome(err)
	case original.Failures != nil:
		return report.ShadowRejected
	}
	defer func() { //nolint:contextcheck // It is the shadow's.
		x.report.Parts = nil // the client's search is counted as it came
		s.tell(out.Context(), x, nil)
		s.pause.leave(x.ticket)
	}()
	made, err := s.expand(out.Context(), out, x, x.shadow)
	switch {
	case err != nil:
		return report.ShadowFailed
	case !made.Rewritten:
		return report.ShadowUnchanged
	}
	x.rewritten, x.report.Sent = made, true
	x.hold.Add(int64(len(made.body)))
	start := time.Now()
	res, err := s.upstream.RoundTrip(x.asRewritten(out))
	if err != nil {
		return report.ShadowUnanswered
	}
	defer res.Body.Close()
	expandedTook := time.Since(start)
	if res.StatusCode >= http.StatusBadRequest {
		// What the cluster says teaches as much as if it said it to a client.
		s.refused(out.Context(), x, true, s.judge.readRefusal(x.sent(), res))
		return report.ShadowRejected
	}
	expanded, err := s.readShadow(out.Context(), x, res)
	switch {
	case err != nil:
		return shadowOutcome(err)
	case expanded.Failures != nil:
		s.refused(out.Context(), x, true, expanded.Failures)
		return report.ShadowRejected
	}
	s.accepted(out.Context(), x)
	compareHits(&s.metrics.Shadow, original, expanded, took, expandedTook)
	return report.ShadowCompared
}

// readShadow reads the answer to an expanded search, and reranks it if asked
// to.
func (s *Server) readShadow(ctx context.Context, x *search, res *http.Response) (hits topHits, err error) {
	answer, err := limits.Read(res.Body, x.hold, res.ContentLength, MaxAnswer)
	if err != nil {
		return hits, err
	}
	if reranks := x.rewritten.Reranks; len(reranks) > 0 && res.Header.Get("Content-Encoding") == "" {
		if reranked, _ := s.reranking.answer(ctx, x.endpoint, reranks, answer); reranked != nil {
			x.hold.Add(int64(cap(reranked)))
			answer = reranked
		}
	}
	return readTopHits(res.Header, answer, x.hold)
}

// clearScroll has the cluster close, with the client's credentials, a scroll
// whose first answer the client does not get, as the original opens another. If
// that fails the scroll ends when its time is over.
func (s *Server) clearScroll(out *http.Request, id string) {
	if id == "" || !s.clearing.Reserve() {
		return
	}
	as := asClient(out.Header, out.URL.RawQuery)
	s.clearing.Start(func(ctx context.Context) {
		err := s.guard.Do("clearing scrolls", func() error {
			body, err := json.Marshal(map[string][]string{"scroll_id": {id}})
			if err == nil {
				_, _, err = s.ask(ctx, as, http.MethodDelete, "/_search/scroll", body, nil)
			}
			return err
		})
		if err != nil {
			s.log.DebugContext(ctx, "a scroll that nobody reads was not cleared", "err", err)
		}
	}, func() {})
}
