package e2e

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/expand/vectors"
)

// What was measured of the mode vectors, and the page that shows it.
const (
	vectorStatsFile = "testdata/vector_stats.txt"
	vectorsDoc      = "../docs/vectors.md"
	vectorsEngine   = "elasticsearch8" // whose rankings it shows
)

// The rankings by vectors: by them only, and the blends with BM25.
var vectorRankings = map[string]section{
	"":       {"soft_weight": 1},
	"-blend": {"soft_weight": 0.1},
	"-half":  {"soft_weight": 0.5},
}

// vectorCollections are those with measures of vectors. Many texts of the forum
// are the same: there chance would order the hits.
var vectorCollections = []string{"cran", "med", "cisi", "npl", "scifact_train"}

// vectorArms are the searches whose times are compared with the direct one.
var vectorArms = []string{"bm25", "soft", "hard"}

// TestVectorStats ranks the judged queries by vectors in each store of the
// engines, with the defaults of models, next to the direct
// search; it also reports what the vectors add to the size of the index, and how
// long searches take compared with direct ones, in turn within one run. It
// measures what AKIN_E2E_COLLECTIONS names.
func TestVectorStats(t *testing.T) {
	if os.Getenv("AKIN_E2E_COLLECTIONS") == "" {
		return // it takes minutes for each collection
	}
	stats := rankStats{}
	eachEngine(t, func(t *testing.T, e *engine) {
		for _, store := range vectorStores[e.name] {
			for _, c := range judgedCollections(t) {
				if !slices.Contains(vectorCollections, c.name) {
					continue
				}
				t.Run(string(store)+"/"+c.name, func(t *testing.T) {
					measureVectors(t, e, store, c, stats)
				})
			}
		}
	})
	checkRankStats(t, vectorStatsFile, stats)
}

// measureVectors adds the measures of one store and collection.
func measureVectors(t *testing.T, e *engine, store vectors.Store, c *collection, stats rankStats) {
	t.Helper()
	kind := strings.ReplaceAll(string(store), "_", "-")
	index := "akin-e2e-stats-" + kind + "-" + c.name
	e.makeHardIndex(t, index, hardSetting{scripted: e.scripts, shards: 1}, "english", c.docs)
	files := e.makeHardFiles(t, index, c)
	e.storeNorms(t, index, "body", files.weights, "")
	_, whole := e.judged(t, c)
	before, model, of := e.mergedSize(t, index), newPath(t, "model.akin"), e.of(index, "body")
	mustAkin(t, append([]string{"index", "vectors", "model", "--matrix", whole, "--weights", files.weights, "--store", string(store), "--out", model}, of...)...)
	start := time.Now()
	mustAkin(t, append([]string{"index", "vectors", "backfill", "--model", model}, of...)...)
	took := time.Since(start)
	after := e.mergedSize(t, index)
	t.Logf("%s, %s: the index has %.1f MB, with vectors %.1f MB (%+.0f %%), %.0f documents a second", store, c.name,
		before/1e6, after/1e6, 100*(after/before-1), float64(len(c.docs))/took.Seconds())

	profiles := section{
		"bm25": section{"matrices": []string{"whole"}},
		"soft": section{"matrices": []string{"whole"}, "mode": "soft"},
		"hard": section{"matrices": []string{"short"}, "mode": "hard"},
	}
	arms := slices.Clone(vectorArms)
	for name, settings := range vectorRankings {
		profile := section{"mode": "vectors", "matrices": []string{"whole"}}
		maps.Copy(profile, settings)
		profiles[kind+name] = profile
		arms = append(arms, kind+name)
	}
	slices.Sort(arms)
	a := setupWide(t, e, section{
		"expansion": section{"max_query_terms": 256},
		"profiles":  profiles,
		"matrices":  matrices("whole", whole, "short", files.matrix),
		"weights":   matrices("weights", files.weights),
		"vectors":   []string{model},
	})
	directly := rank(t, e.cluster, index, modeBody, c.queries)
	stats.note(e, c.name, direct, directly, nil)
	for _, arm := range arms {
		if slices.Contains(vectorArms, arm) {
			continue // is measured by TestModes
		}
		a.checkExplained(t, index+"?akin_profile="+arm, modeBody(c.queries[0].text), "vectors", "query", "")
		stats.note(e, c.name, arm, rank(t, a.cluster, index+"?akin_profile="+arm, modeBody, c.queries), directly)
	}
	t.Log(raceArms(t, e, a, index, c, arms))
}

