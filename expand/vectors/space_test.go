package vectors_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/softcosine"
	"github.com/akin-search/akin/tools/enrich"
)

// A world is a matrix, weights, documents and queries made by chance, and the
// space that they are in.
type world struct {
	s, weights    *simmatrix.Matrix
	vocabulary    *softcosine.Vocabulary
	space         *softcosine.Space
	docs, queries [][]vectors.Coordinate
}

const unknown = "zz.unknown" // a term that neither S nor W has

func termOf(i int) string { return fmt.Sprintf("term%02d", i) }

// newWorld returns one of so many terms, the last quarter of which are in the
// weights only. Sums of similarities are about the given mass.
func newWorld(t *testing.T, seed uint64, terms int, mass float64, strength float64, options combine.SparsifyOptions) *world {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	w := &world{}
	var rows, weightRows []simmatrix.TermRow
	inS := terms * 3 / 4
	for i := range terms {
		row := simmatrix.TermRow{Term: termOf(i), DocFreq: uint32(1 + random.IntN(50))}
		if i%7 != 0 || i >= inS { // weights may lack terms of S
			weightRows = append(weightRows, row)
		}
		row.DocFreq = 3 // not what the weights say
		for j := range inS {
			if i < inS && i != j && random.Float64() < 0.3 {
				row.Neighbors = append(row.Neighbors, simmatrix.Neighbor{Term: termOf(j), Similarity: float32(2 * mass * (random.Float64() + 0.01) / float64(inS) / 0.3)})
			}
		}
		if i < inS {
			rows = append(rows, row)
		}
	}
	var err error
	if w.s, err = simmatrix.New(simmatrix.Meta{Docs: 60}, rows); err != nil {
		t.Fatal(err)
	}
	if w.s, err = combine.Sparsify(w.s, options); err != nil {
		t.Fatal(err)
	}
	if w.weights, err = simmatrix.New(simmatrix.Meta{Docs: 60}, weightRows); err != nil {
		t.Fatal(err)
	}
	text := func(length int) []vectors.Coordinate {
		counts := map[string]float64{}
		for range length {
			counts[termOf(random.IntN(terms))]++
		}
		var x []vectors.Coordinate
		for term, n := range counts {
			x = append(x, vectors.Coordinate{Term: term, Value: n})
		}
		return x
	}
	for range 40 {
		w.docs = append(w.docs, append(text(12), vectors.Coordinate{Term: unknown, Value: 2}))
		w.queries = append(w.queries, text(4))
	}
	w.queries = append(w.queries, []vectors.Coordinate{{Term: unknown, Value: 1}}, []vectors.Coordinate{{Term: termOf(1), Value: 1}, {Term: termOf(1), Value: 2}})
	// What the papers' definition says of the similarities that the model has.
	model, err := vectors.New(vectors.Meta{Store: vectors.SparseVector, Normalization: vectors.None, Strength: strength}, w.s, w.weights)
	check.OK(t, err)
	extra := []string{unknown}
	for i := range terms {
		extra = append(extra, termOf(i))
	}
	var similarities *softcosine.Similarities
	w.vocabulary, similarities = softcosine.FromMatrix(model.Matrix(), extra...)
	weights := make([]float64, w.vocabulary.Len())
	for i := range weights {
		docFreq := w.weights.Row(w.vocabulary.Term(int32(i))).DocFreq()
		weights[i] = simmatrix.IDF(int64(docFreq), 60)
	}
	if w.space, err = softcosine.NewSpace(weights, similarities); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) vector(x []vectors.Coordinate) softcosine.Vector {
	values := map[int32]float64{}
	for _, c := range x {
		i, _ := w.vocabulary.Number(c.Term)
		values[i] += c.Value
	}
	return softcosine.NewVector(values)
}

// score is what the definition says.
func (w *world) score(t *testing.T, n vectors.Normalization, x, y []vectors.Coordinate) float64 {
	t.Helper()
	switch n {
	case vectors.Hard:
		return w.space.Hard(w.vector(x), w.vector(y))
	case vectors.Soft:
		s, err := w.space.Soft(w.vector(x), w.vector(y))
		check.OK(t, err)
		return s
	default:
		return w.space.InnerProduct(w.vector(x), w.vector(y))
	}
}

func sparseDot(x, y []vectors.Coordinate) (sum float64) {
	values := map[string]float64{}
	for _, c := range y {
		values[c.Term] = c.Value
	}
	for _, c := range x {
		sum += c.Value * values[c.Term]
	}
	return sum
}

var normalizations = []vectors.Normalization{vectors.None, vectors.Hard, vectors.Soft}

func TestSparseVectorsScoreAsTheSpace(t *testing.T) {
	for _, options := range []combine.SparsifyOptions{{}, {Symmetric: true}} {
		w := newWorld(t, 1, 40, 3, 0.7, options)
		for _, n := range normalizations {
			m, err := vectors.New(vectors.Meta{Store: vectors.RankFeatures, Normalization: n, Strength: 0.7}, w.s, w.weights)
			check.OK(t, err)
			documents := m.Documents()
			for _, y := range w.docs {
				vector, cut := documents.Sparse(y)
				check.Must(t, cut == (vectors.Cut{}), "%s: %+v is cut", n, cut)
				for _, x := range w.queries {
					got, want := sparseDot(m.SparseQuery(x), vector), w.score(t, n, x, y)
					check.Must(t, math.Abs(got-want) <= 1e-9*max(1, want), "%s: %v · %v = %v, want %v", n, x, y, got, want)
				}
			}
		}
	}
}

