package combine

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
)

// parse returns the matrix of lines "term/document frequency: neighbor
// similarity/origins ...", where what follows a slash may be missing.
func parse(tb testing.TB, text string) *simmatrix.Matrix {
	tb.Helper()
	var rows []simmatrix.TermRow
	meta := simmatrix.Meta{Source: "by hand", Docs: 100}
	for line := range strings.Lines(text) {
		head, tail, _ := strings.Cut(strings.TrimSpace(line), ":")
		var row simmatrix.TermRow
		term, df, _ := strings.Cut(head, "/")
		row.Term = term
		_, _ = fmt.Sscan(df, &row.DocFreq) // 0 where there is none
		fields := strings.Fields(tail)
		for k := 0; k+1 < len(fields); k += 2 {
			n := simmatrix.Neighbor{Term: fields[k]}
			s, origins, _ := strings.Cut(fields[k+1], "/")
			_, _ = fmt.Sscan(s, &n.Similarity)
			if origins != "" {
				_, _ = fmt.Sscanf(origins, "%b", &n.Origins)
				meta.Origins = []string{"x", "y", "z"}
			}
			row.Neighbors = append(row.Neighbors, n)
		}
		rows = append(rows, row)
	}
	return matrixtest.New(tb, meta, rows)
}

// handMade is a matrix for [parse] with one-way pairs and unequal ones.
const handMade = `a/9: b 0.80 c 0.60 d 0.20
b/3: a 0.90 c 0.50
c/5: d 0.70 a 0.60
d/0: c 0.30 e 0.10
e/4:`

// vehicles are the rows of a small matrix, in no order.
func vehicles() []simmatrix.TermRow {
	return []simmatrix.TermRow{
		{Term: "hire", DocFreq: 4, Neighbors: []simmatrix.Neighbor{{Term: "rental", Similarity: 0.9}}},
		{Term: "car", DocFreq: 12, Neighbors: []simmatrix.Neighbor{
			{Term: "lorry", Similarity: 0.25}, {Term: "automobile", Similarity: 0.5}, {Term: "bus", Similarity: 0.25},
		}},
		{Term: "automobile", DocFreq: 3, Neighbors: []simmatrix.Neighbor{{Term: "car", Similarity: 0.5}}},
		{Term: "lorry", DocFreq: 5},
		{Term: "bus", DocFreq: 6},
		{Term: "rental", DocFreq: 2},
	}
}

