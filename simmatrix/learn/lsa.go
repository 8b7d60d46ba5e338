package learn

import (
	"context"
	"math"
	"slices"

	"github.com/akin-search/akin/simmatrix/internal/parallel"
)

// termDocuments returns the document-term matrix (documents are rows) with
//
//	ln(1 + tf) · ln(1 + (N − df + 0.5)/(df + 0.5))
//
// as the weight of a term in a document, and every document scaled to unit
// length. The entries may take room bytes, as for makeSparse.
func (v *vocabulary) termDocuments(ctx context.Context, room int64, st *parallel.Stage) (*sparse, error) {
	idf := make([]float64, len(v.terms))
	for i, df := range v.docFreqs {
		idf[i] = math.Log1p((float64(v.docs) - float64(df) + 0.5) / (float64(df) + 0.5))
	}
	starts := v.documents()
	return makeSparse(ctx, len(starts)-1, len(v.terms), room, func() func(int, *sparseBlock) {
		var doc []int32
		return func(row int, b *sparseBlock) {
			doc = doc[:0]
			for _, i := range v.sequence[starts[row]:starts[row+1]] {
				if i >= 0 {
					doc = append(doc, i)
				}
			}
			b.addDocument(doc, idf)
		}
	}, st)
}

func (b *sparseBlock) addDocument(doc []int32, idf []float64) {
	slices.Sort(doc)
	start := len(b.value)
	squares := 0.0
	for from := 0; from < len(doc); {
		to := from + 1
		for to < len(doc) && doc[to] == doc[from] {
			to++
		}
		weight := math.Log1p(float64(to-from)) * idf[doc[from]]
		squares += weight * weight
		b.add(doc[from], float32(weight))
		from = to
	}
	length := float32(math.Sqrt(squares)) // above 0: no idf is 0
	for k := start; k < len(b.value); k++ {
		b.value[k] /= length
	}
}
