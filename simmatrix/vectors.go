package simmatrix

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// maxVectorLine bounds a line of a vectors file.
const maxVectorLine = 1 << 20

// ErrVectors is wrapped by the errors of [ReadVectors] that are the file's
// fault. They name the line.
var ErrVectors = errors.New("bad vectors file")

// Vectors are words with their vectors, all of one dimension. They are
// immutable.
type Vectors struct {
	words []string
	table vectorTable
}

// Len returns the number of words.
func (v *Vectors) Len() int { return len(v.words) }

// Dim returns the number of dimensions.
func (v *Vectors) Dim() int { return v.table.dim }

// ReadVectors reads the text format of word2vec, GloVe and fastText, plain or
// compressed by gzip: a word and its numbers on a line, parted by blanks or
// tabs. A first line of two whole numbers is a header with the number of words
// and of dimensions, which the file must then have. Errors wrap [ErrVectors]
// and name the line: no or another number of dimensions, what is not a finite
// number, a word twice, not UTF-8 or longer than [MaxTermBytes], a line over
// 1 MiB, too few or too many lines, no word at all.
func ReadVectors(r io.Reader) (*Vectors, error) {
	plain, err := gunzip(r)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(plain)
	lines.Buffer(make([]byte, 0, 1<<16), maxVectorLine)
	p := &vectorsParser{seen: make(map[string]struct{}), claimed: -1}
	for lines.Scan() {
		p.line++
		if err := p.add(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrVectors, p.line, err)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%w: line %d: longer than %d bytes", ErrVectors, p.line+1, maxVectorLine)
	case err != nil:
		return nil, fmt.Errorf("%w: after line %d: %w", ErrVectors, p.line, err)
	case p.out.Len() == 0:
		return nil, fmt.Errorf("%w: line %d: the file ends without a word", ErrVectors, p.line+1)
	case p.claimed >= 0 && p.out.Len() < p.claimed:
		return nil, fmt.Errorf("%w: line %d: the file ends after %d of %d words", ErrVectors, p.line+1, p.out.Len(), p.claimed)
	}
	return &p.out, nil
}

// gunzip decompresses r if it starts as gzip does (RFC 1952, section 2.3.1).
func gunzip(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	if magic, _ := b.Peek(2); string(magic) != "\x1f\x8b" { // a read error comes again with the first line
		return b, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("%w: line 1: gzip: %w", ErrVectors, err)
	}
	return z, nil
}

// A vectorsParser takes the lines of a vectors file.
type vectorsParser struct {
	out     Vectors
	seen    map[string]struct{}
	line    int
	claimed int // words by the header, -1 without one
}

func (p *vectorsParser) add(line []byte) error {
	word, rest := nextField(line)
	if p.line == 1 {
		if n, dim, ok := vectorsHeader(word, rest); ok {
			if dim == 0 {
				return errors.New("header: 0 dimensions")
			}
			p.claimed, p.out.table.dim = n, dim
			return nil
		}
	}
	if p.out.Len() == p.claimed {
		return fmt.Errorf("more than the %d words of the header", p.claimed)
	}
	if len(word) == 0 || len(word) > MaxTermBytes || !utf8.Valid(word) {
		return fmt.Errorf("word %.40q: empty, too long or not UTF-8", word)
	}
	w := string(word)
	if _, twice := p.seen[w]; twice {
		return fmt.Errorf("word %q is there twice", w)
	}
	if err := p.addNumbers(rest); err != nil {
		return fmt.Errorf("word %q: %w", w, err)
	}
	p.seen[w] = struct{}{}
	p.out.words = append(p.out.words, w)
	p.out.table.rows++
	return nil
}

// addNumbers appends the numbers of a line. The first line settles the
// dimensions if the header has not.
func (p *vectorsParser) addNumbers(rest []byte) error {
	t := &p.out.table
	count := 0
	for {
		var field []byte
		if field, rest = nextField(rest); len(field) == 0 {
			break
		}
		x, err := strconv.ParseFloat(string(field), 32)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%.40q is not a finite number", field)
		}
		count++
		t.values = append(t.values, float32(x))
	}
	if t.dim == 0 {
		t.dim = count
	}
	if count == 0 || count != t.dim {
		return fmt.Errorf("%d dimensions, want %d", count, t.dim)
	}
	return nil
}

