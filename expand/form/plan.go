// Package form writes searches: it turns a plan, which says for each clause
// what is added and how that is scored, into the bytes of a rewritten body. A
// plan never changes: what is written is what people are shown.
package form

import (
	"iter"
	"slices"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/simmatrix"
)

// A Scoring is a way of writing the added terms into a search.
type Scoring uint8

// The scoring forms.
const (
	// Auto takes Saturated where it is possible, else Grouped, else Linear. In a
	// plan it says that nothing is written.
	Auto Scoring = iota
	// Linear adds one flat clause for each term to the original, so that the
	// engine computes x'ᵀ·(document).
	Linear
	// Grouped takes the better of each term of the text and its neighbors.
	Grouped
	// Saturated counts the neighbors' occurrences, scaled, as occurrences of the
	// term inside one BM25 saturation. It needs inline scripts.
	Saturated
	// Hard makes the score the length-normalized soft cosine. A mode takes it.
	Hard
	// Vectors makes it that of vectors, or adds them. A mode takes it.
	Vectors
)

// String returns the name of the form as the configuration writes it.
func (s Scoring) String() string {
	return [...]string{"auto", "linear", "grouped", "saturated", "hard", "vectors"}[s]
}

// Lambda is λ, the factor of the added terms, for each form. 0 adds
// terms without weight.
type Lambda struct{ Linear, Grouped, Saturated float64 }

// Strength returns so many times the λ that ranked judged collections best,
// each at most 1.
func Strength(times float64) Lambda {
	return Lambda{Linear: min(0.2*times, 1), Grouped: min(0.5*times, 1), Saturated: min(0.25*times, 1)}
}

// A Plan says how a search is written. Nobody changes it once it is made.
type Plan struct {
	// Search is the search as it came, and Clauses say how its clauses are written,
	// in their order.
	Search  *dsl.Search
	Clauses []ClausePlan
	// Strength is λ, the factor of what added terms count for, and Recipe says how
	// many of them are written where.
	Strength Lambda
	Recipe   *Recipe
	// Normalize divides scores so that the largest stays that of the original.
	Normalize bool
	// MarkRelated has highlighters mark the added terms, too.
	MarkRelated bool
	// NameAdded gives the clauses of added terms names, see [AddedName].
	NameAdded bool
	// VectorsOnly says that in the form vectors nothing else scores.
	VectorsOnly bool
	// Unscored says that nothing in the answer depends on scores, and MatchOnly
	// that queries are written which only match.
	Unscored, MatchOnly bool
	// Rescore says that the engine orders the best hits again by the whole query.
	Rescore bool
	// FindsMany says that the text finds as many hits as engines count by itself:
	// terms that only find are left out of a query that is rescored.
	FindsMany bool
	// FindOnly says that the query finds hits which are ordered outside of the
	// engine: few terms are written, in the linear form.
	FindOnly bool
}

// A ClausePlan says how one clause of a search is written.
type ClausePlan struct {
	Clause
	// Scoring is the form, and ScoringReason why it is not the one configured;
	// ModeReason is why the search is not ranked in the mode configured.
	Scoring       Scoring
	ScoringReason reason.Reason
	ModeReason    reason.Reason
	// Rescored says that the form orders the best hits of the linear one again.
	Rescored bool
}

// A Clause is a clause of a search, with the terms that were selected for it
// once a measure has chosen.
type Clause struct {
	// Parsed is the clause as it came, and Traits are its traits as the analyses
	// of its text leave them.
	Parsed *dsl.Clause
	dsl.Traits
	// Reason says why the clause is left alone, "" where it is not.
	Reason reason.Reason
	Fields []Field
	// SingleWord says that the text is one word at most, which the engines do not
	// count.
	SingleWord bool
	// Exact says that the clause is scored by the measure of the mode hard.
	Exact bool
	// Vectors are the queries in vectors of the fields, of those that have some.
	Vectors []Vector
}

// A Field is one field of a clause with the terms that were selected for it.
type Field struct {
	Name  string
	Boost float64 // the field's own factor
	// Reason says why nothing is added, "" where something is.
	Reason reason.Reason
	// Matrix names the version of the rows, and Indices are those that no matrix
	// is bound to, for explanations.
	Matrix  string
	Indices []string
	// Analysis is nil where the field was left alone before it was analyzed.
	Analysis *esclient.Analysis
	Stats    esclient.FieldStatistics
	// Terms has the terms of the text, nil where a measure has chosen nothing yet
	// and where there is no Analysis. A term-centric
	// clause uses that of its first field. Added are the terms to add, the best
	// first.
	Terms *terms.Selection
	Added []terms.Candidate
	// Feedback are those that the first hits speak of.
	Feedback []terms.FeedbackTerm
	// Exact is what the form hard needs, nil in others, and Truncated says that
	// terms of it were taken back.
	Exact     *Exact
	Truncated bool
}

// Exact says where the exact scores of a field come from; QueryNorm is ‖Wx‖.
type Exact struct {
	esclient.Linear
	QueryNorm float64
}

