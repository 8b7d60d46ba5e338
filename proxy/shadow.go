package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/jsonspan"
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
// the search, and done is called at its end.
func (s *shadows) compare(res *http.Response, err error, took time.Duration, hold *limits.Hold, expanded expandedSearch, done func()) {
	end := func(outcome string) {
		done()
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
		}, done)
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
		noteAnswer(s.metrics, report.ShadowOriginal, original, took)
		noteAnswer(s.metrics, report.ShadowExpanded, hits, expandedTook)
		if share, ok := overlap(original, hits); ok {
			s.metrics.Overlap.Observe(share)
		}
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

const (
	// maxShadowed is the longest answer that is compared: 1000 hits of 1 KiB.
	maxShadowed = 1 << 20
	// overlapDepth is the number of hits that are compared, what most pages show.
	overlapDepth = 10
)

// errUnreadable says that an answer shows no hits to compare.
var errUnreadable = errors.New("no hits to compare")

// shadowOutcome returns what an error of reading an answer means.
func shadowOutcome(err error) string {
	switch {
	case errors.Is(err, limits.ErrNoRoom):
		return report.ShadowDropped
	case errors.Is(err, errUnreadable), errors.Is(err, limits.ErrTooLarge):
		return report.ShadowUnreadable
	}
	return report.ShadowUnanswered
}

// topHits are what is compared of an answer.
type topHits struct {
	total int64 // 0 where the answer does not say, as by -1 with track_total_hits=false
	first []hitID
	// failures are those of shards that count, nil where there are none.
	failures *answer.Failure
}

// A hitID names a document.
type hitID struct {
	Index string `json:"_index"`
	ID    string `json:"_id"`
}

// readTopHits reads an answer, decompressed into memory of hold. It returns
// [errUnreadable] where it lists no hits, and [limits.ErrNoRoom].
func readTopHits(h http.Header, body []byte, hold *limits.Hold) (hits topHits, err error) {
	switch coding, known := answer.ContentEncoding(h); {
	case !known:
		return hits, errUnreadable
	case coding != "":
		if body, err = new(limits.Gunzip).Read(body, hold, maxShadowed); errors.Is(err, limits.ErrNoRoom) {
			return hits, err
		} else if err != nil {
			return hits, errUnreadable
		}
	}
	if !hold.Take(int64(len(body))) { // what is decoded are parts of it
		return hits, limits.ErrNoRoom
	}
	var page struct {
		Hits *struct {
			Hits firstHits `json:"hits"`
		} `json:"hits"`
	}
	if err := json.Unmarshal(body, &page); err != nil || page.Hits == nil || page.Hits.Hits == nil {
		return hits, errUnreadable
	}
	hits.first = page.Hits.Hits
	hits.failures, _, _ = answer.ReadSearch(bytes.NewReader(body)) // it is JSON
	if totals, err := answer.ReadTotals(bytes.NewReader(body), expand.EndpointSearch); err == nil {
		hits.total = max(totals[0].Hits, 0)
	}
	return hits, nil
}

// firstHits are the first overlapDepth: all could take much more than their
// text.
type firstHits []hitID

// UnmarshalJSON implements [json.Unmarshaler].
func (f *firstHits) UnmarshalJSON(list []byte) error {
	*f = firstHits{}
	var r jsonspan.Reader
	r.Reset(list, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return r.List(func(int) error {
		hit, err := r.Value()
		if err != nil || len(*f) == overlapDepth {
			return err
		}
		*f = append(*f, hitID{})
		return json.Unmarshal(hit.Of(list), &(*f)[len(*f)-1])
	})
}

// overlap returns the share of common hits in the longer list, false for none.
func overlap(a, b topHits) (share float64, ok bool) {
	both := 0
	for _, id := range b.first {
		if slices.Contains(a.first, id) {
			both++
		}
	}
	longer := max(len(a.first), len(b.first))
	return float64(both) / float64(max(longer, 1)), longer > 0
}

func noteAnswer(m *report.Shadows, search string, hits topHits, took time.Duration) {
	m.Took.WithLabelValues(search).Observe(took.Seconds())
	m.Hits.WithLabelValues(search).Add(float64(hits.total))
	if len(hits.first) == 0 {
		m.Empty.WithLabelValues(search).Inc()
	}
}

const (
	// maxInBackground bounds the searches with a shadow, and with maxShadowed their
	// memory, and the scrolls to be cleared.
	maxInBackground = 32
	// backgroundWorkers bounds those that the cluster is asked for at a time.
	backgroundWorkers = 4
	// backgroundTimeout ends one that nobody would have waited for.
	backgroundTimeout = 30 * time.Second
)

// A background owns goroutines that no client waits for, for concurrent use.
type background struct {
	ctx            context.Context //nolint:containedctx // Ends with the server; the client's ends with its answer.
	cancel         context.CancelFunc
	slots, workers *limits.Places

	mu      sync.Mutex // held to start and to close
	running sync.WaitGroup
}

func newBackground() *background {
	b := &background{slots: limits.NewPlaces(maxInBackground), workers: limits.NewPlaces(backgroundWorkers)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// reserve takes a slot, if one is free.
func (b *background) reserve() bool { return b.slots.Take() }

// release gives a slot back in which nothing will run.
func (b *background) release() { b.slots.Give() }

// start runs f, as soon as there is a worker, with the slot that was reserved
// for it, and calls done at the end, also where f does not run.
func (b *background) start(f func(ctx context.Context), done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil {
		b.release()
		done()
		return
	}
	b.running.Go(func() {
		defer done()
		defer b.release()
		if b.workers.Wait(b.ctx) != nil { // the server ends
			return
		}
		defer b.workers.Give()
		ctx, cancel := context.WithTimeout(b.ctx, backgroundTimeout)
		defer cancel()
		f(ctx)
	})
}

// close cuts off what runs and waits for its end.
func (b *background) close() {
	b.mu.Lock()
	b.cancel()
	b.mu.Unlock()
	b.running.Wait()
}
