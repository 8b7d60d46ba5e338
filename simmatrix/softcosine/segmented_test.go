package softcosine_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix/softcosine"
)

const terms = 40 // of the vocabulary of random documents

// identity is S of the thesis's own chapter 3.
var identity = softcosine.Identity(terms)

// weighting parses letters.
func weighting(tb testing.TB, letters string, e softcosine.TermWeights) softcosine.Weighting {
	tb.Helper()
	smart := check.Got(softcosine.ParseSMART(letters))(tb)
	return softcosine.Weighting{Letters: smart, Terms: e}
}

// standard returns the scorer of letters for results and for queries.
func standard(tb testing.TB, result, query softcosine.Weighting, st *softcosine.Statistics, s *softcosine.Similarities) *softcosine.Scorer {
	tb.Helper()
	return check.Got(softcosine.NewStandard(result, query, st, s))(tb)
}

// matrix returns M_uv.
func matrix(tb testing.TB, s *softcosine.Scorer, u, v softcosine.Document) softcosine.Matrix {
	tb.Helper()
	return check.Got(s.Matrix(u, v))(tb)
}

// randomDocument has 1 to 6 nuggets of 1 to 12 tokens.
func randomDocument(random *rand.Rand) softcosine.Document {
	d := make(softcosine.Document, 1+random.IntN(6))
	for i := range d {
		for range 1 + random.IntN(12) {
			d[i].Terms = append(d[i].Terms, int32(random.IntN(terms)))
		}
		d[i].Bytes = int64(6 * len(d[i].Terms))
	}
	return d
}

// statistics are those of a random collection, with a slope.
func statistics(random *rand.Rand) *softcosine.Statistics {
	var nuggets []softcosine.Nugget
	for range 50 {
		nuggets = append(nuggets, randomDocument(random)...)
	}
	st := softcosine.Count(terms, nuggets)
	st.Slope = 0.3
	return st
}

// near tells whether two numbers are the same but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

// tokens returns a document of one nugget for each token of d.
func tokens(d softcosine.Document) softcosine.Document {
	var cut softcosine.Document
	for _, n := range d {
		for _, t := range n.Terms {
			cut = append(cut, softcosine.Nugget{Terms: []int32{t}})
		}
	}
	return cut
}

func TestMeansCommute(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	st := statistics(random)
	scorer := standard(t, weighting(t, "bfx", nil), weighting(t, "nfx", nil), st, identity)
	means := []softcosine.Operator{softcosine.Avg, softcosine.WavgLength, softcosine.WavgGodwin}
	for range 100 {
		m := matrix(t, scorer, randomDocument(random), randomDocument(random))
		for _, result := range means {
			for _, query := range means {
				first := softcosine.Aggregate{Result: result, Query: query}.Score(m)
				second := softcosine.Aggregate{Result: result, Query: query, QueryFirst: true}.Score(m)
				check.Must(t, near(first, second), "%s over results and %s over queries: %v result first, %v query first", result, query, first, second)
			}
		}
	}
}

func TestEqualOperatorsAreOneOverAllScores(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	st := statistics(random)
	scorer := standard(t, weighting(t, "nfc", nil), weighting(t, "nfc", nil), st, identity)
	for range 100 {
		m := matrix(t, scorer, randomDocument(random), randomDocument(random))
		all := m.Features()
		sum := 0.0
		for _, v := range all {
			sum += v
		}
		for op, want := range map[softcosine.Operator]float64{
			softcosine.Min: slices.Min(all), softcosine.Max: slices.Max(all), softcosine.Avg: sum / float64(len(all)),
		} {
			for _, queryFirst := range []bool{false, true} {
				got := (softcosine.Aggregate{Result: op, Query: op, QueryFirst: queryFirst}).Score(m)
				check.Must(t, near(got, want), "%s twice is %v, over all scores %v", op, got, want)
			}
		}
	}
}

func TestOrderOfDifferentOperatorsMatters(t *testing.T) {
	m := softcosine.Matrix{Scores: [][]float64{{1, 0}, {0, 1}}}
	minMax := softcosine.Aggregate{Result: softcosine.Min, Query: softcosine.Max}
	check.Equal(t, 0, minMax.Score(m))
	minMax.QueryFirst = true
	check.Equal(t, 1, minMax.Score(m))
}

