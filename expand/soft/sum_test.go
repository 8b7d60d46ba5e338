package soft

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
)

// randomSums returns clauses over the fields of a case, in each of which a term
// counts for one word. Some terms are in no document.
func (c *randomCase) randomSums(rng *rand.Rand) []expand.Sum {
	sums := make([]expand.Sum, 1+rng.IntN(3))
	for i := range sums {
		if rng.IntN(2) == 0 {
			sums[i].TieBreaker = rng.Float64()
		}
		for at := range c.fields {
			if rng.IntN(4) == 0 {
				continue
			}
			f := expand.SumField{Field: at, Boost: math.Exp(rng.NormFloat64())}
			free := rng.Perm(45)
			for range rng.IntN(5) { // none where all words are stop words
				word := expand.SumWord{Weight: rng.Float64() * float64(rng.IntN(8)), Terms: []string{term(free[0])}, Boosts: []float64{1}}
				free = free[1:]
				for range rng.IntN(5) {
					word.Terms, word.Boosts = append(word.Terms, term(free[0])), append(word.Boosts, rng.Float64())
					free = free[1:]
				}
				f.Words = append(f.Words, word)
			}
			sums[i].Fields = append(sums[i].Fields, f)
		}
	}
	return sums
}

// meanLength returns how many words the field of a hit has on average.
func (c *randomCase) meanLength(field string, hits []expand.Hit) float64 {
	if mean := c.vectors.means[field]; mean > 0 {
		return mean
	}
	sum := 0.0
	for _, hit := range hits {
		sum += c.length(field, hit)
	}
	return sum / float64(len(hits))
}

func (c *randomCase) length(field string, hit expand.Hit) (n float64) {
	for _, freq := range c.vectors.docs[docName{"i", hit.ID}][field] {
		n += float64(freq)
	}
	return n
}

// sum is the formula of [expand.Sum], word by word.
func (c *randomCase) sum(sums []expand.Sum, hit expand.Hit, hits []expand.Hit) (total float64) {
	for _, sum := range sums {
		best, all := 0.0, 0.0
		for _, f := range sum.Fields {
			name := c.fields[f.Field].Field
			length := c.length(name, hit)
			if mean := c.meanLength(name, hits); mean > 0 {
				length /= mean
			}
			score := 0.0
			for _, word := range f.Words {
				y := 0.0
				for j, text := range word.Terms {
					y += word.Boosts[j] * float64(c.vectors.docs[docName{"i", hit.ID}][name][text]) / (1.2 * (0.25 + 0.75*length))
				}
				score += f.Boost * word.Weight * y / (1 + y)
			}
			best, all = max(best, score), all+score
		}
		total += best + sum.TieBreaker*(all-best)
	}
	return total
}

func TestSumsAreThoseOfTheFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	positive := 0
	for n := range 1500 {
		c := newCase(t, rng)
		c.vectors.means = map[string]float64{}
		for i := range c.fields {
			if rng.IntN(2) == 0 {
				c.vectors.means[c.fields[i].Field] = 30 * (0.01 + rng.Float64())
			}
		}
		r := New(Options{Vectors: c.vectors, Bytes: 1 << 20, TTL: time.Minute})
		some := c.hits[:1+rng.IntN(len(c.hits))]
		for turn, hits := range [][]expand.Hit{some, c.hits, c.hits} { // cold, partly, and warm
			sums := c.randomSums(rng)
			got, err := r.Scores(t.Context(), &expand.Rerank{Fields: c.fields, Sums: sums}, hits)
			check.OK(t, err)
			plain, err := r.Scores(t.Context(), by(c.fields), hits)
			check.OK(t, err)
			for k, hit := range hits {
				want := c.sum(sums, hit, hits)
				check.Must(t, math.Abs(got[k].Sum-want) <= 1e-9*(1+want) && !math.IsNaN(got[k].Sum), "case %d, turn %d: hit %s has %v, want %v", n, turn, hit.ID, got[k].Sum, want)
				check.Must(t, plain[k] == (expand.HitScore{Soft: got[k].Soft}), "case %d, turn %d: without sums %+v, with %+v", n, turn, plain[k], got[k])
				if want > 0 {
					positive++
				}
			}
		}
		r.Close()
	}
	check.That(t, positive >= 1000, "only %d sums above 0", positive)
}

// Of a field whose text has only stop words there are no terms to sum.
func TestSumsOfNoWordsAreNothing(t *testing.T) {
	v, fields, hits := pets(t)
	sums := []expand.Sum{{Fields: []expand.SumField{{Boost: 1}}}, {}}
	got := wantBy(t, newReranker(t, v), &expand.Rerank{Fields: fields, Sums: sums}, hits, .5, 1, 0)
	for k := range got {
		check.Equal(t, 0, got[k].Sum, k)
	}
}

