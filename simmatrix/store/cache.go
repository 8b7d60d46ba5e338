package store

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/akin-search/akin/simmatrix"
)

const (
	// entryBytes is what one entry takes in addition to its strings: 114 bytes
	// for the library's node and table slot (BenchmarkCacheEntry), and rounding up
	// of two allocations, about 4 % of a row of 100 neighbors.
	entryBytes = 160
	// reloadEvery bounds the time until a changed file is noticed.
	reloadEvery = time.Second
	// checksumDigits of a file's checksum identify its version.
	checksumDigits = 16
)

// A cacheKey names a row. The version is unique over all matrices, so entries
// of old versions are no longer used and are evicted by age.
type cacheKey struct{ version, term string }

// A cache keeps rows, also the zero Row of an unknown term, up to a number of
// bytes.
type cache struct {
	rows         *otter.Cache[cacheKey, simmatrix.Row]
	hits, misses atomic.Int64
}

func newCache(maxBytes uint64) (*cache, error) {
	rows, err := otter.New(&otter.Options[cacheKey, simmatrix.Row]{
		MaximumWeight: maxBytes,
		Weigher: func(k cacheKey, r simmatrix.Row) uint32 {
			return uint32(min(entryBytes+len(k.term)+len(r.Packed()), math.MaxUint32))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("row cache: %w", err)
	}
	return &cache{rows: rows}, nil
}

// get sets rows[k] to the row of terms[k] and returns the indices of the
// missing ones, nil if it has all.
func (c *cache) get(version string, terms []string, rows []simmatrix.Row) (missing []int) {
	for k, term := range terms {
		row, ok := c.rows.GetIfPresent(cacheKey{version, term})
		if !ok {
			missing = append(missing, k)
			continue
		}
		rows[k] = row
	}
	c.hits.Add(int64(len(terms) - len(missing)))
	c.misses.Add(int64(len(missing)))
	return missing
}

// add keeps the rows of the terms. It copies the terms, which may be parts of
// a larger text.
func (c *cache) add(version string, terms []string, rows []simmatrix.Row) {
	for k, term := range terms {
		c.rows.Set(cacheKey{version, strings.Clone(term)}, rows[k])
	}
}

// A Loader supplies the matrix of a file, and again whenever it has changed.
// It is called when a [Store] opens and then once a second, never at the same
// time. written is when the matrix was made; at zero the last one is still
// valid, and one with the same content is no change either. An error is
// reported, and the last matrix stays in service; a Loader returns the error
// for as long as it persists. A Loader ends with ctx.
type Loader func(ctx context.Context) (m *simmatrix.Matrix, written time.Time, err error)

// InMemory returns a Loader of a matrix that never changes.
func InMemory(m *simmatrix.Matrix) Loader {
	now := time.Now()
	return func(context.Context) (*simmatrix.Matrix, time.Time, error) { return m, now, nil }
}

// pollFile returns a poll that reports what a Loader returns.
func pollFile(name string, load Loader, c *cache) func(ctx context.Context, report reporter) {
	return func(ctx context.Context, report reporter) {
		m, written, err := load(ctx)
		switch {
		case err != nil && ctx.Err() != nil: // closing
		case err != nil:
			report(name, nil, fmt.Errorf("%w: %w", ErrBadVersion, err))
		case !written.IsZero():
			report(name, versionInMemory(name, m, written, c), nil)
		default:
			report(name, nil, nil)
		}
	}
}

func versionInMemory(name string, m *simmatrix.Matrix, written time.Time, c *cache) *version {
	id := m.Checksum()[:checksumDigits]
	label := name + "@" + id
	v := &version{Version: Version{ID: id, Meta: m.Meta(), Checksum: m.Checksum(), Pushed: written}, name: name, label: label, key: label, inMemory: m}
	v.fetch = func(_ context.Context, terms []string) ([]simmatrix.Row, error) {
		rows := make([]simmatrix.Row, len(terms))
		for k, term := range terms {
			rows[k] = m.Row(term)
		}
		c.add(v.key, terms, rows)
		return rows, nil
	}
	return v
}
