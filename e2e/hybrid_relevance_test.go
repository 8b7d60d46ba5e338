package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	hybridStatsFile = "testdata/hybrid_stats.txt"
	// hybridOnly begins the name of a collection whose documents have vectors, too.
	hybridOnly = "hybrid-"
	// fakeModel ends it where a fake model made them.
	fakeModel = "-fake"
	// longestEmbedded is how much of a text a model gets, in bytes: it reads no
	// more.
	longestEmbedded = 1500
)

// TestHybridRelevance ranks judged queries by their words and by the vectors of
// a language model, half and half, directly and with akin: the direct search of
// hybrid_stats.txt is the hybrid one without akin.
func TestHybridRelevance(t *testing.T) {
	long(t)
	t.Parallel()
	e := theEngine(t, qualityEngine)
	if e == nil {
		return
	}
	model := languageModel(t)
	e.must(t, http.MethodPut, "/_search/pipeline/"+hybridPipeline+"-half", hybridHalf)
	// By whether these are the three rarest terms or whole queries: how much the
	// best scores rise, and the measures of all collections' queries.
	stats, shifts, pooled := rankStats{}, map[bool][]float64{}, map[bool][2][]measures{}
	for _, plain := range judgedCollections(t) {
		if slices.Contains(heldOutCollections, plain.name) && model.fake {
			continue
		}
		_, matrix := e.judged(t, plain)
		c := &collection{name: hybridOnly + plain.name, queries: plain.queries}
		texts := make([]string, len(plain.docs))
		for i, d := range plain.docs {
			texts[i], _ = d.fields["body"].(string)
		}
		vectors := textVectors(t, model, plain.name, texts)
		e.makeIndex(t, judgedIndexName(c), strings.Replace(fmt.Sprintf(hybridDefinition, 1), `"body":{"type":"text"},"kind"`, `"body":{"type":"text","analyzer":"english"},"uid"`, 1))
		e.must(t, http.MethodPut, "/"+judgedIndexName(c)+"/_mapping",
			fmt.Sprintf(`{"properties":{"dense":{"type":"knn_vector","dimension":%d,"method":{"name":"hnsw","engine":"lucene","space_type":"cosinesimil"}}}}`, len(vectors[0])))
		docs := make([]document, len(plain.docs))
		for i, d := range plain.docs {
			docs[i] = document{d.id, section{"body": d.fields["body"], "uid": d.id, "dense": vectors[i]}}
		}
		for some := range slices.Chunk(docs, 1000) {
			e.index(t, judgedIndexName(c), some)
		}
		a := setupWide(t, e, section{"matrices": matrices("m", matrix)})
		three := e.threeTerms(t, plain)
		three.name = c.name + threeTermsOnly
		for _, c := range []*collection{c, three} {
			queries := make([]string, len(c.queries))
			for i, q := range c.queries {
				queries[i] = q.text
			}
			vectors, at := textVectors(t, model, "queries of "+strings.TrimPrefix(c.name, hybridOnly), queries), map[string][]float64{}
			for i, text := range queries {
				at[text] = vectors[i]
			}
			body := func(text string) string {
				return fmt.Sprintf(`{"query":{"hybrid":{"queries":[{"match":{"body":%s}},{"knn":{"dense":{"vector":%s,"k":100}}}]}},"size":100,"_source":false,%s}`,
					quote(text), toJSON(t, at[text]), idColumn)
			}
			index := judgedIndexName(c) + "?search_pipeline=" + hybridPipeline + "-half"
			directly := rank(t, e.cluster, index, body, c.queries)
			var through []measures
			if n := a.counted(t, func() { through = rank(t, a.cluster, index, body, c.queries) }, requestsMetric, rewrittenOutcome); n < float64(len(c.queries))/2 {
				t.Errorf("%s: %v of %d searches were rewritten", c.name, n, len(c.queries))
			}
			name := c.name
			if model.fake {
				name += fakeModel
			}
			sum := func(text string) string { // in which the vector finds and hardly scores
				return fmt.Sprintf(`{"query":{"bool":{"should":[{"match":{"body":%s}},{"knn":{"dense":{"vector":%s,"k":1,"boost":0.000001}}}]}},"size":1,"_source":false}`,
					quote(text), toJSON(t, at[text]))
			}
			shift := topScores(t, a, judgedIndexName(c), sum, queries) / topScores(t, a, judgedIndexName(c)+"?akin=off", sum, queries)
			t.Logf("%s: best scores are %.3f times as high", c.name, shift)
			shifts[c == three] = append(shifts[c == three], shift)
			stats.note(e, name, direct, directly, nil)
			stats.note(e, name, "akin", through, directly)
			all := pooled[c == three]
			pooled[c == three] = [2][]measures{append(all[0], through...), append(all[1], directly...)}
		}
	}
	for three, all := range pooled {
		got, base, p := meanMeasures(all[0]), meanMeasures(all[1]), significance(all[0], all[1])
		t.Logf("three terms %t, %d queries: MAP %.4f → %.4f, p %.4f; nDCG@10 %.4f → %.4f, p %.4f", three, len(all[0]), base.MAP, got.MAP, p.MAP, base.NDCG10, got.NDCG10, p.NDCG10)
		if got.MAP < base.MAP || p.MAP > .05 {
			t.Errorf("three terms %t: MAP %.4f, without akin %.4f, p %.4f", three, got.MAP, base.MAP, p.MAP)
		}
	}
	for three, all := range shifts {
		mean := 0.0
		for _, shift := range all {
			mean += shift / float64(len(all))
		}
		if mean < 1 || mean > mostShifted {
			t.Errorf("three terms %t: best scores are %.3f times as high, which shifts a sum with vectors", three, mean)
		}
	}
	checkLosses(t, stats)
	checkRankStats(t, hybridStatsFile, stats)
}

