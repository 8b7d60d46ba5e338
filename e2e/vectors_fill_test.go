package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
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
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
)

// vectorStores are the stores of the engines as they are started here: those of
// Elasticsearch 8 and 9 have only the core of the server, and that of 7 is too
// old for any.
var vectorStores = map[string][]vectors.Store{
	"opensearch2": {vectors.RankFeatures}, "opensearch3": {vectors.RankFeatures},
	"elasticsearch8": {vectors.SparseVector, vectors.DenseVector}, "elasticsearch9": {vectors.SparseVector, vectors.DenseVector},
}

const vectorWords = 80

// vectorWord is a word of the documents: some have a dot, which engines read as
// a path in the name of a feature.
func vectorWord(i int) string {
	if i%10 == 0 {
		return strconv.Itoa(i) + ".5"
	}
	return "word" + strconv.Itoa(i)
}

// vectorTexts returns documents, some without a term, and queries of these
// words.
func vectorTexts(random *rand.Rand) *collection {
	text := func(words int) string {
		var b strings.Builder
		for range words {
			b.WriteString(vectorWord(int(random.ExpFloat64()*vectorWords/4)%vectorWords) + " ")
		}
		return b.String()
	}
	c := &collection{name: "vectors"}
	for i := range 150 {
		var body any = text(5 + i%40)
		switch {
		case i%50 == 7:
			body = "?!"
		case i%5 == 0:
			body = []string{text(4), text(9)}
		}
		c.docs = append(c.docs, document{strconv.Itoa(i), map[string]any{"body": body}})
	}
	c.docs = append(c.docs, document{"other", map[string]any{"title": "no body"}})
	for i := range 25 {
		c.queries = append(c.queries, judgedQuery{id: strconv.Itoa(i), text: text(1 + i%6)})
	}
	return c
}

