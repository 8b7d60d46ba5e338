package e2e

import (
	"bytes"
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

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/softcosine"
)

// A vectorWorld is documents made by chance, with S, W and the measure that
// vectors are to score by.
type vectorWorld struct {
	s, weights *simmatrix.Matrix
	texts      []string
	vocabulary *softcosine.Vocabulary
	space      *softcosine.Space
	matrix     string // the file of S
}

const vectorTerms, vectorDocs = 24, 60

func newVectorWorld(t *testing.T) *vectorWorld {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 7))
	term := func(i int) string { return fmt.Sprintf("t%02d", i) }
	var rows, frequencies []simmatrix.TermRow
	for i := range vectorTerms {
		row := simmatrix.TermRow{Term: term(i), DocFreq: uint32(1 + i)}
		frequencies = append(frequencies, row)
		for j := range vectorTerms {
			if i != j && random.IntN(6) == 0 {
				row.Neighbors = append(row.Neighbors, simmatrix.Neighbor{Term: term(j), Similarity: 0.1 + 0.2*random.Float32(), DocFreq: uint32(1 + j)})
			}
		}
		rows = append(rows, row)
	}
	w := &vectorWorld{matrix: filepath.Join(newDir(t, "vectors"), "s.akin")}
	var err error
	if w.s, err = simmatrix.New(simmatrix.Meta{Source: "test", Docs: vectorDocs}, rows); err != nil {
		t.Fatal(err)
	}
	if w.s, err = combine.Sparsify(w.s, combine.SparsifyOptions{Symmetric: true, Dominant: true}); err != nil {
		t.Fatal(err)
	}
	if w.weights, err = simmatrix.New(simmatrix.Meta{Source: "test", Docs: vectorDocs}, frequencies); err != nil {
		t.Fatal(err)
	}
	for range vectorDocs {
		var words []string
		for range 3 + random.IntN(6) {
			words = append(words, term(random.IntN(vectorTerms)))
		}
		w.texts = append(w.texts, strings.Join(words, " "))
	}
	var similarities *softcosine.Similarities
	w.vocabulary, similarities = softcosine.FromMatrix(w.s)
	idf := make([]float64, w.vocabulary.Len())
	for i := range idf {
		idf[i] = simmatrix.IDF(int64(w.weights.Row(w.vocabulary.Term(int32(i))).DocFreq()), vectorDocs)
	}
	if w.space, err = softcosine.NewSpace(idf, similarities); err != nil {
		t.Fatal(err)
	}
	writeEncoded(t, w.matrix, func(b *bytes.Buffer) error { return simmatrix.Encode(b, w.s) })
	return w
}

