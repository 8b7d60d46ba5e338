package soft

import (
	"hash/maphash"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/maypok86/otter/v2"

	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/simmatrix"
)

const (
	// vectorTime is how long the terms of a document are remembered after they
	// were last used. Its sequence number tells when they have changed, and the
	// UUID of its index when that was deleted and created again.
	vectorTime = 10 * time.Minute
	// vectorLife is about how long they are remembered at most: an analyzer may
	// read its words in another way by then.
	vectorLife = time.Hour
	// termBytes is about what a numbered term takes besides its text.
	termBytes = 80
	// maxKnown bounds the indices, and the fields of indices, of which something
	// is known.
	maxKnown = 10_000
)

// A store is all that is remembered. The numbers of terms are valid in one
// store only: when too many have numbers a new one takes its place.
type store struct {
	limit   uint64 // of the bytes of terms
	terms   vocabulary
	vectors *otter.Cache[vectorKey, *vector]
	rows    *otter.Cache[rowKey, *row]
	reaches *otter.Cache[rowKey, *reach]
	seed    maphash.Seed
	counts  *counts

	// uuids are those of indices by name, and readable says which fields the
	// cluster calls readable. seen are those that had terms.
	uuids    passing[string, string]
	readable passing[fieldKey, bool]
	seen     passing[fieldKey, struct{}]
}

// counts are those of all memories.
type counts struct{ hits, misses atomic.Uint64 }

// A vectorKey names a field of a state of a document.
type vectorKey struct {
	expand.Hit
	uuid, field string
}

// clone returns a key that does not hold on to the request that it came in.
func (k vectorKey) clone() vectorKey {
	for _, s := range []*string{&k.Index, &k.ID, &k.Routing, &k.uuid, &k.field} {
		*s = strings.Clone(*s)
	}
	return k
}

type fieldKey struct{ index, uuid, field string }

// A rowKey names the row of a term in a space.
type rowKey struct {
	space unique.Handle[space]
	term  int32
}

// A space is W and S of one version each, named by what is in them.
type space struct{ similarities, weights string }

// A vector is what a document has in a field: terms by number.
type vector struct {
	terms []int32
	freqs []float64
	// until is when it is to be asked for again.
	until time.Time
	// weighted is Wy in the space that it was computed for last.
	weighted atomic.Pointer[weighted]
}

// A weighted vector is Wy in a space, in the order of the terms of y, and
// square is (Wy)ᵀS(Wy).
type weighted struct {
	space  unique.Handle[space]
	values []float64
	square float64
}

func (v *vector) isEmpty() bool { return len(v.terms) == 0 }

// A row is the row of a term in S, without the term itself, and its weight.
type row struct {
	w     float64
	terms []int32
	sims  []float32
}

func newStore(bytes uint64, ttl time.Duration, c *counts) *store {
	share := bytes / 8 // the vectors have three, the rows two, the columns one, the terms two
	return &store{
		limit: share * 2,
		terms: vocabulary{numbers: map[string]int32{}},
		vectors: otter.Must(&otter.Options[vectorKey, *vector]{
			MaximumWeight: max(share*3, 1), // it takes none for no bound
			Weigher: func(k vectorKey, v *vector) uint32 {
				return cache.Weight(len(k.Index) + len(k.uuid) + len(k.ID) + len(k.field) + 20*len(v.terms) + 160)
			},
			ExpiryCalculator: otter.ExpiryAccessingFunc(func(e otter.Entry[vectorKey, *vector]) time.Duration {
				return max(min(vectorTime, time.Until(e.Value.until)), 1)
			}),
		}),
		rows: otter.Must(&otter.Options[rowKey, *row]{
			MaximumWeight: max(share*2, 1),
			Weigher:       func(_ rowKey, r *row) uint32 { return cache.Weight(8*len(r.terms) + 64) },
		}),
		reaches: otter.Must(&otter.Options[rowKey, *reach]{
			MaximumWeight: max(share, 1),
			Weigher:       func(_ rowKey, r *reach) uint32 { return cache.Weight(int(r.bytes.Load())) },
		}),
		counts:   c,
		seed:     maphash.MakeSeed(),
		uuids:    passing[string, string]{ttl: ttl},
		readable: passing[fieldKey, bool]{ttl: ttl},
		seen:     passing[fieldKey, struct{}]{ttl: 2 * vectorLife},
	}
}

