// Package simmatrix holds the term-similarity matrix S: its rows and its file
// format. Subpackages make, change and serve matrices.
//
// S is an n×n matrix over the index terms of a field, with s_ii = 1 and 0 <
// s_ij <= 1 for stored entries off the diagonal. Only those are stored, at most
// C per row, so a row is a list of neighbors of a term. S need not be
// symmetric: about half of the entries go only one way.
//
// The package reads from an io.Reader and writes to an io.Writer, without I/O.
package simmatrix

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"
)

// Errors that other errors wrap: those of [New], and of subpackages.
var (
	ErrInvalid      = errors.New("invalid similarity matrix")
	ErrMemory       = errors.New("not enough memory allowed")
	ErrNoVocabulary = errors.New("no term to learn from") // too rare, or begin with a digit
)

// checksumSize is the size of the checksum at the end of a file.
const checksumSize = sha256.Size

// A Matrix is the term-similarity matrix S. It is immutable and safe for
// concurrent use. An entry takes 6 bytes, 7 with origins.
type Matrix struct {
	table    Table
	checksum [checksumSize]byte // of the encoded file
}

// Table returns the matrix by term numbers, read-only.
func (m *Matrix) Table() *Table { return &m.table }

// Meta returns the description of the matrix.
func (m *Matrix) Meta() Meta {
	meta := m.table.Meta
	meta.Params, meta.Origins = maps.Clone(meta.Params), slices.Clone(meta.Origins)
	return meta
}

// Len returns the number of terms.
func (m *Matrix) Len() int { return len(m.table.Terms) }

// Checksum returns the SHA-256, in hexadecimal, at the end of the encoded file.
// Matrices with equal checksums have the same Meta and rows.
func (m *Matrix) Checksum() string { return hex.EncodeToString(m.checksum[:]) }

// Has reports whether the matrix has a row of the term.
func (m *Matrix) Has(term string) bool {
	_, ok := slices.BinarySearch(m.table.Terms, term)
	return ok
}

// Terms yields the terms in ascending byte order.
func (m *Matrix) Terms() iter.Seq[string] { return slices.Values(m.table.Terms) }

// Row returns the row of term, or the zero Row if the matrix lacks it.
func (m *Matrix) Row(term string) Row {
	i, ok := slices.BinarySearch(m.table.Terms, term)
	if !ok {
		return Row{}
	}
	return m.table.RowAt(i)
}

// Rows yields all terms with rows, in ascending byte order of the term.
func (m *Matrix) Rows() iter.Seq2[string, Row] {
	return func(yield func(string, Row) bool) {
		for i, t := range m.table.Terms {
			if !yield(t, m.table.RowAt(i)) {
				return
			}
		}
	}
}

// IDF returns the engines' inverse document frequency of a term in docFreq of
// docs,
//
//	ln(1 + (N − df + 0.5)/(df + 0.5)),
//
// with df limited to [1, N]; it is positive. Source: Lucene's BM25Similarity.
func IDF(docFreq, docs int64) float64 {
	df := float64(max(docFreq, 1))
	n := max(float64(docs), df)
	return math.Log1p((n - df + 0.5) / (df + 0.5))
}

// Names in [Meta] for overrides and sparsification.
const (
	OriginOverrides  = "overrides" // in [Meta.Origins]: entries set by overrides
	OverridesParam   = "overrides" // in [Meta.Params]: descriptions of the applied overrides
	MaxOverrideLines = 100_000     // in a file of overrides
	SparsifyPrefix   = "sparsify_" // begins names of settings in [Meta.Params]
)

// Form returns the form in which people write a term, "" if that is the term
// itself or unknown, with its note, see [SplitForm].
func (m *Matrix) Form(term string) string { return m.table.Form(term) }

// Written returns a term as people read it, see [Table.Written].
func (m *Matrix) Written(term string) string { return m.table.Written(term) }

// Forms yields terms that people write in other forms, with the form, in
// ascending byte order of the term.
func (m *Matrix) Forms() iter.Seq2[string, string] {
	return func(yield func(term, form string) bool) {
		for i, form := range m.table.Forms {
			if form != "" && !yield(m.table.Terms[i], form) {
				return
			}
		}
	}
}
