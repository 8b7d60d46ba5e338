package rowstore

import (
	"context"
	"fmt"
	"time"

	"github.com/akin-search/akin/simmatrix"
)

const (
	// reloadEvery bounds the time until a changed file is noticed.
	reloadEvery = time.Second
	// checksumDigits of a file's checksum identify its version.
	checksumDigits = 16
)

// A Loader supplies the matrix of a file, and again whenever it has changed. It
// is called when a [Store] opens and then once a second, never at the same
// time. With changed false the last matrix is still valid; one with the same
// content is no change either. An error is reported, and the last matrix stays
// in service; a Loader returns the error for as long as it persists. A Loader
// ends with ctx.
type Loader func(ctx context.Context) (m *simmatrix.Matrix, changed bool, err error)

// InMemory returns a Loader of a matrix that never changes.
func InMemory(m *simmatrix.Matrix) Loader {
	return func(context.Context) (*simmatrix.Matrix, bool, error) { return m, true, nil }
}

// A local source serves what a Loader returns.
type local struct {
	name  string
	load  Loader
	cache *cache
}

func (l *local) poll(ctx context.Context, report reporter) {
	m, changed, err := l.load(ctx)
	switch {
	case err != nil && ctx.Err() != nil: // closing
	case err != nil:
		report(l.name, nil, fmt.Errorf("%w: %w", ErrBadVersion, err))
	case changed:
		report(l.name, l.version(m), nil)
	default:
		report(l.name, nil, nil)
	}
}

func (l *local) version(m *simmatrix.Matrix) *version {
	id := m.Checksum()[:checksumDigits]
	label := l.name + "@" + id
	v := &version{Version: Version{ID: id, Meta: m.Meta(), Checksum: m.Checksum()}, name: l.name, label: label, key: label}
	v.fetch = func(_ context.Context, terms []string) ([]simmatrix.Row, error) {
		rows := make([]simmatrix.Row, len(terms))
		for k, term := range terms {
			rows[k] = m.Row(term)
		}
		l.cache.add(v.key, terms, rows)
		return rows, nil
	}
	return v
}
