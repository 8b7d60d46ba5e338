// Package health knows what keeps searches from being expanded, and tells log
// and metrics of it: at once, as a number while it lasts, and when it is over.
package health

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
)

const (
	// failWindow is the time over which the share of searches that failed open is
	// counted, the time between two log lines on one cause, and the time without
	// a failure after which the cause is over.
	failWindow = time.Minute
	// More than one in failShare of at least failSearches searches in failWindow
	// is more than bad luck: the state is degraded. Fewer searches say too little.
	failShare    = 10
	failSearches = 20
)

// The reasons of a [Degradation], values of the label of akin_degraded.
const (
	// Credentials: the cluster refuses akin's own calls with 401 or 403.
	Credentials = "credentials"
	// Throttled: it answers them with 429.
	Throttled = "throttled"
	// Calls: they fail in another way.
	Calls = "cluster_calls"
	// Matrix: a matrix has no version, or its source is not sound.
	Matrix = "matrix"
	// Weights: the same of term weights, or the mode hard has none.
	Weights = "weights"
	// Reload: the configuration could not be loaded again.
	Reload = "reload"
	// FailingOpen: too many searches fail open.
	FailingOpen = "failing_open"
)

// degradations are all reasons of a [Degradation].
var degradations = []string{
	Credentials, Throttled, Calls, Matrix, Weights, Reload, FailingOpen,
}

// A Degradation is something that keeps akin from expanding searches as it is
// configured to. They are forwarded all the same.
type Degradation struct {
	// Reason is one of the constants.
	Reason string
	// Detail says more to a person. It goes into the log and the answer of
	// /readyz, so it must hold no secret and no text of a search.
	Detail string
}

// A Condition is the state of a process.
type Condition struct {
	// NotReady says why requests should go to another process; nothing where they
	// are forwarded.
	NotReady []string
	// Degraded says what else is wrong.
	Degraded []Degradation
}

// Health knows which requests failed open of late, and the state that was told
// last. Its methods may be called concurrently.
type Health struct {
	log   atomic.Pointer[slog.Logger] // of the server in use
	hints map[string]string           // by cause
	// Gauge is akin_degraded.
	Gauge *prometheus.GaugeVec

	mu      sync.Mutex
	failing map[failure]*failing
	seconds [int(failWindow / time.Second)]second
	told    map[string]bool // the reasons that the log knows of
}

// A failure is a way of failing open.
type failure struct{ what, cause string }

// failing is what is known of a failure that lasts. count is of all, untold of
// those since the last line in the log.
type failing struct {
	since, last, told time.Time
	count, untold     int
}

// A second counts the searches that were to be rewritten in one second.
type second struct {
	unix           int64
	searches, open int
}

// New returns a health that tells log. hints say by cause what an operator can
// do about it.
func New(log *slog.Logger, hints map[string]string) *Health {
	h := &Health{
		hints: hints, failing: map[failure]*failing{}, told: map[string]bool{},
		Gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "akin_degraded",
			Help: "1 where something keeps searches from being expanded, by what that is. They are forwarded all the same.",
		}, []string{"reason"}),
	}
	h.SetLog(log)
	for _, reason := range degradations {
		h.Gauge.WithLabelValues(reason)
	}
	return h
}

// SetLog has the log of the server in use told from now on.
func (h *Health) SetLog(log *slog.Logger) { h.log.Store(log) }

// FailedOpen notes one failure. The first one of a kind is logged at once, the
// others as a number once in failWindow.
func (h *Health) FailedOpen(ctx context.Context, what, cause, index string) {
	now := time.Now()
	h.mu.Lock()
	f := h.failing[failure{what, cause}]
	first := f == nil
	if first {
		f = &failing{since: now, told: now}
		h.failing[failure{what, cause}] = f
	} else {
		f.untold++
	}
	f.count++
	f.last = now
	untold := f.due(now)
	h.mu.Unlock()
	switch {
	case first:
		h.log.Load().WarnContext(ctx, "failing open", "what", what, "cause", cause, "index", index, "hint", h.hints[cause])
	case untold > 0:
		h.stillFailing(ctx, failure{what, cause}, untold)
	}
}

