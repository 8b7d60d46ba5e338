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
)

// diagonalTolerance is the allowed difference of a term's similarity to itself
// from 1: the rounding error of 16-bit floats.
const diagonalTolerance = 1e-3

// similarityDigits are the decimals of a written similarity, enough for all
// multiples of 1/65535.
const similarityDigits = 6

// add adds the similarity of a line. That of a term to itself must be about 1.
func (p *pairs) add(row, col uint32, s float64) error {
	switch {
	case row == col && math.Abs(s-1) > diagonalTolerance:
		return fmt.Errorf("similarity of %.40q to itself: %v, want 1", p.terms[row], s)
	case row == col:
		return nil
	case s < 0 || s > 1:
		return fmt.Errorf("similarity is not in [0, 1]: %v", s)
	}
	u := units(s)
	if before, again := p.rows[row][col]; again && before != u {
		return fmt.Errorf("the similarity of %.40q and %.40q was given before", p.terms[row], p.terms[col])
	}
	p.keep(row, col, u)
	return nil
}

// units returns a similarity in units of 1/65535, or 0.
func units(s float64) uint16 { return uint16(math.Round(s * simmatrix.UnitsOfOne)) }

func checkPlain(term string) error {
	if strings.ContainsAny(term, "\t\r\n") {
		return fmt.Errorf("term %.40q holds a tab or an end of line", term)
	}
	return nil
}

// ReadTSV reads a list of similarities, plain or gzip-compressed: lines of
//
//	term TAB neighbor TAB similarity
//
// in UTF-8, in any order. Every term gets a row. Words with blanks between them
// are an expression, with _ for a position without a term; a blank behind a
// backslash belongs to a term. The similarity is a decimal
// number in [0, 1]; one that rounds to 0 units of 1/65535 makes no entry, nor
// does a term's similarity to itself, which must be 1, within 0.001. A pair may
// be repeated with the same similarity. Empty lines and a byte order mark are
// ignored. Document frequencies are unknown. A row keeps its largest
// [simmatrix.MaxNeighbors]. The source becomes Meta.Source: in words, the
// origin of the matrix.
//
// Errors wrap [ErrList] and name the line, or are [simmatrix.ErrNoVocabulary].
func ReadTSV(r io.Reader, source string) (*simmatrix.Matrix, error) {
	p := newPairs()
	_, err := lines.Each(r, func(line []byte, _ int) error {
		if len(line) == 0 {
			return nil
		}
		return p.addLine(line)
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrList, err)
	}
	return p.matrix(simmatrix.Meta{Source: source, Params: map[string]string{"neighbors": strconv.Itoa(simmatrix.MaxNeighbors)}}, simmatrix.MaxNeighbors)
}

func (p *pairs) addLine(line []byte) error {
	if bytes.Count(line, []byte("\t")) != 2 {
		return errors.New("want a term, its neighbor and their similarity, separated by two tabs")
	}
	term, rest, _ := bytes.Cut(line, []byte("\t"))
	neighbor, similarity, _ := bytes.Cut(rest, []byte("\t"))
	var ids [2]uint32
	for k, t := range [][]byte{term, neighbor} {
		id, known := p.ids[string(t)]
		ids[k] = id
		if known {
			continue
		}
		err := checkPlain(string(t))
		if err == nil {
			ids[k], err = p.term(unspell(string(t)))
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
	return p.add(ids[0], ids[1], s)
}

// unspell returns the term of a list for its text: an expression for several
// words that can be one.
func unspell(text string) string {
	if simmatrix.IsExpression(text) || !strings.Contains(text, " ") {
		return text
	}
	const inside = "\x00" // stands for a blank of a term
	var terms []string
	var positions []int
	for k, word := range strings.FieldsFunc(strings.ReplaceAll(text, `\ `, inside), func(r rune) bool { return r == ' ' }) {
		if word != "_" {
			terms, positions = append(terms, strings.ReplaceAll(word, inside, " ")), append(positions, k)
		}
	}
	if len(terms) == 1 {
		return terms[0]
	}
	if expression, err := simmatrix.Expression(terms, positions); err == nil {
		return expression
	}
	return text
}

// spell returns a text that unspell reads as the term.
func spell(term string) string {
	text := simmatrix.Spelled(term)
	if !simmatrix.IsExpression(term) {
		text = strings.ReplaceAll(term, " ", `\ `)
	}
	if unspell(text) != term { // it has odd characters
		return term
	}
	return text
}

// WriteTSV writes m for [ReadTSV], terms ascending, with six decimals, so that
// reading restores the rows. It loses terms without neighbors in either
// direction, document frequencies, origins and Meta. The error wraps [ErrList]
// for a term with a tab or an end of line, or one that would be read as
// another.
func WriteTSV(w io.Writer, matrix *simmatrix.Matrix) error {
	m, b := matrix.Table(), bufio.NewWriter(w)
	texts := make([]string, len(m.Terms))
	for k, term := range m.Terms {
		texts[k] = spell(term)
		err := checkPlain(term)
		if err == nil && unspell(texts[k]) != term {
			err = fmt.Errorf("term %.40q would be read as another", term)
		}
		if err != nil {
			return fmt.Errorf("%w: %w and cannot be written", ErrList, err)
		}
	}
	for i, term := range m.Terms {
		cols, sims := m.Row(i)
		for k, col := range cols {
			if k == 0 && m.Offsets[i] == 0 && strings.HasPrefix(term, lines.ByteOrderMark) {
				_, _ = b.WriteString(lines.ByteOrderMark) // readers remove the first one
			}
			_, err := fmt.Fprintf(b, "%s\t%s\t%.*f\n", texts[i], texts[col], similarityDigits, float64(sims[k])/simmatrix.UnitsOfOne)
			if err != nil {
				return err
			}
		}
	}
	return b.Flush()
}

// pairs collects the entries of a matrix in any order.
type pairs struct {
	ids   map[string]uint32
	terms []string            // by id
	rows  []map[uint32]uint16 // s_ij in units, by the ids of i and j; nil for none
}

func newPairs() *pairs { return &pairs{ids: make(map[string]uint32)} }

// keep keeps s_ij of two terms, of several the largest. 0 makes no entry.
func (p *pairs) keep(i, j uint32, units uint16) {
	if p.rows[i] == nil {
		p.rows[i] = make(map[uint32]uint16)
	}
	p.rows[i][j] = max(p.rows[i][j], units)
}

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
	p.rows = append(p.rows, nil)
	return id, nil
}

// matrix returns the matrix of the terms and pairs, which it consumes. A row
// keeps its neighbors largest entries, ties in ascending byte order of the
// term.
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
	m := &simmatrix.Table{Meta: meta, DocFreqs: make([]uint32, len(order)), Entries: simmatrix.NewEntries(len(order), 0, false)}
	for at, id := range order {
		position[id] = uint32(at)
		m.Terms = append(m.Terms, p.terms[id])
	}
	var row []simmatrix.Entry
	for _, id := range order {
		row = row[:0]
		for col, units := range p.rows[id] {
			if units > 0 {
				row = append(row, simmatrix.Entry{Col: position[col], Units: units})
			}
		}
		slices.SortFunc(row, simmatrix.CompareEntries)
		m.AppendRow(row[:min(len(row), neighbors)])
		p.rows[id] = nil
	}
	return m.Matrix()
}
