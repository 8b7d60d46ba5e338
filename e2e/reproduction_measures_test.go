package e2e

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/simmatrix/softcosine"
)

// The measures that rank candidates.
const (
	hardMeasure  = "hard"
	softMeasure  = "soft"
	innerMeasure = "inner"
)

// averagePrecision judges a ranking of candidates. It is 0 where none is
// relevant.
func averagePrecision(relevant []bool) float64 {
	found, sum := 0.0, 0.0
	for k, r := range relevant {
		if r {
			found++
			sum += found / float64(k+1)
		}
	}
	if found == 0 {
		return 0
	}
	return sum / found
}

// rerankedPrecision is the average precision of the candidates by descending
// score, those of one score in the order of the search engine.
func rerankedPrecision(q forumQuestion, scores []float64) float64 {
	order := make([]int, len(scores))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
	relevant := make([]bool, len(order))
	for k, at := range order {
		relevant[k] = q.candidates[at].relevant
	}
	return averagePrecision(relevant)
}

// forumVectors are the vectors of a part: of its questions, and of the
// candidates of each.
type forumVectors struct {
	questions  []forumQuestion
	queries    []softcosine.Vector
	candidates [][]softcosine.Vector
}

func (m *forumMatrices) vectors(questions []forumQuestion, part threadPart) forumVectors {
	v := forumVectors{questions: questions}
	for _, q := range questions {
		v.queries = append(v.queries, m.vector(q.terms))
		var candidates []softcosine.Vector
		for _, c := range q.candidates {
			candidates = append(candidates, m.vector(part.of(c)))
		}
		v.candidates = append(v.candidates, candidates)
	}
	return v
}

// precisions returns the average precision of every question when a measure
// ranks its candidates.
func (v forumVectors) precisions(tb testing.TB, measure func(x, y softcosine.Vector) (float64, error)) []float64 {
	tb.Helper()
	all := make([]float64, len(v.queries))
	for k, x := range v.queries {
		scores := make([]float64, len(v.candidates[k]))
		for c, y := range v.candidates[k] {
			score, err := measure(x, y)
			if err != nil {
				tb.Fatal(err)
			}
			scores[c] = score
		}
		all[k] = rerankedPrecision(v.questions[k], scores)
	}
	return all
}

// spaceMeasures returns the measures over S. The soft cosine is that of
// ½(S+Sᵀ), the others are of S as it was built.
func spaceMeasures(tb testing.TB, weights []float64, s *softcosine.Similarities) map[string]func(x, y softcosine.Vector) (float64, error) {
	tb.Helper()
	space, err := softcosine.NewSpace(weights, s)
	if err != nil {
		tb.Fatal(err)
	}
	symmetric, err := softcosine.NewSpace(weights, s.Symmetrized())
	if err != nil {
		tb.Fatal(err)
	}
	return map[string]func(x, y softcosine.Vector) (float64, error){
		hardMeasure:  func(x, y softcosine.Vector) (float64, error) { return space.Hard(x, y), nil },
		softMeasure:  symmetric.Soft,
		innerMeasure: func(x, y softcosine.Vector) (float64, error) { return space.InnerProduct(x, y), nil },
	}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// A difference is that of two means over the same questions, with the interval
// that contains 95 % of the differences of resampled questions.
type difference struct{ mean, low, high float64 }

// compareMeans returns the difference of a's mean to b's with the percentiles
// of a paired bootstrap (Efron, 1979): the questions are drawn again, with
// replacement, 10,000 times, from a fixed seed.
func compareMeans(a, b []float64) difference {
	const draws = 10_000
	diffs := make([]float64, len(a))
	for k := range a {
		diffs[k] = a[k] - b[k]
	}
	random := rand.New(rand.NewPCG(1, 2))
	means := make([]float64, draws)
	for d := range means {
		for range diffs {
			means[d] += diffs[random.IntN(len(diffs))]
		}
		means[d] /= float64(len(diffs))
	}
	slices.Sort(means)
	return difference{mean(diffs), means[draws*25/1000], means[draws*975/1000-1]}
}

func TestAveragePrecisionOfCandidates(t *testing.T) {
	q := forumQuestion{candidates: []forumCandidate{{relevant: true}, {}, {relevant: true}, {}}}
	for _, test := range []struct {
		name   string
		scores []float64
		want   float64
	}{
		{"as the engine ranks", []float64{4, 3, 2, 1}, (1.0 + 2.0/3) / 2},
		{"ties stay as the engine ranks", []float64{0, 0, 0, 0}, (1.0 + 2.0/3) / 2},
		{"the best", []float64{3, 1, 4, 2}, 1},
		{"the worst", []float64{1, 4, 2, 3}, (1.0/3 + 2.0/4) / 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := rerankedPrecision(q, test.scores); math.Abs(got-test.want) > 1e-15 {
				t.Errorf("average precision %v, want %v", got, test.want)
			}
		})
	}
	if got := averagePrecision([]bool{false, false}); got != 0 {
		t.Errorf("average precision %v where nothing is relevant, want 0", got)
	}
}

func TestBootstrapIntervals(t *testing.T) {
	constant := compareMeans([]float64{1, 2, 3}, []float64{0, 1, 2})
	if diff := gocmp.Diff(difference{1, 1, 1}, constant, gocmp.AllowUnexported(difference{})); diff != "" {
		t.Errorf("difference of constants (-want +got):\n%s", diff)
	}
	random := rand.New(rand.NewPCG(3, 4))
	a, zero := make([]float64, 400), make([]float64, 400)
	for k := range a {
		a[k] = 0.1 + random.NormFloat64()
	}
	// The standard error of 400 values of variance 1 is 0.05, so that the
	// interval is 1.96·0.05 to each side, give or take the sample.
	got := compareMeans(a, zero)
	for _, side := range []float64{got.mean - got.low, got.high - got.mean} {
		if side < 0.08 || side > 0.12 {
			t.Errorf("interval %+v, want about 0.098 to each side", got)
		}
	}
}
