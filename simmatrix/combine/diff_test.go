package combine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
)

func TestDiffByHand(t *testing.T) {
	before := parse(t, `bus/5: car 0.60 tram 0.20
car/9: bus 0.60
gone/1: car 0.40
same/2: bus 0.20
tram/3: gone 0.80`)
	after := parse(t, `bus/5: car 0.40 coach 0.40
car/8: bus 0.60
coach/2: bus 0.40
same/2: bus 0.20
tram/3: bus 0.80
van/1:`)
	d := Diff(before, after, 5)
	// bus: smaller .40, larger .60 + .20 + .40: 1 - .40/1.20 = 2/3. tram has none
	// of its neighbors any more: 1. car and same have the same rows: mean
	// (1 + 2/3)/4. Units: .40 is 26214, .60 39321, .20 13107, .80 52428.
	want := &Difference{
		Added: []string{"coach", "van"}, Removed: []string{"gone"},
		Common: 4, RowsChanged: 2, DocFreqsChanged: 1, MeanDistance: (1 + 2.0/3) / 4,
		Top: []RowChange{
			{
				Term: "tram", Distance: 1, From: 3, To: 3,
				Gained: []simmatrix.Neighbor{{Term: "bus", Similarity: 0.8, DocFreq: 5}},
				Lost:   []simmatrix.Neighbor{{Term: "gone", Similarity: 0.8, DocFreq: 1}},
			},
			{
				Term: "bus", Distance: 1 - 26214.0/(39321+13107+26214), From: 5, To: 5,
				Gained:  []simmatrix.Neighbor{{Term: "coach", Similarity: 0.4, DocFreq: 2}},
				Lost:    []simmatrix.Neighbor{{Term: "tram", Similarity: 0.2, DocFreq: 3}},
				Changed: []NeighborChange{{Term: "car", From: 0.6, To: 0.4}},
			},
		},
	}
	check.Equal(t, want, d, approximately())
}

// approximately compares numbers to nine digits, similarities to a unit.
func approximately() cmp.Option {
	return cmp.Options{
		cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }),
		cmp.Comparer(func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-5 }),
	}
}

func TestDiffRanksFrequentTermsFirstAmongEquals(t *testing.T) {
	rows := "a/1:\nb/7:\nc/7:\nd/9:\nx/1:"
	changed := "a/1: x 0.50\nb/7: x 0.50\nc/7: x 0.50\nd/9:\nx/1: d 0.25"
	d := Diff(parse(t, rows), parse(t, changed), 4)
	var terms []string
	for _, c := range d.Top {
		terms = append(terms, c.Term)
	}
	check.That(t, slices.Equal(terms, []string{"b", "c", "a", "x"}) && d.RowsChanged == 4, "%q of %d", terms, d.RowsChanged)
	few := Diff(parse(t, rows), parse(t, changed), -1)
	check.That(t, len(few.Top) == 0 && few.RowsChanged == 4, "top -1: %+v", few)
}

func TestDiffOfMatricesWithNothingInCommon(t *testing.T) {
	a, none := matrixtest.New(t, simmatrix.Meta{}, vehicles()), matrixtest.New(t, simmatrix.Meta{}, nil)
	d := Diff(a, none, 3)
	check.That(t, len(d.Removed) == 6 && d.Common == 0 && d.MeanDistance == 0 && len(d.Top) == 0, "%+v", d)
	d = Diff(none, a, 3)
	check.That(t, len(d.Added) == 6 && len(d.Removed) == 0, "%+v", d)
}

// mutate returns m with some terms dropped, some added and some entries
// dropped, added or changed.
func mutate(tb testing.TB, random *rand.Rand, m *simmatrix.Matrix) *simmatrix.Matrix {
	tb.Helper()
	var rows []simmatrix.TermRow
	left := map[string]bool{}
	for term, row := range m.Rows() {
		if random.IntN(6) > 0 {
			rows = append(rows, simmatrix.TermRow{Term: term, DocFreq: row.DocFreq() + uint32(random.IntN(2))})
			left[term] = true
		}
	}
	for i := range rows {
		for n := range m.Row(rows[i].Term).All() {
			if !left[n.Term] || random.IntN(5) == 0 {
				continue
			}
			if random.IntN(5) == 0 {
				n.Similarity = max(random.Float32(), 1e-6)
			}
			rows[i].Neighbors = append(rows[i].Neighbors, n)
		}
		if random.IntN(4) == 0 {
			extra := simmatrix.Neighbor{Term: "new", Similarity: 0.5}
			if len(m.Table().Meta.Origins) > 0 {
				extra.Origins = 1
			}
			rows[i].Neighbors = append(rows[i].Neighbors, extra)
		}
	}
	return matrixtest.New(tb, simmatrix.Meta{Origins: m.Table().Meta.Origins}, append(rows, simmatrix.TermRow{Term: "new"}))
}

