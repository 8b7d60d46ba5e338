package expand

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/internal/jsonspan"
)

// A planner makes the plan of a search from the terms that were chosen, and
// another one with fewer terms if the cluster would not take the search.
type planner struct {
	*asker

	// rerank says how the hits are ordered outside of the engine, nil where they
	// are not, and notReranked why ModeSoft does not have it so. notInMode is that
	// of [chosen].
	rerank      *Rerank
	notReranked reason.Reason
	notInMode   []reason.Reason
	// findOnly says that the query finds hits, and others or nobody order them.
	findOnly bool
	// noRescore is why the best hits cannot be rescored, "" where they can.
	noRescore reason.Reason
}

// write returns the plan of a search by what was chosen, and the search
// rewritten by it.
func (a *asker) write(c chosen) (*form.Plan, *Result) {
	p, clauses := planner{asker: a, notInMode: c.notInMode}, adjusted(c.clauses, a.s.req.Adjusted)
	if o := a.s.profile; !o.NoRescore {
		p.noRescore = a.s.notRescored(a.recipe.Window, a.limits.of(LimitRescore, a.s.req.Index))
		if slices.ContainsFunc(clauses, func(c form.Clause) bool { return len(c.Vectors) > 0 }) {
			p.noRescore = cmp.Or(p.noRescore, reason.Vectors) // which not all engines rescore
		}
	}
	switch {
	case a.s.Hybrid && a.s.profile.Mode != ModeBM25:
		p.notReranked = reason.Hybrid
	case a.s.profile.Mode == ModeSoft:
		p.rerank, p.notReranked = a.reranking(c.clauses)
		p.findOnly = p.rerank != nil || slices.Contains(sameQuery, p.notReranked)
	}
	var body []byte
	for matchOnly := false; ; {
		plan := p.plan(clauses, matchOnly)
		if !plan.Changes() && p.rerank == nil && !a.s.nested {
			return plan, &Result{Parts: []Part{{Index: a.s.req.Index}}, Clauses: explain(plan, a.s.firstHits(), false)} // each says why
		}
		var count int
		body, count = plan.Write(body)
		limit := a.clauseLimit // 0 where unknown
		if plan.Exact() {      // there are as many terms as S has
			limit = exactLimit(limit)
		}
		switch {
		case limit > 0 && count > limit && plan.Changes():
			clauses = dropTerms(plan, count-limit)
		case plan.Unscored && !plan.MatchOnly:
			// It was written as if it had scores, so that as many terms fit in: it
			// finds what a search with scores finds.
			matchOnly = true
		default:
			if p.rerank != nil {
				// A copy, since the first one may be memory that is used again.
				body = p.rerank.divide(a.s, bytes.Clone(body))
			}
			return plan, &Result{
				Rewritten: true, Parts: []Part{{Index: a.s.req.Index, Rerank: p.rerank}}, Body: body, ClauseCount: count,
				RawQuery: a.s.rawQuery(plan.NeedsDFS(), p.rerank != nil), Clauses: explain(plan, a.s.firstHits(), p.rerank != nil),
			}
		}
	}
}

// dropTerms returns fewer terms than those of a plan that has over clauses too
// many.
func dropTerms(plan *form.Plan, over int) []form.Clause {
	clauses := plan.Selected()
	half := (over + 1) / 2   // a term may stand there more than once, so that fewer may do
	for i := range clauses { // of vectors there are no fewer terms
		if len(clauses[i].Vectors) > 0 {
			clauses[i] = clauses[i].Left(reason.TermLimit)
			return clauses
		}
	}
	if !plan.Exact() {
		return form.Cut(clauses, half)
	}
	if slices.ContainsFunc(clauses, func(c form.Clause) bool { return c.Counted() }) {
		over = half
	}
	fewer, had := form.CutExact(clauses, over)
	if !had {
		for i := range fewer {
			fewer[i] = fewer[i].Left(reason.TermLimit)
		}
	}
	return fewer
}

// plan returns how clauses are written; matchOnly says that scores do not count
// in those of the mode hard either.
func (p *planner) plan(selected []form.Clause, matchOnly bool) *form.Plan {
	clauses, rescored, exact := p.m.plan[:0], false, false
	for i := range selected {
		c := p.clausePlan(&selected[i], matchOnly)
		if c.ModeReason = p.notReranked; len(p.notInMode) > 0 {
			c.ModeReason = cmp.Or(p.notInMode[i], c.ModeReason)
		}
		clauses = append(clauses, c)
		rescored, exact = rescored || c.Rescored, exact || c.Exact
	}
	p.m.plan = clauses
	o := p.s.profile
	return &form.Plan{
		Search: p.s.Search, Clauses: clauses, Strength: form.Strength(o.Strength), Recipe: p.recipe, Normalize: o.NormalizeScores,
		MarkRelated: o.MarkRelated, VectorsOnly: o.SoftWeight == 1, Unscored: p.s.unscored, MatchOnly: matchOnly || p.s.unscored && !exact,
		NameAdded: p.s.named && !filtered(selected), // which hides what a client may not see
		Rescore:   rescored, FindsMany: rescored && p.findsMany(selected), FindOnly: p.findOnly,
	}
}