// writeSimilarities writes a matrix over the words, symmetric and dominant, in
// which some have a neighbor that no document has.
func writeSimilarities(t *testing.T, random *rand.Rand) string {
	t.Helper()
	var rows []simmatrix.TermRow
	for i := range vectorWords + 5 {
		row := simmatrix.TermRow{Term: vectorWord(i), DocFreq: 1}
		for range 6 {
			if j := random.IntN(vectorWords + 5); j != i {
				row.Neighbors = append(row.Neighbors, simmatrix.Neighbor{Term: vectorWord(j), Similarity: random.Float32()*0.4 + 0.01})
			}
		}
		slices.SortFunc(row.Neighbors, func(a, b simmatrix.Neighbor) int { return cmp.Compare(a.Term, b.Term) })
		row.Neighbors = slices.CompactFunc(row.Neighbors, func(a, b simmatrix.Neighbor) bool { return a.Term == b.Term })
		rows = append(rows, row)
	}
	m, err := simmatrix.New(simmatrix.Meta{}, rows)
	if err == nil {
		m, err = combine.Sparsify(m, combine.SparsifyOptions{Symmetric: true, Dominant: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := simmatrix.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(newDir(t, "vectors"), "s.akin")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A vectorIndex is an index whose documents get vectors.
type vectorIndex struct {
	*hardSpace

	files hardFiles
	model *vectors.Model
}

// make writes a model with more flags to a file.
func (v *vectorIndex) make(t *testing.T, path string, flags ...string) {
	t.Helper()
	mustAkin(t, append([]string{
		"vectors", "model", "--cluster", v.e.url, "--index", v.index, "--field", "body",
		"--matrix", v.files.matrix, "--weights", v.files.weights, "--out", path,
	}, flags...)...)
}

// fill makes a model with more flags and gives the documents their vectors.
// It returns what the backfill says.
func (v *vectorIndex) fill(t *testing.T, flags ...string) string {
	t.Helper()
	path := filepath.Join(newDir(t, "vectors"), "model.akin")
	v.make(t, path, flags...)
	v.read(t, path)
	return v.backfill(t, path)
}

// backfill gives the documents the vectors of the file of a model, and returns
// what it says.
func (v *vectorIndex) backfill(t *testing.T, path string, flags ...string) string {
	t.Helper()
	r := runAkin(t, append(v.command(v.e.url, path), flags...)...)
	if r.status != 0 {
		t.Fatalf("backfill: exit status %d\n%s", r.status, r.stderr)
	}
	return r.stderr
}

// command returns the arguments of a backfill.
func (v *vectorIndex) command(cluster, path string) []string {
	return []string{"vectors", "backfill", "--cluster", cluster, "--index", v.index, "--field", "body", "--model", path}
}

// read reads the file of the model.
func (v *vectorIndex) read(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if v.model, err = vectors.Read(file); err != nil {
		t.Fatal(err)
	}
}

// query returns the terms of a text as the model takes them, and as the space.
func (v *vectorIndex) query(t *testing.T, text string) ([]vectors.Coordinate, map[string]int) {
	t.Helper()
	counts := map[string]int{}
	for _, term := range v.analyze(t, text) {
		counts[term]++
	}
	var x []vectors.Coordinate
	for _, term := range slices.Sorted(maps.Keys(counts)) {
		x = append(x, vectors.Coordinate{Term: term, Value: float64(counts[term])})
	}
	return x, counts
}

// vectorQuery returns the search for the vector of a query: the first hits of
// an engine's own exact scores, for as many candidates as there are documents.
func vectorQuery(t *testing.T, m *vectors.Model, x []vectors.Coordinate, size int) string {
	t.Helper()
	field := vectors.Path("body")
	body := section{"size": size, "_source": false}
	if m.Meta().Store == vectors.KNNVector {
		body["query"] = section{"knn": section{field: section{"vector": m.DenseQuery(x), "k": size}}}
		return toJSON(t, body)
	}
	if m.Meta().Store.Dense() {
		body["knn"] = section{"field": field, "query_vector": m.DenseQuery(x), "k": size, "num_candidates": size}
		return toJSON(t, body)
	}
	var should []section
	for _, c := range m.SparseQuery(x) {
		name := vectors.FeatureName(c.Term)
		if m.Meta().Store == vectors.SparseVector {
			should = append(should, section{"term": section{field: section{"value": name, "boost": c.Value}}})
		} else {
			should = append(should, section{"rank_feature": section{"field": field + "." + name, "boost": c.Value, "linear": section{}}})
		}
	}
	body["query"] = section{"bool": section{"should": should}}
	return toJSON(t, body)
}

// TestVectorScoresAreTheMeasure gives documents their vectors, and compares the
// engine's scores with the soft cosine that softcosine computes from S, W and
// the terms of the documents, within the error that the vectors state.
func TestVectorScoresAreTheMeasure(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(17, 4))
	c := vectorTexts(random)
	matrix := writeSimilarities(t, random)
	eachEngine(t, func(t *testing.T, e *engine) {
		for _, store := range vectorStores[e.name] {
			checkVectorScores(t, e, store, c, matrix)
		}
	})
}

// checkVectorScores compares the scores of whole vectors, and of shorter ones.
func checkVectorScores(t *testing.T, e *engine, store vectors.Store, c *collection, matrix string) {
	t.Helper()
	index := "akin-e2e-vectors-" + strings.ReplaceAll(string(store), "_", "-")
	for _, flags := range [][]string{{"--terms", "0", "--dims", "500"}, {"--terms", "20", "--dims", "24"}} {
		flags = append([]string{"--store", string(store), "--strength", "1"}, flags...)
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			definition := section{
				"settings": section{"number_of_shards": 1, "number_of_replicas": 0},
				"mappings": section{"properties": section{"body": section{"type": "text"}}},
			}
			if store == vectors.KNNVector {
				definition["settings"] = section{"number_of_shards": 1, "number_of_replicas": 0, "index.knn": true}
			}
			e.makeIndex(t, index, toJSON(t, definition))
			e.index(t, index, c.docs)
			files := hardFiles{matrix, filepath.Join(newDir(t, "vectors"), "w.akin")}
			e.freezeWeights(t, index, files)
			v := &vectorIndex{hardSpace: newHardSpace(t, e, index, c, files), files: files}
			said := v.fill(t, flags...)
			if !strings.Contains(said, "150 documents written, 3 of them without terms") {
				t.Errorf("backfill said:\n%s", said)
			}
			worst := 0.0
			for _, q := range c.queries {
				worst = max(worst, v.check(t, q))
			}
			t.Logf("largest deviation %.2g", worst)
		})
	}
}

// check compares the scores of all hits of a query with the measure. It returns
// the largest deviation.
func (v *vectorIndex) check(t *testing.T, q judgedQuery) float64 {
	t.Helper()
	x, counts := v.query(t, q.text)
	hits, err := v.e.search(t.Context(), "/"+v.index+"/_search", vectorQuery(t, v.model, x, 200))
	if err != nil {
		t.Fatal(err)
	}
	scores := map[string]float64{}
	for _, h := range hits.Hits.Hits {
		scores[h.ID] = h.Score
	}
	documents, worst := v.model.Documents(), 0.0
	for id, doc := range v.docs {
		if doc.Len() == 0 {
			if _, found := scores[id]; found {
				t.Errorf("query %s: document %s, which has no terms, is a hit", q.id, id)
			}
			continue
		}
		want, err := v.space.Soft(v.vector(counts), doc)
		if err != nil {
			t.Fatal(err)
		}
		var y []vectors.Coordinate
		for i := range int32(v.vocabulary.Len()) {
			if n := doc.At(i); n > 0 {
				y = append(y, vectors.Coordinate{Term: v.vocabulary.Term(i), Value: n})
			}
		}
		got, below := scores[id], 0.0
		var above float64
		if v.model.Meta().Store.Dense() {
			_, share := documents.Dense(y)
			_, queryShare := documents.Dense(x)
			got = dotOf(v.model.Meta().Store, got) * math.Sqrt(queryShare)
			below = math.Sqrt((1-share)*(1-queryShare)) + 2e-6 // the second of the engine's 32 bits
			above = below
		} else {
			_, cut := documents.Sparse(y)
			for _, c := range v.model.SparseQuery(x) {
				below += c.Value * cut.Largest
			}
			above = want/512 + 1e-6 // Lucene's 9 bits of a feature
			below += above
		}
		if got < want-below || got > want+above {
			t.Errorf("query %s, document %s: score %v, the measure is %v − %.2g + %.2g", q.id, id, got, want, below, above)
		}
		worst = max(worst, math.Abs(got-want))
	}
	return worst
}

// dotOf returns the dot product of unit vectors that a score is made of.
func dotOf(store vectors.Store, score float64) float64 {
	switch {
	case store == vectors.DenseVector:
		return 2*score - 1
	case score < 1: // of OpenSearch's inner products
		return 1 - 1/score
	default:
		return score - 1
	}
}

// TestVectorsOfAnotherModelAreReplaced changes S, and stops short of what an
// engine cannot hold.
func TestVectorsOfAnotherModelAreReplaced(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(17, 5))
	c := vectorTexts(random)
	matrix := writeSimilarities(t, random)
	eachEngine(t, func(t *testing.T, e *engine) {
		const index = "akin-e2e-vectors-again"
		e.makeIndex(t, index, `{"settings":{"number_of_shards":2,"number_of_replicas":0},"mappings":{"properties":{"body":{"type":"text"}}}}`)
		e.index(t, index, c.docs)
		files := hardFiles{matrix, filepath.Join(newDir(t, "vectors"), "w.akin")}
		e.freezeWeights(t, index, files)
		v := &vectorIndex{hardSpace: &hardSpace{e: e, index: index}, files: files}
		model := []string{
			"vectors", "model", "--cluster", e.url, "--index", index, "--field", "body", "--matrix", matrix, "--weights", files.weights,
			"--out", filepath.Join(newDir(t, "vectors"), "none.akin"),
		}
		for store, want := range map[vectors.Store]string{
			vectors.SparseVector: "--store rank_features", vectors.DenseVector: "dense_vector", vectors.KNNVector: "--store dense_vector",
			vectors.RankFeatures: "7.12",
		} {
			held := slices.Contains(vectorStores[e.name], store)
			if held || store == vectors.KNNVector && e.family == "opensearch" || store == vectors.RankFeatures && e.name != "elasticsearch7" {
				continue // what depends on plugins is seen when the mapping is put
			}
			if r := runAkin(t, append(model, "--store", string(store))...); r.status != 1 || !strings.Contains(r.stderr, want) {
				t.Errorf("%s: exit status %d, %s", store, r.status, r.stderr)
			}
		}
		if e.name == "elasticsearch8" {
			r := runAkin(t, append(model, "--store", "dense_vector", "--dims", "5000")...)
			if r.status != 1 || !strings.Contains(r.stderr, "--dims 4096") {
				t.Errorf("5000 dimensions: exit status %d, %s", r.status, r.stderr)
			}
		}
		if len(vectorStores[e.name]) == 0 {
			return
		}
		store := vectorStores[e.name][0]
		v.fill(t, "--store", string(store), "--terms", "30")
		first := v.model.ID()
		of := v.models(t)
		if len(of) != 1 || of[first] != 150 {
			t.Errorf("documents by model %v, want 150 of %s", of, first)
		}
		v.fill(t, "--store", string(store), "--terms", "3")
		if of = v.models(t); v.model.ID() == first || len(of) != 1 || of[v.model.ID()] != 150 {
			t.Errorf("documents by model %v, want 150 of %s", of, v.model.ID())
		}
		if stored := v.vectors(t)["1"]; len(stored) != 3 {
			t.Errorf("the vector is %v, want 3 coordinates", stored)
		}
		if said := v.fill(t, "--store", string(store), "--terms", "3"); !strings.Contains(said, ": 0 documents to do") {
			t.Errorf("once more: %s", said)
		}
		path := filepath.Join(newDir(t, "vectors"), "model.akin")
		v.make(t, path, "--store", string(store), "--terms", "3")
		if said := v.backfill(t, path, "--all"); !strings.Contains(said, "\n0 documents written") {
			t.Errorf("all once more: %s", said)
		}
		// A partial update of another field keeps the vector, also where the engine
		// leaves vectors out of what it shows of documents.
		e.must(t, http.MethodPost, "/"+index+"/_update/1?refresh=true", `{"doc":{"title":"changed"}}`)
		if stored := v.vectors(t)["1"]; len(stored) != 3 {
			t.Errorf("after an update of another field the vector is %v", stored)
		}
	})
}

