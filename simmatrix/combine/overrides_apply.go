package combine

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/akin-search/akin/simmatrix"
)

// OverrideCounts count entries: a rule in both directions counts twice.
type OverrideCounts struct {
	Set    int // added or changed entries
	Banned int // removed entries
	Pinned int // existing pinned entries
	// Unmet are pins of missing entries, one direction each, ascending. A pin in
	// both directions is unmet if both are missing.
	Unmet []Override
	// NoEffect counts entries that a set or ban does not change, and missing ones
	// pinned in both directions whose other direction exists.
	NoEffect   int
	TermsAdded int // terms with a new row for a set entry
}

// Apply returns m with entries set and banned; for pins see
// [Overrides.Protects].
//
// The only origin of a set entry is [simmatrix.OriginOverrides]. A matrix
// without [simmatrix.Meta.Origins] gets that one and, for all other entries,
// its Source; one with [simmatrix.MaxOrigins] others is an error. A term
// without a row gets one, with document frequency 0, if one of its entries is
// set. Meta.Params gets "overrides", the number of rules and the beginning of a
// SHA-256 of their content, after those applied before. Apply returns m itself
// if nothing changes. It does not undo an earlier application.
func (o *Overrides) Apply(m *simmatrix.Matrix) (*simmatrix.Matrix, OverrideCounts, error) {
	t := m.Table()
	p := o.plan(t)
	p.counts.TermsAdded = len(p.added)
	params := o.addTo(t.Meta.Params)
	if p.counts.Set+p.counts.Banned == 0 && (p.counts.Pinned == 0 || params[simmatrix.OverridesParam] == t.Meta.Params[simmatrix.OverridesParam]) {
		return m, p.counts, nil
	}
	origins, own := t.Meta.Origins, uint8(0)
	if p.counts.Set > 0 {
		origins = overriddenOrigins(&t.Meta)
		if len(origins) > simmatrix.MaxOrigins {
			return nil, p.counts, fmt.Errorf("overrides: the entries have %d origins already, so that those set cannot be marked: give an ensemble at most %d inputs",
				simmatrix.MaxOrigins, simmatrix.MaxOrigins-1)
		}
		own = 1 << slices.Index(origins, simmatrix.OriginOverrides)
	}
	out, err := p.table(origins, own, params).Matrix()
	if err != nil {
		return nil, p.counts, fmt.Errorf("overrides: %w", err)
	}
	return out, p.counts, nil
}

// overridesSeparator separates descriptions of successively applied overrides.
const overridesSeparator = "; "

func (o *Overrides) addTo(params map[string]string) map[string]string {
	entries := make([]string, 0, len(o.ruled))
	for d, l := range o.ruled {
		r := *l.rule
		r.Term = d.term
		r.Neighbor = d.neighbor
		r.OneWay = true
		entries = append(entries, r.String())
	}
	slices.Sort(entries) // order and comments of the file do not matter
	sum := sha256.Sum256([]byte(strings.Join(entries, "\n")))
	own := fmt.Sprintf("%d rules, sha256 %x", len(o.rules), sum[:6])
	applied := params[simmatrix.OverridesParam]
	if slices.Contains(strings.Split(applied, overridesSeparator), own) {
		return params
	}
	if applied != "" {
		own = applied + overridesSeparator + own
	}
	params = maps.Clone(params)
	if params == nil {
		params = make(map[string]string)
	}
	params[simmatrix.OverridesParam] = own
	return params
}

func overriddenOrigins(meta *simmatrix.Meta) []string {
	if slices.Contains(meta.Origins, simmatrix.OriginOverrides) {
		return meta.Origins
	}
	origins := slices.Clone(meta.Origins)
	if origins == nil {
		source := meta.Source
		if source == "" || source == simmatrix.OriginOverrides {
			source = "source"
		}
		origins = []string{source}
	}
	return append(origins, simmatrix.OriginOverrides)
}

type plan struct {
	from    *simmatrix.Table
	changes map[string]map[string]uint16 // units by term and neighbor; 0 removes an entry
	added   []string                     // terms without a row, ascending
	counts  OverrideCounts
}

// set sets an entry, and adds its terms.
func (p *plan) set(d direction, units uint16) {
	p.counts.Set++
	p.change(d, units)
	p.added = append(p.added, strings.Clone(d.term), strings.Clone(d.neighbor))
}