func TestGodwinTermsScoreAsOneTokenNuggets(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	st := statistics(random)
	for _, s := range []*softcosine.Similarities{identity, similar(t)} {
		whole := standard(t, weighting(t, "bfn", softcosine.Godwin), weighting(t, "nfn", nil), st, s)
		cut := standard(t, weighting(t, "bfn", nil), weighting(t, "nfn", nil), st, s)
		operators := softcosine.Aggregate{Result: softcosine.WavgGodwin, Query: softcosine.WavgLength}
		for range 100 {
			u, v := randomDocument(random), randomDocument(random)
			unsegmented := check.Got(whole.Unsegmented(u, v))(t)
			// The whole query has its tokens' sum, the operator their mean.
			perToken := operators.Score(matrix(t, cut, tokens(u), tokens(v))) * float64(len(tokens(u)))
			check.Must(t, near(unsegmented, perToken), "%v with Godwin weights, %v with a nugget for each token", unsegmented, perToken)
		}
	}
}

// similar returns an S with which every term is a bit like the next.
func similar(tb testing.TB) *softcosine.Similarities {
	tb.Helper()
	s := check.Got(softcosine.NewSimilarities(terms, func(yield func([2]int32, float64) bool) {
		for i := range int32(terms - 1) {
			if !yield([2]int32{i, i + 1}, 0.4) || !yield([2]int32{i + 1, i}, 0.4) {
				return
			}
		}
	}))(tb)
	return s
}

func TestNormsByScoreAreSoftCosines(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 1))
	st := statistics(random)
	letters := weighting(t, "nfc", nil)
	weights := make([]float64, terms)
	for k := range weights {
		weights[k] = math.Log(float64(st.Docs) / float64(max(1, st.DocFreqs[k])))
	}
	space := check.Got(softcosine.NewSpace(weights, similar(t)))(t)
	scorer := standard(t, letters, letters, st, similar(t))
	for range 50 {
		u, v := randomDocument(random)[:1], randomDocument(random)[:1]
		want := check.Got(space.Soft(frequencies(u[0]), frequencies(v[0])))(t)
		got := matrix(t, scorer, u, v).Scores[0][0]
		check.Must(t, near(got, want), "score %v, soft cosine %v", got, want)
		got = matrix(t, scorer, u, u).Scores[0][0]
		check.Must(t, near(got, 1), "score %v of a nugget with itself, want 1", got)
	}
}

func frequencies(n softcosine.Nugget) softcosine.Vector {
	counts := map[int32]float64{}
	for _, t := range n.Terms {
		counts[t]++
	}
	return softcosine.NewVector(counts)
}

func TestOkapiByHand(t *testing.T) {
	st := &softcosine.Statistics{Docs: 10, DocFreqs: []int64{2, 9}, MeanTokens: 3}
	p := softcosine.OkapiParameters{K1: 1.2, K3: 7, B: 0.75}
	scorer := check.Got(softcosine.NewOkapi(p, st, softcosine.Identity(2)))(t)
	u := softcosine.Document{{Terms: []int32{0, 0, 1}}}
	v := softcosine.Document{{Terms: []int32{0, 1, 0, 1, 0, 1}}}
	want := math.Log(8.5/2.5)*(2.2*3/(1.2*(0.25+0.75*6/3)+3))*(8*2/(7+2.0)) +
		math.Log(1.5/9.5)*(2.2*3/(1.2*(0.25+0.75*6/3)+3))*(8*1/(7+1.0))
	got := matrix(t, scorer, u, v).Scores[0][0]
	check.That(t, near(got, want), "score %v, want %v", got, want)
}

func TestOkapiScoresBySimilarTerms(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 1))
	st := statistics(random)
	p := softcosine.OkapiParameters{K1: 1.2, B: 0.75}
	scorer := check.Got(softcosine.NewOkapi(p, st, similar(t)))(t)
	u, v := softcosine.Document{{Terms: []int32{3}}}, softcosine.Document{{Terms: []int32{4}}}
	idf := func(t int) float64 {
		n, holders := float64(st.Docs), float64(st.DocFreqs[t])
		return math.Log((n - holders + 0.5) / (holders + 0.5))
	}
	want := 0.4 * math.Sqrt(idf(3)*idf(4)) * 2.2 / (1.2*(0.25+0.75/st.MeanTokens) + 1)
	got := matrix(t, scorer, u, v).Scores[0][0]
	check.That(t, near(got, want), "score %v, want %v", got, want)
}

