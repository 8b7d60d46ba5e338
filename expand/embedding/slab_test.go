package embedding

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// randomVector returns one of length 1.
func randomVector(r *rand.Rand, dim int) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	_ = normalize(v)
	return v
}

func TestAByteForANumberKeepsCosines(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		a, b := randomVector(r, 384), randomVector(r, 384)
		exact := 0.0
		for i := range a {
			exact += float64(a[i]) * float64(b[i])
		}
		got := cosine(pack(a), b)
		check.That(t, math.Abs(exact-got) < .005, "%v, not %v", got, exact)
	}
	check.That(t, pack(make([]float32, 3)) == nil, "a vector of zeros")
}

func FuzzPack(f *testing.F) {
	f.Add([]byte{1, 200, 3, 0, 7})
	f.Fuzz(func(t *testing.T, numbers []byte) {
		v := make([]float32, len(numbers))
		for i, b := range numbers {
			v[i] = float32(int8(b))
		}
		if normalize(v) != nil {
			check.That(t, pack(v) == nil, "a vector of no length")
			return
		}
		got := cosine(pack(v), v)
		check.That(t, math.Abs(got-1) < .02, "the cosine with itself is %v", got)
	})
}

// room returns a slab for n vectors of 8 numbers.
func room(n int) *slab {
	s := newSlab(int64(n * (headBytes + scaleBytes + 8 + placeBytes)))
	s.reset(8)
	return s
}

func TestFullMemoryKeepsWhatSearchesAskFor(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := room(2000)
	for key := range uint64(2000) {
		s.put(key, pack(randomVector(r, 8)))
	}
	check.That(t, s.full(), "%+v", s.stats())
	asked := make([]state, 500)
	for i := range asked {
		asked[i].key = uint64(3 * i)
	}
	check.Equal(t, 0, len(s.lacking(asked)))
	for key := uint64(5000); key < 6000; key++ {
		s.put(key, pack(randomVector(r, 8)))
	}
	check.Equal(t, 0, len(s.lacking(asked)), "what was asked for is gone")
	check.Equal(t, 2000, len(s.at))
	check.Equal(t, uint64(2000), s.stats().Documents)
	again := randomVector(r, 8)
	s.put(asked[0].key, pack(again))
	cosines, known := s.cosines(asked[:1], again)
	check.That(t, known[0] && cosines[0] > .98, "%v", cosines)
}

func TestADocumentWithoutAVectorIsRememberedAsSuch(t *testing.T) {
	s := room(3)
	v := randomVector(rand.New(rand.NewPCG(5, 6)), 8)
	s.put(1, nil)
	s.put(2, pack(v))
	s.put(3, pack(v[:4])) // of another model
	one, two, three := state{key: 1}, state{key: 2}, state{key: 3}
	check.That(t, slices.Equal(s.lacking([]state{one, two, three}), []state{three}), "others are lacking")
	_, known := s.cosines([]state{one, two, three}, v)
	check.Equal(t, []bool{false, true, false}, known)
	_, known = s.cosines([]state{two}, v[:4])
	check.Equal(t, []bool{false}, known, "the search has a vector of another model")
	s.reset(4)
	check.Equal(t, 2, len(s.lacking([]state{one, two})))
}

func TestASmallMemoryRemembersNothing(t *testing.T) {
	s := newSlab(10)
	s.reset(384)
	s.put(1, pack(randomVector(rand.New(rand.NewPCG(7, 8)), 384)))
	check.Equal(t, 1, len(s.lacking([]state{{key: 1}})))
	check.That(t, s.full(), "there is room")
}
