package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/simmatrix"
)

// The output was worked out by hand: lorry has lost its one neighbor; of bus the smaller
// similarities are .25, the larger .50 + .75 + .75 = 2: 1 - .25/2 = .875. The
// mean is (1 + .875)/4.
func TestDiffPrintsWhatChanged(t *testing.T) {
	want := golden(t, "fleet_diff.txt")
	encodedFile(t, "old.akin", fleet(t))
	changed, err := simmatrix.New(simmatrix.Meta{
		Source: "a small fleet", Docs: 101, Params: map[string]string{"power": "2", "seed": "1"},
	}, []simmatrix.TermRow{
		{Term: "bus", DocFreq: 12, Neighbors: []simmatrix.Neighbor{{Term: "car", Similarity: 0.5}, {Term: "coach", Similarity: 0.75}}},
		{Term: "car", DocFreq: 41, Neighbors: []simmatrix.Neighbor{{Term: "bus", Similarity: 0.25}, {Term: "lorry", Similarity: 0.8}}},
		{Term: "coach", DocFreq: 2},
		{Term: "lorry", DocFreq: 9},
		{Term: "van"},
	})
	if err != nil {
		t.Fatal(err)
	}
	addEncodedFile(t, "new.akin", changed)
	out, stderr, status := akin(t, "matrix", "diff", "old.akin", "new.akin")
	if status != 0 {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	if diff := cmp.Diff(want, trimmed(out)); diff != "" {
		t.Error(diff)
	}
}

func TestDiffCutsLongListsShort(t *testing.T) {
	var rows, none []simmatrix.TermRow
	all := simmatrix.TermRow{Term: "all"}
	for i := range 30 {
		rows = append(rows, simmatrix.TermRow{Term: fmt.Sprintf("t%02d", i)})
		all.Neighbors = append(all.Neighbors, simmatrix.Neighbor{Term: rows[i].Term, Similarity: 0.5})
	}
	matrix := func(rows []simmatrix.TermRow) *simmatrix.Matrix {
		m, err := simmatrix.New(simmatrix.Meta{}, rows)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	encodedFile(t, "old.akin", matrix(append(none, simmatrix.TermRow{Term: "all"})))
	addEncodedFile(t, "new.akin", matrix(append(rows, all)))
	out, _, _ := akin(t, "matrix", "diff", "old.akin", "new.akin")
	for _, want := range []string{"t19 and 10 more\n", "+ and 20 more", "+ t09"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "+ t10") {
		t.Errorf("more than ten neighbors in\n%s", out)
	}
}
