package store

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
	// pageBytes is the approximate size of an answer of a pull.
	pageBytes = 1 << 20
	// firstPage is the number of rows to request while their length is unknown,
	// maxPage the largest number: an answer has twice as many strings.
	firstPage, maxPage = 16, maxElements / 8
)

// Pull reads a complete version of a matrix, "" for the active one, as it was
// pushed: its checksum is the version's. It keeps all rows in memory. progress,
// which may be nil, gets the stage "pull", in rows. Errors wrap [ErrNoVersion],
// [ErrUnknownVersion], [ErrBadVersion] or [ErrBadRow] unless Redis failed; they
// say how many rows are bad or missing, and the terms of some.
func (a *Admin) Pull(ctx context.Context, name, version string, progress simmatrix.Progress) (m *simmatrix.Matrix, v Version, err error) {
	id, err := a.resolve(ctx, name, version)
	if err != nil {
		return nil, Version{}, err
	}
	defer func() {
		if err != nil {
			m = nil
			v = Version{}
			err = fmt.Errorf("pull %s of matrix %s: %w", id, name, err)
		}
	}()
	v, _, err = a.read(ctx, name, id, nil)
	if err != nil && !errors.Is(err, ErrMissingRows) {
		return nil, v, err
	}
	rows, bad, err := a.readRows(ctx, name, &v, progress)
	if err != nil {
		return nil, v, err
	}
	// It may have been pruned or evicted since the pull began.
	if _, _, err := a.read(ctx, name, id, nil); err != nil && !errors.Is(err, ErrMissingRows) {
		return nil, v, err
	}
	var errs []error
	if terms := slices.Sorted(maps.Keys(bad)); terms != nil {
		errs = append(errs, fmt.Errorf("%w: %s: %w", ErrBadRow, someOf(terms), bad[terms[0]]))
	}
	if err := v.checkFields(int64(len(rows) + len(bad) + 1 + v.chunks())); err != nil {
		if missing := missingTerms(&v, rows, bad); len(missing) > 0 {
			err = fmt.Errorf("%w; without a row: %s", err, someOf(missing))
		}
		errs = append(errs, fmt.Errorf("%w: %w", ErrBadVersion, err))
	}
	if errs != nil {
		return nil, v, errors.Join(errs...)
	}
	forms, err := a.scanForms(ctx, name, &v)
	if want := int(min(v.Forms, simmatrix.MaxTerms)); err == nil && len(forms) != want {
		err = fmt.Errorf("%w: %d forms of terms, want %d", ErrBadVersion, len(forms), want)
	}
	if err != nil {
		return nil, v, err
	}
	m, err = simmatrix.FromRows(v.Meta, rows, forms)
	if err != nil {
		return nil, v, fmt.Errorf("%w: %w", ErrBadVersion, err)
	}
	if m.Checksum() != v.Checksum {
		return nil, v, fmt.Errorf("%w: its checksum is %s, want %s", ErrBadVersion, m.Checksum(), v.Checksum)
	}
	return m, v, nil
}

// missingTerms returns the sorted terms that the header or a row mentions and
// that have no row.
func missingTerms(v *Version, rows map[string]simmatrix.Row, bad map[string]error) []string {
	missing := make(map[string]bool)
	note := func(term string) {
		if _, there := rows[term]; !there && bad[term] == nil {
			missing[term] = true
		}
	}
	for _, term := range v.Frequent {
		note(term)
	}
	for _, row := range rows {
		for n := range row.All() {
			note(n.Term)
		}
	}
	return slices.Sorted(maps.Keys(missing))
}

// readRows reads the rows of v, and returns the errors of bad rows by term.
func (a *Admin) readRows(
	ctx context.Context, name string, v *Version, progress simmatrix.Progress,
) (rows map[string]simmatrix.Row, bad map[string]error, err error) {
	total := int(min(v.Terms, simmatrix.MaxTerms))
	rows, bad = make(map[string]simmatrix.Row), make(map[string]error)
	err = a.scan(ctx, rowsKey(name, v.ID), total+v.chunks(), func(page []string) error {
		for pair := range slices.Chunk(page, 2) { // perhaps repeated
			term, sealed := pair[0], pair[1]
			if term == completeField || strings.HasPrefix(term, chunkField) {
				continue
			}
			if row, err := openRow(&a.codec, term, sealed); err != nil {
				bad[term] = err
			} else {
				rows[term] = row
			}
		}
		if len(rows)+len(bad) > total {
			return fmt.Errorf("%w: more than %d rows", ErrBadVersion, total)
		}
		progress.Report("pull", len(rows), total)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("after %d of %d rows: %w", len(rows), total, err)
	}
	return rows, bad, nil
}

// scanForms reads all forms of v, page by page.
func (a *Admin) scanForms(ctx context.Context, name string, v *Version) (map[string]string, error) {
	total := int(min(v.Forms, simmatrix.MaxTerms))
	if total == 0 {
		return nil, nil
	}
	forms := make(map[string]string)
	err := a.scan(ctx, formsKey(name, v.ID), total, func(page []string) error {
		for pair := range slices.Chunk(page, 2) {
			forms[pair[0]] = pair[1]
		}
		if len(forms) > total {
			return fmt.Errorf("%w: more than %d forms", ErrBadVersion, total)
		}
		return nil
	})
	return forms, err
}

// scan calls each, page by page, with the fields and values of a hash of about
// so many fields, and adapts the page length. A field may be repeated.
func (a *Admin) scan(ctx context.Context, key string, fields int, each func(page []string) error) error {
	count := int64(firstPage)
	bytes, seen := 0, 0
	var cursor uint64
	for range fields + 1000 { // every page has a field, except some while the hash is resized
		var page []string
		err := a.do(ctx, func(ctx context.Context) (err error) {
			page, cursor, err = a.client.HScan(ctx, key, cursor, "*", count).Result()
			return err
		})
		if err == nil && len(page)%2 != 0 {
			err = fmt.Errorf("%w: %d fields and values", errReply, len(page))
		}
		if err == nil {
			err = each(page)
		}
		if err != nil || cursor == 0 {
			return err
		}
		for _, text := range page {
			bytes += len(text)
		}
		seen += len(page) / 2
		count = int64(min(max(pageBytes*seen/max(bytes, 1), 1), maxPage))
	}
	return fmt.Errorf("%w: its fields do not end", ErrBadVersion)
}
