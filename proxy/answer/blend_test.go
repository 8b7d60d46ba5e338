package answer

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
)

// answerWith returns an answer whose hits have scores, and their numbers as ids.
func answerWith(scores []float32) string {
	hits := make([]string, len(scores))
	for i, s := range scores {
		hits[i] = fmt.Sprintf(`{"_index":"t","_id":"%d","_version":1,"_seq_no":1,"_primary_term":1,"_score":%s}`, i, scoreText(s))
	}
	return `{"hits":{"max_score":` + scoreText(slices.Max(scores)) + `,"hits":[` + strings.Join(hits, ",") + `]}}`
}

// scored returns the best score in an answer, and the scores of its hits.
func scored(t *testing.T, answer string) (best float32, scores []float32) {
	t.Helper()
	for i, part := range strings.Split(answer, `score":`)[1:] {
		number, _, _ := strings.Cut(part[:strings.IndexAny(part, "},")], " ")
		s, err := strconv.ParseFloat(number, 32)
		check.OK(t, err)
		if i == 0 {
			best = float32(s)
		} else {
			scores = append(scores, float32(s))
		}
	}
	return best, scores
}

// blendedAnswer returns the answer with hits of the engine's scores, in the order
// of others.
func blendedAnswer(t *testing.T, engine []float32, scores []expand.HitScore, r *expand.Rerank) string {
	t.Helper()
	text := answerWith(engine)
	f := frameOf(t, text, r)
	order(t, f, text, scores)
	return written(text, f)
}

func TestScoresAreBlended(t *testing.T) {
	for _, c := range []struct {
		name       string
		softWeight float64
		engine     []float32
		sums, soft []float64
		ids        string
		scores     []float32
	}{
		{"formula", .5, []float32{8, 6, 4}, nil, []float64{.05, .2, .4}, "2 1 0", []float32{6, 5, 4.5}},
		{"the measure only", 1, []float32{8, 6, 4}, nil, []float64{.25, 1, .5}, "1 2 0", []float32{1, .5, .25}},
		{"the engine only", 0, []float32{8, 6, 4}, nil, []float64{.25, 1, .5}, "0 1 2", []float32{8, 6, 4}},
		{"both agree", .25, []float32{8, 6, 4}, nil, []float64{1, .75, .5}, "0 1 2", []float32{8, 6, 4}},
		{"ties keep the engine's order", .5, []float32{8, 4, 8}, nil, []float64{.5, 1, .5}, "0 1 2", []float32{6, 6, 6}},
		{"the engine's are equal", .25, []float32{4, 4, 4}, nil, []float64{.1, .4, .2}, "1 2 0", []float32{4, 4, 4}},
		{"some are zero", .5, []float32{8, 2, 0}, nil, []float64{0, 1, 0}, "1 0 2", []float32{5, 4, 0}},
		{"no hit is similar", .25, []float32{8, 6, 4}, nil, []float64{0, 0, 0}, "0 1 2", []float32{6, 4.5, 4}},
		{"the engine's are zero", .25, []float32{0, 0, 0}, nil, []float64{0, 0, 1}, "2 0 1", []float32{0, 0, 0}},
		{"sums take the engine's place", .5, []float32{8, 6, 4}, []float64{1, 2, 4}, []float64{.2, .2, .4}, "2 1 0", []float32{8, 4, 4}},
		{"sums only", 0, []float32{8, 6, 4}, []float64{1, 4, 3}, []float64{1, 0, 0}, "1 2 0", []float32{8, 6, 4}},
		{"sums that are zero", .5, []float32{8, 6, 4}, []float64{0, 0, 0}, []float64{.2, .3, .4}, "2 1 0", []float32{4, 4, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &expand.Rerank{Window: 3, Size: 3, SoftWeight: c.softWeight}
			scores := softOf(c.soft...)
			for i, sum := range c.sums {
				r.Sums, scores[i].Sum = []expand.Sum{{}}, sum
			}
			got := blendedAnswer(t, c.engine, scores, r)
			best, written := scored(t, got)
			check.That(t, hitIDs(got) == c.ids && slices.Equal(written, c.scores) && best == c.scores[0], "got %s, want the hits %s with %v", got, c.ids, c.scores)
		})
	}
}

// Of any scores, the order is that of the formula, and the scores that go out
// fall from hit to hit, also behind the window, and exceed none of the engine's.
func TestBlendedScoresFall(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 3))
	for n := range 2000 {
		engine := make([]float32, 1+rng.IntN(12))
		scores := make([]expand.HitScore, 1+rng.IntN(len(engine)))
		scale := []float64{1e-6, 1, 1e6}[rng.IntN(3)]
		for i := range engine {
			engine[i] = float32(scale * float64(rng.IntN(8)) * rng.Float64())
		}
		slices.SortFunc(engine, func(a, b float32) int { return cmp.Compare(b, a) })
		w := []float64{0, .2, .5, .9}[rng.IntN(4)]
		r := &expand.Rerank{Window: len(scores), Size: len(engine), SoftWeight: w}
		if rng.IntN(2) == 0 {
			r.Sums = []expand.Sum{{}}
		}
		sums, soft := make([]float64, len(scores)), make([]float64, len(scores))
		for i := range scores {
			soft[i] = float64(rng.IntN(3)) * rng.Float64()
			scores[i].Sum, scores[i].Soft = float64(rng.IntN(3))*rng.Float64(), soft[i]
			sums[i] = scores[i].Sum
			if r.Sums == nil {
				sums[i], _ = strconv.ParseFloat(scoreText(engine[i]), 64)
			}
		}
		got := blendedAnswer(t, engine, scores, r)
		best, written := scored(t, got)
		check.Must(t, len(written) == len(engine) && best == written[0] && best <= engine[0], "case %d: the best score of %v is %v, the engine's is %v", n, written, best, engine[0])
		check.Must(t, slices.IsSortedFunc(written, func(a, b float32) int { return cmp.Compare(b, a) }), "case %d, w %v: engine %v and %v give %v", n, w, engine, scores, written)
		share := func(of []float64, i int) float64 {
			if best := slices.Max(of); best > 0 {
				return of[i] / best
			}
			return 0
		}
		blend := func(id string) float64 {
			i, err := strconv.Atoi(id)
			check.OK(t, err)
			return (1-w)*share(sums, i) + w*share(soft, i)
		}
		// What differs by rounding only may be in either order.
		ids := strings.Fields(hitIDs(got))[:len(scores)]
		for i := range ids[1:] {
			check.Must(t, blend(ids[i]) >= blend(ids[i+1])-1e-12, "case %d, w %v: engine %v and %v give the order %v", n, w, engine, scores, ids)
		}
		check.Must(t, w != 0 || r.Sums != nil || slices.Equal(written, engine), "case %d: the engine's %v became %v", n, engine, written)
	}
}
