package learn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

func TestCrowdedRowsAreTempered(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	row := func(most float64, length int) (entries []simmatrix.Entry) {
		for k := range length {
			entries = append(entries, simmatrix.Entry{Col: uint32(k), Units: simmatrix.ToUnits(most * random.Float64()), Origins: uint8(1 + k%2)})
		}
		slices.SortFunc(entries, simmatrix.CompareEntries)
		return entries
	}
	rows := [][]simmatrix.Entry{row(1, 200), row(1, crowdPlace-1), row(0.04, 200), row(0.4, 40), nil}
	e := simmatrix.NewEntries(len(rows), 0, true)
	for _, r := range rows {
		e.AppendRow(r)
	}
	check.Equal(t, 2, temper(&e, usualPower))
	for i, before := range rows {
		cols, sims := e.Row(i)
		tempered := len(before) >= crowdPlace && float64(before[crowdPlace-1].Units) > usualThirtieth*simmatrix.UnitsOfOne
		if tempered {
			check.That(t, sims[crowdPlace-1] == simmatrix.ToUnits(usualThirtieth), "row %d: %d units", i, sims[crowdPlace-1])
		}
		similarities := map[uint32]uint16{}
		for k := range cols {
			similarities[cols[k]] = sims[k]
			check.That(t, e.OriginsAt(i, k) == uint8(1+cols[k]%2), "row %d: the origins of %d moved", i, cols[k])
			check.That(t, k == 0 || sims[k-1] > sims[k] || sims[k-1] == sims[k] && cols[k-1] < cols[k], "row %d is out of order at %d", i, k)
		}
		for k, entry := range before { // the order of similarities stays
			check.That(t, tempered || similarities[entry.Col] == entry.Units, "row %d: entry %d changed", i, k)
			check.That(t, k == 0 || similarities[before[k-1].Col] >= similarities[entry.Col], "row %d: entry %d has another rank", i, k)
		}
	}
}

// Similarities of a lower power are larger, and as crowded as with the usual one.
func TestPowerDoesNotDecideWhatIsCrowded(t *testing.T) {
	for _, cosine := range []float64{0.3, 0.5} {
		for _, power := range []float64{1, 2, usualPower, 5} {
			e := simmatrix.NewEntries(1, crowdPlace, false)
			var row []simmatrix.Entry
			for k := range crowdPlace {
				row = append(row, simmatrix.Entry{Col: uint32(k), Units: simmatrix.ToUnits(math.Pow(cosine, power))})
			}
			e.AppendRow(row)
			want := 0
			if math.Pow(cosine, usualPower) > usualThirtieth {
				want = 1
			}
			check.Equal(t, want, temper(&e, power))
		}
	}
}
