package softcosine

import (
	"maps"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// The example of the notes, section 1, and of the thesis, section 4.1:
//
//	d1 = "When Antony found Julius Caesar dead"
//	d2 = "I did enact Julius Caesar: I was killed i' the Capitol"
//
// in the order of first appearance, "I" and "i'" being two terms.
var caesarTerms = []string{"when", "antony", "found", "julius", "caesar", "dead", "I", "did", "enact", "was", "killed", "i'", "the", "capitol"}

const antony, julius, caesar, dead, killed = 1, 3, 4, 5, 10

// caesarDocuments returns d1 and d2, where "I" occurs twice.
func caesarDocuments() (d1, d2 Vector) {
	d1 = NewVector(map[int32]float64{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1})
	d2 = NewVector(map[int32]float64{3: 1, 4: 1, 6: 2, 7: 1, 8: 1, 9: 1, 10: 1, 11: 1, 12: 1, 13: 1})
	return d1, d2
}

func TestTheCaesarExampleHasTheValuesOfThePapers(t *testing.T) {
	d1, d2 := caesarDocuments()
	once := NewVector(map[int32]float64{3: 1, 4: 1, 6: 1, 7: 1, 8: 1, 9: 1, 10: 1, 11: 1, 12: 1, 13: 1})
	twice, fiveTimes := ones(14), ones(14)
	twice[julius], twice[caesar] = 2, 2
	fiveTimes[antony], fiveTimes[julius], fiveTimes[caesar] = 5, 5, 5
	n := len(caesarTerms)
	synonyms := mustSimilarities(t, n, map[[2]int32]float64{{dead, killed}: 1, {killed, dead}: 1})
	for _, c := range []struct {
		name    string
		weights []float64
		s       *Similarities
		d2      Vector
		want    float64
	}{
		// Two common terms; d1 has 6 of frequency 1, d2 has 9 of them and one of 2:
		// 2/(√6·√13). The notes print 0.23.
		{"no weights", ones(n), Identity(n), d2, 2 / math.Sqrt(78)},
		// 2·2 + 2·2 = 8; ‖Wd1‖² = 4·1 + 2·4 = 12, ‖Wd2‖² = 7·1 + 2·4 + 4 = 19. The
		// notes print 0.53.
		{"weight 2", twice, Identity(n), d2, 8 / math.Sqrt(228)},
		// 25 + 25 = 50; ‖Wd1‖² = 3·1 + 3·25 = 78, ‖Wd2‖² = 8·1 + 2·25 = 58, with "I"
		// counted once as the thesis does. It prints 0.89, which does not follow.
		{"weight 5", fiveTimes, Identity(n), once, 50 / math.Sqrt(78*58)},
		// "I" counted once, as in the thesis: 2/(√6·√10), printed 0.26.
		{"once", ones(n), Identity(n), once, 2 / math.Sqrt(60)},
		// With s(dead, killed) = 1 the inner product has one more summand, dead of
		// d1 and killed of d2: 2 + 1·1·1 = 3. No document has both of them, so
		// ⟨d1, d1⟩ = 6 and ⟨d2, d2⟩ = 13 as before, and hard and soft are the same.
		{"synonyms", ones(n), synonyms, d2, 3 / math.Sqrt(78)},
		// And with the weight 2 on julius and caesar: 8 + 1 = 9.
		{"synonyms, weight 2", twice, synonyms, d2, 9 / math.Sqrt(228)},
	} {
		t.Run(c.name, func(t *testing.T) {
			sp := mustSpace(t, c.weights, c.s)
			soft, err := sp.Soft(d1, c.d2)
			check.That(t, err == nil && near(soft, c.want, 1e-15), "soft %v, %v; want %v", soft, err, c.want)
			hard := sp.Hard(d1, c.d2)
			check.That(t, near(hard, c.want, 1e-15), "hard %v, want %v", hard, c.want)
			cosine := sp.Cosine(d1, c.d2)
			check.That(t, c.s.NonZeros() != 0 || near(cosine, c.want, 1e-15), "cosine %v, want %v", cosine, c.want)
		})
	}
}

func TestTheDocumentsOfSidorov(t *testing.T) {
	// Section 2.1, eq. 5 and 6: 2 + 1 + 2 + 1 = 6 in common, ‖a‖² = 14, ‖b‖² = 8.
	vector := func(values ...float64) Vector {
		v := map[int32]float64{}
		for i, value := range values {
			v[int32(i)] = value
		}
		return NewVector(v)
	}
	a, b := vector(2, 1, 1, 2, 1, 1, 1, 1, 0), vector(0, 0, 0, 1, 1, 2, 1, 0, 1)
	got := mustSpace(t, ones(9), Identity(9)).Cosine(a, b)
	check.That(t, near(got, 6/math.Sqrt(112), 1e-15), "cosine %v", got)
	// Section 2: "play, game" and "player, gamer" have the cosine 0, and with
	// s = 1/(1+d) of eq. 27, d = 2 for play and player and 1 for game and gamer, the soft
	// cosine (1/3 + 1/2)/(√2·√2).
	play, player, game, gamer := int32(0), int32(1), int32(2), int32(3)
	sp := mustSpace(t, ones(4), mustSimilarities(t, 4, map[[2]int32]float64{
		{play, player}: 1.0 / 3, {player, play}: 1.0 / 3, {game, gamer}: 0.5, {gamer, game}: 0.5,
	}))
	a, b = vector(1, 0, 1, 0), vector(0, 1, 0, 1)
	soft, err := sp.Soft(a, b)
	check.That(t, err == nil && near(soft, 5.0/12, 1e-15) && sp.Cosine(a, b) == 0, "soft %v, %v, cosine %v; want 5/12 and 0", soft, err, sp.Cosine(a, b))
}

func TestTheMeasuresAreTheirDefinitions(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		sp := randomSpace(t, rng, form{symmetric: rng.IntN(2) == 0})
		x, y := randomDocument(rng, sp.Len()), randomDocument(rng, sp.Len())
		inner := byDefinition(sp, x, y)
		xHard, xSoft := normsByDefinition(sp, x)
		yHard, ySoft := normsByDefinition(sp, y)
		hard, soft := 0.0, 0.0
		if xHard > 0 && yHard > 0 {
			hard, soft = inner/math.Sqrt(xHard*yHard), inner/math.Sqrt(xSoft)/math.Sqrt(ySoft)
		}
		gotSoft, err := sp.Soft(x, y)
		softNorm, normErr := sp.SoftNorm(x)
		switch {
		case err != nil || normErr != nil:
			t.Errorf("errors %v and %v with an S that is not negative", err, normErr)
		case !near(sp.InnerProduct(x, y), inner, 1e-12):
			t.Errorf("inner product %v, want %v", sp.InnerProduct(x, y), inner)
		case !near(sp.Hard(x, y), hard, 1e-12) || !near(gotSoft, soft, 1e-12):
			t.Errorf("hard %v, soft %v; want %v, %v", sp.Hard(x, y), gotSoft, hard, soft)
		case !near(sp.HardNorm(x), math.Sqrt(xHard), 1e-12) || !near(softNorm, math.Sqrt(xSoft), 1e-12):
			t.Errorf("norms %v, %v; want the roots of %v, %v", sp.HardNorm(x), softNorm, xHard, xSoft)
		}
		// S = I gives the cosine.
		plain := mustSpace(t, sp.weights, Identity(sp.Len()))
		plainSoft, err := plain.Soft(x, y)
		if cosine := sp.Cosine(x, y); err != nil || !near(plainSoft, cosine, 1e-12) || !near(plain.Hard(x, y), cosine, 1e-12) {
			t.Errorf("soft %v, hard %v with S = I; want the cosine %v", plainSoft, plain.Hard(x, y), cosine)
		}
	})
}

