package simmatrix

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/akin-search/akin/e2e/check"
)

func encoded(tb testing.TB, m *Matrix) []byte {
	tb.Helper()
	var b bytes.Buffer
	check.OK(tb, Encode(&b, m))
	return b.Bytes()
}

// signed returns content with the checksum that belongs to it.
func signed(content []byte) []byte {
	sum := sha256.Sum256(content)
	return append(bytes.Clone(content), sum[:]...)
}

// same compares two matrices field by field.
func same(a, b *Matrix) string {
	return cmp.Diff(a, b, cmp.AllowUnexported(Matrix{}, Entries{}), cmpopts.EquateEmpty())
}

func TestFileHasTheDocumentedBytes(t *testing.T) {
	m := mustNew(t, Meta{Source: "s", Docs: 9}, []TermRow{
		{Term: "ab", DocFreq: 258, Neighbors: []Neighbor{{Term: "c", Similarity: 1}}},
		{Term: "c", DocFreq: 1},
	})
	header := `{"source":"s","docs":9,"terms":2,"non_zeros":1,"max_neighbors":1,"symmetric":false,"dominant":false}`
	var want []byte
	want = append(want, "akin-S\r\n\x01\x00\x00\x00"...)
	want = append(want, byte(len(header)), 0, 0, 0)
	want = append(want, header...)
	want = append(want, 2, 0, 1, 0)             // lengths of ab and c
	want = append(want, "abc"...)               // terms
	want = append(want, 2, 1, 0, 0, 1, 0, 0, 0) // document frequencies 258 and 1
	want = append(want, 1, 0, 0, 0)             // row lengths 1 and 0
	want = append(want, 1, 0, 0, 0)             // column of c
	want = append(want, 255, 255)               // similarity 1
	want = signed(want)
	check.Equal(t, want, encoded(t, m))
	check.Equal(t, hex.EncodeToString(want[len(want)-32:]), m.Checksum(), "Checksum")
}

func TestFileOfSeveralOriginsEndsWithThem(t *testing.T) {
	m := mustNew(t, Meta{Origins: []string{"vectors", "spelling"}}, []TermRow{
		{Term: "a", Neighbors: []Neighbor{{Term: "b", Similarity: 1, Origins: 3}, {Term: "c", Similarity: 0.5, Origins: 2}}},
		{Term: "b"},
		{Term: "c"},
	})
	file := encoded(t, m)
	got := file[len(file)-34 : len(file)-32]
	check.That(t, bytes.Equal(got, []byte{3, 2}), "origins %v before the checksum", got)
	row := neighborsOf(m.Row("a"))
	check.That(t, len(row) == 2 && row[0].Origins == 3 && row[1].Origins == 2, "row %+v", row)
}

// withOrigins gives every neighbor random origins of 1 to highest.
func withOrigins(random *rand.Rand, rows []TermRow, highest int) []TermRow {
	for _, r := range rows {
		for k := range r.Neighbors {
			r.Neighbors[k].Origins = uint8(1 + random.IntN(highest))
		}
	}
	return rows
}

func TestNewRefusesOriginsThatAreNotNamed(t *testing.T) {
	rows := func(origins uint8) []TermRow {
		return []TermRow{{Term: "a", Neighbors: []Neighbor{{Term: "b", Similarity: 1, Origins: origins}}}, {Term: "b"}}
	}
	for _, tt := range []struct {
		name    string
		names   []string
		origins uint8
	}{
		{"none named", nil, 1},
		{"more than named", []string{"x", "y"}, 4},
		{"none of the named", []string{"x"}, 0},
		{"a name twice", []string{"x", "x"}, 1},
		{"an empty name", []string{""}, 1},
		{"too many names", strings.Split("abcdefghi", ""), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check.Error(t, ErrInvalid, check.ErrOf(New(Meta{Origins: tt.names}, rows(tt.origins))))
		})
	}
	_, err := New(Meta{Origins: strings.Split("abcdefgh", "")}, rows(128))
	check.That(t, err == nil, "eight origins: %v", err)
}

