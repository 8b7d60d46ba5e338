package softcosine

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// subtractions are the implementations that this processor can run.
func subtractions() map[string]subtraction {
	return map[string]subtraction{"fastest": fastestSubtraction(), "portable": subtractPortable}
}

// spreads are the implementations that this processor can run.
func spreads() map[string]spread {
	return map[string]spread{"fastest": fastestSpread(), "portable": spreadPortable}
}

// positiveDefinite returns a random dense matrix B·Bᵀ + I.
func positiveDefinite(random *rand.Rand, n int) *mat.SymDense {
	b := mat.NewDense(n, n, nil)
	for i := range n {
		for j := range n {
			b.Set(i, j, random.NormFloat64())
		}
	}
	var s mat.SymDense
	s.SymOuterK(1, b)
	for i := range n {
		s.SetSym(i, i, s.At(i, i)+1)
	}
	return &s
}

// anySymmetric hides how a matrix is stored.
type anySymmetric struct{ mat.Symmetric }

func TestCholeskyIsGonums(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 21))
	for k := range propertyCases {
		n := 1 + random.IntN(24)
		if k%50 == 0 {
			n = 60 + random.IntN(120) // more than a block of columns
		}
		s := positiveDefinite(random, n)
		e, err := Cholesky(s)
		if err != nil {
			t.Fatalf("case %d: %v", k, err)
		}
		var product mat.Dense
		product.Mul(e, e.T())
		if scale := mat.Max(s); !mat.EqualApprox(&product, s, 1e-13*scale) {
			t.Fatalf("case %d: E·Eᵀ is not S of order %d", k, n)
		}
		var want mat.Cholesky
		if !want.Factorize(s) {
			t.Fatalf("case %d: not positive definite", k)
		}
		var lower mat.TriDense
		want.LTo(&lower)
		if !mat.EqualApprox(e, &lower, 1e-8*mat.Max(s)) {
			t.Fatalf("case %d: not the factor of gonum", k)
		}
		again, err := Cholesky(anySymmetric{s})
		if err != nil || !mat.Equal(e, again) {
			t.Fatalf("case %d: another factor of the same matrix otherwise stored: %v", k, err)
		}
	}
}

func TestCholeskyHasTheSameBitsOnAnyNumberOfProcessors(t *testing.T) {
	s := positiveDefinite(rand.New(rand.NewPCG(22, 22)), 777)
	var first []float64
	for _, workers := range []int{1, 2, 5} {
		p := newPanels(777)
		p.load(s)
		if err := p.factor(workers); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = p.values
		}
		for i, v := range p.values {
			if v != first[i] {
				t.Fatalf("%d goroutines: value %d is %v, of one %v", workers, i, v, first[i])
			}
		}
	}
}

func TestCholeskyNamesTheRowThatFails(t *testing.T) {
	identity := func(n int) *mat.SymDense {
		s := mat.NewSymDense(n, nil)
		for i := range n {
			s.SetSym(i, i, 1)
		}
		return s
	}
	for _, n := range []int{6, 8, 9, 70, 300} {
		for name, spoil := range map[string]func(s *mat.SymDense, i int){
			"negative diagonal": func(s *mat.SymDense, i int) { s.SetSym(i, i, -1) },
			"zero diagonal":     func(s *mat.SymDense, i int) { s.SetSym(i, i, 0) },
			"tiny diagonal":     func(s *mat.SymDense, i int) { s.SetSym(i, i, -1e-300) },
			"semi-definite":     func(s *mat.SymDense, i int) { s.SetSym(i, i-3, 1) },
			"indefinite":        func(s *mat.SymDense, i int) { s.SetSym(i, i-3, 1.25) },
			"not a number":      func(s *mat.SymDense, i int) { s.SetSym(i, i-3, math.NaN()) },
			"infinite":          func(s *mat.SymDense, i int) { s.SetSym(i, i, math.Inf(1)) },
		} {
			for _, row := range []int{3, n / 2, n - 1} {
				s := identity(n)
				spoil(s, row)
				_, err := Cholesky(s)
				var pivot *PivotError
				if !errors.As(err, &pivot) || pivot.Row != row {
					t.Errorf("%s in row %d of %d: %v", name, row, n, err)
				}
			}
		}
	}
}

func TestCholeskyOfNothing(t *testing.T) {
	e, err := Cholesky(new(mat.SymDense))
	if err != nil || !e.IsEmpty() {
		t.Errorf("%v, %v", e, err)
	}
}