// due returns how many failures are to be told now, 0 where none are or the
// last line is too recent.
func (f *failing) due(now time.Time) (untold int) {
	if now.Sub(f.told) < failWindow {
		return 0
	}
	f.told, untold, f.untold = now, f.untold, 0
	return untold
}

func (h *Health) stillFailing(ctx context.Context, f failure, count int) {
	h.log.Load().WarnContext(ctx, "still failing open", "what", f.what, "cause", f.cause, "count", count)
}

// Over logs which failures have ended, and how many were not told yet.
func (h *Health) Over(ctx context.Context) {
	now := time.Now()
	untold, ended := map[failure]int{}, map[failure]failing{}
	h.mu.Lock()
	for what, f := range h.failing {
		if now.Sub(f.last) >= failWindow {
			ended[what] = *f
			delete(h.failing, what)
		} else if n := f.due(now); n > 0 {
			untold[what] = n
		}
	}
	h.mu.Unlock()
	for what, n := range untold {
		h.stillFailing(ctx, what, n)
	}
	for what, f := range ended {
		h.log.Load().InfoContext(ctx, "no longer failing open", "what", what.what, "cause", what.cause,
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

// degraded returns what the failures of late say: too many of all, or of a
// cause that is a degradation by itself.
func (h *Health) degraded() (all []Degradation) {
	now := time.Now()
	searches, open := 0, 0
	h.mu.Lock()
	defer h.mu.Unlock()
	causes := make([]string, 0, len(h.failing))
	for _, s := range h.seconds {
		if now.Unix()-s.unix < int64(len(h.seconds)) {
			searches, open = searches+s.searches, open+s.open
		}
	}
	for f, last := range h.failing {
		switch {
		case now.Sub(last.last) >= failWindow:
			continue
		case slices.Contains(degradations, f.cause):
			all = append(all, Degradation{f.cause, "searches fail open for it"})
		}
		causes = append(causes, f.cause)
	}
	if searches >= failSearches && open*failShare > searches {
		slices.Sort(causes)
		all = append(all, Degradation{FailingOpen, fmt.Sprintf("%d of %d searches in the last minute; causes: %s",
			open, searches, strings.Join(slices.Compact(causes), ", "))})
	}
	return all
}

// Tell adds to all what the failures of late say and returns it in the order of
// the reasons. It sets the metric and logs what has changed since the last
// call. There may be several degradations for one reason.
func (h *Health) Tell(ctx context.Context, all []Degradation) []Degradation {
	all = append(all, h.degraded()...)
	slices.SortStableFunc(all, func(a, b Degradation) int {
		return cmp.Compare(slices.Index(degradations, a.Reason), slices.Index(degradations, b.Reason))
	})
	all = slices.Compact(all)
	now := map[string]string{}
	for _, d := range all {
		if _, ok := now[d.Reason]; !ok {
			now[d.Reason] = d.Detail
		}
	}
	var begun, ended []string
	h.mu.Lock()
	for _, reason := range degradations {
		_, is := now[reason]
		value := 0.0
		if is {
			value = 1
		}
		h.Gauge.WithLabelValues(reason).Set(value)
		switch {
		case is && !h.told[reason]:
			begun = append(begun, reason)
		case !is && h.told[reason]:
			ended = append(ended, reason)
		}
		h.told[reason] = is
	}
	h.mu.Unlock()
	for _, reason := range begun {
		h.log.Load().WarnContext(ctx, "degraded", "reason", reason, "detail", now[reason])
	}
	for _, reason := range ended {
		h.log.Load().InfoContext(ctx, "no longer degraded", "reason", reason)
	}
	return all
}
