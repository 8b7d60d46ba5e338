package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/akin-search/akin/internal/budget"
)

// Bounds of what runs beside the clients' searches.
const (
	// shadowSlots bounds the searches that wait for their shadow, from when they
	// are sent; with maxShadowAnswer, which bounds their bodies, too, it bounds
	// the memory for them.
	shadowSlots = 32
	// shadowWorkers bounds the shadows that are expanded, and that the cluster is
	// asked for, at a time.
	shadowWorkers = 4
	// shadowTimeout ends one that nobody would have waited for.
	shadowTimeout = 30 * time.Second
	// maxShadowAnswer is the longest answer that is compared: 1000 hits of 1 KiB.
	maxShadowAnswer = 1 << 20
	// overlapDepth is the number of hits that are compared, what most pages show.
	overlapDepth = 10
)

// What became of a search that was to have a shadow, values of the label
// "outcome".
const (
	shadowCompared   = "compared"
	shadowDropped    = "dropped"    // all slots or all memory was taken, or the body is too long
	shadowCutOff     = "cut_off"    // the client did not read the original's answer to its end
	shadowLeftAlone  = "left_alone" // nothing would have been added
	shadowFailed     = "failed"     // the expansion failed, or took too long
	shadowRefused    = "refused"    // the cluster refused the original or the shadow, wholly or on some shards
	shadowUnanswered = "unanswered" // no node answered, or not in time
	shadowUnreadable = "unreadable" // an answer is too long, or shows no hits
)

// errUnreadable says that an answer shows no hits to compare.
var errUnreadable = errors.New("no hits to compare")

