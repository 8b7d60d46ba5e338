package softcosine_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/akin-search/akin/simmatrix/softcosine"
)

func TestLogisticSeparatesRelevantExamples(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 1))
	var examples [][]float64
	var relevant []bool
	for range 2000 {
		x := []float64{100 * random.NormFloat64(), random.NormFloat64(), 3} // the last says nothing
		p := 1 / (1 + math.Exp(-(0.5 + 0.02*x[0] - 1*x[1])))
		examples, relevant = append(examples, x), append(relevant, random.Float64() < p)
	}
	l, err := softcosine.FitLogistic(examples, relevant)
	if err != nil {
		t.Fatal(err)
	}
	want := softcosine.Logistic{Intercept: 0.5, Coefficients: []float64{0.02, -1, 0}}
	if diff := gocmp.Diff(want, l, cmpopts.EquateApprox(0.15, 0.2)); diff != "" {
		t.Errorf("coefficients (-want +got):\n%s", diff)
	}
	// At the minimum the mean estimate is the share of relevant examples.
	estimated, positive := 0.0, 0.0
	for i, x := range examples {
		estimated += l.Probability(x)
		if relevant[i] {
			positive++
		}
	}
	if math.Abs(estimated-positive) > 0.01 {
		t.Errorf("estimates add up to %v, relevant are %v", estimated, positive)
	}
}

func TestLogisticKeepsFiniteWhereExamplesSeparate(t *testing.T) {
	l, err := softcosine.FitLogistic([][]float64{{0}, {1}, {2}, {3}}, []bool{false, false, true, true})
	if err != nil {
		t.Fatal(err)
	}
	if !(l.Probability([]float64{0}) < 0.3 && l.Probability([]float64{3}) > 0.7) {
		t.Errorf("estimates of %+v do not separate the examples", l)
	}
}

func TestLogisticRefusesWhatHasNoMinimum(t *testing.T) {
	for name, test := range map[string]struct {
		examples [][]float64
		relevant []bool
	}{
		"nothing":           {nil, nil},
		"only relevant":     {[][]float64{{1}, {2}}, []bool{true, true}},
		"only irrelevant":   {[][]float64{{1}, {2}}, []bool{false, false}},
		"missing judgment":  {[][]float64{{1}, {2}}, []bool{true}},
		"different lengths": {[][]float64{{1}, {2, 3}}, []bool{true, false}},
		"not finite":        {[][]float64{{math.Inf(1)}, {2}}, []bool{true, false}},
	} {
		if l, err := softcosine.FitLogistic(test.examples, test.relevant); !errors.Is(err, softcosine.ErrLogistic) {
			t.Errorf("%s: %+v, error %v", name, l, err)
		}
	}
}
