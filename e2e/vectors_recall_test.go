package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/expand/vectors"
)

// recallDepth is how many hits are looked at.
const recallDepth = 100

// TestRecallOfApproximateVectors compares the hits of Elasticsearch's HNSW with
// those of all documents, at three settings.
func TestRecallOfApproximateVectors(t *testing.T) {
	e := theEngine(t, "elasticsearch8")
	if os.Getenv("AKIN_E2E_COLLECTIONS") != "all" || e == nil {
		return // it takes a minute of both processors
	}
	const name, index, dims = "npl", "akin-e2e-vectors-recall", 256
	c := loadCollection(t, name)
	e.makeIndex(t, index, `{"settings":{"number_of_shards":1,"number_of_replicas":0,"max_result_window":20000},"mappings":{"properties":{"body":{"type":"text"}}}}`)
	e.index(t, index, c.docs)
	of, model := e.of(index, "body"), newPath(t, "model.akin")
	s := build(t, "--cluster", e.url, "--index", index, "--field", "body", "--language-model", "none", "--top", "30")
	mustAkin(t, slices.Concat([]string{"index", "vectors", "model", "--matrix", s, "--weights", e.freezeWeights(t, index, "body"), "--store", "dense_vector", "--dims", strconv.Itoa(dims), "--out", model}, of)...)
	mustAkin(t, slices.Concat([]string{"index", "vectors", "backfill", "--model", model}, of)...)
	m, err := vectors.Read(strings.NewReader(readFile(t, model)))
	if err != nil {
		t.Fatal(err)
	}
	p := &space{e: e, index: index, field: "body"}
	docs := e.storedVectors(t, index)

	var report strings.Builder
	fmt.Fprintf(&report, "# Written by TestRecallOfApproximateVectors -update: %s, %d documents, %d queries, %d dimensions,\n"+
		"# Elasticsearch 8 with one segment. Share of the %d best documents by the exact scores that are among the first %d hits.\n",
		name, len(docs), len(c.queries), dims, recallDepth, recallDepth)
	var queries [][]float32
	for _, q := range c.queries {
		var x []vectors.Coordinate
		counts := p.analyze(t, q.text)
		for _, term := range slices.Sorted(maps.Keys(counts)) {
			x = append(x, vectors.Coordinate{Term: term, Value: counts[term]})
		}
		queries = append(queries, m.DenseQuery(x))
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
	e.merge(t, index)
}

// recall returns the mean share of the exact hits that an index finds.
func (e *engine) recall(t *testing.T, index string, docs []vectorDoc, queries [][]float32, candidates int) (recall float64) {
	t.Helper()
	for _, query := range queries {
		hits := e.find(t, index, toJSON(t, section{
			"size": recallDepth, "_source": false,
			"knn": section{"field": vectors.Path("body"), "query_vector": query, "k": recallDepth, "num_candidates": candidates},
		}))
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
	for _, h := range e.find(t, index, `{"size":20000,"_source":["akin_vector"]}`).Hits.Hits {
		var source struct {
			Vector map[string][]float32 `json:"akin_vector"`
		}
		decode(t, h.Source, &source)
		if vector := source.Vector["body"]; vector != nil {
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