// vectorsHeader reads a line of two whole numbers and nothing else.
func vectorsHeader(first, rest []byte) (words, dim int, ok bool) {
	second, rest := nextField(rest)
	if more, _ := nextField(rest); len(more) > 0 {
		return 0, 0, false
	}
	words, err := strconv.Atoi(string(first))
	if err != nil || words < 0 {
		return 0, 0, false
	}
	dim, err = strconv.Atoi(string(second))
	return words, dim, err == nil && dim >= 0
}

// nextField returns the bytes up to the next blank or tab, and what follows
// all blanks and tabs behind it. Other Unicode spaces are parts of words: the
// published files have words that hold them.
func nextField(line []byte) (field, rest []byte) {
	end := bytes.IndexAny(line, " \t")
	if end < 0 {
		return line, nil
	}
	return line[:end], bytes.TrimLeft(line[end:], " \t")
}

// VectorOptions are the settings of [FromVectors].
type VectorOptions struct {
	// Source becomes Meta.Source: in words, where the vectors come from.
	Source string
	// Neighbors is C, the largest number of neighbors of a word, 1 to
	// [MaxNeighbors].
	Neighbors int
	// Power is p in s = max(0, cos)^p, above 0.
	Power float64
	// Threshold is θ: a cosine at or under it counts as 0. It is in [0, 1).
	Threshold float64
	// Keep reports whether a word gets a row; nil keeps all.
	Keep func(word string) bool
}

// DefaultVectorOptions returns the settings of [FromVectors] that go with
// [DefaultCorpusOptions]: Neighbors 200, Power 3, Threshold 0, all words.
func DefaultVectorOptions() VectorOptions {
	return VectorOptions{Source: "vectors", Neighbors: 200, Power: 3}
}

// Validate reports every setting that is out of range.
func (o *VectorOptions) Validate() error {
	err := validateRows(o.Neighbors, o.Power)
	if !(o.Threshold >= 0 && o.Threshold < 1) {
		err = errors.Join(err, fmt.Errorf("threshold: %v not in [0, 1)", o.Threshold))
	}
	return err
}

// FromVectors returns the matrix of the words of v with
//
//	s_ij = max(0, cos(i,j))^Power, 0 where cos(i,j) <= Threshold
//
// for the Neighbors nearest words j of each word i, without those whose
// similarity rounds to zero. A vector of zeros has no neighbors. Document
// frequencies are unknown. FromVectors returns [ErrNoVocabulary] where no word
// is kept, an error that names each option out of range, and the error of ctx
// soon after it ends.
func FromVectors(ctx context.Context, v *Vectors, opts VectorOptions, progress Progress) (*Matrix, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	kept := v.sortedWords(opts.Keep)
	if len(kept) == 0 {
		return nil, fmt.Errorf("%w: none of the %d words is kept", ErrNoVocabulary, v.Len())
	}
	units := vectorTable{rows: len(kept), dim: v.Dim(), values: make([]float32, len(kept)*v.Dim())}
	m := &Matrix{
		meta: Meta{Source: opts.Source, Params: map[string]string{
			"dimensions": strconv.Itoa(v.Dim()),
			"neighbors":  strconv.Itoa(opts.Neighbors),
			"power":      formatFloat(opts.Power),
			"threshold":  formatFloat(opts.Threshold),
		}},
		docFreqs: make([]uint32, len(kept)),
	}
	wide := make([]float64, v.Dim())
	for i, k := range kept {
		m.terms = append(m.terms, v.words[k])
		for j, x := range v.table.row(k) {
			wide[j] = float64(x)
		}
		scaleTo(units.row(i), wide, 1)
	}
	var err error
	m.entries, err = units.nearest(ctx, nearestOptions{
		neighbors: opts.Neighbors, power: opts.Power, threshold: opts.Threshold,
	}, newStage(progress, "neighbors", len(kept)))
	if err != nil {
		return nil, err
	}
	if err := m.finish(); err != nil {
		return nil, err
	}
	return m, nil
}

// sortedWords returns the indices of the words to keep in ascending byte order
// of the words.
func (v *Vectors) sortedWords(keep func(string) bool) []int {
	var kept []int
	for k, w := range v.words {
		if keep == nil || keep(w) {
			kept = append(kept, k)
		}
	}
	slices.SortFunc(kept, func(a, b int) int { return cmp.Compare(v.words[a], v.words[b]) })
	return kept
}
