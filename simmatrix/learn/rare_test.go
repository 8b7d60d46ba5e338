package learn

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
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
		if row.DocFreq() >= 3 || row.DocFreq() == 0 {
			t.Errorf("%s is in %d documents", term, row.DocFreq())
		}
		for n := range row.All() {
			if without.Row(n.Term).IsZero() {
				t.Errorf("%s has the rare neighbor %s", term, n.Term)
			}
		}
		if empty := term == "lonely" || term == "rare0x"; empty != (row.Len() == 0) { // they share no document with others
			t.Errorf("%s has %d neighbors", term, row.Len())
		}
	}
	if rare < 10 || with.Len() != without.Len()+rare || with.Meta().Params["rare_terms"] != strconv.Itoa(rare) {
		t.Errorf("%d rare terms, %s in the header", rare, with.Meta().Params["rare_terms"])
	}
	if p, ok := without.Meta().Params["rare_terms"]; ok {
		t.Errorf("%s rare terms where there are none", p)
	}
}

// The column of a learned term, folded in, is the vector that it has.
func TestFoldingALearnedTermInGivesItsVector(t *testing.T) {
	c, o := corpusOf(rareDocuments()...), smallOptions()
	v := vocabularyOf(t, c, o.MinDocFreq)
	r := &rareTerms{
		learned: v, opts: &o, terms: v.terms, places: c.occurrences(v.indices, len(v.terms)), vectors: vectorTable{rows: len(v.terms)},
	}
	want, err := learnVectors(t.Context(), v, r, math.MaxInt64, nil)
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

func TestTimesIsTheProduct(t *testing.T) {
	s, err := makeSparse(t.Context(), 100, 3, math.MaxInt64, func() func(int, *sparseBlock) {
		return func(row int, b *sparseBlock) {
			for j := range int32(row % 4) {
				b.add(j, float32(row)+float32(j))
			}
		}
	}, simmatrix.NewStage(nil, "", 0))
	check.OK(t, err)
	m := newDense(3, 2)
	copy(m.Data, []float64{1, 10, 2, 20, 3, 30})
	got, err := s.times(t.Context(), m)
	check.OK(t, err)
	for row := range 100 {
		want := 0.0
		for j := range row % 4 {
			want += float64(row+j) * float64(j+1)
		}
		if r := rowOf(got, row).Data; r[0] != want || r[1] != 10*want {
			t.Errorf("row %d: %v, want %v", row, r, want)
		}
	}
}