func writeEncoded(t *testing.T, path string, encode func(*bytes.Buffer) error) {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func frequencies(text string) (x []vectors.Coordinate) {
	for word := range strings.FieldsSeq(text) {
		x = append(x, vectors.Coordinate{Term: word, Value: 1})
	}
	return x
}

// soft is the measure.
func (w *vectorWorld) soft(t *testing.T, x, y string) float64 {
	t.Helper()
	vector := func(text string) softcosine.Vector {
		values := map[int32]float64{}
		for _, c := range frequencies(text) {
			i, _ := w.vocabulary.Number(c.Term)
			values[i]++
		}
		return softcosine.NewVector(values)
	}
	s, err := w.space.Soft(vector(x), vector(y))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// model returns a model that cuts nothing, and its file.
func (w *vectorWorld) model(t *testing.T, store vectors.Store) (m *vectors.Model, path string) {
	t.Helper()
	meta := vectors.Meta{Store: store, Normalization: vectors.Soft, Field: "body", Strength: 1}
	var err error
	if store.Dense() {
		meta.Dims = vectorTerms + 1
		var docs [][]vectors.Coordinate
		for _, text := range w.texts {
			docs = append(docs, frequencies(text))
		}
		m, err = vectors.Learn(t.Context(), meta, w.s, w.weights, docs, nil)
	} else {
		m, err = vectors.New(meta, w.s, w.weights)
	}
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(newDir(t, "vectors"), string(store))
	writeEncoded(t, path, func(b *bytes.Buffer) error { return m.Write(b) })
	return m, path
}

// vectorsOf returns what the field for vectors holds of a text.
func vectorsOf(m *vectors.Model, text string) any {
	if m.Meta().Store.Dense() {
		v, _ := m.Documents().Dense(frequencies(text))
		return v
	}
	coordinates, _ := m.Documents().Sparse(frequencies(text))
	features := map[string]float32{}
	for _, c := range coordinates {
		features[vectors.FeatureName(c.Term)] = vectors.Feature(c.Value)
	}
	return features
}

// makeVectors makes an index of the texts with vectors that are said to be by a
// model, in a field of the type given.
func (w *vectorWorld) makeVectors(t *testing.T, e *engine, index string, m *vectors.Model, fieldType section, value func(text string) any) {
	t.Helper()
	settings := section{"number_of_shards": 1, "number_of_replicas": 0}
	if fieldType["type"] == string(vectors.KNNVector) {
		settings["index.knn"] = true
	}
	e.makeIndex(t, index, toJSON(t, section{
		"settings": settings,
		"mappings": section{"properties": section{
			"body": section{"type": "text", "analyzer": "whitespace"}, "uid": section{"type": "keyword"},
			vectors.Object:      section{"properties": section{"body": fieldType}},
			vectors.ModelObject: section{"properties": section{"body": section{"type": "keyword"}}},
		}},
	}))
	var docs []document
	for i, text := range w.texts {
		docs = append(docs, document{strconv.Itoa(i), map[string]any{
			"body": text, vectors.Object: section{"body": value(text)}, vectors.ModelObject: section{"body": m.ID()},
		}})
	}
	e.index(t, index, withIDs(docs))
}

// startVectors serves a model in three ways, by the default profile alone.
func (w *vectorWorld) startVectors(t *testing.T, e *engine, models ...string) *akin {
	t.Helper()
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": section{"mode": "vectors", "soft_weight": 1, "max_doc_share": 1, "budget": widePatience},
		"profiles":  section{"blend": section{"soft_weight": 0.3}, "same": section{"matching": "same"}, "bm25": section{"mode": "bm25"}},
		"matrices":  []section{{"name": "s", "file": w.matrix}},
		"vectors":   models,
	})
	a.awaitMatrix(t, "s")
	return a
}

var sparseType, featuresType = section{"type": "sparse_vector"}, section{"type": "rank_features"}

// denseType is without the quantization that is usual, whose errors are larger.
func denseType(dims int) section {
	return section{"type": "dense_vector", "dims": dims, "index": true, "similarity": "dot_product", "index_options": section{"type": "hnsw"}}
}

// servedStores returns what an engine of the tests holds vectors in.
func servedStores(e *engine) map[vectors.Store]section {
	switch {
	case strings.HasPrefix(e.name, "opensearch"):
		return map[vectors.Store]section{vectors.RankFeatures: featuresType}
	case e.name == "elasticsearch7": // see TestRefusedVectorsFailOpen
		return nil
	}
	return map[vectors.Store]section{vectors.SparseVector: sparseType, vectors.DenseVector: denseType(vectorTerms + 1)}
}

// TestVectorsScoreByTheSoftCosine has vectors that lose nothing.
func TestVectorsScoreByTheSoftCosine(t *testing.T) {
	w := newVectorWorld(t)
	eachEngine(t, func(t *testing.T, e *engine) {
		for store, fieldType := range servedStores(e) {
			t.Run(string(store), func(t *testing.T) {
				m, path := w.model(t, store)
				index := "akin-e2e-vectors-" + strings.ReplaceAll(string(store), "_", "-")
				w.makeVectors(t, e, index, m, fieldType, func(text string) any { return vectorsOf(m, text) })
				a := w.startVectors(t, e, path)
				for _, query := range []string{"t03", "t09 t01 t09 t20", "t05 t06 t07 t08 t23", "t11 unknown"} {
					w.checkScores(t, e, a, index, store, query)
				}
				explained := a.explain(t, index, matchBody("t03"))
				if c := explained.Clauses[0]; c.Form != "vectors" || c.Phase != "query" || c.Reason != "" || c.Matrix != string(store)+"@"+m.ID() {
					t.Errorf("explained as %+v", c)
				}
				if n := a.metric(t, requestsMetric, `outcome="failed_open"`); n != 0 {
					t.Errorf("%v searches failed open", n)
				}
			})
		}
	})
}

