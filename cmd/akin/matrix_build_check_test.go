package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/simmatrix"
)

func TestSettingsOfTheRowsAreNamedOnceByTheirFlags(t *testing.T) {
	vectors := write(t, "v.txt", "car 1 0\nbus 0.5 0.5\n")
	out := filepath.Join(t.TempDir(), "o.akin")
	for _, top := range []string{"-1", "0", "10001"} {
		_, stderr, status := akin(t, "matrix", "build", "--from-vectors", vectors, "--out", out, "--top", top, "--min-similarity", "NaN")
		if want := "akin: --top: " + top + " not in [1, 10000]\n--min-similarity: NaN not in [0, 1)\n"; status != exitUsage || stderr != want {
			t.Errorf("status %d, %q, want %q", status, stderr, want)
		}
	}
}

// TestNoOutputTakesThePlaceOfAnInput names files in several ways: as they are,
// from a folder that is not the current one, and by a link.
func TestNoOutputTakesThePlaceOfAnInput(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	contents := map[string]string{"s.txt": "car, automobile\n", "o.txt": "ban car jaguar\n", "m.tsv": "car\tbus\t0.5\n"}
	for name, content := range contents {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("s.txt", "link"); err != nil {
		t.Fatal(err)
	}
	m := matrixFile(t, simmatrix.Meta{}, simmatrix.TermRow{Term: "car"}, simmatrix.TermRow{Term: "bus"})
	before, err := os.ReadFile(m)
	if err != nil {
		t.Fatal(err)
	}
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
		if _, stderr, status := akin(t, append([]string{"matrix"}, strings.Fields(tt.args)...)...); status != exitUsage || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: status %d, want %q in %s", tt.args, status, tt.want, stderr)
		}
	}
	for name, want := range contents {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	if after, err := os.ReadFile(m); err != nil || string(after) != string(before) {
		t.Errorf("the matrix was written over: %v", err)
	}
	if _, stderr, status := akin(t, "matrix", "build", "--from-matrices", m, "--exclude", `^\d`, "--out", m); status != 0 {
		t.Errorf("a matrix is worked over in place: status %d, %s", status, stderr)
	}
}

// piped returns a path from which content is read once.
func piped(t *testing.T, content string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no paths of pipes")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if _, err := io.WriteString(w, content); err != nil { // less than a pipe holds
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return pipePath(r)
}

func TestTermsAndRelationsAreReadFromPipes(t *testing.T) {
	file := matrixFile(t, simmatrix.Meta{}, simmatrix.TermRow{Term: "color"}, simmatrix.TermRow{Term: "colour"})
	encoded, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"list": "color\ncolour\n", "short list": "color\ncolour", "matrix": string(encoded)} {
		m, _ := built(t, "--from-edit-distance", piped(t, content))
		if diff := cmp.Diff([]string{"colour"}, rowOf(m, "color")); diff != "" || m.Len() != 2 {
			t.Errorf("%s: %d terms, %s", name, m.Len(), diff)
		}
	}
	relations, err := readRelations(t.Context(), piped(t, "color, colour\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"colour"}, rowOf(relations, "color")); diff != "" {
		t.Error(diff)
	}
}

func TestCombinedMatricesAreCalledByTheirFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, stderr, status := akin(t, "matrix", "build", "--from-tsv", write(t, "p.tsv", "car\tbus\t0.5\n"), "--out", path); status != 0 {
			t.Fatal(stderr)
		}
		return path
	}
	docs := at("docs.akin")
	m, _ := built(t, "--from-matrices", docs+","+at(".akin"))
	if diff := cmp.Diff([]string{"docs", ".akin"}, m.Meta().Origins); diff != "" {
		t.Error(diff)
	}
	for _, other := range []string{"today/docs.akin", "overrides.akin"} {
		_, stderr, status := akin(t, "matrix", "build", "--from-matrices", docs+","+at(other), "--out", filepath.Join(dir, "out.akin"))
		if status != exitUsage || !strings.Contains(stderr, filepath.FromSlash(other)+" would be called") {
			t.Errorf("%s: status %d\n%s", other, status, stderr)
		}
	}
}
