// Package simmatrix holds the term-similarity matrix S: its rows, and the file
// format that stores it. Packages below it make, change and serve matrices.
//
// S is an n×n matrix over the index terms of a field, with s_ii = 1 and 0 <
// s_ij <= 1 for the stored entries off the diagonal. Only those are kept, at
// most C of them in a row, so a row is a term's list of neighbors. It need not
// be symmetric: about half of the entries go one way only.
//
// The package is pure: it reads from an io.Reader and writes to an io.Writer,
// and knows nothing of clusters, Redis or files.
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

// Errors that others wrap: of [New], where the rows do not make a matrix, and
// of packages below.
var (
	ErrInvalid      = errors.New("invalid similarity matrix")
	ErrMemory       = errors.New("not enough memory allowed")
	ErrNoVocabulary = errors.New("no term to learn from") // there is none, or all are too rare or start with a digit
)

// checksumSize is that of the checksum at the end of a file.
const checksumSize = sha256.Size

// A Matrix is the term-similarity matrix S. It is immutable and safe for use by
// any number of goroutines. An entry takes 6 bytes, 7 with origins.
type Matrix struct {
	table    Table
	checksum [checksumSize]byte // of the encoded file
}

// Table returns the matrix by term numbers. It must not be modified.
func (m *Matrix) Table() *Table { return &m.table }

// Meta returns what the matrix is and what it was made from.
func (m *Matrix) Meta() Meta {
	meta := m.table.Meta
	meta.Params, meta.Origins = maps.Clone(meta.Params), slices.Clone(meta.Origins)
	return meta
}

// Len returns the number of terms.
func (m *Matrix) Len() int { return len(m.table.Terms) }

// Checksum returns the SHA-256 sum, in hexadecimal, that ends the encoded
// file. Two matrices with the same sum have the same Meta and the same rows.
func (m *Matrix) Checksum() string { return hex.EncodeToString(m.checksum[:]) }

// Terms yields the terms in ascending byte order.
func (m *Matrix) Terms() iter.Seq[string] { return slices.Values(m.table.Terms) }

// Row returns the row of term, the zero Row if the matrix lacks the term.
func (m *Matrix) Row(term string) Row {
	i, ok := slices.BinarySearch(m.table.Terms, term)
	if !ok {
		return Row{}
	}
	return m.table.RowAt(i)
}

// Rows yields all terms with their rows in ascending byte order of the term.
func (m *Matrix) Rows() iter.Seq2[string, Row] {
	return func(yield func(string, Row) bool) {
		for i, t := range m.table.Terms {
			if !yield(t, m.table.RowAt(i)) {
				return
			}
		}
	}
}

// IDF returns the engines' inverse document frequency of a term that occurs in
// docFreq of docs documents,
//
//	ln(1 + (N − df + 0.5)/(df + 0.5)),
//
// with df limited to [1, N]; it is positive. Source: Lucene's BM25Similarity.
func IDF(docFreq, docs int64) float64 {
	df := float64(max(docFreq, 1))
	n := max(float64(docs), df)
	return math.Log1p((n - df + 0.5) / (df + 0.5))
}

// What [Meta] says of overrides and of sparsification.
const (
	OriginOverrides  = "overrides" // names, in [Meta.Origins], the entries that overrides set
	OverridesParam   = "overrides" // names, in [Meta.Params], the descriptions of the overrides applied
	MaxOverrideLines = 100_000     // of a file of overrides
	SparsifyPrefix   = "sparsify_" // begins the names of the settings in [Meta.Params]
)

// Form returns the form in which people write a term, "" where that is the term
// itself or is not known.
func (m *Matrix) Form(term string) string { return m.table.Form(term) }

// Forms yields the terms that people write in another form, with that form, in
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
