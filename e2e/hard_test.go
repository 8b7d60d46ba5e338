package e2e

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"strconv"
	"strings"
	"testing"

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

// hardFiles are the matrix file with S and that with W.
type hardFiles struct{ matrix, weights string }

// config serves the two files in a mode, in which only the measure ranks.
func (f hardFiles) config(mode string) section {
	return section{"expansion": section{"mode": mode, "soft_weight": 1}, "matrices": matrices("s", f.matrix), "weights": matrices("w", f.weights)}
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
	maps.Copy(settings, section{"number_of_shards": s.shards, "number_of_replicas": 0})
	if s.sorted {
		settings["sort.field"] = "uid"
	}
	e.makeIndex(t, index, toJSON(t, definition))
	e.index(t, index, withIDs(docs))
}

// makeHardFiles learns S with hardNeighbors from an index of a collection, once
// for all of them, and freezes the weights of this one.
func (e *engine) makeHardFiles(t *testing.T, index string, c *collection) hardFiles {
	t.Helper()
	matrix := e.learn(t, "hard "+c.name, func() []string {
		return []string{"--index", index, "--top", strconv.Itoa(hardNeighbors), "--language-model", "none"}
	})
	return hardFiles{matrix, e.freezeWeights(t, index, "body")}
}

// freezeWeights makes a file of the weights of a field.
func (e *engine) freezeWeights(t *testing.T, index, field string) string {
	t.Helper()
	out := newPath(t, "w.akin")
	mustAkin(t, append([]string{"index", "norms", "snapshot", "--out", out}, e.of(index, field)...)...)
	return out
}

// storeNorms stores the norms of a field of all documents, and unless matrix is
// "" their soft norms.
func (e *engine) storeNorms(t *testing.T, index, field, weights, matrix string) {
	t.Helper()
	mustAkin(t, append([]string{"index", "norms", "backfill", "--weights", weights, "--matrix", matrix}, e.of(index, field)...)...)
	e.refresh(t, index)
}

// TestExactModesScoreByTheMeasure makes an index as docs/modes.md says, learns S
// from it, freezes weights, stores both norms, and has akin rank all judged
// queries in the modes hard and softcosine. The scores have to be those that
// softcosine computes from the two files and the terms of the index, with no
// factor between them.
func TestExactModesScoreByTheMeasure(t *testing.T) {
	long(t)
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		depth := 200 // to read documents takes the engines most of the time
		if e.name == qualityEngine {
			depth = 1500 // all
		}
		for _, name := range usualCollections {
			c, index := loadCollection(t, name), "akin-e2e-hard-"+name
			var files hardFiles
			var measure *space
			for _, s := range hardSettings(e, name) {
				t.Run(name+", "+s.name, func(t *testing.T) {
					e.makeHardIndex(t, index, s, "english", c.docs)
					if measure == nil {
						files = e.makeHardFiles(t, index, c)
						measure = newSpace(t, e, index, "body", asHits(c.docs), c.queries, readMatrix(t, files.matrix), readMatrix(t, files.weights))
					}
					e.storeNorms(t, index, "body", files.weights, files.matrix)
					for mode, of := range map[string]func(x, y softcosine.Vector) float64{"hard": measure.Hard, "softcosine": func(x, y softcosine.Vector) float64 {
						v, err := measure.Soft(x, y)
						if err != nil {
							t.Fatal(err)
						}
						return v
					}} {
						a := setupWide(t, e, files.config(mode))
						rewritten := a.rewrites(t, func() {
							for _, q := range c.queries {
								checkMeasure(t, measure, of, q, a.find(t, index, listBody(q.text, depth)), depth, s.tolerance)
							}
						})
						if rewritten != len(c.queries) {
							t.Errorf("%d of %d searches were rewritten in the mode %s", rewritten, len(c.queries), mode)
						}
						a.checkExplained(t, index, relatedSearch(c.queries[0].text), mode, "query", "")
					}
				})
			}
		}
	})
}

// checkMeasure compares the hits of a query with a measure: of all documents
// that have one the best, with its scores, in its order except for ties.
func checkMeasure(
	t *testing.T, p *space, of func(x, y softcosine.Vector) float64, q judgedQuery, hits *found, depth int, tolerance float64,
) {
	t.Helper()
	want := map[string]float64{}
	for id, y := range p.docs {
		if v := of(p.query(q), y); v > 0 && !strings.HasPrefix(id, "query ") {
			want[id] = v
		}
	}
	if n := len(hits.Hits.Hits); hits.Hits.Total.Value != len(want) || n != min(len(want), depth) {
		t.Errorf("query %s: %d of %d hits, want of %d", q.id, n, hits.Hits.Total.Value, len(want))
	}
	before := math.Inf(1)
	for i, hit := range hits.Hits.Hits {
		if !(math.Abs(hit.Score/want[hit.ID]-1) <= tolerance) {
			t.Errorf("query %s, hit %d, document %s: score %v, the measure is %v", q.id, i, hit.ID, hit.Score, want[hit.ID])
			return
		}
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
}
