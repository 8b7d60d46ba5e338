package expand

import (
	"cmp"
	"slices"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/internal/jsonspan"
)

// A planner makes the plan of a search from the chosen terms. If the cluster
// would not accept the search, it makes another plan with fewer terms.
type planner struct {
	*expansion

	// rerank says how akin reranks the hits, nil if it does not.
	rerank *Rerank
	// findOnly says that the query only finds hits, and akin reranks them or
	// nothing does.
	findOnly bool
	// noRescore is why the best hits cannot be rescored, "" if they can.
	noRescore reason.Reason
}

// write returns the plan of a search for the chosen terms, and the rewritten
// search.
func (a *expansion) write(c *chosen) (*form.Plan, *Result) {
	p, clauses := planner{expansion: a}, adjusted(c.clauses, a.s.req.Changes.Adjusted)
	if a.s.order && a.s.profile.Matching == Auto {
		a.s.ordering(clauses)
	}
	for i := range clauses {
		clauses[i].AsTypedFirst = !a.s.order && a.s.asTyped(&clauses[i]) && !clauses[i].SameMatches()
	}
	if o := a.s.profile; !o.NoRescore {
		p.noRescore = a.s.notRescored(a.recipe.Window, a.limits.of(LimitRescore, a.s.req.Index))
		if slices.ContainsFunc(clauses, func(c form.Clause) bool { return len(c.Vectors) > 0 }) {
			p.noRescore = cmp.Or(p.noRescore, reason.Vectors) // not all engines rescore vector queries
		}
	}
	var notReranked reason.Reason
	if a.followUp != nil {
		notReranked = reason.NotRemembered
	}
	changed := slices.ContainsFunc(clauses, func(c form.Clause) bool { return c.Changed() })
	switch {
	case a.s.Hybrid && (a.s.mode != ModeBM25 || a.s.embeds):
		notReranked = reason.Hybrid
	case a.s.mode == ModeSoft && (changed || !a.onlyIfAdded):
		p.rerank, notReranked = a.reranking(c)
		p.findOnly = p.rerank != nil || slices.Contains(sameQuery, notReranked)
		if p.rerank != nil && a.s.embeds {
			p.rerank.Text, p.rerank.TextWeight = a.embedded(clauses), a.s.profile.EmbeddingsWeight
		}
	}
	if a.s.embeds && !a.s.Hybrid && !p.findOnly && !a.s.req.Warm { // the engine scores
		var why reason.Reason
		p.rerank, why = a.byEmbeddings(c, clauses)
		notReranked = cmp.Or(why, notReranked)
	}
	for i := range clauses {
		clauses[i].ModeReason = cmp.Or(clauses[i].ModeReason, notReranked)
	}
	for matchOnly := false; ; {
		plan := p.plan(clauses, matchOnly)
		if !plan.Changes() && p.rerank == nil && !a.s.nested {
			return plan, &Result{Parts: []Part{{Index: a.s.req.Index, FollowUp: a.followUp}}, Clauses: explain(plan, a.first, false)} // the explanations give the reasons
		}
		rewriting := plan.Rewrite(&a.m.queries)
		count := rewriting.Leaves()
		limit := a.clauseLimit // 0 if unknown
		if plan.Exact() {      // it can have as many terms as S
			limit = exactLimit(limit)
		}
		switch {
		case limit == 0 && count > exactLimit(0) && plan.HasAlternatives(): // nothing else bounds them
			clauses = plan.Clauses // of a plan that is given up
			form.CutAlternatives(clauses, count-exactLimit(0), count)
		case limit > 0 && count > limit && plan.Changes():
			clauses = plan.Clauses // as above
			dropTerms(clauses, plan.Exact(), count-limit, count)
		case plan.Unscored && !plan.MatchOnly:
			// The first plan has the terms of a search with scores, so that both find
			// the same documents.
			matchOnly = true
		default:
			body := rewriting.Body()
			if p.rerank != nil {
				body = p.rerank.divide(a.s, body, plan.NeedsDFS())
			}
			return plan, &Result{
				Rewritten: true, Parts: []Part{{Index: a.s.req.Index, Rerank: p.rerank, FollowUp: a.followUp}}, Body: body, ClauseCount: count,
				RawQuery: a.s.rawQuery(plan.NeedsDFS(), p.rerank != nil), Clauses: explain(plan, a.first, p.findOnly && p.rerank != nil),
			}
		}
	}
}

