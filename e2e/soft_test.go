package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

// softWindow is how many hits the mode soft orders by default.
const softWindow = 100

// softConfig has hits ordered by the measure alone, with a profile that ranks in
// the mode bm25.
func softConfig(matrix string) section {
	return section{
		"expansion": section{"mode": "soft", "soft_weight": 1},
		"profiles":  section{"bm25": section{"mode": "bm25"}},
		"matrices":  matrices("s", matrix),
	}
}

// reranked returns how many searches f has reranked.
func (a *akin) reranked(t *testing.T, f func()) int {
	t.Helper()
	return int(a.counted(t, f, rerankedMetric, rerankedResult))
}

// TestSoftModeScoresAreTheMeasure ranks all judged queries in the mode soft.
// The scores have to be those that softcosine computes from the same files
// and from the terms of the index, and the order theirs.
func TestSoftModeScoresAreTheMeasure(t *testing.T) {
	long(t)
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		for _, name := range usualCollections {
			t.Run(name, func(t *testing.T) {
				c := loadCollection(t, name)
				index, matrix := e.judged(t, c)
				config, weights := softConfig(matrix), matrix // the weights in the rows of S
				if name == "med" {                            // weights of their own
					weights = e.freezeWeights(t, index, "body")
					config["weights"] = matrices("w", weights)
				}
				a := setupWide(t, e, config)
				checkSoftScores(t, a, index, c, newSpace(t, e, index, "body", asHits(c.docs), c.queries, readMatrix(t, matrix), readMatrix(t, weights)))
				checkSoftPages(t, e, a, index, c)
			})
		}
	})
}

// checkSoftScores compares every hit of the window with the measure.
func checkSoftScores(t *testing.T, a *akin, index string, c *collection, p *space) {
	t.Helper()
	n := a.reranked(t, func() {
		for _, q := range c.queries {
			before := math.Inf(1)
			for i, hit := range a.find(t, index, matchBody(q.text, softWindow)).Hits.Hits {
				want, err := p.Soft(p.query(q), p.docs[hit.ID])
				if !(math.Abs(hit.Score-want) <= 1e-6) || hit.Score > before {
					t.Fatalf("query %s, hit %d, document %s: score %v behind %v, the measure is %v, %v", q.id, i, hit.ID, hit.Score, before, want, err)
				}
				before = hit.Score
			}
		}
	})
	if n != len(c.queries) {
		t.Errorf("%d of %d searches were reranked", n, len(c.queries))
	}
}

// checkSoftPages makes sure that the pages in the window are one list, and
// that an answer differs from the engine's own to the same query in nothing but
// the order and the scores of its hits.
func checkSoftPages(t *testing.T, e *engine, a *akin, index string, c *collection) {
	t.Helper()
	for _, q := range c.queries[:10] {
		body := matchBody(q.text, softWindow)
		whole := a.must(t, http.MethodPost, "/"+index+"/_search", body)
		var paged []string
		for from := 0; from < softWindow; from += 30 {
			paged = append(paged, a.find(t, index, pageBody(q.text, from, min(30, softWindow-from))).ids()...)
		}
		if got := a.find(t, index, body).ids(); !slices.Equal(paged, got) {
			t.Errorf("query %s: the pages have %v, the window has %v", q.id, paged, got)
		}
		var sent section
		decode(t, a.explain(t, index, body).Body, &sent)
		plain := e.must(t, http.MethodPost, "/"+index+"/_search", toJSON(t, section{"size": softWindow, "_source": false, "query": sent["query"]}))
		if got, want := withoutOrder(whole), withoutOrder(plain); got != want {
			t.Errorf("query %s: got %.1000s\nwant %.1000s", q.id, got, want)
		}
	}
}

var (
	softTook   = regexp.MustCompile(`"took" ?: ?\d+`)
	softScore  = regexp.MustCompile(`score":[0-9.Ee-]+`)
	softNumber = regexp.MustCompile(`,"(_version|_seq_no|_primary_term)":\d+`)
	softHit    = regexp.MustCompile(`\{"_index"[^{}]*\}`)
)

// withoutOrder returns an answer without what may differ, its hits sorted.
func withoutOrder(answer []byte) string {
	text := softTook.ReplaceAllString(string(answer), "")
	text = softNumber.ReplaceAllString(softScore.ReplaceAllString(text, `score":0`), "")
	hits := softHit.FindAllString(text, -1)
	slices.Sort(hits)
	return softHit.ReplaceAllString(text, "{}") + strings.Join(hits, "\n")
}

// TestBlendedOrderIsTheFormula ranks judged queries by 0.8 of the saturated sum
// and 0.2 of the measure, and computes that from the answers that have only the
// one or the other. The sum is compared with the engine's own, which knows
// lengths to four binary digits.
func TestBlendedOrderIsTheFormula(t *testing.T) {
	long(t)
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		if !e.scripts {
			return // the engine has no sum to compare with
		}
		c := loadCollection(t, "med")
		index, matrix := e.judged(t, c)
		config := softConfig(matrix)
		// The engine's sum has expressions, the mode soft ranks by single words.
		config["expansion"] = section{"mode": "soft", "soft_weight": 1, "expressions": false}
		config["profiles"] = section{
			"blend":   section{"soft_weight": 0.2},
			"sum":     section{"rerank_window": 1000, "soft_weight": 0},
			"measure": section{"rerank_window": 1000},
			"engine":  section{"mode": "bm25", "scoring": "saturated", "phase": "query"},
		}
		a := setupWide(t, e, config)
		queries := c.queries[:20]
		if n := a.reranked(t, func() {
			for _, q := range queries {
				checkBlend(t, a, index+"?akin_profile=", q.text)
			}
		}); n != 4*len(queries) {
			t.Errorf("%d of %d searches were reranked", n, 4*len(queries))
		}
	})
}

