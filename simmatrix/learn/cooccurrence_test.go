package learn

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

func corpusOf(documents ...[]string) *Corpus {
	c := newCorpus()
	for _, d := range documents {
		c.addDocument(d)
	}
	return c
}

func vocabularyOf(tb testing.TB, c *Corpus, minDocFreq int) *vocabulary {
	tb.Helper()
	v := check.Got(c.vocabulary(minDocFreq, simmatrix.MaxTerms))(tb)
	v.order(c.sequence)
	return v
}

// cells returns the non-zero entries of s by the terms of their row and column.
func cells(s *sparse, rows, cols []string) map[[2]string]float64 {
	out := map[[2]string]float64{}
	row := 0
	for _, b := range s.blocks {
		b.all(func(index []int32, value []float32) {
			for k, j := range index {
				out[[2]string{rows[row], cols[j]}] = float64(value[k])
			}
			row++
		})
	}
	return out
}

// ppmiOf returns the association of each context and term.
func ppmiOf(tb testing.TB, v *vocabulary, o CorpusOptions) map[[2]string]float64 {
	tb.Helper()
	s := check.Got(v.ppmi(tb.Context(), &o, math.MaxInt64, simmatrix.NewStage(nil, "", 0)))(tb)
	return cells(s, v.terms, v.terms)
}

func windowOptions(window int) CorpusOptions {
	o := DefaultCorpusOptions()
	o.Window = window
	return o
}

var closeTo = cmpopts.EquateApprox(0, 1e-6)

func TestPPMIOfAHandComputedToy(t *testing.T) {
	v := vocabularyOf(t, corpusOf([]string{"a", "b", "a"}, []string{"c", "a"}), 1)
	// Both ways: c_ab = c_ba = 2 (twice at distance 1), c_aa = 1 (once at
	// distance 2, counted from both ends), c_ac = c_ca = 1. Sums: a 4, b 2,
	// c 1. q ∝ 4^.75, 2^.75, 1 = .513306, .305213, .181481; by context and term:
	want := map[[2]string]float64{
		{"b", "a"}: 0.493597, // ln(2/(4·.305213))
		{"c", "a"}: 0.320310, // ln(1/(4·.181481))
		{"a", "b"}: 0.666884, // ln(2/(2·.513306))
		{"a", "c"}: 0.666884, // ln(1/(1·.513306)); aa is ln(1/(4·.513306)) < 0
	}
	check.Equal(t, want, ppmiOf(t, v, windowOptions(2)), closeTo)
	t.Run("without smoothing", func(t *testing.T) {
		o := windowOptions(2)
		o.ContextPower = 1 // q = 4/7, 2/7, 1/7
		ab, ac := math.Log(7./4), math.Log(7./4)
		want := map[[2]string]float64{{"b", "a"}: ab, {"a", "b"}: ab, {"c", "a"}: ac, {"a", "c"}: ac}
		check.Equal(t, want, ppmiOf(t, v, o), closeTo)
	})
}

func TestWindowSkipsTermsOutsideTheVocabularyAndEndsWithTheDocument(t *testing.T) {
	// x, y and z are rare.
	c := corpusOf([]string{"a", "x", "z", "b"}, []string{"b", "y", "a"}, []string{"c"}, []string{"c"})
	v := vocabularyOf(t, c, 2)
	check.Equal(t, []string{"a", "b", "c"}, v.terms)
	if diff := cmp.Diff([]int{120, 120, 0}, v.contextSums(1)); diff != "" { // a and b meet twice, side by side
		t.Error(diff)
	}
}

func TestWindowEndsWithTheText(t *testing.T) {
	c := newCorpus()
	c.addDocument(nil, []string{"a"}, []string{"", "\xff"}, []string{"b", "c"}, nil)
	v := vocabularyOf(t, c, 1)
	if diff := cmp.Diff([]int{0, 60, 60}, v.contextSums(5)); diff != "" { // only b and c meet
		t.Error(diff)
	}
	check.Equal(t, 2, len(ppmiOf(t, v, windowOptions(5))))
	weights := documentsOf(t, v)
	check.Equal(t, 3, len(cells(weights, []string{"1"}, v.terms)))
}

func documentsOf(tb testing.TB, v *vocabulary) *sparse {
	tb.Helper()
	return check.Got(v.termDocuments(tb.Context(), math.MaxInt64, simmatrix.NewStage(nil, "", 0)))(tb)
}

func TestTermDocumentWeightsOfAHandComputedToy(t *testing.T) {
	v := vocabularyOf(t, corpusOf([]string{"a", "b", "a"}, []string{"c", "a"}), 1)
	// N = 2: idf(a) = ln(1 + 0.5/2.5) = .182322, idf(b) = idf(c) = ln 2.
	// Document 1: (ln 3 · .182322, ln 2 · ln 2) scaled to length 1;
	// document 2: (ln 2 · .182322, ln 2 · ln 2) scaled to length 1.
	want := map[[2]string]float64{{"1", "a"}: 0.384799, {"1", "b"}: 0.923001, {"2", "a"}: 0.254382, {"2", "c"}: 0.967104}
	check.Equal(t, want, cells(documentsOf(t, v), []string{"1", "2"}, v.terms), closeTo)
}
