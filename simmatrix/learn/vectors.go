package learn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/parallel"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// VectorOptions are the settings of [FromVectors].
type VectorOptions struct {
	Source    string  // becomes Meta.Source: in words, where the vectors come from
	Neighbors int     // C, the most neighbors of a word, 1 to [simmatrix.MaxNeighbors]
	Power     float64 // p in s = max(0, cos)^p, above 0
	Threshold float64 // θ in [0, 1): a cosine at or under it counts as 0
	// Recall is the share of the nearest words that an approximate search has
	// to find, in (0, 1); 0 is the exact search.
	Recall float64
	// Keep reports whether a word gets a row, Candidate whether it may be the
	// neighbor of others; nil is all.
	Keep, Candidate func(word string) bool
}

// DefaultVectorOptions returns Neighbors 200 and Power 3, which go with
// [DefaultCorpusOptions], and the exact search.
func DefaultVectorOptions() VectorOptions {
	return VectorOptions{Source: "vectors", Neighbors: 200, Power: 3}
}

// Validate reports every setting that is out of range.
func (o *VectorOptions) Validate() error {
	return errors.Join(
		settings.InRange("neighbors", o.Neighbors, simmatrix.MaxNeighbors), settings.Positive("power", o.Power),
		settings.InUnit("threshold", o.Threshold, "[0, 1)"), settings.InUnit("recall", o.Recall, "[0, 1)"))
}

// vectorSet are words with their vectors, all of one dimension.
type vectorSet interface {
	Words() []string
	Dim() int
	Vector(k int) []float32 // of word k, not to be modified
}

// FromVectors returns the matrix of the words of v with
//
//	s_ij = max(0, cos(i,j))^Power, 0 where cos(i,j) <= Threshold
//
// for the Neighbors nearest candidates j of each word i, without those that
// round to zero. Document frequencies are unknown.
//
// With Recall the vectors are put into 2√n cells by k-means, and each is
// compared with the members of as many nearest cells as find that share of the
// true neighbors of 1,000 words. Params then has "recall", the share found for
// 1,000 other words, "cells" and "probes", the cells searched for each word.
//
// The same input gives the same bytes on a kind of processor. Errors are
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
			"power": settings.FormatFloat(opts.Power), "threshold": settings.FormatFloat(opts.Threshold),
		}},
		DocFreqs: make([]uint32, len(kept)),
	}
	for _, k := range kept {
		m.Terms = append(m.Terms, words[k])
	}
	rows := nearestOptions{neighbors: opts.Neighbors, power: opts.Power, threshold: opts.Threshold}
	if opts.Candidate != nil {
		rows.candidates = []uint32{}
		for i, t := range m.Terms {
			if opts.Candidate(t) {
				rows.candidates = append(rows.candidates, uint32(min(i, simmatrix.MaxTerms)))
			}
		}
	}
	var err error
	if opts.Recall == 0 {
		m.Entries, err = directions(v, kept).nearest(ctx, rows, parallel.NewStage(progress, "neighbors", len(kept)))
	} else {
		var how approximation
		m.Entries, how, err = directions(v, kept).nearestApproximately(ctx, rows, opts.Recall, progress)
		how.describe(m.Meta.Params, opts.Recall)
	}
	if err != nil {
		return nil, err
	}
	return m.Matrix()
}

// directions returns unit vectors of the words to keep, with places as ids.
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
