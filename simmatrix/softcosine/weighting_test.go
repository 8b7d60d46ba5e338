package softcosine

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func mustSMART(tb testing.TB, letters string) SMART {
	tb.Helper()
	w, err := ParseSMART(letters)
	if err != nil {
		tb.Fatal(err)
	}
	return w
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
		got, err := mustSMART(t, letter+"nn").Apply(f, 0, &Frequencies{})
		if err != nil || got.Len() != 3 {
			t.Fatalf("%s: %v, %v", letter, got, err)
		}
		for k, term := range f.Terms {
			if !near(got.At(term), want(f.Values[k]), 1e-15) {
				t.Errorf("%s of %v: %v, want %v", letter, f.Values[k], got.At(term), want(f.Values[k]))
			}
		}
	}
}

func TestDocumentFrequencyFactorsAreThoseOfTheTable(t *testing.T) {
	st := &Frequencies{Docs: 8, DocFreqs: []int64{1, 2, 4, 6, 8, 0, 9}}
	for letter, want := range map[string][]float64{
		"x": {1, 1, 1, 1, 1, 1, 1},
		"n": {1, 1, 1, 1, 1, 1, 1},
		// The last two are a term that no document holds, taken for n_t = 1, and one
		// of more documents than there are, taken for n_t = N.
		"f": {math.Log(8), math.Log(4), math.Log(2), math.Log(8.0 / 6), 0, math.Log(8), 0},
		"t": {math.Log(9), math.Log(4.5), math.Log(2.25), math.Log(1.5), math.Log(1.125), math.Log(9), math.Log(1.125)},
		// ln(7/1), ln(6/2), ln(4/4), and then 0 for what is negative: ln(2/6), ln 0.
		"p": {math.Log(7), math.Log(3), 0, 0, 0, math.Log(7), 0},
	} {
		w := mustSMART(t, "n"+letter+"n")
		weights, err := w.TermWeights(st)
		if err != nil {
			t.Fatal(err)
		}
		for term, weight := range weights {
			if !near(weight, want[term], 1e-15) {
				t.Errorf("%s of n_t = %d: %v, want %v", letter, st.DocFreqs[term], weight, want[term])
			}
			got, err := w.Apply(NewVector(map[int32]float64{int32(term): 3}), 0, st)
			if err != nil || !near(got.At(int32(term)), 3*want[term], 1e-15) {
				t.Errorf("%s applied to n_t = %d: %v, %v", letter, st.DocFreqs[term], got, err)
			}
		}
		if _, err := NewSpace(weights, Identity(len(weights))); err != nil {
			t.Errorf("%s: no weights of a space: %v", letter, err)
		}
	}
}

func TestNormsAreThoseOfTheTable(t *testing.T) {
	f := NewVector(map[int32]float64{0: 3, 2: 4})
	st := &Frequencies{MeanTerms: 8, MeanBytes: 100, Slope: 0.25}
	for letter, want := range map[string]float64{
		"x": 1, "n": 1,
		"c": 5,
		"u": 0.75 + 0.25*2/8,
		"b": 0.75 + 0.25*40/100,
	} {
		got, err := mustSMART(t, "nn"+letter).Apply(f, 40, st)
		if err != nil || !near(got.At(0), 3/want, 1e-15) || !near(got.At(2), 4/want, 1e-15) {
			t.Errorf("%s: %v, %v; want the frequencies over %v", letter, got, err, want)
		}
	}
}

func TestAWeightingFromTheTextbook(t *testing.T) {
	// Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008,
	// example 6.4, nnc.ntn there and nnc.nfn here: the query "best car insurance",
	// the document "car insurance auto insurance", N = 1,000,000. Their logarithms
	// to base 10 make it 1·2.0/√6 + 2·3.0/√6 = 8/√6; ours are ln 10 times that.
	const auto, best, car, insurance = 0, 1, 2, 3
	st := &Frequencies{Docs: 1_000_000, DocFreqs: []int64{auto: 5000, best: 50_000, car: 10_000, insurance: 1000}}
	document, query, err := ParseSMARTPair("nnc.nfn")
	if err != nil {
		t.Fatal(err)
	}
	d, err := document.Apply(NewVector(map[int32]float64{auto: 1, car: 1, insurance: 2}), 0, st)
	if err != nil {
		t.Fatal(err)
	}
	q, err := query.Apply(NewVector(map[int32]float64{best: 1, car: 1, insurance: 1}), 0, st)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := q.Dot(d), math.Ln10*8/math.Sqrt(6); !near(got, want, 1e-14) {
		t.Errorf("score %v, want %v", got, want)
	}
}

func TestAWeightingIsASpaceAndANorm(t *testing.T) {
	// v = (t ∘ d) / m: with norm c the dot product of two of them is the cosine of
	// t in the space of weights d.
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		docs := randomDocuments(rng, 10, 6)
		st := CountFrequencies(10, docs, nil)
		w := mustSMART(t, string([]byte{
			termFreqLetters[rng.IntN(len(termFreqLetters))], docFreqLetters[rng.IntN(len(docFreqLetters))], 'c',
		}))
		weights, err := w.TermWeights(&st)
		if err != nil {
			t.Fatal(err)
		}
		sp := mustSpace(t, weights, Identity(10))
		var x, v [2]Vector
		for k := range v {
			if x[k], err = w.TermFrequencies(docs[k]); err != nil {
				t.Fatal(err)
			}
			if v[k], err = w.Apply(docs[k], 0, &st); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := v[0].Dot(v[1]), sp.Cosine(x[0], x[1]); !near(got, want, 1e-12) {
			t.Errorf("%v: %v, want %v", w, got, want)
		}
	})
}

