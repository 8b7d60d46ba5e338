package rerank

import (
	"hash/maphash"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/akin-search/akin/simmatrix"
)

const (
	// vectorTime is how long the terms of a document are remembered after they
	// were last used. Its sequence number tells when they have changed, and the
	// UUID of its index when that was deleted and created again.
	vectorTime = 10 * time.Minute
	// vectorLife is about how long they are remembered at most: an analyzer may
	// read its words anew.
	vectorLife = time.Hour
	// entryBytes is about what the cache itself spends on an entry.
	entryBytes = 160
	// termBytes is about what a numbered term takes beside its text.
	termBytes = 80
	// maxKnown bounds the indices, and the fields of indices, of which something
	// is known.
	maxKnown = 10_000
)

// A memory is all that is remembered. The numbers of terms hold in one
// memory only: when too many have numbers a new memory takes the place of
// this one.
type memory struct {
	limit   uint64
	terms   vocabulary
	vectors *otter.Cache[vectorKey, *vector]
	seed    maphash.Seed
	counts  *counts
	rows    *otter.Cache[rowKey, *row]
	flights flights

	mu     sync.Mutex
	spaces map[spaceKey]*space

	// uuids are those of indices by name, and readable says which fields have
	// been told to be. seen are those that had terms.
	uuids    passing[string, string]
	readable passing[fieldKey, bool]
	seen     passing[fieldKey, struct{}]
}

// counts count, for all memories, the vectors that were there and those that
// were not.
type counts struct{ hits, misses atomic.Uint64 }

// A vectorKey names a field of a state of a document.
type vectorKey struct {
	index, uuid, id    string
	seqNo, primaryTerm int64
	field              string
}

// A fieldKey names a field of an index.
type fieldKey struct{ index, uuid, field string }

func (k fieldKey) clone() fieldKey {
	return fieldKey{strings.Clone(k.index), strings.Clone(k.uuid), strings.Clone(k.field)}
}

// A rowKey names the row of a term in a space.
type rowKey struct {
	space *space
	term  int32
}

// A spaceKey names W and S by what is in them.
type spaceKey struct{ similarities, weights string }

// A space is W and S of one version each. The address is what it is known
// by.
type space struct {
	spaceKey
	// loading is held while rows are loaded, so that none is loaded twice.
	loading chan struct{}
}

// A vector is what a document has in a field: terms by number, ascending.
type vector struct {
	terms []int32
	freqs []float64
	// until is when it is to be asked for anew.
	until time.Time
	// square is (Wy)ᵀS(Wy) in the space that it was computed for last.
	square atomic.Pointer[square]
}

type square struct {
	space *space
	value float64
}

// A row is the row of a term in S, without the term itself, and its weight.
type row struct {
	w     float64
	terms []int32
	sims  []float64
}

// vectorExpiry forgets a vector when it has not been used for a while, and at
// the end of its life.
type vectorExpiry struct{}

func (vectorExpiry) left(v *vector) time.Duration {
	return max(min(vectorTime, time.Until(v.until)), 1)
}

// ExpireAfterCreate implements [otter.ExpiryCalculator].
func (x vectorExpiry) ExpireAfterCreate(e otter.Entry[vectorKey, *vector]) time.Duration {
	return x.left(e.Value)
}

// ExpireAfterUpdate implements [otter.ExpiryCalculator].
func (x vectorExpiry) ExpireAfterUpdate(e otter.Entry[vectorKey, *vector], _ *vector) time.Duration {
	return x.left(e.Value)
}

// ExpireAfterRead implements [otter.ExpiryCalculator].
func (x vectorExpiry) ExpireAfterRead(e otter.Entry[vectorKey, *vector]) time.Duration {
	return x.left(e.Value)
}

// lifeOf returns how long a vector may live: by its document, so that those of
// one search do not all end at once.
func lifeOf(seed maphash.Seed, k vectorKey) time.Duration {
	const steps = 1 << 10
	share := float64(maphash.Comparable(seed, k)%steps) / steps
	return vectorLife/2 + time.Duration(share*float64(vectorLife))
}

