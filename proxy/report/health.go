package report

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const (
	// failWindow is the time over which failing searches are counted, between two
	// log lines on one cause, and without a failure until the cause is over.
	failWindow = time.Minute
	// The state is degraded if more than one in failShare fail, of failSearches.
	failShare    = 10
	failSearches = 20
)

// Reasons of a [Degradation], values of the label of akin_degraded.
const (
	Credentials = "credentials"   // the cluster refuses akin's own calls with 401 or 403
	Throttled   = "throttled"     // it answers them with 429
	Calls       = "cluster_calls" // they fail in another way
	Matrix      = "matrix"        // a matrix has no version, or its source has a problem
	Weights     = "weights"       // the same for term weights, or the mode hard has none
	Model       = "model"         // the language model that orders hits does not answer, or nothing keeps its vectors
	Reload      = "reload"        // the configuration could not be reloaded
	Paused      = "paused"        // the cluster refuses rewritten searches
	FailingOpen = "failing_open"  // too many searches fail open
)

// degradations are all of them.
var degradations = []string{Credentials, Throttled, Calls, Matrix, Weights, Model, Reload, Paused, FailingOpen}

// A Degradation keeps akin from expanding searches as configured.
type Degradation struct {
	// Reason is one of the constants.
	Reason string
	// Detail is for log and /readyz. It has no secret and no text of a search.
	Detail string
}

// A Condition is the state of a process.
type Condition struct {
	// NotReady says why requests should go to another process.
	NotReady []string
	// Degraded says what else is wrong.
	Degraded []Degradation
	// Remembered says how much of each index the warm-up has read, and Embedded
	// how many documents it has given a vector of a language model; nil before.
	Remembered, Embedded []Remembered
}

// Remembered is how many documents of an index the warm-up has read, of all.
type Remembered struct {
	Index     string `json:"index"`
	Documents int    `json:"documents"`
	Of        int64  `json:"of"`
	// Bytes is what all of them take in memory, 0 if that is unknown.
	Bytes int64 `json:"bytes,omitempty"`
}

// Health tracks which searches failed open recently, and the last reported
// state. Its methods may be called concurrently.
type Health struct {
	log   atomic.Pointer[slog.Logger] // of the current server
	hints map[string]string           // by cause
	gauge *prometheus.GaugeVec

	mu      sync.Mutex
	failing map[failure]*failing
	seconds [int(failWindow / time.Second)]second

	reporting sync.Mutex
	reported  map[string]bool // the reasons already logged
}

// A failure is a way of failing open.
type failure struct{ what, cause string }

// failing is a failure that goes on; unlogged counts since the last log line.
type failing struct {
	since, last, logged time.Time
	count, unlogged     int
}

// A second counts, for one second, the searches that were to be rewritten.
type second struct {
	unix           int64
	searches, open int
}

// NewHealth returns a health that logs to log, with hints by cause. It panics
// if the registry has a metric of the same name.
func NewHealth(registry prometheus.Registerer, log *slog.Logger, hints map[string]string) *Health {
	h := &Health{
		hints: hints, failing: map[failure]*failing{}, reported: map[string]bool{},
		gauge: promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{
			Name: "akin_degraded",
			Help: "1 where something keeps searches from being expanded, by what that is. They are forwarded all the same.",
		}, []string{"reason"}),
	}
	h.SetLog(log)
	for _, reason := range degradations {
		h.gauge.WithLabelValues(reason)
	}
	return h
}

// SetLog sets the log, that of the current server.
func (h *Health) SetLog(log *slog.Logger) { h.log.Store(log) }

// FailedOpen records a failure. The first of a kind is logged at once, the
// others as a number once per failWindow.
func (h *Health) FailedOpen(ctx context.Context, what, cause, index string) {
	now, way := time.Now(), failure{what, cause}
	h.mu.Lock()
	f, known := h.failing[way]
	if !known {
		f = &failing{since: now, logged: now}
		h.failing[way] = f
	} else {
		f.unlogged++
	}
	f.count++
	f.last = now
	count := f.due(now)
	h.mu.Unlock()
	if !known {
		h.log.Load().WarnContext(ctx, "failing open", "what", what, "cause", cause, "index", index, "hint", h.hints[cause])
	}
	h.stillFailing(ctx, way, count)
}

