package learn

import (
	"context"
	"math"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/parallel"
)

// FromCorpus learns a matrix from documents only. The vocabulary is the
// MaxTerms most frequent terms that occur in MinDocFreq documents. Each has two
// vectors of unit length, from the positive pointwise mutual information of
// co-occurrence in a window and from the weighted term-document matrix (latent
// semantic analysis), both reduced by a truncated singular value decomposition.
// Terms that start with a digit are only a context for others. With cos the
// mean of the two cosines, or the one that Parts asks for,
//
//	s_ij = max(0, cos(i,j))^Power
//
// for the Neighbors nearest terms j of each term i, without those that round to
// zero.
//
// The same documents in any order, with the same options and on the same kind
// of processor give the same bytes. FromCorpus returns
// [simmatrix.ErrNoVocabulary] where there is no term, [simmatrix.ErrMemory]
// where MaxMemory is too little, an error that names each option out of range,
// and the error of ctx soon after it ends.
func FromCorpus(ctx context.Context, c *Corpus, opts CorpusOptions, progress simmatrix.Progress) (*simmatrix.Matrix, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if err := c.checkMemory(opts.MaxMemory); err != nil {
		return nil, err
	}
	v, err := c.vocabulary(opts.MinDocFreq, opts.MaxTerms)
	if err != nil {
		return nil, err
	}
	l := learner{vocabulary: v, opts: &opts, memory: newMemory(c, v, &opts), progress: progress}
	if err := l.memory.vectors(); err != nil {
		return nil, err
	}
	vectors, err := l.vectors(ctx)
	if err != nil {
		return nil, err
	}
	vectors.cut(v.rows)
	m := &simmatrix.Table{
		Meta:     simmatrix.Meta{Source: opts.Source, Params: opts.params(), Docs: v.docs},
		Terms:    v.terms[:v.rows],
		DocFreqs: v.docFreqs[:v.rows],
	}
	m.Entries, err = vectors.nearest(ctx, nearestOptions{neighbors: opts.Neighbors, power: opts.Power},
		parallel.NewStage(progress, "neighbors", v.rows))
	if err != nil {
		return nil, err
	}
	return m.Matrix()
}

type learner struct {
	*vocabulary
	opts     *CorpusOptions
	memory   memory
	progress simmatrix.Progress
}

func (l *learner) vectors(ctx context.Context) (*vectorTable, error) {
	table := newVectorTable(len(l.terms))
	length := 1.0
	if l.opts.Parts == BothParts {
		length = math.Sqrt2 / 2
	}
	if l.opts.Parts != DocumentsPart {
		association, err := l.ppmi(ctx, l.opts, l.memory.room(), parallel.NewStage(l.progress, "co-occurrence", len(l.terms)))
		if err != nil {
			return nil, l.memory.explain(err, "co-occurrences")
		}
		err = table.addPart(ctx, association, partOptions{
			dimensions: l.opts.Dimensions, sigmaPower: 0.5, length: length, seed: l.opts.Seed, stream: 1,
		}, parallel.NewStage(l.progress, "co-occurrence vectors", svdProducts))
		if err != nil {
			return nil, err
		}
	}
	if l.opts.Parts != CooccurrencePart {
		weights, err := l.termDocuments(ctx, l.memory.room(), parallel.NewStage(nil, "", 0))
		if err != nil {
			return nil, l.memory.explain(err, "occurrences in documents")
		}
		err = table.addPart(ctx, weights, partOptions{
			dimensions: l.opts.Dimensions, sigmaPower: 1, length: length, seed: l.opts.Seed, stream: 2,
		}, parallel.NewStage(l.progress, "document vectors", svdProducts))
		if err != nil {
			return nil, err
		}
	}
	return table, nil
}
