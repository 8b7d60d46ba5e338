package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/expand/vectors"
)

// theEngine returns an engine that is started here, and skips where it is not
// among those of the run.
func theEngine(t *testing.T, name string) *engine {
	t.Helper()
	all, err := engines()
	if err != nil {
		t.Fatal(err)
	}
	k := slices.IndexFunc(all, func(e *engine) bool { return e.name == name && e.ours })
	if k < 0 {
		t.Skip("is for " + name + " only")
	}
	return all[k]
}

// TestVectorScoresInOpenSearchsKNN is TestVectorScoresAreTheMeasure for
// knn_vector, which OpenSearch 2 has here.
func TestVectorScoresInOpenSearchsKNN(t *testing.T) {
	t.Parallel()
	e := theEngine(t, "opensearch2")
	e.require(t)
	random := rand.New(rand.NewPCG(17, 4))
	c := vectorTexts(random)
	checkVectorScores(t, e, vectors.KNNVector, c, writeSimilarities(t, random))
	t.Run("mixed", func(t *testing.T) {
		newVectorWorld(t).checkOtherModels(t, e, vectors.KNNVector, section{
			"type": "knn_vector", "dimension": vectorTerms + 1, "method": section{"name": "hnsw", "engine": "lucene", "space_type": "innerproduct"},
		})
	})
	t.Run("next to a match", func(t *testing.T) { newVectorWorld(t).checkClientsVectors(t, e) })
}

// checkClientsVectors has a client search vectors of its own next to a match. A
// rescore would have a copy of both, and search the vectors twice.
func (w *vectorWorld) checkClientsVectors(t *testing.T, e *engine) {
	t.Helper()
	const index = "akin-e2e-vectors-clients"
	e.makeIndex(t, index, `{"settings":{"number_of_shards":1,"number_of_replicas":0,"index.knn":true},"mappings":{"properties":{`+
		`"body":{"type":"text","analyzer":"whitespace"},"uid":{"type":"keyword"},`+
		`"v":{"type":"knn_vector","dimension":2,"method":{"name":"hnsw","engine":"lucene","space_type":"l2"}}}}}`)
	var docs []document
	for i, text := range w.texts {
		docs = append(docs, document{strconv.Itoa(i), map[string]any{"body": text, "v": []int{i, 0}}})
	}
	e.index(t, index, withIDs(docs))
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": section{"max_doc_share": 1, "budget": widePatience},
		"matrices":  []section{{"name": "s", "file": w.matrix}},
	})
	a.awaitMatrix(t, "s")
	search := func(knn string) string {
		return `{"size":1,"_source":false,"query":{"bool":{"must":{"match":{"body":"t03"}}` + knn + `}}}`
	}
	const knn = `,"should":[{"knn":{"v":{"vector":[7,0],"k":1}}}]`
	for body, want := range map[string][2]string{search(""): {"rescore", ""}, search(knn): {"query", "vectors"}} {
		explained := a.explain(t, index, body)
		if c := explained.Clauses[0]; c.Form != "saturated" || c.Phase != want[0] || c.Reason != want[1] {
			t.Errorf("%s: explained as %+v, want %s", body, c, want)
		}
		if got := bytes.Contains(explained.Body, []byte(`"rescore"`)); got != (want[0] == "rescore") {
			t.Errorf("%s: rescore %t: %s", body, got, explained.Body)
		}
		hits, err := a.search(t.Context(), "/"+index+"/_search", body)
		if err != nil || len(hits.Hits.Hits) != 1 {
			t.Errorf("%s: %v, %+v", body, err, hits)
		}
	}
	if n := a.metric(t, requestsMetric, `outcome="rewritten"`); n != 2 {
		t.Errorf("%v searches were rewritten", n)
	}
	if n := a.metric(t, refusedMetric, `original="accepted"`); n != 0 {
		t.Errorf("%v rewritten searches were refused", n)
	}
}

// recallDepth is how many hits are looked at.
const recallDepth = 100

