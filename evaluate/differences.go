package evaluate

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"github.com/akin-search/akin/evaluate/judged"
	"github.com/akin-search/akin/evaluate/measure"
)

// A Difference is a document that the two arms rank differently for a query.
type Difference struct {
	Query    judged.LoggedQuery
	Document string
	// Size is how far apart the ranks are, |1/log2(a+1) − 1/log2(b+1)| in (0, 1],
	// where a document that is not among the first has the discount 0.
	Size float64
}

// differences returns the documents among the first k of one ranking or both
// that do not have the same rank in both.
func differences(q judged.LoggedQuery, a, b []string, k int) []Difference {
	size := map[string]float64{}
	for i, id := range a[:min(k, len(a))] {
		size[id] += measure.Discount(i)
	}
	for i, id := range b[:min(k, len(b))] {
		size[id] -= measure.Discount(i)
	}
	var all []Difference
	for id, s := range size {
		if s != 0 {
			all = append(all, Difference{Query: q, Document: id, Size: max(s, -s)})
		}
	}
	return all
}

// largest returns the n largest differences, those of frequent queries first
// where they are alike, in an order that does not say which arm a document
// comes from: query by query, and the documents of a query as a hash has
// them.
func largest(all []Difference, n int) []Difference {
	slices.SortFunc(all, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(b.Query.Count, a.Query.Count),
			cmp.Compare(a.Query.ID, b.Query.ID), cmp.Compare(a.Document, b.Document))
	})
	all = all[:min(n, len(all))]
	slices.SortFunc(all, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(shuffled(a.Query.ID), shuffled(b.Query.ID)), cmp.Compare(a.Query.ID, b.Query.ID),
			cmp.Compare(shuffled(a.Document), shuffled(b.Document)), cmp.Compare(a.Document, b.Document))
	})
	return all
}

// shuffled is the place of a text in an order that looks random and is the
// same each time.
func shuffled(text string) string {
	sum := sha256.Sum256([]byte(text))
	return string(sum[:8])
}
