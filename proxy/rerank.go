package proxy

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/tracing"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/report"
)

// What became of the hits of a search that were to be reranked, values of the
// label "result". Others are causes of errors of [Options.Reranker].
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
	// an error the engine's order goes out. It may be called concurrently, and must
	// not modify fields and hits.
	Scores(ctx context.Context, fields []expand.RerankField, hits []expand.Hit) ([]float64, error)
}

// fixed returns why the hits of the answer to a request cannot be reranked, ""
// where they can. The expander reads filter_path, but not of several searches.
func (s *Server) fixed(x *search, h http.Header) reason.Reason {
	switch {
	case x.isAsync():
		return reason.Endpoint
	case !answer.AnswersJSON(x.rawQuery, h), x.endpoint == expand.EndpointMultiSearch && answer.FilterPath(x.rawQuery) != "":
		return reason.Answer
	case s.unfit.has(s.unfit.hash(x).Sum64()):
		return reason.TooLong
	}
	return ""
}

// rerank reranks the hits of an answer and cuts the client's pages out of them.
// It reports false where it cannot: then the client must not get the answer. An
// error says that the client has gone.
func (s *Server) rerank(ctx context.Context, x *search, res *http.Response) (fits bool, gone error) {
	var whole, out []byte
	err := errUnchecked // also where it is encoded, which was not asked for
	if len(res.Header["Content-Encoding"]) == 0 && answer.IsJSON(res.Header["Content-Type"]) {
		whole, err = x.client.Whole(s.opts.Memory, res)
	}
	if err != nil && ctx.Err() != nil {
		return false, ctx.Err()
	}
	ctx, span := tracing.Start(ctx, "rerank")
	defer span.End()
	reranks := x.rewritten.Reranks
	results := ofEach(reranks, rerankUnreadable)
	start := time.Now()
	if err == nil {
		out, results = s.rerankAnswer(ctx, x.endpoint, reranks, whole)
	}
	x.report.RerankTook, x.report.Reranked, x.report.Uncut = time.Since(start), results, out == nil
	for _, result := range results {
		if result != "" && result != rerankedHits && result != rerankNothing {
			x.report.Fail(ctx, report.Failure{What: failedRerank, Cause: result})
		}
	}
	if out == nil {
		if err == nil || errors.Is(err, errUnchecked) || errors.Is(err, limits.ErrTooLarge) {
			s.unfit.note(s.unfit.hash(x).Sum64()) // the next one would be like it; else it broke off, or there was no room
		}
		s.log.DebugContext(ctx, "an answer could not be reranked", "index", x.index, "err", err)
		return false, nil
	}
	s.replace(x, res, out)
	return true, nil
}

// replace puts another body in the place of an answer.
func (s *Server) replace(x *search, res *http.Response, body []byte) {
	x.client.Replace(s.opts.Memory, res, body)
	if res.ContentLength >= 0 {
		res.ContentLength = int64(len(body))
		res.Header["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
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

// rerankAnswer returns an answer with the hits of each search reranked and cut,
// nil where it cannot be cut, and what became of each, "" for none. The
// searches, a bounded number, share the time and begin at once: those that it
// is not enough for have at least fetched what the next ones need.
func (s *Server) rerankAnswer(
	ctx context.Context, endpoint expand.Endpoint, reranks []*expand.Rerank, whole []byte,
) (out []byte, results []string) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.RerankBudget)
	defer cancel()
	pages, err := answer.ReadHitLists(whole, endpoint, reranks)
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
				}); err != nil { // the hits are there, in the engine's order
					p.Scores, results[k] = nil, s.cause(err)
				}
			})
		}
	}
	scoring.Wait()
	return answer.WriteHitLists(whole, pages), results
}

// scorePage sets the scores of a page and returns what became of its hits.
func (s *Server) scorePage(ctx context.Context, p *answer.HitList) (result string) {
	if p.IsEmpty() {
		return rerankNothing
	}
	hits, ok := p.Hits()
	if !ok {
		return rerankUnnamed
	}
	scores, err := []float64(nil), ctx.Err() // reading the answer may have taken all of the time
	if err == nil && s.opts.Reranker != nil {
		scores, err = s.opts.Reranker.Scores(ctx, p.Rerank.Fields, hits)
	}
	if err == nil && !p.SetScores(scores) {
		err = errScores
	}
	if err != nil {
		result = s.cause(err)
		s.log.DebugContext(ctx, "hits were not reranked", "cause", result, "err", err)
		return result
	}
	return rerankedHits
}
