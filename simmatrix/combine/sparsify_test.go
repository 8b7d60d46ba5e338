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
	"gonum.org/v1/gonum/mat"

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
	out, err := Sparsify(m, opts)
	check.OK(tb, err)
	return out
}

// protecting returns a Protect for pairs written "term neighbor".
func protecting(pairs ...string) func(term, neighbor string) bool {
	return func(term, neighbor string) bool { return slices.Contains(pairs, term+" "+neighbor) }
}

func TestSparsifyByHand(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   string
		opts SparsifyOptions
		want string
	}{
		// In order b (df 3), e (4), c (5), a (9), d (unknown): b takes a; e takes
		// d; c finds d and a full; so does every other.
		{"symmetric, one in a row", handMade, SparsifyOptions{Symmetric: true, Neighbors: 1}, `a: b 0.90
b: a 0.90
c:
d: e 0.10
e: d 0.10`},
		// Each row for itself: a: .80, then .60 is too much, .20 too (1.00 to the
		// unit: 52428 + 13107 = 65535); b: .90; c: .70; d: .40.
		{"dominant", handMade, SparsifyOptions{Dominant: true}, `a: b 0.80
b: a 0.90
c: d 0.70
d: c 0.30 e 0.10
e:`},
		// b: a .90, and c .50 is too much for b. e: d .10. c: d .70 (d has .80
		// now), a .60 too much. a: d .20 too much.
		{"symmetric and dominant", handMade, SparsifyOptions{Symmetric: true, Dominant: true}, `a: b 0.90
b: a 0.90
c: d 0.70
d: c 0.70 e 0.10
e: d 0.10`},
		{"origins of both directions", "a: b 0.25/1\nb: a 0.75/10 c 0.50/100\nc:", SparsifyOptions{Symmetric: true}, `a: b 0.75/11
b: a 0.75/11 c 0.50/100
c: b 0.50/100`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := describeRows(mustSparsify(t, parse(t, tt.in), tt.opts))
			check.Equal(t, tt.want+"\n", got)
		})
	}
}

func TestHeaderShowsWhereProtectedEntriesBreakAClaim(t *testing.T) {
	all := SparsifyOptions{Neighbors: 1, Symmetric: true, Dominant: true}
	if meta := mustSparsify(t, parse(t, handMade), all).Meta(); !meta.Symmetric || !meta.Dominant || meta.MaxNeighbors != 1 {
		t.Errorf("nothing protected: %+v", meta)
	}
	all.Protect = protecting("a b", "c a")
	m := mustSparsify(t, parse(t, handMade), all)
	if meta := m.Meta(); !meta.Symmetric || meta.Dominant || meta.MaxNeighbors != 2 {
		t.Errorf("%+v", meta)
	}
	if r := Inspect(m); r.Rows.NotDominant != 1 || r.Rows.LargestSumTerm != "a" {
		t.Errorf("%d rows not dominant, most in %q", r.Rows.NotDominant, r.Rows.LargestSumTerm)
	}
}

func TestSparsifyRecordsItsSettings(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{Source: "s", Params: map[string]string{"power": "3"}, Docs: 7}, vehicles())
	before := m.Checksum()
	got := mustSparsify(t, m, SparsifyOptions{Neighbors: 5, Threshold: 0.25, Symmetric: true, Dominant: true}).Meta()
	want := map[string]string{
		"power": "3", "sparsify_neighbors": "5", "sparsify_threshold": "0.25",
		"sparsify_symmetric": "true", "sparsify_dominant": "true",
	}
	if diff := cmp.Diff(want, got.Params); diff != "" || got.Source != "s" || got.Docs != 7 {
		t.Errorf("%+v\n%s", got, diff)
	}
	if same := mustSparsify(t, m, SparsifyOptions{}); same.Checksum() != before {
		t.Error("the zero options change a matrix")
	}
	if again, err := m.Table().Matrix(); err != nil || again.Checksum() != before {
		t.Error("Sparsify has changed its input")
	}
}

func TestSparsifyRefuses(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{}, vehicles())
	for _, opts := range []SparsifyOptions{
		{Neighbors: -1, Threshold: -0.1},
		{Neighbors: simmatrix.MaxNeighbors + 1, Threshold: 1},
		{Neighbors: -1, Threshold: math.NaN()},
	} {
		_, err := Sparsify(m, opts)
		if err == nil || !strings.Contains(err.Error(), "neighbors") || !strings.Contains(err.Error(), "threshold") {
			t.Errorf("%+v: %v", opts, err)
		}
	}
}

