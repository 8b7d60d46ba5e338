package combine

import (
	"math"
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
