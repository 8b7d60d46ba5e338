// Package form writes searches: it turns a plan into the bytes of a rewritten
// body. A plan says for each clause what is added and how it is scored. It is
// immutable, so explanations describe what is written. Each form has a file,
// which makes a tree of package query from a clause and its chosen terms; what
// the forms grouped and saturated share is in groups.go.
package form

import (
	"cmp"
	"iter"
	"slices"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/query"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/simmatrix"
)

// A Scoring is a way of writing added terms into a search.
type Scoring uint8

// The scoring forms. Those of the configuration come first, in the order there.
const (
	// Auto takes the form of the [Recipe], which mostly has none: Saturated if
	// possible, else Grouped, else Linear. In a plan it means that nothing is
	// written.
	Auto Scoring = iota
	// Linear adds one flat clause for each term to the original, so that the
	// engine computes x'ᵀ·(document).
	Linear
	// Grouped takes the better score of each term of the text and its neighbors.
	Grouped
	// Saturated counts the neighbors' scaled occurrences as occurrences of the
	// term inside one BM25 saturation. It needs inline scripts.
	Saturated
	// Hard scores by the length-normalized soft cosine, or by the soft cosine. Only
	// the modes hard and softcosine use it.
	Hard
	// Vectors scores by vectors, or adds their scores. Only the mode vectors uses
	// it.
	Vectors
)

// String returns the name of the form as the configuration writes it.
func (s Scoring) String() string {
	return [...]string{"auto", "linear", "grouped", "saturated", "hard", "vectors"}[s]
}

// Simpler returns the form to take where this one is too deep, [Auto] for none.
func (s Scoring) Simpler() Scoring {
	switch s {
	case Saturated:
		return Grouped
	case Grouped:
		return Linear
	case Auto, Linear, Hard, Vectors:
	}
	return Auto
}

// inForm returns the clause in the form being written, which is not Vectors.
func (w *builder) inForm() *query.Query {
	switch w.scoring {
	case Linear:
		return w.linear()
	case Hard:
		return w.hard()
	case Auto, Grouped, Saturated, Vectors:
	}
	return w.groups()
}

// bound returns the largest score of field i in the form being written, of a
// text with that mass, see [builder.norm].
func (w *builder) bound(i int, mass float64) float64 {
	set := 0.0
	if w.role != ordering {
		set = w.divided[i].setScore()
	}
	switch w.scoring {
	case Saturated:
		return mass + w.saturatedBound(i) + set
	case Grouped:
		return w.groupedBound(i) + set
	case Auto, Linear, Hard, Vectors: // the last two are not normalized
	}
	return mass + w.linearBound(i) + set
}

// Lambda is λ, the factor of the added terms, for each form. With 0, added
// terms score nothing.
type Lambda struct{ Linear, Grouped, Saturated float64 }

// LambdaOf returns times the λ that ranked judged collections best, each
// limited to 1.
func LambdaOf(times float64) Lambda {
	return Lambda{Linear: min(linearLambda*times, 1), Grouped: min(groupedLambda*times, 1), Saturated: min(saturatedLambda*times, 1)}
}

// A Plan says how a search is written. It is immutable.
type Plan struct {
	// Search is the original search. Clauses say how its clauses are written, in
	// their order.
	Search  *dsl.Search
	Clauses []Clause
	// Strength is λ, the factor of the added terms. Recipe says how many of them
	// are written where.
	Strength Lambda
	Recipe   *Recipe
	// Normalize divides scores so that the largest possible one stays that of the
	// original.
	Normalize bool
	// MarkRelated makes highlighters mark the added terms, too.
	MarkRelated bool
	// NameAdded names the clauses of added terms, see [AddedName].
	NameAdded bool
	// VectorsOnly says that only vectors score in the form vectors.
	VectorsOnly bool
	// Unscored says that nothing in the answer depends on scores. MatchOnly says
	// that the written queries only match.
	Unscored, MatchOnly bool
	// Rescore says that the engine reorders the best hits by the whole query.
	Rescore bool
	// FindsMany says that the text itself finds as many hits as engines count.
	// Then terms that only find are left out.
	FindsMany bool
	// FindOnly says that the query only finds hits, which akin reranks. Few terms
	// are written, in the linear form.
	FindOnly bool
}

