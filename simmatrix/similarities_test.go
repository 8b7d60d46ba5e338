package simmatrix

import (
	"slices"
	"testing"
)

func TestSimilaritiesAreThoseOfTheRows(t *testing.T) {
	m, err := New(Meta{}, []TermRow{
		{Term: "car", Neighbors: []Neighbor{{Term: "road", Similarity: 0.2}, {Term: "auto", Similarity: 0.9}}},
		{Term: "auto", Neighbors: []Neighbor{{Term: "car", Similarity: 1}}},
		{Term: "road"},
	})
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		place      int
		similarity float32
	}
	var got, want []entry
	for k, s := range m.Similarities() {
		got = append(got, entry{k, s})
	}
	for _, row := range m.Rows() {
		k := 0
		for n := range row.All() {
			want = append(want, entry{k, n.Similarity})
			k++
		}
	}
	if len(want) != 3 || !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for range m.Similarities() {
		break // the iterator must not go on
	}
}
