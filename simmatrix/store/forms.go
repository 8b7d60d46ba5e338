package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/akin-search/akin/simmatrix"
)

// maxForms limits the terms whose forms are read at once.
const maxForms = 512

// Forms returns how people write terms, and the notes on them (see
// [simmatrix.WithNote]), by term, for the first 512 terms; others are written
// as they are, or unknown. version is a [Rows.Version]. From Redis it takes one
// round trip within the timeout of a look-up, and returns nothing if that
// fails: call it only for display.
func (s *Store) Forms(ctx context.Context, version string, terms []string) (words, notes map[string]string) {
	name, id, _ := strings.Cut(version, "@")
	terms = terms[:min(len(terms), maxForms)]
	s.mu.Lock()
	m := s.matrices[name]
	var inMemory *simmatrix.Matrix
	if m != nil && m.rows != nil {
		inMemory = m.rows.version.inMemory
	}
	s.mu.Unlock()
	words, notes = map[string]string{}, map[string]string{}
	add := func(term, form string) {
		word, note := simmatrix.SplitForm(form)
		if word != "" {
			words[term] = word
		}
		if note != "" {
			notes[term] = note
		}
	}
	switch {
	case inMemory != nil:
		for _, term := range terms {
			add(term, inMemory.Form(term))
		}
		return words, notes
	case m == nil || s.remote == nil || len(terms) == 0 || checkName("version", id) != nil:
		return nil, nil
	}
	// The breaker is only for searches.
	ctx, cancel := context.WithTimeout(ctx, s.remote.timeout)
	defer cancel()
	args := []any{"hmget", formsKey(name, id)}
	for _, term := range terms {
		args = append(args, term)
	}
	values, err := s.remote.client.Do(ctx, args...).Slice() // the library's HMGet trusts the length of the answer
	if err != nil || len(values) != len(terms) {
		return nil, nil // show terms as they are
	}
	for k, term := range terms {
		if form, _ := values[k].(string); simmatrix.CheckForm(form) == nil {
			add(term, form)
		}
	}
	return words, notes
}

// AllForms returns all forms of a version by term, see
// [simmatrix.Table.Forms], read page by page, without lost or damaged ones.
func (a *Admin) AllForms(ctx context.Context, name, version string) (map[string]string, error) {
	if err := errors.Join(checkName("matrix", name), checkName("version", version)); err != nil {
		return nil, err
	}
	v, _, err := a.read(ctx, name, version, nil)
	var forms map[string]string
	if err == nil {
		forms, err = a.scanForms(ctx, name, &v)
	}
	if err != nil {
		return nil, fmt.Errorf("forms of %s of matrix %s: %w", version, name, err)
	}
	maps.DeleteFunc(forms, func(_, form string) bool { return simmatrix.CheckForm(form) != nil })
	return forms, nil
}
