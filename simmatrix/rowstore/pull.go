package rowstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/akin-search/akin/simmatrix"
)

const (
	// pageBytes is the approximate size of one answer of a pull.
	pageBytes = 1 << 20
	// firstPage is the number of rows requested while their length is unknown,
	// maxPage the largest: an answer has twice as many strings.
	firstPage, maxPage = 16, maxElements / 8
)

// Pull reads a complete version of a matrix, "" for the active one, and returns
// it as it was pushed: its checksum is that of the version. It keeps all rows
// in memory. The stage of progress, which may be nil, is "pull", its unit rows.
// Errors wrap [ErrNoVersion], [ErrUnknownVersion], [ErrBadVersion] or
// [ErrBadRow] unless Redis failed; they say how many rows are bad or missing,
// and the terms of some.
func (a *Admin) Pull(ctx context.Context, name, version string, progress simmatrix.Progress) (*simmatrix.Matrix, Version, error) {
	version, err := a.resolve(ctx, name, version)
	if err != nil {
		return nil, Version{}, err
	}
	if progress == nil {
		progress = func(string, int, int) {}
	}
	p := &pull{admin: a, name: name, id: version, bad: make(map[string]error), progress: progress}
	m, err := p.run(ctx)
	if err != nil {
		return nil, Version{}, fmt.Errorf("pull %s of matrix %s: %w", version, name, err)
	}
	return m, p.version, nil
}

// A pull is one version being read.
type pull struct {
	admin    *Admin
	name, id string
	version  Version
	bad      map[string]error // what is wrong with rows, by term
	progress simmatrix.Progress
}

func (p *pull) run(ctx context.Context) (m *simmatrix.Matrix, err error) {
	if p.version, err = p.admin.header(ctx, p.name, p.id); err != nil && !errors.Is(err, ErrMissingRows) {
		return nil, err
	}
	rows, err := p.readRows(ctx)
	if err != nil {
		return nil, err
	}
	// It may have been pruned, or evicted, since the pull began.
	if _, err := p.admin.header(ctx, p.name, p.id); err != nil && !errors.Is(err, ErrMissingRows) {
		return nil, err
	}
	if err := p.damage(rows); err != nil {
		return nil, err
	}
	m, err = simmatrix.FromRows(p.version.Meta, rows)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadVersion, err)
	}
	if m.Checksum() != p.version.Checksum {
		return nil, fmt.Errorf("%w: its checksum is %s, want %s", ErrBadVersion, m.Checksum(), p.version.Checksum)
	}
	return m, nil
}

// damage returns an error that says which rows are bad and which are missing,
// as far as the header or another row names their terms.
func (p *pull) damage(rows map[string]simmatrix.Row) error {
	var errs []error
	if bad := slices.Sorted(maps.Keys(p.bad)); bad != nil {
		errs = append(errs, fmt.Errorf("%w: %s: %w", ErrBadRow, someOf(bad), p.bad[bad[0]]))
	}
	if err := p.version.checkFields(int64(len(rows) + len(p.bad) + 1 + p.version.chunks())); err != nil {
		if missing := p.missing(rows); len(missing) > 0 {
			err = fmt.Errorf("%w; without a row: %s", err, someOf(missing))
		}
		errs = append(errs, fmt.Errorf("%w: %w", ErrBadVersion, err))
	}
	return errors.Join(errs...)
}

// missing returns the sorted terms that the header or a row names and that have
// no row.
func (p *pull) missing(rows map[string]simmatrix.Row) []string {
	missing := make(map[string]bool)
	note := func(term string) {
		if _, there := rows[term]; !there && p.bad[term] == nil {
			missing[term] = true
		}
	}
	for _, term := range p.version.Frequent {
		note(term)
	}
	for _, row := range rows {
		for n := range row.All() {
			note(n.Term)
		}
	}
	return slices.Sorted(maps.Keys(missing))
}

// readRows reads page by page, and adapts the page length to the rows so far.
func (p *pull) readRows(ctx context.Context) (map[string]simmatrix.Row, error) {
	total := int(min(p.version.Terms, simmatrix.MaxTerms))
	rows := make(map[string]simmatrix.Row)
	var cursor uint64
	count, bytes, seen := int64(firstPage), 0, 0
	for range total + p.version.chunks() + 1000 { // every page has a field, except some while the hash is resized
		var page []string
		if err := p.admin.do(ctx, func(ctx context.Context) (err error) {
			page, cursor, err = p.admin.client.HScan(ctx, rowsKey(p.name, p.id), cursor, "*", count).Result()
			return err
		}); err != nil {
			return nil, fmt.Errorf("after %d of %d rows: %w", len(rows), total, err)
		}
		n, err := p.add(rows, page)
		if err != nil {
			return nil, err
		}
		if len(rows)+len(p.bad) > total {
			return nil, fmt.Errorf("%w: more than %d rows", ErrBadVersion, total)
		}
		p.progress("pull", len(rows), total)
		if cursor == 0 {
			return rows, nil
		}
		bytes, seen = bytes+n, seen+len(page)/2
		count = int64(min(max(pageBytes*seen/max(bytes, 1), 1), maxPage))
	}
	return nil, fmt.Errorf("%w: its rows do not end", ErrBadVersion)
}

// add puts a page of field, value, field, value into rows and returns its
// bytes. HSCAN may repeat a row.
func (p *pull) add(rows map[string]simmatrix.Row, page []string) (bytes int, err error) {
	if len(page)%2 != 0 {
		return 0, fmt.Errorf("%w: %d fields and values", errReply, len(page))
	}
	for i := 0; i < len(page); i += 2 {
		term, sealed := page[i], page[i+1]
		bytes += len(term) + len(sealed)
		if term == completeField || strings.HasPrefix(term, chunkField) {
			continue
		}
		row, err := openRow(&p.admin.codec, term, sealed)
		if err != nil {
			p.bad[term] = err
			continue
		}
		rows[term] = row
	}
	return bytes, nil
}