func TestFrequenciesAreCounted(t *testing.T) {
	docs := []Vector{NewVector(map[int32]float64{0: 5, 2: 1}), {}, NewVector(map[int32]float64{2: 2})}
	st := CountFrequencies(4, docs, []int64{30, 0, 15})
	if st.Docs != 3 || st.MeanTerms != 1 || st.MeanBytes != 15 || st.Slope != 0 {
		t.Errorf("got %+v", st)
	}
	for term, want := range []int64{1, 0, 2, 0} {
		if st.DocFreqs[term] != want {
			t.Errorf("term %d is in %d documents, want %d", term, st.DocFreqs[term], want)
		}
	}
	if empty := CountFrequencies(1, nil, nil); empty.Docs != 0 || empty.MeanTerms != 0 {
		t.Errorf("of no documents %+v", empty)
	}
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
		if _, _, err := ParseSMARTPair(pair); !errors.Is(err, ErrWeighting) {
			t.Errorf("%q: error %v", pair, err)
		}
	}
}

func TestSynonymousLettersAreTheSameWeighting(t *testing.T) {
	if mustSMART(t, "txx") != mustSMART(t, "nnn") || mustSMART(t, "nnn") != (SMART{}) || (SMART{}).String() != "nnn" {
		t.Error("txx is not nnn, or that is not the zero SMART")
	}
	if mustSMART(t, "ntc") == mustSMART(t, "nxc") {
		t.Error("t as second letter is taken for none")
	}
	document, query, err := ParseSMARTPair("ltc")
	if err != nil || document != query || document.String() != "ltc" {
		t.Errorf("%v and %v, %v", document, query, err)
	}
}

func TestWeightingsRefuseWhatHasNoLogarithmOrMean(t *testing.T) {
	one := func(value float64) Vector { return Vector{Terms: []int32{1}, Values: []float64{value}} }
	good := Frequencies{Docs: 2, DocFreqs: []int64{1, 1}, MeanTerms: 1, MeanBytes: 1, Slope: 0.5}
	for _, c := range []struct {
		name, letters string
		f             Vector
		bytes         int64
		change        func(st *Frequencies)
	}{
		{"negative frequency", "nnn", one(-1), 1, nil},
		{"frequency NaN", "bnn", one(math.NaN()), 1, nil},
		{"infinite frequency", "bnn", one(math.Inf(1)), 1, nil},
		{"part of an occurrence, l", "lnn", one(0.5), 1, nil},
		{"part of an occurrence, L", "Lnn", one(0.5), 1, nil},
		{"part of an occurrence, d", "dnn", one(0.5), 1, nil},
		{"no documents", "nfn", one(1), 1, func(st *Frequencies) { st.Docs = 0 }},
		{"term without document frequency", "npn", one(1), 1, func(st *Frequencies) { st.DocFreqs = st.DocFreqs[:1] }},
		{"mean of terms", "nnu", one(1), 1, func(st *Frequencies) { st.MeanTerms = 0 }},
		{"mean of bytes", "nnb", one(1), 1, func(st *Frequencies) { st.MeanBytes = math.NaN() }},
		{"slope above 1", "nnu", one(1), 1, func(st *Frequencies) { st.Slope = 1.5 }},
		{"slope NaN", "nnb", one(1), 1, func(st *Frequencies) { st.Slope = math.NaN() }},
		{"negative length", "nnb", one(1), -1, nil},
		{"no length at all", "nnb", one(1), 0, func(st *Frequencies) { st.Slope = 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := good
			if c.change != nil {
				c.change(&st)
			}
			if _, err := mustSMART(t, c.letters).Apply(c.f, c.bytes, &st); !errors.Is(err, ErrWeighting) {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := mustSMART(t, "ntn").TermWeights(&Frequencies{DocFreqs: []int64{1}}); !errors.Is(err, ErrWeighting) {
		t.Errorf("weights without documents: error %v", err)
	}
	if v, err := mustSMART(t, "nnn").Apply(one(0.5), 0, &Frequencies{}); err != nil || v.At(1) != 0.5 {
		t.Errorf("part of an occurrence by itself: %v, %v", v, err)
	}
}

func TestAnEmptyDocumentStaysEmpty(t *testing.T) {
	for _, letters := range []string{"ltc", "Lpu", "anb", "nfc"} {
		if v, err := mustSMART(t, letters).Apply(Vector{}, 0, &Frequencies{}); err != nil || v.Len() != 0 {
			t.Errorf("%s: %v, %v", letters, v, err)
		}
	}
	// All documents hold the term, so its weight is ln 1, and there is no length.
	st := &Frequencies{Docs: 4, DocFreqs: []int64{4}}
	if v, err := mustSMART(t, "nfc").Apply(NewVector(map[int32]float64{0: 2}), 0, st); err != nil || v.Len() != 0 {
		t.Errorf("of weight 0: %v, %v", v, err)
	}
}

func TestWeightingsRefuseWhatIsNotFinite(t *testing.T) {
	st := &Frequencies{Docs: 1000, DocFreqs: []int64{1, 1}, MeanTerms: math.MaxFloat64, MeanBytes: math.SmallestNonzeroFloat64, Slope: 1}
	large := NewVector(map[int32]float64{0: math.MaxFloat64, 1: math.MaxFloat64})
	for _, letters := range []string{"nfn", "nfc", "Lnn", "nnc", "nnu", "nnb"} {
		w, _, err := ParseSMARTPair(letters)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := w.Apply(large, 100, st); !errors.Is(err, ErrWeighting) || v.Len() != 0 {
			t.Errorf("%s: %v, %v", letters, v, err)
		}
	}
}