// close ends the caches' own goroutines. Who still has the store can go
// on reading.
func (m *store) close() {
	m.vectors.StopAllGoroutines()
	m.rows.StopAllGoroutines()
	m.reaches.StopAllGoroutines()
}

// newVector returns the vector of a field in numbers. Its life depends on the
// document, so that those of one search do not all end at once.
func (m *store) newVector(key vectorKey, terms []documents.TermFreq) *vector {
	const steps = 1 << 10
	share := float64(maphash.Comparable(m.seed, key)%steps) / steps
	v := &vector{
		freqs: make([]float64, len(terms)),
		until: time.Now().Add(vectorLife/2 + time.Duration(share*float64(vectorLife))),
	}
	texts := make([]string, len(terms))
	for i := range terms {
		texts[i], v.freqs[i] = terms[i].Term, float64(terms[i].Freq)
	}
	if v.terms = m.terms.number(make([]int32, 0, len(terms)), texts); !v.isEmpty() {
		m.seen.set(fieldKey{key.Index, key.uuid, key.field}, struct{}{})
	}
	return v
}

// newRow returns a row in numbers, whose weight is idf by a document
// frequency.
func (m *store) newRow(in simmatrix.Row, docFreq uint32, docs int64) *row {
	r := &row{w: simmatrix.IDF(int64(docFreq), docs), sims: make([]float32, 0, in.Len())}
	texts := make([]string, 0, in.Len())
	for n := range in.All() {
		texts = append(texts, n.Term)
		r.sims = append(r.sims, n.Similarity)
	}
	r.terms = m.terms.number(make([]int32, 0, len(texts)), texts)
	return r
}

// A passing map keeps what is believed for a time. With no time it keeps
// nothing.
type passing[K comparable, V any] struct {
	ttl     time.Duration
	mu      sync.Mutex
	entries map[K]believed[V]
}

type believed[V any] struct {
	value V
	until time.Time
}

func (p *passing[K, V]) get(k K) (V, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.entries[k]
	return b.value, ok && time.Now().Before(b.until)
}

// set notes the value of k, which must not hold on to the memory of a search.
// Where there are too many all are learned again.
func (p *passing[K, V]) set(k K, v V) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries == nil || len(p.entries) >= maxKnown {
		p.entries = map[K]believed[V]{}
	}
	p.entries[k] = believed[V]{v, time.Now().Add(p.ttl)}
}

// A vocabulary numbers terms in the order in which they come.
type vocabulary struct {
	mu      sync.RWMutex
	numbers map[string]int32
	terms   []string
	bytes   uint64
}

// number appends the numbers of texts to dst, and makes those that are missing.
func (v *vocabulary) number(dst []int32, texts []string) []int32 {
	first, missing := len(dst), false
	v.mu.RLock()
	for _, text := range texts {
		n, ok := v.numbers[text]
		if !ok {
			n, missing = -1, true
		}
		dst = append(dst, n)
	}
	v.mu.RUnlock()
	if !missing {
		return dst
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for k, text := range texts {
		if dst[first+k] < 0 {
			dst[first+k] = v.add(text)
		}
	}
	return dst
}

func (v *vocabulary) add(text string) int32 {
	if n, ok := v.numbers[text]; ok {
		return n
	}
	if len(v.terms) == math.MaxInt32 {
		panic("rerank: more terms than there are numbers") // 170 GB of them
	}
	text = strings.Clone(text) // it may be a piece of something large
	n := int32(len(v.terms))   //nolint:gosec // seen to be less
	v.numbers[text] = n
	v.terms = append(v.terms, text)
	v.bytes += termBytes + uint64(len(text))
	return n
}

// texts returns the terms that have the numbers.
func (v *vocabulary) texts(numbers []int32) []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = v.terms[n]
	}
	return texts
}

func (v *vocabulary) size() (terms int, bytes uint64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.terms), v.bytes
}
