package proxy

import (
	"context"
	"time"

	"github.com/akin-search/akin/proxy/health"
)

const (
	// watchEvery is how often the state is looked at where nobody asks for
	// /readyz, so that log and metrics tell of it, too.
	watchEvery = 10 * time.Second
)

// What fails open, for the log.
const (
	failedSearch = "search"  // it is sent as it came
	failedRerank = "ranking" // its hits stay in the engine's order
)

// Causes of failing open that are not errors of the expander.
const (
	causePanic     = "panic"
	causeRefused   = "rejected"  // the cluster refused the rewritten search and took the original
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

// condition returns the state of the process, and tells log and metrics of it.
// Where ctx ends before it is known, it is not ready.
func (s *Server) condition(ctx context.Context) (c health.Condition) {
	if s.opts.Check != nil {
		c = s.opts.Check(ctx)
	}
	if s.draining.Load() {
		c.NotReady = append([]string{"shutting down"}, c.NotReady...)
	}
	c.Degraded = s.health.Tell(ctx, c.Degraded)
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
			s.health.Over(ctx)
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
		s.health.FailedOpen(ctx, what, cause, x.index)
	}
}

// searched counts a search when it is known what became of it.
func (s *Server) searched(x *search) {
	if x.failedOpen || x.rewritten != nil {
		s.health.Searched(x.failedOpen)
	}
}
