package spelling

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
)

func textTerms(texts ...string) []simmatrix.Term {
	terms := make([]simmatrix.Term, len(texts))
	for i, text := range texts {
		terms[i].Text = text
	}
	return terms
}

func mustEdit(tb testing.TB, opts Options, texts ...string) *simmatrix.Matrix {
	tb.Helper()
	return check.Got(FromTerms(tb.Context(), textTerms(texts...), opts, nil))(tb)
}

// wideEdit returns options that take every pair within distance k, unless all
// of its letters differ, with the similarity 1−d/m.
func wideEdit(k int) Options {
	o := DefaultOptions()
	o.Theta1, o.Theta2, o.MaxDistance, o.LengthRatio, o.Neighbors = 1, 1, k, math.Inf(1), simmatrix.MaxNeighbors
	return o
}

// similarityOf returns s_ij, 0 where the row of i does not hold j.
func similarityOf(m *simmatrix.Matrix, i, j string) float32 {
	for n := range m.Row(i).All() {
		if n.Term == j {
			return n.Similarity
		}
	}
	return 0
}

func TestEditFormulaIsThePublishedOne(t *testing.T) {
	wide, by := wideEdit(2), func(formula Formula) Options {
		o := DefaultOptions()
		o.Formula = formula
		return o
	}
	for _, tt := range []struct {
		options Options
		i, j    string
		want    float64
	}{
		// Novotný 2017, equation 4.5: 1.8·(1−1/6)^5 and 1.8·(1−2/9)^5; a
		// letter of ten leaves 1.06, which is cut to 1.
		{DefaultOptions(), "color", "colour", 0.7233796296},
		{DefaultOptions(), "catalog", "catalogue", 0.5123304374},
		{DefaultOptions(), "abcdefghij", "abcdefghix", 1},
		// Sidorov et al. 2014, equations 27 to 30 at d = 2, m = 9.
		{by(Inverse), "catalog", "catalogue", 1.0 / 3},
		{by(Linear), "catalog", "catalogue", 7.0 / 9},
		{by(Root), "catalog", "catalogue", 0.8819171037},
		{by(Square), "catalog", "catalogue", 49.0 / 81},
		{by(Inverse), "ab", "cd", 1.0 / 3}, // no letter is the same
		// m is the length of the longer one, in runes.
		{wide, "car", "cars", 3.0 / 4},
		{wide, "cars", "car", 3.0 / 4},
		{wide, "naïve", "naive", 4.0 / 5},
	} {
		t.Run(string(tt.options.Formula)+" "+tt.i, func(t *testing.T) {
			check.Equal(t, simmatrix.QuantizeSimilarity(tt.want), similarityOf(mustEdit(t, tt.options, tt.i, tt.j), tt.i, tt.j), tt.want)
		})
	}
	check.Equal(t, 0, mustEdit(t, by(Root), "ab", "cd").Meta().NonZeros, "the root of 1−d/m of terms without a common letter")
}

func TestEditMatrixOfSpellings(t *testing.T) {
	o := DefaultOptions()
	m := check.Got(FromTerms(t.Context(), []simmatrix.Term{
		{Text: "catalogue", DocFreq: 90}, {Text: "catalog", DocFreq: 7}, {Text: "analogue", DocFreq: 20}, {Text: "catalogs", DocFreq: 40}, {Text: "zebra", DocFreq: 3},
	}, o, nil))(t)
	power := func(d, length float64) float32 { return simmatrix.QuantizeSimilarity(1.8 * math.Pow(1-d/length, 5)) }
	want := []simmatrix.Neighbor{
		{Term: "catalogs", Similarity: power(1, 8), DocFreq: 40},
		{Term: "catalogue", Similarity: power(2, 9), DocFreq: 90},
	}
	check.Equal(t, want, matrixtest.Of(m.Row("catalog")))
	want = []simmatrix.Neighbor{
		{Term: "analogue", Similarity: power(2, 9), DocFreq: 20},
		{Term: "catalog", Similarity: power(2, 9), DocFreq: 7},
		{Term: "catalogs", Similarity: power(2, 9), DocFreq: 40},
	}
	check.Equal(t, want, matrixtest.Of(m.Row("catalogue")))
	check.That(t, m.Row("zebra").Len() == 0 && m.Row("zebra").DocFreq() == 3, "the row of a term without neighbors")
	meta := m.Meta()
	meta.NonZeros, meta.MaxNeighbors = 0, 0
	wantMeta := simmatrix.Meta{
		Source: "edit distance", Terms: 5, Symmetric: true,
		Params: map[string]string{
			"formula": "thesis", "theta1": "1.8", "theta2": "5", "theta3": "0", "length_ratio": "1.5",
			"max_distance": "2", "lengths": "runes", "neighbors": "100",
		},
	}
	check.Equal(t, wantMeta, meta)
	o.Formula, o.MaxDistance = Root, 3
	wantParams := map[string]string{"formula": "root", "length_ratio": "1.5", "max_distance": "3", "lengths": "runes", "neighbors": "100"}
	check.Equal(t, wantParams, mustEdit(t, o, "a").Meta().Params, "θ1 and θ2 are none of its parameters")
}

