package simmatrix

import (
	"math"
	"slices"
)

// termDocuments returns the term-document matrix (terms are rows) with
//
//	ln(1 + tf) · ln(1 + (N − df + 0.5)/(df + 0.5))
//
// as the weight of a term in a document and every document, which is a column,
// scaled to unit length.
func (v *vocabulary) termDocuments() *sparse {
	idf := make([]float64, len(v.terms))
	for i, df := range v.docFreqs {
		idf[i] = math.Log1p((float64(v.docs) - float64(df) + 0.5) / (float64(df) + 0.5))
	}
	documents := &sparse{cols: len(v.terms), offsets: []int{0}}
	var doc []int32
	for _, i := range v.sequence[1:] {
		if i != endOfDocument {
			doc = append(doc, i)
			continue
		}
		documents.appendDocument(doc, idf)
		doc = doc[:0]
	}
	return documents.transpose()
}

// appendDocument appends the row of a document with the given terms, which it
// sorts.
func (s *sparse) appendDocument(doc []int32, idf []float64) {
	slices.Sort(doc)
	start := len(s.index)
	squares := 0.0
	for from := 0; from < len(doc); {
		to := from + 1
		for to < len(doc) && doc[to] == doc[from] {
			to++
		}
		weight := math.Log1p(float64(to-from)) * idf[doc[from]]
		squares += weight * weight
		s.index = append(s.index, doc[from])
		s.value = append(s.value, float32(weight))
		from = to
	}
	length := float32(math.Sqrt(squares)) // above 0: no idf is 0
	for k := start; k < len(s.value); k++ {
		s.value[k] /= length
	}
	s.rows++
	s.offsets = append(s.offsets, len(s.index))
}