func TestCutSparseVectorsStateTheirError(t *testing.T) {
	w := newWorld(t, 2, 40, 3, 1, combine.SparsifyOptions{})
	lost := 0
	for _, n := range normalizations {
		for _, c := range []int{1, 5, 20} {
			m, err := vectors.New(vectors.Meta{Store: vectors.SparseVector, Normalization: n, Strength: 1, Terms: c}, w.s, w.weights)
			check.OK(t, err)
			for _, y := range w.docs {
				vector, cut := m.Documents().Sparse(y)
				check.Must(t, len(vector) == c && cut.Share > 0 && cut.Share < 1 && cut.Coordinates != 0, "%d coordinates, want %d; %+v", len(vector), c, cut)
				for _, x := range w.queries {
					q := m.SparseQuery(x)
					bound := 0.0
					for _, c := range q {
						bound += c.Value * cut.Largest
					}
					missing := w.score(t, n, x, y) - sparseDot(q, vector)
					check.Must(t, missing >= -1e-9 && missing <= bound+1e-9, "%s cut to %d: the score is too low by %v, at most %v", n, c, missing, bound)
					if missing > bound/2 {
						lost++
					}
				}
			}
		}
	}
	check.That(t, lost != 0, "no score comes near to the bound")
}

// dot returns the product of two dense vectors.
func dot(x, y []float32) (sum float64) {
	for i, v := range x {
		sum += float64(v) * float64(y[i])
	}
	return sum
}

func TestDenseVectorsOfFullRankScoreAsTheSpace(t *testing.T) {
	for name, w := range map[string]*world{
		"dominant":            newWorld(t, 3, 40, 3, 1, combine.SparsifyOptions{Symmetric: true, Dominant: true}),
		"positive definite":   newWorld(t, 4, 40, 3, 0.2, combine.SparsifyOptions{Symmetric: true}),
		"documents of a term": newWorld(t, 5, 12, 0.4, 1, combine.SparsifyOptions{Symmetric: true, Dominant: true}),
	} {
		strength := 1.0
		if name == "positive definite" {
			strength = 0.2
		}
		for y := range w.docs {
			w.docs[y] = w.docs[y][:len(w.docs[y])-1] // what is not in the model has no coordinates
		}
		for _, n := range normalizations {
			m, err := enrich.LearnVectors(t.Context(), vectors.Meta{Store: vectors.DenseVector, Normalization: n, Strength: strength, Dims: 64}, w.s, w.weights, w.docs, nil)
			check.Must(t, err == nil, "%s: %v", name, err)
			check.That(t, m.Meta().Dims <= 41, "%s: %d dimensions of 40 documents", name, m.Meta().Dims)
			documents := m.Documents()
			for i, y := range w.docs {
				vector, share := documents.Dense(y)
				check.Must(t, len(vector) == m.Meta().Dims && math.Abs(share-1) <= 1e-5, "%s: %d dimensions, want %d; share %v", name, len(vector), m.Meta().Dims, share)
				x := w.docs[(i+7)%len(w.docs)] // in their span
				q := m.DenseQuery(x)
				length := math.Sqrt(dot(vector, vector))
				check.That(t, n != vectors.Soft || math.Abs(length-1) <= 1e-6, "%s: a document of length %v", name, length)
				got, want := dot(q, vector), w.score(t, n, x, y)
				check.Must(t, math.Abs(got-want) <= 1e-5*max(1, want), "%s %s: %v, want %v", name, n, got, want)
			}
		}
	}
}

func TestTruncatedDenseVectorsStateTheirError(t *testing.T) {
	w := newWorld(t, 6, 40, 3, 0.2, combine.SparsifyOptions{Symmetric: true})
	shares := map[int]float64{}
	for _, dims := range []int{3, 9, 21} {
		m, err := enrich.LearnVectors(t.Context(), vectors.Meta{Store: vectors.KNNVector, Normalization: vectors.Soft, Strength: 0.2, Dims: dims}, w.s, w.weights, w.docs, nil)
		check.OK(t, err)
		check.Must(t, m.Meta().Dims == dims, "%d dimensions, want %d", m.Meta().Dims, dims)
		for _, y := range w.docs {
			vector, share := m.Documents().Dense(y)
			shares[dims] += share
			check.Must(t, share > 0 && share <= 1, "share %v", share)
			for _, x := range w.queries {
				q := m.DenseQuery(x)
				if q == nil {
					continue
				}
				_, queryShare := m.Documents().Dense(x)
				// The query has unit length in the store, and √share of it in the space.
				got, want := dot(q, vector)*math.Sqrt(queryShare), w.score(t, vectors.Soft, x, y)
				bound := math.Sqrt((1 - share) * (1 - queryShare))
				check.Must(t, math.Abs(got-want) <= bound+1e-6, "%d dimensions: %v, want %v within %v", dims, got, want, bound)
			}
		}
	}
	check.That(t, shares[3] < shares[9] && shares[9] < shares[21], "more dimensions do not have more: %v", shares)
}