// A Clause is a clause of a search: what is known of it, the terms that a
// measure has chosen for it, if any, and in a plan how it is written.
type Clause struct {
	// Parsed is the original clause. Additive and Matches are as there, or what the
	// profile and the analyses of the text make of them.
	Parsed   *dsl.Clause
	Additive bool
	Matches  dsl.Matches
	// Reason is why the clause is left alone, "" if it is not.
	Reason reason.Reason
	Fields []Field
	// SingleWord says that the text is at most one word, which the engines do not
	// count.
	SingleWord bool
	// Whole says that the text is one word, of which the engine makes phrases, too.
	// What stands for it is a reading of the text, as of a phrase.
	Whole bool
	// Exact says that the measure of the mode hard scores the clause.
	Exact bool
	// Orders says that the added terms only put the hits of the text and of its
	// alternatives in order.
	Orders bool
	// AsTypedFirst says that what the text and its alternatives find keeps its
	// scores, and comes before what only related words find.
	AsTypedFirst bool
	// Vectors are the vector queries of its fields.
	Vectors []Vector
	// ModeReason is why the search is not ranked in the configured mode.
	ModeReason reason.Reason
	Writing
}

// A Writing says how a clause is written.
type Writing struct {
	// Scoring is the form, and ScoringReason is why it is not the configured one.
	Scoring       Scoring
	ScoringReason reason.Reason
	// Rescored says that the form reorders the best hits of the linear form.
	Rescored bool
}

// HasReadings reports whether the alternatives stand for the whole text, beside
// the original.
func (c *Clause) HasReadings() bool { return c.Parsed.Phrase || c.Whole }

// Form returns the name of the form of a field, for explanations.
func (c *Clause) Form(f *Field) string {
	const softCosine = "softcosine"
	switch {
	case f.Exact != nil && f.Exact.Soft:
		return softCosine
	case f.Beside != nil:
		return c.Scoring.String() + " + " + softCosine
	}
	return c.Scoring.String()
}

// A Field is one field of a clause, with the terms selected for it.
type Field struct {
	Name  string
	Boost float64 // the field's own factor
	// Reason is why nothing is added, "" if something is.
	Reason reason.Reason
	// Matrix is the matrix and version of the rows, Model what that has word
	// vectors of. Indices are those without a matrix. All are for explanations.
	Matrix, Model string
	Indices       []string
	// Analysis is nil if the field was left alone before its analysis.
	Analysis *esclient.Analysis
	// Prefixes are the terms at the last position, where that is a prefix; Analysis
	// lacks them. PrefixGap says that words without a term stand before them.
	Prefixes  []string
	PrefixGap bool
	Stats     esclient.FieldStatistics
	// Terms has the terms of the text. It is nil without Analysis and until a
	// measure chooses. A term-centric clause uses the Terms of its first field.
	// Added are the terms to add, the best first.
	Terms *terms.Selection
	Added []terms.Candidate
	// Alternatives stand for words of the text, or for all of it if the clause is a
	// phrase. Cut holds alternatives that are left out because of a limit of
	// clauses or of the form.
	Alternatives, Cut []terms.Alternative
	// Optional are the terms of the text that need not match, although all words
	// must.
	Optional []string
	// Feedback are the terms to add from the first hits.
	Feedback []terms.FeedbackTerm
	// Exact is what the form hard needs, nil in other forms. Truncated says that
	// some of its terms were dropped.
	Exact     *Exact
	Truncated bool
	// Beside, unless nil, is added to the score of the clause.
	Beside *Beside
}

// Exact is the source of a field's exact scores. QueryNorm is ‖Wx‖, or with
// Soft √((Wx)ᵀS(Wx)), so that the scores are the soft cosine measure.
type Exact struct {
	esclient.Linear
	QueryNorm float64
	Soft      bool
}

// Beside is the soft cosine measure of a field beside the score of its clause,
// over the terms of a settled selection.
type Beside struct {
	Exact
	Terms *terms.Selection
	Docs  int64   // with the field
	Most  float64 // what a measure of 1 scores, before the boosts of clause and field
}

// SameMatches reports whether related words may only order what the clause
// finds.
func (c *Clause) SameMatches() bool { return c.Matches >= dsl.Same }

// Counted reports whether the clause counts how many terms of the text match.
func (c *Clause) Counted() bool { return !c.SingleWord && c.Parsed.Counted() }

// count adds up what a function counts in the fields that are not left alone.
func (c *Clause) count(in func(f *Field) int) (n int) {
	for i := range c.Fields {
		if f := &c.Fields[i]; c.Reason == "" && f.Reason == "" {
			n += in(f)
		}
	}
	return n
}

