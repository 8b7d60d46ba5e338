package proxy

import (
	"bytes"
	"hash/maphash"
	"maps"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

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
	seed   maphash.Seed
	enough int // failures in a row that begin a back-off

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

func newBackoffs(enough int) *backoffs {
	return &backoffs{seed: maphash.MakeSeed(), enough: enough, made: map[uint64]backoff{}}
}

// empty reports whether nothing is kept, as usual: then nothing is hashed.
func (m *backoffs) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.made) == 0
}

// has reports whether a back-off holds. It forgets all that ended more than
// maxBackoffTime ago.
func (m *backoffs) has(key uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if now.Sub(m.swept) >= backoffTime {
		m.swept = now
		maps.DeleteFunc(m.made, func(_ uint64, b backoff) bool { return now.Sub(b.until) > maxBackoffTime })
	}
	return now.Before(m.made[key].until)
}

// failed records a failure. Enough of them, with no accepted search between,
// begin a back-off, and so does each one after that has ended.
func (m *backoffs) failed(key uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	b := m.made[key]
	b.failures++
	switch {
	case now.Before(b.until): // it holds
	case b.failures >= m.enough:
		b.span = min(max(2*b.span, backoffTime), maxBackoffTime)
		b.until = now.Add(b.span)
	case b.failures == 1:
		b.until = now // already over; it is swept like the others
	}
	if _, kept := m.made[key]; !kept && len(m.made) == maxBackoffs {
		first := key
		for k, other := range m.made {
			if first == key || other.until.Before(m.made[first].until) {
				first = k
			}
		}
		delete(m.made, first)
	}
	m.made[key] = b
}

// accepted forgets failures and the back-off that they began.
func (m *backoffs) accepted(key uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.made, key)
}

// kindOf returns a hash of the endpoint, index expression and profile of a
// search.
func (m *backoffs) kindOf(x *search) uint64 { return m.hash(x).Sum64() }

// shapeOf returns a hash of a search without its words and numbers: its kind,
// client, names of parameters and of members of the body, and the kinds of
// values there. A client is an address and the headers that identify users
// behind it, so that no user turns off expansion for others. One that is
// expanded again has a shape of its own.
func (m *backoffs) shapeOf(x *search) uint64 {
	h := m.hash(x)
	maphash.WriteComparable(h, x.few != nil)
	maphash.WriteComparable(h, x.client.Name)
	eachIdentity(x.header, func(text string) { maphash.WriteComparable(h, text) })
	answer.EachParameter(x.rawQuery, func(name, _ string) { maphash.WriteComparable(h, name) })
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
			maphash.WriteComparable(h, t.String())
		case in == '[' && scalar && t.Kind() == last: // however many of one kind
		default:
			_ = h.WriteByte(byte(t.Kind())) // never fails
		}
		last = t.Kind()
	}
}

// hash begins the hash of a search with what kindOf says.
func (m *backoffs) hash(x *search) *maphash.Hash {
	h := new(maphash.Hash)
	h.SetSeed(m.seed)
	_ = h.WriteByte(byte(x.endpoint)) // never fails
	maphash.WriteComparable(h, x.index)
	maphash.WriteComparable(h, x.control.profile)
	return h
}
