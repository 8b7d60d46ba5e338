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
	out := &Result{RawQuery: req.RawQuery, Body: make([]byte, 0, room), Parts: make([]Part, len(parts))}
	at := 0
	for i := range parts {
		p, res := &parts[i], results[i]
		if out.Parts[i] = (Part{Index: p.Index, Err: errs[i]}); errs[i] != nil {
			continue
		}
		number := "[" + strconv.Itoa(i) + "]"
		if res.Reason != "" {
			out.Clauses = append(out.Clauses, Explanation{Path: number, Reason: res.Reason})
		}
		for _, c := range res.Clauses {
			c.Path = number + "." + c.Path
			out.Clauses = append(out.Clauses, c)
		}
		if len(res.Parts) > 0 {
			out.Parts[i].Rerank, out.Parts[i].FirstPass = res.Parts[0].Rerank, res.Parts[0].FirstPass
		}
		if out.Parts[i].FirstPass != nil && i >= maxReranked {
			out.Parts[i].FirstPass = nil
			out.TooManyFirstPasses++
		}
		if !res.Rewritten {
			continue
		}
		out.Rewritten, out.ClauseCount = true, max(out.ClauseCount, res.ClauseCount)
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
	case len(out.Failures()) > 0:
		return nil, fmt.Errorf("of %d searches: %w", len(parts), errors.Join(out.Failures()...))
	case len(out.Clauses) > 0:
		return &Result{Parts: out.Parts, Clauses: out.Clauses, Reason: out.Clauses[0].Reason, TooManyFirstPasses: out.TooManyFirstPasses}, nil
	}
	return &Result{Reason: reason.NoClause}, nil
}
