package proxy

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy/answer"
)

// errScores says that a reranker did not return one score per hit.
var errScores = errors.New("not a score for each hit")

// A Reranker scores the hits of searches: by the soft cosine, as package
// expand/soft does, by vectors, as package expand/embedding, or by both.
type Reranker interface {
	// Begin asks for what Scores needs of the search itself, before its hits are
	// known, and does not wait.
	Begin(ctx context.Context, by *expand.Rerank)
	// Scores returns the scores of each hit, at the latest when ctx ends. With
	// scores and an error these order the hits, and the error says what else should
	// have; after an error alone the engine's order goes out. Calls may be
	// concurrent; hits is read-only.
	Scores(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error)
	// Remember remembers what Scores needs of hits with [expand.Rerank.Key].
	Remember(ctx context.Context, by *expand.Rerank, hits []expand.Hit) error
}

// reranking scores the hits of answers and reorders them.
type reranking struct {
	reranker Reranker // nil for none
	budget   time.Duration
	guard    *recovery.Guard
	cause    func(error) string
	log      *slog.Logger
}

// begin is [Reranker.Begin] for each search to be reranked.
func (k *reranking) begin(ctx context.Context, reranks []*expand.Rerank) {
	for _, r := range reranks {
		if r != nil && k.reranker != nil {
			_ = k.guard.Do("reranking", func() error {
				k.reranker.Begin(ctx, r)
				return nil
			})
		}
	}
}

// ofEach returns result for each search to be reranked, "" for the others.
func ofEach(reranks []*expand.Rerank, result string) []string {
	results := make([]string, len(reranks))
	for k, r := range reranks {
		if r != nil {
			results[k] = result
		}
	}
	return results
}

// answer puts the client's page of each search, in the new order, into an
// answer. It returns nil if there is no page to put in, and the outcome of each
// search, "" for none. The searches share the budget and start at once, so that
// those that run out of time have at least fetched what the next request needs.
// reasons explain the hits that vectors ordered. ask sends as the client. odd
// says that the next answer would be unreadable, or its page too long, as well.
func (k *reranking) answer(
	ctx context.Context, endpoint expand.Endpoint, reranks []*expand.Rerank, whole []byte, ask sender,
) (out []byte, results []string, reasons []expand.HitReason, odd bool) {
	bounded, cancel := context.WithTimeout(ctx, k.budget)
	defer cancel()
	frames, err := answer.ReadFrames(whole, endpoint, reranks)
	if err != nil {
		return nil, ofEach(reranks, rerankUnreadable), nil, true
	}
	var tooLong atomic.Bool
	results = make([]string, len(frames))
	ordered := make([]bool, len(frames))
	_ = recovery.InParallel(len(frames), len(frames), func(i int) error {
		f := frames[i]
		if f == nil {
			return nil
		}
		if len(f.Hits) == 0 {
			results[i] = rerankNothing
			return nil
		}
		var page []expand.Hit
		err := k.guard.Do("reranking", func() error {
			page, results[i] = k.order(bounded, f)
			return nil
		})
		if err != nil {
			page, results[i] = nil, k.cause(err)
		}
		overloaded := false
		switch {
		case page != nil && len(page) == 0:
			ordered[i] = f.SetPage(nil, []byte(`{"hits":{"hits":[]}}`))
		case page != nil:
			text, status, _ := k.hits(ctx, f.Rerank.PageOf(page), ask)
			ordered[i] = text != nil && f.SetPage(page, text)
			if !ordered[i] {
				page, results[i] = nil, rerankChanged
			}
			overloaded = status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
		}
		if page == nil && !overloaded { // otherwise only the original is sent
			text, _, err := k.hits(ctx, f.Rerank.InOrder, ask)
			if text != nil {
				f.SetInOrder(text)
			}
			if errors.Is(err, limits.ErrTooLarge) {
				tooLong.Store(true)
			}
		}
		return nil
	})
	if out = answer.WriteFrames(whole, frames); out == nil { // the client gets none of them
		results = ofEach(reranks, rerankUnreadable)
	}
	for i, f := range frames {
		if ordered[i] && out != nil {
			reasons = append(reasons, f.Reasons()...)
		}
	}
	return out, results, reasons, tooLong.Load()
}

// hits sends a search and returns the answer, or nil, and its status. It does
// not use filter_path: with it engines format the numbers in sources again, and
// 10.50 becomes 10.5.
func (k *reranking) hits(ctx context.Context, s expand.SideSearch, ask sender) (text []byte, status int, err error) {
	status, text, err = ask(ctx, sideCall(s, ""))
	if err != nil || status != http.StatusOK {
		k.log.DebugContext(ctx, "no page of reranked hits", "status", status, "err", err)
		return nil, status, err
	}
	return text, status, nil
}

// sideCall returns the call of a search with the given parameters and its own.
func sideCall(s expand.SideSearch, parameters string) esclient.HTTPRequest {
	path := "/_search"
	if parameters = strings.Trim(parameters+"&"+s.RawQuery, "&"); parameters != "" {
		path += "?" + parameters
	}
	if s.Index != "" {
		path = "/" + esclient.Name(s.Index) + path
	}
	return esclient.HTTPRequest{Method: http.MethodPost, Path: path, Body: bytes.NewReader(s.Body)}
}

// order returns the client's page of hits in the new order, nil if they keep
// the engine's, and the outcome.
func (k *reranking) order(ctx context.Context, f *answer.Frame) (page []expand.Hit, result string) {
	if !f.Named {
		return nil, rerankUnnamed
	}
	scores, err := []expand.HitScore(nil), ctx.Err() // reading the answer may have used up the time
	if err == nil && k.reranker != nil {
		scores, err = k.reranker.Scores(ctx, f.Rerank, f.Window())
	}
	if err == nil || scores != nil {
		var ok bool
		page, ok = f.Order(scores)
		if !ok {
			page, err = nil, errScores
		}
	}
	switch {
	case err == nil:
		return page, rerankedHits
	case errors.Is(err, expand.ErrNotRemembered):
		return page, rerankNotRemembered
	}
	result = k.cause(err)
	k.log.DebugContext(ctx, "hits were not reranked", "cause", result, "err", err)
	return page, result
}
