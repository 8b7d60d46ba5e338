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
	// A backoff takes backoffTime, and twice as long each further time, at most
	// maxBackoffTime.
	backoffTime    = time.Minute
	maxBackoffTime = 10 * time.Minute
	// maxBackoffs bounds how many there are. With more, those that end first go.
	maxBackoffs = 1000
	// maxFailures in a row begin a backoff: words of one search can be wrong in
	// one that is right otherwise.
	maxFailures = 3
)

// backoffs remember for a while, by its hash, what would cost the cluster a
// second search each time. They may be used concurrently.
type backoffs struct {
	seed maphash.Seed
	// count is how many there are, so that nobody hashes for none, as usual.
	count atomic.Int32
	mu    sync.Mutex
	made  map[uint64]backoff
	swept time.Time
}

// A backoff holds until a time, for span. Before that it counts failures.
type backoff struct {
	until    time.Time
	span     time.Duration
	failures int
}

func newBackoffs() *backoffs {
	return &backoffs{seed: maphash.MakeSeed(), made: map[uint64]backoff{}}
}

// change replaces a backoff by what f makes of it, and drops one without a time
// and all that did not begin again for maxBackoffTime.
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

// note begins a backoff. Several at a time are one.
func (m *backoffs) note(key uint64) { m.change(key, backoff.renewed) }

func (old backoff) renewed(now time.Time) backoff {
	if now.Before(old.until) {
		return old
	}
	old.span = min(max(2*old.span, backoffTime), maxBackoffTime)
	old.until = now.Add(old.span)
	return old
}

// failure begins a backoff once it was called several times without a reset.
func (m *backoffs) failure(key uint64) {
	m.change(key, func(old backoff, now time.Time) backoff {
		if old.failures++; old.failures >= maxFailures {
			return old.renewed(now)
		}
		if old.until.IsZero() {
			old.until = now // of no time yet; it is swept like the others
		}
		return old
	})
}

// reset forgets the failures, and a backoff that they began.
func (m *backoffs) reset(key uint64) {
	m.change(key, func(old backoff, _ time.Time) backoff {
		if old.failures > 0 {
			return backoff{}
		}
		return old
	})
}

// has reports whether a backoff holds.
func (m *backoffs) has(key uint64) (has bool) {
	m.change(key, func(old backoff, now time.Time) backoff {
		has = now.Before(old.until)
		return old
	})
	return has
}

// A kind is what searches share for which a backoff holds: endpoint, index
// expression and profile.
type kind struct {
	endpoint       expand.Endpoint
	index, profile string
}

// shapeOf returns a hash of a search without its words and numbers: client,
// endpoint, index expression, profile, the names of its parameters and of the
// members of its body, and what is a list, an object or a value there. A client
// is an address and what tells users behind it apart, so that no user switches
// expansion off for others.
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
		case in == '[' && scalar && t.Kind() == last: // however many
		default:
			_ = h.WriteByte(byte(t.Kind())) // it never fails
		}
		last = t.Kind()
	}
}

// hash begins the hash of a search of a kind.
func (m *backoffs) hash(k kind) *maphash.Hash {
	h := new(maphash.Hash)
	h.SetSeed(m.seed)
	_ = h.WriteByte(byte(k.endpoint)) // it never fails
	maphash.WriteComparable(h, k.index)
	maphash.WriteComparable(h, k.profile)
	return h
}