func TestMurataWeighsTitlesAndEarlyTerms(t *testing.T) {
	d := softcosine.Document{{Terms: []int32{1, 2}}, {Terms: []int32{3, 1, 3}}, {Terms: []int32{2, 3, 4}}}
	for name, test := range map[string]struct {
		weights softcosine.TermWeights
		k1, k2  float64
	}{"A": {softcosine.MurataA, 1.35, 0.125}, "B": {softcosine.MurataB, 1.3, 0.15}} {
		want := map[int32]float64{2: test.k1, 3: 1 + test.k2*(8-2*2)/8, 4: 1 + test.k2*(8-2*7)/8}
		check.Equal(t, want, test.weights(d, d[2]), cmpopts.EquateApprox(0, 1e-12), name)
	}
}

func TestFilters(t *testing.T) {
	title, low, high, last := nugget(1, 2), nugget(5, 1), nugget(1, 2, 2, 6), nugget(2, 1, 2)
	d := softcosine.Document{title, low, high, last, nugget(7)}
	for _, test := range []struct {
		name   string
		filter softcosine.Filter
		want   softcosine.Document
	}{
		{"Unfiltered", softcosine.Unfiltered, d},
		{"Title", softcosine.Title, d[:1]},
		{"FirstPara", softcosine.FirstPara, d[:2]},
		{"FirstTwoPara", softcosine.FirstTwoPara, d[:3]},
		{"BestSentence 0", softcosine.BestSentence(0), d},
		{"BestSentence 1", softcosine.BestSentence(1), d[:4]},
		{"BestSentence 3", softcosine.BestSentence(3), softcosine.Document{title, high, last}},
		{"BestSentence 4", softcosine.BestSentence(4), d[:1]},
	} {
		t.Run(test.name, func(t *testing.T) {
			check.Equal(t, test.want, test.filter(d))
			got := test.filter(nil)
			check.That(t, len(got) == 0, "nuggets of nothing: %v", got)
			check.Equal(t, d[:1], test.filter(d[:1]))
		})
	}
	check.Equal(t, title, d[0])
}

func nugget(of ...int32) softcosine.Nugget { return softcosine.Nugget{Terms: of} }

func TestNuggetsWithoutTermsScoreNothing(t *testing.T) {
	st := statistics(rand.New(rand.NewPCG(7, 1)))
	empty := softcosine.Document{nugget(), nugget(1), nugget()}
	full := softcosine.Document{nugget(1), nugget(1, 2)}
	operators := []softcosine.Operator{softcosine.Min, softcosine.Max, softcosine.Avg, softcosine.WavgLength, softcosine.WavgGodwin}
	for _, letters := range []string{"nfc", "bfu", "Lpb", "ann"} {
		scorer := standard(t, weighting(t, letters, softcosine.MurataA), weighting(t, letters, softcosine.Godwin), st, identity)
		for _, pair := range [][2]softcosine.Document{{empty, full}, {full, empty}, {nil, full}, {full, nil}, {empty[:1], full}} {
			m := matrix(t, scorer, pair[0], pair[1])
			for _, result := range operators {
				for _, query := range operators {
					got := softcosine.Aggregate{Result: result, Query: query}.Score(m)
					other := softcosine.Aggregate{Result: result, Query: query, QueryFirst: true}.Score(m)
					check.That(t, !math.IsNaN(got) && !math.IsNaN(other), "%s, %s, %s: %v and %v", letters, result, query, got, other)
				}
			}
			got, err := scorer.Unsegmented(pair[0], pair[1])
			check.That(t, err == nil && !math.IsNaN(got), "%s: unsegmented score %v, error %v", letters, got, err)
		}
	}
}

func TestLogisticRefusesWhatHasNoMinimum(t *testing.T) {
	for name, test := range map[string]struct {
		examples [][]float64
		relevant []bool
	}{
		"nothing":           {nil, nil},
		"only relevant":     {[][]float64{{1}, {2}}, []bool{true, true}},
		"only irrelevant":   {[][]float64{{1}, {2}}, []bool{false, false}},
		"missing judgment":  {[][]float64{{1}, {2}}, []bool{true}},
		"different lengths": {[][]float64{{1}, {2, 3}}, []bool{true, false}},
		"not finite":        {[][]float64{{math.Inf(1)}, {2}}, []bool{true, false}},
	} {
		check.Error(t, softcosine.ErrLogistic, check.ErrOf(softcosine.FitLogistic(test.examples, test.relevant)), name)
	}
}

func TestLogisticKeepsFiniteWhereExamplesSeparate(t *testing.T) {
	l := check.Got(softcosine.FitLogistic([][]float64{{0}, {1}, {2}, {3}}, []bool{false, false, true, true}))(t)
	check.That(t, l.Probability([]float64{0}) < 0.3 && l.Probability([]float64{3}) > 0.7, "estimates of %+v do not separate the examples", l)
}
