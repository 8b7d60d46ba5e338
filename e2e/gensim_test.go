package e2e

import (
	"bytes"
	"context"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// gensimPython makes a virtual environment with gensim, once for all runs, in
// the user's cache folder, and returns its interpreter.
var gensimPython = sync.OnceValues(func() (string, error) {
	return pythonWith("testdata/gensim_requirements.txt")
})

// gensim runs a command of gensim_interop.py and decodes what it prints. Where
// there is no gensim the test is skipped.
func gensim[T any](t *testing.T, args ...string) (out T) {
	t.Helper()
	long(t)
	python, err := gensimPython()
	if err != nil {
		skipOrFail(t, "needs python3 3.10 to 3.13 with venv, and gensim from its package index: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, append([]string{"testdata/gensim_interop.py"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("gensim_interop.py %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	decode(t, stdout.Bytes(), &out)
	return out
}

// gensimVectors are four groups of words that point about the same way, in the
// text format with the header that gensim needs.
const gensimVectors = `12 4
car 1 0.1 0 0
automobile 0.9 0.2 0 0.1
lorry 0.7 0.3 0 0
rental 0 1 0.1 0
hire 0.1 0.9 0 0
lease 0 0.6 0.4 0
physician 0 0 1 0.1
doctor 0 0.1 0.9 0.2
naïve 0.1 0 0 1
simple 0 0 0.3 0.8
#tag 0.5 0.5 0.5 0.5
10.5 -1 0 0.2 0
`

// A tsvMatrix has the similarities of a list "term TAB neighbor TAB
// similarity", with the ones of the diagonal implied.
type tsvMatrix map[string]map[string]float64

func readTSVMatrix(t *testing.T, text string) tsvMatrix {
	t.Helper()
	m := tsvMatrix{}
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		s, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil || len(fields) != 3 {
			t.Fatalf("%q: %v", line, err)
		}
		if m[fields[0]] == nil {
			m[fields[0]] = map[string]float64{}
		}
		m[fields[0]][fields[1]] = s
	}
	return m
}

// inner returns xᵀSy of the counts of words.
func (m tsvMatrix) inner(x, y []string) float64 {
	sum := 0.0
	for _, a := range x {
		for _, b := range y {
			if a == b {
				sum++
			}
			sum += m[a][b]
		}
	}
	return sum
}

// TestGensimReadsWhatAkinExports compares inner products and soft cosines that
// gensim computes with the exported list with those of the test's own sums.
func TestGensimReadsWhatAkinExports(t *testing.T) {
	t.Parallel()
	pairs := [][2][]string{
		{{"car", "rental"}, {"automobile", "hire"}},
		{{"automobile", "hire"}, {"car", "rental"}}, // the matrix is not symmetric
		{{"lorry", "lorry", "#tag"}, {"car", "10.5", "lease", "lease"}},
		{{"naïve", "doctor"}, {"simple", "physician", "doctor"}},
		{{"physician"}, {"car"}},
	}
	tsv := writeFile(t, "matrix.tsv", exported(t, build(t, "--from-vectors", writeFile(t, "vectors.txt", gensimVectors), "--top", "3", "--power", "1")))
	similarities := readTSVMatrix(t, readFile(t, tsv))
	if cmp.Equal(similarities.inner(pairs[2][0], pairs[2][1]), similarities.inner(pairs[2][1], pairs[2][0])) {
		t.Fatal("the matrix is symmetric, so that the test cannot tell rows from columns")
	}

	var want [][2]float64
	for _, p := range pairs {
		x, y := p[0], p[1]
		norms := math.Sqrt(similarities.inner(x, x)) * math.Sqrt(similarities.inner(y, y))
		want = append(want, [2]float64{similarities.inner(x, y), min(similarities.inner(x, y)/norms, 1)})
	}
	got := gensim[[][2]float64](t, "inner", tsv, writeFile(t, "pairs.json", toJSON(t, pairs)))
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("inner product and soft cosine (-akin's list +gensim):\n%s", diff)
	}
}
