package softcosine

import (
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

func testMatrix(t *testing.T) *simmatrix.Matrix {
	t.Helper()
	m := check.Got(simmatrix.New(simmatrix.Meta{Source: "by hand", Docs: 10}, []simmatrix.TermRow{
		{Term: "killed", DocFreq: 4, Neighbors: []simmatrix.Neighbor{{Term: "dead", Similarity: 0.5}, {Term: "found", Similarity: 0.75}}},
		{Term: "dead", DocFreq: 3, Neighbors: []simmatrix.Neighbor{{Term: "killed", Similarity: 1}}},
		{Term: "found", DocFreq: 2},
	}))(t)
	return m
}

func TestFromMatrixNumbersTermsAndThenTheExtraOnes(t *testing.T) {
	v, s := FromMatrix(testMatrix(t), "when", "dead", "antony", "when")
	for i, want := range []string{"dead", "found", "killed", "when", "antony"} {
		number, ok := v.Number(want)
		check.That(t, ok && int(number) == i && v.Term(number) == want, "%q is %d, %v", want, number, ok)
	}
	_, ok := v.Number("caesar")
	check.That(t, !ok && v.Len() == 5 && s.Len() == 5 && s.NonZeros() == 3, "%d terms, %d rows, %d entries", v.Len(), s.Len(), s.NonZeros())
	for _, e := range []struct {
		i, j int
		want float32
	}{{0, 2, 1}, {2, 0, simmatrix.QuantizeSimilarity(0.5)}, {2, 1, simmatrix.QuantizeSimilarity(0.75)}, {1, 2, 0}, {3, 0, 0}} {
		check.Equal(t, float64(e.want), s.At(e.i, e.j), e.i, e.j, e.want)
	}
}