func TestOptionsReportEveryBadSetting(t *testing.T) {
	_, numbers := FromTerms(t.Context(), textTerms("a"), Options{Formula: Thesis, Theta1: math.NaN(), LengthRatio: 0.5, MaxDistance: 5}, nil)
	_, formula := FromTerms(t.Context(), textTerms("a"), Options{Formula: "cubic"}, nil)
	for want, err := range map[string]error{
		`formula: "cubic" is not thesis, inverse, linear, root or square`: formula,
		"theta1: NaN": numbers, "theta2: 0": numbers, "length ratio: 0.5": numbers, "max distance: 5": numbers, "neighbors: 0": numbers,
	} {
		check.Message(t, want, err)
	}
	defaults := DefaultOptions()
	check.OK(t, defaults.Validate())
}

func TestFromTermsRefusesBadTerms(t *testing.T) {
	o := DefaultOptions()
	for _, tt := range []struct {
		name    string
		terms   []simmatrix.Term
		err     error
		message string
	}{
		{"none", nil, simmatrix.ErrNoVocabulary, ""},
		{"empty", textTerms("a", ""), simmatrix.ErrInvalid, `term ""`},
		{"not UTF-8", textTerms("a", "\xff"), simmatrix.ErrInvalid, `"\xff"`},
		{"too long", textTerms(strings.Repeat("x", simmatrix.MaxTermBytes+1)), simmatrix.ErrInvalid, "too long"},
		{"twice", textTerms("b", "a", "b"), simmatrix.ErrInvalid, `"b" occurs twice`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := FromTerms(t.Context(), tt.terms, o, nil)
			check.That(t, m == nil && errors.Is(err, tt.err) && strings.Contains(err.Error(), tt.message), "%v", err)
		})
	}
}

func TestEditMatrixDoesNotDependOnTheProcessors(t *testing.T) {
	words := spellings(3000)
	o := DefaultOptions()
	o.Neighbors = 5
	sums := map[string]bool{}
	for _, processors := range []int{1, 2, 7} {
		before := runtime.GOMAXPROCS(processors)
		sums[mustEdit(t, o, words...).Checksum()] = true
		runtime.GOMAXPROCS(before)
		slices.Reverse(words) // nor on the order
	}
	check.Equal(t, 1, len(sums))
}

func TestFromTermsStopsAndReportsProgress(t *testing.T) {
	words := textTerms(spellings(200)...)
	var seen []string
	check.OK(t, check.ErrOf(FromTerms(t.Context(), words, DefaultOptions(), func(stage string, done, total int) {
		seen = append(seen, fmt.Sprintf("%s %d/%d", stage, done, total))
	})))
	check.That(t, seen[0] == "neighbors 0/200" && seen[len(seen)-1] == "neighbors 200/200", "%v", seen)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m, err := FromTerms(ctx, words, DefaultOptions(), nil)
	check.That(t, m == nil && errors.Is(err, context.Canceled), "error %v", err)
}

func TestTermsThatNobodyCanFindTakeNoPlaces(t *testing.T) {
	opts := DefaultOptions()
	opts.Neighbors = 1
	opts.Candidate = func(term string) bool { return term[0] != 'x' }
	m := mustEdit(t, opts, "xabcdefgh", "abcdefgh", "abcdefghij")
	for term, want := range map[string]string{"abcdefgh": "abcdefghij", "xabcdefgh": "abcdefgh", "abcdefghij": "abcdefgh"} {
		row := matrixtest.Of(m.Row(term))
		check.That(t, len(row) == 1 && row[0].Term == want, "%s has %v, want %s", term, row, want)
	}
}
