package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/source"
)

// A version is one version of one matrix, wherever its rows are.
type version struct {
	Version
	name  string
	label string // name@ID
	// number is its name in the cache. A version that is read again has another
	// one, and thus none of its old entries, which are evicted by age.
	number uint64
	kept   *remains // nil for a file
	// inMemory is the matrix of a file, nil for one in Redis.
	inMemory *simmatrix.Matrix
	// words are those that documents have, nil where they are not known or not yet.
	words   atomic.Pointer[source.Words]
	noWords atomic.Pointer[string] // why they never will be, see [State.NoWords]
	// damage is nil while nothing is known to be wrong. With damage not even
	// cached rows are returned: the version is left for another one or, once
	// repaired, read again.
	damage atomic.Pointer[damage]
	// fetch reads rows that are not in the cache, and adds them to it.
	fetch func(ctx context.Context, terms []string) ([]simmatrix.Row, error)
}

// A remains is what is kept of a version also if it is left or cannot be taken
// up: its set of terms, as far as read, and those whose rows were bad or
// missing.
type remains struct {
	terms    termSet
	suspects []string
}

// A damage says how rows of a version were found missing or bad, and which
// have to be good before it is used again.
type damage struct {
	err   error
	terms []string // at most maxSuspects
}

const maxSuspects = 64

// setDamage records the first damage.
func (v *version) setDamage(err error, terms []string) {
	own := slices.Clone(terms[:min(len(terms), maxSuspects)])
	for k := range own {
		own[k] = strings.Clone(own[k]) // part of a search's body
	}
	v.damage.CompareAndSwap(nil, &damage{err, own})
}

// A reporter takes what a source has found out about a matrix: the version to
// serve from now on, nil for no change, and what is wrong, nil if nothing is.
type reporter func(name string, v *version, err error)

// A question names a row by the number of its version and its term.
type question struct {
	version uint64
	term    string
}

// A rowCache keeps rows, also the zero Row of an unknown term, up to a number
// of bytes.
type rowCache struct {
	kept     *cache.Cache[question]
	loader   *cache.Loader
	bytes    uint64
	versions atomic.Uint64
}

func newRowCache(maxBytes uint64, timeout time.Duration, guard *recovery.Guard) *rowCache {
	loader := cache.NewLoader(cache.Policy{Places: math.MaxInt, Timeout: timeout, Guard: guard, What: "reading rows"})
	return &rowCache{loader: loader, bytes: maxBytes, kept: cache.New(cache.Options[question]{
		Bytes: maxBytes, Endless: true, Loader: loader,
		Cost: func(q question, row any) int { return len(q.term) + len(row.(simmatrix.Row).Packed()) },
	})}
}

// version returns a version of a matrix of which nothing is kept.
func (c *rowCache) version(name string, v Version) *version {
	return &version{Version: v, name: name, label: name + "@" + v.ID, number: c.versions.Add(1)}
}

// add keeps the rows of the terms. It copies the terms, which may be parts of
// a larger text.
func (c *rowCache) add(v *version, terms []string, rows []simmatrix.Row) {
	for k, term := range terms {
		c.kept.Put(question{v.number, strings.Clone(term)}, rows[k], nil, 0)
	}
}

// Rows are the rows of one version of one matrix, safe for concurrent use.
type Rows struct {
	version *version
	cache   *rowCache
}

// Version names the matrix and its version, as name@version.
func (r *Rows) Version() string { return r.version.label }

// Matrix returns the matrix of a file, nil for one in Redis.
func (r *Rows) Matrix() *simmatrix.Matrix { return r.version.inMemory }

// Docs is the number of documents that the matrix was built from; 0 is
// unknown.
func (r *Rows) Docs() int64 { return int64(min(r.version.Docs, 1<<62)) }

// Power is that of the matrix, see [simmatrix.Meta.Power].
func (r *Rows) Power() float64 { return r.version.Power() }

// Mixed reports whether a language model is mixed into the matrix.
func (r *Rows) Mixed() bool { return r.version.Params[simmatrix.ModelParam] != "" }

// Checksum identifies the matrix's content, as [simmatrix.Matrix.Checksum]
// does: it is the same from a file and from Redis. It is not empty.
func (r *Rows) Checksum() string { return r.version.Checksum }

// Nearest is [source.Words.Nearest] among the terms of the matrix that
// documents have. There is nothing near where these are not known.
func (r *Rows) Nearest(word string) (known []string, similarity float32) {
	words := r.version.words.Load()
	if words == nil {
		return nil, 0
	}
	return words.Nearest(word)
}

// Rows sets rows[k] to the row of terms[k], the zero Row if the matrix has
// none. Rows that are not in the cache cost one round trip for all but those
// that another caller is reading, bounded by the Redis timeout and by ctx.
// After an error, which wraps [ErrUnavailable], [ErrBadRow],
// [ErrMissingRows] or [ErrGone], some rows may be set. A version that was
// found damaged returns that error from then on, whoever pinned it.
func (r *Rows) Rows(ctx context.Context, terms []string, rows []simmatrix.Row) error {
	if len(terms) != len(rows) {
		return fmt.Errorf("%d terms and %d rows", len(terms), len(rows))
	}
	if d := r.version.damage.Load(); d != nil {
		return d.err
	}
	var missing []int
	var missed []string
	for k, term := range terms {
		row, ok, _ := cache.Peek[simmatrix.Row](r.cache.kept, question{r.version.number, term})
		if r.cache.kept.Tally(ok); !ok {
			missing, missed = append(missing, k), append(missed, term)
			continue
		}
		rows[k] = row
	}
	if missing == nil {
		return nil
	}
	fetched, err := r.version.fetch(ctx, missed)
	if err != nil {
		return err
	}
	for i, k := range missing {
		rows[k] = fetched[i]
	}
	return nil
}
