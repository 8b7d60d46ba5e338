package answer

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

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
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			best = float32(s)
		} else {
			scores = append(scores, float32(s))
		}
	}
	return best, scores
}

func TestScoresAreBlended(t *testing.T) {
	for _, c := range []struct {
		name         string
		engineWeight float64
		engine       []float32
		soft         []float64
		ids          string
		scores       []float32
	}{
		{"formula", .5, []float32{8, 6, 4}, []float64{.05, .2, .4}, "2 1 0", []float32{6, 5, 4.5}},
		{"the measure only", 0, []float32{8, 6, 4}, []float64{.25, 1, .5}, "1 2 0", []float32{1, .5, .25}},
		{"the engine only", 1, []float32{8, 6, 4}, []float64{.25, 1, .5}, "0 1 2", []float32{8, 6, 4}},
		{"both agree", .8, []float32{8, 6, 4}, []float64{1, .75, .5}, "0 1 2", []float32{8, 6, 4}},
		{"ties keep the engine's order", .5, []float32{8, 4, 8}, []float64{.5, 1, .5}, "0 1 2", []float32{6, 6, 6}},
		{"the engine's are equal", .8, []float32{4, 4, 4}, []float64{.1, .4, .2}, "1 2 0", []float32{4, 4, 4}},
		{"some are zero", .5, []float32{8, 2, 0}, []float64{0, 1, 0}, "1 0 2", []float32{5, 4, 0}},
		{"no hit is similar", .8, []float32{8, 6, 4}, []float64{0, 0, 0}, "0 1 2", []float32{8, 6, 4}},
		{"the engine's are zero", .8, []float32{0, 0, 0}, []float64{0, 0, 1}, "0 1 2", []float32{0, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &expand.Rerank{Window: 3, Size: 3, EngineWeight: c.engineWeight}
			p := reread(t, answerWith(c.engine), r)
			if !p.SetScores(c.soft) {
				t.Fatal("refused")
			}
			got := string(WriteHitLists(p.answer, []*HitList{p.HitList}))
			best, scores := scored(t, got)
			if hitIDs(got) != c.ids || !slices.Equal(scores, c.scores) || best != c.scores[0] {
				t.Errorf("got %s, want the hits %s with %v", got, c.ids, c.scores)
			}
		})
	}
}

// Of any scores, the order is that of the formula, and the scores that go out
// fall from hit to hit, also behind the window, and exceed none of the engine's.
func TestBlendedScoresFall(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 3))
	for n := range 2000 {
		engine := make([]float32, 1+rng.IntN(12))
		soft := make([]float64, 1+rng.IntN(len(engine)))
		scale := []float64{1e-6, 1, 1e6}[rng.IntN(3)]
		for i := range engine {
			engine[i] = float32(scale * float64(rng.IntN(8)) * rng.Float64())
		}
		for i := range soft {
			soft[i] = float64(rng.IntN(3)) * rng.Float64()
		}
		slices.SortFunc(engine, func(a, b float32) int { return cmp.Compare(b, a) })
		w := []float64{.1, .5, .8, 1}[rng.IntN(4)]
		p := reread(t, answerWith(engine), &expand.Rerank{Window: len(soft), Size: len(engine), EngineWeight: w})
		if !p.SetScores(soft) {
			t.Fatalf("case %d: refused", n)
		}
		got := string(WriteHitLists(p.answer, []*HitList{p.HitList}))
		best, scores := scored(t, got)
		if len(scores) != len(engine) || best != scores[0] || best > engine[0] {
			t.Fatalf("case %d: the best score of %v is %v, the engine's is %v", n, scores, best, engine[0])
		}
		if !slices.IsSortedFunc(scores, func(a, b float32) int { return cmp.Compare(b, a) }) {
			t.Fatalf("case %d, w %v: engine %v and soft %v give %v", n, w, engine, soft, scores)
		}
		blend := func(id string) float64 {
			i, err := strconv.Atoi(id)
			if err != nil {
				t.Fatal(err)
			}
			bestSoft := slices.Max(soft)
			if bestSoft == 0 || engine[0] == 0 {
				return float64(engine[i])
			}
			return w*float64(engine[i])/float64(engine[0]) + (1-w)*soft[i]/bestSoft
		}
		ids := strings.Fields(hitIDs(got))[:len(soft)]
		if !slices.IsSortedFunc(ids, func(a, b string) int { return cmp.Compare(blend(b), blend(a)) }) {
			t.Fatalf("case %d, w %v: engine %v and soft %v give the order %v", n, w, engine, soft, ids)
		}
		if w == 1 && !slices.Equal(scores, engine) {
			t.Fatalf("case %d: the engine's %v became %v", n, engine, scores)
		}
	}
}
