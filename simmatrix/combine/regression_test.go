package combine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/source"
)

// sampleOf makes a sample of similarities and relations.
func sampleOf(similarities [][]float64, related []bool) *sample {
	s := &sample{inputs: len(similarities[0]), related: related}
	for p, row := range similarities {
		for _, v := range row {
			s.units = append(s.units, uint16(math.Round(v*65535)))
		}
		if related[p] {
			s.positive++
		}
	}
	return s
}

// fitTo fits to a sample, without measuring.
func fitTo(t *testing.T, s *sample, ridge float64) *Regression {
	t.Helper()
	r := &Regression{Coefficients: make([]Coefficient, s.inputs), Pairs: s.pairs(), Related: s.positive}
	check.OK(t, r.fit(s, ridge))
	return r
}

func near(t *testing.T, name string, got, want, tolerance float64) {
	t.Helper()
	check.That(t, math.Abs(got-want) <= tolerance, "%s = %v, want %v", name, got, want)
}

// The expected values were computed with NumPy 2.4 and SciPy 1.17: the similarities
// rounded to multiples of 1/65535, scipy.optimize.minimize (Nelder-Mead, then
// BFGS to a gradient of 1e-10) of
//
//	sum(logaddexp(0, z) - y*z) + 0.5/2*sum((x.std(axis=0)*b[1:])**2)
//
// and the square roots of the diagonal of the inverted Hessian, written out;
// the AUC by comparing all related with all unrelated pairs.
func TestRegressionAgreesWithAGeneralMinimizer(t *testing.T) {
	s := sampleOf([][]float64{
		{0.9, 0.1}, {0.8, 0}, {0.7, 0.6}, {0.2, 0.5}, {0.4, 0}, {0.1, 0.3}, {0, 0.2}, {0.3, 0}, {0.6, 0.2}, {0.5, 0.7},
	}, []bool{true, true, false, true, false, false, false, false, true, false})
	r := fitTo(t, s, 0.5)
	near(t, "intercept", r.Intercept.Value, -1.59958896, 1e-6)
	near(t, "first coefficient", r.Coefficients[0].Value, 3.17182556, 1e-6)
	near(t, "second coefficient", r.Coefficients[1].Value, -1.19756926, 1e-6)
	near(t, "error of the intercept", r.Intercept.StandardError, 1.52049339, 1e-5)
	near(t, "error of the first", r.Coefficients[0].StandardError, 2.37804001, 1e-5)
	near(t, "error of the second", r.Coefficients[1].StandardError, 2.50492153, 1e-5)
	e := r.measure(s)
	near(t, "log loss", e.LogLoss, 0.5312031089521422, 1e-8)
	near(t, "Brier score", e.Brier, 0.17097657083590329, 1e-8)
	near(t, "AUC", e.AUC, 0.8333333333333334, 1e-12)
	// −(0.4·ln 0.4 + 0.6·ln 0.6) and 0.4·0.6, of a share of 4 in 10.
	near(t, "log loss of the constant", e.ConstantLogLoss, 0.6730116670092565, 1e-12)
	near(t, "Brier score of the constant", e.ConstantBrier, 0.24, 1e-12)
}

func TestRidgeTamesPerfectSeparation(t *testing.T) {
	var x [][]float64
	var related []bool
	for k := range 100 {
		x, related = append(x, []float64{float64(k) / 100, 0.5, float64(k) / 100}), append(related, k >= 50)
	}
	r := fitTo(t, sampleOf(x, related), 1)
	for _, k := range []int{0, 2} { // the same input twice: it shares
		c := r.Coefficients[k]
		check.That(t, c.Value > 1 && c.Value < 100 && c.Value == r.Coefficients[2-k].Value, "coefficients %+v", r.Coefficients)
	}
	near(t, "coefficient of a constant", r.Coefficients[1].Value, 0, 1e-9)
	e := r.measure(sampleOf(x, related))
	check.That(t, e.AUC == 1 && e.LogLoss <= e.ConstantLogLoss/2, "%+v", e)
	if loose, tight := fitTo(t, sampleOf(x, related), 1e-6), fitTo(t, sampleOf(x, related), 1e4); loose.Coefficients[0].Value < 2*r.Coefficients[0].Value ||
		tight.Coefficients[0].Value > 0.1*r.Coefficients[0].Value {
		t.Errorf("ridge 1e-6: %v, 1: %v, 1e4: %v", loose.Coefficients[0].Value, r.Coefficients[0].Value, tight.Coefficients[0].Value)
	}
}

