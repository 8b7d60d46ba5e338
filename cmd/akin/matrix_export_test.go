package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/simmatrix"
)

// plainFleet is fleet without the term that no line can hold.
func plainFleet(t *testing.T) *simmatrix.Matrix {
	t.Helper()
	m, err := simmatrix.New(simmatrix.Meta{Source: "a small fleet"}, []simmatrix.TermRow{
		{Term: "bus", DocFreq: 12, Neighbors: []simmatrix.Neighbor{{Term: "car", Similarity: 0.25}}},
		{Term: "car", Neighbors: []simmatrix.Neighbor{{Term: "bus", Similarity: 0.75}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// 0.25 is stored as 16384/65535, 0.75 as 49151/65535.
const fleetTSV = "bus\tcar\t0.250004\ncar\tbus\t0.749996\n"

func TestExportWritesWhatOthersRead(t *testing.T) {
	file := encodedFile(t, "fleet.akin", plainFleet(t))
	out, stderr, status := akin(t, "matrix", "export", file, "--out", "-")
	if status != 0 || out != fleetTSV || stderr != "fleet.akin: 2 terms, 2 neighbors\n" {
		t.Errorf("to standard output: status %d\n%s%s", status, out, stderr)
	}
	if _, stderr, status := akin(t, "matrix", "export", "--out", "fleet.tsv", file); status != 0 {
		t.Errorf("tsv: status %d\n%s", status, stderr)
	}
	got, err := os.ReadFile("fleet.tsv")
	if diff := cmp.Diff(fleetTSV, string(got)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestExportThatFailsLeavesNothingBehind(t *testing.T) {
	file := encodedFile(t, "fleet.akin", fleet(t)) // a term holds a tab
	if _, stderr, status := akin(t, "matrix", "export", file, "--out", "x.tsv"); status != exitFailure || !strings.Contains(stderr, `tram\t7`) {
		t.Errorf("status %d\n%s", status, stderr)
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
