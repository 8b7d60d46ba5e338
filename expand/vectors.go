package expand

import (
	"cmp"
	"context"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/vectors"
)

// In [ModeVectors] the engine scores hits by vectors of a field in the
// documents, see package expand/vectors. With w = [Profile.SoftWeight], the
// score of a clause is
//
//	BM25 + w/(1 − w)·M·vector    M = scale·Σ_i x_i idf_i, the largest BM25 score
//	vector                       if w is 1
//
// BM25 is that of the original clause, which stays in the query, so that
// everything it finds is found. Vectors find more, unless the clause counts its
// words or only the order may change.
//
// With w = 1 the scores have another scale. So if one text clause of a search
// cannot be scored this way, none is. Clauses that are not get terms added as
// in [ModeBM25], and give the reason.

// byVectors is the measure of [ModeVectors].
type byVectors struct{ *expansion }

// A vectorField is the vector query of a target.
type vectorField struct {
	model  *vectors.Model
	mixed  bool          // some documents have vectors of another model
	reason reason.Reason // why there is no query
	query  form.Vector
}

// asksAbout returns the targets whose models are needed.
func (a byVectors) asksAbout(open []*target) (some []*target) {
	if a.pins.Vectors == nil {
		return nil
	}
	a.notRanked(reason.NoVectors, a.alone(), func(c *form.Clause) reason.Reason {
		switch {
		case a.s.PIT.Has:
			return reason.PointInTime // later pages cannot reuse vectors
		case c.VectorsTooDeep(false):
			return reason.TooDeep
		}
		return ""
	})
	if a.alone() && !a.allOrNone() {
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

// alone reports whether only vectors score.
func (a byVectors) alone() bool { return a.s.profile.SoftWeight == 1 }

// notByNearest returns why a search for the nearest documents is not possible,
// or "". Engines accept such queries only in plain searches. mixed is that of
// the field.
func (a byVectors) notByNearest(c *form.Clause, mixed bool) reason.Reason {
	why := a.s.fixedOrder()
	switch {
	case a.s.req.Endpoint != EndpointSearch:
		return reason.Endpoint
	case why != "":
		return why
	case onlyOrder(c) && namesQueries(c.Parsed.At.Of(a.s.Body)): // the clause filters the nearest documents, too
		return reason.Named
	case c.VectorsTooDeep(onlyOrder(c) || mixed):
		return reason.TooDeep
	}
	return ""
}

// onlyOrder reports whether vectors only order what a clause finds: they cannot
// count its words.
func onlyOrder(c *form.Clause) bool { return c.SameMatches() || c.Counted() }

// choose makes the vector queries, and adds terms to the targets without one.
func (a byVectors) choose(ctx context.Context) (*chosen, error) {
	notAsked := func(t *target) bool { return t.vector == nil }
	some := without(a.open, notAsked)
	if err := each(some, func(t *target) error { return a.makeVector(ctx, t) }); err != nil {
		return nil, err
	}
	for _, t := range some {
		t.clause.ModeReason = cmp.Or(t.clause.ModeReason, t.vector.reason)
	}
	if a.alone() && len(some) > 0 && !a.allOrNone() {
		return bm25(a).choose(ctx)
	}
	c := a.begin()
	some = without(c.open, notAsked)
	for _, t := range some {
		if t.vector.reason == "" {
			if onlyOrder(t.clause) {
				t.clause.Matches = max(t.clause.Matches, dsl.Same)
			}
			t.clause.Vectors = append(t.clause.Vectors, t.vector.query)
			t.clause.ModeReason = ""
			t.Matrix = string(t.vector.query.Store) + "@" + t.vector.model.ID()
		}
	}
	byVector := func(t *target) bool { return len(t.clause.Vectors) > 0 }
	rest := without(c.open, byVector)
	for _, t := range some {
		if byVector(t) {
			t.Reason = t.vector.reason
		}
	}
	if err := a.nearWords(ctx, leading(rest)); err != nil {
		return nil, err
	}
	return c, bm25(a).add(ctx, rest)
}

// makeVector makes the vector query of a target.
func (a byVectors) makeVector(ctx context.Context, t *target) error {
	v, o := t.vector, a.s.profile
	if v.reason == "" && v.model.Meta().Store.Dense() {
		v.reason = a.notByNearest(t.clause, v.mixed)
	}
	if v.reason != "" {
		return nil
	}
	x := make([]vectors.Coordinate, len(t.text))
	for i, origin := range t.text {
		x[i] = vectors.Coordinate{Term: origin.Term, Value: origin.X}
	}
	q := form.Vector{
		Field: t.Name, Store: v.model.Meta().Store, Model: v.model.ID(), Mixed: v.mixed,
		Boost: t.clause.Parsed.Boost * t.Boost, Nearest: o.RerankWindow,
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
		most, err := a.mostBeside(ctx, t)
		if err != nil {
			return err
		}
		q.Boost *= most
	}
	v.query = q
	return nil
}
