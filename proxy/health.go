package proxy

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// watchEvery is how often the state is looked at where nobody asks for
	// /readyz, so that log and metrics tell of it, too.
	watchEvery = 10 * time.Second
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
	// DegradedCredentials: the cluster refuses akin's own calls with 401 or 403.
	DegradedCredentials = "credentials"
	// DegradedThrottled: it answers them with 429.
	DegradedThrottled = "throttled"
	// DegradedCalls: they fail in another way.
	DegradedCalls = "cluster_calls"
	// DegradedMatrix: a matrix has no version, or its source is not sound.
	DegradedMatrix = "matrix"
	// DegradedWeights: the same of term weights, or the mode hard has none.
	DegradedWeights = "weights"
	// DegradedReload: the configuration could not be loaded again.
	DegradedReload = "reload"
	// DegradedFailingOpen: too many searches fail open.
	DegradedFailingOpen = "failing_open"
)

// degradations are all reasons of a [Degradation].
var degradations = []string{
	DegradedCredentials, DegradedThrottled, DegradedCalls, DegradedMatrix, DegradedWeights, DegradedReload, DegradedFailingOpen,
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

// What fails open, for the log.
const (
	failedSearch = "search"  // it is sent as it came
	failedRerank = "ranking" // its hits stay in the engine's order
)

// Causes of failing open that are not errors of the expander.
const (
	causePanic     = "panic"
	causeRefused   = "refused"   // the cluster refused the rewritten search and took the original
	causeUnchecked = "unchecked" // the answer to a rewritten search could not be looked at
)

// ownHints say what an operator can do about the causes that the proxy knows
// itself.
var ownHints = map[string]string{
	causePanic:       "a mistake in akin: report it with the stack of the line \"panic\"",
	causeRefused:     "the cluster refuses what akin has changed and takes the original: see its log, and akin's at level debug",
	causeUnchecked:   "answers are too long, or no JSON: failures of shards inside them go unseen",
	rerankUnnamed:    "hits need ids, scores, versions and sequence numbers to be ordered by the soft cosine",
	rerankUnreadable: "answers are too long, or cannot be cut to the client's page: ask for fewer hits, or less of each",
}

// health knows which requests failed open of late, and the state that was told
// last.
type health struct {
	log   atomic.Pointer[slog.Logger] // of the server in use
	hints map[string]string           // by cause
	gauge *prometheus.GaugeVec

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

func newHealth(o *Options) *health {
	h := &health{
		hints: maps.Clone(ownHints), failing: map[failure]*failing{}, told: map[string]bool{},
		gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "akin_degraded",
			Help: "1 where something keeps searches from being expanded, by what that is. They are forwarded all the same.",
		}, []string{"reason"}),
	}
	h.log.Store(o.Logger)
	maps.Copy(h.hints, o.Causes)
	for _, reason := range degradations {
		h.gauge.WithLabelValues(reason)
	}
	return h
}

// failedOpen notes one failure. The first one of a kind is logged at once, the
// others as a number once in failWindow.
func (h *health) failedOpen(ctx context.Context, what, cause, index string) {
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

func (h *health) stillFailing(ctx context.Context, f failure, count int) {
	h.log.Load().WarnContext(ctx, "still failing open", "what", f.what, "cause", f.cause, "count", count)
}

// over logs which failures have ended, and how many were not told yet.
func (h *health) over(ctx context.Context) {
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

// searched counts a search that was to be rewritten, open if it failed open.
func (h *health) searched(open bool) {
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
func (h *health) degraded() (all []Degradation) {
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
		all = append(all, Degradation{DegradedFailingOpen, fmt.Sprintf("%d of %d searches in the last minute; causes: %s",
			open, searches, strings.Join(slices.Compact(causes), ", "))})
	}
	return all
}

// tell sets the metric and logs what has changed since the last call. There may
// be several degradations for one reason.
func (h *health) tell(ctx context.Context, all []Degradation) {
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
		h.gauge.WithLabelValues(reason).Set(value)
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
}

// condition returns the state of the process, and tells log and metrics of it.
// Where ctx ends before it is known, it is not ready.
func (s *Server) condition(ctx context.Context) (c Condition) {
	if s.opts.Check != nil {
		c = s.opts.Check(ctx)
	}
	if s.draining.Load() {
		c.NotReady = append([]string{"shutting down"}, c.NotReady...)
	}
	c.Degraded = append(c.Degraded, s.health.degraded()...)
	slices.SortStableFunc(c.Degraded, func(a, b Degradation) int {
		return cmp.Compare(slices.Index(degradations, a.Reason), slices.Index(degradations, b.Reason))
	})
	c.Degraded = slices.Compact(c.Degraded)
	s.health.tell(ctx, c.Degraded)
	return c
}

// watch looks at the state until ctx ends.
func (f *Front) watch(ctx context.Context) {
	ticks := time.NewTicker(watchEvery)
	defer ticks.Stop()
	for {
		s := f.server()
		bounded, cancel := context.WithTimeout(ctx, readyTimeout)
		_ = s.guard.Do("watching the state", func() error {
			s.condition(bounded)
			s.health.over(ctx)
			return nil
		})
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// failedOpen notes that a search, or one of several in a request, failed open.
// Where ctx, that of the client's request, has ended there is nobody whom it
// would matter to.
func (s *Server) failedOpen(ctx context.Context, x *search, what, cause string) {
	if ctx.Err() == nil {
		x.failedOpen = true
		s.health.failedOpen(ctx, what, cause, x.index)
	}
}

// searched counts a search when it is known what became of it.
func (s *Server) searched(x *search) {
	if x.failedOpen || x.rewritten != nil {
		s.health.searched(x.failedOpen)
	}
}
