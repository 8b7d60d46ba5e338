package combine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// An Input is a matrix of an ensemble.
type Input struct {
	// Name says in a word or two where the similarities come from. It becomes one
	// of [simmatrix.Meta.Origins] and must not be [simmatrix.OriginOverrides].
	Name   string
	Matrix *simmatrix.Matrix // over the same index terms as the others, or some of them
	Weight float64           // w_k of [RuleWeighted], above 0 and finite
}

func checkInputs(inputs []Input) error {
	if err := settings.InRange("inputs", len(inputs), simmatrix.MaxOrigins); err != nil {
		return err
	}
	var errs []error
	for k, in := range inputs {
		if in.Matrix == nil {
			errs = append(errs, fmt.Errorf("input %q has no matrix", in.Name))
		}
		if in.Name == "" || slices.ContainsFunc(inputs[:k], func(other Input) bool { return other.Name == in.Name }) {
			errs = append(errs, fmt.Errorf("name %q of an input: empty or repeated", in.Name))
		}
		if in.Name == simmatrix.OriginOverrides {
			errs = append(errs, fmt.Errorf("name %q of an input: the entries that overrides set are called so; give it another name", in.Name))
		}
	}
	return errors.Join(errs...)
}

// noRow is the row of a term that an input lacks.
const noRow = -1

// A union combines the terms of several matrices.
type union struct {
	inputs   []Input
	terms    []string   // ascending
	docFreqs []uint32   // the largest of each term
	docs     uint64     // the largest
	rows     [][]int32  // rows[k][i]: the row of term i in input k, or noRow
	cols     [][]uint32 // cols[k][j]: the term of column j of input k
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

// A gathered is a neighbor of a term in some input.
type gathered struct {
	col     uint32
	rank    int32 // the best in any input, from 1
	origins uint8 // the inputs that have it
	units   [simmatrix.MaxOrigins]uint16

	combined uint16 // in the ensemble; 0 until computed
}

type gatherer struct {
	*union
	place []int32 // by term: its place in row, plus 1; all 0 between two rows
	row   []gathered
}

func newGatherer(u *union) *gatherer { return &gatherer{union: u, place: make([]int32, len(u.terms))} }

// gather returns the neighbors of term i, valid until the next call.
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
