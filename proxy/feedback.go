package proxy

import (
	"context"
	"errors"
	"net/http"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy/answer"
)

const (
	// maxFirstPasses limits first passes in flight; one client gets half.
	maxFirstPasses = 128
	// feedbackSideBySide limits those of one request.
	feedbackSideBySide = 4
	// mostWithFeedback is how many of the first searches of one request may have a
	// first pass.
	mostWithFeedback = 16
	// hitTermBytes is about what one term of a hit takes while terms are chosen.
	hitTermBytes = 200
)

// HitTerms returns the terms of hits. Package expand/soft implements it.
type HitTerms interface {
	// Terms returns the terms of each hit by field, nil for a hit that has changed
	// since it was found or has no terms available. It must not modify fields and
	// hits, and may be called concurrently.
	Terms(ctx context.Context, fields []string, hits []expand.Hit) ([]map[string]expand.FieldTerms, error)
}

// feedback finds the first hits of searches and their terms.
type feedback struct {
	terms  HitTerms // nil for none
	guard  *recovery.Guard
	places *limits.Places // of first passes in flight
	cause  func(error) string
}

// wantsFirstPass reports whether a search has a first pass.
func wantsFirstPass(p expand.Part) bool { return p.FirstPass != nil }

// firstHits returns the hits of each search's first pass with their terms, and
// the outcome of each pass, "" if there is none. client is who gets the places;
// hold counts the memory of the hits.
func (f *feedback) firstHits(
	ctx context.Context, searches []expand.Part, client string, hold *limits.Hold, ask sender,
) (hits [][]expand.FirstHit, results []string) {
	hits, results = make([][]expand.FirstHit, len(searches)), make([]string, len(searches))
	_ = recovery.InParallel(len(searches), feedbackSideBySide, func(i int) error {
		pass := searches[i].FirstPass
		switch {
		case pass == nil:
			return nil
		case i >= mostWithFeedback:
			results[i] = feedbackTooMany
			return nil
		}
		if err := f.guard.Do("asking for the first hits", func() error {
			hits[i], results[i] = f.hitsOf(ctx, pass, "client "+client, hold, ask)
			return nil
		}); err != nil {
			results[i] = f.cause(err)
		}
		return nil
	})
	return hits, results
}

// hitsOf returns the hits of one first pass with their terms, and its outcome.
func (f *feedback) hitsOf(ctx context.Context, pass *expand.FirstPass, owner string, hold *limits.Hold, ask sender) (first []expand.FirstHit, result string) {
	if !f.places.Take(owner) {
		return nil, feedbackBusy
	}
	defer f.places.Give(owner)
	status, body, err := ask(ctx, sideCall(pass.SideSearch, "filter_path="+answer.HitsPath))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, f.cause(ctx.Err())
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
	documents, err := f.terms.Terms(ctx, pass.Fields, hits)
	if err != nil {
		return nil, f.cause(err)
	}
	terms := 0
	for i, fields := range documents {
		if fields != nil && scores[i] > 0 {
			first = append(first, expand.FirstHit{ID: hits[i].ID, Score: scores[i], Fields: fields})
			for _, field := range fields {
				terms += len(field.Terms)
			}
		}
	}
	switch {
	case len(first) == 0:
		return nil, feedbackNoTerms
	case !hold.Take(int64(terms) * hitTermBytes): // until the search ends
		return nil, reasonMemory
	}
	return first, feedbackUsed
}