// Counted reports whether the clause counts how many terms of the text
// match.
func (c *Clause) Counted() bool { return !c.SingleWord && c.Parsed.Counted() }

// Added returns how many terms are added to the clause.
func (c *Clause) Added() (n int) {
	for i := range c.Fields {
		if f := &c.Fields[i]; c.Reason == "" && f.Reason == "" {
			n += len(f.Added)
		}
	}
	return n
}

// Changed reports whether something is written in place of the clause.
func (c *Clause) Changed() bool {
	return c.Exact || len(c.Vectors) > 0 || c.Added() > 0 || c.hasFeedback()
}

// hasFeedback reports whether terms of the first hits are written.
func (c *Clause) hasFeedback() bool {
	return c.Reason == "" && slices.ContainsFunc(c.Fields, func(f Field) bool { return f.Reason == "" && len(f.Feedback) > 0 })
}

// Left returns the clause as one that is left alone, although there are terms
// to add.
func (c *Clause) Left(why reason.Reason) Clause {
	left := *c
	left.Exact, left.Vectors, left.Fields = false, nil, slices.Clone(c.Fields)
	for i := range left.Fields {
		if f := &left.Fields[i]; f.Reason == "" {
			f.Reason = why
		}
	}
	return left
}

// LeaveField notes why a field of the clause is left out, and with it a clause
// that needs all its fields.
func (c *Clause) LeaveField(f *Field, why reason.Reason) {
	f.Reason = why
	if c.TermCentric {
		c.Reason = why
	}
}

// lead returns the number of the field whose selection field i uses.
func (c *Clause) lead(i int) int {
	if c.TermCentric {
		return 0
	}
	return i
}

// Words returns how many words the engine counts for minimum_should_match:
// the positions of the text, repeated words included.
func (f *Field) Words() (n int) {
	positions := f.Analysis.Positions
	for k := range positions {
		if k == 0 || positions[k] != positions[k-1] {
			n++
		}
	}
	return n
}

// OneTermPerWord reports whether no two terms share a position.
func (f *Field) OneTermPerWord() bool { return f.Words() == len(f.Analysis.Positions) }

// Weighting returns the way the engine weights the terms of the field: by a
// constant with the boolean similarity, with idf once by all others.
func (f *Field) Weighting() terms.Weighting {
	if f.Analysis.Similarity == mapping.Boolean {
		return terms.One
	}
	return terms.SqrtIDF
}

func (f *Field) idf(docFreq int64) float64 { return simmatrix.IDF(docFreq, f.Stats.DocCount) }

// Changes reports whether any clause is rewritten.
func (p *Plan) Changes() bool {
	return slices.ContainsFunc(p.Clauses, func(c ClausePlan) bool { return c.Changed() })
}

// Exact reports whether clauses are scored by the measure of the mode hard:
// then all are.
func (p *Plan) Exact() bool {
	return slices.ContainsFunc(p.Clauses, func(c ClausePlan) bool { return c.Exact })
}

// Selected returns what the plan writes, for another plan.
func (p *Plan) Selected() []Clause {
	out := make([]Clause, len(p.Clauses))
	for i := range out {
		out[i] = p.Clauses[i].Clause
	}
	return out
}

// Copied returns clauses with fields of their own.
func Copied(clauses []Clause) []Clause {
	out := slices.Clone(clauses)
	for i := range out {
		out[i].Fields = slices.Clone(out[i].Fields)
	}
	return out
}

// Fields goes through the fields of clauses, each with its clause.
func Fields(clauses []Clause) iter.Seq2[*Clause, *Field] {
	return func(yield func(*Clause, *Field) bool) {
		for i := range clauses {
			for k := range clauses[i].Fields {
				if !yield(&clauses[i], &clauses[i].Fields[k]) {
					return
				}
			}
		}
	}
}

// NeedsDFS reports whether the engine has to gather the statistics of all
// shards first: where it multiplies by idf in one of the linear fields, too.
func (p *Plan) NeedsDFS() bool {
	severalShards := func(f Field) bool { return f.Analysis != nil && f.Analysis.Shards > 1 }
	byIDF := func(f Field) bool { return f.Exact != nil && !f.Exact.Scripted }
	return slices.ContainsFunc(p.Clauses, func(c ClausePlan) bool {
		return slices.ContainsFunc(c.Fields, severalShards) &&
			(c.Scoring == Saturated || c.Scoring == Hard && !p.Unscored && slices.ContainsFunc(c.Fields, byIDF))
	})
}

// A Vector is a query in the vectors that documents have of a field.
type Vector struct {
	Field string
	Store vectors.Store
	// Model is the id of the model. Mixed says that some documents have vectors by
	// another.
	Model string
	Mixed bool
	// Sparse has the coordinates of a sparse vector, Dense those of a dense one.
	Sparse []vectors.Coordinate
	Dense  []float32
	// Boost multiplies the scores.
	Boost float64
	// Nearest is how many documents of each shard a dense vector finds.
	Nearest int
}
