package logit

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/akin-search/akin/e2e/check"
)

// A step that overshoots is shortened: from far off, where the curvature is
// next to nothing, Newton's own step leads to worse values.
func TestStepsThatOvershootAreShortened(t *testing.T) {
	l := &likelihood{x: mat.NewDense(5, 2, []float64{-1.4, 1, -0.7, 1, 0, 1, 0.7, 1, 1.4, 1}), y: []float64{0, 1, 0, 1, 1}, ridge: 0.01}
	beta := mat.NewVecDense(2, []float64{9, 9})
	from := l.value(beta)
	var step, whole mat.VecDense
	check.OK(t, step.SolveVec(l.curvature(beta), l.slope(beta)))
	whole.SubVec(beta, &step)
	to := l.value(&whole)
	check.Must(t, to > from, "the whole step leads from %v to %v: this tests nothing", from, to)
	next, to := l.descend(beta, from, &step)
	check.That(t, next != nil && to < from, "from %v to %v", from, to)
}
