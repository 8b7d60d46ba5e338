package e2e

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/softcosine"
)

// A hardSetting is an index for the mode hard: how its linear field scores, in
// how many shards.
type hardSetting struct {
	name     string
	scripted bool // else by BM25
	shards   int
	// sorted keeps the documents of a segment in the order of their ids, so that
	// hits with the same score do not come in the order of a backfill's writes.
	sorted bool
	// tolerance is how far the engine's scores may be off, relatively.
	tolerance float64
}

// hardSettings are those of an engine for a collection: with a script where it
// takes one, else without, and on one engine both. Shards have statistics of
// their own.
func hardSettings(e *engine, collection string) []hardSetting {
	shards := map[string]int{"med": 1, "cran": 3}[collection]
	var settings []hardSetting
	if !e.scripts || e.name == qualityEngine {
		settings = append(settings, hardSetting{name: "bm25", scripted: false, shards: shards, tolerance: 5e-3})
	}
	if e.scripts {
		settings = append(settings, hardSetting{name: "scripted", scripted: true, shards: 4 - shards, tolerance: 1e-5})
	}
	return settings
}

// hardNeighbors is the number of neighbors in a row of S: few enough for the
// longest query to stay within the 1,024 clauses that the engines take.
const hardNeighbors = 30

// TestHardModeScoresAreTheMeasure makes an index as docs/modes.md says,
// learns S from it, freezes weights, stores the norms, and has akin rank all
// judged queries in the mode hard. The scores have to be those that softcosine
// computes from the two files and the terms of the index, with no factor
// between them.
func TestHardModeScoresAreTheMeasure(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		for _, name := range usualCollections {
			h := &hardCollection{engine: e, collection: loadCollection(t, name), index: "akin-e2e-hard-" + name}
			for _, s := range hardSettings(e, name) {
				t.Run(name+", "+s.name, func(t *testing.T) { h.test(t, s) })
			}
		}
	})
}

// A hardCollection is a judged collection in an index of an engine. All that
// depends only on its texts is made once.
type hardCollection struct {
	*collection

	engine *engine
	index  string
	files  hardFiles
	space  *hardSpace
}

// test ranks all judged queries.
func (h *hardCollection) test(t *testing.T, s hardSetting) {
	t.Helper()
	h.engine.makeHardIndex(t, h.index, s, "english", h.docs)
	if h.space == nil {
		h.files = h.engine.makeHardFiles(t, h.index, h.collection)
		h.space = newHardSpace(t, h.engine, h.index, h.collection, h.files)
	}
	h.engine.storeNorms(t, h.index, h.files)
	a := startHardAkin(t, h.engine, h.files, nil)
	worst := 0.0
	for _, q := range h.queries {
		hits, err := a.search(t.Context(), "/"+h.index+"/_search", listBody(q.text, hardDepth(h.engine)))
		if err != nil {
			t.Fatal(err)
		}
		worst = max(worst, h.space.check(t, q, hits, s.tolerance))
	}
	if sent, n := len(h.queries), int(a.metric(t, requestsMetric, rewrittenOutcome)); n != sent {
		t.Errorf("%d of %d searches were rewritten", n, sent)
	}
	explained := a.explain(t, h.index, matchBody(h.queries[0].text))
	if len(explained.Clauses) != 1 || explained.Clauses[0].Form != "hard" || explained.Clauses[0].Reason != "" {
		t.Errorf("explained as %+v", explained.Clauses)
	}
	t.Logf("%d queries, largest deviation %.2g", len(h.queries), worst)
}

// hardDepth is how many hits of a query are looked at: on one engine all. The
// others take the most of their time to read documents.
func hardDepth(e *engine) int {
	if e.name == qualityEngine {
		return 1500
	}
	return 200
}