func TestANormThatIsNotRealIsAnError(t *testing.T) {
	// ⟨x, x⟩ = 1 + 1 - 2·2 = -2 for x = (1, 1).
	sp := mustSpace(t, ones(2), mustSimilarities(t, 2, map[[2]int32]float64{{0, 1}: -2, {1, 0}: -2}))
	bad, good := NewVector(map[int32]float64{0: 1, 1: 1}), NewVector(map[int32]float64{0: 1})
	for name, pair := range map[string][2]Vector{"left": {bad, good}, "right": {good, bad}} {
		check.Error(t, ErrNotReal, check.ErrOf(sp.Soft(pair[0], pair[1])), name)
	}
	check.Equal(t, 1, check.Got(sp.Soft(good, good))(t), "of vectors whose norm is real")
	hard := sp.Hard(bad, good)
	check.That(t, near(hard, -1/math.Sqrt2, 1e-15), "length-normalized %v, want -1/√2", hard)
}

// ½(S + Sᵀ) has the eigenvalues 2, ½ and ½. docs/matrices.md and the help of
// "akin matrix check" promise at most 1 for a symmetric S only.
func TestTheSoftCosinePassesOneIfSIsPositiveDefiniteButNotSymmetric(t *testing.T) {
	s := check.Got(NewSimilarities(3, maps.All(map[[2]int32]float64{{0, 1}: 1, {1, 2}: 1, {2, 0}: 1})))(t)
	x, y := Vector{Terms: []int32{1}, Values: []float64{1}}, Vector{Terms: []int32{1, 2}, Values: []float64{1, 1}}
	for of, want := range map[*Similarities]float64{s: 2 / math.Sqrt(3), s.Symmetrized(): 1.5 / math.Sqrt(3)} {
		sp := check.Got(NewSpace([]float64{1, 1, 1}, of))(t)
		got := check.Got(sp.Soft(x, y))(t)
		check.That(t, near(got, want, 1e-12), "the soft cosine is %v, not %v", got, want)
	}
	definite := check.Got(NewSpace([]float64{1, 1, 1}, s.Symmetrized()))(t)
	check.OK(t, check.ErrOf(NewBasis(t.Context(), definite, Limits{Entries: 10, Products: 10})))
}