// dropTerms drops terms of clauses, where over of count written clauses are too
// many. exact says that the measure of the mode hard scores them.
func dropTerms(clauses []form.Clause, exact bool, over, count int) {
	for i := range clauses { // a vector query cannot lose terms: drop all of it
		if len(clauses[i].Vectors) > 0 {
			clauses[i].Leave(reason.TermLimit)
			return
		}
	}
	if slices.ContainsFunc(clauses, func(c form.Clause) bool { return c.HasBeside() }) {
		for i := range clauses {
			clauses[i].DropBeside(reason.TermLimit)
		}
		return
	}
	if !exact {
		form.Cut(clauses, over, count)
		return
	}
	if slices.ContainsFunc(clauses, func(c form.Clause) bool { return c.Counted() }) {
		over = (over + 1) / 2 // a term may be written twice
	}
	if !form.CutExact(clauses, over) {
		for i := range clauses {
			clauses[i].Leave(reason.TermLimit)
		}
	}
}

// plan returns how clauses are written. matchOnly says that scores do not
// count, not even in clauses of the mode hard.
func (p *planner) plan(clauses []form.Clause, matchOnly bool) *form.Plan {
	p.m.queries.Reset()
	plan := p.newPlan()
	plan.FindOnly, plan.Clauses = p.findOnly, form.Copied(clauses)
	for i := range plan.Clauses {
		c := &plan.Clauses[i]
		p.chooseForm(plan, c, matchOnly)
		plan.Rescore = plan.Rescore || c.Rescored
	}
	plan.MatchOnly = matchOnly || p.s.unscored && !plan.Exact()
	plan.NameAdded = plan.NameAdded && !filtered(clauses) // names would show terms that the client may not see
	plan.FindsMany = !p.s.unscored && p.findsMany(clauses)
	if plan.FindsMany {
		plan.LeaveOutSets()
	}
	return plan
}

// newPlan returns a plan without clauses.
func (a *expansion) newPlan() *form.Plan {
	o := a.s.profile
	return &form.Plan{
		Search: a.s.Search, Strength: form.LambdaOf(o.Strength), Recipe: a.recipe, Normalize: o.NormalizeScores,
		MarkRelated: o.MarkRelated, VectorsOnly: o.SoftWeight == 1, Unscored: a.s.unscored, NameAdded: a.s.named,
	}
}

// chooseForm chooses the form of a clause of the plan and its phase: a simpler
// one if it would be nested too deep.
func (p *planner) chooseForm(plan *form.Plan, c *form.Clause, matchOnly bool) {
	c.Writing = form.Writing{}
	switch {
	case !c.Changed():
		return
	case p.s.unscored && c.SameMatches() && (!c.HasReadings() || !c.HasAlternatives()):
		c.Leave(reason.NoScores) // only the order could change
		return
	case len(c.Vectors) > 0:
		c.Scoring = form.Vectors
		return
	case c.Exact && matchOnly && c.Added() == 0:
		c.Leave(reason.NoNeighbors)
		return
	case c.Exact:
		c.Scoring = form.Hard
		return
	}
	scoring, why := p.scoring(c)
	orders := c.SameMatches() && !c.HasReadings() && c.HasAlternatives() // the linear form cannot have these
	if orders && scoring == form.Linear {
		c.DropAlternatives()
		p.chooseForm(plan, c, matchOnly)
		return
	}
	for scoring != form.Auto && (!orders || scoring != form.Linear) {
		c.Writing = p.inForm(c, scoring, why)
		if c.Orders && !c.Rescored && !p.findOnly {
			c.DropAdded(cmp.Or(p.noRescore, why, reason.NoScores))
			p.chooseForm(plan, c, matchOnly)
			return
		}
		if !plan.TooDeep(&p.m.queries, c) {
			return
		}
		scoring, why = scoring.Simpler(), reason.TooDeep
	}
	c.Leave(reason.TooDeep)
}

