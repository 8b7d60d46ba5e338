package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// The matrix has another header and other similarities than the relations, and
// is made of the same file.
func TestARegressionIsNotFittedToOneOfItsSources(t *testing.T) {
	var synonyms, pairs strings.Builder
	for i := range 30 {
		fmt.Fprintf(&synonyms, "%s, %s\n", word(i), word(i+30))
		for j := range 60 {
			if i != j {
				fmt.Fprintf(&pairs, "%s\t%s\t%v\n", word(i), word(j), float64(1+(i*j)%7)/10)
			}
		}
	}
	folder, relations := t.TempDir(), write(t, "s.txt", synonyms.String())
	docs, thesaurus := filepath.Join(folder, "docs.akin"), filepath.Join(folder, "thesaurus.akin")
	for _, args := range [][]string{
		{"--from-tsv", write(t, "docs.tsv", pairs.String()), "--out", docs},
		{"--from-thesaurus", relations, "--similarity", "0.8", "--out", thesaurus},
	} {
		if _, stderr, status := akin(t, append([]string{"matrix", "build"}, args...)...); status != 0 {
			t.Fatal(stderr)
		}
	}
	_, stderr, status := akin(t, "matrix", "build", "--from-matrices", docs+","+thesaurus, "--combine", "regression:"+relations,
		"--out", filepath.Join(folder, "out.akin"))
	if status != exitFailure || !strings.Contains(stderr, `input "thesaurus" has the`) {
		t.Errorf("status %d\n%s", status, stderr)
	}
}
