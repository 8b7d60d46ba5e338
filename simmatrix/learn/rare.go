package learn

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/parallel"
)

// rarePerTerm limits the rare terms with rows, per learned term.
const rarePerTerm = 2

// rareTerms are terms in too few documents to learn from. They get rows but are
// nobody's neighbors: their vectors are folded into the learned terms' spaces.
type rareTerms struct {
	learned *vocabulary
	opts    *CorpusOptions
	terms   []string  // ascending
	places  [][]int32 // of each, in the sequence of the corpus
	vectors vectorTable
}

// rareTerms returns the terms that are not learned; if they are too many, the
// most frequent ones.
func (c *Corpus) rareTerms(v *vocabulary, o *CorpusOptions) *rareTerms {
	r := &rareTerms{learned: v, opts: o}
	if !o.RareTerms {
		return r
	}
	var ids []int
	for id, df := range c.docFreqs {
		if df > 0 && v.indices[id] == absent && !c.isContext(c.terms[id]) {
			ids = append(ids, id)
		}
	}
	if most := min(rarePerTerm*v.rows, o.MaxTerms); len(ids) > most {
		slices.SortFunc(ids, c.byFrequency)
		ids = ids[:most]
	}
	slices.SortFunc(ids, func(a, b int) int { return cmp.Compare(c.terms[a], c.terms[b]) })
	at := slices.Repeat([]int32{absent}, len(c.terms))
	for k, id := range ids {
		at[id] = int32(k)
		r.terms = append(r.terms, c.terms[id])
	}
	r.places = occurrences(c.sequence, at, len(ids))
	r.vectors.rows = len(ids)
	return r
}

// fold appends a part to the vectors of the rare terms. With a = U·σ·Vᵀ, a
// learned term's vector is its column of a times U·σ^(sigmaPower−1), where U =
// a·V·σ⁻¹. A rare term's vector is the same of the column that it would have
// (Deerwester et al., 1990, fold in documents in this way). space is a·V if
// newFill makes that column, and V if it makes aᵀ times it. Columns are
// dropped once they are multiplied: of rare terms in long documents, all take
// more than a.
func (r *rareTerms) fold(
	ctx context.Context, space blas64.General, newFill func() func() func(int, *sparseBlock), sigma []float64, sigmaPower, length float64,
	progress simmatrix.Progress,
) error {
	if len(r.terms) == 0 {
		return nil
	}
	fillers, product := newFill(), newDense(len(r.terms), space.Cols)
	st := simmatrix.NewStage(progress, "rare terms", len(r.terms))
	err := parallel.EachBlock(ctx, len(r.terms), rowsPerBlock, func() func(lo, hi int) {
		fill := fillers()
		var column sparseBlock
		return func(lo, hi int) {
			for k := lo; k < hi; k++ {
				column.index, column.value = column.index[:0], column.value[:0]
				fill(k, &column)
				addProduct(rowOf(product, k), column.index, column.value, space)
			}
			st.Add(hi - lo)
		}
	})
	if err != nil {
		return err
	}
	r.vectors.addPart(product, sigma, sigmaPower-2, length)
	return nil
}

func (r *rareTerms) fillContexts() func() func(int, *sparseBlock) {
	shares := contextShares(r.learned.contextSums(r.opts.Window), r.opts.ContextPower)
	return func() func(int, *sparseBlock) {
		counter := &contextCounter{units: make([]int, len(r.learned.terms))}
		return func(k int, b *sparseBlock) {
			sum := counter.count(r.learned.corpus.sequence, r.learned.indices, r.places[k], r.opts.Window)
			for _, j := range counter.found {
				associate(b, j, counter.units[j], sum, shares[j])
			}
		}
	}
}

// fillDocuments makes rows of the sum of a rare term's documents, as in
// termDocuments, each weighted by the term.
func (r *rareTerms) fillDocuments() func() func(int, *sparseBlock) {
	idf := r.learned.idf()
	type weight struct {
		term  int32
		value float32
	}
	return func() func(int, *sparseBlock) {
		var doc []int32
		var one sparseBlock
		var sum []weight
		return func(k int, b *sparseBlock) {
			sum = sum[:0]
			for places := r.places[k]; len(places) > 0; {
				var tf int
				doc, tf = r.documentOf(doc[:0], places)
				places = places[tf:]
				one.index, one.value = one.index[:0], one.value[:0]
				scale := float32(math.Log1p(float64(tf))) / weigh(doc, idf, &one)
				for n, i := range one.index {
					sum = append(sum, weight{i, one.value[n] * scale})
				}
			}
			// The order must not depend on that of the documents.
			slices.SortFunc(sum, func(a, b weight) int { return cmp.Or(cmp.Compare(a.term, b.term), cmp.Compare(a.value, b.value)) })
			for _, w := range sum {
				b.add(w.term, w.value)
			}
		}
	}
}

// documentOf appends the learned terms of the document at the first of a rare
// term's places, and returns how many of the places are in it.
func (r *rareTerms) documentOf(doc, places []int32) (_ []int32, tf int) {
	sequence, p := r.learned.corpus.sequence, int(places[0])
	for sequence[p-1] != endOfDocument {
		p--
	}
	for ; sequence[p] != endOfDocument; p++ {
		if tf < len(places) && p == int(places[tf]) {
			tf++
		}
		if id := sequence[p]; id >= 0 && r.learned.indices[id] != absent {
			doc = append(doc, r.learned.indices[id])
		}
	}
	return doc, tf
}
