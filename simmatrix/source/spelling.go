package source

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/parallel"
)

// FromSpelling returns the matrix of the terms by the Levenshtein distance of
// their spellings: s_ij is Formula applied to it, 0 where that rounds
// to 0, where the distance is above MaxDistance, and where the
// lengths are further apart than LengthRatio. Each row has the Neighbors
// largest among the candidates, ties in ascending byte order of the term.
//
// No pair is missed: the terms are in a radix tree, which is walked for each
// term as far as a prefix of another term is within MaxDistance of one of its
// own and terms below can get into the row. It takes under 150 bytes a term,
// and the terms and the matrix.
//
// Errors are [simmatrix.ErrNoVocabulary] where there is no term, one that wraps
// [simmatrix.ErrInvalid] for a term that cannot have a row or is repeated, one
// for all options out of range, and that of ctx.
func FromSpelling(ctx context.Context, terms []simmatrix.Term, opts SpellingOptions, progress simmatrix.Progress) (*simmatrix.Matrix, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	switch n := len(terms); {
	case n == 0:
		return nil, fmt.Errorf("%w: the list of terms is empty", simmatrix.ErrNoVocabulary)
	case n > simmatrix.MaxTerms:
		return nil, fmt.Errorf("%w: %d terms, at most %d", simmatrix.ErrInvalid, n, simmatrix.MaxTerms)
	}
	sorted := slices.Clone(terms)
	slices.SortFunc(sorted, func(a, b simmatrix.Term) int { return cmp.Compare(a.Text, b.Text) })
	m := &simmatrix.Table{Meta: simmatrix.Meta{Source: opts.Source, Params: opts.params()}}
	for i, t := range sorted {
		if err := simmatrix.CheckTerm(t.Text); err != nil {
			return nil, fmt.Errorf("%w: %w", simmatrix.ErrInvalid, err)
		}
		if i > 0 && sorted[i-1].Text == t.Text {
			return nil, fmt.Errorf("%w: term %q occurs twice", simmatrix.ErrInvalid, t.Text)
		}
		m.Terms = append(m.Terms, t.Text)
		m.DocFreqs = append(m.DocFreqs, t.DocFreq)
	}
	tree := newTermTree(m.Terms, opts.Bytes)
	for i, t := range m.Terms {
		tree.hidden[i] = opts.Candidate != nil && !opts.Candidate(t)
	}
	var err error
	stage := simmatrix.NewStage(progress, "neighbors", len(m.Terms))
	m.Entries, err = parallel.Rows(ctx, len(m.Terms), 16, false, func() func(i int) []simmatrix.Entry {
		return newEditSearcher(tree, &opts).find
	}, stage)
	if err != nil {
		return nil, err
	}
	return m.Matrix()
}