// Added returns the number of terms added to the clause.
func (c *Clause) Added() int { return c.count(func(f *Field) int { return len(f.Added) }) }

// Changed reports whether the clause is rewritten.
func (c *Clause) Changed() bool {
	return c.Exact || len(c.Vectors) > 0 || c.Writes() || c.hasFeedback() || c.HasBeside()
}

// HasBeside reports whether the soft cosine is added to the clause's score.
func (c *Clause) HasBeside() bool {
	return slices.ContainsFunc(c.Fields, func(f Field) bool { return f.Beside != nil })
}

// DropBeside drops the soft cosine. why is the reason of fields that have
// nothing else.
func (c *Clause) DropBeside(why reason.Reason) {
	for i := range c.Fields {
		if f := &c.Fields[i]; f.Beside != nil {
			f.Beside, f.Truncated = nil, true
			f.leaveEmpty(why)
		}
	}
}

// HasAlternatives reports whether something stands for words of the clause.
func (c *Clause) HasAlternatives() bool {
	return c.count(func(f *Field) int { return len(f.Alternatives) }) > 0
}

// eachAlternative calls f for each alternative in each field that may have it,
// with its idf there.
func (c *Clause) eachAlternative(visit func(i int, a *terms.Alternative, idf float64)) {
	for i := range c.Fields {
		f := &c.Fields[c.lead(i)]
		if f.Reason != "" {
			continue
		}
		for k := range f.Alternatives {
			if a := &f.Alternatives[k]; a.In(i) > 0 {
				visit(i, a, a.In(i))
			}
		}
	}
}

// DropAlternatives drops the alternatives of a clause that finds only what the
// original finds: the linear form cannot count an alternative as its hosts in
// what is found by these.
func (c *Clause) DropAlternatives() {
	for i := range c.Fields {
		f := &c.Fields[i]
		f.Cut, f.Alternatives = f.Alternatives, nil
		if len(f.Cut) > 0 && len(f.Added)+len(f.Feedback) == 0 && f.Reason == "" {
			c.LeaveField(f, reason.NoNeighbors)
		}
	}
}

// DropAdded drops the added terms, and has all words match. why is the reason
// of fields that have nothing else.
func (c *Clause) DropAdded(why reason.Reason) {
	c.Orders = false
	for i := range c.Fields {
		f := &c.Fields[i]
		had := len(f.Added)+len(f.Feedback)+len(f.Optional) > 0
		f.Added, f.Feedback = nil, nil
		f.Optional = nil
		if had && f.Reason == "" && len(f.Alternatives) == 0 {
			c.LeaveField(f, why)
		}
	}
}

// Writes reports whether terms or alternatives are added to the clause, or one
// of its words need not match.
func (c *Clause) Writes() bool { return c.Added() > 0 || c.HasAlternatives() || c.HasOptional() }

// HasOptional reports whether a word of the clause need not match.
func (c *Clause) HasOptional() bool {
	return c.count(func(f *Field) int { return len(f.Optional) }) > 0
}

// hasFeedback reports whether terms of the first hits are written.
func (c *Clause) hasFeedback() bool {
	return c.count(func(f *Field) int { return len(f.Feedback) }) > 0
}

// Leave leaves the clause alone for a reason, although it has terms to add.
func (c *Clause) Leave(why reason.Reason) {
	c.Exact, c.Vectors = false, nil
	c.Writing = Writing{}
	for i := range c.Fields {
		f := &c.Fields[i]
		f.Beside = nil
		f.Reason = cmp.Or(f.Reason, why)
	}
}

// LeaveField sets the reason why a field is left alone. A term-centric clause
// needs all its fields, so it gets the same reason.
func (c *Clause) LeaveField(f *Field, why reason.Reason) {
	f.Reason = why
	if c.Parsed.TermCentric() {
		c.Reason = why
	}
}

// lead returns the index of the field whose selection field i uses.
func (c *Clause) lead(i int) int {
	if c.Parsed.TermCentric() {
		return 0
	}
	return i
}

// Words returns how many words the engine counts for minimum_should_match: the
// positions of the text, including repeated words and a prefix.
func (f *Field) Words() (n int) {
	n = f.positions()
	if len(f.Prefixes) > 0 {
		n++
	}
	return n
}

func (f *Field) positions() (n int) {
	positions := f.Analysis.Positions
	for k := range positions {
		if k == 0 || positions[k] != positions[k-1] {
			n++
		}
	}
	return n
}

// OneTermPerWord reports whether no two terms share a position.
func (f *Field) OneTermPerWord() bool { return f.positions() == len(f.Analysis.Positions) }