// inForm returns how a clause is written in a form. why is why it is not the
// configured one.
func (p *planner) inForm(c *form.Clause, scoring form.Scoring, why reason.Reason) form.Writing {
	switch {
	case p.s.unscored:
		return form.Writing{Scoring: form.Linear}
	case !p.s.profile.NoRescore && (scoring == form.Saturated || c.HasBeside() && !c.Writes()):
		return form.Writing{Scoring: scoring, ScoringReason: p.noRescore, Rescored: p.noRescore == ""}
	}
	return form.Writing{Scoring: scoring, ScoringReason: why}
}

// scoring chooses the form, and returns why it is not the configured one.
func (p *planner) scoring(c *form.Clause) (form.Scoring, reason.Reason) {
	wanted := cmp.Or(p.s.profile.Scoring, p.recipe.Scoring)
	if p.findOnly || !c.Writes() || c.Parsed.Role == dsl.InFilter || wanted == form.Linear ||
		wanted == form.Auto && c.AsTypedFirst { // few are found, which the linear form ranks as well for half the price
		return form.Linear, ""
	}
	for i := range c.Fields {
		f := &c.Fields[i]
		if unread := f.Analysis == nil; !c.Additive || c.Parsed.TermCentric() || unread && c.Parsed.Across != dsl.ByField || !unread && !f.OneTermPerWord() {
			return form.Linear, reason.NotAdditive
		}
	}
	if wanted != form.Auto && wanted != form.Saturated {
		return wanted, ""
	}
	for i := range c.Fields {
		f := &c.Fields[i]
		switch {
		case len(f.Added)+len(f.Alternatives) == 0:
		case f.Stats.Uncounted: // scripts take the engine's own frequencies out of its scores
			return form.Grouped, reason.NoFrequencies
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

// findsMany reports whether a search for one text matches so many documents
// that those which only related words find would not show in a total.
// Statistics cover all documents, including those that aliases, search
// pipelines and, with security, the client's permissions hide.
func (p *planner) findsMany(clauses []form.Clause) bool {
	s, many := p.s, false
	for _, f := range form.Fields(clauses) {
		many = many || f.FindsMany()
	}
	if c := &clauses[0]; !many || len(clauses) != 1 || c.Parsed.Depth > 0 || c.Counted() || s.parameters.CountsAll() ||
		s.parameters.Routed() || s.parameters.Get("search_pipeline") != "" || s.req.Allowed != nil || filtered(clauses) {
		return false
	}
	shows := false
	_ = jsonspan.Members(s.Body, func(name, _ []byte) error { // it was read before
		shows = shows || slices.Contains([]string{"track_total_hits", "aggs", "aggregations", "post_filter", "search_pipeline"}, string(name))
		return nil
	})
	return !shows
}

// notRescored returns why the best window hits cannot be rescored, "" if they
// can. limit is the indices' largest window, 0 if unknown.
func (s *search) notRescored(window int, limit int64) reason.Reason {
	switch why := s.fixedOrder(); {
	case s.req.Endpoint != EndpointSearch && s.req.Endpoint != EndpointMultiSearch:
		return reason.Endpoint
	case why != "":
		return why
	case limit > 0 && int64(window) > limit:
		return reason.RescoreWindow
	case searchesVectors(s.Query.Of(s.Body)):
		return reason.Vectors // a rescore copies the query and would search the vectors again
	case namesQueries(s.Query.Of(s.Body)):
		return reason.Named
	}
	return ""
}
