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
// matrix takes and some 40 bytes a row. Errors are those of New; one is also
// returned where a row tells another document frequency of a neighbor than
// that neighbor's own row.
func FromRows(meta Meta, rows map[string]Row) (*Matrix, error) {
	terms := slices.Sorted(maps.Keys(rows))
	m := &Matrix{meta: meta, entries: newEntries(len(terms), len(meta.Origins) > 0)}
	index := make(map[string]uint32, len(terms))
	nonZeros := 0
	for i, term := range terms {
		index[term] = uint32(i)
		m.terms = append(m.terms, strings.Clone(term))
		m.docFreqs = append(m.docFreqs, rows[term].DocFreq())
		nonZeros += rows[term].Len()
	}
	m.cols, m.sims = make([]uint32, 0, nonZeros), make([]uint16, 0, nonZeros)
	var row []entry
	for _, term := range m.terms {
		row = row[:0]
		for n := range rows[term].All() {
			col, ok := index[n.Term]
			switch {
			case !ok:
				return nil, fmt.Errorf("%w: neighbor %q of %q has no row", ErrInvalid, n.Term, term)
			case n.DocFreq != m.docFreqs[col]:
				return nil, fmt.Errorf("%w: neighbor %q of %q has the document frequency %d, in its own row %d",
					ErrInvalid, n.Term, term, n.DocFreq, m.docFreqs[col])
			case n.Origins != 0 && m.origins == nil:
				return nil, fmt.Errorf("%w: %q and %q have origins %b, and none is named", ErrInvalid, term, n.Term, n.Origins)
			}
			row = append(row, entry{col: col, sim: similarityToUnits(float64(n.Similarity)), origins: n.Origins})
		}
		m.appendRow(row)
	}
	if err := m.finish(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return m, nil
}