// checkScores compares the hits of a query in all profiles with the measure.
func (w *vectorWorld) checkScores(t *testing.T, e *engine, a *akin, index string, store vectors.Store, query string) {
	t.Helper()
	search := func(c cluster, parameters string) map[string]float64 {
		hits, err := c.search(t.Context(), "/"+index+"/_search"+parameters, listBody(query, 100))
		if err != nil {
			t.Fatal(err)
		}
		scores := map[string]float64{}
		for i, hit := range hits.Hits.Hits {
			if scores[hit.ID] = hit.Score; i > 0 && hit.Score > hits.Hits.Hits[i-1].Score {
				t.Errorf("%s%s: hit %d is out of order", query, parameters, i)
			}
		}
		return scores
	}
	plain, alone, same, blend := search(e.cluster, ""), search(a.cluster, ""), search(a.cluster, "?akin_profile=same"), search(a.cluster, "?akin_profile=blend")
	known := strings.TrimSuffix(query, " unknown")
	smallest, largest := math.Inf(1), 0.0
	for i, text := range w.texts {
		id := strconv.Itoa(i)
		want := w.soft(t, known, text)
		if known != query && !store.Dense() { // a word that the model does not know makes the query longer
			v, _ := w.vocabulary.Number(known)
			weight := w.space.Weight(v)
			want *= weight / math.Hypot(weight, simmatrix.IDF(0, vectorDocs))
		}
		found, near := plain[id] > 0, want > 1e-6
		if store.Dense() {
			want, near = (1+want)/2, true
		}
		if got, ok := alone[id]; ok != (found || near) || near && math.Abs(got-want) > 0.003*want {
			t.Errorf("%s, document %s: found %t, score %v, the measure is %v", query, id, ok, got, want)
		}
		if got, ok := same[id]; ok != found || ok && math.Abs(got-want) > 0.003*want {
			t.Errorf("%s, document %s, matching same: found %t, score %v, the measure is %v", query, id, ok, got, want)
		}
		if near { // the blend is BM25 and a constant times the measure
			smallest, largest = min(smallest, (blend[id]-plain[id])/want), max(largest, (blend[id]-plain[id])/want)
		}
	}
	if !(smallest > 0.5 && largest < 1.01*smallest) {
		t.Errorf("%s: what a blend adds to BM25 is %v to %v times the measure", query, smallest, largest)
	}
}

// TestVectorsOfOtherModelsDoNotCount has documents whose vectors are the best
// by another model, and an index without vectors.
func TestVectorsOfOtherModelsDoNotCount(t *testing.T) {
	w := newVectorWorld(t)
	eachEngine(t, func(t *testing.T, e *engine) {
		for store, fieldType := range servedStores(e) {
			t.Run(string(store), func(t *testing.T) { w.checkOtherModels(t, e, store, fieldType) })
		}
	})
}

