package softcosine

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// orders are that of the product and that of the terms, with which it is
// compared.
func orders() map[string]Ordering {
	return map[string]Ordering{"minimum degree": MinimumDegree, "natural order": naturalOrder}
}

func naturalOrder(s *Similarities) []int32 {
	order := make([]int32, s.Len())
	for i := range order {
		order[i] = int32(i)
	}
	return order
}

// rowOf returns row i of E, the coordinates of term i.
func rowOf(b *Basis, i int) Vector {
	cols, values := b.factor.row(int(b.places[i]))
	return Vector{Terms: cols, Values: values}.mapped(func(_ int32, v float64) float64 { return v }) // without zeros
}

// symmetricOf returns the symmetric matrix with the given pairs.
func symmetricOf(tb testing.TB, n int, pairs map[[2]int32]float64) *Similarities {
	tb.Helper()
	entries := maps.Clone(pairs)
	for at, sim := range pairs {
		entries[[2]int32{at[1], at[0]}] = sim
	}
	return mustSimilarities(tb, n, entries)
}

// dominantS returns a symmetric strictly dominant S of random density, with
// negative entries among the others.
func dominantS(tb testing.TB, random *rand.Rand, n int) *Similarities {
	tb.Helper()
	density := random.Float64() * random.Float64()
	pairs, sums := map[[2]int32]float64{}, make([]float64, n)
	for i := range n {
		for j := range i {
			if random.Float64() < density {
				v := random.Float64()*2 - 1
				pairs[[2]int32{int32(i), int32(j)}] = v
				sums[i] += math.Abs(v)
				sums[j] += math.Abs(v)
			}
		}
	}
	for at := range pairs {
		pairs[at] *= 0.99 / max(1, sums[at[0]], sums[at[1]])
	}
	return symmetricOf(tb, n, pairs)
}

// dominantSpace returns a space with an S of dominantS; some weights are 0.
func dominantSpace(tb testing.TB, random *rand.Rand, n int) *Space {
	tb.Helper()
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = max(0, 5*random.Float64()-0.5)
	}
	return mustSpace(tb, weights, dominantS(tb, random, n))
}

// someVector returns a vector with a few coordinates.
func someVector(random *rand.Rand, n int) Vector {
	values := map[int32]float64{}
	for range random.IntN(8) {
		values[int32(random.IntN(n))] = random.NormFloat64() * 3
	}
	return NewVector(values)
}

// rounding is the error of a sum of numbers of the given size.
func rounding(size float64) float64 { return 1e-12 * (1 + size) }

// images returns Φ1 by a basis of each ordering.
func images(tb testing.TB, sp *Space) map[string]func(Vector) Vector {
	tb.Helper()
	found := map[string]func(Vector) Vector{}
	for ordering, order := range orders() {
		sparse, err := NewBasis(sp, order, 0)
		if err != nil {
			tb.Fatal(err)
		}
		found[ordering] = sparse.Coordinates
	}
	return found
}

func TestInnerProductIsTheDotProductOfImages(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for k := range propertyCases {
		n := 1 + random.IntN(40)
		sp := dominantSpace(t, random, n)
		x, y := someVector(random, n), someVector(random, n)
		size := sp.HardNorm(x) * sp.HardNorm(y)
		for name, image := range images(t, sp) {
			if got, want := image(x).Dot(image(y)), sp.InnerProduct(x, y); !near(got, want, rounding(size)) {
				t.Fatalf("case %d, %s: Φ(x)·Φ(y) = %v, ⟨x, y⟩ = %v", k, name, got, want)
			}
		}
	}
}

func TestSoftCosineIsTheCosineOfImages(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	for k := range propertyCases {
		n := 1 + random.IntN(40)
		sp := dominantSpace(t, random, n)
		x, y := someVector(random, n), someVector(random, n)
		want, err := sp.Soft(x, y)
		if err != nil {
			t.Fatal(err)
		}
		for name, image := range images(t, sp) {
			a, b := image(x), image(y)
			got := 0.0
			if a.Len() > 0 && b.Len() > 0 {
				got = a.Dot(b) / a.Norm() / b.Norm()
			}
			if !near(got, want, rounding(1)) {
				t.Fatalf("case %d, %s: cos(Φ(x), Φ(y)) = %v, soft cosine %v", k, name, got, want)
			}
		}
	}
}

