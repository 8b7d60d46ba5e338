package simmatrix

import (
	"context"
	"math"
	"slices"
)

// windowUnits is the weight of two neighboring terms. Terms k apart weigh
// windowUnits/k, a whole number for every k up to maxWindow, so that counts
// are exact and do not depend on the order in which they are added.
const (
	windowUnits = 60
	maxWindow   = 6
)

// contextPower flattens the distribution of the contexts, which keeps rare
// contexts from getting the largest associations (Levy, Goldberg and Dagan,
// 2015, section 3.1).
const contextPower = 0.75

// ppmi returns the positive pointwise mutual information of the terms (rows)
// and their contexts (columns),
//
//	max(0, ln(c_ij / (c_i · q_j))),  q_j = c_j^0.75 / Σ_k c_k^0.75
//
// where c_ij = Σ 1/distance over all pairs of i and j at most window apart in
// a document, both ways, and c_i = Σ_j c_ij. Terms outside the vocabulary do
// not count in the distance.
func (v *vocabulary) ppmi(ctx context.Context, window int, st *stage) (*sparse, error) {
	const rowsPerBlock = 64
	n := len(v.terms)
	sums := v.contextSums(window)
	contexts := contextDistribution(sums)
	places, offsets := v.occurrences()
	blocks := make([]sparseBlock, (n+rowsPerBlock-1)/rowsPerBlock)
	err := eachBlock(ctx, n, rowsPerBlock, func() func(lo, hi int) {
		counter := newContextCounter(n)
		return func(lo, hi int) {
			var b sparseBlock
			for i := lo; i < hi; i++ {
				before := len(b.index)
				for _, j := range counter.count(v.sequence, places[offsets[i]:offsets[i+1]], window) {
					pmi := math.Log(float64(counter.units[j]) / (float64(sums[i]) * contexts[j]))
					if pmi > 0 {
						b.index = append(b.index, j)
						b.value = append(b.value, float32(pmi))
					}
				}
				b.lengths = append(b.lengths, len(b.index)-before)
			}
			blocks[lo/rowsPerBlock] = b
			st.add(hi - lo)
		}
	})
	if err != nil {
		return nil, err
	}
	return joinBlocks(blocks, n), nil
}

// contextSums returns c_i in window units.
func (v *vocabulary) contextSums(window int) []int {
	sums := make([]int, len(v.terms))
	for p, i := range v.sequence {
		if i == endOfDocument {
			continue
		}
		for k := 1; k <= window && v.sequence[p+k] != endOfDocument; k++ {
			sums[i] += windowUnits / k
			sums[v.sequence[p+k]] += windowUnits / k
		}
	}
	return sums
}

// contextDistribution returns q_j.
func contextDistribution(sums []int) []float64 {
	q := make([]float64, len(sums))
	total := 0.0
	for j, c := range sums {
		q[j] = math.Pow(float64(c), contextPower)
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
		if i != endOfDocument {
			offsets[i+1]++
		}
	}
	for i := range v.terms {
		offsets[i+1] += offsets[i]
	}
	places = make([]int32, offsets[len(v.terms)])
	next := slices.Clone(offsets)
	for p, i := range v.sequence {
		if i != endOfDocument {
			places[next[i]] = int32(p)
			next[i]++
		}
	}
	return places, offsets
}

// A contextCounter counts the contexts of one term at a time.
type contextCounter struct {
	units []int   // c_ij of the current row by column, in window units
	found []int32 // the columns that are not 0
}

func newContextCounter(n int) *contextCounter { return &contextCounter{units: make([]int, n)} }

// count sets units to the counts of the term that stands at places, and
// returns the ascending columns that are not 0.
func (c *contextCounter) count(sequence, places []int32, window int) []int32 {
	for _, j := range c.found {
		c.units[j] = 0
	}
	c.found = c.found[:0]
	for _, p := range places {
		for k := 1; k <= window && sequence[int(p)+k] != endOfDocument; k++ {
			c.add(sequence[int(p)+k], k)
		}
		for k := 1; k <= window && sequence[int(p)-k] != endOfDocument; k++ {
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
