package learn

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
)

// rareDocuments are documents about concepts, in some of which a rare word
// stands next to words of the concept: rareK in one, scarceK in two.
func rareDocuments() [][]string {
	docs := plantedDocuments(4, 300)
	for k, i := range []int{11, 52, 133, 250} {
		rare := fmt.Sprintf("rare%d", k)
		docs[i] = append(slices.Clone(docs[i][:3]), append([]string{rare, rare}, docs[i][3:]...)...)
		for _, i := range []int{i, i + 4} {
			docs[i] = append(slices.Clone(docs[i]), fmt.Sprintf("scarce%d", k))
		}
	}
	return append(docs, []string{"lonely"}, []string{"2rare", "rare0x"})
}

func TestRareTermsGetRowsAndNothingElseChanges(t *testing.T) {
	c, o := corpusOf(rareDocuments()...), smallOptions()
	with := mustLearn(t, c, o)
	o.RareTerms = false
	without := mustLearn(t, c, o)
	rare := 0
	for term, row := range with.Rows() {
		if !without.Row(term).IsZero() {
			check.Equal(t, matrixtest.Of(without.Row(term)), matrixtest.Of(row), term)
			continue
		}
		rare++
		check.That(t, row.DocFreq() < 3 && row.DocFreq() != 0, "%s is in %d documents", term, row.DocFreq())
		for n := range row.All() {
			check.That(t, !without.Row(n.Term).IsZero(), "%s has the rare neighbor %s", term, n.Term)
		}
		if empty := term == "lonely" || term == "rare0x"; empty != (row.Len() == 0) { // they share no document with others
			t.Errorf("%s has %d neighbors", term, row.Len())
		}
	}
	if rare < 10 || with.Len() != without.Len()+rare || with.Meta().Params["rare_terms"] != strconv.Itoa(rare) {
		t.Errorf("%d rare terms, %s in the header", rare, with.Meta().Params["rare_terms"])
	}
	p, ok := without.Meta().Params["rare_terms"]
	check.That(t, !ok, "%s rare terms where there are none", p)
}

func TestFoldingALearnedTermInGivesItsVector(t *testing.T) {
	c, o := corpusOf(rareDocuments()...), smallOptions()
	v := vocabularyOf(t, c, o.MinDocFreq)
	r := &rareTerms{learned: v, opts: &o, terms: v.terms, places: occurrences(c.sequence, v.indices, len(v.terms)), vectors: vectorTable{rows: len(v.terms)}}
	want, _, err := learnVectors(t.Context(), v, r, math.MaxInt64, nil)
	check.OK(t, err)
	for i, term := range v.terms {
		cosine := 0.0
		for d, x := range want.row(i) {
			cosine += float64(x) * float64(r.vectors.row(i)[d])
		}
		if math.Abs(cosine-1) > 1e-3 { // the last directions are not exact
			t.Errorf("%s has %v, folded in %v", term, want.row(i), r.vectors.row(i))
		}
	}
}

func TestRareTermsAreBounded(t *testing.T) {
	docs := [][]string{{"a", "b"}, {"a", "b"}, {"a", "b", "twice"}, {"twice"}}
	for i := range 9 {
		docs = append(docs, []string{"a", fmt.Sprintf("once%d", i)})
	}
	want := []string{"a", "b", "once0", "once1", "once2", "twice"} // two for each learned term
	check.Equal(t, want, slices.Collect(mustLearn(t, corpusOf(docs...), smallOptions()).Terms()))
}