// makeHardIndex indexes documents in an index as docs/modes.md has it.
func (e *engine) makeHardIndex(t *testing.T, index string, s hardSetting, analyzer string, docs []document) {
	t.Helper()
	blocks := openPage(t, "modes.md", e).blocks("json")
	body := strings.NewReplacer(`"title"`, `"body"`, "english", analyzer).Replace(blocks[0])
	var definition, bm25 map[string]any
	if err := errors.Join(json.Unmarshal([]byte(body), &definition), json.Unmarshal([]byte(blocks[1]), &bm25)); err != nil {
		t.Fatalf("%v: %s", err, blocks)
	}
	settings, _ := definition["settings"].(map[string]any)
	if settings["similarity"] == nil {
		t.Fatalf("no similarity in %s", body)
	}
	if !s.scripted {
		settings["similarity"] = bm25
	}
	properties, _ := definition["mappings"].(map[string]any)["properties"].(map[string]any)
	properties["uid"] = section{"type": "keyword"}
	maps.Copy(settings, map[string]any{"number_of_shards": s.shards, "number_of_replicas": 0})
	if s.sorted {
		settings["sort.field"] = "uid"
	}
	e.makeIndex(t, index, toJSON(t, definition))
	e.index(t, index, withIDs(docs))
}

// hardFiles are the matrix file with S and that with W.
type hardFiles struct{ matrix, weights string }

// makeHardFiles learns S with hardNeighbors from an index of a collection, once
// for all of them, and freezes the weights of this one.
func (e *engine) makeHardFiles(t *testing.T, index string, c *collection) hardFiles {
	t.Helper()
	matrix := e.learn(t, "hard "+c.name, func() []string {
		return []string{"--index", index, "--top", strconv.Itoa(hardNeighbors)}
	})
	files := hardFiles{matrix, filepath.Join(newDir(t, "hard"), "w.akin")}
	e.freezeWeights(t, index, files)
	return files
}

func (e *engine) freezeWeights(t *testing.T, index string, files hardFiles) {
	t.Helper()
	mustAkin(t, "norms", "snapshot", "--cluster", e.url, "--index", index, "--field", "body", "--out", files.weights)
}

// storeNorms stores the norms of all documents.
func (e *engine) storeNorms(t *testing.T, index string, files hardFiles) {
	t.Helper()
	mustAkin(t, "norms", "backfill", "--cluster", e.url, "--index", index, "--field", "body", "--weights", files.weights)
	e.must(t, http.MethodPost, "/"+index+"/_refresh", "")
}

// startHardAkin serves the two files in the mode hard.
func startHardAkin(t *testing.T, e *engine, files hardFiles, expansion section) *akin {
	t.Helper()
	options := section{"mode": "hard", "budget": widePatience}
	maps.Copy(options, expansion)
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": options,
		"matrices":  []section{{"name": "s", "file": files.matrix}},
		"weights":   []section{{"name": "w", "file": files.weights}},
	})
	a.awaitMatrix(t, "s")
	return a
}

// A hardSpace computes the measure from S, W and the documents, without the
// engine's scores.
type hardSpace struct {
	e          *engine
	index      string
	vocabulary *softcosine.Vocabulary
	space      *softcosine.Space
	docs       map[string]softcosine.Vector
}

func newHardSpace(t *testing.T, e *engine, index string, c *collection, files hardFiles) *hardSpace {
	t.Helper()
	h := &hardSpace{e: e, index: index, docs: map[string]softcosine.Vector{}}
	counts := map[string]map[string]int{}
	extra := map[string]bool{}
	for docs := range slices.Chunk(c.docs, 200) {
		for id, terms := range h.termVectors(t, docs) {
			counts[id] = terms
			for term := range terms {
				extra[term] = true
			}
		}
	}
	for _, q := range c.queries {
		for _, term := range h.analyze(t, q.text) {
			extra[term] = true
		}
	}
	weights := readMatrix(t, files.weights)
	var s *softcosine.Similarities
	h.vocabulary, s = softcosine.FromMatrix(readMatrix(t, files.matrix), slices.Sorted(maps.Keys(extra))...)
	w := make([]float64, h.vocabulary.Len())
	for i := range w {
		docFreq := weights.Row(h.vocabulary.Term(int32(i))).DocFreq()
		w[i] = simmatrix.IDF(int64(docFreq), int64(weights.Meta().Docs))
	}
	var err error
	if h.space, err = softcosine.NewSpace(w, s); err != nil {
		t.Fatal(err)
	}
	for id, terms := range counts {
		h.docs[id] = h.vector(terms)
	}
	return h
}

