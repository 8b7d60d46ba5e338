package simmatrix

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
)

func neighborsOf(r Row) []Neighbor {
	var out []Neighbor
	for n := range r.All() {
		out = append(out, n)
	}
	return out
}

func TestPackedRowHasTheDocumentedBytes(t *testing.T) {
	const long = "abcdefghijklmnopqrst"
	for _, tt := range []struct {
		name      string
		docFreq   uint32
		neighbors []Neighbor
		want      string
	}{
		// By the table at Row: format 3; 300 = 0xac 0x02 as uvarint; 2·1 for one
		// neighbor; 2 bytes of numbers; 16·0 + 1 for nothing under 65535 and two
		// letters; df 5; "ab".
		{"one neighbor", 300, []Neighbor{{Term: "ab", Similarity: 1, DocFreq: 5}}, "\x03\xac\x02\x02\x02\x01\x05ab"},
		// 2·2 + 1 for two neighbors with origins; 7 bytes of numbers; 65535 −
		// 65000 = 535, 16·535 = 8560 = 0xf0 0x42.
		{
			"origins", 0,
			[]Neighbor{{Term: "a", Similarity: 1, Origins: 5}, {Term: "b", Similarity: 65000.0 / 65535, Origins: 128}},
			"\x03\x00\x05\x07\x00\x05\x00\xf0\x42\x80\x00ab",
		},
		// Terms of 15, 16 and 20 bytes: 14; 15 and 0; 15 and 4.
		{
			"long terms", 0,
			[]Neighbor{{Term: long[:15], Similarity: 1}, {Term: long[:16], Similarity: 1}, {Term: long, Similarity: 1}},
			"\x03\x00\x06\x08\x0e\x00\x0f\x00\x00\x0f\x04\x00" + long[:15] + long[:16] + long,
		},
		{"no neighbor", 4, nil, "\x03\x04\x00\x00"},
	} {
		r, err := PackRow(tt.docFreq, tt.neighbors)
		if err != nil {
			t.Fatal(tt.name, err)
		}
		check.Equal(t, tt.want, r.Packed(), tt.name)
	}
}

func TestZeroRowIsEmpty(t *testing.T) {
	r, err := ParseRow("")
	check.That(t, err == nil && r.IsZero() && r.Len() == 0 && r.DocFreq() == 0 && neighborsOf(r) == nil, "ParseRow(\"\") = %+v, %v", r, err)
	empty, err := PackRow(4, nil)
	check.That(t, err == nil && !empty.IsZero() && empty.Len() == 0 && empty.DocFreq() == 4, "a row without neighbors: %+v, %v", empty, err)
}

func TestIteratorsStopWhenAsked(t *testing.T) {
	m, seen := mustNew(t, Meta{}, vehicles()), 0
	for range m.Rows() {
		seen++
		break
	}
	for range m.Row("car").All() {
		seen++
		break
	}
	check.Equal(t, 2, seen)
}

func TestPackRowRefuses(t *testing.T) {
	long := strings.Repeat("a", MaxTermBytes+1)
	for _, tt := range []struct {
		name      string
		neighbors []Neighbor
	}{
		{"similarity 0", []Neighbor{{Term: "a", Similarity: 0}}},
		{"negative similarity", []Neighbor{{Term: "a", Similarity: -0.1}}},
		{"similarity above 1", []Neighbor{{Term: "a", Similarity: 1.0001}}},
		{"NaN", []Neighbor{{Term: "a", Similarity: float32(math.NaN())}}},
		{"empty term", []Neighbor{{Term: "", Similarity: 1}}},
		{"too long a term", []Neighbor{{Term: long, Similarity: 1}}},
		{"rising similarities", []Neighbor{{Term: "a", Similarity: 0.5}, {Term: "b", Similarity: 0.6}}},
		{"origins of one neighbor only", []Neighbor{{Term: "a", Similarity: 1, Origins: 1}, {Term: "b", Similarity: 1}}},
		{"too many neighbors", make([]Neighbor, MaxNeighbors+1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check.Error(t, ErrRow, check.ErrOf(PackRow(1, tt.neighbors)))
		})
	}
	_, err := PackRow(1, []Neighbor{{Term: long[1:], Similarity: 1}})
	check.That(t, err == nil, "a term of MaxTermBytes: %v", err)
}

