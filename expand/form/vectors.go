package form

import (
	"strconv"

	"github.com/akin-search/akin/expand/vectors"
)

// unranked is the boost of the original if vectors rank. It orders the hits
// that vectors do not find.
const unranked = "0.000001"

// vectors writes the original, which keeps finding and scoring, with the vector
// queries.
func (w *clauseWriter) vectors() {
	c := w.c
	occur := "should"
	if c.SameMatches {
		occur = "must"
	}
	w.put(`{"bool":{"` + occur + `":[`)
	if w.plan.VectorsOnly {
		w.original(`{"bool":{"must":[`, `],"boost":`+unranked+`}}`)
	} else {
		w.original("", "")
	}
	if c.SameMatches {
		w.put(`],"should":[`)
	}
	w.beginFields(len(c.Vectors))
	for i := range c.Vectors {
		w.comma()
		if v := &c.Vectors[i]; v.Store.Dense() {
			w.nearest(v)
		} else {
			w.features(v, v.Mixed || len(c.Vectors) > 1)
		}
	}
	w.endFields(len(c.Vectors))
	w.put(`]}}`)
}

// features writes a sparse vector: one clause for each term. With whole they
// are in one query, which finds only documents of the model.
func (b *buffer) features(v *Vector, whole bool) {
	if whole {
		b.put(`{"bool":{"should":[`)
	}
	for _, t := range v.Sparse {
		name, boost := vectors.FeatureName(t.Term), v.Boost*t.Value
		if v.Store == vectors.SparseVector {
			b.term(vectors.Path(v.Field), name, boost)
			continue
		}
		b.comma()
		b.put(`{"rank_feature":{"field":`, text(vectors.Path(v.Field)+"."+name), `,"linear":{},"boost":`, boost, `}}`)
		b.clauses++
	}
	if !whole {
		return
	}
	b.put(`]`)
	if v.Mixed {
		b.put(`,"minimum_should_match":1,"filter":`)
		b.ofModel(v)
	}
	b.put(`}}`)
}

// ofModel writes the query for documents with vectors of the model.
func (b *buffer) ofModel(v *Vector) { b.term(vectors.ModelPath(v.Field), v.Model, 1) }

// nearest writes a dense vector. The original filters before the nearest
// documents are selected if it decides which documents match; so does the model
// if there are others. A filter around the query also keeps the engine from
// reading vectors in an index whose mapping has none, which it would reject.
func (w *clauseWriter) nearest(v *Vector) {
	w.put(`{"bool":{"must":`)
	if v.Store == vectors.DenseVector {
		w.put(`{"knn":{"field":`, text(vectors.Path(v.Field)), `,"query_vector":[`)
	} else {
		w.put(`{"knn":{`, text(vectors.Path(v.Field)), `:{"vector":[`)
	}
	for _, x := range v.Dense {
		w.comma()
		w.put(float64(x))
	}
	n := strconv.Itoa(v.Nearest)
	w.put(`],"k":` + n)
	if v.Store == vectors.DenseVector {
		w.put(`,"num_candidates":` + n)
	}
	if w.c.SameMatches || v.Mixed {
		w.put(`,"filter":{"bool":{"filter":[`)
		if w.c.SameMatches {
			w.original("", "")
		}
		if v.Mixed {
			w.ofModel(v)
		}
		w.put(`]}}`)
	}
	w.put(`,"boost":`, v.Boost)
	if w.clauses++; v.Store == vectors.KNNVector {
		w.put(`}`)
	}
	w.put(`}},"filter":`)
	w.ofModel(v)
	w.put(`}}`)
}