// clausePlan chooses the form of a clause, and the phase.
func (p *planner) clausePlan(c *form.Clause, matchOnly bool) form.ClausePlan {
	switch {
	case !c.Changed():
		return form.ClausePlan{Clause: *c}
	case p.s.unscored && c.SameMatches:
		return form.ClausePlan{Clause: c.Left(reason.NoScores)} // only the order could change
	case len(c.Vectors) > 0:
		return form.ClausePlan{Clause: *c, Scoring: form.Vectors}
	case c.Exact && matchOnly && c.Added() == 0:
		return form.ClausePlan{Clause: c.Left(reason.NoNeighbors)}
	case c.Exact:
		return form.ClausePlan{Clause: *c, Scoring: form.Hard}
	}
	scoring, why := p.scoring(c)
	if flat := c.Flat(scoring); flat != scoring {
		scoring, why = flat, reason.TooDeep
	}
	switch {
	case scoring == form.Auto:
		return form.ClausePlan{Clause: c.Left(why)}
	case p.s.unscored:
		return form.ClausePlan{Clause: *c, Scoring: form.Linear}
	case scoring == form.Saturated && !p.s.profile.NoRescore:
		return form.ClausePlan{Clause: *c, Scoring: scoring, ScoringReason: p.noRescore, Rescored: p.noRescore == ""}
	}
	return form.ClausePlan{Clause: *c, Scoring: scoring, ScoringReason: why}
}

// scoring chooses the form, and says why it is not the configured one.
func (p *planner) scoring(c *form.Clause) (form.Scoring, reason.Reason) {
	wanted := cmp.Or(p.s.profile.Scoring, p.recipe.Scoring)
	if p.findOnly || c.Added() == 0 || wanted == form.Linear {
		return form.Linear, ""
	}
	for i := range c.Fields {
		f := &c.Fields[i]
		if unread := f.Analysis == nil; !c.Additive || c.TermCentric || unread && !c.ByField || !unread && !f.OneTermPerWord() {
			return form.Linear, reason.NotAdditive
		}
	}
	if wanted == form.Grouped {
		return form.Grouped, ""
	}
	for i := range c.Fields {
		f := &c.Fields[i]
		switch {
		case len(f.Added) == 0:
		case f.Stats.Scale == 0 || f.Weighting() != terms.SqrtIDF:
			return form.Grouped, reason.NotBM25
		case !f.Stats.Scripts:
			return form.Grouped, reason.NoScripts
		default:
			if why := p.s.shardReason(f.Analysis); why != "" {
				return form.Grouped, why
			}
		}
	}
	return form.Saturated, ""
}

// findsMany reports whether a search for one text finds so much by it that what
// related words find besides would show in no total. Statistics are of all
// documents, also of those that aliases, search pipelines and, with security,
// the rights of the client hide.
func (p *planner) findsMany(clauses []form.Clause) bool {
	s := p.s
	if c := &clauses[0]; len(clauses) != 1 || c.Parsed.Depth > 0 || c.Counted() || s.parameters.CountsAll() ||
		s.parameters.Routed() || s.parameters.Get("search_pipeline") != "" || s.req.Allowed != nil || filtered(clauses) ||
		!slices.ContainsFunc(c.Fields, func(f form.Field) bool { return f.FindsMany() }) {
		return false
	}
	shows := false
	_ = jsonspan.Members(s.Body, func(name, _ []byte) error { // read before
		shows = shows || slices.Contains([]string{"track_total_hits", "aggs", "aggregations", "post_filter", "search_pipeline"}, string(name))
		return nil
	})
	return !shows
}

// notRescored returns why the best hits, as many as window, cannot be rescored,
// "" where they can; limit is how many the indices are known to take, 0 where
// that is not known.
func (s *search) notRescored(window int, limit int64) reason.Reason {
	switch why := s.fixedOrder(); {
	case s.req.Endpoint != EndpointSearch && s.req.Endpoint != EndpointMultiSearch:
		return reason.Endpoint
	case why != "":
		return why
	case limit > 0 && int64(window) > limit:
		return reason.RescoreWindow
	case searchesVectors(s.Query.Of(s.Body)):
		return reason.Vectors // a rescore has a copy of the query, which would search them once more
	case namesQueries(s.Query.Of(s.Body)):
		return reason.Named
	}
	return ""
}
