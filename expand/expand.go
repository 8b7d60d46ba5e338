// Package expand rewrites searches. It finds the clauses of a search body that
// search for text in a field, asks the similarity matrix S for the neighbors of
// their terms, and adds these neighbors as clauses with fractional boosts, so
// that the engine ranks by x' = W⁻¹(Wx)ᵀS.
//
// A search goes through these steps, the first in expandOne, the others in
// rewrite:
//
//	parse   body and parameters → clauses            search.go, package dsl
//	nest    + nested clauses for segments            segments.go
//	ask     clauses → fields, terms, rows            ask.go, from [Cluster], [Matrices]
//	        may its pipeline read the query?         pipeline.go
//	choose  → terms to add, by the measure           bm25.go, hard.go, softcosine.go, vectors.go, package terms
//	write   → the form of each clause, and the body  plan.go, package form
//
// Feedback repeats the last two with the terms of first hits, see feedback.go.
// With [Auto] a search that finds too little goes through all again, see
// enough.go.
package expand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/internal/tracing"
)

// An Expander rewrites searches. It is safe for concurrent use.
type Expander struct {
	sources

	profile Profile
	pits    *cache.Cache[pitKey]
	memory  *sync.Pool
}

// New returns an Expander that asks cluster for terms and statistics and
// matrices for neighbor rows.
func New(cluster Cluster, matrices Matrices, profile Profile) *Expander {
	return &Expander{
		sources: sources{cluster: cluster, matrices: matrices, limits: new(Limits)},
		profile: profile, pits: newPITs(), memory: &sync.Pool{New: func() any { return &memory{parser: new(dsl.Parser)} }},
	}
}

// Limits returns the limits learned from the cluster. The Expanders that With
// and its variants return share them.
func (e *Expander) Limits() *Limits { return e.limits }

// With returns an Expander with another profile. It shares with e what both
// learn from the cluster.
func (e *Expander) With(profile Profile) *Expander {
	other := *e
	other.profile = profile
	return &other
}

// WithMatrices is [Expander.With] for other matrices.
func (e *Expander) WithMatrices(matrices Matrices) *Expander {
	other := *e
	other.matrices = matrices
	return &other
}

// WithWeights is [Expander.With] for the weights of the modes hard, soft and
// softcosine. Without weights [ModeSoft] takes the document frequencies in the
// rows of S, and there are no others of these.
func (e *Expander) WithWeights(weights WeightSource) *Expander {
	other := *e
	other.weights = weights
	return &other
}

// WithVectors is [Expander.With] for the vectors of [ModeVectors], which does
// not work without.
func (e *Expander) WithVectors(vectors VectorSource) *Expander {
	other := *e
	other.vectors = vectors
	return &other
}

// WithHits is [Expander.With] for what is remembered of hits. Without it
// [ModeAuto] is [ModeBM25].
func (e *Expander) WithHits(hits HitMemory) *Expander {
	other := *e
	other.hits = hits
	return &other
}

// WithDocuments is [Expander.With] for the vectors of [ByEmbeddings], which
// does not work without.
func (e *Expander) WithDocuments(documents DocumentVectors) *Expander {
	other := *e
	other.documents = documents
	return &other
}

// Expand rewrites one request. If it leaves the request alone, Rewritten is
// false and the result has the reason. An error wraps a [*StageError], unless
// ctx has ended; then the caller sends the original.
//
// With warm caches it makes no call that leaves the process. With cold caches
// it asks for the matrices of the fields, and then in three stages: analysis
// and statistics, each for all clauses at the same time, and between them rows,
// for one matrix after another. Words without a row, aliases, field patterns,
// search pipelines and very long texts need more calls. [ModeHard] and
// [ModeSoftCosine] ask about linear fields during the first two stages, and for
// weights during the last. [ModeVectors] asks about the documents' vectors
// during the first two.
func (e *Expander) Expand(ctx context.Context, req *Request) (*Result, error) {
	e = e.changed(&req.Changes)
	p := e.pin(e.profile.Mode)
	if req.Again != nil && req.Again.pins.Matrices != nil {
		p = req.Again.pins
	}
	var res *Result
	var err error
	if req.Endpoint == EndpointMultiSearch || req.Endpoint == EndpointRankEval {
		res, err = e.expandSeveral(ctx, req, p)
	} else {
		res, err = e.expandOne(ctx, req, p, 1)
	}
	if err != nil || !slices.ContainsFunc(res.Parts, func(p Part) bool { return p.Enough.Hits > 0 }) {
		return res, err
	}
	res.pins = p
	if req.Preview && !res.Rewritten { // shows what is added where the search as it came finds too few
		again := *req
		again.Again = res
		return e.Expand(ctx, &again)
	}
	return res, nil
}

