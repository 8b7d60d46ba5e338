package soft

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/simmatrix"
)

const (
	// vectorLife is about how long a document's terms are cached, at least half as
	// long: closing an index can change its analysis. Other changes show in the
	// document's sequence number, or in the UUID of a deleted and recreated index.
	vectorLife = 12 * time.Hour
	// maxNumbers limits the numbered fields of indices, and versions of matrices,
	// in a store. Beyond it a new store replaces it.
	maxNumbers = 100_000
	// termBytes is about the size of a numbered term besides its text.
	termBytes = 80
	// maxFactBytes limits what is known of indices and fields: some 20,000 facts.
	maxFactBytes = 8 << 20
)

// A store is all cached data. Term numbers are valid in one store; when there
// are too many, a new store replaces it.
type store struct {
	limit   uint64 // for terms, in bytes
	terms   vocabulary
	vectors *slab
	calls   *cache.Cache[vectorKey] // *vector; it joins concurrent calls and caches nothing
	weights weights
	fields  numbers[fieldKey]
	spaces  numbers[unique.Handle[space]]
	rows    *cache.Cache[rowKey] // *row
	facts   *cache.Cache[fact]
	ttl     time.Duration // of the cluster's information on indices and fields
	seed    maphash.Seed
	counts  *counts
}

// counts are those of all stores.
type counts struct{ hits, misses atomic.Uint64 }

// A vectorKey identifies a field in a state of a document.
type vectorKey struct {
	expand.Hit
	uuid, field string
}

// clone returns a key that does not hold the request's memory.
func (k vectorKey) clone() vectorKey {
	for _, s := range []*string{&k.Index, &k.ID, &k.Routing, &k.uuid, &k.field} {
		*s = strings.Clone(*s)
	}
	return k
}

type fieldKey struct{ index, uuid, field string }

// clone is like that of a vectorKey.
func (k fieldKey) clone() fieldKey {
	return fieldKey{strings.Clone(k.index), strings.Clone(k.uuid), strings.Clone(k.field)}
}

// A fact is a question about an index or one of its fields.
type fact struct {
	kind factKind
	fieldKey
}

type factKind uint8

const (
	uuidOfIndex     factKind = iota // string
	fieldIsReadable                 // bool, as the cluster says
	fieldHadTerms                   // true
	meanLength                      // float64, in words of a field
)

// learn caches an answer of the cluster, if TTL allows.
func (m *store) learn(kind factKind, of fieldKey, answer any) {
	if m.ttl > 0 {
		m.facts.Put(fact{kind, of.clone()}, answer, nil, m.ttl)
	}
}

// A rowKey identifies the row of a term in a space.
type rowKey struct {
	space unique.Handle[space]
	term  int32
}

// A space is versions of W and S, identified by their content.
type space struct{ similarities, weights string }

// A vector is the terms of a document's field, by number, ascending.
type vector struct {
	id    string // of the document
	terms []int32
	freqs []float64
	// square is (Wy)ᵀS(Wy) in the space with this number; 0: not computed.
	square float64
	space  uint32
}

func (v *vector) isEmpty() bool { return len(v.terms) == 0 }

// length returns the number of words in the field.
func (v *vector) length() (n float64) {
	for _, freq := range v.freqs {
		n += freq
	}
	return n
}

// A row is a term's row in S, without the term itself, and its weight.
type row struct {
	w     float64
	terms []int32
	sims  []float32
}

func newStore(bytes uint64, ttl time.Duration, loader *cache.Loader, c *counts) *store {
	share := bytes / 4 // two are for vectors, one for rows, one for terms
	return &store{
		limit:   share,
		terms:   vocabulary{numbers: map[string]int32{}},
		fields:  numbers[fieldKey]{own: fieldKey.clone},
		spaces:  numbers[unique.Handle[space]]{own: func(s unique.Handle[space]) unique.Handle[space] { return s }},
		weights: weights{of: map[uint32][]float64{}},
		vectors: newSlab(share * 2),
		calls:   cache.New(cache.Options[vectorKey]{Loader: loader, Cost: func(vectorKey, any) int { return 0 }}),
		rows: cache.New(cache.Options[rowKey]{
			Bytes: share, Loader: loader, Endless: true,
			Cost: func(_ rowKey, answer any) int { return 8*len(answer.(*row).terms) + 64 },
		}),
		facts: cache.New(cache.Options[fact]{
			Bytes: maxFactBytes,
			Cost:  func(f fact, _ any) int { return 100 + len(f.index) + len(f.uuid) + len(f.field) },
		}),
		ttl: ttl, counts: c, seed: maphash.MakeSeed(),
	}
}