func TestHybridDocShowsTheAcceptedMeasures(t *testing.T) {
	stats := acceptedStats(t, hybridStatsFile)
	for _, row := range [][2]string{{"whole queries", ""}, {"their three rarest terms", threeTermsOnly}} {
		mean := func(m int) (sum float64) {
			for _, c := range tunedCollections {
				sum += stats.gain(rankKey{qualityEngine, hybridOnly + c + row[1], "akin"}, m) / float64(len(tunedCollections))
			}
			return sum
		}
		checkDocShows(t, filepath.Join("..", "docs", "hybrid.md"), hybridStatsFile,
			fmt.Sprintf("| %s | %+.1f %% | %+.1f %% |", row[0], mean(mapMeasure), mean(ndcgMeasure)))
	}
}

// mostShifted is how much related words may raise the best scores of texts, on
// the mean of the collections, where they are added to those of vectors.
const mostShifted = 1.1

// topScores returns the sum of the best scores of texts.
func topScores(t *testing.T, a *akin, index string, body func(text string) string, texts []string) (sum float64) {
	t.Helper()
	for _, text := range texts {
		if hits := a.find(t, index, body(text)).Hits.Hits; len(hits) > 0 {
			sum += hits[0].Score
		}
	}
	return sum
}

// textVectors returns the vectors of texts by a model. Those of a real one are
// kept in the folder AKIN_E2E_VECTORS, if that is set, by their name.
func textVectors(t *testing.T, model embeddings, name string, texts []string) (vectors [][]float64) {
	t.Helper()
	folder := os.Getenv("AKIN_E2E_VECTORS")
	path := filepath.Join(folder, model.name, name+".json")
	if kept, err := os.ReadFile(path); folder != "" && !model.fake && err == nil && json.Unmarshal(kept, &vectors) == nil && len(vectors) == len(texts) {
		return vectors
	}
	vectors = nil
	for some := range slices.Chunk(texts, 64) {
		input := make([]string, len(some))
		for i, text := range some {
			input[i] = strings.ToValidUTF8(text[:min(len(text), longestEmbedded)], "")
		}
		answer := ask[struct {
			Data []struct{ Embedding []float64 }
		}](t, cluster{url: model.url}, http.MethodPost, "/v1/embeddings", toJSON(t, section{"model": model.name, "input": input}))
		if len(answer.Data) != len(some) {
			t.Fatalf("%s: %d vectors of %d", name, len(answer.Data), len(some))
		}
		for _, d := range answer.Data {
			vectors = append(vectors, d.Embedding)
		}
	}
	if folder != "" && !model.fake {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(toJSON(t, vectors)), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return vectors
}
