package combine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// mustCombine combines without a bound on the neighbors that matters.
func mustCombine(t *testing.T, rule Rule, inputs ...Input) *simmatrix.Matrix {
	t.Helper()
	opts := DefaultOptions()
	opts.Rule = rule
	return check.Got(Combine(t.Context(), inputs, opts, nil))(t)
}

// newInput is an input with the rows of a few lines as parse reads them.
func newInput(t *testing.T, name string, lines ...string) Input {
	t.Helper()
	m := parse(t, strings.Join(lines, "\n"))
	return Input{Name: name, Matrix: m, Weight: 1}
}

func TestCombinedAndOverriddenMatricesKeepTheForms(t *testing.T) {
	input := func(name string, forms map[string]string) Input {
		var rows []simmatrix.TermRow
		for term, form := range forms {
			rows = append(rows, simmatrix.TermRow{Term: term, Form: form})
		}
		m := check.Got(simmatrix.New(simmatrix.Meta{}, rows))(t)
		return Input{Name: name, Matrix: m, Weight: 1}
	}
	m := mustCombine(t, RuleMaximum,
		input("one", map[string]string{"ga": "gas", "oil": "", "tank": ""}), input("two", map[string]string{"ga": "gases", "oil": "oils", "valv": "valves"}))
	want := map[string]string{"ga": simmatrix.WithForms("ga", "gas", "gases"), "oil": "oils", "valv": "valves"}
	check.Equal(t, want, maps.Collect(m.Forms()))
	m, _, err := mustParseOverrides(t, "set ga petrol 0.5\n").Apply(m)
	check.OK(t, err)
	diff := gocmp.Diff(want, maps.Collect(m.Forms()))
	check.That(t, diff == "" && !m.Row("petrol").IsZero(), "overridden (-want +got):\n%s", diff)
}

func TestProtectedPairsHaveAPlaceInAnEnsemble(t *testing.T) {
	a, opts := parse(t, "x: a 0.9 b 0.8 c 0.7\na:\nb:\nc:"), DefaultOptions()
	opts.Neighbors, opts.Protect = 2, protecting("x c")
	m := check.Got(Combine(t.Context(), []Input{{Name: "a", Matrix: a}, {Name: "b", Matrix: a}}, opts, nil))(t)
	check.Equal(t, "x/0: a=0.900(11) c=0.700(11)", shown(m)[3])
}

func TestEnsembleRecordsItsInputs(t *testing.T) {
	x := carMatrix(t, simmatrix.Meta{Source: "vectors", Docs: 10, Params: map[string]string{"power": "3", "model": "minilm"}}, 0)
	y := check.Got(simmatrix.New(simmatrix.Meta{Source: "thesaurus", Docs: 12, Origins: []string{"p", "q"}}, []simmatrix.TermRow{
		{Term: "car", DocFreq: 11, Neighbors: []simmatrix.Neighbor{{Term: "auto", Similarity: 1, Origins: 2}}},
		{Term: "auto", DocFreq: 3},
		{Term: "van"},
	}))(t)
	m := mustCombine(t, RuleWeighted, Input{"w2v", x, 2}, Input{"oewn", y, 0.5})
	want := simmatrix.Meta{
		Source: "ensemble", Docs: 12, Origins: []string{"w2v", "oewn"},
		Params: map[string]string{
			"rule": "weighted", "neighbors": "200",
			"model": "minilm", "power": "3",
			"w2v.source": "vectors", "w2v.power": "3", "w2v.model": "minilm", "w2v.weight": "2", "oewn.source": "thesaurus", "oewn.weight": "0.5",
		},
		Terms: 4, NonZeros: 4, MaxNeighbors: 3, Dominant: false, Symmetric: false,
	}
	check.Equal(t, want, m.Meta())
	wantRows := []string{"auto/3:", "car/11: jaguar=0.640(1) van=0.400(1) auto=0.200(10)", "jaguar/4: car=0.640(1)", "van/7:"}
	check.Equal(t, wantRows, shown(m))
}

func TestEnsemblesOfSeveralPowersHaveNone(t *testing.T) {
	power := func(p string) simmatrix.Meta {
		return simmatrix.Meta{Params: map[string]string{simmatrix.PowerParam: p}}
	}
	m := mustCombine(t, RuleMaximum, Input{"a", carMatrix(t, power("3"), 0), 1}, Input{"b", carMatrix(t, power("2"), 0), 1})
	check.Equal(t, "", m.Meta().Params[simmatrix.PowerParam])
}

