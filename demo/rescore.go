package demo

import (
	"cmp"
	"slices"
)

// A rescorer scores the first hits of each index anew by a second query.
type rescorer struct {
	query                   any
	window                  int
	queryWeight, nextWeight float32
}

// defaultRescoreWindow is the window of a rescorer that states none.
const defaultRescoreWindow = 10

// parseRescore reads a rescore member: one rescorer or a list of them.
func parseRescore(a *args) ([]rescorer, error) {
	var out []rescorer
	for _, v := range a.list("rescore") {
		r, err := newArgs("rescore", v)
		if err != nil {
			return nil, err
		}
		window := r.integer("window_size", defaultRescoreWindow)
		inner, _ := r.take("query")
		if err := r.done(); err != nil {
			return nil, err
		}
		q, err := newArgs("query", inner)
		if err != nil {
			return nil, err
		}
		if mode := q.str("score_mode", "total"); mode != "total" {
			return nil, unsupported("rescore with the score_mode [%s]", mode)
		}
		query, ok := q.take("rescore_query")
		if !ok {
			return nil, parsingError("missing rescore query")
		}
		out = append(out, rescorer{
			query: query, window: window,
			queryWeight: float32(q.number("query_weight", 1)), nextWeight: float32(q.number("rescore_query_weight", 1)),
		})
		if err := q.done(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// checkRescore returns the error of a search that cannot be rescored.
func (r *searchRequest) checkRescore() error {
	switch {
	case len(r.rescore) == 0:
		return nil
	case r.sorted:
		return badRequest("illegal_argument_exception", "Cannot use [sort] option in conjunction with [rescore].")
	case r.explain:
		return unsupported("explain with rescore")
	}
	return nil
}

// apply scores the first hits of one index anew, out of which all hits come
// ordered. As in Lucene's QueryRescorer, the scores of all hits are multiplied
// by the weight of the query, also of those behind the window.
func (s *rescorer) apply(ix *index, hits []hit) error {
	next, err := parseQuery(ix, s.query)
	if err != nil {
		return err
	}
	sortByScore(hits)
	scores := map[int]float32{}
	for _, h := range hitsOf(next, ix) {
		scores[h.doc] = h.score
	}
	for i := range hits {
		hits[i].score *= s.queryWeight
		if score, ok := scores[hits[i].doc]; ok && i < s.window {
			hits[i].score += s.nextWeight * score
		}
	}
	sortByScore(hits)
	return nil
}

// sortByScore orders the hits of an index: by score, ties by document.
func sortByScore(hits []hit) {
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.doc, b.doc))
	})
}
