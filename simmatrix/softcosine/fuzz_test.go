package softcosine

import (
	"errors"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func FuzzParseSMART(f *testing.F) {
	for _, seed := range []string{"ltc", "nnn", "txx", "Lpb", "duu", "", "lt", "ltc.nfn", "mtc", "\xff\x00l"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, letters string) {
		w, err := ParseSMART(letters)
		known := len(letters) == 3 && strings.IndexByte(termFreqLetters, letters[0]) >= 0 &&
			strings.IndexByte(docFreqLetters, letters[1]) >= 0 && strings.IndexByte(normLetters, letters[2]) >= 0
		check.Must(t, known == (err == nil), "%q: error %v", letters, err)
		check.That(t, (err == nil || errors.Is(err, ErrWeighting)) && (err != nil || string(w) == letters), "%q is %v with error %v", letters, w, err)
	})
}

// FuzzProducts makes a space and two documents of bytes, and holds their
// products against the definition.
func FuzzProducts(f *testing.F) {
	f.Add([]byte{0, 1, 100, 1, 0, 100, 2, 0, 7}, []byte{0, 1, 1, 2}, []byte{1, 2, 3})
	f.Add([]byte{3, 3, 3, 0, 7, 200}, []byte{}, []byte{7, 7, 7})
	f.Add([]byte{}, []byte("01"), []byte("0"))
	f.Fuzz(func(t *testing.T, sims, first, second []byte) {
		const n = 8
		if len(sims) > 300 || len(first) > 100 || len(second) > 100 {
			return
		}
		entries := map[[2]int32]float64{}
		for ; len(sims) >= 3; sims = sims[3:] {
			if i, j := int32(sims[0]%n), int32(sims[1]%n); i != j {
				entries[[2]int32{i, j}] = float64(sims[2]) / 255
			}
		}
		sp := mustSpace(t, []float64{1, 2, 0, 0.5, 1, 3, 1, 10}, mustSimilarities(t, n, entries))
		document := func(text []byte) Vector { // a byte is an occurrence of a term
			counts := map[int32]float64{}
			for _, b := range text {
				counts[int32(b%n)]++
			}
			return NewVector(counts)
		}
		x, y := document(first), document(second)
		got, want := sp.InnerProduct(x, y), byDefinition(sp, x, y)
		check.That(t, near(got, want, 1e-12), "⟨%v, %v⟩ is %v, want %v", x, y, got, want)
		soft, err := sp.Soft(x, y)
		want = softByDefinition(sp, x, y)
		check.That(t, err == nil && near(soft, want, 1e-12), "soft cosine of %v and %v: %v, %v; want %v", x, y, soft, err, want)
	})
}
