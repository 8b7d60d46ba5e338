package enrich

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/simmatrix"
)

func TestDenseVectorsNeedAPositiveDefiniteMatrix(t *testing.T) {
	meta := vectors.Meta{Store: vectors.DenseVector, Normalization: vectors.Soft, Strength: 1, Dims: 8}
	docs := [][]vectors.Coordinate{{{Term: "a", Value: 1}, {Term: "b", Value: 2}}, {{Term: "c", Value: 1}}}
	weights := matrixtest.New(t, simmatrix.Meta{Docs: 60}, []simmatrix.TermRow{{Term: "other", DocFreq: 1}})
	oneWay := matrixtest.New(t, simmatrix.Meta{}, []simmatrix.TermRow{{Term: "a", Neighbors: []simmatrix.Neighbor{{Term: "c", Similarity: 0.9}}}, {Term: "c"}})
	check.Error(t, ErrNotSymmetric, check.ErrOf(LearnVectors(t.Context(), meta, oneWay, weights, docs, nil)), "a matrix that is not symmetric")
	// a and b are like c, and not like each other: √2 times their similarity is more than 1.
	s := matrixtest.New(t, simmatrix.Meta{}, []simmatrix.TermRow{
		{Term: "a", Neighbors: []simmatrix.Neighbor{{Term: "c", Similarity: 0.9}}},
		{Term: "b", Neighbors: []simmatrix.Neighbor{{Term: "c", Similarity: 0.9}}},
		{Term: "c", Neighbors: []simmatrix.Neighbor{{Term: "a", Similarity: 0.9}, {Term: "b", Similarity: 0.9}}},
	})
	_, err := LearnVectors(t.Context(), meta, s, weights, docs, nil)
	// The eigenvalues are 1 and 1 ± 0.9·√2.
	if no, ok := errors.AsType[*NotPositiveError](err); !ok || no.Enough != 0.78 || !strings.Contains(err.Error(), "-0.27") || !strings.Contains(err.Error(), "strength of about 0.78 or less") {
		t.Errorf("a matrix that is not positive definite: %v", err)
	}
	meta.Strength = 0.78
	check.Error(t, nil, check.ErrOf(LearnVectors(t.Context(), meta, s, weights, docs, nil)), "with the strength that the error names")
	// One term is like 400 others: the eigenvalues are 1 and 1 ± 20·0.9.
	hub := simmatrix.TermRow{Term: "hub"}
	var star []simmatrix.TermRow
	for i := range 400 {
		term := fmt.Sprintf("t%03d", i)
		hub.Neighbors = append(hub.Neighbors, simmatrix.Neighbor{Term: term, Similarity: 0.9})
		star = append(star, simmatrix.TermRow{Term: term, Neighbors: []simmatrix.Neighbor{{Term: "hub", Similarity: 0.9}}})
	}
	wide := matrixtest.New(t, simmatrix.Meta{}, append(star, hub))
	meta.Strength = 0.1 // 0.1·20·0.9 = 1.8
	docs = append(docs, []vectors.Coordinate{{Term: "hub", Value: 1}})
	for meta.Strength > 0.001 {
		_, err = LearnVectors(t.Context(), meta, wide, weights, docs, nil)
		no, ok := errors.AsType[*NotPositiveError](err)
		if !ok {
			break
		}
		meta.Strength = no.Enough
	}
	check.That(t, err == nil && meta.Strength >= 0.053 && meta.Strength <= 0.056, "a wide matrix with a strength of %v: %v", meta.Strength, err)
	check.Error(t, ErrNoDocuments, check.ErrOf(LearnVectors(t.Context(), meta, s, weights, [][]vectors.Coordinate{{{Term: "unknown", Value: 1}}}, nil)), "without documents")
}
