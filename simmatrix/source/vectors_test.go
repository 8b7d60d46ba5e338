package source

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
)

func gzipped(tb testing.TB, text string) string {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, text)
	check.OK(tb, errors.Join(err, z.Close()))
	return b.String()
}

func mustRead(tb testing.TB, text string) *Vectors {
	tb.Helper()
	return check.Got(ReadVectors(strings.NewReader(text), ReadVectorsOptions{}))(tb)
}

func TestReadVectorsReadsEveryDialect(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		words      []string
		values     []float32
	}{
		{"GloVe", "car 1 -0.5\nbus 2e-1 .25\n", []string{"car", "bus"}, []float32{1, -0.5, 0.2, 0.25}},
		{"word2vec, header and blank at the end", "2 2\ncar 1 2 \nbus 3 4 \n", []string{"car", "bus"}, []float32{1, 2, 3, 4}},
		{"tabs and several blanks", "car\t1  2\nbus  3\t4", []string{"car", "bus"}, []float32{1, 2, 3, 4}},
		{"words that are numbers", "2 3 4\n5 6 7\n", []string{"2", "5"}, []float32{3, 4, 6, 7}},
		{"other spaces are parts of words", "a\u00a0b 1 2\n\u0085 3 4\n", []string{"a\u00a0b", "\u0085"}, []float32{1, 2, 3, 4}},
		{"byte order mark and header", "\uFEFF1 2\r\ncar 1 2\r\n", []string{"car"}, []float32{1, 2}},
		{"blank lines", "\ncar 1 2\n \n\nbus 3 4\n\n\r\n", []string{"car", "bus"}, []float32{1, 2, 3, 4}},
		{"header with a blank at its end, as of fastText", "1 2 \ncar 1 2 \n", []string{"car"}, []float32{1, 2}},
		{
			"words of several parts, as in GloVe 840B", "mail 1 2\n. . . 3 4\nmail to x@example.org 5 6\n",
			[]string{"mail", ". . .", "mail to x@example.org"},
			[]float32{1, 2, 3, 4, 5, 6},
		},
		{"the first word of several parts", "mail to 1 2\n", []string{"mail to"}, []float32{1, 2}},
		{"words that numbers are called by", "nan 1\ninf 2\n0x1p3 3\n", []string{"nan", "inf", "0x1p3"}, []float32{1, 2, 3}},
		{"all notations of a decimal number", "a +1 -.5 2. 1e2 1E-2\n", []string{"a"}, []float32{1, -.5, 2, 100, .01}},
		{"control characters", "a\x00b 1\n\x7f 2\n", []string{"a\x00b", "\x7f"}, []float32{1, 2}},
		{"a word that starts like a number", "1st 1\n2 2.5\n", []string{"1st", "2"}, []float32{1, 2.5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := check.Got(ReadVectors(iotest.OneByteReader(strings.NewReader(tt.text)), ReadVectorsOptions{}))(t)
			check.Equal(t, tt.words, v.words)
			check.Equal(t, tt.values, v.values)
			check.That(t, v.Len() == len(tt.words) && v.Dim() == len(tt.values)/len(tt.words), "%d words, %d dimensions", v.Len(), v.Dim())
		})
	}
}

func TestReadVectorsNamesTheBadLine(t *testing.T) {
	for _, tt := range []struct{ name, text, message string }{
		{"short row", "a 1 2\nb 1\n", `line 2: word "b": 1 dimensions, want 2`},
		{"long row", "a 1 2\nb 1 2\nc 1 2 3\n", `line 3: word "c": 3 dimensions, want 2`},
		{"another dimension than the header", "1 3\na 1 2\n", `line 2: word "a": 2 dimensions, want 3`},
		{"only a word", "a\n", `line 1: word "a": 0 dimensions`},
		{"NaN", "a 1\nb NaN\n", `line 2: word "b": "NaN" is not a finite decimal number`},
		{"infinity", "a -Inf\n", "line 1"},
		{"too large for 32 bits", "a 1e39\n", "line 1"},
		{"no number", "a 1\nb 1\nc x\n", "line 3"},
		{"hexadecimal", "a 1\nb 0x1p3\n", `line 2: word "b": "0x1p3" is not a finite decimal number`},
		{"underscores", "a 1\nb 1_0\n", `line 2: word "b": "1_0"`},
		{"infinity spelled out", "a 1\nb infinity\n", `line 2: word "b": "infinity"`},
		{"only signs", "a 1\nb +-\n", `line 2: word "b": "+-"`},
		{"numbers in a word of several parts", "a 1 2\nb 1 c 2 3\n", `line 2: word "b": 4 dimensions, want 2`},
		{"no number at the end of the first line", "a 1 x\n", `line 1: word "a": 0 dimensions, want 1 to 65536 finite decimal numbers`},
		{"numbers without a word", "a 1 2\n3 4\n", `line 2: word "3": 1 dimensions, want 2`},
		{"too many dimensions", "a" + strings.Repeat(" 1", MaxVectorDims+1) + "\n", `line 1: word "a": 65537 dimensions, want 1 to 65536`},
		{"fewer words than the header says", "3 1\na 1\nb 1\n", "line 4: the file ends after 2 of 3"},
		{"more words than the header says", "1 1\na 1\nb 1\n", "line 3: more than the 1"},
		{"header of no dimension", "1 0\n", "line 1: header: 1 words of 0 dimensions"},
		{"header of no word", "0 5\n", "line 1: header: 0 words"},
		{"header below zero", "-1 3\na 1 2 3\n", "line 1: header: -1 words of 3 dimensions"},
		{"header of too many dimensions", "1 65537\n", "line 1: header: 1 words of 65537"},
		{"only a header", "2 5\n", "line 2: the file ends without"},
		{"empty file", "", "line 1: the file ends without"},
		{"zip", "PK\x03\x04...", "unpack it first"},
		{"a model of fastText", "\xba\x16\x4f\x2f\x0c\x00\x00\x00", "take its .vec file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := ReadVectors(strings.NewReader(tt.text), ReadVectorsOptions{})
			if v != nil || !errors.Is(err, ErrVectors) || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("error %.200v, want ErrVectors with %q", err, tt.message)
			}
		})
	}
}

