package learn

import (
	"context"
	"math"
	"slices"

	"github.com/akin-search/akin/simmatrix/internal/parallel"
)

// windowUnits is the weight of two neighboring terms. Terms k apart weigh
// windowUnits/k, a whole number for every k up to maxWindow, so that counts
// are exact and do not depend on the order in which they are added.
const (
	windowUnits = 60
	maxWindow   = 6
)

// defaultContextPower flattens the distribution of the contexts, which keeps
// rare contexts from getting the largest associations (Levy, Goldberg and
// Dagan, 2015, section 3.1).
const defaultContextPower = 0.75

// ppmi returns the positive pointwise mutual information of the contexts (rows)
// and the terms (columns),
//
//	max(0, ln(c_ij / (c_i · q_j)) − shift),  q_j = c_j^α / Σ_k c_k^α
//
// for context j and term i, where c_ij = Σ 1/distance over all pairs of i and j
// at most window apart in a text, both ways, c_i = Σ_j c_ij, and α is the
// context power. A pair with c_ij under MinCooccurrence counts only in c_i.
// Terms outside the vocabulary do not count in the distance.
//
// The entries may take room bytes, as for makeSparse.
func (v *vocabulary) ppmi(ctx context.Context, o *CorpusOptions, room int64, st *parallel.Stage) (*sparse, error) {
	n := len(v.terms)
	sums := v.contextSums(o.Window)
	contexts := contextDistribution(sums, o.ContextPower)
	least := int(math.Ceil(o.MinCooccurrence*windowUnits - 1e-9)) // in floating point 0.2 · 60 is above 12
	places, offsets := v.occurrences()
	return makeSparse(ctx, n, n, room, func() func(int, *sparseBlock) {
		counter := newContextCounter(n)
		return func(j int, b *sparseBlock) {
			for _, i := range counter.count(v.sequence, places[offsets[j]:offsets[j+1]], o.Window) {
				if counter.units[i] < least {
					continue
				}
				pmi := math.Log(float64(counter.units[i]) / (float64(sums[i]) * contexts[j]))
				if pmi > o.Shift {
					b.add(i, float32(pmi-o.Shift))
				}
			}
		}
	}, st)
}

func (v *vocabulary) contextSums(window int) []int {
	sums := make([]int, len(v.terms))
	for p, i := range v.sequence {
		if i < 0 {
			continue
		}
		for k := 1; k <= window && v.sequence[p+k] >= 0; k++ {
			sums[i] += windowUnits / k
			sums[v.sequence[p+k]] += windowUnits / k
		}
	}
	return sums
}

func contextDistribution(sums []int, power float64) []float64 {
	q := make([]float64, len(sums))
	total := 0.0
	for j, c := range sums {
		q[j] = math.Pow(float64(c), power)
		total += q[j]
	}
	if total == 0 {
		return q // no two terms ever meet
	}
	for j := range q {
		q[j] /= total
	}
	return q
}

// occurrences returns where in the sequence each term stands: term i at
// places[offsets[i]:offsets[i+1]], ascending.
func (v *vocabulary) occurrences() (places []int32, offsets []int) {
	offsets = make([]int, len(v.terms)+1)
	for _, i := range v.sequence {
		if i >= 0 {
			offsets[i+1]++
		}
	}
	for i := range v.terms {
		offsets[i+1] += offsets[i]
	}
	places = make([]int32, offsets[len(v.terms)])
	next := slices.Clone(offsets)
	for p, i := range v.sequence {
		if i >= 0 {
			places[next[i]] = int32(p)
			next[i]++
		}
	}
	return places, offsets
}

type contextCounter struct {
	units []int   // c_ij of the current row by column, in window units
	found []int32 // the columns that are not 0
}

func newContextCounter(n int) *contextCounter { return &contextCounter{units: make([]int, n)} }

// count counts the contexts of the term that stands at places, and returns
// their ascending columns.
func (c *contextCounter) count(sequence, places []int32, window int) []int32 {
	for _, j := range c.found {
		c.units[j] = 0
	}
	c.found = c.found[:0]
	for _, p := range places {
		for k := 1; k <= window && sequence[int(p)+k] >= 0; k++ {
			c.add(sequence[int(p)+k], k)
		}
		for k := 1; k <= window && sequence[int(p)-k] >= 0; k++ {
			c.add(sequence[int(p)-k], k)
		}
	}
	slices.Sort(c.found)
	return c.found
}

func (c *contextCounter) add(j int32, distance int) {
	if c.units[j] == 0 {
		c.found = append(c.found, j)
	}
	c.units[j] += windowUnits / distance
}