// changed returns an Expander with the settings that are changed.
func (e *Expander) changed(by *Changes) *Expander {
	if by.none() {
		return e
	}
	profile := e.profile
	if by.Matching != nil {
		profile.Matching = *by.Matching
	}
	if by.Strength != nil {
		profile.Strength = *by.Strength
	}
	return e.With(profile)
}

// WithFirstHits returns the result of Expand with terms of first hits: for each
// of its Parts those that the [FirstPass] has found, nil for none, but some for
// at least one of them. It parses nothing, asks only for the statistics of
// terms, and leaves the first result as it is. Its errors are those of Expand.
func (e *Expander) WithFirstHits(ctx context.Context, first *Result, hits [][]FirstHit) (*Result, error) {
	res, err := e.withFirstHits(ctx, first, hits)
	if res != nil {
		res.pins = first.pins
	}
	return res, err
}

func (e *Expander) withFirstHits(ctx context.Context, first *Result, hits [][]FirstHit) (*Result, error) {
	if first.several == nil {
		return e.writeAgain(ctx, first.Parts[0].FirstPass, hits[0])
	}
	again := *first.several
	again.results, again.errs = slices.Clone(again.results), slices.Clone(again.errs)
	_ = recovery.InParallel(len(hits), searchesSideBySide, func(i int) error {
		if len(hits[i]) > 0 {
			again.results[i], again.errs[i] = e.writeAgain(ctx, first.Parts[i].FirstPass, hits[i])
		}
		return nil // each part has its own error
	})
	return again.joined()
}

// writeAgain writes a search with terms of its first hits.
func (e *Expander) writeAgain(ctx context.Context, pass *FirstPass, hits []FirstHit) (*Result, error) {
	m, _ := e.memory.Get().(*memory)
	defer e.giveBack(m)
	a := *pass.asked
	a.first, a.m = hits, m
	return e.rewritten(ctx, &a)
}

func (e *Expander) giveBack(m *memory) {
	m.release()
	e.memory.Put(m)
}

// A several is a request of several searches, with their results so far.
type several struct {
	req     *Request
	parts   []dsl.Part
	results []*Result
	errs    []error
}

// expandSeveral expands each search of a request on its own.
func (e *Expander) expandSeveral(ctx context.Context, req *Request, p pins) (*Result, error) {
	parts, why := partsOf(req)
	if why != "" {
		return &Result{Reason: why}, nil
	}
	all := &several{req: req, parts: parts, results: make([]*Result, len(parts)), errs: make([]error, len(parts))}
	_ = recovery.InParallel(len(parts), searchesSideBySide, func(i int) error {
		if parts[i].Odd {
			all.results[i] = &Result{Reason: reason.MultiSearch}
			return nil
		}
		one := *req
		one.Index = parts[i].Index
		one.RawQuery = parts[i].RawQuery
		one.Body = parts[i].At.Of(req.Body)
		switch {
		case req.Endpoint == EndpointRankEval:
			one.Preview = false
			one.Fixed = ""
			one.Discloses = 0
		case len(parts) > maxReranked:
			one.Fixed = cmp.Or(req.Fixed, reason.TooManyReranked)
			fallthrough
		default:
			one.Endpoint = EndpointSearch
		}
		all.results[i], all.errs[i] = e.expandOne(ctx, &one, p, len(parts))
		return nil // each part has its own error
	})
	return all.joined()
}

