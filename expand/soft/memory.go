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
	// vectorLife is about how long the terms of a document are remembered, from
	// half as long on: who closes an index may have its words read in another way.
	// The document's sequence number tells when they have changed, and the UUID of
	// its index when that was deleted and created again.
	vectorLife = 12 * time.Hour
	// maxNumbers is how many fields of indices, and how many versions of matrices,
	// one store gives numbers. With more, a new store takes its place.
	maxNumbers = 100_000
	// termBytes is about what a numbered term takes besides its text.
	termBytes = 80
	// maxFactBytes bounds what is known of indices and their fields to some 20,000
	// facts.
	maxFactBytes = 8 << 20
)

// A store is all that is remembered. The numbers of terms are valid in one
// store only: when too many have numbers a new one takes its place.
type store struct {
	limit   uint64 // of the bytes of terms
	terms   vocabulary
	vectors *slab
	calls   *cache.Cache[vectorKey] // *vector; it joins calls for the same, and remembers none
	weights weights
	fields  numbers[fieldKey]
	spaces  numbers[unique.Handle[space]]
	rows    *cache.Cache[rowKey] // *row
	facts   *cache.Cache[fact]
	ttl     time.Duration // of what the cluster says of indices and fields
	seed    maphash.Seed
	counts  *counts
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

// clone is as that of a vectorKey.
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
	meanLength                      // float64, of the words of a field
)

// learn remembers what the cluster says, if anything is.
func (m *store) learn(kind factKind, of fieldKey, answer any) {
	if m.ttl > 0 {
		m.facts.Put(fact{kind, of.clone()}, answer, nil, m.ttl)
	}
}

// A rowKey names the row of a term in a space.
type rowKey struct {
	space unique.Handle[space]
	term  int32
}

// A space is W and S of one version each, named by what is in them.
type space struct{ similarities, weights string }

// A vector is what a document has in a field: terms by number, ascending.
type vector struct {
	id    string // of the document
	terms []int32
	freqs []float64
	// square is (Wy)ᵀS(Wy) in the space with a number, which is 0 where nobody has
	// computed it.
	square float64
	space  uint32
}

func (v *vector) isEmpty() bool { return len(v.terms) == 0 }

// length returns how many words the field has.
func (v *vector) length() (n float64) {
	for _, freq := range v.freqs {
		n += freq
	}
	return n
}

// A row is the row of a term in S, without the term itself, and its weight.
type row struct {
	w     float64
	terms []int32
	sims  []float32
}

func newStore(bytes uint64, ttl time.Duration, loader *cache.Loader, c *counts) *store {
	share := bytes / 4 // the vectors have two, the rows one, the terms one
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

// close ends the caches. Who still has the store can go on, and asks again.
func (m *store) close() {
	m.calls.Close()
	m.rows.Close()
	m.facts.Close()
}

// remember returns the vector of a field of a document in numbers, and
// remembers it. Its life depends on the document, so that those of one
// search do not all end at once.
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

// docKey names what a key names by numbers.
func (m *store) docKey(k vectorKey) docKey {
	d := docKey{field: m.fields.of(fieldKey{k.Index, k.uuid, k.field}), seqNo: k.SeqNo}
	if k.ID != "" {
		d.state = uint32(maphash.Comparable(m.seed, k.Hit)) | 1 //nolint:gosec // keeps the low half of the hash on purpose
	}
	return d
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

// Numbers gives values numbers, from 1 on.
type numbers[K comparable] struct {
	own func(K) K // what is kept of a value

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

// full reports whether there are as many as one store has.
func (n *numbers[K]) full() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.known) >= maxNumbers
}

// maxSpaces is of how many spaces the weights are known: fields may have their
// own, and a new version of a matrix replaces another.
const maxSpaces = 4

// weights has w of terms by number, of the spaces that searches were in.
type weights struct {
	mu sync.RWMutex
	of map[uint32][]float64 // NaN where unknown
}

// in returns w of terms in a space, of at least n terms, NaN where unknown. It
// must not be modified.
func (w *weights) in(space uint32, n int) []float64 {
	w.mu.RLock()
	of := w.of[space]
	w.mu.RUnlock()
	if len(of) >= n {
		return of
	}
	return grown(of, n)
}

// grown returns a copy of w of at least n terms.
func grown(of []float64, n int) []float64 {
	all := make([]float64, max(n, len(of)))
	for i := copy(all, of); i < len(all); i++ {
		all[i] = math.NaN()
	}
	return all
}

// learn returns what is known of a space, with what rows say of terms, for at
// least n terms, and remembers that.
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
	for term, value := range known { // all may be forgotten meanwhile
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
		panic("soft: more terms than there are numbers") // 170 GB of them
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
