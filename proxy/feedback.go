package proxy

import (
	"context"
	"net/http"
	"net/url"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/answer"
)

// What became of the first pass of a search, values of the label "result".
// Others are causes of errors: of the expander, or of [Options.HitTerms]. With
// any but the first the search goes out as it was expanded without feedback.
const (
	feedbackUsed    = "used"
	feedbackNoHits  = "no_hits"  // it finds none
	feedbackRefused = "refused"  // the cluster does not answer it with a 200
	feedbackAnswer  = "answer"   // the answer cannot be read
	feedbackNoTerms = "no_terms" // the cluster tells the terms of none of the hits
)

// feedbackSideBySide is how many first passes of one request run at a time.
const feedbackSideBySide = 4

// HitTerms tells the terms of hits. Package rerank implements it.
type HitTerms interface {
	// Terms returns the terms of each hit by field, nil for a hit that is no longer
	// as it was found. It must not modify fields and hits, and may be called at the
	// same time for several searches.
	Terms(ctx context.Context, fields []string, hits []expand.Hit) ([]map[string]expand.FieldTerms, error)
}

// withFeedback returns the result of a second expansion, which knows the first
// hits that the first one asks for; where that fails, the first.
func (w rewriter) withFeedback(ctx context.Context, r *http.Request, e Expander, in *expand.Request, first *expand.Result) *expand.Result {
	if w.opts.HitTerms == nil {
		return first
	}
	second := *in
	second.FirstHits = make([][]expand.FirstHit, len(first.FirstPasses))
	results := make([]string, len(first.FirstPasses))
	var passes errgroup.Group
	passes.SetLimit(feedbackSideBySide)
	for i, pass := range first.FirstPasses {
		if pass != nil {
			passes.Go(func() error {
				if err := w.guard.Do("asking for the first hits", func() error {
					second.FirstHits[i], results[i] = w.firstHits(ctx, r, pass)
					return nil
				}); err != nil {
					results[i] = w.cause(err)
				}
				return nil
			})
		}
	}
	_ = passes.Wait() // each has a result of its own
	used := false
	for _, result := range results {
		used = used || result == feedbackUsed
		if result != "" && result != feedbackUsed {
			w.metrics.feedback.WithLabelValues(result).Inc()
		}
	}
	if !used {
		return first
	}
	var out *expand.Result
	err := w.guard.Do("expanding", func() (err error) {
		out, err = e.Expand(ctx, &second)
		return err
	})
	result := feedbackUsed
	if err != nil || !out.Rewritten {
		out, result = first, feedbackNoTerms
	}
	if err != nil {
		result = w.cause(err)
	}
	for _, r := range results {
		if r == feedbackUsed {
			w.metrics.feedback.WithLabelValues(result).Inc()
		}
	}
	return out
}

// firstHits returns the hits of a first pass with their terms, and what became
// of it. It asks as the client that sent r.
func (w rewriter) firstHits(ctx context.Context, r *http.Request, pass *expand.FirstPass) (first []expand.FirstHit, result string) {
	path := "/_search"
	if pass.Index != "" {
		path = "/" + url.PathEscape(pass.Index) + path
	}
	if pass.RawQuery != "" {
		path += "?" + pass.RawQuery
	}
	status, body, err := w.ask(ctx, r, http.MethodPost, path, pass.Body)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, w.cause(ctx.Err())
	case err != nil, status != http.StatusOK:
		return nil, feedbackRefused
	}
	hits, scores, err := answer.ReadHits(body, pass.Documents)
	switch {
	case err != nil:
		return nil, feedbackAnswer
	case len(hits) == 0:
		return nil, feedbackNoHits
	}
	documents, err := w.opts.HitTerms.Terms(ctx, pass.Fields, hits)
	if err != nil {
		return nil, w.cause(err)
	}
	for i, fields := range documents {
		if fields != nil && scores[i] > 0 {
			first = append(first, expand.FirstHit{ID: hits[i].ID, Score: scores[i], Fields: fields})
		}
	}
	if len(first) == 0 {
		return nil, feedbackNoTerms
	}
	return first, feedbackUsed
}
