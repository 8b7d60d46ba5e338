package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
)

// The output was worked out by hand: lorry has lost its one neighbor; of bus the smaller
// similarities are .25, the larger .50 + .75 + .75 = 2: 1 - .25/2 = .875. The
// mean is (1 + .875)/4.
func TestDiffPrintsWhatChanged(t *testing.T) {
	want := golden(t, "fleet_diff.txt")
	encodedFile(t, "old.akin", fleet(t))
	check.OK(t, cli.WriteMatrix(t.Context(), "new.akin", matrixOf(t, simmatrix.Meta{Source: "a small fleet", Docs: 101, Params: map[string]string{"power": "2", "seed": "1"}},
		simmatrix.TermRow{Term: "bus", DocFreq: 12, Neighbors: []simmatrix.Neighbor{{Term: "car", Similarity: 0.5}, {Term: "coach", Similarity: 0.75}}},
		simmatrix.TermRow{Term: "car", DocFreq: 41, Neighbors: []simmatrix.Neighbor{{Term: "bus", Similarity: 0.25}, {Term: "lorry", Similarity: 0.8}}},
		simmatrix.TermRow{Term: "coach", DocFreq: 2}, simmatrix.TermRow{Term: "lorry", DocFreq: 9}, simmatrix.TermRow{Term: "van"})))
	if diff := cmp.Diff(want, trimmed(mustAkin(t, "matrix", "diff", "old.akin", "new.akin")+"\n")); diff != "" {
		t.Error(diff)
	}
}
