package expand

import (
	"cmp"
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
	// it what comes out: some 20 KiB are added to each at most, in [ModeHard] to
	// all what [maxSharedTerms] allows.
	maxSearches = 256
)

// partsOf returns the searches of a request, or why they are left alone.
func partsOf(req *Request) ([]dsl.Part, reason.Reason) {
	takeApart, why := dsl.MultiSearch, reason.MultiSearch
	if req.Endpoint == EndpointRankEval {
		takeApart, why = dsl.RankEval, reason.NotJSON
	}
	switch parts := takeApart(req.Body, req.Index, req.RawQuery); {
	case len(parts) > maxSearches:
		return nil, reason.TooManySearches
	case parts == nil:
		return nil, why
	default:
		return parts, ""
	}
}

func partRequest(req *Request, p *dsl.Part, n int) Request {
	one := *req
	one.Index, one.RawQuery, one.Body = p.Index, p.RawQuery, p.At.Of(req.Body)
	if req.Endpoint == EndpointRankEval {
		one.Preview, one.Fixed, one.Discloses = false, "", 0
		return one
	}
	if one.Endpoint = EndpointSearch; n > maxReranked {
		one.Fixed = cmp.Or(req.Fixed, reason.TooManyReranked)
	}
	return one
}

// joined returns the result of a request of those of its searches. Where none
// was rewritten, that is a failure of one of them, or the first reason.
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
		if out.add(i, len(parts), res); !res.Rewritten {
			continue
		}
		if res.RawQuery != p.RawQuery {
			out.Body = append(out.Body, req.Body[at:p.Header.Start]...)
			out.Body = dsl.AppendHeader(out.Body, p.Header.Of(req.Body))
			at = p.Header.End
		}
		out.Body = append(append(out.Body, req.Body[at:p.At.Start]...), res.Body...)
		at = p.At.End
	}
	switch {
	case out.Rewritten:
		out.Body = append(out.Body, req.Body[at:]...)
		return out, nil
	case len(out.Failures) > 0:
		return nil, fmt.Errorf("of %d searches: %w", len(parts), errors.Join(out.Failures...))
	case len(out.Clauses) > 0:
		return &Result{Clauses: out.Clauses, Reason: out.Clauses[0].Reason, FirstPasses: out.FirstPasses, TooManyFirstPasses: out.TooManyFirstPasses}, nil
	}
	return &Result{Reason: reason.NoClause}, nil
}

// add adds what became of search i of n, but for its body.
func (r *Result) add(i, n int, search *Result) {
	number := "[" + strconv.Itoa(i) + "]"
	if search.Reason != "" {
		r.Clauses = append(r.Clauses, Explanation{Path: number, Reason: search.Reason})
	}
	for _, c := range search.Clauses {
		c.Path = number + "." + c.Path
		r.Clauses = append(r.Clauses, c)
	}
	r.Rewritten, r.ClauseCount = r.Rewritten || search.Rewritten, max(r.ClauseCount, search.ClauseCount)
	if i < maxReranked {
		setOf(&r.FirstPasses, i, n, search.FirstPasses)
	} else {
		r.TooManyFirstPasses += len(search.FirstPasses)
	}
	setOf(&r.Reranks, i, n, search.Reranks)
}

// setOf sets element i of a list of n to the only one of one, if there is one.
func setOf[T any](list *[]*T, i, n int, one []*T) {
	if len(one) == 0 {
		return
	}
	if *list == nil {
		*list = make([]*T, n)
	}
	(*list)[i] = one[0]
}
