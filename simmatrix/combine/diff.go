package combine

import (
	"cmp"
	"math"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// absentRow is the row of a term that the other matrix does not have.
const absentRow = math.MaxUint32

// A Difference says what changed from one matrix to another.
type Difference struct {
	// Terms that only the second matrix has, only the first, in ascending byte order.
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	// Terms of both, and those of them whose neighbors or similarities differ.
	Common          int     `json:"common"`
	RowsChanged     int     `json:"rows_changed"`
	DocFreqsChanged int     `json:"doc_freqs_changed"` // terms of both whose document frequency differs
	MeanDistance    float64 `json:"mean_distance"`     // mean of [RowChange.Distance] over the terms of both; 0 without such terms
	// Top are the rows that changed most: in descending distance, then document
	// frequency in the second matrix, then by term.
	Top []RowChange `json:"top"`
}

// A RowChange says how the row of a term changed from a to b.
type RowChange struct {
	Term string `json:"term"`
	// Distance is the weighted Jaccard (Ruzicka) distance of the two rows,
	//
	//	1 - Σ_j min(a_ij, b_ij) / Σ_j max(a_ij, b_ij)
	//
	// over the neighbors j of either, above 0.
	Distance float64 `json:"distance"`
	// Document frequencies of the term in the two.
	From uint32 `json:"from"`
	To   uint32 `json:"to"`
	// Neighbors that only b's row has, only a's, each in the order of its row.
	Gained  []simmatrix.Neighbor `json:"gained"`
	Lost    []simmatrix.Neighbor `json:"lost"`
	Changed []NeighborChange     `json:"changed"` // neighbors of both rows whose similarities differ, in the order of b's row
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
	d := &differ{a: a, b: b, inB: make([]uint32, len(a.Terms)), before: make([]uint16, len(b.Terms)), out: &Difference{}}
	next := 0 // term of b
	for i, term := range a.Terms {
		for ; next < len(b.Terms) && b.Terms[next] < term; next++ {
			d.out.Added = append(d.out.Added, b.Terms[next])
		}
		if d.inB[i] = absentRow; next < len(b.Terms) && b.Terms[next] == term {
			d.inB[i] = uint32(next)
			next++
		} else {
			d.out.Removed = append(d.out.Removed, term)
		}
	}
	d.out.Added = append(d.out.Added, b.Terms[next:]...)
	var changes []rowChange
	sum := 0.0
	for i, j := range d.inB {
		if j == absentRow {
			continue
		}
		d.out.Common++
		if a.DocFreqs[i] != b.DocFreqs[j] {
			d.out.DocFreqsChanged++
		}
		if distance := d.distance(i, j); distance > 0 {
			sum += distance
			changes = append(changes, rowChange{i: i, j: j, distance: distance})
		}
	}
	d.out.RowsChanged = len(changes)
	if d.out.Common > 0 {
		d.out.MeanDistance = sum / float64(d.out.Common)
	}
	slices.SortFunc(changes, func(x, y rowChange) int {
		return cmp.Or(cmp.Compare(y.distance, x.distance), cmp.Compare(b.DocFreqs[y.j], b.DocFreqs[x.j]), cmp.Compare(x.i, y.i))
	})
	for _, c := range changes[:min(max(top, 0), len(changes))] {
		d.out.Top = append(d.out.Top, d.describe(c))
	}
	return d.out
}

// A rowChange is a row that differs: i of the first, j of the second matrix.
type rowChange struct {
	i        int
	j        uint32
	distance float64
}

type differ struct {
	a, b   *simmatrix.Table
	inB    []uint32 // by term of a: its row in b, absentRow where it has none
	before []uint16 // by term of b: its similarity in the current row of a
	out    *Difference
}

// distance returns [RowChange.Distance] of row i of a and row j of b.
func (d *differ) distance(i int, j uint32) float64 {
	var smaller, larger uint64
	cols, sims := d.a.Row(i)
	for k, col := range cols {
		if to := d.inB[col]; to == absentRow {
			larger += uint64(sims[k])
		} else {
			d.before[to] = sims[k]
		}
	}
	after, simsAfter := d.b.Row(int(j))
	for k, col := range after {
		smaller += uint64(min(d.before[col], simsAfter[k]))
		larger += uint64(max(d.before[col], simsAfter[k]))
		d.before[col] = 0
	}
	for _, col := range cols { // those that b's row lacks
		if to := d.inB[col]; to != absentRow {
			larger += uint64(d.before[to])
			d.before[to] = 0
		}
	}
	if smaller == larger {
		return 0
	}
	return float64(larger-smaller) / float64(larger)
}

func (d *differ) describe(c rowChange) RowChange {
	change := RowChange{
		Term: d.a.Terms[c.i], Distance: c.distance,
		From: d.a.DocFreqs[c.i], To: d.b.DocFreqs[c.j],
	}
	before := make(map[string]float32)
	for n := range d.a.RowAt(c.i).All() {
		before[n.Term] = n.Similarity
	}
	after := make(map[string]bool)
	for n := range d.b.RowAt(int(c.j)).All() {
		after[n.Term] = true
		switch s, ok := before[n.Term]; {
		case !ok:
			change.Gained = append(change.Gained, n)
		case s != n.Similarity:
			change.Changed = append(change.Changed, NeighborChange{Term: n.Term, From: s, To: n.Similarity})
		}
	}
	for n := range d.a.RowAt(c.i).All() {
		if !after[n.Term] {
			change.Lost = append(change.Lost, n)
		}
	}
	return change
}
