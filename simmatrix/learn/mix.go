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
	model *panels                      // E times the root of its share in a product; ids are places
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
	usualOfCorpus, err := documents.usualCosine(ctx, p.sample(), opts.candidates)
	if err != nil {
		return nil, err
	}
	usualOfModel, err := model.usualCosine(ctx, someOf(known, crowdSample), among)
	if err != nil {
		return nil, err
	}
	kappa := usualOfCorpus / usualOfModel
	if !(kappa > 0) || math.IsInf(kappa, 1) { // also NaN
		return nil, fmt.Errorf("%w: too few, or the vectors of them too much alike, to be compared", ErrFewWords)
	}
	model.fill(e, float32(math.Sqrt(o.Share/(1-o.Share)*kappa)))
	byDocuments, err := documents.products(ctx, p.sample(), opts)
	if err != nil {
		return nil, err
	}
	byBoth, err := p.products(ctx, p.sample(), opts)
	if err != nil {
		return nil, err
	}
	var units []uint16
	for _, cos := range byDocuments {
		if u := opts.units(cos); u > 0 {
			units = append(units, uint16(min(math.Round(mixedStrength*float64(u)), mostLearned)))
		}
	}
	return &mixture{units: byRank(byBoth, units), model: model}, nil
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

// products returns the dot products of the vectors in ids with their nearest
// candidates.
func (p *panels) products(ctx context.Context, ids []uint32, opts nearestOptions) ([]float32, error) {
	some := p.pick(ids)
	rows, at := make([][]float32, len(ids)), some.places()
	err := some.search(ctx, nil, opts.neighbors+1, 0, p.among(opts.candidates).showAll, func(id uint32, best []candidate) {
		for _, c := range best {
			if row := rows[at[id]]; c.id() != id && len(row) < opts.neighbors {
				rows[at[id]] = append(row, c.cos())
			}
		}
	}, nil)
	return slices.Concat(rows...), err
}

// origins returns the bits of those that a third of a product comes from or
// more: 1 for the documents, 2 for the model.
func (m *mixture) origins(id uint32, c candidate) (bits uint8) {
	all := c.cos()
	byModel := blas32.Dot(m.model.vector(id), m.model.vector(c.id()))
	for k, part := range []float32{all - byModel, byModel} {
		if 3*part >= all {
			bits |= 1 << k
		}
	}
	return bits
}

// byRank returns a function that gives the k-th largest of values the k-th
// largest of units, 0 beyond them, and equal values the same. It sorts values.
func byRank(values []float32, units []uint16) func(v float32) uint16 {
	units = slices.Clone(units)
	slices.Sort(values)
	slices.Sort(units)
	return func(v float32) uint16 {
		upTo := sort.Search(len(values), func(k int) bool { return values[k] > v })
		if larger := len(values) - upTo; larger < len(units) {
			return units[len(units)-1-larger]
		}
		return 0
	}
}

// usualCosine returns the mean 30th-largest cosine of the vectors in ids with
// those in candidates, nil for all, over the ids with that many positive ones.
func (p *panels) usualCosine(ctx context.Context, ids, candidates []uint32) (float64, error) {
	cosines, err := p.cosines(ctx, ids, candidates)
	sum, rows := 0.0, 0
	for _, cos := range cosines {
		sum += cos
		if cos > 0 {
			rows++
		}
	}
	return sum / float64(max(rows, 1)), err
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
	product := func(ctx context.Context, dst, src blas64.General) error {
		clear(dst.Data)
		for block := range slices.Chunk(someOf(known, componentWords), componentBlock) {
			if err := ctx.Err(); err != nil {
				return err
			}
			words, part := newDense(len(block), o.Dim), newDense(len(block), src.Cols)
			for k, id := range block {
				center(id)
				copy(words.Data[k*words.Stride:], centered)
			}
			blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, words, src, 0, part)
			blas64.Gemm(blas.Trans, blas.NoTrans, 1, words, part, 1, dst)
		}
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
