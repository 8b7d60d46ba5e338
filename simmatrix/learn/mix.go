package learn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/akin-search/akin/simmatrix"
)

// commonComponents of the model's vectors are common to all words and are
// removed (Mu and Viswanath, "All-but-the-Top", 2018).
const commonComponents = 3

// mixedStrength is the weight of a mixed matrix's neighbors relative to those
// from documents alone: more of them are right.
const mixedStrength = 1.4

// ErrFewWords says that a corpus has too few words that the model knows.
var ErrFewWords = errors.New("too few words for a mixture")

// A mixture says what dot products of vectors of a corpus and of a language
// model mean.
type mixture struct {
	units func(product float32) uint16 // similarity of a product
	model *vectorTable                 // E, by id
	share float32                      // of EEᵀ in a product
}

// mix changes the dimensions of p from own on to those of a language model.
// With A the cosines by the dimensions before, and E the model's vectors of the
// terms, centered on the vocabulary, without their largest principal
// components, at unit length, the dot products of p become
//
//	M = A + α/(1 − α)·κ·EEᵀ
//
// where κ brings the mean 30th-largest cosine of EEᵀ to that of A. The result
// makes similarities of them: the k-th largest product of all neighbors becomes
// the k-th largest similarity of neighbors by A alone, times 1.4 and at most 1,
// so that the weight of neighbors in a search does not depend on the model.
// Both distributions are those of a sample of 1,000 terms, and so is κ.
//
// terms are those of the ids of p. mix fails if the model knows too few.
func (p *panels) mix(ctx context.Context, o *Mix, own int, opts nearestOptions, terms []string, progress simmatrix.Progress) (*mixture, error) {
	e, known, err := modelVectors(ctx, o, terms, progress)
	if err != nil {
		return nil, err
	}
	among := known
	if opts.candidates != nil {
		among = slices.DeleteFunc(slices.Clone(known), func(id uint32) bool {
			_, found := slices.BinarySearch(opts.candidates, id)
			return !found
		})
	}
	documents, model := p.part(0, own), p.part(own, p.dim)
	model.fill(e, 1)
	byDocuments, err := documents.products(ctx, p.sample(), opts.candidates, max(opts.neighbors, crowdPlace))
	if err != nil {
		return nil, err
	}
	byModel, err := model.products(ctx, someOf(known, crowdSample), among, crowdPlace)
	if err != nil {
		return nil, err
	}
	kappa := usual(byDocuments) / usual(byModel)
	if !(kappa > 0) || math.IsInf(kappa, 1) { // also NaN
		return nil, fmt.Errorf("%w: too few, or the vectors of them too much alike, to be compared", ErrFewWords)
	}
	share := o.Share / (1 - o.Share) * kappa
	model.fill(e, float32(math.Sqrt(share)))
	byBoth, err := p.products(ctx, p.sample(), opts.candidates, opts.neighbors)
	if err != nil {
		return nil, err
	}
	var units []uint16
	for _, row := range byDocuments {
		for _, cos := range row[:min(opts.neighbors, len(row))] {
			if u := opts.units(cos); u > 0 {
				units = append(units, uint16(min(math.Round(mixedStrength*float64(u)), mostLearned)))
			}
		}
	}
	return &mixture{units: byRank(slices.Concat(byBoth...), units), model: e, share: float32(share)}, nil
}

// fill sets the vectors of p, whose ids are their places, to rows times scale.
func (p *panels) fill(rows *vectorTable, scale float32) {
	for place := range p.vectors {
		at := p.start(place)
		for d, x := range rows.row(place) {
			p.values[at+d*tileCols] = scale * x
		}
	}
}

// products returns, for each vector in ids, its largest positive dot products
// with other candidates, at most count, in descending order.
func (p *panels) products(ctx context.Context, ids, candidates []uint32, count int) ([][]float32, error) {
	some := p.pick(ids)
	rows, at := make([][]float32, len(ids)), some.places()
	err := some.search(ctx, nil, count+1, 0, p.among(candidates).showAll, func(id uint32, best []candidate) {
		for _, c := range best {
			if row := rows[at[id]]; c.id() != id && len(row) < count {
				rows[at[id]] = append(row, c.cos())
			}
		}
	}, nil)
	return rows, err
}

// usual returns the mean of the 30th of each row, over the rows that have it.
func usual(rows [][]float32) float64 {
	sum, count := 0.0, 0
	for _, row := range rows {
		if len(row) >= crowdPlace {
			sum += float64(row[crowdPlace-1])
			count++
		}
	}
	return sum / float64(max(count, 1))
}

