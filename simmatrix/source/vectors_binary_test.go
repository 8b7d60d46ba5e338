package source

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix/internal/lines"
)

// binaryFile returns a file in the binary format of word2vec: the header, then
// words, each followed by its numbers and by end.
func binaryFile(end, header string, wordsAndNumbers ...any) string {
	b := []byte(header + "\n")
	for k, v := range wordsAndNumbers {
		switch v := v.(type) {
		case string:
			if k > 0 {
				b = append(b, end...)
			}
			b = append(append(b, v...), ' ')
		case int:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		case float64:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		case []float32:
			for _, x := range v {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
			}
		}
	}
	return string(append(b, end...))
}

func TestReadVectorsReadsTheBinaryFormat(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		words      []string
		values     []float32
	}{
		// The bytes of word2vec.c: "%lld %lld\n", then for each word "%s ",
		// the floats, "\n".
		{"byte by byte", "2 1\nab \x00\x00\x80\x3f\ncd \x00\x00\x20\xc1\n", []string{"ab", "cd"}, []float32{1, -10}},
		{"no line feed between the words", "2 1\nab \x00\x00\x80\x3fcd \x00\x00\x20\xc1", []string{"ab", "cd"}, []float32{1, -10}},
		{"line feeds at the end", binaryFile("\n", "1 2", "a", 1, 2) + "\n\n", []string{"a"}, []float32{1, 2}},
		{"numbers that look like ends and blanks", "1 2\na \n\n\n\n    \n", []string{"a"}, []float32{6.6463464e-33, 1.3563156e-19}},
		{"header of Windows", "1 1\r\na \x00\x00\x80\x3f", []string{"a"}, []float32{1}},
		{
			"words with other spaces and control characters", binaryFile("\n", "2 1", "a\u00a0b", 1, "c\td\re\nf", 2),
			[]string{"a\u00a0b", "c\td\re\nf"},
			[]float32{1, 2},
		},
		{"twice and not UTF-8", binaryFile("\n", "4 1", "a", 1, "a", 2, "\xe4", 3, "", 4), []string{"a"}, []float32{1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := check.Got(readAs(iotest.OneByteReader(strings.NewReader(tt.file)), true, ReadVectorsOptions{}))(t)
			check.Equal(t, tt.words, v.words)
			check.Equal(t, tt.values, v.values)
		})
	}
}

func TestReadVectorsReadsVectorsOfMoreThanItsBuffer(t *testing.T) {
	wide := make([]float32, MaxVectorDims)
	for k := range wide {
		wide[k] = float32(k)
	}
	v := check.Got(ReadVectors(strings.NewReader(binaryFile("\n", "2 65536", "a", wide, "b", wide)), ReadVectorsOptions{}))(t)
	check.That(t, v.Dim() == MaxVectorDims && cmp.Diff(wide, v.Vector(0)) == "" && cmp.Diff(wide, v.Vector(1)) == "", "other numbers came back")
}

func TestReadVectorsDistinguishesTextFromBinary(t *testing.T) {
	halves := make([]float32, 2000)
	for k := range halves {
		halves[k] = 0.7071 // 3f3504 81: no zero byte, and 81 is no UTF-8
	}
	for _, tt := range []struct {
		name, file string
		binary     bool
	}{
		{"text with a header", "1 3\ncar 0.1 0.2 0.3\n", false},
		{"text without one", "car 0.1 0.2 0.3\n", false},
		{"a bad number in text", "1 3\ncar NaN 0.2 x\n", false},
		{"a short row in text", "2 3\ncar 0.1\nbus 0.1 0.2 0.3\n", false},
		{"words of other languages in text", "2 2\nStraße 1 2\n東京 3 4\nдом 5 6\n", false},
		{"a word that the bytes to look at end in", "2 2\na 1 2\n東東東 3 4\n", false},
		{"text with only a header", "1 3\n", false},
		{"text of Windows", "1 1\r\na 1\r\n", false},
		{"ones", binaryFile("\n", "1 3", "car", 1, 1, 1), true},
		{"zeros without a line feed", binaryFile("", "1 1", "car", 0), true},
		{"learned numbers", binaryFile("\n", "1 4", "</s>", -0.0123, 0.4567, 0.0891, -0.2345), true},
		{"a word of another language", binaryFile("\n", "1 2", "東京", 0.1, 0.2), true},
		{"many dimensions", binaryFile("\n", "1 2000", "car", halves), true},
		{"a line feed before the first word", "1 1\n\na \x00\x00\x80\x3f", true},
		{"cut short", binaryFile("\n", "9 4", "car", 0.1, 0.2)[:14], true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := check.Got(lines.Decompress(strings.NewReader(tt.file)))(t)
			got, err := looksBinary(in)
			check.That(t, got == tt.binary && err == nil, "binary: %t, %v", got, err)
		})
	}
}

