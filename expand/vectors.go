package expand

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/simmatrix"
)

// [ModeVectors] has the engine score hits by vectors that the documents have of
// a field, see package expand/vectors. With w being [Profile.SoftWeight], the score of
// a clause is
//
//	BM25 + w/(1 − w)·M·vector    M = scale·Σ_i x_i idf_i, the most that BM25 gives
//	vector                       where w is 1
//
// with the BM25 of the clause as it came, which stays in the query, so that all
// that it finds is found. Vectors find more, unless the clause counts its words
// or Profile.SameMatches says that it finds the same.
//
// With w = 1 the scores are of another scale: where one clause of a search that
// looks for text cannot be scored like this, none is. Clauses that are not have
// terms added as in [ModeBM25], and say why.

// byVectors is the measure of [ModeVectors].
type byVectors struct{ *asker }

// asksAbout returns the targets whose models are to be asked for.
func (a byVectors) asksAbout(open []*target) (some []*target) {
	if a.pins.Vectors == nil {
		return nil
	}
	for i := range a.clauses {
		if c := &a.clauses[i]; !c.Note {
			c.ModeReason = a.notByVectors(c)
		}
	}
	if a.alone() && a.leaveExact() {
		return nil
	}
	for _, t := range open {
		if t.clause.ModeReason == "" {
			t.vector = new(vectorField)
			some = append(some, t)
		}
	}
	return some
}

// ask asks for the model of a target.
func (a byVectors) ask(ctx context.Context, t *target) (err error) {
	v := t.vector
	v.model, v.mixed, err = a.pins.Vectors.Model(ctx, a.s.indices, t.Name)
	if v.reason, err = reasonOf(err); v.reason == "" && err == nil && a.s.Redefines(vectors.Path(t.Name)) {
		v.reason = reason.RuntimeField
	}
	return failed(StageVectors, err)
}

// alone reports whether vectors are all that scores.
func (a byVectors) alone() bool { return a.s.profile.SoftWeight == 1 }

// notByVectors returns why a clause cannot be scored by vectors.
func (a byVectors) notByVectors(c *form.Clause) reason.Reason {
	switch {
	case c.Reason != "":
		return c.Reason
	case a.s.PIT.Has:
		return reason.PointInTime // its pages remember no vectors
	case a.s.Scores.Min:
		return reason.MinScore // it is meant for other scores
	case a.alone() && a.s.OwnRescore && !a.s.profile.RescoreQueries:
		return reason.Rescore // so is what it adds
	case strings.Contains(c.Parsed.Path, ".nested."):
		return reason.NoVectors // they stand in the document around the nested ones
	case c.TooDeep(form.Vectors):
		return reason.TooDeep
	}
	return ""
}

// notByNearest returns why the nearest documents cannot be asked for: engines
// take such a query in plain searches.
func (a byVectors) notByNearest(c *form.Clause) reason.Reason {
	why := a.s.fixedOrder()
	switch {
	case a.s.req.Endpoint != EndpointSearch:
		return reason.Endpoint
	case why != "":
		return why
	case onlyOrder(c) && namesQueries(c.Parsed.At.Of(a.s.Body)): // it filters them, too
		return reason.Named
	}
	return ""
}

// onlyOrder reports whether vectors only order what a clause finds: they cannot
// count its words.
func onlyOrder(c *form.Clause) bool { return c.SameMatches || c.Counted() }

// choose makes the queries in vectors, and has terms added to the targets that
// get none.
func (a byVectors) choose(ctx context.Context, open []*target) error {
	some := slices.DeleteFunc(slices.Clone(open), func(t *target) bool { return t.vector == nil })
	if err := each(some, func(t *target) error { return a.makeVector(ctx, t) }); err != nil {
		return err
	}
	for _, t := range some {
		t.clause.ModeReason = cmp.Or(t.clause.ModeReason, t.vector.reason)
	}
	if len(some) == 0 || a.alone() && a.leaveExact() {
		return bm25(a).choose(ctx, open)
	}
	for _, t := range some {
		if t.vector.reason == "" {
			t.clause.SameMatches = onlyOrder(t.clause)
			t.clause.Vectors = append(t.clause.Vectors, t.vector.query)
			t.Matrix = string(t.vector.query.Store) + "@" + t.vector.model.ID()
		}
	}
	return bm25(a).choose(ctx, slices.DeleteFunc(open, func(t *target) bool {
		if len(t.clause.Vectors) == 0 {
			return false
		}
		t.Reason, t.clause.ModeReason = t.vector.reason, ""
		return true
	}))
}

// makeVector makes the query in the vectors of a target.
func (a byVectors) makeVector(ctx context.Context, t *target) error {
	v, o := t.vector, a.s.profile
	if v.reason == "" && v.model.Meta().Store.Dense() {
		v.reason = a.notByNearest(t.clause)
	}
	if v.reason != "" {
		return nil
	}
	x := make([]vectors.Coordinate, len(t.Terms.Origins))
	for i, origin := range t.Terms.Origins {
		x[i] = vectors.Coordinate{Term: origin.Term, Value: origin.X}
	}
	q := form.Vector{
		Field: t.Name, Store: v.model.Meta().Store, Model: v.model.ID(), Mixed: v.mixed,
		Boost: t.clause.Parsed.Boost * t.Boost, Nearest: o.VectorCandidates,
	}
	switch {
	case q.Store.Dense():
		q.Dense = v.model.DenseQuery(x)
	case len(x) > o.MaxQueryTerms:
		v.reason = reason.TooManyTerms
		return nil
	default:
		q.Sparse = v.model.SparseQuery(x)
	}
	if len(q.Dense)+len(q.Sparse) == 0 {
		v.reason = reason.NoVectors
		return nil
	}
	if !a.alone() {
		words := t.Terms.Terms(nil)
		docFreqs := make([]int64, len(words))
		stats, err := a.cluster.Statistics(ctx, a.s.indices, t.Name, words, docFreqs)
		if err != nil {
			return failed(StageStatistics, err)
		}
		most := 0.0
		for i := range x {
			most += x[i].Value * simmatrix.IDF(docFreqs[i], stats.DocCount)
		}
		q.Boost *= o.SoftWeight / (1 - o.SoftWeight) * most * cmp.Or(stats.Scale, 1)
	}
	v.query = q
	return nil
}