// A term that is the neighbor of more than a row can hold.
func TestSymmetryKeepsToTheLongestRowThereCanBe(t *testing.T) {
	rows := []simmatrix.TermRow{{Term: "hub"}}
	for i := range simmatrix.MaxNeighbors + 5 {
		rows = append(rows, simmatrix.TermRow{Term: fmt.Sprintf("t%05d", i), DocFreq: 1, Neighbors: []simmatrix.Neighbor{{Term: "hub", Similarity: 0.5}}})
	}
	m := matrixtest.New(t, simmatrix.Meta{}, rows)
	got := mustSparsify(t, m, SparsifyOptions{Symmetric: true})
	if meta := got.Meta(); meta.MaxNeighbors != simmatrix.MaxNeighbors || meta.NonZeros != 2*simmatrix.MaxNeighbors || !meta.Symmetric {
		t.Errorf("%+v", meta)
	}
	if last := fmt.Sprintf("t%05d", simmatrix.MaxNeighbors); got.Row(last).Len() != 0 || got.Row("t00000").Len() != 1 {
		t.Error("not the first terms have entered")
	}
	_, err := Sparsify(m, SparsifyOptions{Symmetric: true, Protect: func(string, string) bool { return true }})
	if !errors.Is(err, simmatrix.ErrInvalid) || !strings.Contains(err.Error(), `"hub"`) {
		t.Errorf("all protected: %v", err)
	}
}

func randomSparsifyOptions(random *rand.Rand) SparsifyOptions {
	opts := SparsifyOptions{
		Neighbors: random.IntN(6),
		Symmetric: random.IntN(2) == 0, Dominant: random.IntN(2) == 0,
	}
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

// denseMatrix returns the matrix with its diagonal.
func denseMatrix(m *simmatrix.Matrix) *mat.Dense {
	d := mat.NewDense(m.Len(), m.Len(), nil)
	for i := range m.Table().Terms {
		d.Set(i, i, 1)
		cols, sims := m.Table().Row(i)
		for k, j := range cols {
			d.Set(i, int(j), float64(sims[k])/simmatrix.UnitsOfOne)
		}
	}
	return d
}

// TestSymmetricDominantMatricesHaveACholeskyFactor: what is symmetric with a
// positive diagonal and strictly diagonally dominant is positive definite
// (Novotný 2018, section 3).
func TestSymmetricDominantMatricesHaveACholeskyFactor(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	without := 0
	for range 400 {
		m := matrixtest.Random(t, random, 1+random.IntN(40))
		opts := SparsifyOptions{Symmetric: true, Dominant: true, Neighbors: random.IntN(8)}
		var c mat.Cholesky
		d := denseMatrix(mustSparsify(t, m, opts))
		if !c.Factorize(mat.NewSymDense(m.Len(), d.RawMatrix().Data)) {
			t.Fatalf("%+v: no Cholesky factor of\n%s", opts, describeRows(m))
		}
		opts.Dominant = false
		d = denseMatrix(mustSparsify(t, m, opts))
		if !c.Factorize(mat.NewSymDense(m.Len(), d.RawMatrix().Data)) {
			without++
		}
	}
	if without < 100 {
		t.Errorf("only %d matrices have no factor without Dominant: too tame a test", without)
	}
}

func TestSparsifyAgainstTheDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 1500 {
		m := matrixtest.Random(t, random, 1+random.IntN(14))
		checkSparsified(t, m, randomSparsifyOptions(random))
	}
}

// FuzzSparsify checks, for random matrices and settings, the result against
// the definition and what it promises.
func FuzzSparsify(f *testing.F) {
	f.Add(uint64(1), uint8(5))
	f.Add(uint64(2), uint8(30))
	f.Fuzz(func(t *testing.T, seed uint64, terms uint8) {
		random := rand.New(rand.NewPCG(seed, 0))
		m := matrixtest.Random(t, random, 1+int(terms)%32)
		checkSparsified(t, m, randomSparsifyOptions(random))
	})
}

func checkSparsified(t *testing.T, m *simmatrix.Matrix, opts SparsifyOptions) {
	t.Helper()
	got := mustSparsify(t, m, opts)
	if diff := cmp.Diff(slowSparsify(m, opts), entryMap(got), cmp.AllowUnexported(pairEntry{})); diff != "" {
		t.Fatalf("%+v of\n%s%s", opts, describeRows(m), diff)
	}
	meta := got.Meta()
	if opts.Symmetric && !meta.Symmetric {
		t.Fatalf("%+v: not symmetric", opts)
	}
	if opts.Protect == nil {
		if (opts.Dominant && !meta.Dominant) || (opts.Neighbors > 0 && int(meta.MaxNeighbors) > opts.Neighbors) {
			t.Fatalf("%+v: %+v", opts, meta)
		}
	}
	if !slices.Equal(got.Table().Terms, m.Table().Terms) || !slices.Equal(got.Table().DocFreqs, m.Table().DocFreqs) {
		t.Fatalf("%+v: other terms", opts)
	}
	if again := mustSparsify(t, got, opts); again.Checksum() != got.Checksum() {
		t.Fatalf("%+v of\n%s gives\n%s and then\n%s", opts, describeRows(m), describeRows(got), describeRows(again))
	}
}

func TestSettingsOfAnEarlierSparsifyGo(t *testing.T) {
	m := mustSparsify(t, parse(t, handMade), SparsifyOptions{Neighbors: 2, Threshold: 0.1, Symmetric: true, Dominant: true})
	again := mustSparsify(t, m, SparsifyOptions{Neighbors: 1})
	check.Equal(t, map[string]string{"sparsify_neighbors": "1"}, again.Meta().Params)
	if none := mustSparsify(t, m, SparsifyOptions{}); len(none.Meta().Params) != 0 {
		t.Errorf("%v", none.Meta().Params)
	}
}