func TestDecodeReturnsWhatWasEncoded(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	matrices := []*Matrix{
		mustNew(t, Meta{}, nil),
		mustNew(t, Meta{Source: "invalid \xff UTF-8 <&>", Params: map[string]string{"k\xff": "v"}}, vehicles()),
		mustNew(t, Meta{Docs: math.MaxUint64}, randomRows(random, 700)), // several chunks a section
		mustNew(t, Meta{Origins: []string{"vectors", "spelling"}}, withOrigins(random, randomRows(random, 300), 3)),
		mustNew(t, Meta{Origins: []string{"vectors"}}, inForms(withOrigins(random, randomRows(random, 700), 1))),
	}
	for range 50 {
		matrices = append(matrices, mustNew(t, Meta{Docs: random.Uint64()}, randomRows(random, 1+random.IntN(20))))
	}
	for _, m := range matrices {
		file := encoded(t, m)
		again := encoded(t, m)
		check.Must(t, bytes.Equal(file, again), "the same matrix gives other bytes")
		got := check.Got(Decode(iotest.HalfReader(bytes.NewReader(file))))(t)
		diff := same(m, got)
		check.Must(t, diff == "", "%v", diff)
	}
}

func TestDecodeRefusesEveryTruncation(t *testing.T) {
	file := encoded(t, mustNew(t, Meta{Source: "s"}, inForms(vehicles())))
	sections := map[string]bool{}
	for end := range file {
		m, err := Decode(bytes.NewReader(file[:end]))
		check.Must(t, errors.Is(err, ErrFormat) && m == nil, "%d of %d bytes: %v", end, len(file), err)
		before, section, _ := strings.Cut(err.Error(), ", inside the ")
		want := fmt.Sprintf("ends at byte %d", end)
		check.Must(t, strings.HasSuffix(before, want), "%v, want %s", err, want)
		sections[section] = true
	}
	want := map[string]bool{
		"head": true, "header": true, "term lengths": true, "terms": true, "document frequencies": true,
		"row lengths": true, "columns": true, "similarities": true, "form lengths": true, "forms": true, "checksum": true,
	}
	check.Equal(t, want, sections)
}

func TestDecodeFindsEveryFlippedBit(t *testing.T) {
	file := encoded(t, mustNew(t, Meta{Source: "s"}, vehicles()))
	counts := map[error]int{}
	for i := range file {
		for bit := range 8 {
			damaged := bytes.Clone(file)
			damaged[i] ^= 1 << bit
			_, err := Decode(bytes.NewReader(damaged))
			check.Must(t, i < len(file)-checksumSize-5*2 || strings.Contains(err.Error(), fmt.Sprintf("at byte %d ", len(file)-checksumSize)), "%v", err)
			found := false
			for _, want := range []error{ErrFormat, ErrFormatVersion, ErrChecksum} {
				if errors.Is(err, want) {
					counts[want]++
					found = true
				}
			}
			check.Must(t, found, "bit %d of byte %d: %v", bit, i, err)
		}
	}
	if counts[ErrFormatVersion] != 31 { // the bits of the version, but the one that makes it that of expressions
		t.Errorf("%d flips are another version", counts[ErrFormatVersion])
	}
	// All flips in the terms (27 bytes), frequencies, columns, similarities
	// and the checksum leave the sections in place.
	least := 8 * (27 + 6*4 + 5*4 + 5*2 + 32)
	check.That(t, counts[ErrChecksum] >= least, "%d flips fail the checksum, want at least %d", counts[ErrChecksum], least)
}

func TestMatrixFilesAreKnownByTheirBeginning(t *testing.T) {
	file := string(encoded(t, mustNew(t, Meta{}, []TermRow{{Term: "a"}})))
	for content, want := range map[string]bool{file: true, fileMagic: true, fileMagic[:7]: false, "": false, "akin\nakin-S\n": false} {
		r := bufio.NewReader(strings.NewReader(content))
		check.Equal(t, want, IsEncoded(r), content)
		left, err := io.ReadAll(r)
		check.That(t, err == nil && string(left) == content, "%.20q: left to read is %.20q, %v", content, left, err)
	}
}

// file puts a file together without any check.
func rawFile(header string, lengths []uint16, terms string, docFreqs []uint32, counts []uint16, cols []uint32, sims []uint16) []byte {
	b := []byte(fileMagic)
	b = binary.LittleEndian.AppendUint32(b, 1)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	b = append(b, header...)
	for _, part := range []any{lengths, []byte(terms), docFreqs, counts, cols, sims} {
		b, _ = binary.Append(b, binary.LittleEndian, part)
	}
	return signed(b)
}

