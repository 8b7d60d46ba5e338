package e2e

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"testing"

	"github.com/akin-search/akin/e2e/requests"
)

// TestBlendedOrderIsTheFormula ranks judged queries by 0.8 of the saturated sum
// and 0.2 of the measure, and computes that from the answers that have only the
// one or the other. The sum is compared with the engine's own, which knows
// lengths to four binary digits.
func TestBlendedOrderIsTheFormula(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		if !e.scripts {
			return // the engine has no sum to compare with
		}
		c := loadCollection(t, "med")
		index, matrix := e.judged(t, c)
		config := softConfig(e, matrix)
		profiles, _ := config["profiles"].(section)
		profiles["blend"] = section{"soft_weight": 0.2}
		profiles["sum"] = section{"rerank_window": 1000, "soft_weight": 0}
		profiles["measure"] = section{"rerank_window": 1000}
		profiles["engine"] = section{"mode": "bm25", "scoring": "saturated", "phase": "query"}
		a := startAkin(t, config)
		a.awaitMatrix(t, "s")
		queries := c.queries[:20]
		for _, q := range queries {
			checkBlend(t, a, "/"+index+"/_search?akin_profile=", q.text)
		}
		if n := int(a.metric(t, rerankedMetric, rerankedResult)); n != 4*len(queries) {
			t.Errorf("%d of %d searches were reranked", n, 4*len(queries))
		}
		checkBlendOfSeveral(t, a, index, queries[:4])
	})
}

// checkBlend compares the blended list of one search, and a page in it, with
// the formula.
func checkBlend(t *testing.T, a *akin, path, text string) {
	t.Helper()
	find := func(profile string, from, size int) hitList {
		hits, err := a.search(t.Context(), path+profile, pageBody(text, from, size))
		if err != nil {
			t.Fatal(err)
		}
		return hits
	}
	blended := find("blend", 0, softWindow+20)
	byID := func(hits []listedHit) map[string]float64 {
		scores := map[string]float64{}
		for _, hit := range hits {
			scores[hit.ID] = hit.Score
		}
		return scores
	}
	summed := find("sum", 0, 1000).Hits.Hits
	sums, soft := byID(summed), byID(find("measure", 0, 1000).Hits.Hits)
	window := blended.Hits.Hits[:softWindow]
	bestSum, bestSoft, best := 0.0, 0.0, summed[0].Score // which is that of the query that finds
	for _, hit := range window {
		if sums[hit.ID] == 0 || soft[hit.ID] == 0 {
			t.Fatalf("%q: %s has no sum or no measure", text, hit.ID)
		}
		bestSum, bestSoft = max(bestSum, sums[hit.ID]), max(bestSoft, soft[hit.ID])
	}
	want := map[string]float64{}
	least := summed[len(summed)-1].Score // smaller ones were raised to it
	for i, hit := range window {
		if sums[hit.ID] <= least*(1+1e-6) {
			break
		}
		want[hit.ID] = best * (.8*sums[hit.ID]/bestSum + .2*soft[hit.ID]/bestSoft)
		lowest := window[softWindow-1].Score
		if b := want[hit.ID]; math.Abs(hit.Score-max(b, lowest)) > 1e-5*best {
			t.Fatalf("%q: hit %d, document %s, has the score %v, want %v", text, i, hit.ID, hit.Score, max(b, lowest))
		}
		if i > 0 && want[hit.ID] > want[window[i-1].ID]+1e-5*best {
			t.Fatalf("%q: hit %d, document %s, is behind one with less", text, i, hit.ID)
		}
	}
	engine := find("engine", 0, 20).Hits.Hits
	for _, hit := range engine {
		if got, ok := sums[hit.ID]; ok && math.Abs(got/best-hit.Score/engine[0].Score) > .04 {
			t.Errorf("%q: document %s has %.3f of the best sum, in the engine %.3f", text, hit.ID, got/best, hit.Score/engine[0].Score)
		}
	}
	if behind := find("blend", softWindow, 20); !slices.Equal(blended.ids()[softWindow:], behind.ids()) {
		t.Errorf("%q: other hits behind the window", text)
	}
	falling := func(x, y listedHit) int { return cmp.Compare(y.Score, x.Score) }
	if !slices.IsSortedFunc(blended.Hits.Hits, falling) {
		t.Errorf("%q: the scores do not fall", text)
	}
	if page := find("blend", 30, 30); !slices.Equal(page.ids(), blended.ids()[30:60]) {
		t.Errorf("%q: a page of it has %v", text, page.ids())
	}
}

// checkBlendOfSeveral sends searches together and each by itself.
func checkBlendOfSeveral(t *testing.T, a *akin, index string, queries []judgedQuery) {
	t.Helper()
	searches := make([]searchOfSeveral, 0, len(queries))
	for _, q := range queries {
		searches = append(searches, searchOfSeveral{header: "{}", body: pageBody(q.text, 0, 10)})
	}
	answers := answersOf(t, a.must(t, http.MethodPost, "/"+index+"/_msearch?akin_profile=blend", linesOf(searches)))
	for i, s := range searches {
		want := a.must(t, http.MethodPost, "/"+index+"/_search?akin_profile=blend", s.body)
		if got, want := asSingle(answers[i]), softTook.ReplaceAllString(requests.Compact(string(want)), `"took":0`); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}
