package proxy

import (
	"maps"
	"slices"

	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/report"
)

// What fails open, for the log.
const (
	failedSearch = "search"  // sent unchanged
	failedRerank = "ranking" // the hits stay in the engine's order

	failedFeedback = "feedback" // expanded without the first hits
)

// Causes of failing open that are not errors of the expander.
const (
	causePanic     = "panic"
	causeRejected  = "rejected"  // the cluster rejected the rewritten search and accepted the original
	causeUnchecked = "unchecked" // the answer to a rewritten search could not be checked
)

// The proxy's own reasons not to rewrite a search; the expander has more.
const (
	reasonNothing     = "nothing_added"         // the expander gave no reason
	reasonTemplateOff = "templates_off"         // [Options.Templates] is not set
	reasonDryRun      = "dry_run"               // the client asked for it
	reasonShadow      = "shadow"                // [Options.Shadow] is set
	reasonPaused      = "paused"                // the cluster refuses rewritten searches in general: see pause
	reasonUndecided   = "authorization_pending" // errUndecided
	reasonRejected    = "rejected_before"       // the cluster recently rejected searches of the same client and shape
	reasonContentType = "content_type"          // not JSON, or lines of JSON where they are expected
	reasonEncoding    = "content_encoding"      // neither plain nor valid gzip
	reasonTooLarge    = "body_too_large"        // before or after decompression
	reasonSlow        = "slow_body"             // the body comes too slowly
	reasonMemory      = "memory"                // other requests use too much
)

// Reasons not to rewrite a search because of what it asks for.
const (
	reasonOff            = "off"             // the client asked for it
	reasonDisabled       = "disabled"        // no expander, or the profile is switched off
	reasonUnknownProfile = "unknown_profile" // no profile has that name
	reasonEnoughHits     = "enough_hits"     // the original finds enough hits, or failed
)

// Reasons not to rewrite a search template.
const (
	reasonParameters  = "template_parameters" // a query parameter that may mean something else for templates
	reasonBody        = "template_body"       // not a template request
	reasonTooMany     = "too_many_templates"  // in one request
	reasonNotRendered = "not_rendered"        // the cluster does not render it
)

// Values of the label "original" of rejected searches.
const (
	originalAccepted = "accepted"
	originalRejected = "rejected"
	originalNotSent  = "not_sent"
)

// Outcomes of a first pass, values of the label "result". Others are causes of
// errors of the expander or of [Options.HitTerms]. With any but the first value
// the search is sent as expanded without feedback.
const (
	feedbackUsed    = "used"
	feedbackNoHits  = "no_hits"  // it finds nothing
	feedbackRefused = "refused"  // the cluster does not answer 200
	feedbackAnswer  = "answer"   // the answer cannot be read
	feedbackPartial = "partial"  // it timed out or a shard failed: other hits may be the first
	feedbackNoTerms = "no_terms" // no hit has terms available
	feedbackBusy    = "busy"     // too many first passes are in flight
	feedbackTooMany = "searches" // the request has more searches than get feedback
)

// Outcomes of reranking, values of the label "result". Others are causes of
// errors of [Options.Reranker].
const (
	rerankedHits     = "reranked"
	rerankNothing    = "no_hits"    // nothing to rerank
	rerankUnnamed    = "no_ids"     // hits lack ids, scores, versions or sequence numbers: the engine's order goes out
	rerankChanged    = "changed"    // a hit of the page has changed, or the page is not available: as above
	rerankUnreadable = "unreadable" // an answer is too long or cannot be read: the original is sent
	// rerankNotRemembered is for the mode auto: the engine's order goes out, or the
	// search is written as in the mode bm25. With embeddings it may be the order of
	// the other of the two.
	rerankNotRemembered = report.NotRemembered
)

// Outcomes of a search for hits to remember, values of the label "result".
const (
	rememberedHits = "remembered"
	rememberFailed = "failed"
)

// Outcomes of a search that is expanded, or expanded again, if it finds few
// hits, values of the label "result".
const (
	fewEnough   = "enough"   // the client gets its answer
	fewExpanded = "expanded" // it finds few hits, or was not expanded and does not say how many
	fewFailed   = "failed"   // it failed, at least on one shard
	fewUnread   = "unread"   // its answer cannot be read, or does not say how many
)

// Results of access checks, values of the label "result".
const (
	accessAllowed = "allowed"
	accessDenied  = "denied"
	accessNoIndex = "no_index"
	accessFailed  = "failed"
)

// ownHints tell operators what to do about the causes above.
var ownHints = map[string]string{
	causePanic:       "a mistake in akin: report it with the stack of the line \"panic\"",
	causeRejected:    "the cluster rejects what akin has changed and accepts the original: see its log, and akin's at level debug",
	causeUnchecked:   "answers are too long, or no JSON: failures of shards inside them go unseen",
	feedbackRefused:  "the cluster refuses the search for the first hits, or does not answer it: send it by itself, with akin=no-feedback",
	feedbackPartial:  "the search for the first hits timed out, or a shard of it failed: send it by itself, with akin=no-feedback",
	feedbackAnswer:   "the answer to the search for the first hits is too long, or of another shape",
	rerankUnnamed:    "hits need ids, scores, versions and sequence numbers to be ordered by the soft cosine",
	rerankChanged:    "documents change while they are searched for, or the cluster refuses the search for the hits of a page",
	rerankUnreadable: "answers are too long, or cannot be read: ask for fewer hits, or less of each",
}

// knownValues returns the known values of labels.
func knownValues(causes map[string]string) report.Values {
	return report.Values{
		Causes:      append(slices.Collect(maps.Keys(causes)), causePanic),
		Reasons:     reasons(),
		Reranked:    []string{rerankedHits, rerankNothing, rerankUnnamed, rerankChanged, rerankUnreadable, rerankNotRemembered},
		Feedback:    []string{feedbackUsed, feedbackNoHits, feedbackRefused, feedbackAnswer, feedbackPartial, feedbackNoTerms, feedbackBusy, feedbackTooMany},
		FollowUps:   []string{rememberedHits, rememberFailed},
		FewHits:     []string{fewEnough, fewExpanded, fewFailed, fewUnread},
		Found:       append(foundNames(), foundUnread),
		Originals:   []string{originalAccepted, originalRejected, originalNotSent},
		Authorizing: []string{accessAllowed, accessDenied, accessNoIndex, accessFailed},
	}
}

// reasons returns the proxy's own reasons not to rewrite a search.
func reasons() []string {
	return []string{
		reasonNothing, reasonTemplateOff, reasonDryRun, reasonShadow, reasonRejected, reasonPaused, reasonUndecided,
		reasonContentType, reasonEncoding, reasonTooLarge, reasonSlow, reasonMemory, reasonOff, reasonDisabled, reasonUnknownProfile, reasonEnoughHits,
		answer.HiddenByFilter, answer.HiddenByFormat,
		reasonParameters, reasonBody, reasonTooMany, reasonNotRendered,
	}
}