// settle leaves the terms without a row in added, ascending.
func (p *plan) settle() {
	slices.Sort(p.added)
	p.added = slices.DeleteFunc(slices.Compact(p.added), func(term string) bool {
		_, known := slices.BinarySearch(p.from.Terms, term)
		return known
	})
}

func (p *plan) change(d direction, units uint16) {
	if p.changes[d.term] == nil {
		p.changes[d.term] = map[string]uint16{}
	}
	p.changes[d.term][d.neighbor] = units
}

func (o *Overrides) plan(m *simmatrix.Table) *plan {
	p := &plan{from: m, changes: map[string]map[string]uint16{}}
	own := uint8(0) // origin of entries set before
	if k := slices.Index(m.Meta.Origins, simmatrix.OriginOverrides); k >= 0 {
		own = 1 << k
	}
	for d, l := range o.ruled {
		there, sim, origins := entryOf(m, d)
		switch l.rule.Action {
		case ActionSet:
			units := simmatrix.ToUnits(l.rule.Similarity)
			if there && sim == units && origins == own && own != 0 {
				p.counts.NoEffect++
				continue
			}
			p.set(d, units)
		case ActionBan:
			if !there {
				p.counts.NoEffect++
				continue
			}
			p.counts.Banned++
			p.change(d, 0)
		case ActionPin:
			if there {
				p.counts.Pinned++
			} else if back, _, _ := entryOf(m, direction{d.neighbor, d.term}); back && !l.rule.OneWay {
				p.counts.NoEffect++
			} else {
				p.counts.Unmet = append(p.counts.Unmet, Override{Action: ActionPin, Term: d.term, Neighbor: d.neighbor, OneWay: true})
			}
		}
	}
	slices.SortFunc(p.counts.Unmet, func(a, b Override) int {
		return cmp.Or(cmp.Compare(a.Term, b.Term), cmp.Compare(a.Neighbor, b.Neighbor))
	})
	p.settle()
	return p
}

func entryOf(m *simmatrix.Table, d direction) (there bool, sim uint16, origins uint8) {
	i, known := slices.BinarySearch(m.Terms, d.term)
	j, alsoKnown := slices.BinarySearch(m.Terms, d.neighbor)
	if !known || !alsoKnown {
		return false, 0, 0
	}
	cols, sims := m.Row(i)
	k := slices.Index(cols, uint32(j)) //nolint:gosec // j is an index of at most MaxTerms
	if k < 0 {
		return false, 0, 0
	}
	return true, sims[k], m.OriginsAt(i, k)
}

// table returns the table with changes and params. Set entries have the
// origins own; others keep theirs, or get the first of origins if they had none
// and need one.
func (p *plan) table(origins []string, own uint8, params map[string]string) *simmatrix.Table {
	m := p.from
	out := &simmatrix.Table{Meta: m.Meta, Terms: slices.Concat(m.Terms, p.added)}
	out.Entries = simmatrix.NewEntries(len(out.Terms), len(m.Cols)+p.counts.Set, len(origins) > 0)
	out.Meta.Origins, out.Meta.Params = origins, params
	slices.Sort(out.Terms)
	index := make([]uint32, len(m.Terms)) // by term of m: its number in out
	out.DocFreqs = make([]uint32, len(out.Terms))
	for i, at := 0, 0; i < len(m.Terms); at++ {
		if out.Terms[at] == m.Terms[i] {
			index[i], out.DocFreqs[at] = uint32(at), m.DocFreqs[i]
			i++
		}
	}
	var row []simmatrix.Entry
	for at, old := 0, 0; at < len(out.Terms); at++ {
		row = row[:0]
		changes := p.changes[out.Terms[at]]
		for neighbor, units := range changes {
			if col, _ := slices.BinarySearch(out.Terms, neighbor); units > 0 {
				row = append(row, simmatrix.Entry{Col: uint32(col), Units: units, Origins: own}) //nolint:gosec // Matrix refuses more than MaxTerms
			}
		}
		if old < len(m.Terms) && int(index[old]) == at {
			cols, sims := m.Row(old)
			for k, col := range cols {
				if _, changed := changes[m.Terms[col]]; changed {
					continue
				}
				e := simmatrix.Entry{Col: index[col], Units: sims[k], Origins: m.OriginsAt(old, k)}
				if len(origins) > 0 && m.Origins == nil {
					e.Origins = 1
				}
				row = append(row, e)
			}
			old++
		}
		out.AppendRow(row)
	}
	out.TakeForms(func(i int) string { return m.Form(out.Terms[i]) })
	return out
}
