package learn

import (
	"fmt"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// signed returns documents with a text of their own before and after a passage of
// 12 words that all share.
func signed(documents int) [][]string {
	out := make([][]string, documents)
	for d := range out {
		out[d] = append(out[d], fmt.Sprintf("before%d", d))
		for k := range 12 {
			out[d] = append(out[d], fmt.Sprintf("license%d", k))
		}
		out[d] = append(out[d], fmt.Sprintf("after%d", d))
	}
	return out
}

func TestAPassageOfManyDocumentsCountsOnce(t *testing.T) {
	for documents, want := range map[int][2]int{
		manyTimes:     {14 * manyTimes, 0},
		manyTimes + 1: {2*(manyTimes+1) + 12, manyTimes},
	} {
		v := vocabularyOf(t, corpusOf(signed(documents)...), 1)
		terms, gaps := 0, 0
		for _, id := range withoutCopies(v.sequence) {
			switch {
			case id >= 0:
				terms++
			case id == endOfText:
				gaps++
			}
		}
		check.Equal(t, want, [2]int{terms, gaps})
		// A word is still in as many documents.
		check.Equal(t, uint32(documents), v.docFreqs[v.indices[v.corpus.ids["license3"]]])
	}
}

func TestCopiesOfADocumentLeaveOne(t *testing.T) {
	var copies [][]string
	for range 3 * manyTimes {
		copies = append(copies, signed(1)[0])
	}
	v := vocabularyOf(t, corpusOf(copies...), 1)
	terms := 0
	for _, id := range withoutCopies(v.sequence) {
		if id >= 0 {
			terms++
		}
	}
	check.Equal(t, 14, terms)
}
