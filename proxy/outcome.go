package proxy

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/report"
)

// explanationHeader names the record of a search that asked for it in its
// answer.
const explanationHeader = "X-Akin-Explanation"

// What fails open, for the log.
const (
	failedSearch = "search"  // it is sent as it came
	failedRerank = "ranking" // its hits stay in the engine's order

	failedFeedback = "feedback" // it is expanded without its first hits
)

// Causes of failing open that are not errors of the expander.
const (
	causePanic     = "panic"
	causeRejected  = "rejected"  // the cluster rejected the rewritten search and accepted the original
	causeUnchecked = "unchecked" // the answer to a rewritten search could not be looked at
)

// ownHints say what an operator can do about the causes above.
var ownHints = map[string]string{
	causePanic:       "a mistake in akin: report it with the stack of the line \"panic\"",
	causeRejected:    "the cluster rejects what akin has changed and accepts the original: see its log, and akin's at level debug",
	causeUnchecked:   "answers are too long, or no JSON: failures of shards inside them go unseen",
	feedbackRefused:  "the cluster refuses the search for the first hits, or does not answer it: send it by itself, with akin=no-feedback",
	feedbackPartial:  "the search for the first hits timed out, or a shard of it failed: send it by itself, with akin=no-feedback",
	feedbackAnswer:   "the answer to the search for the first hits is too long, or of another shape",
	rerankUnnamed:    "hits need ids, scores, versions and sequence numbers to be ordered by the soft cosine",
	rerankUnreadable: "answers are too long, or cannot be cut to the client's page: ask for fewer hits, or less of each",
}

// knownValues returns the values that labels are known to have.
func knownValues(causes map[string]string) report.Values {
	return report.Values{
		Causes:      append(slices.Collect(maps.Keys(causes)), causePanic),
		Reasons:     reasons(),
		Reranked:    []string{rerankedHits, rerankNothing, rerankUnnamed, rerankUnreadable},
		Feedback:    []string{feedbackUsed, feedbackNoHits, feedbackRefused, feedbackAnswer, feedbackPartial, feedbackNoTerms, feedbackBusy, feedbackTooMany},
		Originals:   []string{originalAccepted, originalRejected, originalNotSent},
		Authorizing: []string{accessAllowed, accessDenied, accessNoIndex, accessFailed},
	}
}

// reasons returns those of the proxy's own to leave a search alone.
func reasons() []string {
	return []string{
		reasonNothing, reasonRankEvalOff, reasonTemplateOff, reasonDryRun, reasonShadow, reasonRejected, reasonPaused, reasonUndecided,
		reasonContentType, reasonEncoding, reasonTooLarge, reasonSlow, reasonMemory, reasonOff, reasonDisabled, reasonUnknownProfile,
		answer.HiddenByFilter, answer.HiddenByFormat,
		ReasonParameters, ReasonBody, ReasonTooMany, ReasonNotRendered,
	}
}

// failedOpen notes that a search, or one of several, failed open, unless the
// client has gone.
func (s *Server) failedOpen(ctx context.Context, x *search, what, cause string) {
	if ctx.Err() == nil {
		x.failedOpen = true
		report.Note(ctx, report.FailedOpen, cause)
		s.health.FailedOpen(ctx, what, cause, x.index)
	}
}

// unchanged notes that a search is sent as it came, and why.
func (s *Server) unchanged(r *http.Request, why string) {
	s.metrics.Unchanged(why)
	report.Note(r.Context(), report.Unchanged, why)
}

// searched counts a search when it is known what became of it.
func (s *Server) searched(x *search) {
	if x.failedOpen || x.rewritten != nil {
		s.health.Searched(x.failedOpen)
	}
	if x.shadow == nil { // else the shadow is the trial of a pause
		s.pause.leave(x.ticket)
	}
}

// record keeps what became of a search. With no res it failed open for the
// cause.
func (s *Server) record(x *search, r *http.Request, took time.Duration, res *expand.Result, cause string) {
	coding, _ := answer.ContentEncoding(r.Header)
	kept := &report.Record{
		Endpoint: x.endpoint, Index: x.index, Profile: x.control.profile, Took: took,
		Original: report.Message{RawQuery: answer.Known(x.rawQuery), Body: x.body.raw}, Packed: coding != "",
		Result: res, Cause: cause, AsItCame: x.control.dryRun || s.opts.Shadow > 0,
	}
	if x.trial != "" {
		kept.Trial, kept.Arm = x.trial, cmp.Or(x.control.profile, Off)
	}
	if res != nil {
		s.metrics.Clauses(res)
		kept.Reason = reasonOf(res)
		shown := *res
		shown.RawQuery = answer.Known(res.RawQuery)
		kept.Result = &shown
	}
	x.id = s.explanations.Add(kept)
}

// recordUnchanged keeps why a search was not looked at, if its client asks.
func (s *Server) recordUnchanged(x *search, r *http.Request, why string) {
	if x.control.asks() {
		s.record(x, r, 0, &expand.Result{Reason: reason.Reason(why)}, "")
	}
}

// mark names the record of a search in its answer, if the client asked for it.
func (x *search) mark(res *http.Response) {
	if x.id != "" && x.control.asks() {
		res.Header.Set(explanationHeader, x.id)
	}
}
