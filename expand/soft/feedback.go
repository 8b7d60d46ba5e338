package soft

import (
	"cmp"
	"math"
	"slices"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/terms"
)

// feedback returns, for each clause, terms of the best hits as words to add to
// its sum, see [terms.Feedback]. The best are those with the largest sums.
// Their terms are already here, so it takes no second search.
func (w *window) feedback(by *expand.Rerank, scores []expand.HitScore) []expand.Sum {
	if by.Feedback.Documents == 0 || len(by.Sums) == 0 {
		return nil
	}
	best := make([]int, len(w.hits))
	for k := range best {
		best[k] = k
	}
	slices.SortStableFunc(best, func(a, b int) int { return cmp.Compare(scores[b].Sum, scores[a].Sum) })
	best = best[:min(len(best), by.Feedback.Documents)]
	fields := 0
	for i := range by.Sums {
		fields += len(by.Sums[i].Fields)
	}
	out := make([]expand.Sum, len(by.Sums))
	for i := range by.Sums {
		out[i].TieBreaker = by.Sums[i].TieBreaker
		for _, f := range by.Sums[i].Fields {
			own := 0.0
			for _, word := range f.Words {
				own += word.Weight
			}
			found := w.fields[f.Field].feedback(w.memory, best, scores)
			n := max(by.Feedback.Terms/fields, 1)
			found = terms.SettleFeedback(found, own, w.fields[f.Field].docs(), by.MaxDocShare, by.Feedback.Weight/float64(fields), n)
			f.Words = make([]expand.SumWord, len(found))
			for k, t := range found {
				f.Words[k] = expand.SumWord{Weight: t.Boost * t.IDF, Terms: []string{t.Term}, Boosts: []float64{1}}
			}
			out[i].Fields = append(out[i].Fields, f)
		}
	}
	return out
}

// feedback returns the best hits' terms in a column.
func (c *column) feedback(m *store, best []int, scores []expand.HitScore) []terms.FeedbackTerm {
	hits, weights := make([]terms.FirstHit, len(best)), map[string]float64{}
	for d, k := range best {
		v := c.vectors[k]
		texts := m.terms.texts(v.terms)
		hits[d] = terms.FirstHit{Score: scores[k].Sum, Fields: map[string]terms.FieldTerms{c.Field: {Terms: texts, Freqs: v.freqs}}}
		for i, text := range texts {
			weights[text] = c.w[v.terms[i]]
		}
	}
	found := terms.Feedback(hits, c.Field)
	for k := range found {
		t := &found[k]
		t.IDF = weights[t.Term]
		// idf = ln((N + 1)/(df + ½)). A term without a row has the idf of a term in
		// one document. Its real frequency is unknown, so it is left out.
		if df := math.Round(float64(c.docs()+1)/math.Exp(t.IDF) - 0.5); df > 1 {
			t.DocFreq = int64(df)
		}
	}
	return found
}

// docs returns the number of documents that the column's weights are from.
func (c *column) docs() int64 {
	if c.Weights != nil {
		return c.Weights.Docs()
	}
	return c.Similarities.Docs()
}
