package simmatrix

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
)

// wordyRow returns a row of n neighbors with English letters.
func wordyRow(tb testing.TB, n int) Row {
	tb.Helper()
	neighbors := make([]Neighbor, n)
	for k := range neighbors {
		neighbors[k] = Neighbor{
			Term:       "the quick brown fox jumps over the lazy dog"[k%20:][:4+k%9] + string(rune('a'+k%26)),
			Similarity: QuantizeSimilarity(0.9 / (1 + float64(k)/30)), DocFreq: uint32(k * k),
		}
	}
	return check.Got(PackRow(77, neighbors))(tb)
}

func TestEncodedRowIsTheSameRow(t *testing.T) {
	var c RowCodec
	empty := check.Got(PackRow(4, nil))(t)
	for _, r := range []Row{{}, empty, wordyRow(t, 1), wordyRow(t, 5), wordyRow(t, 100), wordyRow(t, 1000)} {
		encoded := c.Encode(r)
		got, err := c.Decode(encoded, 1<<20)
		check.That(t, err == nil && got == r, "%d neighbors: %v; %q, want %q", r.Len(), err, got.Packed(), r.Packed())
		check.That(t, len(encoded) <= len(r.Packed()), "%d neighbors: %d bytes become %d", r.Len(), len(r.Packed()), len(encoded))
	}
}

func TestEncodedRowHasTheDocumentedBytes(t *testing.T) {
	var c RowCodec
	r := wordyRow(t, 100)
	encoded := c.Encode(r)
	if len(encoded) > len(r.Packed())*8/10 { // the numbers are a quarter, the letters shrink by a third or more
		t.Errorf("%d bytes of %d", len(encoded), len(r.Packed()))
	}
	terms := strings.Index(r.Packed(), "the a") // where the first neighbor is
	check.That(t, encoded[0] == 0x83 && encoded[1:terms] == r.Packed()[1:terms], "numbers %q, want 0x83 and those of %q", encoded[:terms], r.Packed()[:terms])
	inflated, err := io.ReadAll(flate.NewReader(strings.NewReader(encoded[terms:])))
	check.That(t, err == nil && string(inflated) == r.Packed()[terms:], "terms %q, %v", inflated, err)
	short := wordyRow(t, 2)
	check.Equal(t, short.Packed(), c.Encode(short))
}

func TestDecodeRefuses(t *testing.T) {
	var c RowCodec
	r := wordyRow(t, 100)
	good := c.Encode(r)
	h, _ := readHeader(good)
	deflate := func(text string) string {
		var b bytes.Buffer
		w := check.Got(flate.NewWriter(&b, flate.BestSpeed))(t)
		io.WriteString(w, text)
		w.Close()
		return good[:h.terms] + b.String()
	}
	terms := r.Packed()[h.terms:]
	for name, encoded := range map[string]string{
		"bytes after the end":  good + "\x00",
		"no deflated text":     good[:h.terms] + "\xff\xff\xff",
		"fewer bytes":          deflate(terms[1:]),
		"more bytes":           deflate(terms + "x"),
		"a bomb":               deflate(strings.Repeat("a", 1<<20)),
		"another format":       "\x84" + good[1:],
		"only a header":        "\x83\x00",
		"numbers that are bad": "\x83\x00\x02\x02\x05\x80a",
		"packed and too long":  wordyRow(t, 1000).Packed(),
		"encoded and too long": c.Encode(wordyRow(t, 1000)),
	} {
		got, err := c.Decode(encoded, len(r.Packed()))
		check.That(t, errors.Is(err, ErrRow) && got.IsZero(), "%s: %v, %v", name, got, err)
	}
	for end := 1; end < len(good); end += 7 {
		got, err := c.Decode(good[:end], 1<<20)
		check.That(t, errors.Is(err, ErrRow) && got.IsZero(), "cut at %d: %v, %v", end, got, err)
	}
	got, err := c.Decode(good, len(r.Packed()))
	check.That(t, err == nil && got == r, "after all that, and just as long as allowed: %v", err)
}

func TestRowCodecIsSharedByGoroutines(t *testing.T) {
	var c RowCodec
	var done sync.WaitGroup
	for g := range 8 {
		r := wordyRow(t, 20*(g+1))
		done.Go(func() {
			for range 50 {
				if got, err := c.Decode(c.Encode(r), 1<<20); err != nil || got != r {
					t.Errorf("%d neighbors: %v", r.Len(), err)
					return
				}
			}
		})
	}
	done.Wait()
}

func FuzzDecodeRow(f *testing.F) {
	var c RowCodec
	for _, n := range []int{0, 1, 30, 100} {
		f.Add(c.Encode(wordyRow(f, n)))
	}
	f.Add("\x83\x00\x02\x02\x00\x00\x4b\x04\x00") // "a" deflated
	const limit = 4096
	f.Fuzz(func(t *testing.T, encoded string) {
		r, err := c.Decode(encoded, limit)
		if err != nil {
			check.Must(t, errors.Is(err, ErrRow) && r.IsZero(), "%v, %v", r, err)
			return
		}
		check.Must(t, len(r.Packed()) <= limit, "%d bytes, over the limit", len(r.Packed()))
		if parsed, err := ParseRow(r.Packed()); err != nil || parsed != r {
			t.Fatalf("a decoded row cannot be parsed: %v", err)
		}
		if again, err := c.Decode(c.Encode(r), limit); err != nil || again != r {
			t.Fatalf("after encoding it again: %v\n%s", err, cmp.Diff(neighborsOf(r), neighborsOf(again)))
		}
	})
}

func ExampleRowCodec() {
	r, err := PackRow(12, []Neighbor{{Term: "automobile", Similarity: 0.75, DocFreq: 3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var codec RowCodec
	back, err := codec.Decode(codec.Encode(r), 1<<20)
	fmt.Println(back == r, err)
	// Output: true <nil>
}
