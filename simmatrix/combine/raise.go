package combine

import (
	"math"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// Raise returns m with s^exponent for every similarity s, rounded, and at least
// 1/65535, so that no entry goes. Above 1 weak neighbors lose more than strong
// ones. Params of the result are those of m and "exponent". It returns an error
// for an exponent that is not above 0.
func Raise(matrix *simmatrix.Matrix, exponent float64) (*simmatrix.Matrix, error) {
	if err := settings.Positive("exponent", exponent); err != nil {
		return nil, err
	}
	m := matrix.Table()
	out := &simmatrix.Table{
		Meta: m.Meta, Terms: m.Terms, DocFreqs: m.DocFreqs, Forms: m.Forms,
		Entries: simmatrix.NewEntries(len(m.Terms), len(m.Cols), m.Origins != nil),
	}
	out.Meta.Params = settings.With(m.Meta.Params, "", map[string]string{"exponent": settings.FormatFloat(exponent)})
	var row []simmatrix.Entry
	for i := range m.Terms {
		row = row[:0]
		cols, sims := m.Row(i)
		for k, col := range cols {
			s := math.Pow(float64(sims[k])/simmatrix.UnitsOfOne, exponent)
			row = append(row, simmatrix.Entry{Col: col, Units: simmatrix.ToUnits(s), Origins: m.OriginsAt(i, k)})
		}
		out.AppendRow(row) // in order: similarities that were apart may round to one
	}
	return out.Matrix()
}