// FuzzDiff checks that a difference is the same from both sides, that its
// distances are those of the definition, and that applied to the rows of the
// first matrix it gives those of the second.
func FuzzDiff(f *testing.F) {
	f.Add(uint64(1), uint8(9))
	f.Add(uint64(2), uint8(30))
	f.Fuzz(func(t *testing.T, seed uint64, terms uint8) {
		random := rand.New(rand.NewPCG(seed, 3))
		a := matrixtest.Random(t, random, 1+int(terms)%30)
		b := mutate(t, random, a)
		if d := Diff(a, a, 3); len(d.Added)+len(d.Removed)+d.RowsChanged+d.DocFreqsChanged+len(d.Top) != 0 || d.Common != a.Len() {
			t.Fatalf("of itself: %+v", d)
		}
		d, back := Diff(a, b, 1000), Diff(b, a, 1000)
		if !slices.Equal(d.Added, back.Removed) || !slices.Equal(d.Removed, back.Added) || d.RowsChanged != back.RowsChanged ||
			d.Common != back.Common || math.Abs(d.MeanDistance-back.MeanDistance) > 1e-12 || len(d.Top) != d.RowsChanged {
			t.Fatalf("%+v\nand back %+v", d, back)
		}
		if d.Common+len(d.Removed) != a.Len() || d.Common+len(d.Added) != b.Len() {
			t.Fatalf("%d common, %d removed of %d, %d added of %d", d.Common, len(d.Removed), a.Len(), len(d.Added), b.Len())
		}
		changed := map[string]RowChange{}
		for _, c := range d.Top {
			changed[c.Term] = c
		}
		sum := 0.0
		for term, row := range b.Rows() {
			if slices.Contains(d.Added, term) {
				continue
			}
			sum += checkRowChange(t, matrixtest.Of(a.Row(term)), matrixtest.Of(row), changed[term])
		}
		if d.Common > 0 && math.Abs(sum/float64(d.Common)-d.MeanDistance) > 1e-9 {
			t.Fatalf("mean distance %v, want %v", d.MeanDistance, sum/float64(d.Common))
		}
	})
}

// checkRowChange returns the distance of two rows by the definition.
func checkRowChange(t *testing.T, before, after []simmatrix.Neighbor, c RowChange) float64 {
	t.Helper()
	was, is, smaller, larger := map[string]float32{}, map[string]float32{}, 0.0, 0.0
	for _, n := range before {
		was[n.Term] = n.Similarity
	}
	for _, n := range after {
		is[n.Term] = n.Similarity
	}
	for term, s := range was {
		smaller += float64(min(s, is[term]))
		larger += float64(max(s, is[term]))
	}
	for term, s := range is {
		if was[term] == 0 {
			larger += float64(s)
		}
	}
	distance := 0.0
	if larger > 0 {
		distance = 1 - smaller/larger
	}
	check.Must(t, math.Abs(distance-c.Distance) <= 1e-6, "%+v\n→ %+v: distance %v, want %v", before, after, c.Distance, distance)
	for _, n := range c.Lost {
		delete(was, n.Term)
	}
	for _, n := range c.Gained {
		check.Must(t, was[n.Term] == 0, "%q was there before", n.Term)
		was[n.Term] = n.Similarity
	}
	for _, n := range c.Changed {
		if was[n.Term] != n.From || n.From == n.To {
			t.Fatalf("%+v, was %v", n, was[n.Term])
		}
		was[n.Term] = n.To
	}
	check.Equal(t, is, was)
	return c.Distance
}