func TestEnsemblesThatCannotBeAreRefused(t *testing.T) {
	in := newInput(t, "x", "a: b 0.8", "b:")
	weightless := Input{Name: "y", Matrix: in.Matrix}
	nine := make([]Input, 9)
	for k := range nine {
		nine[k] = Input{Name: strconv.Itoa(k), Matrix: in.Matrix}
	}
	for name, tt := range map[string]struct {
		inputs []Input
		opts   Options
		want   []string
	}{
		"no inputs":     {nil, Options{Rule: RuleAverage, Neighbors: 1}, []string{"inputs: 0 not in [1, 8]"}},
		"nine":          {nine, Options{Rule: RuleAverage, Neighbors: 1}, []string{"inputs: 9"}},
		"options":       {[]Input{in}, Options{Rule: "mode"}, []string{`"mode"`, "neighbors: 0"}},
		"percentile":    {[]Input{in}, Options{Rule: RulePercentile, Percentile: 100.1}, []string{"percentile: 100.1 not in [0, 100]"}},
		"no percentile": {[]Input{in}, Options{Rule: RulePercentile, Percentile: math.NaN()}, []string{"percentile: NaN"}},
		"names":         {[]Input{in, in, {Matrix: in.Matrix}}, Options{Rule: RuleAverage, Neighbors: 1}, []string{`name "x"`, `name ""`}},
		"no matrix":     {[]Input{{Name: "x"}}, Options{Rule: RuleMaximum, Neighbors: 1}, []string{`"x" has no matrix`}},
		"weights":       {[]Input{in, weightless, {Name: "z", Matrix: in.Matrix, Weight: math.NaN()}}, Options{Rule: RuleWeighted, Neighbors: 1}, []string{`"y": weight 0`, `"z": weight NaN`}},
		"not fitted":    {[]Input{in}, Options{Rule: RuleRegression, Neighbors: 1}, []string{"none is fitted"}},
		"fitted to two": {[]Input{in}, Options{Rule: RuleRegression, Neighbors: 1, Regression: &Regression{Coefficients: make([]Coefficient, 2)}}, []string{"other names"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Combine(t.Context(), tt.inputs, tt.opts, nil)
			for _, want := range tt.want {
				check.Message(t, want, err)
			}
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	check.Error(t, context.Canceled, check.ErrOf(Combine(ctx, []Input{in}, DefaultOptions(), nil)))
}

func TestEnsembleDoesNotDependOnTheNumberOfProcessors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	inputs := []Input{{"x", randomMatrix(t, r, 1500, 9, false), 1}, {"y", randomMatrix(t, r, 1300, 9, true), 1}}
	var sums []string
	for _, processors := range []int{1, 4} {
		before := runtime.GOMAXPROCS(processors)
		done := 0
		m, err := Combine(t.Context(), inputs, Options{Rule: RuleAverage, Neighbors: 7}, func(_ string, d, _ int) { done = d })
		runtime.GOMAXPROCS(before)
		check.OK(t, err)
		sums = append(sums, m.Checksum())
		check.Equal(t, m.Len(), done)
	}
	check.Equal(t, sums[1], sums[0])
}

// combinedSlowly is the definition of an ensemble, over maps.
func combinedSlowly(inputs []Input, rule Rule, neighbors int) map[direction]simmatrix.Neighbor {
	type pair struct {
		rank  int
		n     simmatrix.Neighbor
		total []int
	}
	rows := map[string]map[string]*pair{}
	for k, in := range inputs {
		for term, row := range in.Matrix.Rows() {
			for n := range row.All() {
				rank := 1
				for other := range row.All() {
					if other.Similarity > n.Similarity {
						rank++
					}
				}
				if rows[term] == nil {
					rows[term] = map[string]*pair{}
				}
				p := rows[term][n.Term]
				if p == nil {
					p = &pair{rank: rank, total: make([]int, len(inputs))}
					rows[term][n.Term] = p
				}
				p.rank = min(p.rank, rank)
				p.total[k] = int(math.Round(float64(n.Similarity) * 65535))
				p.n.Term = n.Term
				p.n.Origins |= 1 << k
			}
		}
	}
	all := map[direction]simmatrix.Neighbor{}
	for term, row := range rows {
		var list []*pair
		for _, p := range row {
			sum := 0
			for _, u := range p.total {
				sum += u
			}
			s := map[Rule]float64{
				RuleAverage: float64(sum) / float64(len(inputs)),
				RuleMinimum: float64(slices.Min(p.total)),
				RuleMaximum: float64(slices.Max(p.total)),
				RuleMedian:  medianOf(p.total),
			}[rule]
			if s > 0 {
				p.n.Similarity = simmatrix.QuantizeSimilarity(s / 65535)
				list = append(list, p)
			}
		}
		slices.SortFunc(list, func(a, b *pair) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.n.Similarity, a.n.Similarity), cmp.Compare(a.n.Term, b.n.Term))
		})
		for _, p := range list[:min(len(list), neighbors)] {
			all[direction{term, p.n.Term}] = p.n
		}
	}
	return all
}

