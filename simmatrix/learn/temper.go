package learn

import (
	"math"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// usualThirtieth is what the similarity of a 30th neighbor is lowered to, where
// similarities are cosines to usualPower.
const usualThirtieth = 0.05

// temper raises the similarities of each row whose 30th is above
//
//	usualThirtieth^(power / usualPower)
//
// to the power that brings it there: words of one topic crowd in some rows,
// however many dimensions there are. The similarities are cosines to the given
// power. It returns the number of such rows.
func temper(e *simmatrix.Entries, power float64) (tempered int) {
	most := math.Pow(usualThirtieth, power/usualPower)
	var row []simmatrix.Entry
	for i := range len(e.Offsets) - 1 {
		from, to := e.Offsets[i], e.Offsets[i+1]
		if to-from < crowdPlace {
			continue
		}
		thirtieth := float64(e.Sims[from+crowdPlace-1]) / simmatrix.UnitsOfOne
		if thirtieth <= most {
			continue
		}
		tempered++
		raised := math.Log(most) / math.Log(thirtieth)
		row = row[:0]
		for k := from; k < to; k++ {
			s := math.Pow(float64(e.Sims[k])/simmatrix.UnitsOfOne, raised)
			row = append(row, simmatrix.Entry{Col: e.Cols[k], Units: simmatrix.ToUnits(s), Origins: e.OriginsAt(i, k-from)})
		}
		slices.SortFunc(row, simmatrix.CompareEntries) // some are equal now
		for k, entry := range row {
			e.Cols[from+k], e.Sims[from+k] = entry.Col, min(entry.Units, mostLearned)
			if e.Origins != nil {
				e.Origins[from+k] = entry.Origins
			}
		}
	}
	return tempered
}
