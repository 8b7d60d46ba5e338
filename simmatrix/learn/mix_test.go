package learn

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// TestMixedNeighborsAreThoseOfTheFormula computes M for all pairs, with the
// principal components of a singular value decomposition, and compares.
func TestMixedNeighborsAreThoseOfTheFormula(t *testing.T) {
	for _, neighbors := range []int{5, 40} { // fewer and more than the 30th, which sets the scale
		t.Run(strconv.Itoa(neighbors), func(t *testing.T) { compareMixed(t, neighbors) })
	}
}

func compareMixed(t *testing.T, neighbors int) {
	t.Helper()
	const n, power = 120, 3.0
	rng := rand.New(rand.NewPCG(5, 6))
	random := func(dim int) *mat.Dense {
		m := mat.NewDense(n, dim, nil)
		for i := range n {
			for d := range dim {
				m.Set(i, d, rng.NormFloat64()+0.3*float64(d%3))
			}
		}
		return m
	}
	unit := func(m *mat.Dense) {
		for i := range n {
			if row := mat.Row(nil, i, m); mat.Norm(mat.NewVecDense(len(row), row), 2) > 1e-9 {
				v := mat.NewVecDense(len(row), row)
				v.ScaleVec(1/mat.Norm(v, 2), v)
				m.SetRow(i, row)
			}
		}
	}
	corpus, model := random(10), random(8)
	unit(corpus)
	terms := make([]string, n)
	p, search := newPanels(18, n), nearestOptions{neighbors: neighbors, power: power}
	for i := range n {
		terms[i] = strconv.Itoa(1000 + i)
		row := make([]float32, 10)
		for d := range row {
			row[d] = float32(corpus.At(i, d))
		}
		p.add(uint32(i), row)
		if i%10 != 0 {
			search.candidates = append(search.candidates, uint32(i))
		}
	}
	unknown := func(i int) bool { return i%7 == 3 }
	vector := func(term string) []float32 {
		i := slices.Index(terms, term)
		if unknown(i) {
			return nil
		}
		row := make([]float32, 8)
		for d := range row {
			row[d] = float32(model.At(i, d))
		}
		return row
	}
	own := check.Got(p.part(0, 10).nearest(t.Context(), search, nil))(t)
	search.mixed = check.Got(p.mix(t.Context(), &Mix{Share: 0.35, Vector: vector, Dim: 8}, 10, search, terms, nil))(t)
	got := check.Got(p.nearest(t.Context(), search, nil))(t)

	var known []int
	for i := range n {
		if !unknown(i) {
			known = append(known, i)
		}
	}
	e := mat.NewDense(n, 8, nil)
	for d := range 8 {
		mean := 0.0
		for _, i := range known {
			mean += model.At(i, d) / float64(len(known))
		}
		for _, i := range known {
			e.Set(i, d, model.At(i, d)-mean)
		}
	}
	var svd mat.SVD
	svd.Factorize(e, mat.SVDThin)
	var v mat.Dense
	svd.VTo(&v)
	first := v.Slice(0, 8, 0, 3)
	var along, back mat.Dense
	along.Mul(e, first)
	back.Mul(&along, first.T())
	e.Sub(e, &back)
	unit(e)
	var a, c mat.Dense
	a.Mul(corpus, corpus.T())
	c.Mul(e, e.T())
	isCandidate := func(j int) bool { return j%10 != 0 }
	usual := func(m *mat.Dense, rows []int, also func(int) bool) float64 {
		sum, count := 0.0, 0
		for _, i := range rows {
			var row []float64
			for j := range n {
				if j != i && isCandidate(j) && also(j) {
					row = append(row, m.At(i, j))
				}
			}
			slices.Sort(row)
			if cos := row[len(row)-30]; cos > 0 {
				sum += cos
				count++
			}
		}
		return sum / float64(count)
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	kappa := usual(&a, all, func(int) bool { return true }) / usual(&c, known, func(j int) bool { return !unknown(j) })
	type pair struct {
		i, j int
		m    float64
	}
	byModel := func(i, j int) bool {
		part := 0.35 * kappa * max(0, c.At(i, j))
		return 3*part >= 0.65*a.At(i, j)+part
	}
	var kept []pair
	for i := range n {
		var row []pair
		for j := range n {
			if m := 0.65*a.At(i, j) + 0.35*kappa*c.At(i, j); j != i && isCandidate(j) && m > 0 {
				row = append(row, pair{i, j, m})
			}
		}
		slices.SortFunc(row, func(x, y pair) int { return cmp.Compare(y.m, x.m) })
		kept = append(kept, row[:min(neighbors, len(row))]...)
	}
	slices.SortFunc(kept, func(x, y pair) int { return cmp.Compare(y.m, x.m) })
	sims := slices.Clone(own.Sims)
	slices.Sort(sims)
	slices.Reverse(sims)
	differ := 0
	for k, one := range kept[:min(len(kept), len(sims))] {
		cols, units := got.Row(one.i)
		at := slices.Index(cols, uint32(one.j))
		if at < 0 || byModel(one.i, one.j) != (got.Origins[got.Offsets[one.i]+at]&2 != 0) || math.Abs(float64(units[at])-min(1.4*float64(sims[k]), simmatrix.UnitsOfOne)) > 0.02*simmatrix.UnitsOfOne {
			differ++
		}
	}
	if differ > max(2, len(kept)/500) { // single precision swaps neighbors that are all but equal: two entries at least
		t.Errorf("%d of %d entries differ from the formula", differ, len(kept))
	}
}

func TestVectorsThatDifferByRoundingOnlySayNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	terms := make([]string, 100)
	vectors := map[string][]float32{}
	for i := range terms {
		terms[i] = strconv.Itoa(i)
		for range 16 {
			vectors[terms[i]] = append(vectors[terms[i]], 0.5+float32(rng.Float64()-0.5)*2e-7)
		}
	}
	o := &Mix{Dim: 16, Vector: func(term string) []float32 { return vectors[term] }}
	_, _, err := modelVectors(t.Context(), o, terms, nil)
	check.That(t, err != nil && strings.Contains(err.Error(), "alike"), "%v", err)
}

func TestModelThatKnowsTooFewWordsToCompareIsRefused(t *testing.T) {
	terms := make([]string, 100)
	for i := range terms {
		terms[i] = strconv.Itoa(i)
	}
	for known, refused := range map[int]bool{0: true, 30: true, 31: false} {
		o := &Mix{Dim: 40, Vector: func(term string) []float32 {
			k, _ := strconv.Atoi(term)
			if k >= known {
				return nil
			}
			v := make([]float32, 40)
			v[k] = 1
			return v
		}}
		_, ids, err := modelVectors(t.Context(), o, terms, nil)
		if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%d of the 100 terms", known)) || err == nil && len(ids) != known {
			t.Errorf("%d words: %d ids, %v", known, len(ids), err)
		}
	}
}
