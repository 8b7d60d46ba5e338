package source

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// diagonalTolerance is how far a term's similarity to itself may be from 1: the
// rounding error of 16-bit floats.
const diagonalTolerance = 1e-3

// similarityDigits are the decimals of a written similarity, enough to
// distinguish all multiples of 1/65535.
const similarityDigits = 6

// minCompact is how many pairs are read before repeats are dropped.
const minCompact = 1 << 16

// ListOptions are the settings of [ReadTSV].
type ListOptions struct {
	Source    string // becomes Meta.Source: in words, where the matrix comes from
	Symmetric bool   // each line counts both ways; a file may have a pair both ways, with one similarity
	Clamp     bool   // a similarity under 0 counts as 0, one above 1 as 1, and not as an error
	Neighbors int    // C, the most neighbors of a term, its largest, 1 to [simmatrix.MaxNeighbors]
}

// DefaultListOptions returns the settings that take a matrix as it is.
func DefaultListOptions() ListOptions {
	return ListOptions{Source: "given", Neighbors: simmatrix.MaxNeighbors}
}

// A list collects the similarities of a file.
type list struct {
	*pairs
	opts     ListOptions
	distinct int // number of pairs after repeats were last dropped
}

// add adds a similarity. One of a term to itself has to be about 1.
func (g *list) add(row, col uint32, s float64, line int, symmetric bool) error {
	u, err := units(s, g.opts.Clamp)
	switch {
	case errors.Is(err, errOutOfRange) && row == col: // an error only if s is not 1, see below
	case err != nil:
		return fmt.Errorf("%w: %v", err, s)
	case line > math.MaxInt32:
		return fmt.Errorf("more than %d lines", math.MaxInt32)
	}
	if row == col {
		if math.Abs(s-1) > diagonalTolerance {
			return fmt.Errorf("similarity of %.40q to itself: %v, want 1", g.terms[row], s)
		}
		u = simmatrix.UnitsOfOne
	}
	e := pair{row: row, col: col, line: uint32(line), units: u} //nolint:gosec // at most MaxInt32
	g.list = append(g.list, e)
	if symmetric && row != col {
		e.row, e.col = col, row
		g.list = append(g.list, e)
	}
	return nil
}

// compact sorts the list and drops repeats. One with another similarity is an
// error that names its line.
func (g *list) compact() error {
	slices.SortFunc(g.list, comparePairs)
	var bad pair // the one with the smallest line number
	kept := g.list[:0]
	for _, e := range g.list {
		last := len(kept) - 1
		if last < 0 || kept[last].row != e.row || kept[last].col != e.col {
			kept = append(kept, e)
			continue
		}
		if kept[last].units != e.units && (bad.line == 0 || e.line < bad.line) {
			bad = e
		}
	}
	g.list, g.distinct = kept, len(kept)
	if bad.line > 0 {
		return &lines.Error{Line: int(bad.line), Err: fmt.Errorf("the similarity of %.40q and %.40q was given before",
			g.terms[bad.row], g.terms[bad.col])}
	}
	return nil
}

func checkPlain(term string) error {
	if strings.ContainsAny(term, "\t\r\n") {
		return fmt.Errorf("term %.40q holds a tab or an end of line", term)
	}
	return nil
}

// ReadTSV reads a list of similarities, plain or compressed by gzip: lines of
//
//	term TAB neighbor TAB similarity
//
// in UTF-8, in any order. Every term gets a row. The similarity is a decimal
// number in [0, 1]; one that rounds to 0 units of 1/65535 makes no entry, nor
// does a term's similarity to itself, which has to be 1, within 0.001. A pair
// may come again with the same similarity. Empty lines and a byte order mark
// are ignored. Document frequencies are unknown.
//
// Errors wrap [ErrList] and name the line, or are [simmatrix.ErrNoVocabulary].
func ReadTSV(r io.Reader, opts ListOptions) (*simmatrix.Matrix, error) {
	if err := settings.InRange("neighbors", opts.Neighbors, simmatrix.MaxNeighbors); err != nil {
		return nil, err
	}
	g := &list{opts: opts, pairs: newPairs()}
	_, err := lines.Each(r, func(line []byte, number int) error {
		if len(line) == 0 {
			return nil
		}
		if err := g.addLine(line, number); err != nil || len(g.list) < max(2*g.distinct, minCompact) {
			return err
		}
		return g.compact() // the list has doubled since the last time
	})
	if err == nil {
		err = g.compact()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrList, err)
	}
	return g.matrix(simmatrix.Meta{Source: opts.Source, Params: map[string]string{
		"clamp": strconv.FormatBool(opts.Clamp), "neighbors": strconv.Itoa(opts.Neighbors), "symmetric": strconv.FormatBool(opts.Symmetric),
	}}, opts.Neighbors)
}

