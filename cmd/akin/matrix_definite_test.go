package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/cli"
)

func TestCheckSaysWhetherSIsPositiveDefinite(t *testing.T) {
	// One way .9 is .45 in the symmetric S; both ways, 1 − .81 − .81 < 0 is left of b.
	yes := pairsFile(t, "yes.akin", "a\tb\t0.9\nb\tc\t0.9\n")
	no := pairsFile(t, "no.akin", "a\tb\t0.9\nb\ta\t0.9\nb\tc\t0.9\nc\tb\t0.9\n")
	contains(t, "yes", mustAkin(t, "matrix", "check", "--definite", yes), "\npositive definite  yes\n", "factor             1 entries for each of S")
	contains(t, "no", mustAkin(t, "matrix", "check", "--definite", no), "\npositive definite  no\n", ", after 2 of 3 terms")
	check.That(t, !strings.Contains(mustAkin(t, "matrix", "check", no), "positive definite"), "checked without --definite")
	for file, want := range map[string]definiteness{yes: {Answer: "yes", Terms: 3, Fill: 1}, no: {Answer: "no", Term: "c", Terms: 2}} {
		var report struct {
			Checksum         string
			PositiveDefinite definiteness `json:"positive_definite"`
		}
		check.OK(t, json.Unmarshal([]byte(mustAkin(t, "matrix", "check", "--definite", "--json", file)), &report))
		check.Equal(t, want, report.PositiveDefinite)
		check.That(t, report.Checksum != "", "the rest of the report has gone")
	}
}

func TestCheckOfPositiveDefinitenessIsBounded(t *testing.T) {
	var pairs strings.Builder // each of 40 words a little like the 20 after it
	for i := range 40 {
		for k := range 20 {
			fmt.Fprintf(&pairs, "w%d\tw%[2]d\t0.04\n", i, (i+1+k)%40)
		}
	}
	m := check.Got(cli.ReadMatrix(t.Context(), pairsFile(t, "ring.akin", pairs.String())))(t)
	enough := definiteEntryBytes*800 + definiteTermBytes*40 + 12*40*41/2
	for _, c := range []struct {
		bytes, products int
		want            definiteness
	}{
		{enough, 1 << 20, definiteness{Answer: "yes", Terms: 40, Fill: 1}},
		{enough - 12, 1 << 20, definiteness{Answer: "unknown", Terms: 39}},
		{enough, 1, definiteness{Answer: "unknown", Terms: 3}},
		{1 << 10, 1 << 20, definiteness{Answer: "unknown"}},
	} {
		got := check.Got(definiteOf(t.Context(), m, c.bytes, c.products))(t)
		check.Equal(t, &c.want, got)
	}
	var out strings.Builder
	check.OK(t, (&definiteness{Answer: "unknown", Terms: 7}).report(&out, 40))
	check.Equal(t, "\npositive definite  unknown: not within 4 GiB and 100 billion multiplications\nfactor             7 of 40 terms\n", out.String())
}
