package combine

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/akin-search/akin/internal/matrixtest"
	"github.com/akin-search/akin/simmatrix"
)

func TestRaiseRaisesEverySimilarity(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{Params: map[string]string{"power": "3"}}, matrixtest.Vehicles())
	got, err := Raise(m, 2)
	if err != nil {
		t.Fatal(err)
	}
	for term, row := range m.Rows() {
		raised := map[string]float32{}
		for n := range got.Row(term).All() {
			raised[n.Term] = n.Similarity
		}
		if len(raised) != row.Len() {
			t.Errorf("%s: %d neighbors, had %d", term, len(raised), row.Len())
		}
		for n := range row.All() {
			if want := float64(n.Similarity) * float64(n.Similarity); math.Abs(want-float64(raised[n.Term])) > 1./simmatrix.UnitsOfOne {
				t.Errorf("%s, %s: %v, want %v", term, n.Term, raised[n.Term], want)
			}
		}
	}
	if p := got.Meta().Params; p["exponent"] != "2" || p["power"] != "3" {
		t.Errorf("params %v", p)
	}
}

// What rounds to one similarity has to come out in the order of terms.
func TestRaisedRowsAreInOrder(t *testing.T) {
	m := matrixtest.Random(t, rand.New(rand.NewPCG(1, 2)), 40)
	for _, exponent := range []float64{0.001, 0.5, 1, 3, 50} {
		if _, err := Raise(m, exponent); err != nil {
			t.Errorf("%v: %v", exponent, err)
		}
	}
	for _, exponent := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := Raise(m, exponent); err == nil {
			t.Errorf("%v is an exponent", exponent)
		}
	}
}
