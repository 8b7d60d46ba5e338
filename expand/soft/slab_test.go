package soft

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

// randomVector returns a vector of some terms, or of none.
func randomVector(rng *rand.Rand, most int) *vector {
	v := &vector{id: strings.Repeat("é", rng.IntN(4)) + strconv.FormatUint(uint64(rng.Uint32()>>rng.IntN(33)), 10), terms: []int32{}, freqs: []float64{}}
	if rng.IntN(20) == 0 {
		v.id = strings.Repeat("long", rng.IntN(128))
	}
	before := int64(-1)
	for range rng.IntN(most + 1) {
		before += 1 + rng.Int64N(1<<rng.IntN(27))
		if before > 1<<31-1 {
			break
		}
		v.terms, v.freqs = append(v.terms, int32(before)), append(v.freqs, float64(1+rng.Int64N(1<<rng.IntN(40))))
	}
	return v
}

func sameVector(a, b *vector) bool {
	return a.id == b.id && slices.Equal(a.terms, b.terms) && slices.Equal(a.freqs, b.freqs) && a.square == b.square && a.space == b.space
}

// one returns the vector of a key, nil for none.
func (s *slab) one(key docKey) *vector { return s.get([]docKey{key})[0] }

// allocated returns how many bytes the pages and the places of a slab take.
func (s *slab) allocated() (n int) {
	for _, g := range []*generation{&s.young, &s.old} {
		n += placeBytes * len(g.at)
		for _, page := range g.pages {
			n += cap(page)
		}
	}
	return n
}

// Whatever is put in, read and settled: what comes back is what was put in last
// and has not ended. Nothing is forgotten before a quarter of a generation was
// put in (what is read takes room there, too), and the bound holds.
func TestSlabsReturnWhatWasPutIn(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			bound := uint64(1) << (10 + rng.IntN(12))
			s := newSlab(bound)
			type known struct {
				v     *vector
				until time.Time
				at    int // the bytes put in before
			}
			all := map[docKey]*known{}
			written := 0
			key := func() docKey {
				return docKey{field: uint32(rng.IntN(2)), state: uint32(rng.IntN(2)), seqNo: rng.Int64N(200)}
			}
			for range 1500 {
				switch k := key(); rng.IntN(8) {
				case 0, 1, 2:
					v, until := randomVector(rng, 40), time.Now().Add(time.Duration(1+rng.IntN(3000))*time.Second)
					s.put(k, v, until)
					if size := len(pack(v, 0)) + placeBytes; size <= s.limit {
						written += size
						all[k] = &known{v, until, written}
					}
				case 3:
					if v := s.one(k); v != nil {
						v.space, v.square = 1+rng.Uint32N(9), rng.NormFloat64()
						s.settle(k, v.space, v.square)
						all[k].v = v
					} else {
						s.settle(k, 1, 1) // of nothing
					}
				case 4:
					check.Elapse(time.Duration(rng.IntN(60)) * time.Second)
				default:
					keys := []docKey{k, key(), key()}
					for i, got := range s.get(keys) {
						want := all[keys[i]]
						switch {
						case got == nil && (want == nil || !time.Now().Before(want.until.Add(-time.Second))):
						case got == nil && written-want.at > s.limit/4: // it may be forgotten
						case got == nil:
							t.Fatalf("bound %d: %v is forgotten after %d bytes", bound, keys[i], written-want.at)
						case want == nil || !sameVector(got, want.v):
							t.Fatalf("%v: got %+v, want %+v", keys[i], got, want)
						case !time.Now().Before(want.until):
							t.Fatalf("%v has ended %v ago", keys[i], time.Since(want.until))
						}
					}
				}
				b := s.bytes()
				check.Must(t, b <= bound, "%d bytes, at most %d", b, bound)
				n := s.allocated()
				check.Must(t, n <= int(bound)+2*pageBytes, "%d bytes allocated, at most about %d", n, bound)
			}
		})
	}
}

func TestSlabsKeepWhatIsRead(t *testing.T) {
	s := newSlab(64 << 10)
	until := time.Now().Add(time.Hour)
	rng := rand.New(rand.NewPCG(1, 2))
	vectors := map[int64]*vector{}
	var always []docKey
	for n := range int64(10_000) {
		v := randomVector(rng, 50)
		vectors[n] = v
		s.put(docKey{field: 1, seqNo: n}, v, until)
		if n < 20 {
			always = append(always, docKey{field: 1, seqNo: n})
		}
		if n%110 != 109 {
			continue
		}
		for i, got := range s.get(always) { // all at once, while generations change
			check.Must(t, got != nil && sameVector(got, vectors[int64(i)]), "after %d vectors: got %+v, want %+v", n, got, vectors[int64(i)])
		}
	}
	for n := range int64(5_000) {
		got := s.one(docKey{field: 1, seqNo: n + 20})
		check.Must(t, got == nil, "%d is still there, which nobody has read: %+v", n+20, got)
	}
}

