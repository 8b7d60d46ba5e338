package learn

import (
	"fmt"
	"math"
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

// Only the first of the copies counts in both of a co-occurrence's frequencies.
// Words that copies alone have side by side have no association, and no infinite
// one.
func TestCoOccurrencesOfCopiesCountOnce(t *testing.T) {
	once := vocabularyOf(t, corpusOf(signed(1)...), 1)
	v := vocabularyOf(t, corpusOf(signed(3*manyTimes)...), 1)
	v.sequence = withoutCopies(v.sequence)
	o := windowOptions(2)
	inner := [2]string{"license5", "license6"}
	i, j := v.indices[v.corpus.ids[inner[0]]], v.indices[v.corpus.ids[inner[1]]]
	sums := v.contextSums(o.Window)
	share := contextShares(sums, o.ContextPower)[i]
	units := windowUnits // once side by side
	check.Equal(t, once.contextSums(o.Window)[once.indices[once.corpus.ids[inner[1]]]], sums[j])
	check.Equal(t, math.Log(float64(units)/(float64(sums[j])*share)), ppmiOf(t, v, o)[inner], closeTo)
}

func TestMatricesOfCopiedPassagesAreFinite(t *testing.T) {
	var documents [][]string
	for d := range 4 * manyTimes {
		// A rare word is in a copy, beside words that the others have in theirs alone.
		text := signed(d + 1)[d]
		text[6] = fmt.Sprintf("license%d", 5+d%2*100)
		documents = append(documents, text, []string{"other", "words", fmt.Sprint("x", d)})
	}
	for _, minDocFreq := range []int{1, 3} {
		c, o := corpusOf(documents...), DefaultCorpusOptions()
		o.MinDocFreq = minDocFreq
		m, err := FromCorpus(t.Context(), c, o, nil)
		check.OK(t, err)
		check.That(t, m.Len() > 0, "no terms")
	}
}
