package proxy

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/akin-search/akin/expand"
)

// What became of the hits of a search that were to be ordered anew, values
// of the label "result". Others are causes of errors of [Options.Reranker];
// with them the engine's order goes out.
const (
	rerankedHits     = "reranked"
	rerankNothing    = "no_hits"    // there are none
	rerankUnnamed    = "no_ids"     // hits lack ids, scores, versions or sequence numbers: the engine's order goes out
	rerankUnreadable = "unreadable" // the answer is too long, or cannot be read or cut: the original search is sent
)

const (
	// unfitTime is how long searches of an index are left in the engine's order
	// after an answer was too long or could not be read: each of them would run
	// twice.
	unfitTime = time.Minute
	// maxUnfit bounds the indices of which that is known.
	maxUnfit = 1000
)

// errScores says that a reranker did not return a score for each hit.
var errScores = errors.New("not a score for each hit")

// A Reranker scores the hits of searches. Package rerank implements it.
type Reranker interface {
	// Scores returns a score for each of hits, until ctx ends at the latest. With
	// an error the engine's order goes out. It must not modify r and hits.
	Scores(ctx context.Context, r *expand.Rerank, hits []Hit) ([]float64, error)
}

// unfit remembers whose answers could not be read. The zero value knows none.
type unfit struct {
	mu    sync.Mutex
	until map[unfitKey]time.Time
}

// An unfitKey names an index expression and the profile that says how large
// the window is.
type unfitKey struct{ index, profile string }

func (u *unfit) note(k unfitKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.until == nil || len(u.until) >= maxUnfit {
		u.until = map[unfitKey]time.Time{}
	}
	u.until[unfitKey{strings.Clone(k.index), strings.Clone(k.profile)}] = time.Now().Add(unfitTime)
}

func (u *unfit) has(k unfitKey) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Now().Before(u.until[k])
}

// fixed returns why the hits of the answer to a search cannot be ordered
// anew, "" where they can.
func (s *Server) fixed(m match, ex *exchange, h http.Header) expand.Reason {
	switch {
	case strings.HasSuffix(m.shape, "/_async_search"): // it may come later, and not all at once
		return expand.ReasonEndpoint
	case !answersJSON(ex.rawQuery, h):
		return expand.ReasonAnswer
	case s.unfit.has(unfitKey{ex.index, ex.control.profile}):
		return expand.ReasonTooLong
	}
	return ""
}

// rerank orders the hits of the answer to a rewritten search anew and cuts
// the client's page out of them. It reports false where it cannot: then the
// answer is not the one to the client's search.
func (t *searchTransport) rerank(ctx context.Context, ex *exchange, res *http.Response) bool {
	s, r := t.server, ex.rewritten.Rerank
	encoding, known := contentEncoding(res.Header["Content-Encoding"])
	readable := known && encoding == "" && isJSON(res.Header["Content-Type"])
	var answer, out []byte
	whole, result := false, rerankUnreadable
	if readable {
		answer, whole = t.held.hold(res)
		readable = res.ContentLength <= maxHeldAnswer && len(answer) <= maxHeldAnswer
	}
	start := time.Now()
	if whole {
		out, result = s.reorder(ctx, r, answer)
	}
	s.metrics.reranked(result, time.Since(start))
	s.explanations.reranked(ex.record, result)
	if out == nil {
		if whole || !readable { // else it broke off, or there was no room for it
			s.unfit.note(unfitKey{ex.index, ex.control.profile})
		}
		s.log.DebugContext(ctx, "an answer could not be ordered anew", "index", ex.index)
		return false
	}
	res.Body = resumed{bytes.NewReader(out), res.Body}
	if res.ContentLength >= 0 {
		res.ContentLength = int64(len(out))
		res.Header["Content-Length"] = []string{strconv.Itoa(len(out))}
	}
	return true
}

// reorder returns an answer with its hits ordered anew and cut to the
// client's page, and what became of them. It returns nil where the answer
// cannot be cut.
func (s *Server) reorder(ctx context.Context, r *expand.Rerank, answer []byte) (out []byte, result string) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.RerankBudget)
	defer cancel()
	p, err := readPage(answer, r)
	if err != nil {
		return nil, rerankUnreadable
	}
	if len(p.hits) == 0 {
		return p.write(r, nil), rerankNothing
	}
	hits, ok := p.named(r.Window)
	if !ok {
		return p.write(r, nil), rerankUnnamed
	}
	scores, err := s.scores(ctx, r, hits)
	if err != nil {
		result = s.cause(err)
		s.log.DebugContext(ctx, "hits were not ordered anew", "cause", result, "err", err)
		return p.write(r, nil), result
	}
	return p.write(r, scores), rerankedHits
}

// scores calls the reranker. A panic of it is an error: the hits are there,
// in the engine's order.
func (s *Server) scores(ctx context.Context, r *expand.Rerank, hits []Hit) (scores []float32, err error) {
	if s.opts.Reranker == nil {
		return nil, errScores
	}
	if err := ctx.Err(); err != nil { // reading the answer took all of the time
		return nil, err
	}
	var all []float64
	err = s.recovered(ctx, "hits were ordered anew", func() (err error) {
		all, err = s.opts.Reranker.Scores(ctx, r, hits)
		return err
	})
	if err != nil {
		return nil, err
	}
	scores, ok := asWritten(all)
	if !ok || len(scores) != len(hits) {
		return nil, errScores
	}
	return scores, nil
}
