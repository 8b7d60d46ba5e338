package expand

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
)

// likeTerms leaves of the text of a more_like_this, which all its fields share,
// the terms that the engine searches for, each once. The engine chooses them on
// each shard by that shard's frequencies, akin by those of all shards.
func (a *expansion) likeTerms(ctx context.Context, t *target) error {
	words, docs := t.text.Terms(), int64(0)
	most := make([]int64, len(words)) // of all fields
	for i := range t.clause.Fields {
		docFreqs := make([]int64, len(words))
		stats, err := a.statistics(ctx, t, t.clause.Fields[i].Name, words, docFreqs)
		if err != nil {
			return err
		}
		docs = max(docs, stats.DocCount)
		for k, docFreq := range docFreqs {
			most[k] = max(most[k], docFreq)
		}
	}
	freqs := slices.Clone(t.freqs)
	if freqs == nil {
		freqs = make([]int, len(words))
		for _, term := range t.Analysis.Terms {
			freqs[t.text.Index(term)]++
		}
	}
	like := t.clause.Parsed.Like
	if like.Unlike != "" {
		unlike, err := a.cluster.Analyze(ctx, a.s.indices, t.Name, t.clause.Parsed.Analyzer, like.Unlike)
		if err != nil {
			return err
		}
		for k, word := range words {
			if slices.Contains(unlike.Terms, word) {
				freqs[k] = 0
			}
		}
	}
	chosen, weights := mostTelling(like, words, freqs, most, docs)
	if len(chosen) == 0 {
		t.clause.LeaveField(t.Field, reason.NoTerms)
		return nil
	}
	positions := inARow(len(chosen))
	for i := range t.clause.Fields {
		f := &t.clause.Fields[i]
		only := *f.Analysis
		only.Terms, only.Positions = chosen, positions
		only.Written = nil
		f.Analysis = &only
	}
	t.clause.SingleWord = len(chosen) == 1
	t.text = terms.Read(chosen, positions)
	for k := range t.text {
		t.text[k].X = weights[k]
	}
	return nil
}

// storedTerms takes the terms of stored documents, as the index has them, in
// the place of those of a text. A client whose rights the cluster checks may
// not see these documents, so its search is left alone.
func (a *expansion) storedTerms(ctx context.Context, t *target) error {
	like := t.clause.Parsed.Like
	docs := make([]esclient.StoredDocument, len(like.Stored))
	named := 0
	for i, d := range like.Stored {
		named += len(d.Index) + len(d.ID) + len(d.Routing)
		docs[i] = esclient.StoredDocument(d)
		docs[i].Index = cmp.Or(d.Index, a.s.indices.Expression)
		if a.s.req.Allowed != nil || strings.ContainsAny(docs[i].Index, "*,") {
			t.Reason = reason.LikeDocuments
			return nil
		}
	}
	if named > maxText {
		t.Reason = reason.TooManyTerms
		return nil
	}
	of, err := a.cluster.Analyze(ctx, a.s.indices, t.Name, "", "")
	if t.Reason, err = reasonOf(err); t.Reason != "" || err != nil {
		return err
	}
	filter := esclient.TermFilter{MinDocFreq: like.MinDocFreq, MinLength: like.MinLength, MaxLength: like.MaxLength}
	if like.MaxDocFreq < math.MaxInt32 {
		filter.MaxDocFreq = like.MaxDocFreq
	}
	found, err := a.cluster.DocumentTerms(ctx, a.s.indices, t.Name, docs, filter)
	switch {
	case errors.Is(err, esclient.ErrNoDocument):
		t.Reason = reason.LikeDocuments
		return nil
	case err != nil:
		return err
	case len(found.Terms) == 0:
		t.Reason = reason.NoTerms
		return nil
	case len(found.Terms) > maxTerms:
		t.Reason = reason.TooManyTerms
		return nil
	}
	analysis := *of
	analysis.Terms = found.Terms
	analysis.Positions = inARow(len(found.Terms))
	analysis.Written = nil
	t.Analysis = &analysis
	t.text = terms.Read(analysis.Terms, analysis.Positions)
	t.freqs = found.Freqs
	return nil
}

// inARow returns the positions of so many terms, one behind the other.
func inARow(count int) []int {
	positions := make([]int, count)
	for k := range positions {
		positions[k] = k
	}
	return positions
}

// mostTelling returns the words that like asks for, in their order, and how
// much each counts. freqs are those in the text, 0 for words that are not
// searched for, docFreqs those among docs documents.
func mostTelling(like *dsl.Like, words []string, freqs []int, docFreqs []int64, docs int64) (chosen []string, weights []float64) {
	var order []int
	for k, word := range words {
		df, length := int(docFreqs[k]), len(utf16.Encode([]rune(word)))
		if df > 0 && df >= like.MinDocFreq && df <= like.MaxDocFreq && freqs[k] > 0 && freqs[k] >= like.MinTermFreq &&
			length >= like.MinLength && (like.MaxLength == 0 || length <= like.MaxLength) && !slices.Contains(like.StopWords, word) {
			order = append(order, k)
		}
	}
	score := func(k int) float64 { // with the idf of Lucene's ClassicSimilarity
		return float64(freqs[k]) * (1 + math.Log(float64(docs+1)/float64(docFreqs[k]+1)))
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score(b), score(a)) })
	order = order[:min(like.MaxTerms, len(order))]
	for _, k := range slices.Sorted(slices.Values(order)) {
		weight := 1.0
		if like.Boost > 0 {
			weight = like.Boost * score(k) / score(order[len(order)-1])
		}
		chosen, weights = append(chosen, words[k]), append(weights, weight)
	}
	return chosen, weights
}