// A background owns the goroutines in which something runs that no client waits
// for, such as expanded searches after the original ones whose answers the
// clients got.
type background struct {
	ctx     context.Context //nolint:containedctx // Ends with the server; the client's ends with its answer.
	cancel  context.CancelFunc
	slots   chan struct{}
	workers chan struct{}

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

func newBackground() *background {
	x := &background{slots: make(chan struct{}, shadowSlots), workers: make(chan struct{}, shadowWorkers)}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x
}

// reserve takes a slot, if one is free.
func (x *background) reserve() bool {
	select {
	case x.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (x *background) release() { <-x.slots }

// start runs f, as soon as there is a worker, with the slot that was reserved
// for it, and calls done at the end, also where f does not run.
func (x *background) start(f func(ctx context.Context), done func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		x.release()
		done()
		return
	}
	x.running.Go(func() {
		defer done()
		defer x.release()
		select {
		case <-x.ctx.Done():
			return
		case x.workers <- struct{}{}:
		}
		defer func() { <-x.workers }()
		ctx, cancel := context.WithTimeout(x.ctx, shadowTimeout)
		defer cancel()
		f(ctx)
	})
}

// close cuts off what runs and waits for its end.
func (x *background) close() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.cancel()
	x.running.Wait()
}

// A shadowed is a search that is to be expanded and sent once more.
type shadowed struct {
	match    match
	expander Expander
	body     []byte // decompressed
}

// sampled says whether a search is one of the share that gets a shadow. It must
// be a plain one, which can be sent twice: one for a scroll opens a second
// context, which nobody would close.
func (s *Server) sampled(m match, rawQuery string) bool {
	plain := strings.HasSuffix(m.shape, "/_search")
	cutParameters(rawQuery, func(name, _ string) bool {
		plain = plain && name != "scroll"
		return false
	})
	return plain && rand.Float64() < s.opts.Shadow //nolint:gosec // A sample, no secret.
}

// shadow sends the original search of ex, whose answer the client gets as it
// is, and has it expanded and sent once more when the client has that: neither
// waits for the other. So the shadow finds the cluster a little warmer.
func (s *Server) shadow(out *http.Request, ex *exchange) (*http.Response, error) {
	var again *http.Request
	held := s.opts.Memory.Hold(budget.Shadow, ex.client)
	fits := max(len(ex.shadow.body), len(ex.original)) <= maxShadowAnswer
	if fits && held.Take(int64(len(ex.shadow.body)+len(ex.original))) && s.shadows.reserve() {
		again = out.Clone(s.shadows.ctx) // not the client's, which ends with its answer
		again.Body = nil
	} else {
		held.Release()
		s.metrics.shadowSearches.WithLabelValues(shadowDropped).Inc()
	}
	if ex.read {
		setBody(out, ex.original)
	}
	start := time.Now()
	res, err := s.upstream.RoundTrip(out)
	took := time.Since(start)
	switch {
	case again == nil:
	case err != nil:
		s.endShadow(held, shadowUnanswered)
	case res.StatusCode != http.StatusOK:
		s.endShadow(held, shadowRefused)
	default:
		own := *ex // the client's search may not be over yet
		own.held = held
		packed := res.Header.Get("Content-Encoding")
		res.Body = &tee{ReadCloser: res.Body, held: held, closed: func(answer []byte, outcome string) {
			if outcome != "" {
				s.endShadow(held, outcome)
				return
			}
			s.shadows.start(func(ctx context.Context) {
				outcome := shadowFailed // where it panics
				_ = s.guard.Do("shadowing", func() error {
					outcome = s.compare(again.WithContext(ctx), &own, took, packed, answer)
					return nil
				})
				if s.shadows.ctx.Err() == nil { // else it was cut off by the end of the server
					s.metrics.shadowSearches.WithLabelValues(outcome).Inc()
				}
			}, held.Release)
		}}
	}
	return res, err
}

// endShadow gives the slot back of a search whose shadow does not run.
func (s *Server) endShadow(held *budget.Hold, outcome string) {
	held.Release()
	s.shadows.release()
	s.metrics.shadowSearches.WithLabelValues(outcome).Inc()
}

// compare has a search expanded, sends that and compares what comes with the
// answer to the original. The request out is the original without its body.
func (s *Server) compare(out *http.Request, ex *exchange, took time.Duration, packed string, answer []byte) (outcome string) {
	original, err := readHits(packed, answer, ex.held)
	switch {
	case errors.Is(err, errNoRoom):
		return shadowDropped
	case err != nil:
		return shadowUnreadable
	case original.failures != nil:
		return shadowRefused
	}
	what := ex.shadow
	defer s.searched(ex)
	res, toSend, err := s.look(out.Context(), out, what.match, ex, what.expander, what.body)
	switch {
	case err != nil:
		return shadowFailed
	case !res.Rewritten:
		return shadowLeftAlone
	}
	ex.rewritten = toSend
	ex.held.Add(int64(len(toSend.Body)))
	expanded, shadowTook, outcome := s.sendShadow(ex.rewrite(out), ex)
	if outcome == "" {
		s.metrics.compared(original, expanded, took, shadowTook)
		outcome = shadowCompared
	}
	return outcome
}

// sendShadow sends an expanded search and reads the answer, or tells why it
// cannot be compared.
func (s *Server) sendShadow(out *http.Request, ex *exchange) (hits hitList, took time.Duration, outcome string) {
	start := time.Now()
	res, err := s.upstream.RoundTrip(out)
	if err != nil {
		return hits, 0, shadowUnanswered
	}
	defer res.Body.Close()
	took = time.Since(start)
	if res.StatusCode >= http.StatusBadRequest {
		// What the cluster says teaches as much as if it said it to a client.
		s.refused(out.Context(), ex, out.Header, true, s.refusal(ex, res))
		return hits, took, shadowRefused
	}
	answer, err := readHeld(res.Body, ex.held, res.ContentLength, maxShadowAnswer+1)
	switch {
	case errors.Is(err, errNoRoom):
		return hits, took, shadowDropped
	case err != nil:
		return hits, took, shadowUnanswered
	case len(answer) > maxShadowAnswer:
		return hits, took, shadowUnreadable
	}
	if reranks := ex.rewritten.Reranks; len(reranks) > 0 && res.Header.Get("Content-Encoding") == "" {
		if ordered, _ := s.reorder(out.Context(), ex.endpoint, reranks, answer); ordered != nil {
			ex.held.Add(int64(cap(ordered)))
			answer = ordered
		}
	}
	hits, err = readHits(res.Header.Get("Content-Encoding"), answer, ex.held)
	switch {
	case errors.Is(err, errNoRoom):
		return hits, took, shadowDropped
	case err != nil:
		return hits, took, shadowUnreadable
	case hits.failures != nil:
		s.refused(out.Context(), ex, out.Header, true, hits.failures)
		return hits, took, shadowRefused
	}
	return hits, took, ""
}

// A tee keeps what is read of an answer and passes it on when the answer is
// closed, or else the outcome that tells why it cannot.
type tee struct {
	io.ReadCloser
	held   *budget.Hold
	kept   bytes.Buffer
	length int
	ended  bool
	full   bool // there was no memory to keep all of it
	closed func(answer []byte, outcome string)
}

// Read reads from the answer.
func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.length += n
	t.full = t.full || t.length <= maxShadowAnswer && !t.held.Take(int64(n))
	if t.length <= maxShadowAnswer && !t.full {
		t.kept.Write(p[:n])
	} else {
		t.kept = bytes.Buffer{}
	}
	t.ended = t.ended || errors.Is(err, io.EOF)
	return n, err
}