func TestDecodeRefusesWhatNoMatrixHolds(t *testing.T) {
	header := func(terms, nonZeros, longest string) string {
		return `{"source":"","docs":0,"terms":` + terms + `,"non_zeros":` + nonZeros + `,"max_neighbors":` + longest + `,"symmetric":false,"dominant":false}`
	}
	u16 := func(v ...uint16) []uint16 { return v }
	u32 := func(v ...uint32) []uint32 { return v }
	three := u16(1, 1, 1)
	good := rawFile(header("3", "2", "2"), three, "abc", u32(1, 1, 1), u16(2, 0, 0), u32(1, 2), u16(65535, 7))
	check.OK(t, check.ErrOf(Decode(bytes.NewReader(good))))
	abc := func(counts []uint16, cols []uint32, sims []uint16) []byte {
		return rawFile(header("3", "2", "2"), three, "abc", u32(1, 1, 1), counts, cols, sims)
	}
	for _, tt := range []struct {
		name, message string
		file          []byte
	}{
		{"column out of range", "neighbor 3 of 3", abc(u16(2, 0, 0), u32(1, 3), u16(65535, 7))},
		{"own column", "own neighbor", abc(u16(2, 0, 0), u32(0, 2), u16(65535, 7))},
		{"column twice", "twice", abc(u16(2, 0, 0), u32(1, 1), u16(65535, 7))},
		{"similarity 0", "similarity 0", abc(u16(2, 0, 0), u32(1, 2), u16(65535, 0))},
		{"ascending similarities", "order", abc(u16(2, 0, 0), u32(1, 2), u16(7, 8))},
		{"ties out of order", "order", abc(u16(2, 0, 0), u32(2, 1), u16(65535, 65535))},
		{"counts that do not add up", "header says 2", abc(u16(2, 1, 0), u32(1, 2), u16(65535, 7))},
		{"a header that counts otherwise", "NonZeros:2 MaxNeighbors:2 Symmetric:false Dominant:false}, not {Source: Params:map[] Origins:[] Docs:0 Terms:3 Forms:0 OtherForms:0 Expressions:0 NonZeros:2 MaxNeighbors:1", abc(u16(1, 1, 0), u32(1, 2), u16(65535, 7))},
		{"terms out of order", "order", rawFile(header("2", "0", "0"), u16(1, 1), "ba", u32(1, 1), u16(0, 0), nil, nil)},
		{"a term twice", "twice", rawFile(header("2", "0", "0"), u16(1, 1), "aa", u32(1, 1), u16(0, 0), nil, nil)},
		{"an empty term", "empty", rawFile(header("1", "0", "0"), u16(0), "", u32(1), u16(0), nil, nil)},
		{"a term that is not UTF-8", "UTF-8", rawFile(header("1", "0", "0"), u16(1), "\xff", u32(1), u16(0), nil, nil)},
		{"a row too long", "10001", rawFile(header("3", "10001", "10001"), three, "abc", u32(1, 1, 1), u16(10001, 0, 0), make([]uint32, 10001), make([]uint16, 10001))},
		{"too many terms", "header", rawFile(header("2147483648", "0", "0"), nil, "", nil, nil, nil, nil)},
		{"too many entries", "header", rawFile(header("1", "10001", "0"), nil, "", nil, nil, nil, nil)},
		{"header that is no JSON", "header", rawFile("{", nil, "", nil, nil, nil, nil)},
		{"header with an unknown key", "unknown field", rawFile(`{"colour":1}`, nil, "", nil, nil, nil, nil)},
		{"two headers", "more than one", rawFile(header("0", "0", "0")+"{}", nil, "", nil, nil, nil, nil)},
		{"header too long", "header of", rawFile(strings.Repeat(" ", maxHeader+1), nil, "", nil, nil, nil, nil)},
		{"bytes after the end", "more bytes", append(bytes.Clone(good), 0)},
		{"another kind of file", "begin", []byte("PK\x03\x04 and then something long enough")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Decode(bytes.NewReader(tt.file))
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), tt.message) || m != nil {
				t.Errorf("error %v, want ErrFormat with %q", err, tt.message)
			}
		})
	}
}