// TestRecallOfApproximateVectors compares the hits of Elasticsearch's HNSW with
// those of all documents, at three settings.
func TestRecallOfApproximateVectors(t *testing.T) {
	if os.Getenv("AKIN_E2E_COLLECTIONS") != "all" {
		t.Skip("takes a minute of both processors: measured with AKIN_E2E_COLLECTIONS=all")
	}
	e := theEngine(t, "elasticsearch8")
	e.require(t)
	const name, index, dims = "npl", "akin-e2e-vectors-recall", 256
	c := loadCollection(t, name)
	e.makeIndex(t, index, `{"settings":{"number_of_shards":1,"number_of_replicas":0,"max_result_window":20000},"mappings":{"properties":{"body":{"type":"text"}}}}`)
	e.index(t, index, c.docs)
	of := []string{"--cluster", e.url, "--index", index, "--field", "body"}
	dir := newDir(t, "vectors")
	s, w, model := filepath.Join(dir, "s.akin"), filepath.Join(dir, "w.akin"), filepath.Join(dir, "model.akin")
	mustAkin(t, "matrix", "build", "--from-index", e.url, "--index", index, "--field", "body", "--top", "30", "--out", s)
	e.freezeWeights(t, index, hardFiles{s, w})
	mustAkin(t, slices.Concat([]string{"vectors", "model", "--matrix", s, "--weights", w, "--store", "dense_vector", "--dims", strconv.Itoa(dims), "--out", model}, of)...)
	v := &vectorIndex{hardSpace: &hardSpace{e: e, index: index}}
	v.read(t, model)
	v.backfill(t, model)
	docs := e.storedVectors(t, index)

	var report strings.Builder
	fmt.Fprintf(&report, "# Written by TestRecallOfApproximateVectors -update: %s, %d documents, %d queries, %d dimensions,\n"+
		"# Elasticsearch 8 with one segment. Share of the %d best documents by the exact scores that are among the first %d hits.\n",
		name, len(docs), len(c.queries), dims, recallDepth, recallDepth)
	var queries [][]float32
	for _, q := range c.queries {
		x, _ := v.query(t, q.text)
		queries = append(queries, v.model.DenseQuery(x))
	}
	before := 0.0
	for _, setting := range []struct{ m, construction, candidates int }{{4, 20, 100}, {16, 100, 100}, {32, 200, 500}} {
		filled := index + "-" + strconv.Itoa(setting.m)
		e.fillGraph(t, filled, docs, setting.m, setting.construction)
		recall := e.recall(t, filled, docs, queries, setting.candidates)
		line := fmt.Sprintf("m %d, ef_construction %d, num_candidates %d: recall@%d %.3f", setting.m, setting.construction, setting.candidates, recallDepth, recall)
		t.Log(line)
		report.WriteString(line + "\n")
		if recall < before {
			t.Errorf("%s, which is less than at a smaller setting", line)
		}
		before = recall
	}
	if before < 0.95 {
		t.Errorf("at the largest setting the recall is %.3f", before)
	}
	if *update {
		if err := os.WriteFile(filepath.Join("testdata", "vector_recall.txt"), []byte(report.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecallGrowsToTheExactHits has made-up vectors in groups, as those of
// documents on some topics are.
func TestRecallGrowsToTheExactHits(t *testing.T) {
	t.Parallel()
	e := theEngine(t, "elasticsearch8")
	e.require(t)
	const dims, topics, size = 32, 30, 3000
	random := rand.New(rand.NewPCG(17, 9))
	near := func(v []float32, spread float64) []float32 {
		out, square := make([]float32, dims), 0.0
		for k := range out {
			out[k] = float32(random.NormFloat64() * spread)
			if v != nil {
				out[k] += v[k]
			}
			square += float64(out[k]) * float64(out[k])
		}
		for k := range out {
			out[k] /= float32(math.Sqrt(square))
		}
		return out
	}
	var docs []vectorDoc
	var queries [][]float32
	for i := range topics {
		topic := near(nil, 1)
		for j := range size / topics {
			docs = append(docs, vectorDoc{fmt.Sprintf("%02d-%02d", i, j), near(topic, 0.2)})
		}
		queries = append(queries, near(topic, 0.2))
	}
	const index = "akin-e2e-vectors-graph"
	e.fillGraph(t, index, docs, 4, 20)
	before := 0.0
	for _, candidates := range []int{recallDepth, 300, size} {
		recall := e.recall(t, index, docs, queries, candidates)
		t.Logf("num_candidates %d: recall@%d %.4f", candidates, recallDepth, recall)
		if recall < before {
			t.Errorf("%d candidates have a recall of %.4f, fewer have %.4f", candidates, recall, before)
		}
		before = recall
	}
	if before < 1-1e-9 {
		t.Errorf("with all documents as candidates the recall is %.4f", before)
	}
}

// fillGraph makes an index of one segment of documents with dense vectors.
func (e *engine) fillGraph(t *testing.T, index string, docs []vectorDoc, m, construction int) {
	t.Helper()
	e.makeIndex(t, index, fmt.Sprintf(`{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{"akin_vector":{"properties":{
		"body":{"type":"dense_vector","dims":%d,"index":true,"similarity":"dot_product","index_options":{"type":"hnsw","m":%d,"ef_construction":%d}}}}}}}`,
		len(docs[0].vector), m, construction))
	for batch := range slices.Chunk(docs, 1000) {
		var written []document
		for _, d := range batch {
			written = append(written, document{d.id, map[string]any{"akin_vector": map[string]any{"body": d.vector}}})
		}
		e.index(t, index, written)
	}
	e.must(t, http.MethodPost, "/"+index+"/_forcemerge?max_num_segments=1", "")
	e.must(t, http.MethodPost, "/"+index+"/_refresh", "")
}

// recall returns the mean share of the exact hits that an index finds.
func (e *engine) recall(t *testing.T, index string, docs []vectorDoc, queries [][]float32, candidates int) (recall float64) {
	t.Helper()
	for _, query := range queries {
		hits, err := e.search(t.Context(), "/"+index+"/_search", toJSON(t, section{
			"size": recallDepth, "_source": false,
			"knn": section{"field": vectors.Path("body"), "query_vector": query, "k": recallDepth, "num_candidates": candidates},
		}))
		if err != nil {
			t.Fatal(err)
		}
		best := exactHits(docs, query)
		for _, id := range hits.ids() {
			if best[id] {
				recall += 1 / float64(recallDepth*len(queries))
			}
		}
	}
	return recall
}

// A vectorDoc is a document with its dense vector.
type vectorDoc struct {
	id     string
	vector []float32
}

// storedVectors returns the vectors of all documents of an index.
func (e *engine) storedVectors(t *testing.T, index string) (docs []vectorDoc) {
	t.Helper()
	var answer struct {
		Hits struct {
			Hits []struct {
				ID     string `json:"_id"`
				Source struct {
					Vector map[string][]float32 `json:"akin_vector"`
				} `json:"_source"`
			}
		}
	}
	decode(t, e.must(t, http.MethodPost, "/"+index+"/_search", `{"size":20000,"_source":["akin_vector"]}`), &answer)
	for _, h := range answer.Hits.Hits {
		if vector := h.Source.Vector["body"]; vector != nil {
			docs = append(docs, vectorDoc{h.ID, vector})
		}
	}
	slices.SortFunc(docs, func(a, b vectorDoc) int { return cmp.Compare(a.id, b.id) })
	return docs
}

// exactHits returns the ids of the documents with the largest dot products, and
// of those that differ from the last of them by rounding only.
func exactHits(docs []vectorDoc, query []float32) map[string]bool {
	scores := make([]float64, len(docs))
	for i, d := range docs {
		for k, v := range d.vector {
			scores[i] += float64(v) * float64(query[k])
		}
	}
	sorted := slices.Sorted(slices.Values(scores))
	least := sorted[len(sorted)-recallDepth] - 1e-6
	best := map[string]bool{}
	for i, d := range docs {
		if scores[i] >= least {
			best[d.id] = true
		}
	}
	return best
}
