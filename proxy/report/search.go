package report

import (
	"context"
	"slices"
	"time"

	"github.com/akin-search/akin/expand"
)

// A Search is what became of a search. The goroutine that serves the search
// fills it in, and tells it once: before the client gets the cluster's
// answer, when the search ends where there is none, or as soon as a search
// goes on whose client still sends the body. Metrics, access log, health and
// explanation are made of it.
type Search struct {
	// Record is what its explanation says; ID is that of the explanation once it
	// was told, "" where none is kept.
	Record
	ID string
	// Explain says whether there is a record: of what the expander made of the
	// search, and of any other search whose client asks.
	Explain bool

	// Outcome is one of [Rewritten], [Unchanged] and [FailedOpen], Why the reason
	// or the cause; "" counts no request. Parts are those of several searches that
	// failed or were left alone, which count for themselves.
	Outcome, Why string
	Parts        []Part
	// Failures are what failed open, in its order.
	Failures []Failure
	// Sent says that the cluster got a rewritten search.
	Sent bool

	// Expanded says that an expander was asked; Took of the record is how long that
	// took.
	Expanded bool
	// Feedback is what became of each first pass.
	Feedback []string
	// FewHits is what became of each search that is expanded where the original
	// finds few hits.
	FewHits []string
	// Shadow says how the answer to it expanded differs, where it is shadowed.
	Shadow Shadow
	// Unchecked says that the answer could not be looked at for failures.
	Unchecked bool
	// Fallback is what the cluster said to the original of a rejected search, a
	// value of the label "original"; "" where none was rejected.
	Fallback string
	// RerankTook is the time in which its hits were reranked. What became of them is
	// in the record.
	RerankTook time.Duration

	// Upstream is how long the cluster took, with all that was sent again, until its
	// answer began, or until it was clear that none comes; 0 where it was not asked,
	// or the search was told before.
	Upstream time.Duration
	// Followed is what the access log and the trace say of the request; nil says
	// nothing.
	Followed *Exchange

	told bool
}

// A Part is what became of one of several searches.
type Part struct{ Outcome, Why string }

// A Shadow is how the answer to an expanded search differs from that to the
// original, which the client has.
type Shadow struct {
	// Outcome is one of [ShadowOutcomes]; "" counts no shadow. All else is there
	// where it is [ShadowCompared].
	Outcome            string
	Original, Expanded ShadowAnswer
	// Overlap is the share of the first hits that both have; Overlaps says that one
	// of them has any.
	Overlap  float64
	Overlaps bool
}

// A ShadowAnswer is the time until an answer began, its total, and whether it
// lists no hits.
type ShadowAnswer struct {
	Took  time.Duration
	Hits  int64
	Empty bool
}

// A Failure is something that failed open.
type Failure struct {
	// What failed, and the cause.
	What, Cause string
	// Minor says that the search is rewritten all the same.
	Minor bool
}

// Fail notes a failure, unless the client has gone: then that is the cause.
func (s *Search) Fail(ctx context.Context, f Failure) {
	if ctx.Err() == nil {
		s.Failures = append(s.Failures, f)
	}
}

// effort returns that of a rewritten search, "" for any other.
func (s *Search) effort() string {
	if s.Outcome != Rewritten || s.Result == nil {
		return ""
	}
	return s.Result.Effort()
}

// Tell tells metrics, access log, health and explanations of the search; after
// the first time it does nothing.
func (s *Search) Tell(ctx context.Context, m *Metrics, h *Health, explanations *Ring) {
	if s.told {
		return
	}
	s.told = true

	effort := s.effort()
	for _, part := range append(s.Parts, Part{s.Outcome, s.Why}) {
		switch part.Outcome {
		case Rewritten:
			m.requests.WithLabelValues(Rewritten, "", effort).Inc()
			m.AddedTerms.Add(float64(s.Result.AddedTerms()))
		case Unchanged, FailedOpen:
			m.requests.WithLabelValues(part.Outcome, part.Why, "").Inc()
		}
	}
	if s.Result != nil {
		for i := range s.Result.Clauses {
			outcome := Unchanged
			if s.Result.Clauses[i].Form != "" {
				outcome = Rewritten
			}
			m.clauses.WithLabelValues(outcome, string(s.Result.Clauses[i].Reason)).Inc()
		}
		if slices.ContainsFunc(s.Result.Clauses, func(c expand.Explanation) bool { return len(c.NoRow) > 0 }) {
			m.noRow.Inc()
		}
	}
	if s.Trial != "" && s.Outcome != "" { // else its body broke off
		m.Trials.WithLabelValues(s.Trial, s.Arm).Inc()
	}
	if s.Upstream > 0 {
		m.stages.WithLabelValues("upstream", effort).Observe(s.Upstream.Seconds())
	}
	if s.Expanded {
		m.stages.WithLabelValues("expand", effort).Observe(s.Took.Seconds())
	}
	for _, result := range s.Feedback {
		m.Feedback.WithLabelValues(result).Inc()
	}
	for _, result := range s.FewHits {
		m.FewHits.WithLabelValues(result).Inc()
	}
	if s.Shadow.Outcome != "" {
		m.shadow.count(&s.Shadow)
	}
	if s.Unchecked {
		m.Unchecked.Inc()
	}
	if s.Fallback != "" {
		m.Rejected.WithLabelValues(s.Fallback).Inc()
	}
	if s.Reranked != nil {
		m.RerankTook.Observe(s.RerankTook.Seconds())
	}
	for _, result := range s.Reranked {
		if result != "" {
			m.Reranked.WithLabelValues(result).Inc()
		}
	}

	if s.Outcome != "" {
		s.Followed.Note(s.Outcome, s.Why, s.Upstream)
	}
	open := false
	for _, f := range s.Failures {
		if !f.Minor {
			open = true
			s.Followed.Note(FailedOpen, f.Cause, s.Upstream)
		}
		h.FailedOpen(ctx, f.What, f.Cause, s.Index)
	}
	if open || s.Sent {
		h.Searched(open)
	}

	if s.Explain {
		s.ID = explanations.Add(&s.Record)
	}
}
