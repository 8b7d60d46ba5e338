package softcosine

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func FuzzParseSMART(f *testing.F) {
	for _, seed := range []string{"ltc", "nnn", "txx", "Lpb", "duu", "", "lt", "ltc.nfn", "mtc", "\xff\x00l"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, letters string) {
		w, err := ParseSMART(letters)
		known := len(letters) == 3 && strings.IndexByte(termFreqLetters, letters[0]) >= 0 &&
			strings.IndexByte(docFreqLetters, letters[1]) >= 0 && strings.IndexByte(normLetters, letters[2]) >= 0
		if known != (err == nil) {
			t.Fatalf("%q: error %v", letters, err)
		}
		if err != nil {
			if !errors.Is(err, ErrWeighting) || w != (SMART{}) {
				t.Fatalf("%q: %v with error %v", letters, w, err)
			}
			return
		}
		back, err := ParseSMART(w.String())
		if err != nil || back != w || back.String() != w.String() {
			t.Errorf("%q is %v, which is read as %v, %v", letters, w, back, err)
		}
		for k, letter := range []byte(w.String()) {
			if letter != letters[k] && (letter != 'n' || strings.IndexByte("tx", letters[k]) < 0) {
				t.Errorf("%q is written as %v", letters, w)
			}
		}
	})
}

// FuzzProducts makes a space and documents of bytes, and holds the products of
// whole collections against the definition, pair by pair. Sizes are the powers
// of 2⁸ that coordinates are multiplied by, as far as a float64 goes.
func FuzzProducts(f *testing.F) {
	f.Add([]byte{0, 1, 100, 1, 0, 100, 2, 0, 7}, []byte{0, 1, 1, 2}, []byte{1, 2, 0xff, 0, 3}, []byte{})
	f.Add([]byte{3, 3, 3, 0, 7, 200}, []byte{}, []byte{7, 7, 0xff, 0xff, 7}, []byte{})
	f.Add([]byte{0, 1, 100, 1, 0, 100}, []byte{0, 1, 1, 0xff, 2}, []byte{0, 0xff, 1, 2}, []byte{127, 0, 128, 1})
	f.Add([]byte{}, []byte("01"), []byte("\xff0"), []byte("\x04~")) // the largest coordinates do not meet
	f.Fuzz(func(t *testing.T, sims, first, second, sizes []byte) {
		const n = 8
		if len(sims) > 300 || len(first) > 100 || len(second) > 100 || (len(sizes) > 0 && len(first)+len(second) > 30) {
			return
		}
		entries := map[[2]int32]float64{}
		for ; len(sims) >= 3; sims = sims[3:] {
			if i, j := int32(sims[0]%n), int32(sims[1]%n); i != j {
				entries[[2]int32{i, j}] = float64(sims[2]) / 255
			}
		}
		sp := mustSpace(t, []float64{1, 2, 0, 0.5, 1, 3, 1, 10}, mustSimilarities(t, n, entries))
		// A byte is an occurrence of a term, 0xff the end of a document.
		split := func(text []byte) (docs []Vector) {
			for doc := range strings.SplitSeq(string(text), "\xff") {
				counts := map[int32]float64{}
				for k := range len(doc) {
					counts[int32(doc[k]%n)]++
				}
				for i := range counts {
					if len(sizes) > 0 {
						exp := 8 * int(int8(sizes[(int(i)+len(docs))%len(sizes)]))
						counts[i] = min(math.Ldexp(counts[i], exp), math.MaxFloat64)
					}
				}
				docs = append(docs, NewVector(counts))
			}
			return docs
		}
		x, y := split(first), split(second)
		if len(sizes) > 0 {
			checkProducts(t, sp, x, y)
			return
		}
		for _, normalization := range normalizations {
			products, err := allProducts(sp, x, y, normalization)
			if err != nil {
				t.Fatal(err)
			}
			for i := range x {
				for k := range y {
					got, want := products[i].At(int32(k)), pairwise(t, sp, x[i], y[k], normalization)
					if !near(got, want, 1e-12) {
						t.Errorf("%v of %v and %v: %v, want %v", normalization, x[i], y[k], got, want)
					}
					if inner := byDefinition(sp, x[i], y[k]); normalization == None && !near(got, inner, 1e-12) {
						t.Errorf("⟨%v, %v⟩ is %v, want %v", x[i], y[k], got, inner)
					}
				}
			}
		}
	})
}
