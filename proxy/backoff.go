package proxy

import (
	"bytes"
	"hash/maphash"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/answer"
)

const (
	// A back-off lasts backoffTime at first, then twice as long, up to
	// maxBackoffTime.
	backoffTime    = time.Minute
	maxBackoffTime = 10 * time.Minute
	// maxBackoffs limits how many are kept. Those that end first are dropped.
	maxBackoffs = 1000
	// maxFailures in a row begin a back-off: one failure may lie in the words of
	// one search alone.
	maxFailures = 3
)

// backoffs remembers, by hash, searches that would cost the cluster a second
// search each time. It may be used concurrently.
type backoffs struct {
	seed maphash.Seed
	// count is how many there are; while it is 0, as usual, nothing is hashed.
	count atomic.Int32
	mu    sync.Mutex
	made  map[uint64]backoff
	swept time.Time
}

// A backoff lasts span and ends at until. Before it begins it counts failures.
type backoff struct {
	until    time.Time
	span     time.Duration
	failures int
}

func newBackoffs() *backoffs {
	return &backoffs{seed: maphash.MakeSeed(), made: map[uint64]backoff{}}
}

// change replaces a back-off with f's result. It drops one without a time, and
// all that ended more than maxBackoffTime ago.
func (m *backoffs) change(key uint64, f func(backoff, time.Time) backoff) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if now.Sub(m.swept) >= backoffTime {
		m.swept = now
		maps.DeleteFunc(m.made, func(_ uint64, old backoff) bool { return now.Sub(old.until) > maxBackoffTime })
	}
	old := m.made[key]
	switch next := f(old, now); {
	case next == old:
	case next.until.IsZero():
		delete(m.made, key)
	default:
		m.made[key] = next
		if len(m.made) > maxBackoffs {
			first := key
			for k, other := range m.made {
				if first == key || k != key && other.until.Before(m.made[first].until) {
					first = k
				}
			}
			delete(m.made, first)
		}
	}
	m.count.Store(int32(len(m.made))) //nolint:gosec // at most maxBackoffs
}

// note begins a back-off. It does nothing while one holds.
func (m *backoffs) note(key uint64) { m.change(key, backoff.renewed) }

func (old backoff) renewed(now time.Time) backoff {
	if now.Before(old.until) {
		return old
	}
	old.span = min(max(2*old.span, backoffTime), maxBackoffTime)
	old.until = now.Add(old.span)
	return old
}

// failure begins a back-off after maxFailures calls without a reset.
func (m *backoffs) failure(key uint64) {
	m.change(key, func(old backoff, now time.Time) backoff {
		if old.failures++; old.failures >= maxFailures {
			return old.renewed(now)
		}
		if old.until.IsZero() {
			old.until = now // already over; it is swept like the others
		}
		return old
	})
}

// reset forgets failures and the back-off that they began.
func (m *backoffs) reset(key uint64) {
	m.change(key, func(old backoff, _ time.Time) backoff {
		if old.failures > 0 {
			return backoff{}
		}
		return old
	})
}

// has reports whether a back-off holds.
func (m *backoffs) has(key uint64) (has bool) {
	m.change(key, func(old backoff, now time.Time) backoff {
		has = now.Before(old.until)
		return old
	})
	return has
}

// A kind is what searches with a common back-off share.
type kind struct {
	endpoint       expand.Endpoint
	index, profile string
}

// shapeOf returns a hash of a search without its words and numbers: client,
// endpoint, index expression, profile, names of parameters and of members of
// the body, and the kinds of values there. A client is an address and the
// headers that identify users behind it, so that no user turns off expansion
// for others.
func (m *backoffs) shapeOf(k kind, client string, header http.Header, rawQuery string, body []byte) uint64 {
	h := m.hash(k)
	maphash.WriteComparable(h, client)
	eachIdentity(header, func(text string) { maphash.WriteComparable(h, text) })
	answer.EachParameter(rawQuery, func(name, _ string) { maphash.WriteComparable(h, name) })
	var last jsontext.Kind
	for d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); ; {
		t, err := d.ReadToken()
		if err != nil {
			return h.Sum64()
		}
		in, n := d.StackIndex(d.StackDepth())
		scalar := t.Kind() != '{' && t.Kind() != '[' && t.Kind() != '}' && t.Kind() != ']'
		switch {
		case in == '{' && n%2 == 1: // a name
			maphash.WriteComparable(h, t.String())
		case in == '[' && scalar && t.Kind() == last: // however many of one kind
		default:
			_ = h.WriteByte(byte(t.Kind())) // never fails
		}
		last = t.Kind()
	}
}

// hash begins the hash of a search of a kind.
func (m *backoffs) hash(k kind) *maphash.Hash {
	h := new(maphash.Hash)
	h.SetSeed(m.seed)
	_ = h.WriteByte(byte(k.endpoint)) // never fails
	maphash.WriteComparable(h, k.index)
	maphash.WriteComparable(h, k.profile)
	return h
}
