package expand

import (
	"bytes"
	"slices"

	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/internal/jsonspan"
)

// A planner decides how the terms that were selected are written, until the
// search is small enough for the cluster.
type planner struct {
	e *Expander
	s *search
	// clauseLimit is how many clauses the cluster takes in a query, 0 where that
	// is not known.
	clauseLimit int
	plan        form.Plan
	// rerank says how the hits are ordered outside of the engine, nil where they
	// are not.
	rerank *Rerank
}

func newPlanner(a *asker) *planner {
	p := &planner{e: a.e, s: a.s, clauseLimit: a.clauseLimit}
	o := &a.e.options
	p.plan = form.Plan{
		Search: a.s.Search, Clauses: a.clauses, Strength: o.Strength, Normalize: o.NormalizeScores,
		MarkRelated: o.MarkRelated, Unscored: a.s.unscored,
	}
	p.plan.MatchOnly = p.plan.Unscored && !p.plan.Exact()
	if o.Mode != ModeSoft {
		return p
	}
	r, why := p.reranking(a.targets)
	// Where the engine's scores count, they are those of the mode bm25.
	p.plan.FindOnly = (why == "" || why == reason.Window) && o.SoftWeight == 1
	if why == "" {
		p.rerank, p.plan.Edits = r, pageEdits(p.s, r.Asked())
	}
	for i := range p.plan.Clauses {
		p.plan.Clauses[i].ModeReason = why
	}
	return p
}

// write returns the rewritten search: what is planned is written, counted, and
// planned again with fewer terms where the cluster would not take it.
func (p *planner) write() *Result {
	plan := &p.plan
	var body []byte
	var clauses int
	for {
		p.decide()
		if !plan.Changes() && p.rerank == nil {
			return &Result{Clauses: explain(plan, p.s.firstHits(), false)} // each says why
		}
		body, clauses = plan.Write(body)
		over := clauses - p.limit()
		if over <= 0 || p.limit() == 0 || !plan.Changes() {
			break
		}
		p.takeBack(over)
	}
	if plan.Unscored && !plan.MatchOnly {
		// Before, it was written as if it had scores, so that as many terms fit
		// in: it finds what a search with scores finds.
		for i := range plan.Clauses {
			if c := &plan.Clauses[i]; c.Exact && c.Added() == 0 {
				c.Leave(reason.NoNeighbors)
			}
		}
		plan.MatchOnly = true
		body, clauses = plan.Write(body)
		if !plan.Changes() {
			return &Result{Clauses: explain(plan, p.s.firstHits(), p.rerank != nil)}
		}
	}
	var reranks []*Rerank
	if p.rerank != nil {
		reranks = []*Rerank{p.rerank}
	}
	endpoint := p.s.req.Endpoint // two of them know no search_type
	needsDFS := endpoint != EndpointValidate && endpoint != EndpointExplain && plan.NeedsDFS()
	return &Result{
		Rewritten:   true,
		RawQuery:    p.s.parameters.Rewritten(p.s.req.RawQuery, needsDFS, p.rerank != nil),
		Body:        body,
		Reranks:     reranks,
		Clauses:     explain(plan, p.s.firstHits(), p.rerank != nil),
		ClauseCount: clauses,
	}
}

// limit returns how many clauses the search may have, 0 where unknown.
func (p *planner) limit() int {
	if p.plan.Exact() { // there are as many terms as S has
		return exactLimit(p.clauseLimit)
	}
	return p.clauseLimit
}

// takeBack makes a search smaller that has over clauses too many.
func (p *planner) takeBack(over int) {
	half := (over + 1) / 2 // a term may stand there more than once, so that fewer may do
	clauses := p.plan.Clauses
	if !p.plan.Exact() {
		p.plan.Cut(half)
		return
	}
	if slices.ContainsFunc(clauses, func(c form.ClausePlan) bool { return c.Counted() }) {
		over = half
	}
	if form.CutExact(clauses, over) {
		return
	}
	for i := range clauses {
		clauses[i].Leave(reason.TermLimit)
	}
}

