package report

import "github.com/prometheus/client_golang/prometheus"

// The searches that are compared, values of the label "search".
const (
	ShadowOriginal = "original"
	ShadowExpanded = "expanded"
)

// What became of a search to be shadowed, values of the label "outcome".
const (
	ShadowCompared   = "compared"
	ShadowDropped    = "dropped"     // all slots or all memory was taken, or the body is too long
	ShadowClientGone = "client_gone" // the client did not read the original's answer to its end
	ShadowUnchanged  = "unchanged"   // nothing would have been added
	ShadowFailed     = "failed"      // the expansion failed, or took too long
	ShadowRejected   = "rejected"    // the cluster refused the original or the shadow, wholly or on some shards
	ShadowUnanswered = "unanswered"  // no node answered, or not in time
	ShadowUnreadable = "unreadable"  // an answer is too long, or shows no hits
)

// ShadowOutcomes are all of them.
var ShadowOutcomes = []string{ShadowCompared, ShadowDropped, ShadowClientGone, ShadowUnchanged, ShadowFailed, ShadowRejected, ShadowUnanswered, ShadowUnreadable}

// Shadows tell how expanded searches differ from the original ones.
type Shadows struct {
	Searches *prometheus.CounterVec // by outcome
	// By search: original or expanded.
	Hits, Empty *prometheus.CounterVec
	Took        *prometheus.HistogramVec
	Overlap     prometheus.Observer
}

// Count counts what became of a search.
func (s *Shadows) Count(outcome string) { s.Searches.WithLabelValues(outcome).Inc() }
