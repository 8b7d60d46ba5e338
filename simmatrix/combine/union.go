package combine

import (
	"cmp"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// noRow is the row of a term that an input lacks.
const noRow = -1

// A union combines the terms of several matrices.
type union struct {
	inputs   []Input
	terms    []string // ascending
	docFreqs []uint32 // the largest of each
	docs     uint64   // the largest

	rows [][]int32  // rows[k][i]: the row of term i in input k, noRow where it has none
	cols [][]uint32 // cols[k][j]: the term of column j of input k
}

func newUnion(inputs []Input) *union {
	u := &union{inputs: inputs}
	for _, in := range inputs {
		u.terms = append(u.terms, in.Matrix.Table().Terms...)
		u.docs = max(u.docs, in.Matrix.Table().Meta.Docs)
	}
	slices.Sort(u.terms)
	u.terms = slices.Compact(u.terms)
	u.docFreqs = make([]uint32, len(u.terms))
	for _, in := range inputs {
		rows := make([]int32, len(u.terms))
		cols := make([]uint32, 0, in.Matrix.Len())
		for i, t := range u.terms {
			rows[i] = noRow
			if j := len(cols); j < in.Matrix.Len() && in.Matrix.Table().Terms[j] == t {
				rows[i] = int32(j) //nolint:gosec // at most MaxTerms
				cols = append(cols, uint32(i))
				u.docFreqs[i] = max(u.docFreqs[i], in.Matrix.Table().DocFreqs[j])
			}
		}
		u.rows, u.cols = append(u.rows, rows), append(u.cols, cols)
	}
	return u
}

func (u *union) names() []string {
	names := make([]string, len(u.inputs))
	for k, in := range u.inputs {
		names[k] = in.Name
	}
	return names
}

// A gathered neighbor is one that a term has in some input.
type gathered struct {
	col     uint32
	rank    int32 // the best in an input, from 1
	origins uint8 // the inputs that have it
	units   [simmatrix.MaxOrigins]uint16
}

type gatherer struct {
	*union
	place  []int32 // by term, where it is in row, plus 1; all 0 between two rows
	row    []gathered
	ranked []ranked
	out    []simmatrix.Entry
}

func newGatherer(u *union) *gatherer { return &gatherer{union: u, place: make([]int32, len(u.terms))} }

// gather returns the neighbors of term i in any input, valid until the next
// call.
func (g *gatherer) gather(i int) []gathered {
	g.row = g.row[:0]
	for k, in := range g.inputs {
		r := g.rows[k][i]
		if r == noRow {
			continue
		}
		cols, sims := in.Matrix.Table().Row(int(r))
		rank := int32(1)
		for at, col := range cols {
			if at > 0 && sims[at] != sims[at-1] {
				rank = int32(at) + 1
			}
			j := g.cols[k][col]
			if g.place[j] == 0 {
				g.row = append(g.row, gathered{col: j, rank: rank})
				g.place[j] = int32(len(g.row)) //nolint:gosec // at most MaxOrigins·MaxNeighbors
			}
			n := &g.row[g.place[j]-1]
			n.rank = min(n.rank, rank)
			n.origins |= 1 << k
			n.units[k] = sims[at]
		}
	}
	for k := range g.row {
		g.place[g.row[k].col] = 0
	}
	return g.row
}

// A ranked neighbor is a gathered one with its combined similarity. Ascending
// keys are ascending rank, then descending similarity, then ascending column.
type ranked struct {
	key     uint64
	origins uint8
}

func newRanked(rank int32, e simmatrix.Entry) ranked {
	return ranked{key: uint64(max(rank, 0))<<48 | uint64(simmatrix.UnitsOfOne-e.Units)<<32 | uint64(e.Col), origins: e.Origins}
}

func (r ranked) entry() simmatrix.Entry {
	return simmatrix.Entry{Col: uint32(r.key), Units: simmatrix.UnitsOfOne - uint16(r.key>>32), Origins: r.origins} //nolint:gosec // the fields of the key
}

// combinedRow returns the entries of term i, protected ones first, valid until
// the next call.
func (g *gatherer) combinedRow(i int, combine combiner, neighbors int, protect func(term, neighbor string) bool) []simmatrix.Entry {
	g.ranked, g.out = g.ranked[:0], g.out[:0]
	inputs := len(g.inputs)
	for _, n := range g.gather(i) {
		if s := combine(n.units[:inputs]); s > 0 {
			if protect != nil && protect(g.terms[i], g.terms[n.col]) {
				n.rank = 0
			}
			g.ranked = append(g.ranked, newRanked(n.rank, simmatrix.Entry{Col: n.col, Units: simmatrix.ToUnits(s), Origins: n.origins}))
		}
	}
	if len(g.ranked) > neighbors {
		slices.SortFunc(g.ranked, func(a, b ranked) int { return cmp.Compare(a.key, b.key) })
		g.ranked = g.ranked[:neighbors]
	}
	for _, n := range g.ranked {
		g.out = append(g.out, n.entry())
	}
	return g.out
}