func TestANormThatRoundingMakesNegativeIsZero(t *testing.T) {
	// A term as good as its own opposite: S has the eigenvalue 0 for (1, 1).
	const almost = -1 - 0x1p-50
	sp := mustSpace(t, ones(2), mustSimilarities(t, 2, map[[2]int32]float64{{0, 1}: almost, {1, 0}: almost}))
	x, y := NewVector(map[int32]float64{0: 1, 1: 1}), NewVector(map[int32]float64{0: 1})
	norm, err := sp.SoftNorm(x)
	check.That(t, err == nil && norm == 0, "norm %v, %v", norm, err)
	soft, err := sp.Soft(x, y)
	check.That(t, err == nil && soft == 0, "a vector of norm 0 has similarity %v, %v", soft, err)
}

func TestASpaceRefusesWhatIsNoWeight(t *testing.T) {
	for name, weights := range map[string][]float64{
		"too few": {1}, "negative": {1, -1}, "NaN": {math.NaN(), 1}, "infinite": {1, math.Inf(1)},
	} {
		check.Error(t, ErrWeights, check.ErrOf(NewSpace(weights, Identity(2))), name)
	}
	weights := ones(2)
	sp := mustSpace(t, weights, Identity(2))
	weights[0] = 7
	check.Equal(t, 1, sp.Weight(0))
}

func TestATermOutsideOfTheSpacePanicsAndLeavesNoTrace(t *testing.T) {
	sp := mustSpace(t, ones(2), Identity(2))
	inside := NewVector(map[int32]float64{0: 1, 1: 1})
	for _, outside := range []Vector{{Terms: []int32{0, 2}, Values: []float64{1, 1}}, {Terms: []int32{-1}, Values: []float64{1}}} {
		for _, call := range []func(){
			func() { sp.InnerProduct(outside, inside) }, func() { sp.InnerProduct(inside, outside) },
			func() { sp.Expand(outside) }, func() { sp.HardNorm(outside) },
		} {
			func() {
				defer func() {
					check.That(t, recover() != nil, "no panic")
				}()
				call()
			}()
			check.Equal(t, 1, sp.InnerProduct(inside, NewVector(map[int32]float64{1: 1})))
		}
	}
}

func TestASpaceIsSharedByGoroutines(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	sp := randomSpace(t, rng, form{})
	docs := randomDocuments(rng, sp.Len(), 16)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				for k, y := range docs {
					x := docs[(k+1)%len(docs)]
					got, want := sp.InnerProduct(x, y), byDefinition(sp, x, y)
					check.That(t, near(got, want, 1e-12), "%v, want %v", got, want)
				}
			}
		})
	}
	wg.Wait()
}
