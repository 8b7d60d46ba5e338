package reweigh

import "github.com/akin-search/akin/simmatrix"

type model struct {
	factors []float64        // less 1, by term; nil for 1
	pairs   map[int32][]pair // by their first term
	scale   float64          // of the similarities of pairs
	counts  []int            // by term, what its factor was learned from
}

// factor returns the factor of the entries in a term's column, in [0, 2].
func (m *model) factor(term int32) float64 {
	if m.factors == nil {
		return 1
	}
	return min(max(1+m.factors[term], 0), 2)
}

// A pair is a new entry of the matrix, in the row of another term.
type pair struct {
	term  int32
	share float64 // see propose
	count int     // clicks or judgments on documents with the term
}

func (p *pair) similarity(scale float64) float64 {
	if s := min(scale*p.share, 1); s >= 1.0/simmatrix.UnitsOfOne {
		return s
	}
	return 0
}
