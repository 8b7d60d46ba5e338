package learn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"gonum.org/v1/gonum/blas"
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

// mixed returns neighbors by both the corpus and a language model. Let A be the
// cosines of p, and E the model's vectors of the terms, centered on the
// vocabulary, without their largest principal components, at unit length. Then
//
//	C = max(0, EEᵀ),  M = (1 − α)·A + α·κ·C
//
// where κ brings the mean 30th-largest cosine of C to that of A. Each row keeps
// the opts.neighbors largest of M. The k-th largest of all that are kept then
// becomes the k-th largest of own, the corpus's own similarities, times 1.4 and
// at most 1, so that the weight of neighbors in a search does not depend on the
// model.
//
// terms are those of the ids of p. mixed fails if the model knows too few.
func (p *panels) mixed(ctx context.Context, o *Mix, opts nearestOptions, own simmatrix.Entries, terms []string, progress simmatrix.Progress) (simmatrix.Entries, error) {
	model, known, err := modelVectors(ctx, o, terms, progress)
	if err != nil {
		return simmatrix.Entries{}, err
	}
	among := known
	if opts.candidates != nil {
		among = slices.DeleteFunc(slices.Clone(known), func(id uint32) bool {
			_, found := slices.BinarySearch(opts.candidates, id)
			return !found
		})
	}
	usualOfCorpus, err := p.usualCosine(ctx, nil, opts.candidates)
	if err != nil {
		return simmatrix.Entries{}, err
	}
	usualOfModel, err := model.usualCosine(ctx, known, among)
	if err != nil {
		return simmatrix.Entries{}, err
	}
	kappa := usualOfCorpus / usualOfModel
	if !(kappa > 0) || math.IsInf(kappa, 1) { // also NaN
		return simmatrix.Entries{}, fmt.Errorf("%w: too few, or the vectors of them too much alike, to be compared", ErrFewWords)
	}

	// The dot product of these vectors is M if C was not negative before it was
	// cut off; otherwise it is less than M, which is (1 − α)·A. So the nearest in
	// M are among the nearest by these and the nearest by A.
	both := newPanels(p.dim+model.dim, p.vectors)
	left, right := float32(math.Sqrt(1-o.Share)), float32(math.Sqrt(o.Share*kappa))
	var vector []float32
	for place, id := range p.ids {
		if id == noVector {
			continue
		}
		vector = p.appendVector(vector[:0], place)
		for k := range vector {
			vector[k] *= left
		}
		vector = model.appendVector(vector, int(id))
		for k := range vector[p.dim:] {
			vector[p.dim+k] *= right
		}
		both.add(id, vector)
	}
	rows := make([][]pair, p.vectors)
	err = both.search(ctx, opts.neighbors+1, 0, both.among(opts.candidates).showAll, func(id uint32, best []candidate) {
		cols := make([]uint32, 0, 2*opts.neighbors)
		for _, c := range best {
			if c.id() != id {
				cols = append(cols, c.id())
			}
		}
		mine, _ := own.Row(int(id))
		cols = append(cols, mine...)
		slices.Sort(cols)
		a, e := both.appendVector(nil, int(id)), []float32(nil)
		row := make([]pair, 0, 2*opts.neighbors)
		for _, col := range slices.Compact(cols) {
			e = both.appendVector(e[:0], int(col))
			byDocuments, byModel := dot(a[:p.dim], e[:p.dim]), max(0, dot(a[p.dim:], e[p.dim:]))
			if n := (pair{col: col, m: byDocuments + byModel}); n.m > 0 {
				for k, part := range []float32{byDocuments, byModel} {
					if 3*part >= n.m { // a third of M
						n.origins |= 1 << k
					}
				}
				row = append(row, n)
			}
		}
		slices.SortFunc(row, func(a, b pair) int { return cmp.Or(cmp.Compare(b.m, a.m), cmp.Compare(a.col, b.col)) })
		rows[id] = slices.Clone(row[:min(len(row), opts.neighbors)])
	}, simmatrix.NewStage(progress, "neighbors with the model", p.vectors))
	if err != nil {
		return simmatrix.Entries{}, err
	}

	return asSimilar(rows, own.Sims), nil
}