// vectors returns the sparse vectors of all documents, by id.
func (v *vectorIndex) vectors(t *testing.T) map[string]map[string]float32 {
	t.Helper()
	// Named, they are shown by engines, too, that leave out vectors.
	answer := v.e.must(t, http.MethodPost, "/"+v.index+"/_search", `{"size":5000,"_source":["akin_vector.body"]}`)
	var found struct {
		Hits struct {
			Hits []struct {
				ID     string `json:"_id"`
				Source struct {
					Vector map[string]json.RawMessage `json:"akin_vector"`
				} `json:"_source"`
			}
		}
	}
	decode(t, answer, &found)
	all := map[string]map[string]float32{}
	for _, h := range found.Hits.Hits {
		if raw := bytes.Trim(h.Source.Vector["body"], "[]"); len(raw) > 0 { // an array, or what was in it
			var features map[string]float32
			decode(t, raw, &features)
			all[h.ID] = features
		}
	}
	return all
}

// models counts the documents by the id of the model that made their vectors.
func (v *vectorIndex) models(t *testing.T) map[string]int {
	t.Helper()
	answer := v.e.must(t, http.MethodPost, "/"+v.index+"/_search",
		fmt.Sprintf(`{"size":0,"aggs":{"of":{"terms":{"field":%q}}}}`, vectors.ModelPath("body")))
	var counted struct {
		Aggregations struct {
			Of struct {
				Buckets []struct {
					Key   string
					Count int `json:"doc_count"`
				}
			}
		}
	}
	if err := json.Unmarshal(answer, &counted); err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, b := range counted.Aggregations.Of.Buckets {
		found[b.Key] = b.Count
	}
	return found
}

