package reweigh

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/akin-search/akin/simmatrix"
)

// evidence returns additional origins, which encode how much an entry was
// learned from: "learned: 1 click", "learned: 2 clicks", "learned: 4 clicks"
// and so on, as many as fit after the matrix's own. bits returns the origins
// that add up to a count.
func evidence(origins []string, unit string) (names []string, bits func(count int) uint8) {
	first := len(origins)
	for k := range simmatrix.MaxOrigins - first {
		names = append(names, simmatrix.EvidenceOrigin(1<<k, unit))
	}
	return names, func(count int) uint8 {
		return uint8(min(max(count, 1), 1<<len(names)-1) << first) //nolint:gosec // at most MaxOrigins bits
	}
}

// Changes count changed entries of a matrix.
type Changes struct {
	Scaled  int // with another similarity
	Removed int // with factor 0
	New     int // new entries
}

// apply returns the matrix with the changes of a model that was learned from
// the given number of searches, and counts the changes. It keeps entries set by
// overrides.
func (l *learner) apply(m *model, searches int) (changed *simmatrix.Matrix, c Changes, err error) {
	meta := l.matrix.Meta()
	if meta.Origins == nil {
		meta.Origins = []string{meta.Source}
	}
	fixed := uint8(0)
	if k := slices.Index(meta.Origins, simmatrix.OriginOverrides); k >= 0 {
		fixed = 1 << k
	}
	names, bits := evidence(meta.Origins, l.options.Unit)
	meta.Origins = append(meta.Origins, names...)
	params := map[string]string{}
	maps.Copy(params, meta.Params)
	maps.DeleteFunc(params, func(name, _ string) bool { return strings.HasPrefix(name, simmatrix.SparsifyPrefix) })
	params["learned_searches"] = strconv.Itoa(searches)
	if m.scale != 0 {
		params["learned_scale"] = strconv.FormatFloat(m.scale, 'g', -1, 64)
	}
	meta.Params = params
	rows := make([]simmatrix.TermRow, 0, l.matrix.Len())
	for term, row := range l.matrix.Rows() {
		learned := simmatrix.TermRow{Term: term, DocFreq: row.DocFreq(), Form: l.matrix.Form(term)}
		for n := range row.All() {
			n.Origins = max(n.Origins, 1)
			before := n.Similarity
			if n.Origins&fixed == 0 {
				l.scale(&n, m, bits)
			}
			switch n.Similarity {
			case before:
			case 0:
				c.Removed++
				continue
			default:
				c.Scaled++
			}
			learned.Neighbors = append(learned.Neighbors, n)
		}
		if i, ok := l.ids[term]; ok {
			found := l.learned(i, len(learned.Neighbors), m, bits)
			learned.Neighbors = append(learned.Neighbors, found...)
			c.New += len(found)
		}
		rows = append(rows, learned)
	}
	for i := range m.pairs {
		if !l.hasRow[i] {
			if found := l.learned(i, 0, m, bits); len(found) > 0 {
				c.New += len(found)
				rows = append(rows, simmatrix.TermRow{Term: l.terms[i], DocFreq: uint32(min(len(l.found[i]), math.MaxUint32)), Neighbors: found})
			}
		}
	}
	changed, err = simmatrix.New(meta, rows)
	return changed, c, err
}

// scale multiplies a similarity by its factor; a similarity of 0 removes the
// entry.
func (l *learner) scale(n *simmatrix.Neighbor, m *model, bits func(count int) uint8) {
	j, ok := l.ids[n.Term]
	if !ok || m.factors[j] == 0 {
		return
	}
	before := n.Similarity
	s := min(m.factor(j)*float64(before), 1)
	n.Similarity = simmatrix.QuantizeSimilarity(s)
	if s < 1.0/simmatrix.UnitsOfOne {
		n.Similarity = 0
	}
	if n.Similarity != before {
		n.Origins |= bits(m.counts[j])
	}
}

// learned returns the new neighbors of term i that fit after the existing ones.
func (l *learner) learned(i int32, behind int, m *model, bits func(count int) uint8) []simmatrix.Neighbor {
	var found []simmatrix.Neighbor
	for _, p := range m.pairs[i] {
		if s := p.similarity(m.scale); s > 0 && behind+len(found) < simmatrix.MaxNeighbors {
			found = append(found, simmatrix.Neighbor{Term: l.terms[p.term], Similarity: float32(s), Origins: bits(p.count)})
		}
	}
	return found
}