// close stops the caches. A store still in use remains usable.
func (m *store) close() {
	m.calls.Close()
	m.rows.Close()
	m.facts.Close()
}

// remember returns the numbered vector of a document's field, and caches it.
// How long depends on the document, so that those of a search do not expire
// together.
func (m *store) remember(key vectorKey, id string, terms []documents.TermFreq) *vector {
	texts := make([]string, len(terms))
	for i := range terms {
		texts[i] = terms[i].Term
	}
	numbered := m.terms.number(make([]int32, 0, len(terms)), texts)
	order := make([]int, len(terms))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(numbered[a], numbered[b]) })
	v := &vector{id: strings.Clone(id), terms: make([]int32, len(terms)), freqs: make([]float64, len(terms))}
	for i, k := range order {
		v.terms[i], v.freqs[i] = numbered[k], float64(terms[k].Freq)
	}
	const steps = 1 << 10
	share := float64(maphash.Comparable(m.seed, key)%steps) / steps
	m.vectors.put(m.docKey(key), v, time.Now().Add(vectorLife/2+time.Duration(share*float64(vectorLife))))
	if !v.isEmpty() {
		m.facts.Put(fact{fieldHadTerms, fieldKey{key.Index, key.uuid, key.field}}, true, nil, 2*vectorLife)
	}
	return v
}

// docKey returns the key with numbers for names.
func (m *store) docKey(k vectorKey) docKey {
	d := docKey{field: m.fields.of(fieldKey{k.Index, k.uuid, k.field}), seqNo: k.SeqNo}
	if k.ID != "" {
		d.state = uint32(maphash.Comparable(m.seed, k.Hit)) | 1 //nolint:gosec // keeps the low half of the hash on purpose
	}
	return d
}

// newRow returns a numbered row; its weight is the idf of docFreq.
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

// numbers assigns numbers to values, from 1.
type numbers[K comparable] struct {
	own func(K) K // returns a copy of a value to keep

	mu    sync.Mutex
	known map[K]uint32
}

func (n *numbers[K]) of(k K) uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[K]uint32{}
	}
	number, ok := n.known[k]
	if !ok {
		number = uint32(len(n.known) + 1) //nolint:gosec // about maxNumbers at most
		n.known[n.own(k)] = number
	}
	return number
}

// full reports whether the limit of a store is reached.
func (n *numbers[K]) full() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.known) >= maxNumbers
}

// maxSpaces limits the spaces with known weights: fields may have their own,
// and a new version of a matrix replaces another.
const maxSpaces = 4

// weights has w of terms by number, for the spaces of recent searches.
type weights struct {
	mu sync.RWMutex
	of map[uint32][]float64 // NaN if unknown
}

// in returns w of at least n terms in a space, NaN if unknown, read-only.
func (w *weights) in(space uint32, n int) []float64 {
	w.mu.RLock()
	of := w.of[space]
	w.mu.RUnlock()
	if len(of) >= n {
		return of
	}
	return grown(of, n)
}

// grown returns a copy of w for at least n terms.
func grown(of []float64, n int) []float64 {
	all := make([]float64, max(n, len(of)))
	for i := copy(all, of); i < len(all); i++ {
		all[i] = math.NaN()
	}
	return all
}

// learn returns w of a space for at least n terms, with the weights of rows
// added, and caches it.
func (w *weights) learn(space uint32, known []float64, n int, terms []int32, rows []*row) []float64 {
	if !slices.ContainsFunc(terms, func(term int32) bool { return math.IsNaN(known[term]) }) {
		return known
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, has := w.of[space]; !has && len(w.of) == maxSpaces {
		for forgotten := range w.of { // any one
			delete(w.of, forgotten)
			break
		}
	}
	size := len(w.of[space])
	if size < n {
		size = n + n/4 // the next searches bring more
	}
	of := grown(w.of[space], size)
	for term, value := range known { // all may have been dropped meanwhile
		if !math.IsNaN(value) {
			of[term] = value
		}
	}
	for k, term := range terms {
		of[term] = rows[k].w
	}
	w.of[space] = of
	return of
}

// A vocabulary numbers terms in order of arrival.
type vocabulary struct {
	mu      sync.RWMutex
	numbers map[string]int32
	terms   []string
	bytes   uint64
}

// number appends the numbers of texts to dst, and numbers new ones.
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
		panic("soft: more terms than there are numbers") // they would take 170 GB
	}
	text = strings.Clone(text) // it may be part of something large
	n := int32(len(v.terms))   //nolint:gosec // seen to be less
	v.numbers[text] = n
	v.terms = append(v.terms, text)
	v.bytes += termBytes + uint64(len(text))
	return n
}

// texts returns the terms with these numbers.
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
