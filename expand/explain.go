package expand

import (
	"cmp"
	"slices"
	"strings"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/internal/jsonspan"
	"github.com/akin-search/akin/simmatrix"
)

// explain describes every field in a plan. reranked says that akin reranks the
// hits of this page.
func explain(p *form.Plan, first []FirstHit, reranked bool) []Explanation {
	out := make([]Explanation, 0, len(p.Clauses))
	for i := range p.Clauses {
		c := &p.Clauses[i]
		if c.Parsed.Expanded() {
			if left := partsOfOtherFields(p.Clauses[i+1:], c.Parsed.At); left != nil {
				out = append(out, Explanation{Path: c.Parsed.Path, Reason: c.Reason, Left: left})
			}
			continue
		}
		if c.Reason != "" {
			e := Explanation{Path: c.Parsed.Path, Reason: c.Reason, Left: c.Parsed.Left}
			if c.Reason == reason.NoNeighbors || c.Reason == reason.NeighborsTooFrequent { // of fields that are searched together
				e.LeftOut = leftOut(c, &c.Fields[0])
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

// partsOfOtherFields returns the parts of a query string at a place that the
// engine searches in a field without text or matrix, such as 31:3730.
func partsOfOtherFields(clauses []form.Clause, at jsonspan.Span) (left []string) {
	for i := range clauses {
		c := &clauses[i]
		if c.Parsed.Part && at.Holds(c.Parsed.At) && len(c.Fields) == 1 && (c.Fields[0].Reason == reason.NotText || c.Fields[0].Reason == reason.NoMatrix) {
			left = append(left, c.Fields[0].Name+":"+c.Parsed.Text)
		}
	}
	return left
}

func explainField(p *form.Plan, c *form.Clause, f *form.Field, reranked bool) Explanation {
	e := Explanation{Path: c.Parsed.Path, Field: f.Name, Matrix: f.Matrix, Model: f.Model, Indices: f.Indices, Reason: f.Reason}
	if f.Analysis != nil {
		e.Terms, e.Written = f.Analysis.Terms, f.Analysis.Written
	}
	if f.Terms != nil && slices.Contains([]reason.Reason{"", reason.NoNeighbors, reason.NeighborsTooFrequent, reason.TermLimit, reason.Phrase}, f.Reason) { // otherwise no neighbors were looked up
		e.LeftOut = leftOut(c, f)
		f.Terms.Origins.Expanded(func(o *terms.Origin) {
			if o.Row.IsZero() || o.Nearest != nil {
				e.NoRow = append(e.NoRow, o.Term)
			}
			for _, known := range o.Nearest {
				known = simmatrix.Spelled(known)
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
	e.AsTypedFirst = p.TypedFirst(c)
	e.Optional = f.Optional
	e.MatrixFrequencies = f.Stats.Uncounted
	e.Form, e.Reason = c.Form(f), cmp.Or(c.ModeReason, c.ScoringReason)
	if f.Truncated {
		e.Reason = reason.Truncated
	}
	for k := range f.Alternatives {
		a := &f.Alternatives[k]
		e.Alternatives = append(e.Alternatives, Alternative{
			Term: simmatrix.Spelled(a.Term), For: simmatrix.Spelled(a.For), Similarity: a.Similarity,
			Found: found(f.Analysis, a.Place), At: a.Place.Start, Key: a.Term, ForKey: a.For,
		})
	}
	e.Added = make([]Added, len(f.Added))
	lambda := p.LinearLambda(c, f)
	for k := range f.Added {
		a := &f.Added[k]
		e.Added[k] = Added{
			Term: a.Term, From: f.Terms.Origins[a.Origin].Term,
			Similarity: a.Similarity, Fit: a.Fit, IDF: simmatrix.IDF(a.DocFreq, f.Stats.DocCount), Weight: a.V, Boost: p.Boost(c.Scoring, f, a, lambda),
		}
	}
	return e
}

// found returns a part of a text as it is written there, of variants of a word
// the first.
func found(a *esclient.Analysis, at terms.Place) string {
	var b strings.Builder
	for k := at.Start; k < at.End; k++ {
		if k > at.Start {
			if a.Positions[k] == a.Positions[k-1] {
				continue
			}
			b.WriteString(strings.Repeat(" _", a.Positions[k]-a.Positions[k-1]-1) + " ")
		}
		if a.Written != nil && a.Written[k] != "" {
			b.WriteString(a.Written[k])
		} else {
			b.WriteString(a.Terms[k])
		}
	}
	return b.String()
}

// whysLeftOut are the words of explanations.
var whysLeftOut = [...]string{
	terms.Absent: LeftOutAbsent, terms.Frequent: LeftOutFrequent, terms.NoPositions: LeftOutPositions, terms.Graph: LeftOutGraph,
	terms.Combined: LeftOutCombined, terms.NotInMode: LeftOutMode, terms.Ordered: LeftOutOrdered, terms.Limited: LeftOutLimit,
}

// leftOut returns the neighbors that were not added to a field: first the
// alternatives that its selection chose and the plan cut.
func leftOut(c *form.Clause, f *form.Field) (out []LeftOut) {
	if f.Terms == nil {
		return nil
	}
	why := terms.Limited
	switch {
	case f.Analysis != nil && f.Analysis.Graph:
		why = terms.Graph
	case c.SameMatches() && !c.HasReadings():
		why = terms.Ordered
	}
	left := make([]terms.LeftOut, 0, len(f.Terms.LeftOut))
	for _, a := range f.Cut {
		left = append(left, terms.LeftOut{Term: a.Term, From: a.For, Similarity: a.Similarity, Why: why})
	}
	left = append(left, f.Terms.LeftOut...)
	for _, l := range left[:min(len(left), terms.MaxLeftOut)] {
		out = append(out, LeftOut{
			Term: simmatrix.Spelled(l.Term), From: simmatrix.Spelled(l.From), Similarity: l.Similarity, Reason: whysLeftOut[l.Why],
		})
	}
	return out
}
