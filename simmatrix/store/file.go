package store

import (
	"context"
	"fmt"
	"time"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/source"
)

const (
	// reloadEvery bounds the time until a changed file is noticed.
	reloadEvery = time.Second
	// checksumDigits of a file's checksum identify its version.
	checksumDigits = 16
)

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
func pollFile(name string, load Loader, c *rowCache, words bool) func(ctx context.Context, report reporter) {
	return func(ctx context.Context, report reporter) {
		m, written, err := load(ctx)
		switch {
		case err != nil && ctx.Err() != nil: // closing
		case err != nil:
			report(name, nil, fmt.Errorf("%w: %w", ErrBadVersion, err))
		case !written.IsZero():
			v := versionInMemory(name, m, written, c)
			if words {
				known := source.NewWords(m.Table().Terms, m.Table().DocFreqs)
				if v.words.Store(known); known == nil {
					v.noWords.Store(new(noDocFreqs))
				}
			}
			report(name, v, nil)
		default:
			report(name, nil, nil)
		}
	}
}

func versionInMemory(name string, m *simmatrix.Matrix, written time.Time, c *rowCache) *version {
	v := c.version(name, Version{ID: m.Checksum()[:checksumDigits], Meta: m.Meta(), Checksum: m.Checksum(), Pushed: written})
	v.inMemory = m
	v.fetch = func(_ context.Context, terms []string) ([]simmatrix.Row, error) {
		rows := make([]simmatrix.Row, len(terms))
		for k, term := range terms {
			rows[k] = m.Row(term)
		}
		c.add(v, terms, rows)
		return rows, nil
	}
	return v
}