func TestDecodeAllocatesOnlyWhatItReads(t *testing.T) {
	header := `{"source":"","docs":0,"terms":2147483647,"non_zeros":9000000000000,"max_neighbors":1,"symmetric":false,"dominant":false}`
	file := rawFile(header, make([]uint16, chunkBytes), "", nil, nil, nil, nil) // more than one chunk
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Decode(bytes.NewReader(file))
	runtime.ReadMemStats(&after)
	check.Must(t, errors.Is(err, ErrFormat), "%v", err)
	used := after.TotalAlloc - before.TotalAlloc
	check.That(t, used <= 4<<20, "%d bytes allocated for a file of %d", used, len(file))
}

func TestErrorsOfReadersAndWritersPassThrough(t *testing.T) {
	m := mustNew(t, Meta{}, vehicles())
	broken := errors.New("disk on fire")
	file := encoded(t, m)
	for _, read := range []int{0, 20, len(file) - 40, len(file)} {
		_, err := Decode(io.MultiReader(bytes.NewReader(file[:read]), iotest.ErrReader(broken)))
		if !errors.Is(err, broken) || errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), fmt.Sprintf(" at byte %d:", read)) {
			t.Errorf("after %d bytes: %v", read, err)
		}
	}
	check.Error(t, broken, Encode(failingWriter{broken}, m))
	check.Error(t, broken, Encode(failingWriter{broken}, mustNew(t, Meta{Source: strings.Repeat("s", 2*chunkBytes)}, vehicles())))
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestNewRefusesAHeaderThatDecodeWouldRefuse(t *testing.T) {
	check.Error(t, ErrInvalid, check.ErrOf(New(Meta{Source: strings.Repeat("s", maxHeader)}, nil)))
}

func FuzzDecode(f *testing.F) {
	random := rand.New(rand.NewPCG(5, 6))
	f.Add(encoded(f, mustNew(f, Meta{}, nil)))
	f.Add(encoded(f, mustNew(f, Meta{Source: "s", Params: map[string]string{"a": "b"}}, vehicles())))
	f.Add(encoded(f, mustNew(f, Meta{Docs: 7}, randomRows(random, 12))))
	f.Add(encoded(f, mustNew(f, Meta{}, inForms(vehicles()))))
	f.Fuzz(func(t *testing.T, file []byte) {
		// Most mutations die at the checksum, so the content is tried with
		// the right one too.
		for _, b := range [][]byte{file, signed(file[:max(0, len(file)-checksumSize)])} {
			m, err := Decode(bytes.NewReader(b))
			if err != nil {
				check.Must(t, m == nil && (errors.Is(err, ErrFormat) || errors.Is(err, ErrFormatVersion) || errors.Is(err, ErrChecksum)), "%v, %v", m, err)
				continue
			}
			for term, row := range m.Rows() {
				parsed, err := ParseRow(row.Packed())
				check.Must(t, err == nil && parsed == row && m.Row(term) == row, "row of %q: %v", term, err)
			}
			for term, form := range m.Forms() {
				err := CheckForm(form)
				check.Must(t, err == nil && form != term && m.Form(term) == form, "form of %q: %v", term, err)
			}
			again, err := Decode(bytes.NewReader(encoded(t, mustNew(t, m.Meta(), termRows(m)))))
			check.Must(t, err == nil, "encoded again: %v", err)
			again.checksum = m.checksum // the header's JSON may have been written otherwise
			diff := same(m, again)
			check.Must(t, diff == "", "%v", diff)
		}
	})
}

// termRows returns the rows of m as New takes them.
func termRows(m *Matrix) []TermRow {
	var rows []TermRow
	for term, row := range m.Rows() {
		rows = append(rows, TermRow{Term: term, DocFreq: row.DocFreq(), Form: m.Form(term), Neighbors: neighborsOf(row)})
	}
	return rows
}

// A file that was written before rows had origins and words had nearest ones is
// read as it was: three pairs of words, by akin at 09d4d11.
func TestFilesOfEarlierVersionsStayReadable(t *testing.T) {
	file := check.Got(os.Open(filepath.Join("testdata", "before_models.akin")))(t)
	defer file.Close()
	m := check.Got(Decode(file))(t)
	var got []string
	for _, term := range []string{"car", "gas"} {
		for n := range m.Row(term).All() {
			got = append(got, fmt.Sprintf("%s %s %.1f", term, n.Term, n.Similarity))
		}
	}
	want := []string{"car automobile 0.8", "car vehicle 0.5", "gas petrol 0.9"}
	check.That(t, slices.Equal(got, want) && m.Len() == 5, "%d terms, %q", m.Len(), got)
}