// checkOtherModels searches for "t03" with as many nearest documents as there
// are of another model.
func (w *vectorWorld) checkOtherModels(t *testing.T, e *engine, store vectors.Store, fieldType section) {
	t.Helper()
	const query, others = "t03", 5
	m, path := w.model(t, store)
	index, bare := "akin-e2e-vectors-mixed", "akin-e2e-vectors-bare"
	w.makeVectors(t, e, index, m, fieldType, func(text string) any { return vectorsOf(m, text) })
	e.makeIndex(t, bare, `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{"body":{"type":"text","analyzer":"whitespace"},"uid":{"type":"keyword"}}}}`)
	e.index(t, bare, withIDs([]document{{"bare", map[string]any{"body": query}}}))
	var docs []document
	for i := range others {
		docs = append(docs, document{"other" + strconv.Itoa(i), map[string]any{
			"body": "t00", vectors.Object: section{"body": vectorsOf(m, query)}, vectors.ModelObject: section{"body": "another"},
		}})
	}
	e.index(t, index, withIDs(docs))
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": section{"mode": "vectors", "soft_weight": 1, "max_doc_share": 1, "rerank_window": others, "budget": widePatience},
		"profiles":  section{"same": section{"matching": "same"}},
		"matrices":  []section{{"name": "s", "file": w.matrix}},
		"vectors":   []string{path},
	})
	a.awaitMatrix(t, "s")
	for _, profile := range []string{"", "?akin_profile=same"} {
		hits, err := a.search(t.Context(), "/"+index+","+bare+"/_search"+profile, listBody(query, 100))
		if err != nil {
			t.Fatal(err)
		}
		ids, ranked := hits.ids(), 0
		for _, hit := range hits.Hits.Hits {
			if hit.Score > 0.01 {
				ranked++
			}
		}
		if ranked < others || !slices.Contains(ids, "bare") || slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(id, "other") }) {
			t.Errorf("%s: %d ranked by vectors of %v", profile, ranked, ids)
		}
	}
	if c := a.explain(t, index+","+bare, matchBody(query)).Clauses[0]; c.Form != "vectors" {
		t.Errorf("explained as %+v", c)
	}
	if n := a.metric(t, requestsMetric, `outcome="failed_open"`) + a.metric(t, refusedMetric, `original="accepted"`); n != 0 {
		t.Errorf("%v searches failed open", n)
	}
}

// TestRefusedVectorsFailOpen has documents that say they have vectors by the
// model, in a field of another type.
func TestRefusedVectorsFailOpen(t *testing.T) {
	w := newVectorWorld(t)
	eachEngine(t, func(t *testing.T, e *engine) {
		const index = "akin-e2e-vectors-refused"
		store, fieldType, value := vectors.RankFeatures, section{"type": "object"}, any(section{"t03": 1})
		if servedStores(e)[vectors.DenseVector] != nil {
			store, fieldType, value = vectors.DenseVector, denseType(2), []float32{0, 1}
		}
		m, path := w.model(t, store)
		w.makeVectors(t, e, index, m, fieldType, func(string) any { return value })
		a := w.startVectors(t, e, path)
		want, err := e.search(t.Context(), "/"+index+"/_search", matchBody("t03 t04"))
		if err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			got, err := a.search(t.Context(), "/"+index+"/_search", matchBody("t03 t04"))
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("search %d: %v, other hits than those of the original:\n%s", n, err, diff)
			}
		}
		if n := a.metric(t, refusedMetric, `original="accepted"`); n < 1 {
			t.Errorf("%v searches are counted as rejected", n)
		}
	})
}

// TestDocumentsWithOtherVectorsAreRankedByBM25 asks for a model by which few
// documents have vectors.
func TestDocumentsWithOtherVectorsAreRankedByBM25(t *testing.T) {
	w := newVectorWorld(t)
	e := oneEngine(t)
	const index = "akin-e2e-vectors-other"
	m, path := w.model(t, vectors.RankFeatures)
	w.makeVectors(t, e, index, m, section{"type": "object", "enabled": false}, func(string) any { return section{} })
	for i := range vectorDocs / 5 {
		e.must(t, http.MethodPost, fmt.Sprintf("/%s/_update/%d?refresh", index, i), toJSON(t, section{"doc": section{vectors.ModelObject: section{"body": "another"}}}))
	}
	a := w.startVectors(t, e, path)
	c := a.explain(t, index, matchBody("t03")).Clauses[0]
	bm25 := a.explain(t, index+"?akin_profile=bm25", matchBody("t03")).Clauses[0]
	if c.Reason != "no_vectors" || c.Form == "vectors" || c.Form != bm25.Form {
		t.Errorf("explained as %+v, in the mode bm25 as %+v", c, bm25)
	}
	if !slices.ContainsFunc(a.logLines(t), func(line map[string]any) bool {
		return line["msg"] == "a model is not used: too few documents have vectors by it" && line["model"] == m.ID()
	}) {
		t.Error("the log does not say so")
	}
}
