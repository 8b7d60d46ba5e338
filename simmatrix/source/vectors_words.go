package source

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// MaxVectorDims is the largest number of dimensions of a vectors file.
const MaxVectorDims = 65536

// Vectors are words with their vectors, all of one dimension; immutable.
type Vectors struct {
	words   []string
	dim     int
	values  []float32 // dim for each word
	skipped SkippedWords
}

// SkippedWords counts the words that [ReadVectors] has read and not kept.
type SkippedWords struct {
	Filtered int // refused by [ReadVectorsOptions.Keep]
	Repeated int // kept from an earlier line
	Invalid  int // they cannot have a row: empty, not UTF-8 or longer than [simmatrix.MaxTermBytes]
}

// Len returns the number of words.
func (v *Vectors) Len() int { return len(v.words) }

// Words returns the words in the order of the file, not to be modified.
func (v *Vectors) Words() []string { return v.words }

// Dim returns the number of dimensions.
func (v *Vectors) Dim() int { return v.dim }

// Vector returns the vector of word k, not to be modified.
func (v *Vectors) Vector(k int) []float32 { return v.values[k*v.dim : (k+1)*v.dim] }

// Skipped returns how many words of the file were read and not kept.
func (v *Vectors) Skipped() SkippedWords { return v.skipped }

// A VectorsFormat is a format of files with vectors.
type VectorsFormat string

// The formats that [ReadVectors] reads.
const (
	// VectorsDetect is binary where a header comes first and the 4·dimensions
	// bytes (at most 4096) behind the first word are not text.
	VectorsDetect VectorsFormat = ""
	// VectorsText is that of GloVe, of word2vec's text and fastText's .vec
	// files: a line for each word, the word first, then its numbers, separated
	// by blanks or tabs. A first line of two whole numbers is a header, the
	// numbers of words and of dimensions.
	VectorsText VectorsFormat = "text"
	// VectorsBinary is that of word2vec's .bin files: the header and a line
	// feed, then each word, a blank, and its numbers as 32-bit floats, least
	// byte first. Line feeds before a word are ignored.
	VectorsBinary VectorsFormat = "binary"
)

// ReadVectorsOptions are the settings of [ReadVectors]. The zero value reads
// every word in the format that the file is in.
type ReadVectorsOptions struct {
	Format   VectorsFormat          // of the file
	Keep     func(word string) bool // reports whether a word is wanted; nil keeps all
	MaxWords int                    // of the file, kept or not, to read: the first are the most frequent; 0 is all
}

// Validate reports every setting that is out of range.
func (o *ReadVectorsOptions) Validate() error {
	err := settings.NotNegative("max words", o.MaxWords)
	if !slices.Contains([]VectorsFormat{VectorsDetect, VectorsText, VectorsBinary}, o.Format) {
		err = errors.Join(fmt.Errorf("format: %q is not %s or %s", o.Format, VectorsText, VectorsBinary), err)
	}
	return err
}

type vectorsParser struct {
	opts    ReadVectorsOptions
	out     Vectors
	seen    map[string]struct{}
	claimed int // words by the header, -1 without one
	read    int // words so far, kept or not
}

func (p *vectorsParser) full() bool { return p.opts.MaxWords > 0 && p.read == p.opts.MaxWords }

// take counts a word and returns it with whether it is to be kept.
func (p *vectorsParser) take(word []byte) (string, bool) {
	p.read++
	if len(word) == 0 || len(word) > simmatrix.MaxTermBytes || !utf8.Valid(word) {
		p.out.skipped.Invalid++
		return "", false
	}
	w := string(word)
	if p.opts.Keep != nil && !p.opts.Keep(w) {
		p.out.skipped.Filtered++
		return "", false
	}
	if _, twice := p.seen[w]; twice {
		p.out.skipped.Repeated++
		return "", false
	}
	return w, true
}

// keep adds a word whose numbers are already at the end of the table.
func (p *vectorsParser) keep(w string) {
	p.seen[w] = struct{}{}
	p.out.words = append(p.out.words, w)
}

func (p *vectorsParser) setHeader(words, dim int) error {
	p.claimed, p.out.dim = words, dim
	if words < 1 || dim < 1 || dim > MaxVectorDims {
		return fmt.Errorf("header: %d words of %d dimensions, want at least 1 of 1 to %d", words, dim, MaxVectorDims)
	}
	return nil
}

// blanks separate fields. Other Unicode spaces are parts of words.
const blanks = " \t"

func isBlank(r rune) bool { return r == ' ' || r == '\t' }

// vectorsHeader reads a line of two whole numbers and nothing else.
func vectorsHeader(line []byte) (words, dim int, ok bool) {
	fields := bytes.FieldsFunc(line, isBlank)
	if len(fields) != 2 {
		return 0, 0, false
	}
	words, err := strconv.Atoi(string(fields[0]))
	dim, err2 := strconv.Atoi(string(fields[1]))
	return words, dim, err == nil && err2 == nil
}