func TestRowsOfTheBasisMultiplyToS(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for k := range propertyCases {
		n := 1 + random.IntN(30)
		sp := dominantSpace(t, random, n)
		for ordering, order := range orders() {
			basis, err := NewBasis(sp, order, 0)
			if err != nil {
				t.Fatal(err)
			}
			places := inverse(order(sp.Similarities()))
			for i := range n {
				row := rowOf(basis, i)
				for j := range n {
					if got, want := row.Dot(rowOf(basis, j)), sp.Similarities().At(i, j); !near(got, want, rounding(1)) {
						t.Fatalf("case %d, %s: e_%d·e_%d = %v, s = %v", k, ordering, i, j, got, want)
					}
				}
				if last := row.Terms[row.Len()-1]; last != places[i] || row.Values[row.Len()-1] <= 0 {
					t.Fatalf("case %d, %s: row %d ends at %d, which is not its positive place %d of the diagonal", k, ordering, i, last, places[i])
				}
			}
		}
	}
}

func TestBasisInNaturalOrderIsTheCholeskyFactor(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	for k := range propertyCases {
		n := 1 + random.IntN(40)
		sp := dominantSpace(t, random, n)
		basis, err := NewBasis(sp, naturalOrder, 0)
		if err != nil {
			t.Fatal(err)
		}
		e := choleskyOf(t, sp.s)
		for i := range n {
			row := rowOf(basis, i)
			for j := range n {
				if !near(row.At(int32(j)), e.At(i, j), rounding(1)) {
					t.Fatalf("case %d: E(%d, %d) is %v, dense %v", k, i, j, row.At(int32(j)), e.At(i, j))
				}
			}
		}
	}
}

// choleskyOf returns the dense factor of S.
func choleskyOf(tb testing.TB, s *Similarities) *mat.TriDense {
	tb.Helper()
	dense := mat.NewSymDense(s.Len(), nil)
	for i := range s.Len() {
		for j := range i + 1 {
			dense.SetSym(i, j, s.At(i, j))
		}
	}
	var c mat.Cholesky
	if !c.Factorize(dense) {
		tb.Fatal("gonum finds S not positive definite")
	}
	var e mat.TriDense
	c.LTo(&e)
	return &e
}

// The papers print E·W·x for the coordinates, which with S = E·Eᵀ is not the
// inner product; see [Basis].
func TestBasisTakesTheTransposeOfE(t *testing.T) {
	s := symmetricOf(t, 2, map[[2]int32]float64{{0, 1}: 0.5})
	sp := mustSpace(t, []float64{1, 1}, s)
	basis, err := NewBasis(sp, naturalOrder, 0)
	if err != nil {
		t.Fatal(err)
	}
	e := mat.DenseCopyOf(choleskyOf(t, s))
	if want := mat.NewDense(2, 2, []float64{1, 0, 0.5, math.Sqrt(0.75)}); !mat.EqualApprox(e, want, 1e-15) {
		t.Fatalf("E = %v", mat.Formatted(e))
	}
	x, y := mat.NewVecDense(2, []float64{1, 0}), mat.NewVecDense(2, []float64{0, 1})
	product := func(change mat.Matrix) float64 {
		var a, b mat.VecDense
		a.MulVec(change, x)
		b.MulVec(change, y)
		return mat.Dot(&a, &b)
	}
	if got := product(e.T()); !near(got, 0.5, rounding(1)) {
		t.Errorf("(Eᵀx)·(Eᵀy) = %v, want s = 0.5", got)
	}
	if got := product(e); !near(got, 0.5*math.Sqrt(0.75), rounding(1)) {
		t.Errorf("(Ex)·(Ey) = %v, want ½·√¾, which is not s", got)
	}
	if got := basis.Coordinates(NewVector(map[int32]float64{1: 1})); !near(got.At(0), 0.5, rounding(1)) || !near(got.At(1), math.Sqrt(0.75), rounding(1)) {
		t.Errorf("coordinates of the second term: %v, want row 2 of E", got)
	}
}

// bases are the ways to make one.
func bases() map[string]func(*Space) error {
	ways := map[string]func(*Space) error{}
	for ordering, order := range orders() {
		ways[ordering] = func(sp *Space) error {
			_, err := NewBasis(sp, order, 0)
			return err
		}
	}
	return ways
}