func medianOf(values []int) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return float64(sorted[(len(sorted)-1)/2]+sorted[len(sorted)/2]) / 2
}

// withoutDocFreqs returns the entries of m as far as an ensemble decides them.
func withoutDocFreqs(m *simmatrix.Matrix) map[direction]simmatrix.Neighbor {
	all := similarities(m)
	for d, n := range all {
		n.DocFreq = 0
		all[d] = n
	}
	return all
}

// Random inputs: each rule gives what its definition says.
func FuzzCombine(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(seed, uint8(seed%3), uint8(3+2*seed), uint8(1+seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, more, terms, neighbors uint8) {
		r := rand.New(rand.NewPCG(seed, 3))
		n, c := int(terms%40), 1+int(neighbors%40)
		inputs := []Input{{"m", randomMatrix(t, r, n, 12, false), 1}}
		for k := range more % 4 {
			inputs = append(inputs, Input{fmt.Sprint("m", k), randomMatrix(t, r, r.IntN(n+1), 12, seed%2 == 0), 1})
		}
		for _, rule := range []Rule{RuleAverage, RuleMinimum, RuleMaximum, RuleMedian} {
			got := check.Got(Combine(t.Context(), inputs, Options{Rule: rule, Neighbors: c}, nil))(t)
			check.Equal(t, combinedSlowly(inputs, rule, c), withoutDocFreqs(got), rule)
		}
	})
}

func TestPercentilesAreThoseOfAllInputs(t *testing.T) {
	inputs := []Input{
		newInput(t, "x", "a: b 0.1 c 0.5", "b:", "c:"), newInput(t, "y", "a: b 0.9", "b:"), newInput(t, "z", "a: b 0.2", "b:"), newInput(t, "u", "a: b 0.4", "b:"),
	}
	// As Python's statistics.quantiles with method="inclusive" has them. Three of four inputs lack c, which is 0 there.
	for p, want := range map[float64][2]float64{0: {0.1, 0}, 10: {0.13, 0}, 25: {0.175, 0}, 50: {0.3, 0}, 90: {0.75, 0.35}, 100: {0.9, 0.5}} {
		m := check.Got(Combine(t.Context(), inputs, Options{Rule: RulePercentile, Percentile: p, Neighbors: 9}, nil))(t)
		got := [2]float64{}
		for n := range m.Row("a").All() {
			got[n.Term[0]-'b'] = float64(n.Similarity)
		}
		near(t, fmt.Sprint("b at ", p), got[0], want[0], 2e-5)
		near(t, fmt.Sprint("c at ", p), got[1], want[1], 2e-5)
		check.Equal(t, settings.FormatFloat(p), m.Meta().Params["percentile"])
	}
}

func TestHugeAndTinyWeightsAreWeights(t *testing.T) {
	for _, w := range []float64{math.MaxFloat64, math.SmallestNonzeroFloat64, 1} {
		mean := weightedMean([]float64{w, w, w, w})
		near(t, fmt.Sprint(w), mean([]uint16{65535, 0, 0, 65535}), 0.5, 1e-12)
	}
	in := newInput(t, "x", "a: b 0.5", "b:")
	in.Weight = math.Inf(1)
	check.Message(t, "finite", check.ErrOf(Combine(t.Context(), []Input{in}, Options{Rule: RuleWeighted, Neighbors: 1}, nil)))
}

func TestNoInputIsCalledAsOverridesAre(t *testing.T) {
	in := newInput(t, simmatrix.OriginOverrides, "a: b 0.5", "b:")
	check.Message(t, "another name", check.ErrOf(Combine(t.Context(), []Input{in}, DefaultOptions(), nil)))
}