// Splits reports whether the analyzer made one position of each of n words at
// blanks.
func (f *Field) Splits(n int) bool {
	return f.Words() == n && f.Analysis.Positions[len(f.Analysis.Positions)-1] == n-1
}

// Weighting returns how the engine weights the terms of the field: by a
// constant with the boolean similarity, and once by idf with all others.
func (f *Field) Weighting() terms.Weighting {
	if f.Analysis.Similarity == mapping.Boolean {
		return terms.One
	}
	return terms.SqrtIDF
}

func (f *Field) idf(docFreq int64) float64 { return simmatrix.IDF(docFreq, f.Stats.DocCount) }

// Changes reports whether any clause is rewritten.
func (p *Plan) Changes() bool {
	return slices.ContainsFunc(p.Clauses, func(c Clause) bool { return c.Changed() })
}

// HasAlternatives reports whether something stands for words of any clause.
func (p *Plan) HasAlternatives() bool {
	return slices.ContainsFunc(p.Clauses, func(c Clause) bool { return c.HasAlternatives() })
}

// Boost returns the factor of an added term before the boosts of clause and
// field, with v and w as in package terms:
//
//	linear, grouped  λ v_j / w_j²
//	saturated        β_ij = λ v_j / (x'_i idf_i), with x' of [Plan.times]
//	hard             v_j / (‖Wx‖·c·idf_j), without c·idf_j if a script scores
//
// For a term of the text that gets v_j from others, it is λ v_j / w_j² in all
// forms but hard. lambda is that of the linear form, see [Plan.LinearLambda].
func (p *Plan) Boost(s Scoring, f *Field, a *terms.Candidate, lambda float64) float64 {
	switch s {
	case Hard:
		return f.Exact.boost(a.V, f.idf(a.DocFreq))
	case Saturated:
		return p.saturatedBoost(f, a)
	case Grouped:
		lambda = p.Strength.Grouped
	case Auto, Linear, Vectors:
	}
	return linearBoost(f, a, f.idf(a.DocFreq), lambda)
}

// LinearLambda returns λ of the linear form of a field, where that is not only
// the first phase of a rescore.
func (p *Plan) LinearLambda(c *Clause, f *Field) float64 {
	if !p.FindOnly {
		return p.linearLambda()
	}
	d := p.divide(c, f, p.added())
	return d.lambda
}

// added returns the number of added terms.
func (p *Plan) added() (n int) {
	for i := range p.Clauses {
		n += p.Clauses[i].Added()
	}
	return n
}

// Exact reports whether the measure of the mode hard scores the clauses: all or
// none.
func (p *Plan) Exact() bool {
	return slices.ContainsFunc(p.Clauses, func(c Clause) bool { return c.Exact })
}

// Copied returns a copy of clauses and their fields.
func Copied(clauses []Clause) []Clause {
	out := slices.Clone(clauses)
	for i := range out {
		out[i].Fields = slices.Clone(out[i].Fields)
	}
	return out
}

// Fields iterates over the fields of clauses, each with its clause.
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

// NeedsDFS reports whether the engine must first gather the statistics of all
// shards. The form hard needs them if the engine multiplies by idf in a linear
// field, and so does the soft cosine beside a clause.
func (p *Plan) NeedsDFS() bool {
	severalShards := func(f Field) bool { return f.Analysis != nil && f.Analysis.Shards > 1 }
	byIDF := func(f Field) bool { return f.Exact != nil && !f.Exact.Scripted }
	besideByIDF := func(f Field) bool { return f.Beside != nil && !f.Beside.Scripted }
	return slices.ContainsFunc(p.Clauses, func(c Clause) bool {
		return slices.ContainsFunc(c.Fields, severalShards) &&
			(c.Scoring == Saturated || c.Scoring == Hard && !p.Unscored && slices.ContainsFunc(c.Fields, byIDF) || slices.ContainsFunc(c.Fields, besideByIDF))
	})
}

// A Vector is a query for the documents' vectors of a field.
type Vector struct {
	Field string
	Store vectors.Store
	// Model is the id of the model. Mixed says that some documents have vectors of
	// another model.
	Model string
	Mixed bool
	// Sparse are the coordinates of a sparse vector, Dense those of a dense one.
	Sparse []vectors.Coordinate
	Dense  []float32
	// Boost multiplies the scores.
	Boost float64
	// Nearest is how many documents of each shard a dense vector finds.
	Nearest int
}
