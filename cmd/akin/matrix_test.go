package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/cli"
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

func TestMatrixIsAFileOrAVersionInRedis(t *testing.T) {
	t.Setenv("AKIN_REDIS_URL", "")
	m := fleet(t)
	file := encodedFile(t, "docs@active", m) // goes before Redis
	var flags cli.Redis
	got, err := flags.Matrix(t.Context(), io.Discard, file)
	check.That(t, err == nil && got.Checksum() == m.Checksum(), "a file named like a version: %v", err)
	if _, err := flags.Matrix(t.Context(), io.Discard, "docs@7"); err == nil || !errors.As(err, new(cli.UsageError)) ||
		!strings.Contains(err.Error(), "docs@7 is no file") || !strings.Contains(err.Error(), "--redis") {
		t.Errorf("no file and no Redis: %v", err)
	}
	for _, ref := range []string{"docs.akin", "folder/docs@7", "@7", "docs@", "a@b@c"} {
		if _, err := flags.Matrix(t.Context(), io.Discard, ref); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "NAME@VERSION") {
			t.Errorf("%s: %v", ref, err)
		}
	}
	check.OK(t, os.WriteFile("bad@1", []byte("garbage"), 0o600))
	if _, err := flags.Matrix(t.Context(), io.Discard, "bad@1"); !errors.Is(err, simmatrix.ErrFormat) {
		t.Errorf("a damaged file named like a version: %v", err)
	}
}

func TestMatrixCommandsReadVersionsInRedis(t *testing.T) {
	url := redisServer(t)
	t.Setenv("AKIN_REDIS_URL", url)
	m := fleet(t)
	file := encodedFile(t, "docs.akin", m)
	version := mustAkin(t, "matrix", "push", "--name", "docs", "--activate", file)
	for _, ref := range []string{"docs@active", "docs@" + version} {
		ends(t, 0, []string{"matrix", "check", ref}, m.Checksum(), "pull: 5 of 5")
	}
	ends(t, 0, []string{"matrix", "diff", "--redis", url, file, "docs@active"}, "rows changed  0 of 5")
	ends(t, exitFailure, []string{"matrix", "check", "docs@nosuchversion"}, "nosuchversion", "akin matrix list --name docs")
	ends(t, exitFailure, []string{"matrix", "check", "others@active"}, "akin matrix list --name others")
	if said := ends(t, exitFailure, []string{"matrix", "check", "--redis", "redis://127.0.0.1:1", "docs@active"}, "docs@active in Redis: "); strings.Contains(said, "no file") {
		t.Error(said)
	}
}

func TestVersionsHaveALifeInRedis(t *testing.T) {
	t.Setenv("AKIN_REDIS_URL", redisServer(t))
	file := encodedFile(t, "docs.akin", fleet(t))
	var ids []string
	for range 4 {
		ids = append(ids, mustAkin(t, "matrix", "push", "--name", "docs", "--activate", file))
	}
	if back := mustAkin(t, "matrix", "rollback", "--name", "docs"); back != ids[2] {
		t.Errorf("back at %s, want %s", back, ids[2])
	}
	contains(t, "list", mustAkin(t, "matrix", "list", "--name", "docs"), "BY", userAtHost(), "* ", ids[0], fleet(t).Checksum()[:12], "a small fleet")
	for _, version := range []string{ids[0], "active"} {
		if mustAkin(t, "matrix", "export", "docs@"+version, "--out", "exported.akin"); read(t, "exported.akin") != read(t, file) {
			t.Errorf("the file of %s is not the one that was pushed", version)
		}
	}

	if got, want := mustAkin(t, "matrix", "prune", "--name", "docs", "--keep", "1"), ids[1]+"\n"+ids[0]; got != want {
		t.Errorf("pruned\n%s\nwant\n%s", got, want)
	}
	ends(t, exitFailure, []string{"matrix", "activate", "--name", "docs", ids[0]}, "unknown version")
	whole, before := read(t, file), mustAkin(t, "matrix", "list", "--name", "docs")
	for _, damaged := range []string{"", "car 1 0\n", whole[:len(whole)/2], whole[:len(whole)-1], whole + "\x00", whole[:40] + string(whole[40]^4) + whole[41:]} {
		ends(t, exitFailure, []string{"matrix", "push", "--name", "docs", "--activate", write(t, "damaged.akin", damaged)}, "damaged.akin")
	}
	if after := mustAkin(t, "matrix", "list", "--name", "docs"); after != before {
		t.Errorf("damaged files are pushed:\n%s", after)
	}
	mustAkin(t, "matrix", "activate", "--name", "docs", ids[3])
}

func TestPushAppliesOverrides(t *testing.T) {
	t.Setenv("AKIN_REDIS_URL", redisServer(t))
	file := encodedFile(t, "docs.akin", fleet(t))
	overrides := write(t, "overrides.txt", "ban car lorry\nset bus van 0.5\n")
	mustAkin(t, "matrix", "push", "--activate", "--overrides", overrides, file)
	if out := mustAkin(t, "matrix", "show", "main@active", "car", "bus", "van"); strings.Contains(out, "lorry") || strings.Count(out, "0.5000") != 2 {
		t.Errorf("neighbors after overrides:\n%s", out)
	}
	bad := write(t, "bad.txt", "frob car lorry\n")
	ends(t, exitUsage, []string{"matrix", "push", "--overrides", bad, file}, "bad.txt")
}
