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

func (r registering) shadow() Shadows {
	both := []string{ShadowOriginal, ShadowExpanded}
	took := r.times("akin_shadow_duration_seconds", "Time until the cluster's answer began.", 1e-3, 2, "search")
	for _, search := range both {
		took.WithLabelValues(search)
	}
	return Shadows{
		Searches: r.by("outcome", ShadowOutcomes, "akin_shadow_searches_total",
			"Searches chosen to be sent in their expanded form, too (shadow mode), by outcome; all other shadow metrics are of those compared."),
		Hits:  r.by("search", both, "akin_shadow_hits_total", "Sum of the total hits that the cluster reported."),
		Empty: r.by("search", both, "akin_shadow_empty_pages_total", "Answers without hits."),
		Took:  took,
		Overlap: r.NewHistogram(prometheus.HistogramOpts{
			Name: "akin_shadow_overlap_at_10", Help: "Share of the first ten hits that the original and the expanded search have in common.",
			Buckets: []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1},
		}),
	}
}
