package proxy

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/tracing"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/report"
)

// What became of the first pass of a search, values of the label "result".
// Others are causes of errors: of the expander, or of [Options.HitTerms]. With
// any but the first the search goes out as it was expanded without feedback.
const (
	feedbackUsed    = "used"
	feedbackNoHits  = "no_hits"  // it finds none
	feedbackRefused = "refused"  // the cluster does not answer it with a 200
	feedbackAnswer  = "answer"   // the answer cannot be read
	feedbackPartial = "partial"  // it timed out, or a shard failed: other hits may be the first
	feedbackNoTerms = "no_terms" // the cluster tells the terms of none of the hits
	feedbackBusy    = "busy"     // as many first passes are under way as may be
	feedbackTooMany = "searches" // the request has more searches than get feedback
)

const (
	// maxFirstPasses is how many first passes run at a time; one client gets half.
	maxFirstPasses = 128
	// feedbackSideBySide is how many of them are of one request.
	feedbackSideBySide = 4
	// hitTermBytes is about what one term of a hit takes while terms are chosen.
	hitTermBytes = 200
)

// HitTerms tells the terms of hits. Package rerank implements it.
type HitTerms interface {
	// Terms returns the terms of each hit by field, nil for a hit that is no longer
	// as it was found, or whose terms are not to be had. It must not modify fields
	// and hits, and may be called at the same time for several searches.
	Terms(ctx context.Context, fields []string, hits []expand.Hit) ([]map[string]expand.FieldTerms, error)
}

// withFeedback returns the result of a second expansion, which knows the first
// hits that the first one asks for; where that fails, the first.
func (s *Server) withFeedback(ctx context.Context, r *http.Request, x *search, e Expander, in *expand.Request, first *expand.Result) *expand.Result {
	if s.opts.HitTerms == nil {
		return first
	}
	ctx, span := tracing.Start(ctx, "feedback")
	defer span.End()
	second := *in
	second.Pins = first.Pins
	second.FirstHits = make([][]expand.FirstHit, len(first.FirstPasses))
	results := make([]string, len(first.FirstPasses))
	var passes errgroup.Group
	passes.SetLimit(feedbackSideBySide)
	for i, pass := range first.FirstPasses {
		if pass != nil {
			passes.Go(func() error {
				if err := s.guard.Do("asking for the first hits", func() error {
					second.FirstHits[i], results[i] = s.firstHits(ctx, r, x, pass)
					return nil
				}); err != nil {
					results[i] = s.cause(err)
				}
				return nil
			})
		}
	}
	_ = passes.Wait() // each has a result of its own
	out := first
	if slices.Contains(results, feedbackUsed) {
		var result string
		out, result = s.expandAgain(ctx, e, &second, first)
		for i := range results {
			if results[i] == feedbackUsed {
				results[i] = result
			}
		}
	}
	x.report.Feedback = map[string]int{feedbackTooMany: first.TooManyFirstPasses}
	for _, result := range results {
		if result == "" {
			continue
		}
		x.report.Feedback[result]++
		if result != feedbackUsed && result != feedbackNoHits && result != feedbackNoTerms {
			x.report.Fail(r.Context(), report.Failure{What: failedFeedback, Cause: result, Minor: true})
		}
	}
	return out
}

// expandAgain returns the result of the second expansion, and what became of
// the feedback; where one of the searches fails, that of the first.
func (s *Server) expandAgain(ctx context.Context, e Expander, in *expand.Request, first *expand.Result) (out *expand.Result, result string) {
	err := s.guard.Do("expanding", func() (err error) {
		out, err = e.Expand(ctx, in)
		return err
	})
	if err == nil && len(out.Failures) > len(first.Failures) {
		err = out.Failures[0]
	}
	switch {
	case err != nil:
		return first, s.cause(err)
	case !out.Rewritten:
		return first, feedbackNoTerms
	}
	return out, feedbackUsed
}

// firstHits returns the hits of a first pass with their terms, and what became
// of it. It asks as the client that sent r.
func (s *Server) firstHits(ctx context.Context, r *http.Request, x *search, pass *expand.FirstPass) (first []expand.FirstHit, result string) {
	owner := "client " + x.client.Name
	if !s.firstPasses.Take(owner) {
		return nil, feedbackBusy
	}
	defer s.firstPasses.Give(owner)
	path := "/_search?filter_path=" + answer.HitsPath
	if pass.Index != "" {
		path = "/" + url.PathEscape(pass.Index) + path
	}
	if pass.RawQuery != "" {
		path += "&" + pass.RawQuery
	}
	status, body, err := s.ask(ctx, r, http.MethodPost, path, pass.Body, x.hold)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, s.cause(ctx.Err())
	case errors.Is(err, limits.ErrNoRoom):
		return nil, reasonMemory
	case err != nil, status != http.StatusOK:
		return nil, feedbackRefused
	}
	hits, scores, err := answer.ReadHits(body, pass.Documents)
	switch {
	case errors.Is(err, answer.ErrPartial):
		return nil, feedbackPartial
	case err != nil:
		return nil, feedbackAnswer
	case len(hits) == 0:
		return nil, feedbackNoHits
	}
	documents, err := s.opts.HitTerms.Terms(ctx, pass.Fields, hits)
	if err != nil {
		return nil, s.cause(err)
	}
	terms := 0
	for i, fields := range documents {
		if fields != nil && scores[i] > 0 {
			first = append(first, expand.FirstHit{ID: hits[i].ID, Score: scores[i], Fields: fields})
			for _, f := range fields {
				terms += len(f.Terms)
			}
		}
	}
	switch {
	case len(first) == 0:
		return nil, feedbackNoTerms
	case !x.hold.Take(int64(terms) * hitTermBytes): // until the end of the search
		return nil, reasonMemory
	}
	return first, feedbackUsed
}
