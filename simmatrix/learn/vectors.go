package learn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// VectorOptions are the settings of [FromVectors].
type VectorOptions struct {
	Source    string  // becomes Meta.Source: in words, the origin of the vectors
	Neighbors int     // C, the most neighbors of a word, 1 to [simmatrix.MaxNeighbors]
	Power     float64 // p in s = max(0, cos)^p; 0 chooses it from the vectors
	// Recall is the share of nearest words that an approximate search must find,
	// in (0, 1); 0 means exact search.
	Recall float64
	// Keep reports whether a word gets a row, Candidate whether it may be a
	// neighbor; nil means all.
	Keep, Candidate func(word string) bool
}

// DefaultVectorOptions returns 200 Neighbors, which match
// [DefaultCorpusOptions], a chosen power and exact search.
func DefaultVectorOptions() VectorOptions {
	return VectorOptions{Source: "vectors", Neighbors: 200}
}

// Validate returns all errors in the settings.
func (o *VectorOptions) Validate() error {
	var power error
	if o.Power != 0 {
		power = settings.Positive("power", o.Power)
	}
	return errors.Join(
		settings.InRange("neighbors", o.Neighbors, simmatrix.MaxNeighbors), power,
		settings.InUnit("recall", o.Recall, "[0, 1)"))
}

// vectorSet is words with their vectors of equal length.
type vectorSet interface {
	Words() []string
	Dim() int
	Vector(k int) []float32 // of word k, read-only
}

// FromVectors returns the matrix of the words of v with
//
//	s_ij = max(0, cos(i,j))^Power
//
// for the Neighbors nearest candidates j of each word i, without those that
// round to zero. Document frequencies are unknown.
//
// A Power of 0 becomes the integer, 3 to 100, for which the 30th neighbor of a
// word has a similarity of about 0.005, by the mean cosine of a sample: how
// near words are depends on the vectors, and small vectors crowd them.
//
// With Recall the vectors are put into 2√n cells by k-means. Each is compared
// with the members of as many nearest cells as find that share of the true
// neighbors of 1,000 words. Params then has "recall", the share found for 1,000
// other words, "cells", and "probes", the cells searched for each word.
//
// The same input gives the same bytes on the same kind of processor. Errors are
// [simmatrix.ErrNoVocabulary], one for all bad options, and that of ctx.
func FromVectors(ctx context.Context, v vectorSet, opts VectorOptions, progress simmatrix.Progress) (*simmatrix.Matrix, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	words := v.Words()
	var kept []int // indices, sorted by word
	for k, w := range words {
		if opts.Keep == nil || opts.Keep(w) {
			kept = append(kept, k)
		}
	}
	slices.SortFunc(kept, func(a, b int) int { return cmp.Compare(words[a], words[b]) })
	if len(kept) == 0 {
		return nil, fmt.Errorf("%w: none of the %d words is kept", simmatrix.ErrNoVocabulary, len(words))
	}
	m := &simmatrix.Table{
		Meta: simmatrix.Meta{Source: opts.Source, Params: map[string]string{
			"dimensions": strconv.Itoa(v.Dim()), "neighbors": strconv.Itoa(opts.Neighbors),
			"threshold": "0", // of the cosine
		}},
		DocFreqs: make([]uint32, len(kept)),
	}
	for _, k := range kept {
		m.Terms = append(m.Terms, words[k])
	}
	rows := nearestOptions{neighbors: opts.Neighbors, power: opts.Power}
	p := directions(v, kept)
	var err error
	if opts.Candidate != nil {
		rows.candidates = []uint32{}
		for i, t := range m.Terms {
			if opts.Candidate(t) {
				rows.candidates = append(rows.candidates, uint32(min(i, simmatrix.MaxTerms)))
			}
		}
	}
	if rows.power == 0 {
		if rows.power, err = p.power(ctx, rows.candidates); err != nil {
			return nil, err
		}
	}
	m.Meta.Params[simmatrix.PowerParam] = settings.FormatFloat(rows.power)
	if opts.Recall == 0 {
		m.Entries, err = p.nearest(ctx, rows, simmatrix.NewStage(progress, "neighbors", len(kept)))
	} else {
		var how approximation
		m.Entries, how, err = p.nearestApproximately(ctx, rows, opts.Recall, progress)
		how.describe(m.Meta.Params)
	}
	if err != nil {
		return nil, err
	}
	return m.Matrix()
}

// LargestCrowd is the [Crowd] above which judged collections ranked worse.
const LargestCrowd = 0.1

// Constants for choosing a power.
const (
	crowdPlace   = 30    // as many terms as a search adds
	usualCrowd   = 0.005 // four sets of vectors ranked best with it, or nearly so
	crowdSample  = 1000  // words
	nearest      = 0.99  // limit of the mean cosine
	leastPower   = 3.0   // as for matrices learned from documents
	largestPower = 100.0
)

// power returns the power that gives the vectors the usual crowd.
func (p *panels) power(ctx context.Context, candidates []uint32) (float64, error) {
	ids := p.sample()
	cosines, err := p.cosines(ctx, ids, candidates)
	mean := 0.0
	for _, cos := range cosines {
		mean += cos / float64(len(ids))
	}
	power := math.Round(math.Log(usualCrowd) / math.Log(min(mean, nearest))) // 0 if the mean is 0
	return min(max(power, leastPower), largestPower), err
}

// sample returns some ids of vectors whose ids are their places, spread evenly.
func (p *panels) sample() []uint32 { return someOf(p.ids[:p.next], crowdSample) }

// someOf returns count of the ids, or all, spread evenly.
func someOf(ids []uint32, count int) []uint32 {
	some := make([]uint32, min(count, len(ids)))
	for k := range some {
		some[k] = ids[k*len(ids)/len(some)]
	}
	return some
}

// cosines returns, by id, the 30th-largest cosine of each vector in ids with
// those in candidates, nil for all, or 0 if fewer are positive. By id, so that
// sums always have the same order.
func (p *panels) cosines(ctx context.Context, ids, candidates []uint32) ([]float64, error) {
	cosines := make([]float64, p.vectors)
	err := p.among(ids).search(ctx, nil, crowdPlace+1, 0, p.among(candidates).showAll, func(id uint32, best []candidate) {
		best = slices.DeleteFunc(best, func(c candidate) bool { return c.id() == id })
		if len(best) >= crowdPlace {
			cosines[id] = float64(best[crowdPlace-1].cos())
		}
	}, nil)
	return cosines, err
}

// Crowd returns the mean similarity of the 30th neighbors in m, counting 0 for
// terms with fewer. Above [LargestCrowd] searches drown in neighbors.
func Crowd(m *simmatrix.Matrix) float64 {
	sum := 0.0
	for i := range m.Len() {
		if _, units := m.Table().Row(i); len(units) >= crowdPlace {
			sum += float64(units[crowdPlace-1]) / simmatrix.UnitsOfOne
		}
	}
	return sum / float64(m.Len())
}

// directions returns unit vectors of the kept words, with their places as ids.
func directions(v vectorSet, kept []int) *panels {
	p := newPanels(v.Dim(), len(kept))
	wide, unit := make([]float64, v.Dim()), make([]float32, v.Dim())
	for i, k := range kept {
		for j, x := range v.Vector(k) {
			wide[j] = float64(x)
		}
		scaleTo(unit, wide, 1)
		p.add(uint32(min(i, simmatrix.MaxTerms)), unit)
	}
	return p
}