// newMemory returns a memory of about so many bytes.
func newMemory(bytes uint64, ttl time.Duration, c *counts) *memory {
	const share = 8 // the vectors have three, the rows three, the terms two
	return &memory{
		limit: bytes / share * 2,
		terms: vocabulary{numbers: map[string]int32{}},
		vectors: otter.Must(&otter.Options[vectorKey, *vector]{
			MaximumWeight: max(bytes/share*3, 1), // it takes none for no bound
			Weigher: func(k vectorKey, v *vector) uint32 {
				return weight(len(k.index) + len(k.uuid) + len(k.id) + len(k.field) + 12*len(v.terms) + 120)
			},
			ExpiryCalculator: vectorExpiry{},
		}),
		rows: otter.Must(&otter.Options[rowKey, *row]{
			MaximumWeight: max(bytes/share*3, 1),
			Weigher:       func(_ rowKey, r *row) uint32 { return weight(12*len(r.terms) + 64) },
		}),
		counts:   c,
		seed:     maphash.MakeSeed(),
		flights:  flights{under: map[vectorKey]*flight{}},
		spaces:   map[spaceKey]*space{},
		uuids:    passing[string, string]{ttl: ttl},
		readable: passing[fieldKey, bool]{ttl: ttl},
		seen:     passing[fieldKey, struct{}]{ttl: 2 * vectorLife},
	}
}

// weight returns the weight of an entry that itself takes n bytes.
func weight(n int) uint32 {
	const limit = 1 << 30
	return uint32(min(entryBytes+n, limit)) //nolint:gosec // within [0, 1<<30]
}

// full reports whether the terms take more than their share.
func (m *memory) full() bool { return m.terms.size() > m.limit }

func (m *memory) bytes() uint64 {
	return m.terms.size() + m.vectors.WeightedSize() + m.rows.WeightedSize()
}

// close ends the caches' own goroutines. Who still holds the memory can go
// on reading.
func (m *memory) close() {
	m.vectors.StopAllGoroutines()
	m.rows.StopAllGoroutines()
}

// maxSpaces is how many pairs of W and S are told apart. Their rows go with
// time when they are no longer used.
const maxSpaces = 64

// space returns the space of a field.
func (m *memory) space(f *Field) *space {
	key := spaceKey{similarities: f.Similarities.Version()}
	if f.Weights != nil {
		key.weights = f.Weights.ID()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.spaces[key]
	if s == nil {
		if len(m.spaces) >= maxSpaces {
			clear(m.spaces)
		}
		s = &space{spaceKey: key, loading: make(chan struct{}, 1)}
		m.spaces[key] = s
	}
	return s
}

// A passing map holds what is believed for a time. With no time it holds
// nothing.
type passing[K comparable, V any] struct {
	ttl time.Duration

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
// Where there are too many all are learnt anew.
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

// number returns the numbers of texts, and makes those that are missing.
func (v *vocabulary) number(dst []int32, texts []string) []int32 {
	first, missing := len(dst), 0
	v.mu.RLock()
	for _, text := range texts {
		n, ok := v.numbers[text]
		if !ok {
			n = -1
			missing++
		}
		dst = append(dst, n)
	}
	v.mu.RUnlock()
	if missing == 0 {
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

// texts appends the terms of the numbers to dst.
func (v *vocabulary) texts(dst []string, numbers []int32) []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, n := range numbers {
		dst = append(dst, v.terms[n])
	}
	return dst
}

func (v *vocabulary) len() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.terms)
}

func (v *vocabulary) size() uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.bytes
}

// row returns a row in numbers. Its weight is idf by a document frequency.
func (m *memory) row(in simmatrix.Row, docFreq uint32, docs int64, texts []string) (*row, []string) {
	texts = texts[:0]
	r := &row{w: simmatrix.IDF(int64(docFreq), docs), sims: make([]float64, 0, in.Len())}
	for n := range in.All() {
		texts = append(texts, n.Term)
		r.sims = append(r.sims, float64(n.Similarity))
	}
	r.terms = m.terms.number(make([]int32, 0, len(texts)), texts)
	return r, texts
}
