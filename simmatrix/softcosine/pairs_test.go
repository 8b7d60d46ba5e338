package softcosine

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// The uncorrected features have the sum that section 2.4 of Sidorov derives
// from eq. 15 to 17: half of the inner product, and of w_i²·x_i·y_i times the
// sums of rows. With S = I it is the dot product.
func TestSidorovsPairsAddTheSumsOfRows(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		sp := randomSpace(t, rng, form{symmetric: true})
		x, y := randomDocument(rng, sp.Len()), randomDocument(rng, sp.Len())
		sum := byDefinition(sp, x, y)
		for i := range int32(sp.Len()) {
			for j := range sp.Len() {
				sum += sp.s.At(int(i), j) * sp.Weight(i) * x.At(i) * sp.Weight(i) * y.At(i)
			}
		}
		p := check.Got(NewPairs(sp))(t)
		got := p.Map(x).Dot(p.Map(y))
		check.That(t, near(got, sum/2, 1e-12), "dot product %v, want %v", got, sum/2)
		plain := check.Got(NewPairs(mustSpace(t, sp.weights, Identity(sp.Len()))))(t)
		check.That(t, near(plain.Cosine(x, y), sp.Cosine(x, y), 1e-12), "with S = I: %v, want the cosine %v", plain.Cosine(x, y), sp.Cosine(x, y))
	})
}

// Eq. 15 is of any pair (i, j), so s_ij need not be s_ji.
func TestPairsHaveTheFeaturesOfTheirFormula(t *testing.T) {
	sp := mustSpace(t, []float64{2, 1, 3}, mustSimilarities(t, 3, map[[2]int32]float64{{0, 1}: 0.25, {2, 0}: 0.5}))
	x := NewVector(map[int32]float64{0: 5, 1: 4}) // Wx = (10, 4, 0)
	want := NewVector(map[int32]float64{
		0: 10, 1: math.Sqrt(0.25) * (10 + 4) / 2, // (0, 0), (0, 1)
		2: 4,                             // (1, 1)
		4: math.Sqrt(0.5) * (0 + 10) / 2, // (2, 0); (2, 2) is 0
	})
	check.Equal(t, want, check.Got(NewPairs(sp))(t).Map(x))
}

func TestTheDocumentsOfSidorovAsPairs(t *testing.T) {
	documents := func(a, b []float64) [2]Vector {
		var of [2]Vector
		for k, values := range [][]float64{a, b} {
			v := map[int32]float64{}
			for i, value := range values {
				v[int32(i)] = value
			}
			of[k] = NewVector(v)
		}
		return of
	}
	both := func(pairs map[[2]int32]float64) map[[2]int32]float64 {
		all := maps.Clone(pairs)
		for at, sim := range pairs {
			all[[2]int32{at[1], at[0]}] = sim
		}
		return all
	}
	for _, c := range []struct {
		name         string
		docs         [2]Vector
		terms        int
		s            map[[2]int32]float64
		second, soft float64 // soft_cosine₂, and the soft cosine measure, by Φ₂
	}{
		// Section 2.1: a player will play a game they like to play, they play the game
		// they like; s(play, player) = 1/3 by eq. 27, d = 2. Without S the dot products
		// are 6, 14 and 8, and as pairs 13/2, 31/2 and 49/6: 13·√3/(7·√31) = 0.5777.
		{
			"game", documents([]float64{2, 1, 1, 2, 1, 1, 1, 1, 0}, []float64{0, 0, 0, 1, 1, 2, 1, 0, 1}), 9,
			map[[2]int32]float64{{1, 3}: 1.0 / 3},
			13 * math.Sqrt(3) / (7 * math.Sqrt(31)), 19 / math.Sqrt(1104),
		},
		// Section 2: play, game and player, gamer, s = 1/3 and 1/2. The dot products are
		// ½·5/6 and ½·(2 + 4/3 + 3/2).
		{
			"player", documents([]float64{1, 0, 1, 0}, []float64{0, 1, 0, 1}), 4,
			map[[2]int32]float64{{0, 1}: 1.0 / 3, {2, 3}: 0.5},
			5.0 / 29, 5.0 / 12,
		},
		// Two words for one thing: ½ for each of the mixed pairs, of ½·(1 + 2).
		{"synonyms", documents([]float64{1, 0}, []float64{0, 1}), 2, map[[2]int32]float64{{0, 1}: 1}, 1.0 / 3, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			sp := mustSpace(t, ones(c.terms), mustSimilarities(t, c.terms, both(c.s)))
			second := check.Got(NewPairs(sp))(t).Cosine(c.docs[0], c.docs[1])
			check.That(t, near(second, c.second, 1e-15), "soft_cosine₂ %v, want %v", second, c.second)
			soft := check.Got(NewPhi2(sp))(t).Cosine(c.docs[0], c.docs[1])
			check.That(t, near(soft, c.soft, 1e-15), "Φ₂ %v, want %v", soft, c.soft)
		})
	}
}

func TestPhi2MakesDotProductsOfInnerProducts(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		sp := randomSpace(t, rng, form{symmetric: true, dominant: true})
		phi := check.Got(NewPhi2(sp))(t)
		x, y := randomDocument(rng, sp.Len()), randomDocument(rng, sp.Len())
		got, want := phi.Map(x).Dot(phi.Map(y)), byDefinition(sp, x, y)
		check.That(t, near(got, want, 1e-12), "dot product %v, inner product %v", got, want)
		got, want = phi.Cosine(x, y), softByDefinition(sp, x, y)
		check.That(t, near(got, want, 1e-12), "cosine %v, soft cosine %v", got, want)
	})
}

func TestPairsRefuseWhatHasNoRoot(t *testing.T) {
	for _, c := range []struct {
		name, want  string
		s           map[[2]int32]float64
		uncorrected bool // eq. 15 has no root either
	}{
		{"negative", "s(0, 1) = -0.5 is negative", map[[2]int32]float64{{0, 1}: -0.5, {1, 0}: -0.5}, true},
		{"not symmetric", ErrNotSymmetric.Error() + ": s(0, 1) = 0.5 and s(1, 0) = 0", map[[2]int32]float64{{0, 1}: 0.5}, false},
		{
			"too similar to two", "c(1, 1) = -0.25 is negative: the similarities of term 1",
			map[[2]int32]float64{{0, 1}: 0.75, {1, 0}: 0.75, {1, 2}: 0.75, {2, 1}: 0.75},
			false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			sp := mustSpace(t, ones(3), mustSimilarities(t, 3, c.s))
			_, err := NewPhi2(sp)
			check.That(t, errors.Is(err, ErrPairs) && strings.Contains(err.Error(), c.want), "Φ₂: error %v, want one with %q", err, c.want)
			_, err = NewPairs(sp)
			check.That(t, errors.Is(err, ErrPairs) == c.uncorrected, "eq. 15: error %v", err)
		})
	}
}

func TestPhi2ForgivesRounding(t *testing.T) {
	// 20 times 0.05, added one by one, is 1 + 2⁻⁵²: c_ii would be negative.
	sims := map[[2]int32]float64{}
	for i := range int32(21) {
		for j := range int32(21) {
			if i != j {
				sims[[2]int32{i, j}] = 0.05
			}
		}
	}
	_, err := NewPhi2(mustSpace(t, ones(21), mustSimilarities(t, 21, sims)))
	check.That(t, err == nil, "similarities that add up to 1: %v", err)
}
