package form

import (
	"github.com/akin-search/akin/expand/query"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/simmatrix"
)

// The form hard writes a measure, over the terms of the text and all of their
// neighbors, in a linear field l, and divides by the norm of the document:
//
//	in    {"match":{"f":"a b"}}, c for a
//	out   {"bool":{"should":[{"bool":{"filter":[the original]}},
//	      {"function_score":{"query":{"bool":{"should":[a,b,c]}},…}}]}}
//
// The boosts are v_j / (‖Wx‖·c·idf_j), without c·idf_j if a script scores. They
// have no λ and no bound: the scores are not those of the original.

// HardTooDeep reports whether the form nests a clause too deep, whatever its
// terms.
func (c *Clause) HardTooDeep() bool {
	levels := 4 // bool, function_score, bool, term
	several := len(c.Fields) > 1
	if several {
		levels++ // dis_max
	}
	if c.Counted() && (several || !c.SameMatches()) {
		levels++ // bool, with either the words or the function_score in it
	}
	return c.Parsed.Depth+levels > maxLevels
}

func (w *builder) hard() *query.Query {
	c := w.c
	q := w.found()
	several := w.several()
	fields := 0
	for i := range c.Fields {
		if c.Fields[i].Exact != nil {
			fields++
		}
	}
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Exact == nil {
			continue
		}
		one := w.measure(f.Exact, f.Terms.Origins, f.Added, f.Stats.DocCount, c.Parsed.Boost*f.Boost, f.Name)
		if w.counts(fields) {
			one = w.Bool().Filter(w.words(i, i+1)).Should(one)
		}
		several.Should(one)
	}
	return q.Should(several.Simple())
}

// measure returns a measure over the terms of a text and added ones, in a
// linear field of docs documents. Names of terms, if any, are of the field
// named.
func (w *builder) measure(x *Exact, origins terms.Text, added []terms.Candidate, docs int64, boost float64, named string) *query.Query {
	sum := w.Bool()
	for k := range origins {
		sum.Should(w.Term(x.Field, origins[k].Term, boost*x.boost(origins[k].V, origins[k].IDF), ""))
	}
	for k := range added {
		a, name := &added[k], ""
		if named != "" {
			name = w.name(named, a.Term)
		}
		sum.Should(w.Term(x.Field, a.Term, boost*x.boost(a.V, simmatrix.IDF(a.DocFreq, docs)), name))
	}
	return w.Over(x.Norm, x.Missing, sum)
}

// boost returns the factor of a term with value v, for the engine's idf.
func (x *Exact) boost(v, idf float64) float64 {
	if x.Scripted {
		return v / x.QueryNorm
	}
	return v / (x.QueryNorm * x.Factor * idf)
}

// beside adds the soft cosine of each field that has it to the score of a
// clause. The result finds what the clause finds; without a count also what has
// only terms of the measure, among hits that are found already.
func (w *builder) beside(clause *query.Query) *query.Query {
	q := w.Bool()
	c := w.c
	several := w.several()
	if w.role != ordering || c.SameMatches() || c.Counted() {
		q.Must(clause)
	} else {
		q.Should(clause)
	}
	for i := range c.Fields {
		f := &c.Fields[i]
		if b := f.Beside; b != nil {
			several.Should(w.measure(&b.Exact, b.Terms.Origins, b.Terms.Candidates, b.Docs, b.Most*c.Parsed.Boost*f.Boost, ""))
		}
	}
	return q.Should(several.Simple())
}
