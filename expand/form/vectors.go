package form

import (
	"strconv"

	"github.com/akin-search/akin/vectors"
)

// A Vector is a query in the vectors that documents have of a field.
type Vector struct {
	Field string
	Store vectors.Store
	// Sparse has the coordinates of a sparse vector, Dense those of a dense one.
	Sparse []vectors.Coordinate
	Dense  []float32
	// Boost multiplies the scores.
	Boost float64
	// Nearest is how many documents of each shard a dense vector finds.
	Nearest int
}

// unranked is what the score of the original counts for where vectors rank: it
// orders what they do not find.
const unranked = "0.000001"

// vectors writes the original, which finds and scores what it does, with the
// queries in vectors.
func (w *clauseWriter) vectors() {
	c := w.c
	occur := "should"
	if c.SameMatches {
		occur = "must"
	}
	w.raw(`{"bool":{"` + occur + `":[`)
	if w.plan.VectorsOnly {
		w.raw(`{"bool":{"must":[`)
		w.original()
		w.raw(`],"boost":` + unranked + `}}`)
	} else {
		w.original()
	}
	if c.SameMatches {
		w.raw(`],"should":[`)
	}
	w.beginFields(len(c.Vectors))
	for i := range c.Vectors {
		w.comma()
		if v := &c.Vectors[i]; v.Store.Dense() {
			w.nearest(v)
		} else {
			w.features(v, len(c.Vectors) > 1)
		}
	}
	w.endFields(len(c.Vectors))
	w.raw(`]}}`)
}

// features writes a sparse vector: one clause for each term, in a query of
// their own where asked for.
func (b *buffer) features(v *Vector, whole bool) {
	if whole {
		b.raw(`{"bool":{"should":[`)
	}
	for _, t := range v.Sparse {
		name, boost := vectors.FeatureName(t.Term), v.Boost*t.Value
		if v.Store == vectors.SparseVector {
			b.term(vectors.Path(v.Field), name, boost)
			continue
		}
		b.comma()
		b.raw(`{"rank_feature":{"field":`)
		b.string(vectors.Path(v.Field) + "." + name)
		b.raw(`,"linear":{},"boost":`)
		b.number(boost)
		b.raw(`}}`)
		b.clauses++
	}
	if whole {
		b.raw(`]}}`)
	}
}

// nearest writes a dense vector. Where the original decides what is found, it
// filters before the nearest are taken.
func (w *clauseWriter) nearest(v *Vector) {
	if v.Store == vectors.DenseVector {
		w.raw(`{"knn":{"field":`)
		w.string(vectors.Path(v.Field))
		w.raw(`,"query_vector":[`)
	} else {
		w.raw(`{"knn":{`)
		w.string(vectors.Path(v.Field))
		w.raw(`:{"vector":[`)
	}
	for _, x := range v.Dense {
		w.comma()
		w.number(float64(x))
	}
	n := strconv.Itoa(v.Nearest)
	w.raw(`],"k":` + n)
	if v.Store == vectors.DenseVector {
		w.raw(`,"num_candidates":` + n)
	}
	if w.c.SameMatches {
		w.raw(`,"filter":`)
		w.original()
	}
	w.raw(`,"boost":`)
	w.number(v.Boost)
	if w.clauses++; v.Store == vectors.KNNVector {
		w.raw(`}`)
	}
	w.raw(`}}`)
}