func TestAWordWithoutAnEndIsNotTakenForText(t *testing.T) {
	word := strings.Repeat("w", lines.PeekSize)
	for _, file := range []string{binaryFile("\n", "1 1", word, 1), "1 1\n\n" + word + " 1\n"} {
		v, err := ReadVectors(strings.NewReader(file), ReadVectorsOptions{})
		want := "word 1 at byte 4: neither a blank nor a line feed in the first 65536 bytes"
		check.That(t, v == nil && errors.Is(err, ErrVectors) && strings.Contains(err.Error(), want), "error %.200v, want %s", err, want)
	}
	tabs := "1 20000\nw" + strings.Repeat("\t0.5", 20000) // no blank either, but text
	v, err := ReadVectors(strings.NewReader(tabs), ReadVectorsOptions{})
	check.That(t, err == nil && v.Dim() == 20000, "%v", err)
}

func TestReadVectorsNamesTheBadWordAndByte(t *testing.T) {
	good := binaryFile("\n", "3 2", "car", 1, 2, "bus", 3, 4, "van", 5, 6) // header 4 bytes, 13 a word
	for _, tt := range []struct{ name, file, message string }{
		{"no header", "car 1 2", "header: unexpected EOF"},
		{"words in the header", "car bus\n", `header: "car bus" is not`},
		{"header of no word", "0 2\n", "header: 0 words"},
		{"header of no dimension", "1 0\n", "header: 1 words of 0"},
		{"too many dimensions", "1 65537\n", "header: 1 words of 65537"},
		{"NaN", binaryFile("\n", "2 2", "car", 1, 2, "bus", 3, math.NaN()), `word 2 at byte 16: "bus": NaN is not a finite number`},
		{"infinity", binaryFile("", "2 2", "car", math.Inf(-1), 2, "bus", 3, 4), `word 1 at byte 4: "car": -Inf`},
		{"cut in a word", good[:18], "byte 18: the file ends after 1 of 3 words"},
		{"cut in a number", good[:24], "byte 24: the file ends after 1 of 3 words"},
		{"cut between words", good[:17], "byte 17: the file ends after 1 of 3 words"},
		{"more than the header says", good + "x", "byte 43: the file goes on"},
		{"no blank", "1 1\n" + strings.Repeat("a", lines.PeekSize+1), "word 1 at byte 4: no ' ' within 65536 bytes"},
		{"gzip cut short", gzipped(t, good)[:40], "byte "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := readAs(strings.NewReader(tt.file), true, ReadVectorsOptions{})
			if v != nil || !errors.Is(err, ErrVectors) || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("error %.200v, want ErrVectors with %q", err, tt.message)
			}
		})
	}
	broken := errors.New("disk on fire")
	for _, n := range []int{3, 6, 10, 17, len(good)} {
		for name, keep := range map[string]func(string) bool{"kept": nil, "not kept": func(string) bool { return false }} {
			r := io.MultiReader(strings.NewReader(good[:n]), iotest.ErrReader(broken))
			check.Error(t, broken, check.ErrOf(readAs(r, true, ReadVectorsOptions{Keep: keep})), name, n)
		}
	}
}
