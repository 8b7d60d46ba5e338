package source

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
)

// ReadMatrixMarket reads a square sparse matrix in the MatrixMarket coordinate
// format, as scipy.io.mmwrite writes it, and its vocabulary, each plain or
// compressed by gzip. The entry "i j s" is s_ij of the terms in the lines i and
// j of the vocabulary: row i has the neighbors of term i.
//
// The field is real, double, integer or unsigned-integer and the symmetry
// general or symmetric, where each entry counts both ways. The diagonal and the
// similarities are as in [ReadTSV]. The vocabulary has one term a line,
// followed by a tab and its document frequency where known.
//
// Errors wrap [ErrList] and name the file and the line: another header or size,
// an index outside the vocabulary, a repeated pair unless
// [ListOptions.Symmetric] is set, a similarity that [ReadTSV] would refuse,
// more or fewer entries than the header says, a repeated term, a line over 1
// MiB. Those of the vocabulary also wrap [ErrVocabulary], or
// [simmatrix.ErrNoVocabulary]. Nothing is allocated by what the header claims.
func ReadMatrixMarket(matrix, vocabulary io.Reader, opts ListOptions) (*simmatrix.Matrix, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	g := newList(opts)
	if err := g.readVocabulary(vocabulary); err != nil {
		return nil, fmt.Errorf("%w: %w: %w", ErrList, ErrVocabulary, err)
	}
	if err := g.readMarket(matrix); err != nil {
		return nil, fmt.Errorf("%w: matrix: %w", ErrList, err)
	}
	return g.matrix()
}

// readVocabulary numbers the terms in the order of the lines.
func (g *list) readVocabulary(r io.Reader) error {
	empty := 0 // the first empty line
	_, err := lines.Each(r, func(line []byte, number int) error {
		switch {
		case len(line) == 0:
			empty = cmp.Or(empty, number)
			return nil
		case empty > 0:
			return &lines.Error{Line: empty, Err: errors.New("no term, and terms follow")}
		}
		t, err := parseTerm(line)
		if err != nil {
			return err
		}
		known := len(g.terms)
		id, err := g.term(t.Text)
		switch {
		case err != nil:
			return err
		case int(id) < known:
			return fmt.Errorf("term %.40q occurs twice, first in line %d", t.Text, id+1)
		}
		g.docFreqs[id] = t.DocFreq
		return nil
	})
	return err
}

// A marketReader reads the lines of a matrix whose vocabulary is known.
type marketReader struct {
	list      *list
	symmetric bool // by the header or by the options
	sized     bool // the line with the size has been read
	entries   uint64
	read      uint64
}

func (g *list) readMarket(r io.Reader) error {
	g.unique = !g.opts.Symmetric
	m := &marketReader{list: g}
	count, err := lines.Each(r, func(line []byte, number int) error {
		if err := m.addLine(line, number); err != nil {
			return err
		}
		return g.compactGrown()
	})
	switch {
	case err != nil:
		return err
	case !m.sized:
		return fmt.Errorf("line %d: the file ends before the line with its size", count+1)
	case m.read < m.entries:
		return fmt.Errorf("line %d: the file ends after %d of %d entries", count+1, m.read, m.entries)
	}
	return g.compact()
}

func (m *marketReader) addLine(line []byte, number int) error {
	if number == 1 {
		return m.readBanner(line)
	}
	fields := bytes.Fields(line)
	switch {
	case len(fields) == 0 || line[0] == '%':
		return nil
	case !m.sized:
		m.sized = true
		return m.readSize(fields)
	case m.read == m.entries:
		return fmt.Errorf("more than the %d entries that the file says it has", m.entries)
	}
	m.read++
	return m.readEntry(fields, number)
}

