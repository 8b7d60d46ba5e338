package simmatrix

import (
	"errors"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scattered returns a matrix of n terms with random neighbors, of two origins
// where that is asked for.
func scattered(tb testing.TB, n int, origins []string) *Matrix {
	tb.Helper()
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	rows := make([]TermRow, n)
	for i := range rows {
		rows[i] = TermRow{Term: strings.Repeat("x", i%40) + string(rune('a'+i)), DocFreq: rng.Uint32N(5000)}
	}
	for i := range rows {
		for j := range rows {
			if i != j && rng.IntN(3) == 0 {
				e := Neighbor{Term: rows[j].Term, Similarity: 1 - rng.Float32()}
				if origins != nil {
					e.Origins = uint8(1 + rng.IntN(3))
				}
				rows[i].Neighbors = append(rows[i].Neighbors, e)
			}
		}
	}
	m, err := New(Meta{Source: "scattered", Params: map[string]string{"n": "some"}, Origins: origins, Docs: 9000}, inForms(rows))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func TestFromRowsRestoresTheMatrix(t *testing.T) {
	empty, err := New(Meta{Source: "nothing"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*Matrix{
		"empty": empty, "one origin": scattered(t, 60, nil), "two origins": scattered(t, 60, []string{"one", "two"}),
	} {
		got, err := FromRows(m.Meta(), maps.Collect(m.Rows()), maps.Collect(m.Forms()))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Checksum() != m.Checksum() {
			t.Errorf("%s: checksum %s, want %s: %s", name, got.Checksum(), m.Checksum(), cmp.Diff(m.Meta(), got.Meta()))
		}
	}
}

func TestFromRowsRefuses(t *testing.T) {
	row := func(docFreq uint32, neighbors ...Neighbor) Row {
		r, err := PackRow(docFreq, neighbors)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	b := Neighbor{Term: "b", Similarity: 0.5, DocFreq: 7}
	for name, rows := range map[string]map[string]Row{
		"a neighbor without a row":           {"a": row(1, b)},
		"another document frequency":         {"a": row(1, b), "b": row(8)},
		"origins that are not named":         {"a": row(1, Neighbor{Term: "b", Similarity: 0.5, DocFreq: 7, Origins: 1}), "b": row(7)},
		"its own neighbor":                   {"b": row(7, b)},
		"a neighbor twice":                   {"a": row(1, b, b), "b": row(7)},
		"an empty term":                      {"": row(1)},
		"a term that is not UTF-8":           {"\xff": row(1)},
		"a term that is longer than allowed": {strings.Repeat("a", MaxTermBytes+1): row(1)},
	} {
		if m, err := FromRows(Meta{}, rows, nil); !errors.Is(err, ErrInvalid) || m != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