func TestReadVectorsSkipsWordsThatCannotHaveARow(t *testing.T) {
	long := strings.Repeat("a", simmatrix.MaxTermBytes)
	v := mustRead(t, "8 2\ncar 1 2\nbus 3 4\ncar 5 6\n\xff 7 8\n\t 9 10\n"+long+"a 11 12\n"+long+" 13 14\nbus 15 x\n")
	check.Equal(t, []string{"car", "bus", long}, v.words)
	check.Equal(t, []float32{1, 2, 3, 4, 13, 14}, v.values)
	check.Equal(t, SkippedWords{Repeated: 2, Invalid: 3}, v.Skipped())
}

func TestReadVectorsKeepsTheWordsThatAreWanted(t *testing.T) {
	text := "5 1\na 1\nb x\nc 3\n\xff 4\nd 5\n"
	file := binaryFile("\n", "5 1", "a", 1, "b", math.NaN(), "c", 3, "\xff", 4, "d", 5)
	notB := func(w string) bool { return w != "b" }
	for _, tt := range []struct {
		name    string
		opts    ReadVectorsOptions
		words   []string
		skipped SkippedWords
	}{
		{"a filter", ReadVectorsOptions{Keep: notB}, []string{"a", "c", "d"}, SkippedWords{Filtered: 1, Invalid: 1}},
		{"the first words", ReadVectorsOptions{MaxWords: 1}, []string{"a"}, SkippedWords{}},
		{"both", ReadVectorsOptions{Keep: notB, MaxWords: 3}, []string{"a", "c"}, SkippedWords{Filtered: 1}},
		{"more than there are", ReadVectorsOptions{Keep: notB, MaxWords: 9}, []string{"a", "c", "d"}, SkippedWords{Filtered: 1, Invalid: 1}},
	} {
		for format, content := range map[string]string{"text": text, "binary": file} {
			t.Run(tt.name+", "+format, func(t *testing.T) {
				v := check.Got(ReadVectors(strings.NewReader(content), tt.opts))(t)
				diff := cmp.Diff(tt.words, v.words)
				check.That(t, diff == "" && len(v.values) == len(tt.words), "%v\n%s", v.values, diff)
				check.Equal(t, tt.skipped, v.Skipped())
			})
		}
	}
}

func TestReadVectorsThatKeepsNothingSaysSo(t *testing.T) {
	none := ReadVectorsOptions{Keep: func(string) bool { return false }}
	for _, content := range []string{"a 1\nb 2\n", binaryFile("", "2 1", "a", 1, "b", 2)} {
		v, err := ReadVectors(strings.NewReader(content), none)
		if v != nil || !errors.Is(err, simmatrix.ErrNoVocabulary) || errors.Is(err, ErrVectors) || !strings.Contains(err.Error(), "2 words") {
			t.Errorf("error %v", err)
		}
	}
}

