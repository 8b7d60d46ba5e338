package combine

import (
	"cmp"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// A Difference is what changed from one matrix to another.
type Difference struct {
	// Terms only in the second matrix, and only in the first, in byte order.
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	// Terms in both, and those of them with different neighbors or similarities.
	Common          int     `json:"common"`
	RowsChanged     int     `json:"rows_changed"`
	DocFreqsChanged int     `json:"doc_freqs_changed"` // terms in both with different document frequencies
	MeanDistance    float64 `json:"mean_distance"`     // mean of [RowChange.Distance] over the terms in both; 0 if there are none
	// Top are the rows that changed most: in descending distance, then document
	// frequency in the second matrix, then by term.
	Top []RowChange `json:"top"`
}

// A RowChange is how the row of a term changed from a to b.
type RowChange struct {
	Term string `json:"term"`
	// Distance is the weighted Jaccard (Ruzicka) distance of the two rows,
	//
	//	1 - Σ_j min(a_ij, b_ij) / Σ_j max(a_ij, b_ij)
	//
	// over the neighbors j of either. It is positive.
	Distance float64 `json:"distance"`
	// The term's document frequencies in a and b.
	From uint32 `json:"from"`
	To   uint32 `json:"to"`
	// Neighbors only in b's row, and only in a's, in the order of the row.
	Gained  []simmatrix.Neighbor `json:"gained"`
	Lost    []simmatrix.Neighbor `json:"lost"`
	Changed []NeighborChange     `json:"changed"` // neighbors in both with different similarities, in the order of b's row
}

// A NeighborChange is a neighbor whose similarity changed.
type NeighborChange struct {
	Term string  `json:"term"`
	From float32 `json:"from"`
	To   float32 `json:"to"`
}

// Diff compares two matrices and describes the top rows that changed most.
func Diff(older, newer *simmatrix.Matrix, top int) *Difference {
	a, b := older.Table(), newer.Table()
	u := newUnion([]Input{{Matrix: older}, {Matrix: newer}})
	g, d := newGatherer(u), &Difference{}
	var changes []rowChange
	sum := 0.0
	for i, term := range u.terms {
		from, to := u.rows[0][i], u.rows[1][i]
		switch {
		case from == noRow:
			d.Added = append(d.Added, term)
			continue
		case to == noRow:
			d.Removed = append(d.Removed, term)
			continue
		}
		d.Common++
		if a.DocFreqs[from] != b.DocFreqs[to] {
			d.DocFreqsChanged++
		}
		var smaller, larger uint64 // the sums in [RowChange.Distance]
		for _, n := range g.gather(i) {
			smaller += uint64(min(n.units[0], n.units[1]))
			larger += uint64(max(n.units[0], n.units[1]))
		}
		if larger > smaller {
			far := float64(larger-smaller) / float64(larger)
			sum += far
			changes = append(changes, rowChange{int(from), int(to), far})
		}
	}
	d.RowsChanged = len(changes)
	if d.Common > 0 {
		d.MeanDistance = sum / float64(d.Common)
	}
	slices.SortFunc(changes, func(x, y rowChange) int {
		return cmp.Or(cmp.Compare(y.distance, x.distance), cmp.Compare(b.DocFreqs[y.to], b.DocFreqs[x.to]), cmp.Compare(x.from, y.from))
	})
	for _, c := range changes[:min(max(top, 0), len(changes))] {
		d.Top = append(d.Top, c.describe(a, b))
	}
	return d
}

// A rowChange is a row that differs, with its places in the two matrices.
type rowChange struct {
	from, to int
	distance float64
}

func (c rowChange) describe(a, b *simmatrix.Table) RowChange {
	change := RowChange{Term: a.Terms[c.from], Distance: c.distance, From: a.DocFreqs[c.from], To: b.DocFreqs[c.to]}
	before := make(map[string]float32)
	for n := range a.RowAt(c.from).All() {
		before[n.Term] = n.Similarity
	}
	after := make(map[string]bool)
	for n := range b.RowAt(c.to).All() {
		after[n.Term] = true
		switch s, ok := before[n.Term]; {
		case !ok:
			change.Gained = append(change.Gained, n)
		case s != n.Similarity:
			change.Changed = append(change.Changed, NeighborChange{Term: n.Term, From: s, To: n.Similarity})
		}
	}
	for n := range a.RowAt(c.from).All() {
		if !after[n.Term] {
			change.Lost = append(change.Lost, n)
		}
	}
	return change
}
