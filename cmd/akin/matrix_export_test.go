package main

import (
	"testing"

	"github.com/akin-search/akin/simmatrix"
)

// 0.25 is stored as 16384/65535, 0.75 as 49151/65535.
func TestExportWritesWhatOthersRead(t *testing.T) {
	const want = "bus\tcar\t0.250004\ncar\tbus\t0.749996\n"
	file := encodedFile(t, "fleet.akin", matrixOf(t, simmatrix.Meta{Source: "a small fleet"}, // without the term that no line can hold
		simmatrix.TermRow{Term: "bus", DocFreq: 12, Neighbors: []simmatrix.Neighbor{{Term: "car", Similarity: 0.25}}},
		simmatrix.TermRow{Term: "car", Neighbors: []simmatrix.Neighbor{{Term: "bus", Similarity: 0.75}}}))
	out, stderr, status := akin(t, "matrix", "export", file, "--out", "-")
	if status != 0 || out != want || stderr != "fleet.akin: 2 terms, 2 neighbors\n" {
		t.Errorf("to standard output: status %d\n%s%s", status, out, stderr)
	}
	if mustAkin(t, "matrix", "export", "--out", "fleet.tsv", file); read(t, "fleet.tsv") != want {
		t.Error(read(t, "fleet.tsv"))
	}
}
