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

// ErrList is wrapped by the errors of [ReadTSV] and [ReadMatrixMarket] that
// are the file's fault. They name the line.
var ErrList = errors.New("bad list of similarities")

// ErrVocabulary is also wrapped by the errors of [ReadMatrixMarket] about the
// vocabulary.
var ErrVocabulary = errors.New("vocabulary")

// ListOptions are the settings of [ReadTSV] and [ReadMatrixMarket].
type ListOptions struct {
	// Source becomes Meta.Source: in words, where the matrix comes from.
	Source string
	// Symmetric makes each line count both ways: s_ji = s_ij. A file may then
	// hold a pair both ways, with one similarity.
	Symmetric bool
	// Clamp takes a similarity under 0 as 0 and one above 1 as 1. Without it
	// they are errors.
	Clamp bool
	// Neighbors is C, the largest number of neighbors of a term, 1 to
	// [simmatrix.MaxNeighbors]. A row keeps the largest.
	Neighbors int
}

// DefaultListOptions returns the settings that take a matrix as it is:
// Neighbors [simmatrix.MaxNeighbors], each line one way, no clamping.
func DefaultListOptions() ListOptions {
	return ListOptions{Source: "given", Neighbors: simmatrix.MaxNeighbors}
}

// Validate reports every setting that is out of range.
func (o *ListOptions) Validate() error {
	return settings.InRange("neighbors", o.Neighbors, simmatrix.MaxNeighbors)
}

// minCompact is how many similarities are read before repeats are first
// dropped.
const minCompact = 1 << 16

// list collects the similarities of a file with their line numbers.
type list struct {
	opts     ListOptions
	pairs    *pairs
	entries  []listEntry
	unique   bool // a repeated pair is an error, even with the same similarity
	distinct int  // number of entries after repeats were last dropped
}

// A listEntry is s_ij of the terms with the ids row and col.
type listEntry struct {
	row, col, line uint32
	units          uint16 // 0 where the file says so
}

func newList(opts ListOptions) *list { return &list{opts: opts, pairs: newPairs()} }

// add adds a similarity. The diagonal is implied: an entry of 1, within
// diagonalTolerance, is ignored.
func (g *list) add(row, col uint32, s float64, line int, symmetric bool) error {
	u, err := units(s, g.opts.Clamp)
	switch {
	case errors.Is(err, errOutOfRange) && row == col:
		u = 0 // an error only if s is not 1, see below
	case err != nil:
		return fmt.Errorf("%w: %v", err, s)
	case line > math.MaxInt32:
		return fmt.Errorf("more than %d lines", math.MaxInt32)
	}
	if row == col {
		if math.Abs(s-1) > diagonalTolerance {
			return fmt.Errorf("similarity of %.40q to itself: %v, want 1", g.pairs.terms[row], s)
		}
		u = simmatrix.UnitsOfOne
	}
	e := listEntry{row: row, col: col, line: uint32(line), units: u} //nolint:gosec // at most MaxInt32
	g.entries = append(g.entries, e)
	if symmetric && row != col {
		e.row, e.col = col, row
		g.entries = append(g.entries, e)
	}
	return nil
}

// compactGrown drops repeats where the list has doubled since the last time.
func (g *list) compactGrown() error {
	if len(g.entries) < max(2*g.distinct, minCompact) {
		return nil
	}
	return g.compact()
}

// compact sorts the list and drops repeats. A pair repeated with another
// similarity, or with unique any repeated pair, is an error that names the
// first such line.
func (g *list) compact() error {
	slices.SortFunc(g.entries, func(a, b listEntry) int {
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col), cmp.Compare(a.line, b.line))
	})
	var bad listEntry // the one with the smallest line number
	kept := g.entries[:0]
	for _, e := range g.entries {
		last := len(kept) - 1
		if last < 0 || kept[last].row != e.row || kept[last].col != e.col {
			kept = append(kept, e)
			continue
		}
		if (g.unique || kept[last].units != e.units) && (bad.line == 0 || e.line < bad.line) {
			bad = e
		}
	}
	g.entries, g.distinct = kept, len(kept)
	if bad.line > 0 {
		return &lines.Error{Line: int(bad.line), Err: fmt.Errorf("the similarity of %.40q and %.40q was given before",
			g.pairs.terms[bad.row], g.pairs.terms[bad.col])}
	}
	return nil
}

func (g *list) term(b []byte) (uint32, error) {
	if id, ok := g.pairs.ids[string(b)]; ok {
		return id, nil
	}
	if err := checkPlain(string(b)); err != nil {
		return 0, err
	}
	return g.pairs.term(string(b))
}

func checkPlain(term string) error {
	if strings.ContainsAny(term, "\t\r\n") {
		return fmt.Errorf("term %.40q holds a tab or an end of line", term)
	}
	return nil
}

