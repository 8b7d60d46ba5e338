package proxy

import (
	"math"
	"strconv"
	"testing"
)

func TestAUnitStaysInItsArmAndTheShareIsKept(t *testing.T) {
	const units = 20_000
	small, large := Trial{Name: "t", Share: .1}, Trial{Name: "t", Share: .3}
	other := Trial{Name: "u", Share: .1}
	in, both := 0, 0
	for i := range units {
		unit := "session " + strconv.Itoa(i)
		drawn := small.Draws(unit)
		if drawn != small.Draws(unit) {
			t.Fatal("another draw for the same unit")
		}
		if drawn && !large.Draws(unit) {
			t.Fatal("a larger share leaves out who was in")
		}
		if drawn {
			in++
			if other.Draws(unit) {
				both++
			}
		}
	}
	// Five standard deviations of a binomial.
	if sd := math.Sqrt(units * .1 * .9); math.Abs(float64(in)-units*.1) > 5*sd {
		t.Errorf("%d of %d are in a tenth", in, units)
	}
	if n := float64(in); math.Abs(float64(both)-n*.1) > 5*math.Sqrt(n*.1*.9) {
		t.Errorf("of %d in a trial %d are in a tenth of another: they depend on each other", in, both)
	}
	if none, all := (&Trial{}), (&Trial{Share: 1}); none.Draws("x") || !all.Draws("x") {
		t.Error("a share of 0 or 1 is not exact")
	}
}
