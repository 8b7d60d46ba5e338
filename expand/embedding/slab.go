package embedding

import (
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"
)

const (
	// pageSlots is how many vectors are in a page, which the garbage collector
	// does not scan.
	pageSlots = 1024
	// headBytes is the part of a slot before the vector: its key.
	headBytes = 8
	// scaleBytes is the part of a packed vector before the numbers, and zero is the
	// byte of the number 0.
	scaleBytes, zero = 4, 128
	// placeBytes is about what the place of a slot takes.
	placeBytes = 32
)

// A slab keeps packed vectors by key. When it is full, a new one replaces
// one that no search has asked for since the last round over all (the clock
// algorithm).
type slab struct {
	limit        int64 // in bytes
	hits, misses atomic.Uint64

	mu    sync.RWMutex
	slot  int // bytes of a slot
	most  int // slots
	at    map[uint64]int
	pages [][]byte
	asked []uint32 // by slot: 1 if it was asked for since the hand passed
	used  int      // slots
	hand  int      // the slot that is looked at next when one is needed
}

func newSlab(bytes int64) *slab { return &slab{limit: bytes, at: map[uint64]int{}} }

// DocumentBytes returns what a document takes in memory whose vector has so
// many numbers.
func DocumentBytes(dim int) int { return headBytes + scaleBytes + dim + placeBytes }

// pack returns a vector of length 1 in a byte for each number, behind the
// size of 1 in float32; nil for no vector.
func pack(v []float32) []byte {
	largest := float32(0)
	for _, x := range v {
		largest = max(largest, max(x, -x))
	}
	if largest == 0 {
		return nil
	}
	packed := make([]byte, scaleBytes, scaleBytes+len(v))
	binary.LittleEndian.PutUint32(packed, math.Float32bits(largest/math.MaxInt8))
	for _, x := range v {
		packed = append(packed, byte(zero+math.RoundToEven(float64(x/largest)*math.MaxInt8)))
	}
	return packed
}

// cosine returns that of a packed vector and another, both of length 1.
func cosine(packed []byte, v []float32) float64 {
	sum := float32(0)
	for i, b := range packed[scaleBytes:] {
		sum += v[i] * (float32(b) - zero)
	}
	return float64(sum * math.Float32frombits(binary.LittleEndian.Uint32(packed)))
}

// reset drops everything, for vectors of another dimension.
func (s *slab) reset(dim int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slot = headBytes + scaleBytes + dim
	s.most = int(s.limit / int64(DocumentBytes(dim)))
	s.at = map[uint64]int{}
	s.pages, s.asked = nil, nil
	s.used, s.hand = 0, 0
}

// bytesOf returns a slot.
func (s *slab) bytesOf(slot int) []byte {
	start := slot % pageSlots * s.slot
	return s.pages[slot/pageSlots][start : start+s.slot]
}

// lacking returns the states that have no slot, and has the others stay
// longer.
func (s *slab) lacking(states []state) (lacking []state) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found := uint64(0)
	for i := range states {
		if slot, ok := s.at[states[i].key]; ok {
			atomic.StoreUint32(&s.asked[slot], 1)
			found++
		} else {
			lacking = append(lacking, states[i])
		}
	}
	s.hits.Add(found)
	s.misses.Add(uint64(len(lacking)))
	return lacking
}

// lackingOf returns the states that have no slot, and counts nothing.
func (s *slab) lackingOf(states []state) (lacking []state) {
	for _, k := range s.unknown(states) {
		lacking = append(lacking, states[k])
	}
	return lacking
}

// unknown returns the places of the states that have no slot.
func (s *slab) unknown(states []state) (unknown []int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range states {
		if _, ok := s.at[states[i].key]; !ok {
			unknown = append(unknown, i)
		}
	}
	return unknown
}

// cosines returns the cosines of a vector and those of states, and which are
// known.
func (s *slab) cosines(states []state, v []float32) (cosines []float64, known []bool) {
	cosines, known = make([]float64, len(states)), make([]bool, len(states))
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.slot != headBytes+scaleBytes+len(v) { // another model answers
		return cosines, known
	}
	for i := range states {
		slot, ok := s.at[states[i].key]
		if !ok {
			continue
		}
		packed := s.bytesOf(slot)[headBytes:]
		known[i] = binary.LittleEndian.Uint32(packed) != 0
		if known[i] {
			cosines[i] = cosine(packed, v)
		}
	}
	return cosines, known
}

// put keeps a packed vector, nil for a document that has none. It ignores
// one of another dimension.
func (s *slab) put(key uint64, packed []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most == 0 || packed != nil && len(packed) != s.slot-headBytes {
		return
	}
	slot, ok := s.at[key]
	if !ok {
		slot = s.free()
		s.at[key] = slot
	}
	bytes := s.bytesOf(slot)
	clear(bytes)
	binary.LittleEndian.PutUint64(bytes, key)
	copy(bytes[headBytes:], packed)
}

// free returns a slot for another key.
func (s *slab) free() int {
	if s.used < s.most {
		if s.used%pageSlots == 0 {
			n := min(pageSlots, s.most-s.used)
			s.pages = append(s.pages, make([]byte, n*s.slot))
			s.asked = append(s.asked, make([]uint32, n)...)
		}
		s.used++
		return s.used - 1
	}
	for s.asked[s.hand] == 1 {
		s.asked[s.hand] = 0
		s.hand = (s.hand + 1) % s.most
	}
	slot := s.hand
	s.hand = (s.hand + 1) % s.most
	delete(s.at, binary.LittleEndian.Uint64(s.bytesOf(slot)))
	return slot
}

// full reports whether a new vector replaces another.
func (s *slab) full() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.used >= s.most
}

func (s *slab) stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := Stats{Hits: s.hits.Load(), Misses: s.misses.Load(), Documents: uint64(len(s.at)), Bytes: uint64(placeBytes * len(s.at))}
	for _, page := range s.pages {
		all.Bytes += uint64(len(page))
	}
	return all
}
