package combine

import (
	"regexp"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// Restore returns m with neighbor in the row of term as it was before a rule
// set it: with a similarity and origins, or removed if the similarity is 0. If
// added, term had no row, and goes. Params do not change, and Restore returns m
// itself if nothing does.
func Restore(m *simmatrix.Matrix, term, neighbor string, similarity float64, origins []string, added bool) (*simmatrix.Matrix, error) {
	t := m.Table()
	if added && m.Has(term) && m.Row(term).DocFreq() == 0 {
		filter := TermFilter{Drop: regexp.MustCompile(`\A` + regexp.QuoteMeta(term) + `\z`)}
		bare, _, err := filter.Apply(m)
		if err != nil {
			return nil, err
		}
		table := *bare.Table()
		table.Meta.Params = t.Meta.Params
		return table.Matrix()
	}
	d := direction{term, neighbor}
	if there, _, _ := entryOf(t, d); !there {
		return m, nil
	}
	p := &plan{from: t, changes: map[string]map[string]uint16{}}
	own := uint8(0)
	for k, name := range t.Meta.Origins {
		if slices.Contains(origins, name) {
			own |= 1 << k
		}
	}
	if own == 0 && t.Meta.Origins != nil {
		own = 1 // before the rule, the matrix had but one source, which is the first now
	}
	units := uint16(0)
	if similarity > 0 {
		units = simmatrix.ToUnits(similarity)
		p.counts.Set = 1
	}
	p.change(d, units)
	return p.table(t.Meta.Origins, own, t.Meta.Params).Matrix()
}