// finish moves the entries to the pairs. Errors are those of compact.
func (g *list) finish() error {
	if err := g.compact(); err != nil {
		return err
	}
	g.pairs.list = make([]pair, 0, len(g.entries))
	for _, e := range g.entries {
		g.pairs.add(e.row, e.col, e.units, 0)
	}
	g.entries = nil
	return nil
}

func (g *list) matrix() (*simmatrix.Matrix, error) {
	return g.pairs.matrix(simmatrix.Meta{Source: g.opts.Source, Params: map[string]string{
		"clamp":     strconv.FormatBool(g.opts.Clamp),
		"neighbors": strconv.Itoa(g.opts.Neighbors),
		"symmetric": strconv.FormatBool(g.opts.Symmetric),
	}}, g.opts.Neighbors)
}

// ReadTSV reads a matrix as a list of similarities, plain or compressed by
// gzip: lines of
//
//	term TAB neighbor TAB similarity
//
// in UTF-8, in any order. Every term of the list gets a row. The similarity is
// a decimal number in [0, 1]; one that rounds to 0 units of 1/65535 makes no
// entry, nor does a term's similarity to itself, which has to be 1, within
// 0.001. A pair may come again with the same similarity. Empty lines and a byte
// order mark are ignored. There are no comments. Terms are taken as written;
// document frequencies are unknown.
//
// Errors wrap [ErrList] and name the line: not three fields, a term that cannot
// have a row or has a carriage return, a similarity that is not a finite
// decimal number, out of range without [ListOptions.Clamp], or unlike that of
// an earlier line for the pair, a line over 1 MiB. The error wraps
// [simmatrix.ErrNoVocabulary] where there is no line.
func ReadTSV(r io.Reader, opts ListOptions) (*simmatrix.Matrix, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	g := newList(opts)
	if err := g.readTSV(r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrList, err)
	}
	return g.matrix()
}

func (g *list) readTSV(r io.Reader) error {
	_, err := lines.Each(r, func(line []byte, number int) error {
		if len(line) == 0 {
			return nil
		}
		if err := g.addLine(line, number); err != nil {
			return err
		}
		return g.compactGrown()
	})
	if err != nil {
		return err
	}
	return g.finish()
}

func (g *list) addLine(line []byte, number int) error {
	if bytes.Count(line, []byte("\t")) != 2 {
		return errors.New("want a term, its neighbor and their similarity, separated by two tabs")
	}
	term, rest, _ := bytes.Cut(line, []byte("\t"))
	neighbor, similarity, _ := bytes.Cut(rest, []byte("\t"))
	var ids [2]uint32
	for k, t := range [][]byte{term, neighbor} {
		id, err := g.term(t)
		if err != nil {
			return err
		}
		ids[k] = id
	}
	field := strings.Trim(string(similarity), " ")
	s, ok := lines.ParseDecimal(field, 64)
	if !ok {
		return notDecimal(field)
	}
	return g.add(ids[0], ids[1], s, number, g.opts.Symmetric)
}

// WriteTSV writes m as [ReadTSV] reads it, terms ascending, with six decimals,
// so that reading gives the same rows again. Terms that have no neighbors and
// are no one's neighbor, document frequencies, origins and Meta are lost. A
// term that holds a tab or an end of line cannot be written; the error wraps
// [ErrList].
func WriteTSV(w io.Writer, matrix *simmatrix.Matrix) error {
	if err := checkPlainTerms(matrix.Table().Terms); err != nil {
		return err
	}
	m, b := matrix.Table(), bufio.NewWriter(w)
	line := []byte(nil)
	first := true
	for i, term := range m.Terms {
		cols, sims := m.Row(i)
		line = line[:0]
		for k, col := range cols {
			if first {
				line = appendMark(line, term)
				first = false
			}
			line = append(append(line, term...), '\t')
			line = append(append(line, m.Terms[col]...), '\t')
			line = append(appendSimilarity(line, sims[k]), '\n')
		}
		if _, err := b.Write(line); err != nil {
			return err
		}
	}
	return b.Flush()
}

func checkPlainTerms(terms []string) error {
	for _, term := range terms {
		if err := checkPlain(term); err != nil {
			return fmt.Errorf("%w: %w and cannot be written", ErrList, err)
		}
	}
	return nil
}

// appendMark appends a byte order mark where term, the first of a file, begins
// with one: readers remove the first one.
func appendMark(b []byte, term string) []byte {
	if strings.HasPrefix(term, lines.ByteOrderMark) {
		b = append(b, lines.ByteOrderMark...)
	}
	return b
}

func appendSimilarity(b []byte, units uint16) []byte {
	return strconv.AppendFloat(b, float64(units)/simmatrix.UnitsOfOne, 'f', similarityDigits, 64)
}
