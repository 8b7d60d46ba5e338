package form

import (
	"slices"

	"github.com/akin-search/akin/expand/query"
	"github.com/akin-search/akin/expand/terms"
)

// groups returns a clause in the forms grouped and saturated, which score each
// term of the text together with its neighbors.
func (w *builder) groups() *query.Query {
	c := w.c
	q := w.found()
	several := w.several()
	count := w.counts(len(c.Fields))
	for i := range c.Fields {
		f, one := &c.Fields[i], w.Bool()
		switch {
		case f.Analysis == nil:
			several.Should(w.originalFor(i))
		case len(c.Fields) == 1 && !count:
			w.groupsOf(q, i, false)
		case count:
			several.Should(w.groupsOf(one, i, true).Minimum(w.minimum(f)))
		default:
			several.Should(w.groupsOf(one, i, false))
		}
	}
	return q.Should(several.Simple())
}

// groupsOf adds the terms of field i to a bool. repeat says that a repeated
// term is written several times, so that the engine counts it as often.
func (w *builder) groupsOf(to *query.Query, i int, repeat bool) *query.Query {
	f := &w.c.Fields[i]
	for k := range f.Terms.Origins {
		o := &f.Terms.Origins[k]
		if slices.Contains(f.Optional, o.Term) { // no document has it
			continue
		}
		times, x := 1, w.plan.times(w.scoring, f, o)
		if repeat {
			times = int(o.X)
			x /= o.X
		}
		for range times {
			to.Should(w.group(i, k, x*w.c.Parsed.Boost*f.Boost))
		}
	}
	return to.Should(w.set(i))
}

// group returns origin k of field i with its neighbors, with its score
// multiplied by boost.
func (w *builder) group(i, k int, boost float64) *query.Query {
	f, added := &w.c.Fields[i], w.divided[i].scored
	if w.role == ordering {
		added = w.divided[i].rescored
	}
	related := slices.ContainsFunc(added, func(a terms.Candidate) bool { return a.CountsAs(k) })
	switch {
	case !related && !f.isHost(k):
		return w.Term(f.Name, f.Terms.Origins[k].Term, boost, "")
	case w.scoring == Saturated:
		return w.saturated(i, k, added, boost)
	}
	return w.grouped(i, k, added, boost)
}

// times returns x'_i, how often a term of the text counts in the forms grouped
// and saturated: x_i, and without the fit also λ v_i / w_i².
func (p *Plan) times(s Scoring, f *Field, o *terms.Origin) float64 {
	x := o.X
	for k := range f.Added {
		if a := &f.Added[k]; a.Word && a.Term == o.Term {
			x += p.Boost(s, f, a, 0)
		}
	}
	return x
}