func TestSubtractionsAreAlike(t *testing.T) {
	for name, subtract := range subtractions() {
		random := rand.New(rand.NewPCG(23, 23))
		for range propertyCases {
			k := random.IntN(40)
			a, b := make([]float64, edge*k), make([]float64, edge*k)
			var got, want tile
			for i := range a { // whole numbers, so that no order of sums rounds
				a[i], b[i] = float64(random.IntN(200)-100), float64(random.IntN(200)-100)
			}
			for i := range got {
				got[i] = float64(random.IntN(1000))
				want[i] = got[i]
				for j := range k {
					want[i] -= a[edge*j+i%edge] * b[edge*j+i/edge]
				}
			}
			if subtract(&got, a, b); got != want {
				t.Fatalf("%s, %d columns: %v, want %v", name, k, got, want)
			}
		}
	}
}

func TestSpreadsAreAlike(t *testing.T) {
	for name, spread := range spreads() {
		random := rand.New(rand.NewPCG(24, 24))
		for range propertyCases {
			n := 1 + random.IntN(30)
			got, want := make([][edge]float64, n), make([][edge]float64, n)
			for i := range got {
				for r := range edge {
					got[i][r] = float64(random.IntN(1000))
				}
			}
			copy(want, got)
			var v [edge]float64
			for r := range v {
				v[r] = float64(random.IntN(200) - 100)
			}
			var rows []int32
			var values []float64
			for _, i := range random.Perm(n)[:random.IntN(n+1)] {
				value := float64(random.IntN(200) - 100)
				rows, values = append(rows, int32(i)), append(values, value)
				for r := range v {
					want[i][r] -= value * v[r]
				}
			}
			spread(got, rows, values, &v)
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("%s, vector %d: %v, want %v", name, i, got[i], want[i])
				}
			}
		}
	}
}

// The sparse factor is made edge rows at a time; those of a last block that
// is not full and of terms without neighbors are the rims of that.
func TestSparseFactorOfAnySize(t *testing.T) {
	random := rand.New(rand.NewPCG(25, 25))
	for n := range 4 * edge {
		s := dominantS(t, random, n)
		for ordering, order := range orders() {
			st := analyze(s, order(s))
			f, err := factorize(s, st)
			if err != nil {
				t.Fatal(err)
			}
			if len(f.cols) != st.nonZeros || cap(f.cols) != st.nonZeros || len(f.values) != st.nonZeros {
				t.Errorf("%s of %d terms: %d entries with room for %d, want %d", ordering, n, len(f.cols), cap(f.cols), st.nonZeros)
			}
			for k := range n {
				cols, _ := f.row(k)
				for l := 1; l < len(cols); l++ {
					if cols[l-1] >= cols[l] {
						t.Fatalf("%s of %d terms: columns %v of row %d", ordering, n, cols, k)
					}
				}
			}
		}
	}
}

// FuzzBasis makes S of the bytes: a basis of it either has the inner
// products of S or is refused, in any order alike unless
// S is as good as singular.
func FuzzBasis(f *testing.F) {
	f.Add([]byte{1, 0, 50}, uint8(3))
	f.Add([]byte{1, 0, 127, 2, 1, 127, 2, 0, 127}, uint8(12))
	f.Add([]byte{1, 0, 0x81, 5, 4, 90, 5, 1, 80}, uint8(9))
	f.Fuzz(func(t *testing.T, content []byte, size uint8) {
		n := 1 + int(size)%20
		pairs := map[[2]int32]float64{}
		for ; len(content) >= 3; content = content[3:] {
			if i, j := int32(content[0])%int32(n), int32(content[1])%int32(n); i > j {
				pairs[[2]int32{i, j}] = float64(int8(content[2])) / 100
			}
		}
		s := symmetricOf(t, n, pairs)
		dense := mat.NewSymDense(n, nil)
		for i := range n {
			for j := range i + 1 {
				dense.SetSym(i, j, s.At(i, j))
			}
		}
		var eigen mat.EigenSym
		if !eigen.Factorize(dense, false) {
			t.Fatal("no eigenvalues")
		}
		smallest := eigen.Values(nil)[0]
		sp := mustSpace(t, ones(n), s)
		for way, basis := range bases() {
			if err := basis(sp); smallest > 1e-9 && err != nil || smallest < -1e-9 && !errors.Is(err, ErrNotPositiveDefinite) {
				t.Errorf("%s: smallest eigenvalue %v, error %v", way, smallest, err)
			}
		}
		for ordering, order := range orders() {
			basis, err := NewBasis(sp, order, 0)
			if err != nil {
				continue
			}
			for i := range n {
				for j := range i + 1 {
					if got := rowOf(basis, i).Dot(rowOf(basis, j)); math.Abs(got-s.At(i, j)) > 1e-12 {
						t.Errorf("%v: e_%d·e_%d = %v, want %v", ordering, i, j, got, s.At(i, j))
					}
				}
			}
		}
	})
}
