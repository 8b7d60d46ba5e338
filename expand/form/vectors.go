package form

import (
	"github.com/akin-search/akin/expand/query"
	"github.com/akin-search/akin/expand/vectors"
)

// The form vectors keeps the original, which finds and scores, and adds vector
// queries:
//
//	in    {"match":{"f":"a b"}}, a sparse vector
//	out   {"bool":{"should":[the original,{"rank_feature":…},…]}}
//	in    a dense vector
//	out   {"bool":{"should":[the original,
//	      {"bool":{"must":{"knn":…},"filter":{"term":the model}}}]}}
//	in    only vectors score
//	out   {"bool":{"should":[{"bool":{"must":[the original],"boost":1e-06}},…]}}

// unranked is the boost of the original if vectors rank. It orders the hits
// that vectors do not find.
const unranked = 0.000001

// VectorsTooDeep reports whether the form nests a clause too deep. filtered
// says that near vectors are filtered.
func (c *Clause) VectorsTooDeep(filtered bool) bool {
	levels := 4 // bool, dis_max, bool, term or knn
	if filtered {
		levels += 2 // bool, term
	}
	return c.Parsed.Depth+levels > maxLevels
}

func (w *builder) vectors() *query.Query {
	c := w.c
	q := w.Bool()
	original := w.original()
	if w.plan.VectorsOnly {
		original = w.Bool().Must(original).Times(unranked)
	}
	if c.SameMatches() {
		q.Must(original)
	} else {
		q.Should(original)
	}
	several := w.several()
	for i := range c.Vectors {
		v := &c.Vectors[i]
		switch {
		case v.Store.Dense():
			several.Should(w.nearest(v))
		case !v.Mixed && len(c.Vectors) == 1:
			w.features(q, v)
		default: // in one query, which finds only documents of the model
			one := w.Bool()
			w.features(one, v)
			if v.Mixed {
				one.Minimum([]byte("1")).Filter(w.ofModel(v)).Bare()
			}
			several.Should(one)
		}
	}
	return q.Should(several.Simple())
}

// features adds a sparse vector: one clause for each term.
func (w *builder) features(to *query.Query, v *Vector) {
	field := vectors.Path(v.Field)
	for _, t := range v.Sparse {
		name, boost := vectors.FeatureName(t.Term), v.Boost*t.Value
		if v.Store == vectors.SparseVector {
			to.Should(w.Term(field, name, boost, ""))
		} else {
			to.Should(w.Feature(field+"."+name, boost))
		}
	}
}

// ofModel returns the query for documents with vectors of the model.
func (w *builder) ofModel(v *Vector) *query.Query {
	return w.Term(vectors.ModelPath(v.Field), v.Model, 1, "")
}

// nearest returns the query for a dense vector. The original filters before the
// nearest documents are selected if it decides which documents match; so does
// the model if there are others. A filter around the query also keeps the
// engine from reading vectors in an index whose mapping has none, which it
// would reject.
func (w *builder) nearest(v *Vector) *query.Query {
	var filter *query.Query
	if w.c.SameMatches() || v.Mixed {
		filter = w.Bool()
	}
	if w.c.SameMatches() {
		filter.Filter(w.original())
	}
	if v.Mixed {
		filter.Filter(w.ofModel(v))
	}
	near := w.Near(v.Store == vectors.KNNVector, vectors.Path(v.Field), v.Dense, v.Nearest, v.Boost, filter)
	return w.Bool().Must(near).Filter(w.ofModel(v)).Bare()
}