func TestParseRowRefuses(t *testing.T) {
	good := check.Got(PackRow(300, []Neighbor{{Term: "ab", Similarity: 1, DocFreq: 300}, {Term: "c", Similarity: 0.5}}))(t)
	tooMany := binary.AppendUvarint([]byte{rowFormat, 0}, 2*(MaxNeighbors+1))
	tooLong := binary.AppendUvarint([]byte{rowFormat, 0, 2, 5, 0x0f}, MaxTermBytes+1-16)
	type row struct{ name, packed string }
	rows := []row{
		{"another format", "\x02" + good.Packed()[1:]},
		{"deflated", "\x83" + good.Packed()[1:]},
		{"bytes after the end", good.Packed() + "\x00"},
		{"numbers longer than the row", "\x03\x00\x02\x09\x00\x00a"},
		{"numbers that reach into the terms", "\x03\x00\x02\x01\x00\x00a"},
		{"bytes after the numbers", "\x03\x00\x02\x03\x00\x00\x00a"},
		{"similarity 0", "\x03\x00\x02\x04\xf0\xff\x3f\x00a"}, // 16·65535
		{"a neighbor longer than the row", "\x03\x00\x02\x02\x05\x00a"},
		{"a neighbor of over 32766 bytes", string(tooLong) + "\x00" + strings.Repeat("a", MaxTermBytes+1)},
		{"document frequency over 32 bits", "\x03\xff\xff\xff\xff\x7f\x00\x00"},
		{"number that never ends", "\x03" + strings.Repeat("\x80", 12)},
		{"a sum of differences over 65534", "\x03\x00\x04\x06\xe0\xff\x3f\x00\x10\x00ab"}, // 16·65534, 16·1
		{"no origins where there have to be some", "\x03\x00\x03\x03\x00\x00\x00a"},
		{"origins beyond the end", "\x03\x00\x03\x01\x00"},
		{"more neighbors than allowed", string(tooMany) + "\x00"},
	}
	for end := 1; end < len(good.Packed()); end++ {
		rows = append(rows, row{"cut short", good.Packed()[:end]})
	}
	for _, tt := range rows {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ParseRow(tt.packed)
			check.That(t, errors.Is(err, ErrRow) && r.IsZero(), "ParseRow(%q) = %v, %v, want ErrRow", tt.packed, neighborsOf(r), err)
		})
	}
}

func TestQuantizedSimilaritiesAreFixedPoints(t *testing.T) {
	for u := 1; u <= UnitsOfOne; u++ {
		s := FromUnits(uint16(u))
		if s <= 0 || s > 1 || ToUnits(float64(s)) != uint16(u) || QuantizeSimilarity(float64(s)) != s {
			t.Fatalf("%d units become %v become %d units", u, s, ToUnits(float64(s)))
		}
	}
	for _, tt := range []struct{ in, want float64 }{{-1, 1}, {0, 1}, {1e-9, 1}, {2, 65535}, {0.25, 16384}} { // 0.25·65535 = 16383.75
		check.Equal(t, float32(tt.want)/65535, QuantizeSimilarity(tt.in), tt.in, tt.want)
	}
}

func FuzzParseRow(f *testing.F) {
	for _, neighbors := range [][]Neighbor{nil, {{Term: "ab", Similarity: 1, DocFreq: 9}, {Term: "c", Similarity: 0.1}}, {{Term: "d", Similarity: 0.3, Origins: 3}}} {
		r := check.Got(PackRow(3, neighbors))(f)
		f.Add(r.Packed())
	}
	f.Add("")
	f.Fuzz(func(t *testing.T, packed string) {
		r, err := ParseRow(packed)
		if err != nil {
			check.Must(t, errors.Is(err, ErrRow) && r.IsZero(), "%v, %v", r, err)
			return
		}
		neighbors := neighborsOf(r)
		check.Must(t, len(neighbors) == r.Len(), "%d neighbors, Len %d", len(neighbors), r.Len())
		again, err := PackRow(r.DocFreq(), neighbors)
		check.Must(t, err == nil, "an accepted row cannot be packed: %v", err)
		diff := cmp.Diff(neighbors, neighborsOf(again))
		check.Must(t, diff == "" && again.DocFreq() == r.DocFreq(), "%v", diff)
	})
}

func FuzzPackRow(f *testing.F) {
	f.Add(uint32(3), "automobile", float32(0.5), uint32(7), uint8(0), "hire", float32(1e-7), uint32(0), uint8(0))
	f.Add(uint32(3), "automobile", float32(0.5), uint32(7), uint8(1), "hire", float32(1e-7), uint32(0), uint8(3))
	f.Fuzz(func(t *testing.T, docFreq uint32, term1 string, s1 float32, df1 uint32, o1 uint8, term2 string, s2 float32, df2 uint32, o2 uint8) {
		in := []Neighbor{{term1, s1, df1, o1}, {term2, s2, df2, o2}}
		packed, err := PackRow(docFreq, in)
		if err != nil {
			check.Must(t, errors.Is(err, ErrRow), "%v", err)
			return
		}
		r, err := ParseRow(packed.Packed())
		check.Must(t, err == nil, "a packed row cannot be parsed: %v", err)
		for i := range in {
			in[i].Similarity = QuantizeSimilarity(float64(in[i].Similarity))
		}
		diff := cmp.Diff(in, neighborsOf(r))
		check.Must(t, diff == "" && r.DocFreq() == docFreq, "df %d: %s", r.DocFreq(), diff)
	})
}

func TestReadingARowAllocatesNothing(t *testing.T) {
	r := check.Got(PackRow(1, []Neighbor{{Term: "a", Similarity: 1, DocFreq: 3}, {Term: "b", Similarity: 0.5, DocFreq: 4}}))(t)
	var docs uint64
	check.Equal(t, 0, testing.AllocsPerRun(100, func() {
		for n := range r.All() {
			docs += uint64(n.DocFreq)
		}
	}))
}
