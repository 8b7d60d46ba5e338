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
	"github.com/akin-search/akin/simmatrix/spelling"
)

// A version is a version of a matrix, wherever its rows are.
type version struct {
	Version
	name  string
	label string // name@ID
	// number identifies it in the cache. A version that is loaded again gets a new
	// number, so its old entries no longer match and are evicted.
	number uint64
	kept   *remains // nil for a file
	// inMemory is the matrix of a file; nil for one in Redis.
	inMemory *simmatrix.Matrix
	// words are the words that documents have; nil if unknown or not yet read.
	words   atomic.Pointer[spelling.Words]
	noWords atomic.Pointer[string] // why there will be none, see [State.NoWords]
	// damage is nil while nothing is known to be wrong. With damage not even
	// cached rows are returned: another version replaces it, or it is loaded again
	// when repaired.
	damage atomic.Pointer[damage]
	// fetch reads rows that are not cached, and caches them.
	fetch func(ctx context.Context, terms []string) ([]simmatrix.Row, error)
}

// A remains is kept of a version even after it was dropped or could not be
// loaded: its set of terms, as far as read, and the terms with bad or missing
// rows.
type remains struct {
	terms    termSet
	suspects []string
}

// A damage says how rows were found missing or bad, and which must be good
// before the version is used again.
type damage struct {
	err   error
	terms []string // at most maxSuspects
}

const maxSuspects = 64

// setDamage records the damage, unless there is one.
func (v *version) setDamage(err error, terms []string) {
	own := slices.Clone(terms[:min(len(terms), maxSuspects)])
	for k := range own {
		own[k] = strings.Clone(own[k]) // it is part of a search's body
	}
	v.damage.CompareAndSwap(nil, &damage{err, own})
}

// A reporter takes what a source found out about a matrix: the version to serve
// from now on, nil for no change, and the problem, or nil.
type reporter func(name string, v *version, err error)

// A question is the key of a row: its version's number and its term.
type question struct {
	version uint64
	term    string
}

// A rowCache caches rows, also the zero Row of an unknown term, within bytes.
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

// version returns a new version of a matrix, of which nothing is cached.
func (c *rowCache) version(name string, v Version) *version {
	return &version{Version: v, name: name, label: name + "@" + v.ID, number: c.versions.Add(1)}
}

// add caches rows. It copies the terms, which may be parts of a larger text.
func (c *rowCache) add(v *version, terms []string, rows []simmatrix.Row) {
	for k, term := range terms {
		c.kept.Put(question{v.number, strings.Clone(term)}, rows[k], nil, 0)
	}
}

// Rows are the rows of a version of a matrix. They are safe for concurrent use.
type Rows struct {
	version *version
	cache   *rowCache
}

// Version returns matrix and version as name@version.
func (r *Rows) Version() string { return r.version.label }

// Matrix returns the matrix of a file, or nil for one in Redis.
func (r *Rows) Matrix() *simmatrix.Matrix { return r.version.inMemory }

// Docs is the number of documents that the matrix was built from; 0 if unknown.
func (r *Rows) Docs() int64 { return int64(min(r.version.Docs, 1<<62)) }

// Power is the matrix's power, see [simmatrix.Meta.Power].
func (r *Rows) Power() float64 { return r.version.Power() }

// Model names what the matrix has word vectors of, "" if it has none.
func (r *Rows) Model() string { return r.version.Params[simmatrix.ModelParam] }

// Checksum identifies the matrix's content, like [simmatrix.Matrix.Checksum]:
// it is the same from a file and from Redis. It is not empty.
func (r *Rows) Checksum() string { return r.version.Checksum }

// Nearest is [spelling.Words.Nearest] among the matrix's terms that documents
// have. It returns nothing if these are unknown.
func (r *Rows) Nearest(word string) (known []string, similarity float32) {
	words := r.version.words.Load()
	if words == nil {
		return nil, 0
	}
	return words.Nearest(word)
}

// Expressions returns what reports whether the matrix may have a row of an
// expression, nil if it has no expression. It asks nobody, and is sure except
// for matrices in Redis of more than 8,388,608 terms.
func (r *Rows) Expressions() func(expression string) bool {
	v := r.version
	switch {
	case v.Expressions == 0:
		return nil
	case v.inMemory != nil:
		return v.inMemory.Has
	case v.kept == nil || len(v.kept.terms) == 0:
		return func(string) bool { return true }
	}
	return func(expression string) bool { return v.kept.terms.has(v.ID, expression) }
}

// Rows sets rows[k] to the row of terms[k], or the zero Row if the matrix has
// none. Uncached rows take one round trip, limited by the Redis timeout and
// ctx; rows that another caller is reading are shared. After an error, which
// wraps [ErrUnavailable], [ErrBadRow], [ErrMissingRows] or [ErrGone], some rows
// may be set. Once a version is found damaged, it returns that error to
// everyone.
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
		r.cache.kept.Tally(ok)
		if !ok {
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
