package main

import (
	"bytes"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/simmatrix"
)

// plotMatrix writes the file of a small matrix.
func plotMatrix(t *testing.T, rows ...simmatrix.TermRow) string {
	t.Helper()
	m, err := simmatrix.New(simmatrix.Meta{Source: "a test"}, rows)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cars.akin")
	if err := files.Write(t.Context(), path, func(w io.Writer) error { return simmatrix.Encode(w, m) }); err != nil {
		t.Fatal(err)
	}
	return path
}

func carRows() []simmatrix.TermRow {
	return []simmatrix.TermRow{
		{Term: "auto", Neighbors: []simmatrix.Neighbor{{Term: "car", Similarity: 0.9}}},
		{Term: "car", Neighbors: []simmatrix.Neighbor{{Term: "auto", Similarity: 0.9}, {Term: "road", Similarity: 0.2}}},
		{Term: "road"},
	}
}

func TestMatrixPlotDrawsAnImage(t *testing.T) {
	file := plotMatrix(t, carRows()...)
	out := filepath.Join(t.TempDir(), "cars.svg")
	_, stderr, status := akin(t, "matrix", "plot", file, "--out", out)
	if status != 0 || !strings.Contains(stderr, "terms: 3 ") || !strings.Contains(stderr, "neighbors: 3 ") {
		t.Fatalf("status %d: %s", status, stderr)
	}
	svg, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cars.akin", "How similar", "C most similar", "above θ"} {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("no %q in the image", want)
		}
	}
}

func TestMatrixPlotDrawsWhatIsAskedFor(t *testing.T) {
	file := plotMatrix(t, carRows()...)
	for what, want := range map[string]string{
		"similarities": "How similar", "density-by-neighbors": "C most similar", "density-by-threshold": "above θ",
	} {
		out := filepath.Join(t.TempDir(), "cars.SVG")
		if _, stderr, status := akin(t, "matrix", "plot", file, "--figure", what, "--out", out); status != 0 {
			t.Fatalf("%s: status %d: %s", what, status, stderr)
		}
		svg, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, title := range []string{"How similar", "C most similar", "above θ"} {
			n += bytes.Count(svg, []byte(title))
		}
		if n != 1 || !bytes.Contains(svg, []byte(want)) {
			t.Errorf("%s: %d figures, or no %q", what, n, want)
		}
	}
}

func TestMatrixPlotWritesPNG(t *testing.T) {
	file, out := plotMatrix(t, carRows()...), filepath.Join(t.TempDir(), "cars.png")
	if _, stderr, status := akin(t, "matrix", "plot", file, "--figure", "similarities", "--out", out); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := png.Decode(f); err != nil {
		t.Error(err)
	}
}

func TestMatrixPlotNamesMistakes(t *testing.T) {
	file := plotMatrix(t, carRows()...)
	for name, tt := range map[string]struct {
		args   []string
		want   []string
		status int
	}{
		"no matrix":    {nil, []string{"1 arg"}, exitUsage},
		"two matrices": {[]string{file, file, "--out", "x.svg"}, []string{"1 arg"}, exitUsage},
		"all at once":  {[]string{file, "--figure", "pie"}, []string{"--figure pie", "density-by-threshold", "--out FILE.svg"}, exitUsage},
		"format":       {[]string{file, "--out", "x.pdf"}, []string{"--out FILE.svg"}, exitUsage},
		"no folder":    {[]string{file, "--out", "/no/such/folder/x.svg"}, []string{"/no/such/folder"}, exitUsage},
		"no file":      {[]string{"/no/such.akin", "--out", filepath.Join(t.TempDir(), "x.svg")}, []string{"/no/such.akin"}, exitFailure},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, status := akin(t, append([]string{"matrix", "plot"}, tt.args...)...)
			if status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			for _, want := range tt.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("no %q in %s", want, stderr)
				}
			}
		})
	}
}

func TestMatrixPlotOfNothingLeavesNoFile(t *testing.T) {
	file, folder := plotMatrix(t, simmatrix.TermRow{Term: "car"}), t.TempDir()
	_, stderr, status := akin(t, "matrix", "plot", file, "--out", filepath.Join(folder, "x.svg"))
	if status != exitFailure || !strings.Contains(stderr, file) || !strings.Contains(stderr, "no neighbors") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v left, %v", left, err)
	}
}