func (g *list) addLine(line []byte, number int) error {
	if bytes.Count(line, []byte("\t")) != 2 {
		return errors.New("want a term, its neighbor and their similarity, separated by two tabs")
	}
	term, rest, _ := bytes.Cut(line, []byte("\t"))
	neighbor, similarity, _ := bytes.Cut(rest, []byte("\t"))
	var ids [2]uint32
	for k, t := range [][]byte{term, neighbor} {
		id, known := g.ids[string(t)]
		if ids[k] = id; known {
			continue
		}
		err := checkPlain(string(t))
		if err == nil {
			ids[k], err = g.term(string(t))
		}
		if err != nil {
			return err
		}
	}
	field := strings.Trim(string(similarity), " ")
	s, ok := lines.ParseDecimal(field, 64)
	if !ok {
		return notDecimal(field)
	}
	return g.add(ids[0], ids[1], s, number, g.opts.Symmetric)
}

// WriteTSV writes m as [ReadTSV] reads it, terms ascending, with six decimals,
// so that reading gives the same rows again. Terms without any neighbor either
// way, document frequencies, origins and Meta are lost. The error wraps
// [ErrList] for a term with a tab or an end of line.
func WriteTSV(w io.Writer, matrix *simmatrix.Matrix) error {
	m, b := matrix.Table(), bufio.NewWriter(w)
	for _, term := range m.Terms {
		if err := checkPlain(term); err != nil {
			return fmt.Errorf("%w: %w and cannot be written", ErrList, err)
		}
	}
	for i, term := range m.Terms {
		cols, sims := m.Row(i)
		for k, col := range cols {
			if k == 0 && m.Offsets[i] == 0 && strings.HasPrefix(term, lines.ByteOrderMark) {
				_, _ = b.WriteString(lines.ByteOrderMark) // readers remove the first one
			}
			_, err := fmt.Fprintf(b, "%s\t%s\t%.*f\n", term, m.Terms[col], similarityDigits, float64(sims[k])/simmatrix.UnitsOfOne)
			if err != nil {
				return err
			}
		}
	}
	return b.Flush()
}

// pairs collects the entries of a matrix in any order, at 16 bytes each.
type pairs struct {
	ids      map[string]uint32
	terms    []string // by id
	docFreqs []uint32 // by id, 0 where unknown
	list     []pair
}

// A pair is s_ij of the terms with the ids row and col. No entry is made of 0
// units or of a term with itself.
type pair struct {
	row, col, line uint32 // line 0 is none
	units          uint16
}

func comparePairs(a, b pair) int {
	return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col), cmp.Compare(a.line, b.line))
}

func newPairs() *pairs { return &pairs{ids: make(map[string]uint32)} }

// term returns the id of t, or an error if t cannot have a row.
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

// matrix returns the matrix of the terms and pairs, which are used up. Of a
// pair that comes more than once the largest similarity is kept. A row keeps
// its neighbors largest entries, ties in ascending byte order of the term.
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
	m := &simmatrix.Table{Meta: meta, Entries: simmatrix.NewEntries(len(order), 0, false)}
	for at, id := range order {
		position[id] = uint32(at)
		m.Terms = append(m.Terms, p.terms[id])
		m.DocFreqs = append(m.DocFreqs, p.docFreqs[id])
	}
	for k := range p.list {
		p.list[k].row, p.list[k].col = position[p.list[k].row], position[p.list[k].col]
	}
	slices.SortFunc(p.list, comparePairs)
	var row []simmatrix.Entry
	rest := p.list
	for i := range m.Terms {
		row = row[:0]
		for ; len(rest) > 0 && rest[0].row == uint32(i); rest = rest[1:] {
			e, last := rest[0], len(row)-1
			switch {
			case e.units == 0 || e.row == e.col:
			case last >= 0 && row[last].Col == e.col:
				row[last].Units = max(row[last].Units, e.units)
			default:
				row = append(row, simmatrix.Entry{Col: e.col, Units: e.units})
			}
		}
		slices.SortFunc(row, simmatrix.CompareEntries)
		m.AppendRow(row[:min(len(row), neighbors)])
	}
	p.list = nil
	return m.Matrix()
}

var (
	errNotFinite  = errors.New("similarity is no finite number")
	errOutOfRange = errors.New("similarity is not in [0, 1]")
)

// units returns a similarity read from a file in units of 1/65535, rounded to
// the nearest, which may be 0. With clamp one under 0 counts as 0 and one above
// 1 as 1, without it they are errors, as one that is not finite always is.
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