// Large entries leave pages half empty: that counts, too.
func TestEmptyRestsOfPagesCount(t *testing.T) {
	const bound = 8 << 20
	s := newSlab(bound)
	large := &vector{id: strings.Repeat("x", pageBytes/2+1)}
	larger := &vector{id: strings.Repeat("x", pageBytes)}
	small := &vector{id: "x"}
	for n := range int64(200) {
		for i, v := range []*vector{large, larger, small} {
			s.put(docKey{field: uint32(i), seqNo: n}, v, time.Now().Add(time.Hour))
		}
		got := s.allocated()
		check.Must(t, got <= bound+2*pageBytes && s.bytes() <= bound, "%d bytes allocated, counted %d, at most %d", got, s.bytes(), bound)
	}
}

// heapInUse returns how much memory is in use.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

func TestAMillionDocumentsTake400MB(t *testing.T) {
	if testing.Short() {
		t.Skip("fills 319 MB for some seconds: make test and CI run it, make test-fast does not")
	}
	const docs, length, vocabulary = 1_000_000, 100, 100_000
	// There are 5,000 texts of skewed terms. Frequent terms have the low numbers, as
	// in a vocabulary.
	rng := rand.New(rand.NewPCG(9, 9))
	zipf := rand.NewZipf(rng, 1.1, 20, vocabulary-1)
	const texts = 5000
	some := make([]vector, texts)
	for i := range some {
		freqs := map[int32]float64{}
		for len(freqs) < length {
			freqs[int32(zipf.Uint64())]++
		}
		for term := range freqs {
			some[i].terms = append(some[i].terms, term)
		}
		slices.Sort(some[i].terms)
		for _, term := range some[i].terms {
			some[i].freqs = append(some[i].freqs, freqs[term])
		}
	}
	doc := func(n int) *vector {
		v := some[n*7919%texts]
		v.id = fmt.Sprintf("document-%011d", n)
		return &v
	}
	before := heapInUse()
	s := newSlab(800 << 20) // a generation has half of it
	until := time.Now().Add(time.Hour)
	for n := range docs {
		s.put(docKey{field: 1, seqNo: int64(n)}, doc(n), until)
	}
	took := heapInUse() - before
	t.Logf("%d MB in use, %d MB counted", took>>20, s.bytes()>>20)
	check.That(t, took <= 400e6, "%d MB in use, want at most 400", took/1e6)
	keys := make([]docKey, 100)
	for n := 0; n < docs; n += len(keys) {
		for i := range keys {
			keys[i] = docKey{field: 1, seqNo: int64(n + i)}
		}
		for i, got := range s.get(keys) {
			check.Must(t, got != nil && sameVector(got, doc(n+i)), "document %d is %+v", n+i, got)
		}
	}
	runtime.KeepAlive(s)
}

// Each search may bring terms that nobody has met.
func TestWeightsGrowWithTheTermsOnly(t *testing.T) {
	w := weights{of: map[uint32][]float64{}}
	for n := 10; n < 5000; n += 10 {
		w.learn(1, w.in(1, n), n, []int32{int32(n - 1)}, []*row{{w: float64(n)}})
		got := len(w.of[1])
		check.Must(t, got >= n && got <= 2*n, "room for %d weights of %d terms", got, n)
	}
	if of := w.in(1, 10); of[9] != 10 || of[4989] != 4990 {
		t.Errorf("%v and %v, want 10 and 4990", of[9], of[4989])
	}
}

// Indices that are made every day have fields of their own.
func TestFieldsOfManyIndicesAreForgotten(t *testing.T) {
	v, fields, hits := pets(t)
	r := newReranker(t, v)
	for n := range maxNumbers {
		r.memory.fields.of(fieldKey{index: strconv.Itoa(n)})
	}
	check.OK(t, scored(t, r, fields, hits))
	if n := len(r.memory.fields.known); r.Stats().Forgotten != 1 || n != 1 {
		t.Errorf("forgotten %d times, %d fields are left", r.Stats().Forgotten, n)
	}
}