// A pair is a term's neighbor, its M, and the origins of that.
type pair struct {
	col     uint32
	m       float32
	origins uint8 // 1 for the documents, 2 for the model
}

// asSimilar returns rows of M as entries. The k-th largest of all gets the k-th
// largest of sims, times mixedStrength.
func asSimilar(rows [][]pair, sims []uint16) simmatrix.Entries {
	all := make([]float32, 0, len(sims))
	for _, row := range rows {
		for _, n := range row {
			all = append(all, n.m)
		}
	}
	units := byRank(all, sims)
	out := simmatrix.NewEntries(len(rows), len(sims), true)
	var row []simmatrix.Entry
	for _, pairs := range rows {
		row = row[:0]
		for _, n := range pairs {
			if u := units(n.m); u > 0 {
				u = uint16(min(math.Round(mixedStrength*float64(u)), mostLearned))
				row = append(row, simmatrix.Entry{Col: n.col, Units: u, Origins: n.origins})
			}
		}
		out.AppendRow(row)
	}
	return out
}

func dot(a, b []float32) (sum float32) {
	for k, x := range a {
		sum += x * b[k]
	}
	return sum
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
		if sum += cos; cos > 0 {
			rows++
		}
	}
	return sum / float64(max(rows, 1)), err
}

// componentWords limits the words for principal components, spread evenly over
// the vocabulary: a few directions need no more.
const componentWords, componentBlock = 20_000, 256

// leastSpread is the smallest share of the vectors' squared lengths in their
// differences from the mean; smaller ones are float32 rounding errors.
const leastSpread = 1e-9

// modelVectors returns E, with zeros for terms that the model does not know,
// and the ids of the others.
func modelVectors(ctx context.Context, o *Mix, terms []string, progress simmatrix.Progress) (*panels, []uint32, error) {
	var known []uint32
	for id, term := range terms {
		if o.Vector(term) != nil {
			known = append(known, uint32(min(id, simmatrix.MaxTerms)))
		}
	}
	if len(known) <= crowdPlace {
		return nil, nil, fmt.Errorf("%w: the model has vectors of %d of the %d terms, and a mixture takes more than %d: build without the model",
			ErrFewWords, len(known), len(terms), crowdPlace)
	}
	mean := make([]float64, o.Dim)
	for _, id := range known {
		for d, x := range o.Vector(terms[id]) {
			mean[d] += float64(x) / float64(len(known))
		}
	}
	centered := make([]float64, o.Dim)
	center := func(id uint32) {
		for d, x := range o.Vector(terms[id]) {
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
	sample := known
	if len(known) > componentWords {
		sample = make([]uint32, componentWords)
		for k := range sample {
			sample[k] = known[k*len(known)/componentWords]
		}
	}
	// The components are the leading eigenvectors of Σ (v − mean)(v − mean)ᵀ.
	product := func(ctx context.Context, dst, src blas64.General) error {
		clear(dst.Data)
		for block := range slices.Chunk(sample, componentBlock) {
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
	e, unit, at := newPanels(o.Dim, len(terms)), make([]float32, o.Dim), 0
	for id := range uint32(min(len(terms), simmatrix.MaxTerms)) {
		clear(unit)
		if at < len(known) && known[at] == id {
			at++
			center(id)
			v := blas64.Vector{N: o.Dim, Inc: 1, Data: centered}
			for k := range roots {
				axis := blas64.Vector{N: o.Dim, Inc: axes.Stride, Data: axes.Data[k:]}
				blas64.Axpy(-blas64.Dot(v, axis), axis, v)
			}
			scaleTo(unit, centered, 1)
		}
		e.add(id, unit)
	}
	return e, known, nil
}
