package proxy

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy/answer"
)

// errScores says that a reranker did not return a score for each hit.
var errScores = errors.New("not a score for each hit")

// A Reranker scores the hits of searches. Package expand/soft implements it.
type Reranker interface {
	// Scores returns a score for each of hits, until ctx ends at the latest. With
	// an error the engine's order goes out. It may be called concurrently, and must
	// not modify fields and hits.
	Scores(ctx context.Context, fields []expand.RerankField, hits []expand.Hit) ([]float64, error)
}

// reranking scores the hits of answers and puts them in order.
type reranking struct {
	reranker Reranker // nil for none
	budget   time.Duration
	guard    *recovery.Guard
	cause    func(error) string
	log      *slog.Logger
}

// ofEach returns result for each search that is to be reranked, else "".
func ofEach(reranks []*expand.Rerank, result string) []string {
	results := make([]string, len(reranks))
	for k, r := range reranks {
		if r != nil {
			results[k] = result
		}
	}
	return results
}

// answer returns an answer with the hits of each search reranked and cut,
// nil where it cannot be cut, and what became of each, "" for none. The
// searches, a bounded number, share the time and begin at once: those that it
// is not enough for have at least fetched what the next ones need.
func (k *reranking) answer(
	ctx context.Context, endpoint expand.Endpoint, reranks []*expand.Rerank, whole []byte,
) (out []byte, results []string) {
	ctx, cancel := context.WithTimeout(ctx, k.budget)
	defer cancel()
	pages, err := answer.ReadHitLists(whole, endpoint, reranks)
	if err != nil {
		return nil, ofEach(reranks, rerankUnreadable)
	}
	results = make([]string, len(pages))
	_ = recovery.InParallel(len(pages), len(pages), func(i int) error {
		p := pages[i]
		if p == nil {
			return nil
		}
		if err := k.guard.Do("reranking", func() error {
			results[i] = k.scorePage(ctx, p)
			return nil
		}); err != nil { // the hits are there, in the engine's order
			p.Scores, results[i] = nil, k.cause(err)
		}
		return nil
	})
	return answer.WriteHitLists(whole, pages), results
}

// scorePage sets the scores of a page and returns what became of its hits.
func (k *reranking) scorePage(ctx context.Context, p *answer.HitList) (result string) {
	if p.IsEmpty() {
		return rerankNothing
	}
	hits, ok := p.Hits()
	if !ok {
		return rerankUnnamed
	}
	scores, err := []float64(nil), ctx.Err() // reading the answer may have taken all of the time
	if err == nil && k.reranker != nil {
		scores, err = k.reranker.Scores(ctx, p.Rerank.Fields, hits)
	}
	if err == nil && !p.SetScores(scores) {
		err = errScores
	}
	if err != nil {
		result = k.cause(err)
		k.log.DebugContext(ctx, "hits were not reranked", "cause", result, "err", err)
		return result
	}
	return rerankedHits
}
