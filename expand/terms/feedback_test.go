package terms

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/simmatrix"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

// The numbers are computed by hand from the formula, with K = 1.2 for hits of
// the mean length.
func TestFeedbackWeighsTermsByHitAndFrequency(t *testing.T) {
	got := Feedback([]FirstHit{
		{Score: 3, Fields: map[string]FieldTerms{"body": {[]string{"car", "rent"}, []float64{3, 1}}, "title": {[]string{"car"}, []float64{1}}}},
		{Score: 1, Fields: map[string]FieldTerms{"body": {[]string{"rent", "boat"}, []float64{2, 2}}}},
	}, "body")
	want := []struct {
		term   string
		weight float64
		hits   []int
	}{
		{"car", 0.75 * 3 / 4.2, []int{0}},
		{"rent", 0.75*1/2.2 + 0.25*2/3.2, []int{0, 1}},
		{"boat", 0.25 * 2 / 3.2, []int{1}},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, w := range want {
		if g := got[i]; g.Term != w.term || !near(g.Weight, w.weight) || !cmp.Equal(g.Hits, w.hits) {
			t.Errorf("%d: %+v, want %+v", i, g, w)
		}
	}
}

func TestFeedbackOfHitsWithoutScoreOrTermsIsEmpty(t *testing.T) {
	for _, hits := range [][]FirstHit{
		nil, {{Score: 1}}, {{Fields: map[string]FieldTerms{"body": {[]string{"car"}, []float64{1}}}}},
	} {
		if got := Feedback(hits, "body"); len(got) > 0 {
			t.Errorf("%+v: %+v", hits, got)
		}
	}
}

// The terms of the hits count for the share asked for, whatever their number.
func TestFeedbackCountsForAShareOfTheText(t *testing.T) {
	const own = 7
	all := func() []FeedbackTerm {
		return []FeedbackTerm{
			{Term: "the", Weight: 0.9, DocFreq: 900, IDF: 0.1},
			{Term: "gone", Weight: 0.8},
			{Term: "rent", Weight: 0.5, DocFreq: 20, IDF: 4},
			{Term: "hire", Weight: 0.4, DocFreq: 20, IDF: 4},
			{Term: "rare", Weight: 0.3, DocFreq: 1, IDF: 7},
		}
	}
	for n, want := range map[int][]string{1: {"rare"}, 2: {"rare", "rent"}, 9: {"rare", "rent", "hire"}} {
		kept := SettleFeedback(all(), own, 1000, 0.1, 0.25, n)
		var terms []string
		sum := 0.0
		for _, k := range kept {
			terms = append(terms, k.Term)
			sum += k.Boost * k.IDF
		}
		if !cmp.Equal(terms, want) || !near(sum, 0.25*own) {
			t.Errorf("%d: %v with %v of 7, want %v with a quarter", n, terms, sum, want)
		}
	}
	if kept := SettleFeedback(all(), 0, 1000, 0.1, 0.25, 9); len(kept) > 0 {
		t.Errorf("without a text: %+v", kept)
	}
}

// Of two neighbors that are as similar, the one that the first hits speak of
// gets more weight.
func TestContextPrefersTheSenseOfTheFirstHits(t *testing.T) {
	row, err := simmatrix.PackRow(10, []simmatrix.Neighbor{
		{Term: "river", Similarity: simmatrix.QuantizeSimilarity(0.5), DocFreq: 10},
		{Term: "money", Similarity: simmatrix.QuantizeSimilarity(0.5), DocFreq: 10},
	})
	if err != nil {
		t.Fatal(err)
	}
	var sel Selection
	sel.Start(Read([]string{"bank"}, []int{0}))
	sel.Origins[0].Row = row
	sel.Context = map[string]float64{"river": 0.5}
	sel.Propose(SqrtIDF, 100, 1, 1, 10)
	sel.Settle(SqrtIDF, 100, []int64{10, 10, 10}, 1)
	sel.Choose(10)
	if c := sel.Candidates; len(c) != 2 || c[1].Term != "river" || !near(c[1].V, 1.5*c[0].V) {
		t.Errorf("%+v", c)
	}
}

func TestLimitKeepsTheMostTellingTerms(t *testing.T) {
	var sel Selection
	sel.Start(Read([]string{"a", "b", "c", "b"}, []int{0, 1, 2, 3}))
	sel.Origins.Limit([]int64{500, 400, 1}, 1000, 2)
	for i, plain := range []bool{true, false, false} {
		if sel.Origins[i].Plain != plain {
			t.Errorf("%s: plain %v", sel.Origins[i].Term, sel.Origins[i].Plain)
		}
	}
}
