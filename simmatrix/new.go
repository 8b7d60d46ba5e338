package simmatrix

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// A Term is a term with a row.
type Term struct {
	Text    string
	DocFreq uint32 // number of documents with it, 0 if unknown
}

// A TermRow is a row for [New].
type TermRow struct {
	Term      string     `json:"term"`      // index term i
	DocFreq   uint32     `json:"doc_freq"`  // number of documents with it, 0 if unknown
	Form      string     `json:"form"`      // see [Table.Forms]
	Neighbors []Neighbor `json:"neighbors"` // s_ij, unordered; DocFreq is ignored: it comes from the neighbor's own row
}

// New returns the matrix with the given rows, in any order, and similarities
// rounded by [QuantizeSimilarity]. It uses only Source, Params, Origins and
// Docs of meta, and only forms that [CheckForm] allows. The error wraps
// [ErrInvalid] if a term is empty, not UTF-8, longer than [MaxTermBytes] or
// repeated, or if a row has more than [MaxNeighbors] neighbors, a repeated one,
// its own term, a term without a row, a similarity not in (0, 1], or origins
// that Meta.Origins does not name.
func New(meta Meta, rows []TermRow) (*Matrix, error) {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b TermRow) int { return cmp.Compare(a.Term, b.Term) })
	t := &Table{Meta: meta, Entries: NewEntries(len(rows), 0, len(meta.Origins) > 0)}
	for _, r := range rows {
		t.Terms, t.DocFreqs = append(t.Terms, strings.Clone(r.Term)), append(t.DocFreqs, r.DocFreq)
	}
	t.TakeForms(func(i int) string { return rows[i].Form })
	return t.fill(func(i int) iter.Seq[Neighbor] { return slices.Values(rows[i].Neighbors) }, false)
}

// FromRows returns the matrix with the given rows and forms by term, as
// [Matrix.Rows] yields them. It needs less memory than [New], because neighbors
// stay packed: that of the matrix and some 40 bytes per row. Errors are those
// of New, and one if a row disagrees with a neighbor's own row on its document
// frequency.
func FromRows(meta Meta, rows map[string]Row, forms map[string]string) (*Matrix, error) {
	t := &Table{Meta: meta}
	nonZeros := 0
	for _, term := range slices.Sorted(maps.Keys(rows)) {
		t.Terms, t.DocFreqs = append(t.Terms, strings.Clone(term)), append(t.DocFreqs, rows[term].DocFreq())
		nonZeros += rows[term].Len()
	}
	t.Entries = NewEntries(len(rows), nonZeros, len(meta.Origins) > 0)
	t.TakeForms(func(i int) string { return forms[t.Terms[i]] })
	return t.fill(func(i int) iter.Seq[Neighbor] { return rows[t.Terms[i]].All() }, true)
}

func (t *Table) fill(neighbors func(i int) iter.Seq[Neighbor], sameDocFreqs bool) (*Matrix, error) {
	index := make(map[string]uint32, len(t.Terms))
	for i, term := range t.Terms {
		index[term] = uint32(i)
	}
	var row []Entry
	for i, term := range t.Terms {
		row = row[:0]
		for n := range neighbors(i) {
			col, ok := index[n.Term]
			switch {
			case !ok:
				return nil, fmt.Errorf("%w: neighbor %q of %q has no row", ErrInvalid, n.Term, term)
			case !(n.Similarity > 0 && n.Similarity <= 1): // so written that NaN fails
				return nil, fmt.Errorf("%w: similarity %v of %q and %q not in (0, 1]", ErrInvalid, n.Similarity, term, n.Term)
			case sameDocFreqs && n.DocFreq != t.DocFreqs[col]:
				return nil, fmt.Errorf("%w: neighbor %q of %q has the document frequency %d, in its own row %d",
					ErrInvalid, n.Term, term, n.DocFreq, t.DocFreqs[col])
			case n.Origins != 0 && t.Origins == nil:
				return nil, fmt.Errorf("%w: %q and %q have origins %b, and none is named", ErrInvalid, term, n.Term, n.Origins)
			}
			row = append(row, Entry{Col: col, Units: ToUnits(float64(n.Similarity)), Origins: n.Origins})
		}
		t.AppendRow(row)
	}
	return t.Matrix()
}

// Matrix returns the matrix of the table, which must not change any more. It
// uses only Source, Params, Origins and Docs of Meta. Errors are those of
// [New], and errors for terms and entries out of order.
func (t *Table) Matrix() (*Matrix, error) {
	m := &Matrix{table: *t}
	if err := m.table.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	m.table.Meta = m.table.describe()
	h := sha256.New()
	if err := m.table.write(h); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	h.Sum(m.checksum[:0])
	return m, nil
}
