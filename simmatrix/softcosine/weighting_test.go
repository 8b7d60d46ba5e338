package softcosine

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func mustSMART(tb testing.TB, letters string) SMART {
	tb.Helper()
	return check.Got(ParseSMART(letters))(tb)
}

// apply returns the vector of a nugget with frequencies f.
func apply(tb testing.TB, letters string, f Vector, bytes int64, st *Statistics) Vector {
	tb.Helper()
	sp := mustSpace(tb, ones(10), Identity(10))
	of := check.Got(standard(Weighting{Letters: mustSMART(tb, letters)}, st, sp))(tb)
	n := Nugget{Bytes: bytes}
	for k, term := range f.Terms {
		n.Terms = append(n.Terms, slices.Repeat([]int32{term}, int(f.Values[k]))...)
	}
	return check.Got(of(nil, n))(tb)
}

// statisticsOf returns statistics of 10 terms with the document frequencies
// given first.
func statisticsOf(docs int64, docFreqs ...int64) *Statistics {
	return &Statistics{Docs: docs, DocFreqs: append(docFreqs, make([]int64, 10-len(docFreqs))...)}
}

func TestTermFrequencyFactorsAreThoseOfTheTable(t *testing.T) {
	f := NewVector(map[int32]float64{1: 1, 4: 3, 6: 2}) // the mean is 2, the largest 3
	for letter, want := range map[string]func(f float64) float64{
		"b": func(float64) float64 { return 1 },
		"n": func(f float64) float64 { return f },
		"t": func(f float64) float64 { return f },
		"a": func(f float64) float64 { return 0.5 + 0.5*f/3 },
		"l": func(f float64) float64 { return 1 + math.Log(f) },
		"L": func(f float64) float64 { return (1 + math.Log(f)) / (1 + math.Log(2)) },
		"d": func(f float64) float64 { return 1 + math.Log(1+math.Log(f)) },
	} {
		got := apply(t, letter+"nn", f, 0, statisticsOf(0))
		check.Must(t, got.Len() == 3, "%s: %v", letter, got)
		for k, term := range f.Terms {
			check.That(t, near(got.At(term), want(f.Values[k]), 1e-15), "%s of %v: %v, want %v", letter, f.Values[k], got.At(term), want(f.Values[k]))
		}
	}
}

func TestDocumentFrequencyFactorsAreThoseOfTheTable(t *testing.T) {
	st := statisticsOf(8, 1, 2, 4, 6, 8, 0)
	for letter, want := range map[string][]float64{
		"x": {1, 1, 1, 1, 1, 1},
		"n": {1, 1, 1, 1, 1, 1},
		// The last is a term that no document holds, taken for n_t = 1.
		"f": {math.Log(8), math.Log(4), math.Log(2), math.Log(8.0 / 6), 0, math.Log(8)},
		"t": {math.Log(9), math.Log(4.5), math.Log(2.25), math.Log(1.5), math.Log(1.125), math.Log(9)},
		// ln(7/1), ln(6/2), ln(4/4), and then 0 for what is negative: ln(2/6), ln 0.
		"p": {math.Log(7), math.Log(3), 0, 0, 0, math.Log(7)},
	} {
		for term, factor := range want {
			got := apply(t, "n"+letter+"n", NewVector(map[int32]float64{int32(term): 3}), 0, st)
			check.That(t, near(got.At(int32(term)), 3*factor, 1e-15), "%s of n_t = %d: %v, want 3 times %v", letter, st.DocFreqs[term], got, factor)
		}
	}
}

func TestNormsAreThoseOfTheTable(t *testing.T) {
	f := NewVector(map[int32]float64{0: 3, 2: 4})
	st := statisticsOf(0)
	st.MeanTerms, st.MeanBytes, st.Slope = 8, 100, 0.25
	for letter, want := range map[string]float64{
		"x": 1, "n": 1,
		"c": 5,
		"u": 0.75 + 0.25*2/8,
		"b": 0.75 + 0.25*40/100,
	} {
		got := apply(t, "nn"+letter, f, 40, st)
		check.That(t, near(got.At(0), 3/want, 1e-15) && near(got.At(2), 4/want, 1e-15), "%s: %v; want the frequencies over %v", letter, got, want)
	}
}

