package soft

import (
	"encoding/binary"
	"math"
	"sync"
	"time"
)

// A slab caches packed vectors in large pieces of memory, which the garbage
// collector does not scan: about 370 bytes for one of 100 terms.
//
// It has two generations. New and read entries go to the young one. When that
// is full it becomes the old one, and the previous old one is dropped.
type slab struct {
	limit int // of a generation, in bytes
	epoch time.Time

	mu         sync.RWMutex
	young, old generation
}

// A docKey identifies a field in a state of a document. state tells apart
// writes with the same number on several shards; it is 0 if one shard is
// searched.
type docKey struct {
	field, state uint32
	seqNo        int64
}

type generation struct {
	at    map[docKey]place
	pages [][]byte
	bytes int
}

// A place is an entry's page, and its start there.
type place struct{ page, start uint32 }

const (
	// pageBytes is the size of a page. A larger entry has its own page.
	pageBytes = 256 << 10
	// placeBytes is about the size of a place with its key.
	placeBytes = 40
	// headBytes is the fixed part of an entry: its length, the second when it
	// expires, and a space with the square in it.
	headBytes = 4 + 4 + 4 + 8
)

func newSlab(bytes uint64) *slab {
	s := &slab{limit: int(min(bytes/2, math.MaxInt)), epoch: time.Now()}
	s.young.at = map[docKey]place{}
	return s
}

// get returns the cached vectors, nil for others.
func (s *slab) get(keys []docKey) []*vector {
	out, now := make([]*vector, len(keys)), s.second(time.Now())
	var again []int
	var entries [][]byte // nobody writes to these any more
	s.mu.RLock()
	for i, key := range keys {
		entry := s.young.entry(key)
		if entry == nil {
			if entry = s.old.entry(key); entry == nil {
				continue
			}
			again, entries = append(again, i), append(entries, entry)
		}
		if binary.LittleEndian.Uint32(entry[4:]) > now {
			out[i] = unpack(entry)
		}
	}
	s.mu.RUnlock()
	if len(again) > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		for n, i := range again {
			if out[i] != nil && s.young.entry(keys[i]) == nil {
				s.add(keys[i], entries[n])
			}
		}
	}
	return out
}

// put caches a vector until a time.
func (s *slab) put(key docKey, v *vector, until time.Time) {
	entry := pack(v, s.second(until))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(key, entry)
}

// settle stores the square of a cached key's vector in a space.
func (s *slab) settle(key docKey, space uint32, square float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if entry := s.young.entry(key); entry != nil {
		binary.LittleEndian.PutUint32(entry[8:], space)
		binary.LittleEndian.PutUint64(entry[12:], math.Float64bits(square))
	}
}

// bytes returns the approximate size of the slab.
func (s *slab) bytes() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return uint64(s.young.bytes + s.old.bytes) //nolint:gosec // sizes are never negative
}

func (s *slab) second(t time.Time) uint32 {
	return uint32(max(0, min(t.Sub(s.epoch)/time.Second, math.MaxUint32)))
}

func (s *slab) add(key docKey, entry []byte) {
	size := len(entry) + placeBytes
	if size > s.limit {
		return
	}
	rest := s.young.room() // of a page that has too little of it left
	if rest >= len(entry) {
		rest = 0
	}
	if s.young.bytes+rest+size > s.limit {
		s.old, s.young = s.young, generation{at: make(map[docKey]place, len(s.young.at))}
		rest = 0
	}
	g := &s.young
	g.bytes += rest
	if g.room() < len(entry) {
		g.pages = append(g.pages, make([]byte, 0, max(min(pageBytes, s.limit-g.bytes), len(entry))))
	}
	last := len(g.pages) - 1
	page := &g.pages[last]
	g.at[key] = place{uint32(last), uint32(len(*page))} //nolint:gosec // a page has 256 KiB, or one entry of at most 8 MiB
	*page = append(*page, entry...)
	g.bytes += size
}

// room returns the bytes left in the last page.
func (g *generation) room() int {
	if len(g.pages) == 0 {
		return 0
	}
	last := g.pages[len(g.pages)-1]
	return cap(last) - len(last)
}

// entry returns an entry, or nil.
func (g *generation) entry(key docKey) []byte {
	at, known := g.at[key]
	if !known {
		return nil
	}
	entry := g.pages[at.page][at.start:]
	return entry[:binary.LittleEndian.Uint32(entry)]
}

// pack returns the entry of a vector, with terms as ascending differences.
func pack(v *vector, until uint32) []byte {
	e := make([]byte, headBytes, headBytes+len(v.id)+4*len(v.terms)+8)
	e = binary.AppendUvarint(e, uint64(len(v.id)))
	e = append(e, v.id...)
	e = binary.AppendUvarint(e, uint64(len(v.terms)))
	before := int32(0)
	for i, term := range v.terms {
		e = binary.AppendUvarint(e, uint64(term-before)) //nolint:gosec // terms ascend, so the difference is positive
		e = binary.AppendUvarint(e, uint64(v.freqs[i]))
		before = term
	}
	binary.LittleEndian.PutUint32(e, uint32(len(e))) //nolint:gosec // DocVectors reads at most 8 MiB
	binary.LittleEndian.PutUint32(e[4:], until)
	return e
}

func unpack(entry []byte) *vector {
	v := &vector{space: binary.LittleEndian.Uint32(entry[8:]), square: math.Float64frombits(binary.LittleEndian.Uint64(entry[12:]))}
	rest := entry[headBytes:]
	next := func() uint64 {
		n, size := binary.Uvarint(rest)
		rest = rest[size:]
		return n
	}
	n := next()
	v.id, rest = string(rest[:n]), rest[n:]
	n = next()
	v.terms, v.freqs = make([]int32, n), make([]float64, n)
	before := int32(0)
	for i := range v.terms {
		before += int32(next()) //nolint:gosec // pack wrote it from an int32
		v.terms[i], v.freqs[i] = before, float64(next())
	}
	return v
}
