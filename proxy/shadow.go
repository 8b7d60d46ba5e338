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
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/report"
)

// sampled reports whether a search is shadowed. It must be harmless to send
// twice: a search for a scroll opens a second context.
func sampled(share float64, m match, rawQuery string) bool {
	return strings.HasSuffix(m.shape, "/_search") && !answer.Has(rawQuery, "scroll") &&
		rand.Float64() < share //nolint:gosec // A sample, no secret.
}

// shadowRoom reserves memory for the bodies of a search, or returns nil.
func shadowRoom(memory *limits.Budget, client string, plain, raw []byte) *limits.Hold {
	hold := memory.Hold(limits.Shadow, client)
	if max(len(plain), len(raw)) <= maxShadowed && hold.Take(int64(len(plain)+len(raw))) {
		return hold
	}
	hold.Release()
	return nil
}

// A keeper is an answer that keeps what is read of it, in memory of hold. Close
// hands that over, or the outcome that says why it cannot.
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
		k.outcome = ""
		switch {
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
	// overlapDepth is how many hits are compared, as many as most pages show.
	overlapDepth = 10
)

// errUnreadable says that an answer has no hits to compare.
var errUnreadable = errors.New("no hits to compare")

// shadowOutcome returns the outcome for an error of reading an answer.
func shadowOutcome(err error) string {
	switch {
	case errors.Is(err, limits.ErrNoRoom):
		return report.ShadowDropped
	case errors.Is(err, errUnreadable), errors.Is(err, limits.ErrTooLarge):
		return report.ShadowUnreadable
	}
	return report.ShadowUnanswered
}

// topHits is the part of an answer that is compared.
type topHits struct {
	total int64 // 0 if the answer does not say, as by -1 with track_total_hits=false
	first []hitID
}

// A hitID identifies a document.
type hitID struct {
	Index string `json:"_index"`
	ID    string `json:"_id"`
}

// readTopHits reads an answer, decompressed into memory of hold. It returns
// [errUnreadable] if there is no list of hits, and [limits.ErrNoRoom].
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
	if !hold.Take(int64(len(body))) { // decoded values are parts of it
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
	if totals, err := answer.ReadTotals(bytes.NewReader(body), expand.EndpointSearch); err == nil {
		hits.total = max(totals[0].Hits, 0)
	}
	return hits, nil
}

// firstHits are the first overlapDepth hits: all could take much more memory.
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

// compared returns how the answers to the original and the expanded search
// differ. The cluster began them after the given times.
func compared(original, expanded topHits, originalTook, expandedTook time.Duration) report.Shadow {
	told := report.Shadow{
		Outcome:  report.ShadowCompared,
		Original: report.ShadowAnswer{Took: originalTook, Hits: original.total, Empty: len(original.first) == 0},
		Expanded: report.ShadowAnswer{Took: expandedTook, Hits: expanded.total, Empty: len(expanded.first) == 0},
	}
	told.Overlap, told.Overlaps = overlap(original, expanded)
	return told
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

const (
	// maxInBackground limits the searches with a shadow, and with maxShadowed
	// their memory, and the scrolls to be cleared.
	maxInBackground = 32
	// backgroundWorkers limits how many of those run at a time.
	backgroundWorkers = 4
	// backgroundTimeout is the time limit of each.
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

// reserve takes a slot if one is free.
func (b *background) reserve() bool { return b.slots.Take() }

// release gives back a slot that is not used.
func (b *background) release() { b.slots.Give() }

// start runs f in the reserved slot as soon as a worker is free. It calls done
// at the end, even if f does not run.
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
		if b.workers.Wait(b.ctx) != nil { // the server closes
			return
		}
		defer b.workers.Give()
		ctx, cancel := context.WithTimeout(b.ctx, backgroundTimeout)
		defer cancel()
		f(ctx)
	})
}

// close cancels what runs and waits for it.
func (b *background) close() {
	b.mu.Lock()
	b.cancel()
	b.mu.Unlock()
	b.running.Wait()
}