func TestAWeightingFromTheTextbook(t *testing.T) {
	// Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008,
	// example 6.4, nnc.ntn there and nnc.nfn here: the query "best car insurance",
	// the document "car insurance auto insurance", N = 1,000,000. Their logarithms
	// to base 10 make it 1·2.0/√6 + 2·3.0/√6 = 8/√6; ours are ln 10 times that.
	const auto, best, car, insurance = 0, 1, 2, 3
	st := statisticsOf(1_000_000, []int64{auto: 5000, best: 50_000, car: 10_000, insurance: 1000}...)
	d := apply(t, "nnc", NewVector(map[int32]float64{auto: 1, car: 1, insurance: 2}), 0, st)
	q := apply(t, "nfn", NewVector(map[int32]float64{best: 1, car: 1, insurance: 1}), 0, st)
	got, want := q.Dot(d), math.Ln10*8/math.Sqrt(6)
	check.That(t, near(got, want, 1e-14), "score %v, want %v", got, want)
}

func TestStatisticsAreCounted(t *testing.T) {
	nuggets := []Nugget{{Terms: []int32{0, 0, 0, 2}, Bytes: 30}, {}, {Terms: []int32{2, 2}, Bytes: 15}}
	want := &Statistics{Docs: 2, DocFreqs: []int64{1, 0, 2, 0}, MeanTerms: 1.5, MeanBytes: 22.5, MeanTokens: 3}
	check.Equal(t, want, Count(4, nuggets))
	check.Equal(t, &Statistics{DocFreqs: []int64{0}}, Count(1, nil))
}

func TestUnknownLettersAreRefusedWithThoseThatAreKnown(t *testing.T) {
	const known = "the term frequency (one of bntalLd), of the document frequency (xnftp) and of the norm (xncub)"
	for _, letters := range []string{"", "lt", "ltcc", "mtc", "lzc", "ltm", "Btc", "ltC", "\u00e9c"} {
		_, err := ParseSMART(letters)
		if !errors.Is(err, ErrWeighting) || !strings.Contains(err.Error(), strconv.Quote(letters)) || !strings.Contains(err.Error(), known) {
			t.Errorf("%q: error %v", letters, err)
		}
	}
	for _, pair := range []string{"ltc.", ".ltc", "ltc.mtc", "mtc.ltc", "ltc.ltn.lnc", "ltc ltn"} {
		_, _, err := ParseSMARTPair(pair)
		check.Error(t, ErrWeighting, err, pair)
	}
}

func TestThreeLettersAreForBoth(t *testing.T) {
	document, query, err := ParseSMARTPair("ltc")
	check.That(t, err == nil && document == query && document == "ltc", "%v and %v, %v", document, query, err)
}

func TestWeightingsRefuseStatisticsOutOfRange(t *testing.T) {
	for _, c := range []struct {
		name, letters string
		change        func(st *Statistics)
	}{
		{"no documents", "nfn", func(st *Statistics) { st.Docs = 0 }},
		{"mean of terms", "nnu", func(st *Statistics) { st.MeanTerms = 0 }},
		{"mean of bytes", "nnb", func(st *Statistics) { st.MeanBytes = math.NaN() }},
		{"slope above 1", "nnu", func(st *Statistics) { st.Slope = 1.5 }},
		{"slope NaN", "nnb", func(st *Statistics) { st.Slope = math.NaN() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := &Statistics{Docs: 2, DocFreqs: []int64{1, 1}, MeanTerms: 1, MeanBytes: 1, Slope: 0.5}
			w := Weighting{Letters: mustSMART(t, c.letters)}
			check.OK(t, check.ErrOf(NewStandard(w, w, st, Identity(2))))
			c.change(st)
			check.Error(t, ErrWeighting, check.ErrOf(NewStandard(w, w, st, Identity(2))))
		})
	}
}

func TestAnEmptyNuggetStaysEmpty(t *testing.T) {
	st := statisticsOf(4, 4)
	st.MeanTerms, st.MeanBytes, st.Slope = 1, 1, 1
	for _, letters := range []string{"ltc", "Lpu", "anb", "nfc"} {
		v := apply(t, letters, Vector{}, 0, st)
		check.That(t, v.Len() == 0, "%s: %v", letters, v)
	}
	// All documents hold the term, so its weight is ln 1, and there is no length.
	v := apply(t, "nfc", NewVector(map[int32]float64{0: 2}), 0, st)
	check.That(t, v.Len() == 0, "of weight 0: %v", v)
}
