package source

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/akin-search/akin/simmatrix"
)

// pairs collects the entries of a matrix in any order. Terms that it keeps are
// copied. An entry takes 12 bytes.
type pairs struct {
	ids      map[string]uint32
	terms    []string // by id
	docFreqs []uint32 // by id, 0 where unknown
	list     []pair
}

// A pair is s_ij of the terms with the ids row and col.
type pair struct {
	row, col uint32
	sim      uint16 // at least 1
	origins  uint8
}

func newPairs() *pairs { return &pairs{ids: make(map[string]uint32)} }

// term returns the id of t, a new one if it has none, or an error if t cannot
// have a row.
func (p *pairs) term(t string) (uint32, error) {
	if id, ok := p.ids[t]; ok {
		return id, nil
	}
	if err := simmatrix.CheckTerm(t); err != nil {
		return 0, err
	}
	if len(p.terms) == simmatrix.MaxTerms {
		return 0, fmt.Errorf("more than %d terms", simmatrix.MaxTerms)
	}
	id := uint32(len(p.terms)) //nolint:gosec // at most MaxTerms
	t = strings.Clone(t)
	p.ids[t] = id
	p.terms = append(p.terms, t)
	p.docFreqs = append(p.docFreqs, 0)
	return id, nil
}

// add adds s_ij in units of 1/65535. Units of 0 and a term's similarity to
// itself are ignored.
func (p *pairs) add(i, j uint32, units uint16, origins uint8) {
	if units > 0 && i != j {
		p.list = append(p.list, pair{row: i, col: j, sim: units, origins: origins})
	}
}

// matrix returns the matrix of the terms and pairs. Of a pair that was added
// more than once the largest similarity is kept, and all origins. A row keeps
// its neighbors largest entries, ties in ascending byte order of the term. Of
// meta only Source, Params, Origins and Docs are read. The pairs are used up.
func (p *pairs) matrix(meta simmatrix.Meta, neighbors int) (*simmatrix.Matrix, error) {
	if len(p.terms) == 0 {
		return nil, fmt.Errorf("%w: no term", simmatrix.ErrNoVocabulary)
	}
	order := make([]uint32, len(p.terms)) // ids in ascending byte order of the terms
	for id := range order {
		order[id] = uint32(id)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(p.terms[a], p.terms[b]) })
	position := make([]uint32, len(order))
	m := &simmatrix.Table{Meta: meta, Entries: simmatrix.NewEntries(len(order), len(meta.Origins) > 0)}
	for at, id := range order {
		position[id] = uint32(at)
		m.Terms = append(m.Terms, p.terms[id])
		m.DocFreqs = append(m.DocFreqs, p.docFreqs[id])
	}
	for k := range p.list {
		p.list[k].row, p.list[k].col = position[p.list[k].row], position[p.list[k].col]
	}
	slices.SortFunc(p.list, func(a, b pair) int { return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col)) })
	var row []simmatrix.Entry
	rest := p.list
	for i := range m.Terms {
		row = row[:0]
		for len(rest) > 0 && rest[0].row == uint32(i) {
			e := rest[0]
			if last := len(row) - 1; last >= 0 && row[last].Col == e.col {
				row[last].Units = max(row[last].Units, e.sim)
				row[last].Origins |= e.origins
			} else {
				row = append(row, simmatrix.Entry{Col: e.col, Units: e.sim, Origins: e.origins})
			}
			rest = rest[1:]
		}
		slices.SortFunc(row, simmatrix.CompareEntries)
		m.AppendRow(row[:min(len(row), neighbors)])
	}
	p.list = nil
	return m.Matrix()
}

// Errors of [units].
var (
	errNotFinite  = errors.New("similarity is no finite number")
	errOutOfRange = errors.New("similarity is not in [0, 1]")
)

// units returns a similarity read from a file in units of 1/65535, rounded to
// the nearest: unlike [simmatrix.QuantizeSimilarity] it returns 0 below half a
// unit. With clamp a negative one counts as 0 and one above 1 as 1, without it
// they are errors. A value that is not finite is always an error.
func units(s float64, clamp bool) (uint16, error) {
	switch {
	case math.IsNaN(s) || math.IsInf(s, 0):
		return 0, errNotFinite
	case (s < 0 || s > 1) && !clamp:
		return 0, errOutOfRange
	default:
		return uint16(math.Round(min(max(s, 0), 1) * simmatrix.UnitsOfOne)), nil
	}
}