// expandOne expands one search. together is the number of searches in the
// request.
func (e *Expander) expandOne(ctx context.Context, req *Request, p pins, together int) (*Result, error) {
	m, _ := e.memory.Get().(*memory)
	defer e.giveBack(m)
	_, span := tracing.Start(ctx, "parse")
	s, why := parse(req, &e.profile, m.parser)
	span.SetAttributes(attribute.String("akin.reason", string(why)))
	span.End()
	var err error
	if why == "" && req.Allowed != nil {
		why, err = reasonOf(req.Allowed(ctx, s.indices))
		err = failed(StageAccess, err)
	}
	switch {
	case err != nil:
		return nil, err
	case why != "":
		return &Result{Reason: why, Clauses: s.notes()}, nil
	}
	return e.rewritten(ctx, &expansion{sources: e.sources, s: s, m: m, pins: p, together: together})
}

// rewritten returns the result for a parsed search.
func (e *Expander) rewritten(ctx context.Context, a *expansion) (*Result, error) {
	if a.s.PIT.ID != "" && a.s.req.Changes.none() {
		return e.expandPage(ctx, a)
	}
	res, plan, err := a.rewrite(ctx, e.measure(a))
	if err != nil {
		return nil, err
	}
	return a.finish(res, plan), nil
}

// measure returns the measure that ranks the hits of a search.
func (e *Expander) measure(a *expansion) measure {
	switch mode := e.profile.Mode; {
	case a.s.Hybrid: // its scores are normalized
	case mode == ModeHard:
		return &hard{expansion: a}
	case mode == ModeVectors:
		return byVectors{a}
	case mode == ModeSoftCosine && e.profile.exact():
		return &hard{expansion: a, soft: true}
	case mode == ModeSoftCosine:
		return &softCosine{hard{expansion: a, soft: true}}
	}
	return bm25{a}
}

// rewrite asks, unless with first hits, before which it has asked, chooses the
// terms and writes the search.
func (a *expansion) rewrite(ctx context.Context, m measure) (*Result, *form.Plan, error) {
	if len(a.first) == 0 {
		why, err := a.ask(ctx, m)
		if err != nil {
			return nil, nil, err
		}
		if why != "" {
			return &Result{Parts: []Part{{Index: a.s.req.Index}}, Clauses: a.s.notes(), Reason: why}, &form.Plan{Search: a.s.Search}, nil
		}
	}
	a.settleMode()
	choosing, span := tracing.Start(ctx, "select")
	c, err := a.choose(choosing, m)
	span.End()
	if err != nil {
		return nil, nil, err
	}
	_, span = tracing.Start(ctx, "write")
	plan, res := a.write(c)
	span.End()
	res.Parts[0].Enough, res.Parts[0].Nothing = c.enough, c.nothing
	if res.Rewritten {
		res.Parts[0].How = how(plan)
	}
	res.Clauses = append(res.Clauses, a.notNested...)
	if !res.Rewritten {
		res.Reason = whyNothing(plan)
	}
	return res, plan, nil
}

// choose returns what the measure chooses, with how many hits are enough for a
// search that is ordered. If it finds too few, it is not ordered, but wide.
func (a *expansion) choose(ctx context.Context, m measure) (*chosen, error) {
	c, err := m.choose(ctx)
	if err != nil || !a.s.order || a.s.profile.Matching != Auto {
		return c, err
	}
	enough, tooFew := a.enough(c.clauses)
	c.enough = enough
	if !tooFew {
		return c, nil
	}
	nothing := a.mostHits(c.clauses) == 0
	wide := *a.s
	wide.order = false
	a.s = &wide
	a.recipe = a.recipeOf(false)
	for i := range a.clauses {
		a.clauses[i].Matches = matchesOf(&a.clauses[i])
	}
	if c, err = m.choose(ctx); err == nil {
		c.nothing = nothing
	}
	return c, err
}

// finish leaves the search alone if its answer would show terms from documents
// that the client may not see. Otherwise it adds the first pass, if any, which
// keeps what was asked and parsed.
func (a *expansion) finish(res *Result, plan *form.Plan) *Result {
	if a.s.discloses != 0 && filtered(plan.Clauses) {
		return &Result{Reason: reason.Hidden, Clauses: a.s.notes()}
	}
	if pass := a.firstPass(res, plan); pass != nil {
		res.Parts[0].FirstPass, pass.asked = pass, a
		a.m.parser = new(dsl.Parser)
		a.m = nil
	}
	return res
}

