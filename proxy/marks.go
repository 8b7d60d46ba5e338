package proxy

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/proxy/wire"
)

const (
	// A mark holds for markTime, and for twice as long each time that it is made
	// again, at most for maxMarkTime.
	markTime    = time.Minute
	maxMarkTime = 10 * time.Minute
	// maxMarks bounds how many there are. With more, those that end first go.
	maxMarks = 1000
	// strikes in a row make a mark: words of one search can be wrong in one that
	// is right otherwise.
	strikes = 3
)

// marks remember for a while, by its hash, what would cost the cluster a second
// search each time. They are safe for concurrent use.
type marks struct {
	seed maphash.Seed
	// count is how many are held, so that nobody hashes for none, as usual.
	count atomic.Int32
	mu    sync.Mutex
	held  map[uint64]mark
	swept time.Time
}

// A mark holds until a time, which was so far off when it was made. Before that
// time is set it counts strikes.
type mark struct {
	until   time.Time
	span    time.Duration
	strikes int
}

func newMarks() *marks { return &marks{seed: maphash.MakeSeed(), held: map[uint64]mark{}} }

// note makes a mark. Several at a time are one.
func (m *marks) note(key uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.sweep(now)
	old := m.held[key]
	if now.Before(old.until) {
		return
	}
	span := min(max(2*old.span, markTime), maxMarkTime)
	m.set(key, mark{until: now.Add(span), span: span, strikes: old.strikes})
}

// set notes a mark, in the place of the one that ends first where there are too
// many. The lock is held.
func (m *marks) set(key uint64, made mark) {
	if _, known := m.held[key]; !known && len(m.held) >= maxMarks {
		first := key
		for k, other := range m.held {
			if first == key || other.until.Before(m.held[first].until) {
				first = k
			}
		}
		delete(m.held, first)
	}
	m.held[key] = made
	m.count.Store(int32(len(m.held))) //nolint:gosec // at most maxMarks
}

// strike makes a mark once it was called several times without a pardon.
func (m *marks) strike(key uint64) {
	m.mu.Lock()
	old, now := m.held[key], time.Now()
	old.strikes++
	if old.until.IsZero() {
		old.until = now // of no time yet; it is swept like the others
	}
	m.set(key, old)
	m.mu.Unlock()
	if old.strikes >= strikes {
		m.note(key)
	}
}

// pardon forgets the strikes, and a mark that they made.
func (m *marks) pardon(key uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[key].strikes > 0 {
		delete(m.held, key)
		m.count.Store(int32(len(m.held))) //nolint:gosec // at most maxMarks
	}
}

// has reports whether a mark holds.
func (m *marks) has(key uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.sweep(now)
	return now.Before(m.held[key].until)
}

// sweep lets marks go that have not been made again for maxMarkTime. The lock
// is held.
func (m *marks) sweep(now time.Time) {
	if now.Sub(m.swept) < markTime {
		return
	}
	m.swept = now
	for key, mark := range m.held {
		if now.Sub(mark.until) > maxMarkTime {
			delete(m.held, key)
		}
	}
	m.count.Store(int32(len(m.held))) //nolint:gosec // at most maxMarks
}

// wasRefused reports whether the cluster has refused a rewritten search of the
// same shape of late.
func (s *Server) wasRefused(x *search) bool {
	return s.shapes.count.Load() > 0 && s.shapes.has(s.shapeOf(x))
}

// shapeOf returns a hash of what a search asks for, without its words and
// numbers: endpoint, index expression, profile, the names of its parameters and
// of the members of its body, and what is a list, an object or a value there.
func (s *Server) shapeOf(x *search) uint64 {
	h := s.shapes.hash(x)
	writePart(h, x.client.Name) // nobody makes marks for others
	wire.EachParameter(x.rawQuery, func(name, _ string) { writePart(h, name) })
	var last jsontext.Kind
	for d := jsontext.NewDecoder(bytes.NewReader(x.body.plain), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); ; {
		t, err := d.ReadToken()
		if err != nil {
			return h.Sum64()
		}
		in, n := d.StackIndex(d.StackDepth())
		scalar := t.Kind() != '{' && t.Kind() != '[' && t.Kind() != '}' && t.Kind() != ']'
		switch {
		case in == '{' && n%2 == 1: // a name
			writePart(h, t.String())
		case in == '[' && scalar && t.Kind() == last: // however many
		default:
			_ = h.WriteByte(byte(t.Kind())) // it never fails
		}
		last = t.Kind()
	}
}

// hash begins a hash with what all that is remembered has.
func (m *marks) hash(x *search) *maphash.Hash {
	h := new(maphash.Hash)
	h.SetSeed(m.seed)
	_ = h.WriteByte(byte(x.endpoint)) // it never fails
	writePart(h, x.index)
	writePart(h, x.control.profile)
	return h
}

// writePart adds a text that cannot run into the next one.
func writePart(h *maphash.Hash, text string) {
	_, _ = h.WriteString(text) // it never fails
	_ = h.WriteByte(0)
}
