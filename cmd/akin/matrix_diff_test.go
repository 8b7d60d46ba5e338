package main

import (
	"fmt"
	"strings"
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

func TestDiffCutsLongListsShort(t *testing.T) {
	var rows []simmatrix.TermRow
	all := simmatrix.TermRow{Term: "all"}
	for i := range 30 {
		rows = append(rows, simmatrix.TermRow{Term: fmt.Sprintf("t%02d", i)})
		all.Neighbors = append(all.Neighbors, simmatrix.Neighbor{Term: rows[i].Term, Similarity: 0.5})
	}
	encodedFile(t, "old.akin", matrixOf(t, simmatrix.Meta{}, simmatrix.TermRow{Term: "all"}))
	check.OK(t, cli.WriteMatrix(t.Context(), "new.akin", matrixOf(t, simmatrix.Meta{}, append(rows, all)...)))
	out := ends(t, 0, []string{"matrix", "diff", "old.akin", "new.akin"}, "t19 and 10 more\n", "+ and 20 more", "+ t09")
	if strings.Contains(out, "+ t10") {
		t.Errorf("more than ten neighbors in\n%s", out)
	}
}
