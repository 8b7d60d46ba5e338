package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"

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
	remote *remote // nil for a file
	terms  termSet // of one in Redis; empty if it is too large
	// inMemory is the matrix of a file; nil for one in Redis.
	inMemory *simmatrix.Matrix
	// words are the words that documents have; nil if unknown or not yet read.
	words   atomic.Pointer[spelling.Words]
	noWords atomic.Pointer[string] // why there will be none, see [State.NoWords]
	// damage is nil while nothing is known to be wrong. With damage not even
	// cached rows are returned: another version replaces it, or it is loaded again
	// when repaired.
	damage atomic.Pointer[damage]
	// row returns a row of a file.
	row func(term string) simmatrix.Row
}

// has reports whether a version in Redis is known to have a term.
func (v *version) has(term string) bool { return v.terms.has(v.ID, term) }

// A damage says how rows were found missing or bad, and which.
type damage struct {
	err   error
	terms []string // at most maxSuspects
}

const maxSuspects = 64

// setDamage records the damage, unless there is one.
func (v *version) setDamage(err error, terms []string) {
	v.damage.CompareAndSwap(nil, &damage{err, terms[:min(len(terms), maxSuspects)]})
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

func newRowCache(maxBytes uint64, guard *recovery.Guard) *rowCache {
	loader := cache.NewLoader(cache.Policy{Places: math.MaxInt, Guard: guard, What: "reading rows"})
	return &rowCache{loader: loader, bytes: maxBytes, kept: cache.New(cache.Options[question]{
		Bytes: maxBytes, Endless: true, Loader: loader,
		Cost: func(q question, row any) int { return len(q.term) + len(row.(simmatrix.Row).Packed()) },
	})}
}

// version returns a new version of a matrix, of which nothing is cached.
func (c *rowCache) version(name string, v Version) *version {
	return &version{Version: v, name: name, label: name + "@" + v.ID, number: c.versions.Add(1)}
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
	case len(v.terms) == 0:
		return always
	}
	return v.has
}

// Rows sets rows[k] to the row of terms[k], or the zero Row if the matrix has
// none. Uncached rows take one round trip, limited by the Redis timeout or
// three fifths of the time that ctx has, up to a second, if that is more; rows
// that another caller is reading are shared. After an error, which wraps
// [ErrUnavailable], [ErrBadRow], [ErrMissingRows] or [ErrGone], some rows may
// be set. Once a version is found damaged, it returns that error to everyone.
func (r *Rows) Rows(ctx context.Context, terms []string, rows []simmatrix.Row) error {
	if len(terms) != len(rows) {
		return fmt.Errorf("%d terms and %d rows", len(terms), len(rows))
	}
	v := r.version
	if d := v.damage.Load(); d != nil {
		return d.err
	}
	var missing []int
	var questions []question
	for k, term := range terms {
		q := question{v.number, term}
		row, ok, _ := cache.Peek[simmatrix.Row](r.cache.kept, q)
		r.cache.kept.Tally(ok)
		if !ok {
			q.term = strings.Clone(term) // it may be part of a larger text
			if v.row == nil {
				missing, questions = append(missing, k), append(questions, q)
				continue
			}
			row = v.row(q.term)
			r.cache.kept.Put(q, row, nil, 0)
		}
		rows[k] = row
	}
	if missing == nil {
		return nil
	}
	var found map[question]simmatrix.Row
	within := v.remote.within(ctx)
	err := r.cache.loader.Run(ctx, "", func(ctx context.Context) (err error) { // goes on without the caller, so that the cache fills
		found, err = cache.GetAll(ctx, r.cache.kept, questions, func(ctx context.Context, unshared []question) (map[question]simmatrix.Row, error) {
			return v.remote.read(ctx, within, v, unshared, v.has)
		})
		return err
	})
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, cache.ErrClosed)
	switch {
	case ended && !errors.Is(err, ErrUnavailable):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case err != nil:
		return err
	}
	for i, k := range missing {
		rows[k] = found[questions[i]]
	}
	return nil
}
