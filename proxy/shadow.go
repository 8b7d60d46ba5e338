package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/report"
)

// sampled reports whether a search is shadowed. It must be harmless to send
// twice: one for a scroll opens a second context.
func sampled(share float64, m match, rawQuery string) bool {
	return strings.HasSuffix(m.shape, "/_search") && !answer.Has(rawQuery, "scroll") &&
		rand.Float64() < share //nolint:gosec // A sample, no secret.
}

// shadows compare the answers to searches, which clients get, with those to the
// same searches expanded.
type shadows struct {
	*background

	memory  *limits.Budget
	guard   *recovery.Guard
	metrics *report.Shadows
}

// place takes a slot, and memory for the bodies of a search. It returns nil
// where there is no room.
func (s *shadows) place(client string, plain, raw []byte) *limits.Hold {
	hold := s.memory.Hold(limits.Shadow, client)
	fits := max(len(plain), len(raw)) <= maxShadowed
	if fits && hold.Take(int64(len(plain)+len(raw))) && s.reserve() {
		return hold
	}
	hold.Release()
	s.metrics.Count(report.ShadowDropped)
	return nil
}

// An expandedSearch asks for the hits of a search that was expanded. took is
// the time until the cluster's answer began; the outcome is
// [report.ShadowCompared] where there are hits to compare.
type expandedSearch func(ctx context.Context) (hits topHits, took time.Duration, outcome string)

// compare compares the answer to an original search, which the cluster began to
// give after a time, with that to the expanded one. That is asked for when the
// client has the original's: neither waits for the other. hold is the place of
// the search.
func (s *shadows) compare(res *http.Response, err error, took time.Duration, hold *limits.Hold, expanded expandedSearch) {
	end := func(outcome string) {
		hold.Release()
		s.release()
		s.metrics.Count(outcome)
	}
	switch {
	case err != nil:
		end(report.ShadowUnanswered)
		return
	case res.StatusCode != http.StatusOK:
		end(report.ShadowRejected)
		return
	}
	header := res.Header.Clone()
	read := func(answer []byte, outcome string) {
		if outcome != "" {
			end(outcome)
			return
		}
		s.start(func(ctx context.Context) {
			outcome := report.ShadowFailed // where it panics
			_ = s.guard.Do("shadowing", func() error {
				outcome = s.run(ctx, header, answer, took, hold, expanded)
				return nil
			})
			if outcome == report.ShadowCompared || s.ctx.Err() == nil { // else it was cut off by the end of the server
				s.metrics.Count(outcome)
			}
		}, hold.Release)
	}
	res.Body = &keeper{ReadCloser: res.Body, hold: hold, closed: read, outcome: report.ShadowClientGone}
}

// run reads the answer to the original, and compares it with that to the
// expanded search.
func (s *shadows) run(ctx context.Context, h http.Header, answer []byte, took time.Duration, hold *limits.Hold, expanded expandedSearch) (outcome string) {
	original, err := readTopHits(h, answer, hold)
	switch {
	case err != nil:
		return shadowOutcome(err)
	case original.failures != nil:
		return report.ShadowRejected
	}
	hits, expandedTook, outcome := expanded(ctx)
	if outcome == report.ShadowCompared {
		compareHits(s.metrics, original, hits, took, expandedTook)
	}
	return outcome
}

// A keeper is an answer that keeps what is read of it, in memory of hold. When
// it is closed it hands that over, or else the outcome that says why it cannot.
type keeper struct {
	io.ReadCloser

	hold    *limits.Hold
	kept    bytes.Buffer
	length  int
	full    bool // not all of it is kept
	outcome string
	closed  func(answer []byte, outcome string)
}

// Read reads from the answer.
func (k *keeper) Read(p []byte) (int, error) {
	n, err := k.ReadCloser.Read(p)
	k.length += n
	if k.full = k.full || k.length > maxShadowed || !k.hold.Take(int64(n)); k.full {
		k.kept = bytes.Buffer{}
	} else {
		k.kept.Write(p[:n])
	}
	if errors.Is(err, io.EOF) {
		switch k.outcome = ""; {
		case k.length > maxShadowed:
			k.outcome = report.ShadowUnreadable
		case k.full:
			k.outcome = report.ShadowDropped
		}
	}
	return n, err
}

// Close closes the answer.
func (k *keeper) Close() error {
	if closed := k.closed; closed != nil {
		k.closed = nil
		closed(k.kept.Bytes(), k.outcome)
	}
	return k.ReadCloser.Close()
}
