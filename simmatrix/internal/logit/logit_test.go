package logit

import (
	"testing"

	"gonum.org/v1/gonum/mat"
)

// A step that overshoots is shortened: from far off, where the curvature is
// next to nothing, Newton's own step leads to worse values.
func TestStepsThatOvershootAreShortened(t *testing.T) {
	related := []bool{false, true, false, true, true}
	l, err := newLikelihood(Examples{N: len(related), Features: 1, Read: func(i int, x []float64) bool {
		x[0] = float64(i) / 4
		return related[i]
	}}, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	beta := []float64{9, 9}
	from := l.at(beta)
	var step mat.VecDense
	if err := step.SolveVec(from.curvature, from.slope); err != nil {
		t.Fatal(err)
	}
	if whole := l.at(stepped(beta, 1, &step)); whole.value <= from.value {
		t.Fatalf("the whole step leads from %v to %v: this tests nothing", from.value, whole.value)
	}
	if _, to, err := l.descend(beta, from, &step); err != nil || to.value >= from.value {
		t.Errorf("from %v to %v, %v", from.value, to.value, err)
	}
}
