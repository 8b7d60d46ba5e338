package proxy

import (
	"bytes"
	"hash/maphash"
	"maps"
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
// search each time. They may be used concurrently.
type marks struct {
	seed maphash.Seed
	// count is how many there are, so that nobody hashes for none, as usual.
	count atomic.Int32
	mu    sync.Mutex
	made  map[uint64]mark
	swept time.Time
}

// A mark holds until a time, for span. Before that it counts strikes.
type mark struct {
	until   time.Time
	span    time.Duration
	strikes int
}

func newMarks() *marks { return &marks{seed: maphash.MakeSeed(), made: map[uint64]mark{}} }

// change replaces a mark by what f makes of it, and drops one without a time
// and all that were not made again for maxMarkTime.
func (m *marks) change(key uint64, f func(mark, time.Time) mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if now.Sub(m.swept) >= markTime {
		m.swept = now
		maps.DeleteFunc(m.made, func(_ uint64, old mark) bool { return now.Sub(old.until) > maxMarkTime })
	}
	old := m.made[key]
	switch next := f(old, now); {
	case next == old:
	case next.until.IsZero():
		delete(m.made, key)
	default:
		m.made[key] = next
		if len(m.made) > maxMarks {
			first := key
			for k, other := range m.made {
				if first == key || k != key && other.until.Before(m.made[first].until) {
					first = k
				}
			}
			delete(m.made, first)
		}
	}
	m.count.Store(int32(len(m.made))) //nolint:gosec // at most maxMarks
}

// note makes a mark. Several at a time are one.
func (m *marks) note(key uint64) { m.change(key, mark.renewed) }

func (old mark) renewed(now time.Time) mark {
	if now.Before(old.until) {
		return old
	}
	old.span = min(max(2*old.span, markTime), maxMarkTime)
	old.until = now.Add(old.span)
	return old
}

// strike makes a mark once it was called several times without a pardon.
func (m *marks) strike(key uint64) {
	m.change(key, func(old mark, now time.Time) mark {
		if old.strikes++; old.strikes >= strikes {
			return old.renewed(now)
		}
		if old.until.IsZero() {
			old.until = now // of no time yet; it is swept like the others
		}
		return old
	})
}

// pardon forgets the strikes, and a mark that they made.
func (m *marks) pardon(key uint64) {
	m.change(key, func(old mark, _ time.Time) mark {
		if old.strikes > 0 {
			return mark{}
		}
		return old
	})
}

// has reports whether a mark holds.
func (m *marks) has(key uint64) (has bool) {
	m.change(key, func(old mark, now time.Time) mark {
		has = now.Before(old.until)
		return old
	})
	return has
}

// wasRejected reports whether the cluster has rejected a search of this shape
// of late.
func (l *learned) wasRejected(x *search) bool {
	return l.shapes.count.Load() > 0 && l.shapes.has(l.shapeOf(x))
}

// shapeOf returns a hash of a search without its words and numbers: client,
// endpoint, index expression, profile, the names of its parameters and of the
// members of its body, and what is a list, an object or a value there.
func (l *learned) shapeOf(x *search) uint64 {
	h := l.shapes.hash(x)
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
	maphash.WriteComparable(h, text)
}