// mergedSize returns the bytes of an index in one segment.
func (e *engine) mergedSize(t *testing.T, index string) float64 {
	t.Helper()
	e.refresh(t, index)
	e.merge(t, index)
	e.must(t, http.MethodPost, "/"+index+"/_flush?force=true", "")
	e.refresh(t, index)
	var sum float64
	// _stats may be ten seconds old.
	for _, s := range ask[[]struct{ Size string }](t, e.cluster, http.MethodGet, "/_cat/segments/"+index+"?format=json&bytes=b&h=size", "") {
		size, err := strconv.ParseFloat(s.Size, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += size
	}
	return sum
}

// raceArms sends the queries for a page of ten directly and by every arm, in
// turn, and says how long the median search took compared with the direct one.
func raceArms(t *testing.T, e *engine, a *akin, index string, c *collection, arms []string) string {
	t.Helper()
	arms = append([]string{direct}, arms...)
	took := map[string][]time.Duration{}
	const warm = 20
	for n, q := range c.queries[:min(len(c.queries), 100)] {
		for i := range arms {
			arm := arms[(i+n)%len(arms)] // nobody is always behind the same
			at, parameters := a.cluster, "?akin_profile="+arm
			if arm == direct {
				at, parameters = e.cluster, ""
			}
			start := time.Now()
			at.find(t, index+parameters, matchBody(q.text, 10))
			if n >= min(warm, len(c.queries)/3) {
				took[arm] = append(took[arm], time.Since(start))
			}
		}
	}
	var b strings.Builder
	for _, arm := range arms {
		slices.Sort(took[arm])
		p50 := quantile(took[arm], .5)
		fmt.Fprintf(&b, "%s %.1f ms (x%.2f)  ", arm, p50*1e3, p50/quantile(took[direct], .5))
	}
	return c.name + ", p50: " + b.String()
}

// vectorsTable writes the gains of vectors as Markdown.
func vectorsTable(stats rankStats) string {
	var rows []gainsRow
	for _, kind := range []string{"sparse-vector", "dense-vector"} {
		for _, r := range []string{"", "-blend", "-half"} {
			rows = append(rows, gainsRow{rankKey{engine: vectorsEngine, ranking: kind + r}, kind + r})
		}
	}
	return gainsTable(stats, "| MAP / nDCG@10 | mean | least |", vectorCollections, nil, rows)
}

func TestVectorsDocShowsTheAcceptedMeasures(t *testing.T) {
	stats := acceptedStats(t, vectorStatsFile)
	checkDocShows(t, vectorsDoc, vectorStatsFile, vectorsTable(stats))
	checkDocShows(t, vectorsDoc, vectorStatsFile, medAndNPL(stats, vectorsEngine, "sparse-vector"))
	const same = 0.6 // points, as the document says
	for r := range vectorRankings {
		for _, c := range vectorCollections {
			features, sparse := rankKey{qualityEngine, c, "rank-features" + r}, rankKey{vectorsEngine, c, "sparse-vector" + r}
			for _, m := range []int{mapMeasure, ndcgMeasure} {
				if a, b := stats.gain(features, m), stats.gain(sparse, m); math.IsNaN(a) || math.Abs(a-b) > same {
					t.Errorf("%s%s: %s %+.2f with rank_features, %+.2f with sparse_vector", c, r, measureNames[m], a, b)
				}
			}
		}
	}
}