func readMatrix(t *testing.T, path string) *simmatrix.Matrix {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	m, err := simmatrix.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// vector makes a vector of known terms.
func (h *hardSpace) vector(terms map[string]int) softcosine.Vector {
	values := map[int32]float64{}
	for term, n := range terms {
		if i, ok := h.vocabulary.Number(term); ok {
			values[i] = float64(n)
		}
	}
	return softcosine.NewVector(values)
}

// termVectors returns the frequencies of the terms that the index has of
// documents.
func (h *hardSpace) termVectors(t *testing.T, docs []document) map[string]map[string]int {
	t.Helper()
	var ids []string
	for _, d := range docs {
		ids = append(ids, d.id)
	}
	body := toJSON(t, map[string]any{"ids": ids, "parameters": map[string]any{
		"fields": []string{"body"}, "positions": false, "offsets": false, "field_statistics": false,
	}})
	var answer struct {
		Docs []struct {
			ID      string `json:"_id"`
			Vectors map[string]struct {
				Terms map[string]struct {
					Freq int `json:"term_freq"`
				}
			} `json:"term_vectors"`
		}
	}
	if err := json.Unmarshal(h.e.must(t, http.MethodPost, "/"+h.index+"/_mtermvectors", body), &answer); err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]int{}
	for _, d := range answer.Docs {
		found[d.ID] = map[string]int{}
		for term, v := range d.Vectors["body"].Terms {
			found[d.ID][term] = v.Freq
		}
	}
	return found
}

// analyze returns the index terms of a query.
func (h *hardSpace) analyze(t *testing.T, text string) []string {
	t.Helper()
	var answer struct{ Tokens []struct{ Token string } }
	body := toJSON(t, map[string]any{"field": "body", "text": text})
	if err := json.Unmarshal(h.e.must(t, http.MethodPost, "/"+h.index+"/_analyze", body), &answer); err != nil {
		t.Fatal(err)
	}
	var terms []string
	for _, token := range answer.Tokens {
		terms = append(terms, token.Token)
	}
	return terms
}

// check compares the hits of a query with the measure: of all documents that
// have one the best, with its scores, in its order except for ties.
// It returns the largest relative deviation of a score.
func (h *hardSpace) check(t *testing.T, q judgedQuery, hits hitList, tolerance float64) float64 {
	t.Helper()
	counts := map[string]int{}
	for _, term := range h.analyze(t, q.text) {
		counts[term]++
	}
	x := h.vector(counts)
	want := map[string]float64{}
	for id, y := range h.docs {
		if v := h.space.Hard(x, y); v > 0 {
			want[id] = v
		}
	}
	if n := len(hits.Hits.Hits); hits.Hits.Total.Value != len(want) || n != min(len(want), hardDepth(h.e)) {
		t.Errorf("query %s: %d of %d hits, want of %d", q.id, n, hits.Hits.Total.Value, len(want))
	}
	worst, before := 0.0, math.Inf(1)
	for i, hit := range hits.Hits.Hits {
		deviation := math.Abs(hit.Score/want[hit.ID] - 1)
		if !(deviation <= tolerance) {
			t.Errorf("query %s, hit %d, document %s: score %v, the measure is %v", q.id, i, hit.ID, hit.Score, want[hit.ID])
			return deviation
		}
		worst = max(worst, deviation)
		if want[hit.ID] > before*(1+2*tolerance) {
			t.Errorf("query %s, hit %d, document %s: %v comes behind %v", q.id, i, hit.ID, want[hit.ID], before)
		}
		before = min(before, want[hit.ID])
		delete(want, hit.ID)
	}
	for id, v := range want {
		if v > before*(1+2*tolerance) {
			t.Errorf("query %s, document %s: %v is not among the hits, of which the last has %v", q.id, id, v, before)
		}
	}
	return worst
}