func (m *marketReader) readBanner(line []byte) error {
	words := strings.Fields(strings.ToLower(string(line)))
	if len(words) != 5 || words[0] != "%%matrixmarket" || words[1] != "matrix" {
		return fmt.Errorf("%.60q does not begin a matrix in the MatrixMarket format", line)
	}
	if words[2] != "coordinate" {
		return fmt.Errorf("format %.20q is not read: write the matrix as a sparse one, coordinate", words[2])
	}
	switch words[3] {
	case "real", "double", "integer", "unsigned-integer":
	default:
		return fmt.Errorf("field %.20q is not read: a similarity is real", words[3])
	}
	switch words[4] {
	case "general":
		m.symmetric = m.list.opts.Symmetric
	case "symmetric":
		m.symmetric = true
	default:
		return fmt.Errorf("symmetry %.20q is not read: write the matrix as general", words[4])
	}
	return nil
}

func (m *marketReader) readSize(fields [][]byte) error {
	if len(fields) != 3 {
		return fmt.Errorf("%d numbers, want those of rows, columns and entries", len(fields))
	}
	var size [3]uint64
	for k := range size {
		var err error
		if size[k], err = strconv.ParseUint(string(fields[k]), 10, 63); err != nil {
			return fmt.Errorf("%.40q is not a size", fields[k])
		}
	}
	if terms := uint64(len(m.list.terms)); size[0] != terms || size[1] != terms {
		return fmt.Errorf("%d rows and %d columns, want one of each for the %d terms of the vocabulary", size[0], size[1], terms)
	}
	m.entries = size[2]
	return nil
}

func (m *marketReader) readEntry(fields [][]byte, number int) error {
	if len(fields) != 3 {
		return fmt.Errorf("%d fields, want row, column and similarity", len(fields))
	}
	var ids [2]uint32
	for k := range ids {
		index, err := strconv.ParseUint(string(fields[k]), 10, 32)
		if err != nil || index == 0 || index > uint64(len(m.list.terms)) {
			return fmt.Errorf("index %.40q is not in [1, %d]", fields[k], len(m.list.terms))
		}
		ids[k] = uint32(index - 1)
	}
	s, ok := lines.ParseDecimal(string(fields[2]), 64)
	if !ok {
		return notDecimal(string(fields[2]))
	}
	return m.list.add(ids[0], ids[1], s, number, m.symmetric)
}

// WriteMatrixMarket writes m as [ReadMatrixMarket] reads it: a general matrix
// of reals with six decimals and its diagonal of ones, as scipy.io.mmread and
// gensim expect, and the vocabulary with the known document frequencies.
// Origins and Meta are lost. Errors are those of [WriteTSV].
func WriteMatrixMarket(matrix, vocabulary io.Writer, of *simmatrix.Matrix) error {
	m := of.Table()
	if err := checkPlainTerms(m.Terms); err != nil {
		return err
	}
	if err := writeVocabulary(vocabulary, m); err != nil {
		return err
	}
	b := bufio.NewWriter(matrix)
	fmt.Fprintf(b, "%%%%MatrixMarket matrix coordinate real general\n%% Row i holds the neighbors of line i of the vocabulary.\n%d %d %d\n",
		len(m.Terms), len(m.Terms), len(m.Terms)+len(m.Cols)) // errors of b stay until Flush
	var line []byte
	for i := range m.Terms {
		row := strconv.AppendInt(nil, int64(i)+1, 10)
		line = append(append(append(line[:0], row...), ' '), row...)
		line = append(appendSimilarity(append(line, ' '), simmatrix.UnitsOfOne), '\n')
		cols, sims := m.Row(i)
		for k, col := range cols {
			line = strconv.AppendInt(append(append(line, row...), ' '), int64(col)+1, 10)
			line = append(appendSimilarity(append(line, ' '), sims[k]), '\n')
		}
		if _, err := b.Write(line); err != nil {
			return err
		}
	}
	return b.Flush()
}

func writeVocabulary(w io.Writer, m *simmatrix.Table) error {
	b := bufio.NewWriter(w)
	var line []byte
	for i, term := range m.Terms {
		line = line[:0]
		if i == 0 {
			line = appendMark(line, term)
		}
		line = append(line, term...)
		if m.DocFreqs[i] > 0 {
			line = strconv.AppendUint(append(line, '\t'), uint64(m.DocFreqs[i]), 10)
		}
		if _, err := b.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return b.Flush()
}
