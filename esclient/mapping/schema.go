package mapping

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// Errors that mean "leave this field alone", not "something is broken".
var (
	// ErrNotText says that the field is not mapped as searchable text in every
	// index that maps it, or is mapped in none.
	ErrNotText = errors.New("not a text field")
	// ErrMixed says that the indices treat the field differently: other
	// analyzers or other similarities.
	ErrMixed = errors.New("the indices analyze or score the field differently")
)

// A Similarity is a kind of scoring that a field is mapped with.
type Similarity uint8

// The similarities.
const (
	// BM25 multiplies idf in once.
	BM25 Similarity = iota
	// Boolean scores every term with its boost.
	Boolean
	// Other is one whose formula is not known: DFR, IB, language models,
	// scripted ones.
	Other
)

// defaultK1 is the k1 of the BM25 of both engines where a mapping sets none.
const defaultK1 = 1.2

// A Schema is what the indices of an expression say of a field that all of them
// that map it treat alike. It is shared and, Unvectored apart, not modified.
type Schema struct {
	// Targets are the concrete indices that map the field, by name, at least
	// one.
	Targets []Target
	// Nested is the path of the innermost nested object above the field, "" if
	// there is none.
	Nested string
	Analyzers
	Scoring
	// SearchAnalyzers is the name of the search analyzer; where the indices call
	// it by several names, all of these with the names of the indices.
	SearchAnalyzers string
	// NotWords names what in the analyzers makes other terms than words.
	NotWords string
	// Shards is the number of primary shards of the targets.
	Shards int
	// Routed says that an alias may send a search to some of them only, and
	// Filtered that an alias of the expression has a filter.
	Routed, Filtered bool
	// differing names the analyzers that are not defined alike in all targets.
	differing map[string]bool
	// Unvectored says that the cluster refused to count the field's terms by
	// _termvectors.
	Unvectored atomic.Bool
}

// A Target is a concrete index that maps the field of a [Schema].
type Target struct {
	Index  string
	Shards int
	// Source is the path that a document has the field's text under; it is
	// the parent field's for a multi-field.
	Source string
	// AliasOf is the full name of the field that an alias stands for, "" where
	// the name asked for is the field's own.
	AliasOf string
}

// Bytes returns about what a schema takes.
func (s *Schema) Bytes() int {
	n := 128
	if s == nil {
		return n
	}
	n += len(s.SearchAnalyzers)
	for _, t := range s.Targets {
		n += 80 + len(t.Index) + len(t.Source) + len(t.AliasOf)
	}
	for name := range s.differing {
		n += 32 + len(name)
	}
	return n
}

// Analyzer returns the name of the analyzer that a clause analyzes its text
// with, named being the one that the clause asks for. It returns [ErrMixed] if
// the indices define that one differently.
func (s *Schema) Analyzer(named string) (string, error) {
	if named == "" {
		return s.SearchAnalyzer, nil
	}
	if s.differing[named] {
		return "", fmt.Errorf("analyzer %q: %w", named, ErrMixed)
	}
	return named, nil
}

// Merge returns the schema of a field from what its indices say of it. It
// returns [ErrMixed] where they differ in what a search sees.
func Merge(fields []Field) (*Schema, error) {
	first := &fields[0]
	s := &Schema{
		Nested: first.Nested, Analyzers: first.Analyzers, Scoring: first.Scoring,
		SearchAnalyzers: searchAnalyzers(fields),
		NotWords:        cmp.Or(first.Settings.NotWords(first.IndexAnalyzer), first.Settings.NotWords(first.SearchAnalyzer)),
		differing:       map[string]bool{},
	}
	analysis, treatment := first.Settings.section(analysisPrefix), first.Treatment()
	for i := range fields {
		f := &fields[i]
		if f.Treatment() != treatment {
			return nil, fmt.Errorf("indices %q and %q: %w", first.Index, f.Index, ErrMixed)
		}
		s.Shards += f.Shards
		s.Targets = append(s.Targets, Target{f.Index, f.Shards, f.Source, f.AliasOf})
		if f.Settings.section(analysisPrefix) == analysis {
			continue
		}
		for _, name := range slices.Concat(first.Settings.analyzers(), f.Settings.analyzers()) {
			if first.Settings.Definition(name) != f.Settings.Definition(name) {
				s.differing[name] = true
			}
		}
	}
	return s, nil
}

// searchAnalyzers returns the name that the search analyzer has in all indices,
// or where they call it by several, those with the indices.
func searchAnalyzers(fields []Field) string {
	name := fields[0].SearchAnalyzer
	if !slices.ContainsFunc(fields, func(f Field) bool { return f.SearchAnalyzer != name }) {
		return name
	}
	var b strings.Builder
	for i := range fields {
		b.WriteString(fields[i].Index + ":" + fields[i].SearchAnalyzer + ",")
	}
	return b.String()
}
