package proxy

import (
	"context"
	"maps"
	"net/http"
	"slices"

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

// tell tells what became of a search, once, and names its record in the answer
// res if the client asked for it.
func (s *Server) tell(ctx context.Context, x *search, res *http.Response) {
	x.report.Tell(ctx, s.metrics, s.health, s.explanations)
	if x.report.ID != "" && res != nil && x.control.asks() {
		res.Header.Set(explanationHeader, x.report.ID)
	}
}
