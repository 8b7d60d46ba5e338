package report

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/expand"
)

// A Search is the outcome of a search. The goroutine that serves the search
// fills it in and reports it once: before the client gets the cluster's answer,
// when the search ends without one, or early if the client is still sending the
// body. Metrics, access log, health and explanation are made from it.
type Search struct {
	// Record is the content of the explanation. ID is the explanation's after
	// Tell; "" if none is kept.
	Record
	ID string
	// Explain says that an explanation is kept: if the expander was asked, or the
	// client wants one.
	Explain bool

	// Outcome is [Rewritten], [Unchanged] or [FailedOpen]; "" counts no request.
	// Why is the reason or the cause. Parts are those of several searches that
	// failed or stayed unchanged; they count for themselves.
	Outcome, Why string
	Parts        []Part
	// Failures are what failed open, in order.
	Failures []Failure
	// Sent says that the cluster got a rewritten search.
	Sent bool

	// Expanded says that an expander was asked; Record.Took is how long that took.
	Expanded bool
	// Feedback has the outcome of each first pass.
	Feedback []string
	// FewHits has the outcome of each search that is expanded, or expanded again,
	// if it finds few hits.
	FewHits []string
	// Shadow compares the answer to the expanded search, if it is shadowed.
	Shadow Shadow
	// Unchecked says that the answer could not be checked for failures.
	Unchecked bool
	// Fallback says what became of the original of a rejected search, a value of
	// the label "original"; "" if none was rejected.
	Fallback string
	// RerankTook is how long reranking took. Record.Reranked has the outcomes.
	RerankTook time.Duration

	// Upstream is the time until the cluster's answer began or was known not to
	// come, with retries; 0 if it was not asked or the search was reported before.
	Upstream time.Duration
	// Followed is for the access log and the trace; nil says nothing.
	Followed *Exchange

	told bool
}

// A Part is the outcome of one of several searches.
type Part struct{ Outcome, Why string }

// A Shadow compares the answers to an expanded search and to its original.
type Shadow struct {
	// Outcome is one of [ShadowOutcomes]; "" counts no shadow. The rest is set
	// only for [ShadowCompared].
	Outcome            string
	Original, Expanded ShadowAnswer
	// Overlap is the share of common first hits; Overlaps says that there are any.
	Overlap  float64
	Overlaps bool
}

// A ShadowAnswer has the time until an answer began and its total; Empty is
// true if it has no hits.
type ShadowAnswer struct {
	Took  time.Duration
	Hits  int64
	Empty bool
}

// A Failure is something that failed open.
type Failure struct {
	// What failed, and the cause.
	What, Cause string
	// Minor says that the search is still rewritten.
	Minor bool
}

// Fail adds a failure, unless the client has gone: then that is the cause.
func (s *Search) Fail(ctx context.Context, f Failure) {
	if ctx.Err() == nil {
		s.Failures = append(s.Failures, f)
	}
}

// effort returns the effort of a rewritten search, "" for any other.
func (s *Search) effort() string {
	if s.Outcome != Rewritten || s.Result == nil {
		return ""
	}
	return s.Result.Effort()
}

// Became says in a header what the client got: "rewritten", "unchanged;
// reason=off" or "failed-open; cause=budget".
func (s *Search) Became() string {
	switch {
	case s.Outcome == FailedOpen:
		return "failed-open; cause=" + s.Why
	case s.Outcome == Unchanged:
		return Unchanged + "; reason=" + s.Why
	case s.Refused:
		return "failed-open; cause=rejected"
	case s.Uncut:
		return "failed-open; cause=" + cmp.Or(s.Reranked...)
	}
	return s.Outcome
}

// Tell reports the search to metrics, access log, health and explanations.
// After the first call it does nothing.
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
	count(m.Feedback, s.Feedback)
	if s.Result != nil && s.Outcome == Rewritten && !s.Refused && !s.Uncut {
		for k := range s.Result.Parts {
			if how := s.Result.Parts[k].How; how != "" {
				m.searches.WithLabelValues(how).Inc()
			}
			if s.Result.Parts[k].FollowUp != nil && s.Result.Parts[k].Rerank == nil {
				m.Reranked.WithLabelValues(NotRemembered).Inc()
			}
		}
	}
	count(m.FewHits, s.FewHits)
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
	count(m.Reranked, s.Reranked)
	for k, result := range s.Reranked {
		if result != "" && s.Result != nil && k < len(s.Result.Parts) && s.Result.Parts[k].Rerank != nil {
			m.Reranks.WithLabelValues(kindOf(s.Result.Parts[k].Rerank)).Inc()
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

// Values of the label kind of reranked searches.
const (
	bySoft       = "soft"
	byEmbeddings = "embeddings"
)

func kindOf(r *expand.Rerank) string {
	if r.Text != "" {
		return byEmbeddings
	}
	return bySoft
}

// count adds one for each result, but not for "".
func count(results *prometheus.CounterVec, all []string) {
	for _, result := range all {
		if result != "" {
			results.WithLabelValues(result).Inc()
		}
	}
}
