package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// TestNoOutputTakesThePlaceOfAnInput names files in several ways: as they are,
// from a folder that is not the current one, and by a link.
func TestNoOutputTakesThePlaceOfAnInput(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	contents := map[string]string{"s.txt": "car, automobile\n", "o.txt": "ban car jaguar\n", "m.tsv": "car\tbus\t0.5\n"}
	for name, content := range contents {
		check.OK(t, os.WriteFile(name, []byte(content), 0o600))
	}
	check.OK(t, os.Symlink("s.txt", "link"))
	m := matrixFile(t, simmatrix.Meta{}, simmatrix.TermRow{Term: "car"}, simmatrix.TermRow{Term: "bus"})
	contents[m] = read(t, m)
	for _, tt := range []struct {
		args string
		want string
	}{
		{"build --from-thesaurus s.txt --out s.txt", "--from-thesaurus"},
		{"build --from-thesaurus s.txt --out link", "--from-thesaurus"},
		{"build --from-tsv m.tsv --overrides o.txt --out " + filepath.Join(dir, "o.txt"), "--overrides"},
		{"build --from-edit-distance " + m + " --out " + m, "--from-edit-distance"},
		{"build --from-matrices " + m + " --overrides o.txt --out o.txt", "--overrides"},
		{"export --out " + m + " " + m, "the matrix to export"},
	} {
		ends(t, exitUsage, strings.Fields("matrix "+tt.args), tt.want)
	}
	for name, want := range contents {
		if got := read(t, name); got != want {
			t.Errorf("%s holds %q", name, got)
		}
	}
	mustAkin(t, "matrix", "build", "--from-matrices", m, "--exclude", `^\d`, "--out", m) // in place
}

func TestTermsAndRelationsAreReadFromPipes(t *testing.T) {
	file := matrixFile(t, simmatrix.Meta{}, simmatrix.TermRow{Term: "color"}, simmatrix.TermRow{Term: "colour"})
	piped := func(content string) string {
		path, w := openPipe(t)
		_, err := io.WriteString(w, content) // less than a pipe holds
		check.OK(t, errors.Join(err, w.Close()))
		return path
	}
	for name, content := range map[string]string{"list": "color\ncolour\n", "short list": "color\ncolour", "matrix": read(t, file)} {
		m, _ := built(t, "--from-edit-distance", piped(content))
		if diff := cmp.Diff([]string{"colour"}, rowOf(m, "color")); diff != "" || m.Len() != 2 {
			t.Errorf("%s: %d terms, %s", name, m.Len(), diff)
		}
	}
	relations, err := readRelations(t.Context(), piped("color, colour\n"))
	check.OK(t, err)
	if diff := cmp.Diff([]string{"colour"}, rowOf(relations, "color")); diff != "" {
		t.Error(diff)
	}
}

func TestCombinedMatricesAreCalledByTheirFiles(t *testing.T) {
	at := func(name string) string { return pairsFile(t, name, "car\tbus\t0.5\n") }
	docs := at("docs.akin")
	m, _ := built(t, "--from-matrices", docs+","+at(".akin"))
	if diff := cmp.Diff([]string{"docs", ".akin"}, m.Meta().Origins); diff != "" {
		t.Error(diff)
	}
	for _, other := range []string{"docs.akin", "overrides.akin"} {
		ends(t, exitUsage, []string{"matrix", "build", "--from-matrices", docs + "," + at(other), "--out", "out.akin"}, other+" would be called")
	}
}