// planted returns two inputs and relations between n terms: the first input is
// larger for related pairs, the second says nothing.
func planted(t *testing.T, seed uint64, n int) (inputs []Input, relations *simmatrix.Matrix) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 5))
	rows := make([][]simmatrix.TermRow, 3)
	for i := range n {
		term := fmt.Sprintf("t%03d", i)
		var of [3][]simmatrix.Neighbor
		for j := range n {
			if i == j {
				continue
			}
			other := fmt.Sprintf("t%03d", j)
			related := r.IntN(5) == 0
			s := 0.2 + 0.5*r.Float64()
			if related {
				s += 0.3
				of[2] = append(of[2], simmatrix.Neighbor{Term: other, Similarity: 1})
			}
			if r.IntN(3) > 0 {
				of[0] = append(of[0], simmatrix.Neighbor{Term: other, Similarity: float32(s)})
			}
			of[1] = append(of[1], simmatrix.Neighbor{Term: other, Similarity: 0.1 + 0.9*r.Float32()})
		}
		for k := range rows {
			rows[k] = append(rows[k], simmatrix.TermRow{Term: term, Neighbors: of[k]})
		}
	}
	rows[0] = append(rows[0], simmatrix.TermRow{Term: "stranger", Neighbors: []simmatrix.Neighbor{{Term: "t000", Similarity: 1}}}) // to the relations
	rows[2] = append(rows[2], simmatrix.TermRow{Term: "unknown", Neighbors: []simmatrix.Neighbor{{Term: "t000", Similarity: 1}}})  // to the inputs
	for k, name := range []string{"telling", "noise"} {
		m := check.Got(simmatrix.New(simmatrix.Meta{Source: name}, rows[k]))(t)
		inputs = append(inputs, Input{Name: name, Matrix: m})
	}
	relations, err := simmatrix.New(simmatrix.Meta{Source: "thesaurus"}, rows[2])
	check.OK(t, err)
	return inputs, relations
}

func TestHeldOutPairsHaveAHeldOutTermAndTheOthersNone(t *testing.T) {
	inputs, relations := planted(t, 2, 50)
	for _, share := range []float64{0.1, 0.5} {
		terms := 0
		for term := range inputs[1].Matrix.Terms() {
			if heldOut(term, share) {
				terms++
			}
		}
		check.Must(t, terms != 0 && terms != 50, "%d terms held out", terms)
		fitted, _, err := samplePairs(t.Context(), newUnion(inputs), relations, share)
		check.OK(t, err)
		kept := 50 - terms
		check.That(t, fitted.pairs() == kept*(kept-1), "fitted to %d pairs of %d terms", fitted.pairs(), kept)
	}
	held := 0
	for k := range 10_000 {
		if heldOut(strconv.Itoa(k), heldOutShare) {
			held++
		}
	}
	near(t, "share of the terms", float64(held)/10_000, 0.2, 0.016) // four standard deviations
}

func TestRegressionIsARuleOfEnsembles(t *testing.T) {
	inputs, relations := planted(t, 3, 40)
	r := check.Got(FitRegression(t.Context(), inputs, relations))(t)
	opts := Options{Rule: RuleRegression, Neighbors: 100, Regression: r}
	m := check.Got(Combine(t.Context(), inputs, opts, nil))(t)
	first, second := similarities(inputs[0].Matrix), similarities(inputs[1].Matrix)
	for d, n := range similarities(m) {
		want := simmatrix.QuantizeSimilarity(r.Similarity([]float64{float64(first[d].Similarity), float64(second[d].Similarity)}))
		near(t, fmt.Sprint(d), float64(n.Similarity), float64(want), 1.1/65535)
	}
	params := m.Meta().Params
	check.That(t, params["rule"] == "regression" && params["telling.coefficient"] != "" && params["held_out_log_loss"] != "", "%v", params)
	inputs[0], inputs[1] = inputs[1], inputs[0]
	check.That(t, check.ErrOf(Combine(t.Context(), inputs, opts, nil)) != nil, "inputs in another order were taken")
}

func TestRegressionIsTheSameOnAnyNumberOfProcessors(t *testing.T) {
	inputs, relations := planted(t, 4, 200) // pairs for several blocks
	var seen []string
	for _, processors := range []int{1, 3} {
		before := runtime.GOMAXPROCS(processors)
		r, err := FitRegression(t.Context(), inputs, relations)
		runtime.GOMAXPROCS(before)
		check.OK(t, err)
		seen = append(seen, fmt.Sprintf("%+v", *r))
	}
	check.Equal(t, seen[1], seen[0])
}

func TestRegressionsThatCannotBeAreRefused(t *testing.T) {
	inputs, relations := planted(t, 5, 20)
	// A single input that is all of the relations: nothing in the sample is unrelated.
	unrelated := newInput(t, "none", "t000:", "t001:", "t002:", "t003:", "t004:", "t005:").Matrix
	for name, tt := range map[string]struct {
		inputs    []Input
		relations *simmatrix.Matrix
		want      []string
	}{
		"no inputs":       {nil, relations, []string{"inputs: 0"}},
		"no relations":    {inputs, nil, []string{"no relations"}},
		"itself":          {inputs, inputs[1].Matrix, []string{"to fit to", "takes related and unrelated ones"}},
		"nothing related": {inputs, unrelated, []string{"to fit to", "0 are related"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := FitRegression(t.Context(), tt.inputs, tt.relations)
			for _, want := range tt.want {
				check.Message(t, want, err)
			}
		})
	}
	_, held, err := samplePairs(t.Context(), newUnion(inputs), relations, 1e-9)
	check.OK(t, err)
	check.Message(t, "of 0 pairs to measure on", held.check("measure on"))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	check.Error(t, context.Canceled, check.ErrOf(FitRegression(ctx, inputs, relations)))
}