// decide chooses the form of every clause, and the phase.
func (p *planner) decide() {
	plan, saturated := &p.plan, false
	for i := range plan.Clauses {
		c := &plan.Clauses[i]
		c.Scoring, c.ScoringReason, c.Rescored = form.Auto, "", false
		switch {
		case !c.Changed():
			continue
		case plan.Unscored && c.SameMatches:
			c.Leave(reason.NoScores) // only the order could change
			continue
		case c.Exact:
			c.Scoring = form.Hard
			continue
		}
		c.Scoring, c.ScoringReason = p.scoring(c)
		c.Flatten()
		saturated = saturated || c.Scoring == form.Saturated
	}
	plan.Rescore = false
	if saturated && !p.e.options.NoRescore {
		p.decidePhase()
	}
	for i := range plan.Clauses {
		if c := &plan.Clauses[i]; plan.Unscored && c.Scoring != form.Auto && !c.Exact {
			c.Scoring, c.ScoringReason = form.Linear, ""
		}
	}
	plan.Divide()
}

// scoring chooses the form, and says why it is not the configured one.
func (p *planner) scoring(c *form.ClausePlan) (form.Scoring, reason.Reason) {
	wanted := p.e.options.Scoring
	if p.plan.FindOnly || c.Added() == 0 || wanted == form.Linear {
		return form.Linear, ""
	}
	for i := range c.Fields {
		f := &c.Fields[i]
		if alone := f.Analysis == nil; !c.Additive || c.TermCentric || alone && !c.ByField || !alone && !f.OneTermPerWord() {
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
// documents, also of those that the filter of an alias hides.
func (p *planner) findsMany() bool {
	s, clauses := p.s, p.plan.Clauses
	if c := &clauses[0]; len(clauses) != 1 || c.Parsed.Depth > 0 || c.Counted() || s.parameters.CountsAll() ||
		s.parameters.Routed() || filtered(clauses) || !slices.ContainsFunc(c.Fields, func(f form.FieldPlan) bool { return f.FindsMany() }) {
		return false
	}
	shows := false
	_ = jsonspan.Members(s.Body, func(name, _ []byte) error { // read before
		shows = shows || slices.Contains([]string{"track_total_hits", "aggs", "aggregations", "post_filter"}, string(name))
		return nil
	})
	return !shows
}

// decidePhase decides on a rescore.
func (p *planner) decidePhase() {
	why := p.noRescore()
	p.plan.Rescore = why == ""
	p.plan.FindsMany = p.findsMany()
	for i := range p.plan.Clauses {
		c := &p.plan.Clauses[i]
		if c.Scoring == form.Saturated {
			c.Rescored, c.ScoringReason = p.plan.Rescore, why
		}
	}
}

// noRescore returns why the best hits cannot be rescored, "" where they can.
func (p *planner) noRescore() reason.Reason {
	s, limit := p.s, p.e.limits.of(LimitRescore, p.s.req.Index)
	switch {
	case s.req.Endpoint != EndpointSearch && s.req.Endpoint != EndpointMultiSearch:
		return reason.Endpoint
	case s.PIT.Has:
		return reason.PointInTime // the pages after the first have a search_after
	case s.NoRescore != "":
		return s.NoRescore
	case s.Scores.Min:
		return reason.MinScore
	case s.Hits.None:
		return reason.NoScores
	case limit > 0 && form.RescoreWindow > limit:
		return reason.RescoreWindow
	case namesQueries(s.Query.Of(s.Body)):
		return reason.Named
	}
	return ""
}

// namesQueries reports whether a query may have named queries or inner hits,
// whose scores the engines take from the query. A name may have escapes.
func namesQueries(query []byte) bool {
	names := []string{`"_name"`, `"inner_hits"`, `\u004`, `\u005`, `\u006`, `\u007`}
	return slices.ContainsFunc(names, func(name string) bool { return bytes.Contains(query, []byte(name)) })
}
