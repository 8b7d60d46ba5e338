package proxy

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
)

// What became of the hits of one search that were to be ordered anew, values
// of the label "result". Others are causes of errors of [Options.Reranker];
// with them the engine's order goes out.
const (
	rerankedHits     = "reranked"
	rerankNothing    = "no_hits"    // there are none
	rerankUnnamed    = "no_ids"     // hits lack ids, scores, versions or sequence numbers: the engine's order goes out
	rerankUnreadable = "unreadable" // the answer is too long, or cannot be read or cut: the original search is sent
)

// errScores says that a reranker did not return a score for each hit.
var errScores = errors.New("not a score for each hit")

// A Reranker scores the hits of searches. Package rerank implements it.
type Reranker interface {
	// Scores returns a score for each of hits, until ctx ends at the latest. With
	// an error the engine's order goes out. It must not modify r and hits, and may
	// be called at the same time for several searches.
	Scores(ctx context.Context, r *expand.Rerank, hits []Hit) ([]float64, error)
}

// fixed returns why the hits of the answer to a request cannot be ordered
// anew, "" where they can. Whether filter_path leaves what it takes in the
// answer to a single search is known to the expander; of several it is not
// tried.
func (s *Server) fixed(m match, ex *exchange, h http.Header) reason.Reason {
	switch {
	case strings.HasSuffix(m.shape, "/_async_search"): // it may come later, and not all at once
		return reason.Endpoint
	case !answersJSON(ex.rawQuery, h), m.endpoint == expand.EndpointMultiSearch && filterPath(ex.rawQuery) != "":
		return reason.Answer
	case s.unfit.has(s.unfit.hash(ex).Sum64()):
		return reason.TooLong
	}
	return ""
}

// rerank orders the hits of the answer to a rewritten request anew and cuts
// the client's pages out of them. It reports false where it cannot: then the
// answer is not the one to the client's request. An error says that the client
// has gone meanwhile.
func (t *searchTransport) rerank(ctx context.Context, ex *exchange, res *http.Response) (fits bool, gone error) {
	s, reranks := t.server, ex.rewritten.Reranks
	answer, err := t.holdPlain(ex, res)
	if err != nil && ctx.Err() != nil {
		return false, ctx.Err()
	}
	var out []byte
	results := ofEach(reranks, rerankUnreadable)
	start := time.Now()
	if err == nil {
		out, results = s.reorder(ctx, ex.endpoint, reranks, answer)
	}
	s.metrics.reranked(results, time.Since(start))
	s.explanations.reranked(ex.record, results)
	for _, result := range results {
		if result != "" && result != rerankedHits && result != rerankNothing {
			s.failedOpen(ctx, ex, failedRerank, result)
		}
	}
	if out == nil {
		if err == nil || errors.Is(err, errUnchecked) { // the next one would be like it; else it broke off, or there was no room
			s.unfit.note(s.unfit.hash(ex).Sum64())
		}
		s.log.DebugContext(ctx, "an answer could not be ordered anew", "index", ex.index, "err", err)
		return false, nil
	}
	s.replace(ex, res, out)
	if res.ContentLength >= 0 {
		res.ContentLength = int64(len(out))
		res.Header["Content-Length"] = []string{strconv.Itoa(len(out))}
	}
	return true, nil
}

// holdPlain holds an answer whose hits are to be ordered anew. It returns
// [errUnchecked] for one that is too long, no JSON, or encoded though that was
// not asked for, and other errors where the next answer may be better.
func (t *searchTransport) holdPlain(ex *exchange, res *http.Response) ([]byte, error) {
	encoding, known := contentEncoding(res.Header["Content-Encoding"])
	if !known || encoding != "" || !isJSON(res.Header["Content-Type"]) {
		return nil, errUnchecked
	}
	return t.server.hold(ex, res)
}

// ofEach returns result for each search whose hits were to be ordered anew, and
// "" for the others.
func ofEach(reranks []*expand.Rerank, result string) []string {
	results := make([]string, len(reranks))
	for k, r := range reranks {
		if r != nil {
			results[k] = result
		}
	}
	return results
}

// reorder returns an answer with the hits of each search ordered anew and cut
// to the client's page, and what became of them, "" for searches that stay as
// they are. It returns nil where the answer cannot be cut. The searches share
// the time that there is, and all begin at once: those for which it does not
// do have at least asked the cluster for what the next ones need. The expander
// bounds how many they are.
func (s *Server) reorder(ctx context.Context, endpoint expand.Endpoint, reranks []*expand.Rerank, answer []byte) (out []byte, results []string) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.RerankBudget)
	defer cancel()
	pages, err := readPages(answer, endpoint, reranks)
	if err != nil {
		return nil, ofEach(reranks, rerankUnreadable)
	}
	results = make([]string, len(pages))
	var scoring sync.WaitGroup
	for k, p := range pages {
		if p != nil {
			scoring.Go(func() {
				if err := s.guard.Do("reranking", func() error {
					results[k] = s.scorePage(ctx, p)
					return nil
				}); err != nil {
					p.scores, results[k] = nil, s.cause(err)
				}
			})
		}
	}
	scoring.Wait()
	return writePages(answer, pages), results
}

// scorePage sets the scores of a page, where they are to be had, and returns
// what became of its hits.
func (s *Server) scorePage(ctx context.Context, p *hitPage) (result string) {
	if len(p.hits) == 0 {
		return rerankNothing
	}
	hits, ok := p.named()
	if !ok {
		return rerankUnnamed
	}
	var err error
	if p.scores, err = s.scores(ctx, p.r, hits); err != nil {
		result = s.cause(err)
		s.log.DebugContext(ctx, "hits were not ordered anew", "cause", result, "err", err)
		return result
	}
	return rerankedHits
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
	err = s.guard.Do("reranking", func() (err error) {
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
