package expand

import (
	"cmp"
	"slices"

	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/simmatrix"
)

// explain describes every field in a plan. reranked says that akin reranks the
// hits of this page.
func explain(p *form.Plan, first []FirstHit, reranked bool) []Explanation {
	out := make([]Explanation, 0, len(p.Clauses))
	for i := range p.Clauses {
		c := &p.Clauses[i]
		if c.Reason != "" {
			e := Explanation{Path: c.Parsed.Path, Reason: c.Reason}
			if c.Reason == reason.NeighborsTooFrequent { // of fields that are searched together
				e.LeftOut = leftOut(c.Fields[0].Terms)
			}
			out = append(out, e)
			continue
		}
		out = slices.Grow(out, len(c.Fields))
		for k := range c.Fields {
			e := explainField(p, c, &c.Fields[k], reranked)
			for _, t := range c.Fields[k].Feedback {
				f := AddedFeedback{Term: t.Term, Weight: t.Weight, Boost: t.Boost}
				for _, d := range t.Hits {
					if d < len(first) { // later pages of a point in time have no first hits
						f.Documents = append(f.Documents, first[d].ID)
					}
				}
				e.Feedback = append(e.Feedback, f)
			}
			out = append(out, e)
		}
	}
	return out
}

func explainField(p *form.Plan, c *form.ClausePlan, f *form.Field, reranked bool) Explanation {
	e := Explanation{Path: c.Parsed.Path, Field: f.Name, Matrix: f.Matrix, Indices: f.Indices, Reason: f.Reason}
	if f.Analysis != nil {
		e.Terms, e.Written = f.Analysis.Terms, f.Analysis.Written
	}
	if f.Terms != nil && (f.Reason == "" || f.Reason == reason.NoNeighbors || f.Reason == reason.NeighborsTooFrequent) { // otherwise no neighbors were looked up
		e.LeftOut = leftOut(f.Terms)
		f.Terms.Origins.Expanded(func(o *terms.Origin) {
			if o.Row.IsZero() || o.Nearest != nil {
				e.NoRow = append(e.NoRow, o.Term)
			}
			for _, known := range o.Nearest {
				e.Nearest = append(e.Nearest, NearestWord{Term: o.Term, Known: known})
			}
		})
	}
	if e.Reason == "" && c.Scoring == form.Auto { // the fields share the terms of the first one, and its reason
		e.Reason = c.Fields[0].Reason
	}
	switch {
	case reranked && (e.Reason == "" || f.Analysis != nil && compared(e.Reason)):
		e.Phase = "rerank"
	case e.Reason == "" && c.Rescored:
		e.Phase = "rescore"
	case e.Reason == "":
		e.Phase = "query"
	}
	if e.Reason != "" {
		return e
	}
	e.Effort = p.Recipe.Effort.String()
	if e.Form, e.Reason = c.Scoring.String(), cmp.Or(c.ModeReason, c.ScoringReason); f.Truncated {
		e.Reason = reason.Truncated
	}
	e.Added = make([]Added, len(f.Added))
	for k := range f.Added {
		a := &f.Added[k]
		e.Added[k] = Added{
			Term: a.Term, From: f.Terms.Origins[a.Origin].Term,
			Similarity: a.Similarity, Fit: a.Fit, IDF: simmatrix.IDF(a.DocFreq, f.Stats.DocCount), Weight: a.V, Boost: p.Boost(c.Scoring, f, a),
		}
	}
	return e
}

// leftOut returns the neighbors that a selection left out.
func leftOut(sel *terms.Selection) []LeftOut {
	if sel == nil {
		return nil
	}
	var out []LeftOut
	for _, l := range sel.LeftOut {
		why := LeftOutAbsent
		if l.Frequent {
			why = LeftOutFrequent
		}
		out = append(out, LeftOut{Term: l.Term, From: sel.Origins[l.Origin].Term, Similarity: l.Similarity, Reason: why})
	}
	return out
}
