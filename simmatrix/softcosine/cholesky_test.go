package softcosine

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

func TestSparseFactorOfAnySize(t *testing.T) {
	random := rand.New(rand.NewPCG(25, 25))
	for n := range 32 {
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
