package plots

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// check reports an axis without a labeled tick, or with too many of them.
func (a axis) check(t *testing.T) {
	t.Helper()
	if labels := len(strings.Fields(a.labels())); labels < 1 || labels > 15 {
		t.Errorf("%d labels from %v to %v", labels, a.min, a.max)
	}
}

// labels returns the labels of the ticks on the axis.
func (a axis) labels() string {
	var labels []string
	for _, tick := range a.ticks(a.min, a.max) {
		if tick.label != "" && tick.value >= a.min && tick.value <= a.max {
			labels = append(labels, tick.label)
		}
	}
	return strings.Join(labels, " ")
}

func TestLabelsOfLogarithmicAxes(t *testing.T) {
	for want, ends := range map[string][2]float64{
		"1 2":                                {1, 1},
		"1 2 5 10":                           {1, 10},
		"1 2 5 10 20 50 100":                 {1, 100},
		"1 10 100 1,000 10,000 100,000":      {1, 100_000},
		"0.0005 0.001 0.002 0.005 0.01 0.02": {0.0005, 0.025},
		"0.0001 0.0002 0.0005 0.001 0.002 0.005 0.01 0.02 0.05 0.1 0.2 0.5 1": {0.0001, 1},
	} {
		low, high := logRange(ends[0], ends[1])
		if got := (axis{"", low, high, logTicks}).labels(); got != want {
			t.Errorf("from %v to %v: %s, want %s", ends[0], ends[1], got, want)
		}
	}
}

func TestEveryLogarithmicAxisHasALabel(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	for range 10_000 {
		least := math.Pow(10, rng.Float64()*12-8)
		low, high := logRange(least, least*math.Pow(10, rng.Float64()*6))
		axis{"", low, high, logTicks}.check(t)
	}
}

func TestLogarithmicTicksAreInOrder(t *testing.T) {
	ticks := logTicks(math.Log10(0.03), math.Log10(400))
	if len(ticks) == 0 {
		t.Fatal("no ticks")
	}
	for k := 1; k < len(ticks); k++ {
		if ticks[k].value <= ticks[k-1].value {
			t.Errorf("%v after %v", ticks[k], ticks[k-1])
		}
	}
}

func TestLabelsOfSimilarities(t *testing.T) {
	want := "0.0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0"
	if got := (axis{"", 0, 1, tenths}).labels(); got != want {
		t.Errorf("got %s", got)
	}
}

func TestDigitsAreGroupedInThrees(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567", math.MaxUint64: "18,446,744,073,709,551,615",
	} {
		if got := group(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
