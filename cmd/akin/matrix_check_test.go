package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
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
	return read(t, filepath.Join("testdata", name))
}

// The report was worked out by hand: 5 entries and 5 terms of 25; three pairs of which
// bus-tram goes one way and car-lorry has .8 and .6; the rows of bus 1.00,
// car 1.05, lorry .6 (.25 is 16384 units, .75 is 49151: their sum is 65535).
// Lengths 0 0 1 2 2, rows with a term 0 1 1 1 2.
func TestCheckPrintsWhatIsInAMatrix(t *testing.T) {
	m, want := fleet(t), golden(t, "fleet_check.txt")
	file := encodedFile(t, "fleet.akin", m)
	out := mustAkin(t, "matrix", "check", file) + "\n"
	if diff := cmp.Diff(strings.ReplaceAll(want, "SUM", m.Checksum()), trimmed(out)); diff != "" {
		t.Error(diff)
	}
	if again := mustAkin(t, "matrix", "check", file) + "\n"; again != out {
		t.Error("another report of the same file")
	}
}

func TestCheckOfAMatrixWithoutTerms(t *testing.T) {
	nothing := matrixFile(t, simmatrix.Meta{Source: "nothing"})
	if said := ends(t, exitFailure, []string{"matrix", "check", nothing}, "documents  unknown", "no term has a neighbor"); strings.Contains(said, "NaN") {
		t.Error(said)
	}
	alone := matrixFile(t, simmatrix.Meta{}, simmatrix.TermRow{Term: "alone"})
	ends(t, exitFailure, []string{"matrix", "check", alone}, "no term has a neighbor")
}

// A file whose header was altered, by somebody who set the checksum right.
func TestCheckOfAFileThatLiesFails(t *testing.T) {
	data := []byte(read(t, encodedFile(t, "fleet.akin", fleet(t))))
	altered := bytes.Replace(data, []byte(`"symmetric":false`), []byte(`"symmetric":true`), 1)
	binary.LittleEndian.PutUint32(altered[12:], binary.LittleEndian.Uint32(altered[12:])-1) // the length of the header
	body := altered[:len(altered)-sha256.Size]
	sum := sha256.Sum256(body)
	for want, content := range map[string][]byte{
		"checksum":                 append(bytes.Clone(data[:len(data)-1]), data[len(data)-1]^1), // damaged
		"inside the":               data[:len(data)/2],
		"header does not describe": append(bytes.Clone(body), sum[:]...),
	} {
		ends(t, exitFailure, []string{"matrix", "check", write(t, "bad.akin", string(content))}, want)
	}
}
