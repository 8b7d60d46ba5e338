package expand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/reason"
)

const (
	// searchesSideBySide is how many searches of one request are expanded at the
	// same time. With cold caches each waits for the cluster.
	searchesSideBySide = 4
	// maxSearches bounds the searches of one request that is expanded, and with
	// it the size of what comes out: at most some 20 KiB are added to each, in
	// [ModeHard] as much to all as [maxSharedTerms] allows.
	maxSearches = 256
)

// expandSeveral expands a request that has several searches, each as a
// search of its own, and returns the whole body with those that were
// rewritten in their places.
func (e *Expander) expandSeveral(ctx context.Context, req *Request) (*Result, error) {
	takeApart, why := dsl.MultiSearch, reason.MultiSearch
	if req.Endpoint == EndpointRankEval {
		takeApart, why = dsl.RankEval, reason.NotJSON
	}
	parts := takeApart(req.Body, req.Index, req.RawQuery)
	if len(parts) > maxSearches {
		return &Result{Reason: reason.TooManySearches}, nil
	}
	if parts == nil {
		return &Result{Reason: why}, nil
	}
	results, errs := make([]*Result, len(parts)), make([]error, len(parts))
	_ = inParallel(len(parts), searchesSideBySide, func(i int) error {
		if parts[i].Odd {
			results[i] = &Result{Reason: reason.MultiSearch}
			return nil
		}
		one := partRequest(req, &parts[i], len(parts))
		results[i], errs[i] = e.expandOne(ctx, &one, len(parts))
		return nil // each part has its own
	})
	return joined(req, parts, results, errs)
}

// partRequest returns the request of one search of n.
func partRequest(req *Request, p *dsl.Part, n int) Request {
	one := *req
	one.Index, one.RawQuery, one.Body = p.Index, p.RawQuery, p.At.Of(req.Body)
	switch {
	case req.Endpoint == EndpointRankEval:
		one.Preview, one.Fixed, one.Discloses = false, "", 0
		return one
	case n > maxReranked:
		one.Fixed = cmp.Or(req.Fixed, reason.TooManyReranked)
	}
	one.Endpoint = EndpointSearch
	return one
}

// joined returns the result of a request of those of its searches.
func joined(req *Request, parts []dsl.Part, results []*Result, errs []error) (*Result, error) {
	room := len(req.Body)
	for _, res := range results {
		if res != nil {
			room += len(res.Body) + len(dsl.DFS) + dsl.HeaderRoom
		}
	}
	out := &Result{RawQuery: req.RawQuery, Body: make([]byte, 0, room), Indices: make([]string, len(parts))}
	at := 0
	for i := range parts {
		p, res := &parts[i], results[i]
		out.Indices[i] = p.Index
		if errs[i] != nil {
			out.Failures = append(out.Failures, errs[i])
			continue
		}
		out.addClauses(i, res)
		if !res.Rewritten {
			continue
		}
		out.Rewritten = true
		if len(res.Reranks) > 0 {
			if out.Reranks == nil {
				out.Reranks = make([]*Rerank, len(parts))
			}
			out.Reranks[i] = res.Reranks[0]
		}
		out.ClauseCount = max(out.ClauseCount, res.ClauseCount)
		if res.RawQuery != p.RawQuery {
			out.Body = append(out.Body, req.Body[at:p.Header.Start]...)
			out.Body = dsl.AppendHeader(out.Body, p.Header.Of(req.Body))
			at = p.Header.End
		}
		out.Body = append(out.Body, req.Body[at:p.At.Start]...)
		out.Body = append(out.Body, res.Body...)
		at = p.At.End
	}
	if !out.Rewritten {
		return out.unchanged(len(parts))
	}
	out.Body = append(out.Body, req.Body[at:]...)
	return out, nil
}

// addClauses adds what became of search i.
func (r *Result) addClauses(i int, search *Result) {
	number := "[" + strconv.Itoa(i) + "]"
	if search.Reason != "" {
		r.Clauses = append(r.Clauses, Clause{Path: number, Reason: search.Reason})
	}
	for _, c := range search.Clauses {
		c.Path = number + "." + c.Path
		r.Clauses = append(r.Clauses, c)
	}
}

// unchanged returns the result of a request of n searches of which none was
// rewritten: the failure of one of them, or the reason of the first.
func (r *Result) unchanged(n int) (*Result, error) {
	if len(r.Failures) > 0 {
		return nil, fmt.Errorf("of %d searches: %w", n, errors.Join(r.Failures...))
	}
	why := reason.NoClause
	if len(r.Clauses) > 0 {
		why = r.Clauses[0].Reason
	}
	return &Result{Clauses: r.Clauses, Reason: why}, nil
}