// The mean length is that of the index where the cluster has told it once.
func TestMeanLengthsAreRemembered(t *testing.T) {
	v, fields, hits := pets(t)
	v.means = map[string]float64{"body": 4}
	r := newReranker(t, v)
	for turn := range 2 {
		got, err := r.Scores(t.Context(), &expand.Rerank{Fields: fields, Sums: petSums}, hits)
		check.OK(t, err)
		for k, y := range []float64{.5 / (1.2 * (.25 + .75/4)), 2 / (1.2 * (.25 + .75*2/4)), 0} {
			want := 2 * y / (1 + y)
			check.That(t, math.Abs(got[k].Sum-want) <= 1e-12, "turn %d: hit %d has %v, want %v", turn, k, got[k].Sum, want)
		}
		v.means = nil
	}
	check.Equal(t, 1, len(v.calls))
}

// ownSpaces returns a search over fields that each have their own S and W, more
// of them than weights are known of.
func ownSpaces(tb testing.TB) (*fakeVectors, []expand.RerankField, []expand.Hit) {
	tb.Helper()
	v, fields, hits := pets(tb)
	for _, doc := range v.docs {
		doc["body"]["tail"] = 2
	}
	for n := range maxSpaces + 2 {
		m := &fakeMatrix{version: fmt.Sprint("own@", n), docs: 100}
		m.set(tb, "cat", uint32(3+n), map[string]float64{"dog": 0.1 * float64(1+n), "tail": 0.05 * float64(1+n)})
		m.set(tb, "tail", uint32(30-n), nil)
		f := expand.RerankField{Field: fmt.Sprint("own", n), Boost: 1 + float64(n), Terms: []string{"cat"}, Freqs: []float64{1}, Similarities: m}
		fields = append(fields, f)
		for _, doc := range v.docs {
			doc[f.Field] = map[string]int64{"tail": int64(1 + n)}
			for text, freq := range doc["body"] {
				doc[f.Field][text] += freq
			}
		}
	}
	return v, fields, hits
}

func TestFieldsMayHaveTheirOwnSpaces(t *testing.T) {
	v, fields, hits := ownSpaces(t)
	r := newReranker(t, v)
	for n := 2; n <= len(fields); n++ {
		for _, some := range [][]expand.RerankField{fields[:n], fields[n-2 : n], fields[n-1:]} {
			want, err := newReranker(t, v).Scores(t.Context(), by(some), hits)
			check.OK(t, err)
			for turn := range 3 {
				got, err := r.Scores(t.Context(), by(some), hits)
				check.OK(t, err)
				for k := range want {
					check.Must(t, math.Abs(got[k].Soft-want[k].Soft) <= 1e-12 && want[k].Soft > 0, "%d fields of %d, turn %d: got %v, want %v", len(some), n, turn, softs(got), softs(want))
				}
			}
		}
	}
	known := len(r.memory.weights.of)
	check.That(t, known <= maxSpaces, "weights of %d spaces", known)
}

// Weights that another search replaces between the looking up and the computing
// are still there.
func TestSearchesInOtherSpacesMayComeBetween(t *testing.T) {
	v, fields, hits := ownSpaces(t)
	r := newReranker(t, v)
	want, err := r.Scores(t.Context(), by(fields[1:2]), hits)
	check.OK(t, err)
	w := recalled(t, r, fields[1:2], hits)
	check.OK(t, scored(t, r, fields, hits))
	got, err := w.scores(t.Context(), new(scratch), new(expand.Rerank))
	check.OK(t, err)
	checkScores(t, got, softs(want)...)
}

func TestSearchesAtTheSameTimeDoNotDisturbEachOther(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	for range 20 {
		c := newCase(t, rng)
		alone := New(Options{Vectors: c.vectors, Bytes: 1 << 20, TTL: time.Minute})
		together := New(Options{Vectors: c.vectors, Bytes: 1 << 20, TTL: time.Minute})
		var searches sync.WaitGroup
		for n := range 8 {
			fields := c.fields
			if n%2 == 1 {
				fields = fields[:1]
			}
			sums := c.randomSums(rng)
			if n%2 == 1 {
				sums = nil
			}
			search := &expand.Rerank{Fields: fields, Sums: sums}
			want, err := alone.Scores(t.Context(), search, c.hits)
			check.OK(t, err)
			searches.Go(func() {
				for range 3 {
					got, err := together.Scores(t.Context(), search, c.hits)
					if err != nil {
						t.Error(err)
						return
					}
					for k := range want {
						check.That(t, math.Abs(got[k].Soft-want[k].Soft) <= 1e-9 && math.Abs(got[k].Sum-want[k].Sum) <= 1e-9*(1+want[k].Sum), "got %+v, want %+v", got[k], want[k])
					}
				}
			})
		}
		searches.Wait()
		alone.Close()
		together.Close()
	}
}