// expandPage reuses the expansion of the first page of a point in time, so that
// search_after sees stable scores. It expands the first page as usual.
func (e *Expander) expandPage(ctx context.Context, a *expansion) (*Result, error) {
	s := a.s
	wanted, second := s.profile.Feedback.documents(s.req.Feedback) > 0, len(a.first) > 0
	key := pageKey(e, s, wanted)
	page, known, _ := cache.Peek[*firstPage](e.pits, key)
	if !known && !second {
		key.feedback = false
		page, known, _ = cache.Peek[*firstPage](e.pits, key)
	}
	var plan *form.Plan // nil if another request was first, or this one failed
	if !known {
		res, own, err := a.rewrite(ctx, e.measure(a))
		switch {
		case err != nil && (s.req.Preview || second || errors.Is(ctx.Err(), context.Canceled)):
			return nil, err // the client is gone, or the page is sent without feedback
		case err != nil:
			page = &firstPage{failed: true}
		default:
			plan, page = own, newPage(s, res, own.NeedsDFS(), filtered(own.Clauses))
		}
		if !s.req.Preview {
			// Slices of a search may arrive at the same time: the first one stored wins.
			made := page
			if page = cache.PutIfAbsent(e.pits, key, page, pitTime); page != made {
				plan = nil
			}
		}
		if page.failed && err != nil {
			return nil, err
		}
	}
	switch {
	case page.failed:
		return &Result{Reason: reason.PITFirstPage, Clauses: s.notes()}, nil
	case plan == nil && page.filtered && s.discloses != 0:
		return &Result{Reason: reason.Hidden, Clauses: s.notes()}, nil
	case plan == nil:
		res := page.result(s)
		for i := range res.Clauses { // the first page may have come from another client
			for k := range res.Clauses[i].Feedback {
				res.Clauses[i].Feedback[k].Documents = nil
			}
		}
		return res, nil
	}
	return a.finish(page.result(s), plan), nil
}

// whyNothing returns the reason of the first clause that has one.
func whyNothing(plan *form.Plan) reason.Reason {
	for i := range plan.Clauses {
		c := &plan.Clauses[i]
		if c.Parsed.Role != dsl.Note && c.Reason != "" {
			return c.Reason
		}
		for k := range c.Fields {
			if why := c.Fields[k].Reason; why != "" {
				return why
			}
		}
	}
	return reason.NoNeighbors
}

const (
	// searchesSideBySide is how many searches of one request are expanded at the
	// same time. With cold caches each waits for the cluster.
	searchesSideBySide = 4
	// maxSearches is how many searches an expanded request may have. This also
	// bounds the size of the result: each search grows by at most about 20 KiB, in
	// [ModeHard] all together by what [maxSharedTerms] allows.
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

// joined combines the results. If no search was rewritten, it returns the
// failures as an error, or else the first reason.
func (s *several) joined() (*Result, error) {
	req := s.req
	room := len(req.Body)
	for _, res := range s.results {
		if res != nil {
			room += len(res.Body) + len(dsl.DFS) + dsl.HeaderRoom
		}
	}
	out := &Result{RawQuery: req.RawQuery, Body: make([]byte, 0, room), Parts: make([]Part, len(s.parts))}
	at := 0
	for i := range s.parts {
		p, res := &s.parts[i], s.results[i]
		out.Parts[i] = Part{Index: p.Index, Err: s.errs[i]}
		if s.errs[i] != nil {
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
			index := out.Parts[i].Index
			out.Parts[i] = res.Parts[0]
			out.Parts[i].Index = index
		}
		if out.Parts[i].FirstPass != nil {
			out.several = s
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
	case len(out.Failures()) > 0 && !slices.ContainsFunc(out.Parts, func(p Part) bool { return p.Enough.Hits > 0 }):
		return nil, fmt.Errorf("of %d searches: %w", len(s.parts), errors.Join(out.Failures()...))
	case len(out.Clauses) > 0:
		return &Result{Parts: out.Parts, Clauses: out.Clauses, Reason: out.Clauses[0].Reason, several: out.several}, nil
	}
	return &Result{Reason: reason.NoClause}, nil
}
