package e2e

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"testing"

	"github.com/akin-search/akin/e2e/requests"
)

// TestBlendedOrderIsTheFormula ranks judged queries by 0.8 of the engine's
// score and 0.2 of the measure, and computes that from the answers that have
// only the one or the other.
func TestBlendedOrderIsTheFormula(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		if !e.scripts {
			return // its hits are found by more terms than those of the measure
		}
		c := loadCollection(t, "med")
		index, matrix := e.judged(t, c)
		config := softConfig(e, matrix)
		profiles, _ := config["profiles"].(section)
		profiles["blend"] = section{"soft_weight": 0.2}
		profiles["measure"] = section{"rerank_window": 1000} // finds by another form, so that its first 100 are others
		a := startAkin(t, config)
		a.awaitMatrix(t, "s")
		queries := c.queries[:20]
		for _, q := range queries {
			checkBlend(t, a, "/"+index+"/_search?akin_profile=", q.text)
		}
		if n := int(a.metric(t, rerankedMetric, rerankedResult)); n != 3*len(queries) {
			t.Errorf("%d of %d searches were reranked", n, 3*len(queries))
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
	engine, blended := find("bm25", 0, softWindow+20), find("blend", 0, softWindow+20)
	soft, bestSoft := map[string]float64{}, 0.0
	for _, hit := range find("measure", 0, 1000).Hits.Hits {
		soft[hit.ID] = hit.Score
	}
	want := map[string]float64{} // b times the best score
	window := engine.Hits.Hits[:softWindow]
	for _, hit := range window {
		if _, ok := soft[hit.ID]; !ok {
			t.Fatalf("%q: %s has no measure", text, hit.ID)
		}
		bestSoft = max(bestSoft, soft[hit.ID])
	}
	best, lowest := window[0].Score, window[softWindow-1].Score
	for _, hit := range window {
		want[hit.ID] = .8*hit.Score + .2*best*soft[hit.ID]/bestSoft
	}
	for i, hit := range blended.Hits.Hits[:softWindow] {
		b, ok := want[hit.ID]
		if !ok || math.Abs(hit.Score-max(b, lowest)) > 1e-5*best {
			t.Fatalf("%q: hit %d, document %s, has the score %v, want %v", text, i, hit.ID, hit.Score, max(b, lowest))
		}
		if i > 0 && b > want[blended.Hits.Hits[i-1].ID]+1e-5*best {
			t.Fatalf("%q: hit %d, document %s, is behind one with less", text, i, hit.ID)
		}
	}
	if !slices.Equal(blended.ids()[softWindow:], engine.ids()[softWindow:]) {
		t.Errorf("%q: other hits behind the window", text)
	}
	falling := func(x, y listedHit) int { return cmp.Compare(y.Score, x.Score) }
	if slices.IsSortedFunc(engine.Hits.Hits, falling) && !slices.IsSortedFunc(blended.Hits.Hits, falling) {
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
