package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/simmatrix"
)

// trimmed takes the blanks at the ends of lines away, which come from columns
// that are empty.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

// golden returns a file of testdata.
func golden(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The report was worked out by hand: 5 entries and 5 terms of 25; three pairs of which
// bus-tram goes one way and car-lorry has .8 and .6; the rows of bus 1.00,
// car 1.05, lorry .6 (.25 is 16384 units, .75 is 49151: their sum is 65535).
// Lengths 0 0 1 2 2, rows with a term 0 1 1 1 2.
func TestCheckPrintsWhatIsInAMatrix(t *testing.T) {
	m, want := fleet(t), golden(t, "fleet_check.txt")
	file := encodedFile(t, "fleet.akin", m)
	out, stderr, status := akin(t, "matrix", "check", file)
	if status != 0 {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	if diff := cmp.Diff(strings.ReplaceAll(want, "SUM", m.Checksum()), trimmed(out)); diff != "" {
		t.Error(diff)
	}
	again, _, _ := akin(t, "matrix", "check", file)
	if again != out {
		t.Error("another report of the same file")
	}
}

func TestCheckOfAMatrixWithoutTerms(t *testing.T) {
	m, err := simmatrix.New(simmatrix.Meta{Source: "nothing"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, stderr, status := akin(t, "matrix", "check", encodedFile(t, "empty.akin", m))
	if status != exitFailure || !strings.Contains(out, "documents  unknown") || strings.Contains(out, "NaN") || !strings.Contains(stderr, "no term has a neighbor") {
		t.Errorf("status %d\n%s%s", status, out, stderr)
	}
	file := matrixFile(t, simmatrix.Meta{}, simmatrix.TermRow{Term: "alone"})
	if _, stderr, status := akin(t, "matrix", "check", file); status != exitFailure || !strings.Contains(stderr, "no term has a neighbor") {
		t.Errorf("no neighbors: status %d\n%s", status, stderr)
	}
}

// 0.5 and 32767 of 65535 units: the sum is the largest under 1, which four
// decimals do not show. The smallest similarity is 1 of 65535.
func TestSmallSimilaritiesAndSumsUnder1AreShownAsTheyAre(t *testing.T) {
	file := matrixFile(t, simmatrix.Meta{},
		simmatrix.TermRow{Term: "a", Neighbors: []simmatrix.Neighbor{{Term: "b", Similarity: 0.5}, {Term: "c", Similarity: 32766.0 / 65535}}},
		simmatrix.TermRow{Term: "b", Neighbors: []simmatrix.Neighbor{{Term: "a", Similarity: 1.0 / 65535}, {Term: "c", Similarity: 0.00345}}},
		simmatrix.TermRow{Term: "c"})
	out, _, status := akin(t, "matrix", "check", file)
	for _, want := range []string{"at most 0.99998 of a, 0 rows", "0.0000153", "0.00345"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("status %d, no %s in\n%s", status, want, out)
		}
	}
	shown, _, _ := akin(t, "matrix", "show", file, "b")
	if !strings.Contains(shown, "c  0.00345  ") || !strings.Contains(shown, "a  0.0000153  ") {
		t.Errorf("show:\n%s", shown)
	}
	addEncodedFile(t, filepath.Join(filepath.Dir(file), "none.akin"), without(t))
	changed, _, _ := akin(t, "matrix", "diff", filepath.Join(filepath.Dir(file), "none.akin"), file)
	if !strings.Contains(changed, "+ a  0.0000153") {
		t.Errorf("diff:\n%s", changed)
	}
}

// without returns a matrix over a, b and c without neighbors.
func without(t *testing.T) *simmatrix.Matrix {
	t.Helper()
	m, err := simmatrix.New(simmatrix.Meta{}, []simmatrix.TermRow{{Term: "a"}, {Term: "b"}, {Term: "c"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A file whose header was altered, by somebody who set the checksum right.
func TestCheckOfAFileThatLiesFails(t *testing.T) {
	file := encodedFile(t, "fleet.akin", fleet(t))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	altered := bytes.Replace(data, []byte(`"symmetric":false`), []byte(`"symmetric":true`), 1)
	binary.LittleEndian.PutUint32(altered[12:], binary.LittleEndian.Uint32(altered[12:])-1) // the length of the header
	body := altered[:len(altered)-sha256.Size]
	sum := sha256.Sum256(body)
	for name, content := range map[string][]byte{
		"damaged":   append(bytes.Clone(data[:len(data)-1]), data[len(data)-1]^1),
		"cut short": data[:len(data)/2],
		"lying":     append(bytes.Clone(body), sum[:]...),
	} {
		if err := os.WriteFile("bad.akin", content, 0o600); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"damaged": "checksum", "cut short": "inside the", "lying": "header does not describe"}[name]
		_, stderr, status := akin(t, "matrix", "check", "bad.akin")
		if status != exitFailure || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, no %q in\n%s", name, status, want, stderr)
		}
	}
}

func TestMistakesAroundMatricesExitWithStatus2(t *testing.T) {
	t.Setenv("AKIN_REDIS_URL", "")
	file := encodedFile(t, "fleet.akin", fleet(t))
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"check nothing": {[]string{"check"}, "arg"},
		"diff of one":   {[]string{"diff", file}, "arg"},
		"no Redis":      {[]string{"check", "docs@active"}, "--redis"},
		"no target":     {[]string{"export", file}, "--out"},
		"no folder":     {[]string{"export", file, "--out", "/no/such/folder/x"}, "/no/such/folder"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, status := akin(t, append([]string{"matrix"}, tt.args...)...)
			if status != exitUsage || !strings.Contains(stderr, tt.want) {
				t.Errorf("status %d, no %q in\n%s", status, tt.want, stderr)
			}
		})
	}
}
