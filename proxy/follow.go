package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/answer"
)

const (
	// restFactor times what a follow-up took, for each shard that was searched, is
	// the pause after it: all of them take at most a fifth of one of the cluster's
	// cores.
	restFactor = 4
	// restAfterFailure is the pause after one that failed.
	restAfterFailure = 30 * time.Second
)

// A follower runs one follow-up at a time, with pauses between them.
type follower struct {
	background *background
	rest       func(took time.Duration, shards int, err error) time.Duration

	mu   sync.Mutex
	next time.Time // the earliest start; far away while one runs
}

func newFollower() *follower {
	return &follower{background: newBackground(), rest: rest}
}

func rest(took time.Duration, shards int, err error) time.Duration {
	pause := time.Duration(max(shards, 1)) * took * restFactor
	if err != nil {
		pause = max(pause, restAfterFailure)
	}
	return pause
}

// begin reports whether a follow-up may run now, which then calls end.
func (f *follower) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if now.Before(f.next) || !f.background.reserve() {
		return false
	}
	f.next = now.Add(2 * backgroundTimeout)
	return true
}

func (f *follower) end(pause time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = time.Now().Add(pause)
}

// follow finds the hits that a search would have put in order if they were
// remembered, and has them remembered, in the background and as the client. It
// follows one search at a time, and drops the others.
func (s *Server) follow(x *search, e Expander) {
	res := x.report.Result
	if res == nil || x.report.AsItCame || s.reranking.reranker == nil {
		return
	}
	k := slices.IndexFunc(res.Parts, func(p expand.Part) bool { return p.FollowUp != nil })
	if k < 0 || !s.following.begin() {
		return
	}
	req := *res.Parts[k].FollowUp
	req.Body = slices.Clone(req.Body) // the client's may be used again
	from := x.from.later()
	if req.Allowed != nil {
		req.Allowed = s.access.checker(from, x.client.Name, x.asked)
	}
	pause := restAfterFailure
	s.following.background.start(func(ctx context.Context) {
		start, shards := time.Now(), 0
		err := s.guard.Do("remembering hits", func() (err error) {
			shards, err = s.remember(ctx, &req, e, s.calls.as(from, nil))
			return err
		})
		pause = s.following.rest(time.Since(start), shards, err)
		result := rememberedHits
		if err != nil {
			result = rememberFailed
			s.log.DebugContext(ctx, "hits were not remembered", "index", req.Index, "err", err)
		}
		s.metrics.FollowUps.WithLabelValues(result).Inc()
	}, func() { s.following.end(pause) })
}

// remember searches for the hits of a follow-up and has them remembered. It
// returns how many shards were searched.
func (s *Server) remember(ctx context.Context, req *expand.Request, e Expander, ask sender) (shards int, err error) {
	made, err := e.Expand(ctx, req)
	if err != nil {
		return 0, err
	}
	reranks := made.Reranks()
	if len(reranks) != 1 { // nothing is added, or the matrix has changed
		return 0, nil
	}
	status, text, err := ask(ctx, sideCall(expand.SideSearch{Index: req.Index, RawQuery: made.RawQuery, Body: made.Body}, ""))
	switch {
	case err != nil:
		return 0, err
	case status != http.StatusOK:
		return 0, fmt.Errorf("the search for hits to remember: status %d", status)
	}
	frames, err := answer.ReadFrames(text, expand.EndpointSearch, reranks)
	if err != nil {
		return 0, err
	}
	f := frames[0]
	if f == nil || !f.Named {
		return 0, errors.New("the answer does not name its hits")
	}
	return f.Shards, s.reranking.reranker.Remember(ctx, f.Rerank, f.Window())
}
