// Package words has vectors of English words and pieces of words, which make.py
// makes from a sentence model. They are for building a matrix; nothing that
// serves searches needs them.
package words

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

//go:embed words.bin
var builtin string

// ErrFile says that bytes are no sound file of words.
var ErrFile = errors.New("not a whole file of word vectors")

// Words are words and pieces of words with a vector each, in four bits a
// number. They never change: concurrent use is safe.
//
// A file of them has, with numbers in little-endian order: "AKWV"; the version
// of the format, a byte, 1; the dimension d, 16 bits, even; the number of rows,
// 32 bits; the largest scale, a float of 32 bits; the length of the notice, 16
// bits, and the notice; the words, ascending, each as the number of bytes that
// it shares with the one before, a byte, how many follow, a byte, and these;
// for each word its scale in units of 1/65535 of the largest, 16 bits, and d
// numbers from −7 to 7, two in a byte, the first in the lower half; the CRC-32
// (IEEE) of all this. The scale times a number is a coordinate. A piece that
// does not begin a word begins with "##".
type Words struct {
	dim      int
	scale    float32 // of one unit
	at       map[string]uint32
	rows     string
	notice   string // what the vectors were made from, and under which licenses
	checksum uint32
}

const (
	magic     = "AKWV\x01"
	header    = len(magic) + 2 + 4 + 4 + 2
	sumBytes  = 4
	continues = "##" // begins the pieces that do not begin a word
	// longest is the length in bytes of the longest word that has a vector. The
	// model takes none of more than 100 letters either.
	longest = 100
)

// Builtin returns the words that akin contains. The error wraps [ErrFile].
func Builtin() (*Words, error) { return Read(builtin) }

// Read reads a file of words. The error wraps [ErrFile].
func Read(file string) (*Words, error) {
	fail := func(format string, args ...any) (*Words, error) {
		return nil, fmt.Errorf("%w: %s", ErrFile, fmt.Sprintf(format, args...))
	}
	if len(file) < header+sumBytes || file[:len(magic)] != magic {
		return fail("%d bytes, without the mark of this format", len(file))
	}
	rest, sum := []byte(file[:len(file)-sumBytes]), binary.LittleEndian.Uint32([]byte(file[len(file)-sumBytes:]))
	if crc32.ChecksumIEEE(rest) != sum {
		return fail("its checksum is %08x, not %08x", crc32.ChecksumIEEE(rest), sum)
	}
	dim, count := int(binary.LittleEndian.Uint16(rest[5:])), int(binary.LittleEndian.Uint32(rest[7:]))
	scale, notice := math.Float32frombits(binary.LittleEndian.Uint32(rest[11:])), int(binary.LittleEndian.Uint16(rest[15:]))
	w := &Words{dim: dim, scale: scale / math.MaxUint16, checksum: sum}
	rest = rest[header:]
	rowBytes := w.rowBytes()
	if dim == 0 || dim%2 != 0 || !(scale > 0) || scale > math.MaxFloat32/8 || notice > len(rest) || count > len(rest)/rowBytes { // also NaN
		return fail("%d rows of dimension %d and scale %v, and a notice of %d bytes", count, dim, scale, notice)
	}
	w.notice, rest = string(rest[:notice]), rest[notice:]
	w.at = make(map[string]uint32, count)
	var word []byte
	for row := range count {
		if len(rest) < 2 {
			return fail("it ends at word %d", row)
		}
		shared, more := int(rest[0]), int(rest[1])
		if rest = rest[2:]; shared > len(word) || more > len(rest) {
			return fail("word %d has %d bytes of the one before, and %d more", row, shared, more)
		}
		before := string(word)
		word, rest = append(word[:shared], rest[:more]...), rest[more:]
		if string(word) <= before {
			return fail("word %d, %.40q, is not behind %.40q", row, word, before)
		}
		w.at[string(word)] = uint32(row)
	}
	if len(rest) != count*rowBytes {
		return fail("%d bytes of vectors for %d words", len(rest), count)
	}
	w.rows = file[len(file)-sumBytes-len(rest) : len(file)-sumBytes]
	return w, nil
}

func (w *Words) rowBytes() int { return 2 + w.dim/2 }

// Dim returns the length of vectors.
func (w *Words) Dim() int { return w.dim }

// String names the words, with the file's checksum.
func (w *Words) String() string { return fmt.Sprintf("built-in words %08x", w.checksum) }

// Has reports whether a word, in lower case, has a row of its own.
func (w *Words) Has(word string) bool {
	_, has := w.at[plain(word)]
	return has
}

// Vector returns the vector of a word, in lower case, at unit length: the mean
// of those of its pieces, of which each is the longest that continues the word.
// It returns nil for what is no word of letters a to z and digits, but for
// marks on letters, hyphens and apostrophes: those end a part with pieces of
// its own, and an 's at the end does not count. A point inside, as in a name of
// a file, or in two sentences without a blank between, makes it no word.
func (w *Words) Vector(word string) []float32 {
	sum, pieces := make([]float32, w.dim), 0
	for part := range strings.FieldsFuncSeq(plain(word), func(r rune) bool { return r == '-' || r == '\'' }) {
		for from := ""; part != ""; from = continues {
			end := len(part)
			row, known := w.at[from+part]
			for ; !known && end > 1; row, known = w.at[from+part[:end]] {
				end--
			}
			if !known {
				return nil
			}
			w.add(sum, row)
			pieces++
			part = part[end:]
		}
	}
	length := 0.0
	for _, x := range sum {
		length += float64(x) * float64(x)
	}
	if pieces == 0 || length == 0 {
		return nil
	}
	for d := range sum {
		sum[d] /= float32(math.Sqrt(length))
	}
	return sum
}

// add adds a row to sum.
func (w *Words) add(sum []float32, row uint32) {
	size := w.rowBytes()
	packed := w.rows[int(row)*size:][:size]
	scale := w.scale * float32(uint16(packed[0])|uint16(packed[1])<<8)
	for k := range w.dim / 2 {
		two := packed[2+k]
		sum[2*k] += scale * float32(int8(two<<4)>>4) //nolint:gosec // the sign of four bits
		sum[2*k+1] += scale * float32(int8(two)>>4)  //nolint:gosec // the same
	}
}

// plain returns a word without marks on letters, and without 's at the end; ""
// if it has other characters than letters, digits, hyphens and apostrophes, or
// is too long.
func plain(word string) string {
	if len(word) > longest {
		return ""
	}
	odd := false
	word = strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Mn, r):
			return -1
		case r == '’':
			return '\''
		}
		odd = odd || r != '-' && r != '\'' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		return r
	}, norm.NFD.String(word))
	if odd {
		return ""
	}
	return strings.TrimSuffix(word, "'s")
}