// checkBlend compares the blended list of one search, and a page in it, with
// the formula.
func checkBlend(t *testing.T, a *akin, path, text string) {
	t.Helper()
	blended := a.find(t, path+"blend", matchBody(text, softWindow+20))
	summed := a.find(t, path+"sum", matchBody(text, 1000))
	sums, soft, window := summed.scores(), a.find(t, path+"measure", matchBody(text, 1000)).scores(), blended.Hits.Hits[:softWindow]
	bestSum, bestSoft, best := 0.0, 0.0, summed.Hits.Hits[0].Score // which is that of the query that finds
	for _, hit := range window {
		if sums[hit.ID] == 0 || soft[hit.ID] == 0 {
			t.Fatalf("%q: %s has no sum or no measure", text, hit.ID)
		}
		bestSum, bestSoft = max(bestSum, sums[hit.ID]), max(bestSoft, soft[hit.ID])
	}
	least := summed.Hits.Hits[len(sums)-1].Score // smaller ones were raised to it
	before := math.Inf(1)
	for i, hit := range window {
		if sums[hit.ID] <= least*(1+1e-6) {
			break
		}
		want := best * (.8*sums[hit.ID]/bestSum + .2*soft[hit.ID]/bestSoft)
		if lowest := window[softWindow-1].Score; math.Abs(hit.Score-max(want, lowest)) > 1e-5*best {
			t.Fatalf("%q: hit %d, document %s, has the score %v, want %v", text, i, hit.ID, hit.Score, max(want, lowest))
		}
		if want > before+1e-5*best {
			t.Fatalf("%q: hit %d, document %s, is behind one with less", text, i, hit.ID)
		}
		before = want
	}
	engine := a.find(t, path+"engine", matchBody(text, 20)).Hits.Hits
	for _, hit := range engine {
		if got, ok := sums[hit.ID]; ok && math.Abs(got/best-hit.Score/engine[0].Score) > .04 {
			t.Errorf("%q: document %s has %.3f of the best sum, in the engine %.3f", text, hit.ID, got/best, hit.Score/engine[0].Score)
		}
	}
	if !slices.IsSortedFunc(blended.Hits.Hits, func(x, y hit) int { return cmp.Compare(y.Score, x.Score) }) {
		t.Errorf("%q: the scores do not fall", text)
	}
	for from, size := range map[int]int{softWindow: 20, 30: 30} { // behind the window, and in it
		if page := a.find(t, path+"blend", pageBody(text, from, size)); !slices.Equal(page.ids(), blended.ids()[from:from+size]) {
			t.Errorf("%q: a page of it has %v", text, page.ids())
		}
	}
}

// TestWarmUpReadsTheTermsOfAllDocuments: with rerank_warm_up no search has to ask
// the cluster for the terms of its hits, on an index of one shard and of two,
// whose hits have other names, on both together, and with a filter_path.
func TestWarmUpReadsTheTermsOfAllDocuments(t *testing.T) {
	t.Parallel()
	c := vectorTexts(rand.New(rand.NewPCG(17, 8)))
	eachEngine(t, func(t *testing.T, e *engine) {
		indices := []string{"akin-e2e-warm-1", "akin-e2e-warm-2"}
		for i, index := range indices {
			e.makeIndex(t, index, strings.Replace(oneShard(`"body":{"type":"text"}`), `"number_of_shards":1`, fmt.Sprintf(`"number_of_shards":%d`, i+1), 1))
			e.index(t, index, c.docs)
		}
		// By this name, which has a matrix, too, hits of both come together.
		e.must(t, http.MethodPut, "/"+strings.Join(indices, ",")+"/_alias/akin-e2e-warm-all", "")
		config := softConfig("")
		config["matrices"] = []section{{"name": "s", "file": build(t, "--cluster", e.url, "--index", indices[0], "--field", "body"), "indices": []string{"akin-e2e-warm-*"}}}
		config["expansion"].(section)["rerank_warm_up"] = true
		config["expansion"].(section)["max_doc_share"] = 1
		a := setupWide(t, e, config)
		waitFor(t, time.Minute, "the terms of all documents", func() error {
			if !a.logged(t, "terms of documents are remembered") {
				return fmt.Errorf("not read yet")
			}
			return nil
		})
		var ready struct {
			Remembered []struct {
				Index         string
				Documents, Of int
			}
		}
		check.OK(t, json.Unmarshal(a.admin.must(t, http.MethodGet, "/readyz", ""), &ready))
		for _, r := range ready.Remembered {
			check.That(t, r.Documents > 0 && r.Documents == r.Of || r.Index == "akin-e2e-warm-all", "/readyz says %+v", r)
		}
		said := runAkin(t, "check", "--config", a.config, "--index", indices[0]).stdout
		check.That(t, strings.Contains(said, fmt.Sprintf("the terms of %d documents take about 0.1 of 67.1 MB", len(c.docs))), "%s", said)
		check.That(t, len(ready.Remembered) >= 2, "/readyz says %+v", ready)
		misses := func() float64 { return a.metric(t, "akin_cache_misses_total", `cache="vectors"`) }
		before := misses()
		if before < float64(2*len(c.docs)) {
			t.Errorf("%v terms of documents were read, of %d documents", before, 2*len(c.docs))
		}
		n := a.reranked(t, func() {
			for _, index := range append(indices, "akin-e2e-warm-all", indices[0]+"?filter_path=**") {
				for _, q := range c.queries[:10] {
					a.find(t, index, matchBody(q.text, 10))
				}
			}
		})
		if asked := misses() - before; n != 40 || asked != 0 {
			t.Errorf("%d of 40 searches were reranked, and had to ask for %v hits", n, asked)
		}
	})
}