// origins returns the bits of those that a third of a product comes from or
// more: 1 for the documents, 2 for the model.
func (m *mixture) origins(id uint32, c candidate) (bits uint8) {
	all := c.cos()
	one, other := m.model.row(int(id)), m.model.row(int(c.id()))
	byModel := m.share * blas32.Dot(blas32.Vector{N: len(one), Inc: 1, Data: one}, blas32.Vector{N: len(other), Inc: 1, Data: other})
	for k, part := range []float32{all - byModel, byModel} {
		if 3*part >= all {
			bits |= 1 << k
		}
	}
	return bits
}

// byRank returns a function that gives the k-th largest of values the k-th
// largest of units, 0 beyond them, and equal values the same. It sorts both.
func byRank(values []float32, units []uint16) func(v float32) uint16 {
	slices.Sort(values)
	slices.Sort(units)
	slices.Reverse(values)
	slices.Reverse(units)
	type step struct {
		least float32
		units uint16
	}
	var steps []step // descending; each has other units
	for k, u := range units[:min(len(units), len(values)+1)] {
		least := float32(math.Inf(-1)) // below all values
		if k < len(values) {
			least = values[k]
		}
		if n := len(steps); n > 0 && steps[n-1].units == u {
			steps[n-1].least = least
			continue
		}
		steps = append(steps, step{least, u})
	}
	return func(v float32) uint16 {
		k := sort.Search(len(steps), func(k int) bool { return steps[k].least <= v })
		if k == len(steps) {
			return 0
		}
		return steps[k].units
	}
}

// componentWords limits the words for principal components, spread evenly over
// the vocabulary: a few directions need no more.
const componentWords, componentBlock = 5_000, 256

// leastSpread is the smallest share of the vectors' squared lengths in their
// differences from the mean; smaller ones are float32 rounding errors.
const leastSpread = 1e-9

// modelVectors returns E, with zeros for terms that the model does not know,
// and the ids of the others.
func modelVectors(ctx context.Context, o *Mix, terms []string, progress simmatrix.Progress) (*vectorTable, []uint32, error) {
	e := &vectorTable{rows: len(terms), dim: o.Dim, values: make([]float32, len(terms)*o.Dim)}
	var known []uint32
	mean := make([]float64, o.Dim)
	for id, term := range terms {
		if v := o.Vector(term); v != nil {
			known = append(known, uint32(min(id, simmatrix.MaxTerms)))
			copy(e.row(id), v)
			for d, x := range v {
				mean[d] += float64(x)
			}
		}
	}
	if len(known) <= crowdPlace {
		return nil, nil, fmt.Errorf("%w: the model has vectors of %d of the %d terms, and a mixture takes more than %d: build without the model",
			ErrFewWords, len(known), len(terms), crowdPlace)
	}
	blas64.Scal(1/float64(len(known)), vector(mean))
	centered := make([]float64, o.Dim)
	center := func(id uint32) {
		for d, x := range e.row(int(id)) {
			centered[d] = float64(x) - mean[d]
		}
	}
	spread, length := 0.0, 0.0
	for _, id := range known {
		center(id)
		for d, x := range centered {
			spread, length = spread+x*x, length+(x+mean[d])*(x+mean[d])
		}
	}
	if spread <= leastSpread*length { // also if both are 0
		return nil, nil, errors.New("the model's vectors of all words are alike but for rounding: look at its name and at how it is served, and delete the cache of them")
	}
	// The components are the leading eigenvectors of Σ (v − mean)(v − mean)ᵀ.
	spreads := newDense(o.Dim, o.Dim)
	for block := range slices.Chunk(someOf(known, componentWords), componentBlock) {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		words := newDense(len(block), o.Dim)
		for k, id := range block {
			center(id)
			copy(words.Data[k*words.Stride:], centered)
		}
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, words, words, 1, spreads)
	}
	product := func(_ context.Context, dst, src blas64.General) error {
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, spreads, src, 0, dst)
		return nil
	}
	random := rand.New(rand.NewPCG(0, 0)) //nolint:gosec // has to give the same numbers every time
	axes, roots, err := Leading(ctx, Symmetric{Size: o.Dim, Rank: o.Dim, Multiply: product}, min(commonComponents, o.Dim-1),
		random, simmatrix.NewStage(progress, "components of the model", Products))
	if err != nil {
		return nil, nil, err
	}
	for _, id := range known {
		center(id)
		for k := range roots {
			axis := blas64.Vector{N: o.Dim, Inc: axes.Stride, Data: axes.Data[k:]}
			blas64.Axpy(-blas64.Dot(vector(centered), axis), axis, vector(centered))
		}
		scaleTo(e.row(int(id)), centered, 1)
	}
	return e, known, nil
}