// An input made from the relations may have other similarities, more terms, and
// lack some pairs; what it says of the sample gives it away.
func TestInputsMadeFromTheRelationsAreRefused(t *testing.T) {
	read := func(file string, similarity float64) *simmatrix.Matrix {
		opts := source.DefaultThesaurusOptions()
		opts.Similarity = similarity
		m, _, err := source.ReadThesaurus(strings.NewReader(file), opts)
		check.OK(t, err)
		return m
	}
	var file strings.Builder
	for i := range 60 { // 120 pairs
		fmt.Fprintf(&file, "t%03d, t%03d\n", i, i+60)
	}
	inputs, _ := planted(t, 6, 120)
	relations := read(file.String(), 0.5)
	leaking := func(m *simmatrix.Matrix) error {
		_, err := FitRegression(t.Context(), append(inputs[:1:1], Input{Name: "thesaurus", Matrix: m}), relations)
		return err
	}
	for name, tt := range map[string]struct {
		matrix *simmatrix.Matrix
		leaks  bool
	}{
		"the same":            {relations, true},
		"other settings":      {read("# akin: similarity 0.9\n"+file.String()+"cat, dog\n", 0.5), true},
		"one pair is not":     {read(strings.Replace(file.String(), "t000, t060", "t000 => t060", 1), 0.5), true},
		"three lines are not": {read(file.String()[3*len("t000, t060\n"):], 0.5), false},
		"one is not in them":  {read(file.String()+"t000, t001\n", 0.5), false}, // both ways: two mistakes
		"half of them":        {read(file.String()[:30*len("t000, t060\n")], 0.5), false},
	} {
		err := leaking(tt.matrix)
		got := errors.Is(err, ErrRegression)
		check.That(t, got == tt.leaks && (err != nil) == tt.leaks, "%s: %v", name, err)
		if tt.leaks && !strings.Contains(fmt.Sprint(err), `input "thesaurus" has the 120 related`) && !strings.Contains(fmt.Sprint(err), `input "thesaurus" has the 119 related`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFewPairsShowNoLeak(t *testing.T) {
	s := func(pairs int) *sample {
		var x [][]float64
		var related []bool
		for p := range 2 * pairs {
			x, related = append(x, []float64{float64(p % 2)}), append(related, p%2 == 1)
		}
		return sampleOf(x, related)
	}
	in := []Input{{Name: "x"}}
	check.OK(t, checkLeaks(in, s(12), s(7)))
	check.Error(t, ErrRegression, checkLeaks(in, s(12), s(8)))
}

// Worked out by hand: related pairs at 0.8 and 0.3, unrelated ones at 0.3, 0.1
// and 0.9. Of the six comparisons 0.8 wins two, 0.3 wins one and draws one.
func TestAUCCountsTiesHalf(t *testing.T) {
	s := sampleOf([][]float64{{0.8}, {0.3}, {0.3}, {0.1}, {0.9}}, []bool{true, true, false, false, false})
	r := &Regression{Coefficients: []Coefficient{{Value: 1}}, Pairs: 5, Related: 2}
	near(t, "AUC", r.measure(s).AUC, 3.5/6, 1e-12)
}

func TestRegressionIsPrintedAsATable(t *testing.T) {
	r := &Regression{
		Intercept:    Coefficient{Name: "(intercept)", Value: -6.5, StandardError: 0.04},
		Coefficients: []Coefficient{{Name: "vectors", Value: 4.25, StandardError: 0.1}, {Name: "edit", Value: 3.5, StandardError: 0.16}},
		Pairs:        403995, Related: 2163,
		HeldOut: Evaluation{
			Pairs: 224969, Related: 1175, LogLoss: 0.0312, ConstantLogLoss: 0.0327, Brier: 0.0051, ConstantBrier: 0.0052, AUC: 0.7177,
		},
	}
	want := `fitted to 403995 pairs, 2163 of them related
  coefficient  value    standard error
  (intercept)  -6.5000  0.0400
  vectors      4.2500   0.1000
  edit         3.5000   0.1600
held out: 224969 pairs, 1175 of them related
  measure      regression  constant
  log loss     0.0312      0.0327
  Brier score  0.0051      0.0052
  AUC          0.7177      0.5000
`
	check.Equal(t, want, r.String())
}

// Similarity returns an ensemble's similarity for a pair's.
func (r *Regression) Similarity(similarities []float64) float64 {
	return r.similarity(inUnits(similarities))
}

func inUnits(similarities []float64) []uint16 {
	units := make([]uint16, len(similarities))
	for k, s := range similarities {
		units[k] = uint16(math.Round(min(max(s, 0), 1) * simmatrix.UnitsOfOne))
	}
	return units
}