// readAs is ReadVectors of a file whose format is not looked for.
func readAs(r io.Reader, inBinary bool, opts ReadVectorsOptions) (*Vectors, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	in, err := lines.Decompress(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrVectors, err)
	}
	return readVectors(in, inBinary, opts)
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestReadVectorsAllocatesNothingForWhatIsClaimedOrNotKept(t *testing.T) {
	const bound = 1 << 20 // the buffers are 64 KiB each
	read := func(content string, inBinary bool, opts ReadVectorsOptions) func() {
		return func() {
			check.That(t, check.ErrOf(readAs(strings.NewReader(content), inBinary, opts)) != nil, "no error")
		}
	}
	none := ReadVectorsOptions{Keep: func(string) bool { return false }}
	zeros := make([]any, 0, 400)
	for k := range 200 {
		zeros = append(zeros, fmt.Sprint("w", k), make([]float32, 10_000))
	}
	for _, tt := range []struct {
		name string
		f    func()
	}{
		{"text header", read("999999999999 65536\na 1\n", false, ReadVectorsOptions{})},
		{"binary header", read("999999999999 65536\na 1", true, ReadVectorsOptions{})},
		{"text", read(strings.Repeat("word"+strings.Repeat(" 0.25", 10_000)+"\n", 200), false, none)},   // 8 MB of numbers
		{"binary", read(binaryFile("", "200 10000", zeros...), true, none)},                             // 8 MB
		{"a line without an end", read("a "+strings.Repeat("1 ", 1<<23), false, ReadVectorsOptions{})},  // 16 MB
		{"a word without an end", read("9 1\n"+strings.Repeat("a", 1<<24), true, ReadVectorsOptions{})}, // 16 MB
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := allocated(tt.f)
			check.That(t, n <= 4*bound, "%d bytes", n)
		})
	}
}

// FuzzReadVectors checks that what is read is well-formed, no larger than the
// file, and the same after it is written and read again.
func FuzzReadVectors(f *testing.F) {
	for _, seed := range []string{
		"2 2\ncar 1 2\nbus 3 4\n", "car 1 -2e3\r\nbus\t.5 0x1p-2 \n", gzipped(f, "a 1\n"), "\uFEFF\na b 1 2\n\xff 1 2\n",
		binaryFile("\n", "2 2", "car", 1, 2, "bus", 3, -4), binaryFile("", "1 1", "a\nb", 0.5), "-1 3\n", "PK\x03\x04",
	} {
		for format := range uint8(3) {
			f.Add([]byte(seed), format, 0)
		}
		f.Add([]byte(seed), uint8(0), 1)
	}
	f.Fuzz(func(t *testing.T, file []byte, format uint8, maxWords int) {
		opts := ReadVectorsOptions{MaxWords: maxWords}
		var v *Vectors
		var err error
		if format %= 3; format == 0 {
			v, err = ReadVectors(bytes.NewReader(file), opts)
		} else {
			v, err = readAs(bytes.NewReader(file), format == 1, opts)
		}
		if err != nil {
			check.Must(t, v == nil && (errors.Is(err, ErrVectors) || errors.Is(err, simmatrix.ErrNoVocabulary) || maxWords < 0), "%v, %v", v, err)
			if errors.Is(err, ErrVectors) && !strings.Contains(err.Error(), "line ") && !strings.Contains(err.Error(), "byte ") {
				t.Fatalf("%v does not say where", err)
			}
			return
		}
		check.Must(t, v.Len() != 0 && v.Dim() != 0 && len(v.values) == v.Len()*v.Dim(), "%d words, %d dimensions, %d values", v.Len(), v.Dim(), len(v.values))
		read := v.Len() + v.skipped.Filtered + v.skipped.Repeated + v.skipped.Invalid
		if !bytes.HasPrefix(file, []byte("\x1f\x8b")) && (2*len(v.values) > len(file) || (maxWords > 0 && read > maxWords)) {
			t.Fatalf("%d words, %d numbers of a file of %d bytes", read, len(v.values), len(file))
		}
		for _, x := range v.values {
			check.Must(t, !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0), "%v", x)
		}
		content, inBinary := writeVectors(v)
		again, err := readAs(strings.NewReader(content), inBinary, ReadVectorsOptions{})
		check.OK(t, err)
		v.skipped = SkippedWords{}
		check.Equal(t, v, again, cmp.AllowUnexported(Vectors{}))
	})
}

// writeVectors writes v in the binary format, or as text where a word has a
// blank, for which the other has no place.
func writeVectors(v *Vectors) (content string, inBinary bool) {
	header := fmt.Sprintf("%d %d", v.Len(), v.Dim())
	if !slices.ContainsFunc(v.words, func(w string) bool { return strings.Contains(w, " ") }) {
		var all []any
		for i, w := range v.words {
			all = append(all, w, v.Vector(i))
		}
		return binaryFile("\n", header, all...), true
	}
	var text strings.Builder
	text.WriteString(header + "\n")
	for i, w := range v.words {
		text.WriteString(w)
		for _, x := range v.Vector(i) {
			fmt.Fprintf(&text, " %g", x)
		}
		text.WriteByte('\n')
	}
	return text.String(), false
}