// due returns how many failures are to be logged now.
func (f *failing) due(now time.Time) (count int) {
	if now.Sub(f.logged) >= failWindow {
		count = f.unlogged
		f.unlogged = 0
		f.logged = now
	}
	return count
}

func (h *Health) stillFailing(ctx context.Context, f failure, count int) {
	if count > 0 {
		h.log.Load().WarnContext(ctx, "still failing open", "what", f.what, "cause", f.cause, "count", count)
	}
}

// Over logs the failures that have ended, and counts not yet logged.
func (h *Health) Over(ctx context.Context) {
	now := time.Now()
	last, ended := map[failure]int{}, map[failure]failing{}
	h.mu.Lock()
	for way, f := range h.failing {
		if now.Sub(f.last) >= failWindow {
			ended[way] = *f
			delete(h.failing, way)
		} else {
			last[way] = f.due(now)
		}
	}
	h.mu.Unlock()
	for way, count := range last {
		h.stillFailing(ctx, way, count)
	}
	for way, f := range ended {
		h.log.Load().InfoContext(ctx, "no longer failing open", "what", way.what, "cause", way.cause,
			"count", f.count, "duration", f.last.Sub(f.since).Round(time.Millisecond))
	}
}

// Searched counts a search that was to be rewritten, open if it failed open.
func (h *Health) Searched(open bool) {
	now := time.Now().Unix()
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &h.seconds[now%int64(len(h.seconds))]
	if s.unix != now {
		*s = second{unix: now}
	}
	s.searches++
	if open {
		s.open++
	}
}

// degraded returns what recent failures show: too many in all, or a cause that
// is a degradation by itself.
func (h *Health) degraded() (all []Degradation) {
	now := time.Now()
	searches, open := 0, 0
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.seconds {
		if now.Unix()-s.unix < int64(len(h.seconds)) {
			searches, open = searches+s.searches, open+s.open
		}
	}
	var causes []string
	for way, f := range h.failing {
		if now.Sub(f.last) < failWindow {
			causes = append(causes, way.cause)
			if slices.Contains(degradations, way.cause) {
				all = append(all, Degradation{way.cause, "searches fail open for it"})
			}
		}
	}
	if searches >= failSearches && open*failShare > searches {
		slices.Sort(causes)
		all = append(all, Degradation{FailingOpen, fmt.Sprintf("%d of %d searches in the last minute; causes: %s",
			open, searches, strings.Join(slices.Compact(causes), ", "))})
	}
	return all
}

// Report adds recent failures to all and sorts it by reason. It sets the metric
// and logs changes since the last call.
func (h *Health) Report(ctx context.Context, all []Degradation) []Degradation {
	all = append(all, h.degraded()...)
	slices.SortStableFunc(all, func(a, b Degradation) int {
		return cmp.Compare(slices.Index(degradations, a.Reason), slices.Index(degradations, b.Reason))
	})
	all = slices.Compact(all)
	h.reporting.Lock()
	defer h.reporting.Unlock()
	for _, reason := range degradations {
		at := slices.IndexFunc(all, func(d Degradation) bool { return d.Reason == reason })
		switch was := h.reported[reason]; {
		case at >= 0 && !was:
			h.gauge.WithLabelValues(reason).Set(1)
			h.log.Load().WarnContext(ctx, "degraded", "reason", reason, "detail", all[at].Detail)
		case at < 0 && was:
			h.gauge.WithLabelValues(reason).Set(0)
			h.log.Load().InfoContext(ctx, "no longer degraded", "reason", reason)
		}
		h.reported[reason] = at >= 0
	}
	return all
}
