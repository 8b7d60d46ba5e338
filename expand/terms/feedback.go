package terms

import (
	"cmp"
	"slices"
	"strings"
)

// BM25's k1 and b, the engines' defaults. They only weight terms of hits
// relative to each other.
const (
	k1 = 1.2
	b  = 0.75
)

// A FirstHit is one of the first hits of a search.
type FirstHit struct {
	// ID is the document's name in explanations.
	ID string
	// Score is the engine's; it is divided by the sum over all hits.
	Score float64
	// Fields are the document's terms by field; fields may be missing.
	Fields map[string]FieldTerms
}

// FieldTerms are the distinct terms of a document's field with frequencies.
type FieldTerms struct {
	Terms []string
	Freqs []float64
}

// A FeedbackTerm is a term in the first hits of a search.
type FeedbackTerm struct {
	Term string
	// Weight is f_j.
	Weight float64
	// DocFreq is the number of documents with the term, IDF its idf.
	DocFreq int64
	IDF     float64
	// Boost is the term's factor in the query.
	Boost float64
	// Hits are the numbers of the hits with the term.
	Hits []int
}

// Feedback weights the terms of a field in the first hits d of a search, whose
// fields have lengths L_d:
//
//	f_j = Σ_d p_d · tf_jd / (tf_jd + K_d),  K_d = k1·(1 − b + b·L_d/L)
//
// where p_d are the scores, divided by their sum, and L is the mean of L_d. f_j
// is in [0, 1). The terms are sorted by falling f_j, ties in byte order. This
// is the relevance model RM1 (Lavrenko and Croft 2001) with BM25's saturation
// in place of a language model.
func Feedback(hits []FirstHit, field string) []FeedbackTerm {
	sum, length := 0.0, 0.0
	lengths := make([]float64, len(hits))
	for d, h := range hits {
		for _, tf := range h.Fields[field].Freqs {
			lengths[d] += tf
		}
		sum += max(h.Score, 0)
		length += lengths[d] / float64(len(hits))
	}
	if sum == 0 || length == 0 {
		return nil
	}
	var out []FeedbackTerm
	at := map[string]int{}
	for d, h := range hits {
		share := max(h.Score, 0) / sum
		saturation := k1 * (1 - b + b*lengths[d]/length)
		has := h.Fields[field]
		for k, term := range has.Terms {
			i, ok := at[term]
			if !ok {
				i = len(out)
				at[term] = i
				out = append(out, FeedbackTerm{Term: term})
			}
			out[i].Weight += share * has.Freqs[k] / (has.Freqs[k] + saturation)
			out[i].Hits = append(out[i].Hits, d)
		}
	}
	slices.SortFunc(out, func(a, b FeedbackTerm) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Term, b.Term))
	})
	return out
}

// SettleFeedback keeps the n terms with the largest f_j·idf_j, ties in byte
// order, among those in at least one and at most share of docs documents. It
// sets their boosts to κ·f_j so that
//
//	Σ_j boost_j·idf_j = weight · own
//
// where own is Σ_i x_i·idf_i over the terms i of the text: feedback counts for
// a share of the client's text.
func SettleFeedback(all []FeedbackTerm, own float64, docs int64, share, weight float64, n int) []FeedbackTerm {
	most := mostDocs(share, docs)
	kept := slices.DeleteFunc(all, func(t FeedbackTerm) bool { return t.DocFreq == 0 || float64(t.DocFreq) > most })
	mass := func(t FeedbackTerm) float64 { return t.Weight * t.IDF }
	slices.SortFunc(kept, func(a, b FeedbackTerm) int {
		return cmp.Or(cmp.Compare(mass(b), mass(a)), strings.Compare(a.Term, b.Term))
	})
	kept = kept[:min(n, len(kept))]
	added := 0.0
	for k := range kept {
		added += mass(kept[k])
	}
	if weight*own == 0 || added == 0 {
		return nil
	}
	for k := range kept {
		kept[k].Boost = weight * own / added * kept[k].Weight
	}
	return kept
}