// Close closes the answer.
func (t *tee) Close() error {
	if closed := t.closed; closed != nil {
		t.closed = nil
		switch {
		case !t.ended:
			closed(nil, shadowCutOff)
		case t.length > maxShadowAnswer:
			closed(nil, shadowUnreadable)
		case t.full:
			closed(nil, shadowDropped)
		default:
			closed(t.kept.Bytes(), "")
		}
	}
	return t.ReadCloser.Close()
}

// hitList is what is compared of an answer.
type hitList struct {
	total int64 // 0 where the answer does not say, as by -1 with track_total_hits=false
	first []hitID
	// failures are those of shards that count, nil where there are none.
	failures *refusal
}

// A hitID names a document.
type hitID struct {
	Index string `json:"_index"`
	ID    string `json:"_id"`
}

// readHits reads the answer to a search. It returns [errUnreadable] for one
// that does not list hits, and [errNoRoom] where held takes no more.
func readHits(packed string, answer []byte, held *budget.Hold) (hitList, error) {
	plain, err := unpack(packed, answer, held)
	if err != nil {
		return hitList{}, err
	}
	var page struct {
		Hits *struct {
			Total json.RawMessage `json:"total"`
			Hits  []hitID         `json:"hits"`
		} `json:"hits"`
	}
	if err := json.Unmarshal(plain, &page); err != nil || page.Hits == nil || page.Hits.Hits == nil {
		return hitList{}, errUnreadable
	}
	list := hitList{first: page.Hits.Hits[:min(len(page.Hits.Hits), overlapDepth)]}
	list.failures, _, _ = searchFailures(newDecoder(bytes.NewReader(plain))) // it is JSON
	var total struct {
		Value int64 `json:"value"`
	}
	// A number with rest_total_hits_as_int, else an object, or left out.
	if json.Unmarshal(page.Hits.Total, &list.total) != nil && json.Unmarshal(page.Hits.Total, &total) == nil {
		list.total = total.Value
	}
	list.total = max(list.total, 0)
	return list, nil
}

// unpack decodes what is in a content encoding, up to maxShadowAnswer, into
// memory of held.
func unpack(encoding string, answer []byte, held *budget.Hold) ([]byte, error) {
	switch encoding {
	case "", "identity":
		return answer, nil
	case "gzip":
	default:
		return nil, errUnreadable
	}
	gz, err := gzip.NewReader(bytes.NewReader(answer))
	if err != nil {
		return nil, errUnreadable
	}
	plain, err := readHeld(gz, held, -1, maxShadowAnswer+1)
	if errors.Is(err, errNoRoom) {
		return nil, err
	}
	if err != nil || len(plain) > maxShadowAnswer {
		return nil, errUnreadable
	}
	return plain, nil
}

// overlap returns the share of the hits of the longer list that are in both,
// false where both are empty.
func overlap(a, b hitList) (share float64, ok bool) {
	longer := max(len(a.first), len(b.first))
	if longer == 0 {
		return 0, false
	}
	in := make(map[hitID]bool, len(a.first))
	for _, id := range a.first {
		in[id] = true
	}
	both := 0
	for _, id := range b.first {
		if in[id] {
			both++
		}
	}
	return float64(both) / float64(longer), true
}
