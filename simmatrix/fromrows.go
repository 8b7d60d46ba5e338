package simmatrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// FromRows returns the matrix that has the given rows by term, as
// [Matrix.Rows] yields them. Of meta only Source, Params, Origins and Docs are
// read; the rest is counted.
//
// It takes less memory than [New], since the neighbors stay packed: what the
// matrix takes and some 40 bytes a row. Errors are those of New, and one where
// a row has another document frequency for a neighbor than that neighbor's own
// row.
func FromRows(meta Meta, rows map[string]Row) (*Matrix, error) {
	terms := slices.Sorted(maps.Keys(rows))
	m := &Table{Meta: meta, Entries: NewEntries(len(terms), len(meta.Origins) > 0)}
	index := make(map[string]uint32, len(terms))
	nonZeros := 0
	for i, term := range terms {
		index[term] = uint32(i)
		m.Terms = append(m.Terms, strings.Clone(term))
		m.DocFreqs = append(m.DocFreqs, rows[term].DocFreq())
		nonZeros += rows[term].Len()
	}
	m.Cols, m.Sims = make([]uint32, 0, nonZeros), make([]uint16, 0, nonZeros)
	var row []Entry
	for _, term := range m.Terms {
		row = row[:0]
		for n := range rows[term].All() {
			col, ok := index[n.Term]
			switch {
			case !ok:
				return nil, fmt.Errorf("%w: neighbor %q of %q has no row", ErrInvalid, n.Term, term)
			case n.DocFreq != m.DocFreqs[col]:
				return nil, fmt.Errorf("%w: neighbor %q of %q has the document frequency %d, in its own row %d",
					ErrInvalid, n.Term, term, n.DocFreq, m.DocFreqs[col])
			case n.Origins != 0 && m.Origins == nil:
				return nil, fmt.Errorf("%w: %q and %q have origins %b, and none is named", ErrInvalid, term, n.Term, n.Origins)
			}
			row = append(row, Entry{Col: col, Units: ToUnits(float64(n.Similarity)), Origins: n.Origins})
		}
		m.AppendRow(row)
	}
	return m.Matrix()
}