// describeRows writes the rows of m as lines "term: neighbor similarity ...",
// with similarities in whole units where they are not given in hundredths.
func describeRows(m *simmatrix.Matrix) string {
	var b strings.Builder
	for i, term := range m.Table().Terms {
		fmt.Fprintf(&b, "%s:", term)
		cols, sims := m.Table().Row(i)
		for k, col := range cols {
			fmt.Fprintf(&b, " %s %.2f", m.Table().Terms[col], simmatrix.FromUnits(sims[k]))
			if o := m.Table().OriginsAt(i, k); o > 0 {
				fmt.Fprintf(&b, "/%b", o)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func mustSparsify(tb testing.TB, m *simmatrix.Matrix, opts SparsifyOptions) *simmatrix.Matrix {
	tb.Helper()
	return check.Got(Sparsify(m, opts))(tb)
}

// protecting returns a Protect for pairs written "term neighbor".
func protecting(pairs ...string) func(term, neighbor string) bool {
	return func(term, neighbor string) bool { return slices.Contains(pairs, term+" "+neighbor) }
}

func TestHeaderShowsWhereProtectedEntriesBreakAClaim(t *testing.T) {
	all := SparsifyOptions{Neighbors: 1, Symmetric: true, Dominant: true}
	meta := mustSparsify(t, parse(t, handMade), all).Meta()
	check.That(t, meta.Symmetric && meta.Dominant && meta.MaxNeighbors == 1, "nothing protected: %+v", meta)
	all.Protect = protecting("a b", "c a")
	m := mustSparsify(t, parse(t, handMade), all)
	meta = m.Meta()
	check.That(t, meta.Symmetric && !meta.Dominant && meta.MaxNeighbors == 2, "%+v", meta)
	r := Inspect(m)
	check.That(t, r.Rows.NotDominant == 1 && r.Rows.LargestSumTerm == "a", "%d rows not dominant, most in %q", r.Rows.NotDominant, r.Rows.LargestSumTerm)
}

func TestSparsifyRecordsItsSettings(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{Source: "s", Params: map[string]string{"power": "3"}, Docs: 7}, vehicles())
	before := m.Checksum()
	got := mustSparsify(t, m, SparsifyOptions{Neighbors: 5, Threshold: 0.25, Symmetric: true, Dominant: true}).Meta()
	want := map[string]string{
		"power": "3", "sparsify_neighbors": "5", "sparsify_threshold": "0.25",
		"sparsify_symmetric": "true", "sparsify_dominant": "true",
	}
	diff := cmp.Diff(want, got.Params)
	check.That(t, diff == "" && got.Source == "s" && got.Docs == 7, "%+v\n%s", got, diff)
	same := mustSparsify(t, m, SparsifyOptions{})
	check.That(t, same.Checksum() == before, "the zero options change a matrix")
	again, err := m.Table().Matrix()
	check.That(t, err == nil && again.Checksum() == before, "Sparsify has changed its input")
}

func TestSparsifyRefuses(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{}, vehicles())
	for _, opts := range []SparsifyOptions{
		{Neighbors: -1, Threshold: -0.1},
		{Neighbors: simmatrix.MaxNeighbors + 1, Threshold: 1},
		{Neighbors: -1, Threshold: math.NaN()},
	} {
		_, err := Sparsify(m, opts)
		check.That(t, err != nil && strings.Contains(err.Error(), "neighbors") && strings.Contains(err.Error(), "threshold"), "%+v: %v", opts, err)
	}
}

func TestSymmetryKeepsToTheLongestRowThereCanBe(t *testing.T) {
	rows := []simmatrix.TermRow{{Term: "hub"}}
	for i := range simmatrix.MaxNeighbors + 5 {
		rows = append(rows, simmatrix.TermRow{Term: fmt.Sprintf("t%05d", i), DocFreq: 1, Neighbors: []simmatrix.Neighbor{{Term: "hub", Similarity: 0.5}}})
	}
	m := matrixtest.New(t, simmatrix.Meta{}, rows)
	got := mustSparsify(t, m, SparsifyOptions{Symmetric: true})
	meta := got.Meta()
	check.That(t, meta.MaxNeighbors == simmatrix.MaxNeighbors && meta.NonZeros == 2*simmatrix.MaxNeighbors && meta.Symmetric, "%+v", meta)
	last := fmt.Sprintf("t%05d", simmatrix.MaxNeighbors)
	check.That(t, got.Row(last).Len() == 0 && got.Row("t00000").Len() == 1, "not the first terms have entered")
	_, err := Sparsify(m, SparsifyOptions{Symmetric: true, Protect: func(string, string) bool { return true }})
	check.That(t, errors.Is(err, simmatrix.ErrInvalid) && strings.Contains(err.Error(), `"hub"`), "all protected: %v", err)
}

func randomSparsifyOptions(random *rand.Rand) SparsifyOptions {
	opts := SparsifyOptions{Neighbors: random.IntN(6), Symmetric: random.IntN(2) == 0, Dominant: random.IntN(2) == 0}
	if random.IntN(2) == 0 {
		opts.Threshold = float64(random.IntN(10)) / 10
	}
	if random.IntN(3) == 0 {
		salt := random.IntN(100)
		opts.Protect = func(term, neighbor string) bool {
			return (len(term)*31+int(term[len(term)-1])*7+int(neighbor[len(neighbor)-1])+salt)%11 == 0
		}
	}
	return opts
}

func TestSparsifyAgainstTheDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 1500 {
		m := matrixtest.Random(t, random, 1+random.IntN(14))
		checkSparsified(t, m, randomSparsifyOptions(random))
	}
}

func checkSparsified(t *testing.T, m *simmatrix.Matrix, opts SparsifyOptions) {
	t.Helper()
	got := mustSparsify(t, m, opts)
	diff := cmp.Diff(slowSparsify(m, opts), entryMap(got), cmp.AllowUnexported(pairEntry{}))
	check.Must(t, diff == "", "%+v of\n%s%s", opts, describeRows(m), diff)
	meta := got.Meta()
	check.Must(t, !opts.Symmetric || meta.Symmetric, "%+v: not symmetric", opts)
	if opts.Protect == nil {
		check.Must(t, (!opts.Dominant || meta.Dominant) && (opts.Neighbors <= 0 || int(meta.MaxNeighbors) <= opts.Neighbors), "%+v: %+v", opts, meta)
	}
	check.Must(t, slices.Equal(got.Table().Terms, m.Table().Terms) && slices.Equal(got.Table().DocFreqs, m.Table().DocFreqs), "%+v: other terms", opts)
	again := mustSparsify(t, got, opts)
	check.Must(t, again.Checksum() == got.Checksum(), "%+v of\n%s gives\n%s and then\n%s", opts, describeRows(m), describeRows(got), describeRows(again))
}

func TestSettingsOfAnEarlierSparsifyGo(t *testing.T) {
	m := mustSparsify(t, parse(t, handMade), SparsifyOptions{Neighbors: 2, Threshold: 0.1, Symmetric: true, Dominant: true})
	again := mustSparsify(t, m, SparsifyOptions{Neighbors: 1})
	check.Equal(t, map[string]string{"sparsify_neighbors": "1"}, again.Meta().Params)
	none := mustSparsify(t, m, SparsifyOptions{})
	check.That(t, len(none.Meta().Params) == 0, "%v", none.Meta().Params)
}