func TestBasisOfWhatIsNotPositiveDefiniteNamesTheRowAndTheWay(t *testing.T) {
	// Three unit vectors in a plane are not independent: of what is left of
	// the third, rounding decides the sign.
	turn := func(degrees float64) float64 { return math.Cos(degrees * math.Pi / 180) }
	for name, pairs := range map[string]map[[2]int32]float64{
		"semi-definite, two terms alike": {{1, 2}: 1},
		"semi-definite, three in a plane": {
			{0, 1}: turn(37), {1, 2}: turn(23), {0, 2}: turn(60), {3, 4}: 0.5,
		},
		"semi-definite, opposite terms":  {{0, 2}: -1},
		"indefinite, above 1":            {{1, 4}: 1.5},
		"indefinite, no triangle":        {{0, 1}: 0.9, {1, 2}: 0.9},
		"indefinite, far apart":          {{0, 19}: 0.8, {7, 19}: 0.8},
		"indefinite, in a block of rows": {{8, 9}: 0.9, {9, 10}: 0.9, {10, 11}: 0.9},
	} {
		s := symmetricOf(t, 20, pairs)
		sp := mustSpace(t, ones(20), s)
		for way, basis := range bases() {
			err := basis(sp)
			var pivot *PivotError
			if !errors.Is(err, ErrNotPositiveDefinite) || !errors.As(err, &pivot) {
				t.Errorf("%s, %s: %v", name, way, err)
				continue
			}
			if cols, _ := s.Row(pivot.Row); len(cols) == 0 {
				t.Errorf("%s, %s: row %d has no neighbors, so it cannot be the cause", name, way, pivot.Row)
			}
			for _, part := range []string{fmt.Sprintf("row %d:", pivot.Row), "strictly diagonally dominant", "--symmetric --dominant"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s, %s: no %q in %v", name, way, part, err)
				}
			}
		}
	}
}

func TestFailingRowIsTheFirstInTheOrder(t *testing.T) {
	sp := mustSpace(t, ones(30), symmetricOf(t, 30, map[[2]int32]float64{{3, 21}: 1, {4, 25}: 1}))
	var pivot *PivotError
	if err := bases()["natural order"](sp); !errors.As(err, &pivot) || pivot.Row != 21 || pivot.Pivot != 0 {
		t.Error(err)
	}
}

func TestBasisOfWhatIsNotSymmetricSaysSo(t *testing.T) {
	for name, s := range map[string]map[[2]int32]float64{
		"one way":       {{0, 1}: 0.5},
		"not as much":   {{0, 1}: 0.5, {1, 0}: 0.4},
		"the other way": {{2, 1}: 0.5},
	} {
		similarities := mustSimilarities(t, 3, s)
		sp := mustSpace(t, ones(3), similarities)
		for way, basis := range bases() {
			if err := basis(sp); !errors.Is(err, ErrNotSymmetric) || !strings.Contains(err.Error(), "s(") {
				t.Errorf("%s, %s: %v", name, way, err)
			}
		}
	}
}

func TestBasisIsBounded(t *testing.T) {
	sp := dominantSpace(t, rand.New(rand.NewPCG(5, 5)), 50)
	need := analyze(sp.s, MinimumDegree(sp.s)).nonZeros
	if _, err := NewBasis(sp, MinimumDegree, need-1); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), fmt.Sprintf("has %d entries", need)) {
		t.Errorf("%v, want one that names %d", err, need)
	}
	basis, err := NewBasis(sp, MinimumDegree, need)
	if err != nil || len(basis.factor.cols) != need || basis.Len() != 50 {
		t.Errorf("%v, %d entries, want %d", err, len(basis.factor.cols), need)
	}
}

func TestBasisOfNoTerms(t *testing.T) {
	sp := mustSpace(t, nil, Identity(0))
	for way, basis := range bases() {
		if err := basis(sp); err != nil {
			t.Errorf("%s: %v", way, err)
		}
	}
	basis, err := NewBasis(sp, MinimumDegree, 0)
	if err != nil || basis.Coordinates(Vector{}).Len() != 0 || basis.Len() != 0 {
		t.Errorf("%v", err)
	}
}