// TestTermsThatAreTooLongForAVectorAreLeftOut has terms that the engine takes
// in a text, and whose names as features it does not take.
func TestTermsThatAreTooLongForAVectorAreLeftOut(t *testing.T) {
	t.Parallel()
	matrix := writeSimilarities(t, rand.New(rand.NewPCG(17, 7)))
	eachEngine(t, func(t *testing.T, e *engine) {
		if len(vectorStores[e.name]) == 0 {
			return
		}
		const index = "akin-e2e-vectors-long"
		e.makeIndex(t, index, `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{"body":{"type":"text","analyzer":"keyword"}}}}`)
		fits, long := strings.Repeat("x", 32_766), strings.Repeat(".", 10_923) // %2E
		e.index(t, index, []document{
			{"0", section{"body": "word1"}}, {"1", section{"body": []string{"word1", long, fits}}}, {"2", section{"body": long}},
		})
		files := hardFiles{matrix, filepath.Join(newDir(t, "vectors"), "w.akin")}
		e.freezeWeights(t, index, files)
		v := &vectorIndex{hardSpace: &hardSpace{e: e, index: index}, files: files}
		said := v.fill(t, "--store", string(vectorStores[e.name][0]), "--terms", "0")
		if !strings.Contains(said, "3 documents written, 1 of them without terms") || !strings.Contains(said, "1 of them cut:") {
			t.Errorf("the backfill says\n%s", said)
		}
		stored := v.vectors(t)
		if one := stored["1"]; len(stored) != 2 || one["word1"] == 0 || one[fits] == 0 || len(one) != len(stored["0"])+1 {
			t.Errorf("%d vectors, of documents 0 and 1 with %d and %d coordinates", len(stored), len(stored["0"]), len(one))
		}
	})
}
