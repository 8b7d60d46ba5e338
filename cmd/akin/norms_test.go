package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/tools/enrich"
)

// A normsCluster answers what the norms commands ask of a cluster, about one
// index, docs, whose documents have a text in body. What backfills do with
// documents is tested in package enrich.
type normsCluster struct {
	mu      sync.Mutex
	texts   []string
	mapping string // of the norms, in the mapping
	others  string // more fields in the mapping
	refused string // the id of a document that cannot be written
	calls   []string
	onBulk  func()           // called before documents are written
	parts   []map[string]any // written into documents
}

func newNormsCluster(t *testing.T, texts ...string) (*normsCluster, string) {
	t.Helper()
	c := &normsCluster{
		texts:   texts,
		mapping: `,"akin_norm":{"properties":{"body":{"type":"float"}}},"akin_norm_weights":{"properties":{"body":{"type":"keyword"}}}`,
	}
	return c, answering(t, c.serve)
}

// writes returns how many calls wrote documents.
func (c *normsCluster) writes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Count(strings.Join(c.calls, "\n"), "_bulk")
}

func (c *normsCluster) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, r.Method+" "+r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	d := json.NewDecoder(r.Body)
	switch path := r.URL.Path; {
	case path == "/docs":
		fmt.Fprintf(w, `{"docs":{"mappings":{"properties":{"body":{"type":"text"},"list":{"type":"nested","properties":{"body":{"type":"text"}}}%s%s}},"settings":{}}}`, c.mapping, c.others)
	case strings.HasSuffix(path, "/_refresh"):
		fmt.Fprint(w, `{}`)
	case path == "/docs/_stats/docs":
		fmt.Fprint(w, `{"indices":{"docs":{"shards":{"0":[{"routing":{"primary":true},"commit":{"user_data":{"history_uuid":"h"}},"seq_no":{"global_checkpoint":0}}]}}}}`)
	case strings.HasSuffix(path, "/_count"):
		fmt.Fprintf(w, `{"count":%d}`, len(c.texts))
	case path == "/docs/_search", path == "/_search/scroll":
		hits := []any{}
		for i := 0; i < len(c.texts) && path == "/docs/_search"; i++ {
			hits = append(hits, map[string]any{"_index": "docs", "_id": strconv.Itoa(i), "_version": 1, "_seq_no": 0, "_primary_term": 1})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"_scroll_id": "s", "hits": map[string]any{"hits": hits}})
	case path == "/_mtermvectors":
		c.vectors(w, d)
	case path == "/_bulk":
		c.bulk(w, d)
	default:
		http.Error(w, `{"error":"no handler found"}`, http.StatusBadRequest)
	}
}

func (c *normsCluster) vectors(w http.ResponseWriter, d *json.Decoder) {
	var body struct {
		Docs []struct {
			ID string `json:"_id"`
		}
	}
	_ = d.Decode(&body)
	var docs []any
	for _, asked := range body.Docs {
		i, _ := strconv.Atoi(asked.ID)
		terms := map[string]map[string]int{}
		for word := range strings.FieldsSeq(c.texts[i]) {
			terms[word] = map[string]int{"term_freq": terms[word]["term_freq"] + 1}
		}
		docs = append(docs, map[string]any{
			"found": true, "_version": 1, "term_vectors": map[string]any{"body": map[string]any{"terms": terms}},
		})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"docs": docs})
}

func (c *normsCluster) bulk(w http.ResponseWriter, d *json.Decoder) {
	if c.onBulk != nil {
		c.onBulk()
	}
	var items []any
	for d.More() {
		var action struct {
			Update struct {
				ID string `json:"_id"`
			}
		}
		var change struct{ Doc map[string]any }
		_, _ = d.Decode(&action), d.Decode(&change)
		c.parts = append(c.parts, change.Doc)
		item := map[string]any{"status": http.StatusOK, "result": "updated"}
		if action.Update.ID == c.refused {
			item = map[string]any{"status": http.StatusBadRequest, "error": map[string]string{"type": "odd_exception", "reason": "it is odd"}}
		}
		items = append(items, map[string]any{"update": item})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"items": items})
}

// ofDocs are the flags of the field.
func ofDocs(cluster string, more ...string) []string {
	return append([]string{"--cluster", cluster, "--index", "docs", "--field", "body"}, more...)
}

// snapshotOf runs "norms snapshot" and returns the file.
func snapshotOf(t *testing.T, cluster string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "weights.akin")
	mustAkin(t, append([]string{"index", "norms", "snapshot", "--out", out}, ofDocs(cluster)...)...)
	return out
}

// backfillArgs returns the arguments of a backfill.
func backfillArgs(cluster, weights string, more ...string) []string {
	return append([]string{"index", "norms", "backfill", "--weights", weights}, ofDocs(cluster, more...)...)
}

func TestSnapshotIsAMatrixOfDocumentFrequencies(t *testing.T) {
	_, url := newNormsCluster(t, "car boat car", "car", "", "ship")
	file := snapshotOf(t, url)
	m, err := cli.ReadMatrix(t.Context(), file)
	check.OK(t, err)
	if m.Len() != 3 || m.Meta().Docs != 3 || m.Meta().NonZeros != 0 || m.Row("car").DocFreq() != 2 {
		t.Errorf("%+v, car %d", m.Meta(), m.Row("car").DocFreq())
	}
	if m, _ = built(t, "--from-matrices", file, "--min-df", "2"); m.Len() != 1 || m.Meta().Docs != 3 {
		t.Errorf("%+v", m.Meta())
	}
}

func TestBackfillTellsWhatItDoes(t *testing.T) {
	c, url := newNormsCluster(t, "car boat car", "car", "")
	file := snapshotOf(t, url)
	ends(t, 0, backfillArgs(url, file, "--dry-run"), "3 documents to do", "docs: 3")
	if n := c.writes(); n != 0 {
		t.Errorf("a dry run writes %d times", n)
	}
	ends(t, 0, backfillArgs(url, file), "3 documents written, 1 of them without terms")
	c.refused = "1"
	ends(t, exitFailure, backfillArgs(url, file, "--all"), `document "1" of index "docs"`, "it is odd", "2 documents written", "1 failed", "1 documents failed")
	before := c.writes()
	c.mapping = ""
	ends(t, exitFailure, backfillArgs(url, file), "PUT /docs/_mapping", `"akin_norm":{"properties":{"body":{"index":false,"type":"float"}}}`)
	if c.writes() != before {
		t.Error("it writes without the mapping")
	}
}

// A matrix that is built again meanwhile is for the next run: each document has
// the id of the one that its soft length is by.
func TestBackfillWithAMatrixThatChanges(t *testing.T) {
	c, url := newNormsCluster(t, "car boat car", "boat")
	weights, matrix := snapshotOf(t, url), pairsFile(t, "m.akin", "car\tboat\t0.9\n")
	s, err := cli.ReadMatrix(t.Context(), matrix)
	check.OK(t, err)
	args := backfillArgs(url, weights, "--matrix", matrix)
	ends(t, exitFailure, args, "PUT /docs/_mapping", `"akin_soft_norm":{"properties":{"body":{"index":false,"type":"float"}}}`)
	c.mapping += `,"akin_soft_norm":{"properties":{"body":{"type":"float"}}},"akin_soft_norm_matrix":{"properties":{"body":{"type":"keyword"}}}`
	ends(t, 0, args, "2 documents written", "weights and matrix")
	c.onBulk = func() {
		next, err := os.ReadFile(pairsFile(t, "next.akin", "car\tboat\t0.5\n"))
		check.OK(t, errors.Join(err, os.WriteFile(matrix, next, 0o600)))
	}
	c.parts = nil
	ends(t, 0, append(args, "--all"), "2 documents written", "another matrix now", "run this again")
	for _, part := range c.parts {
		id, _ := part["akin_soft_norm_matrix"].(map[string]any)["body"].(string)
		check.That(t, strings.HasSuffix(id, "."+s.Checksum()[:16]), "soft length by %q, want by %s", id, s.Checksum())
	}
	check.Equal(t, 2, len(c.parts))
}

// Each row has a file in another's place, or a field that cannot have norms:
// nothing is written.
func TestNormsAndVectorsOfWhatCannotHaveThem(t *testing.T) {
	c, url := newNormsCluster(t, "")
	_, other := newNormsCluster(t, "car boat", "car")
	out := filepath.Join(t.TempDir(), "x")
	weights, matrix, vectors := snapshotOf(t, other), pairsFile(t, "m.akin", "car\tautomobile\t0.9\n"), filepath.Join(t.TempDir(), "v.akin")
	mustAkin(t, "matrix", "build", "--from-vectors", write(t, "vectors.txt", "car 1 0\nboat 0 1\n"), "--out", vectors)
	model := func(s, w string) []string {
		return append([]string{"index", "vectors", "model", "--matrix", s, "--weights", w, "--store", "rank_features", "--out", out}, ofDocs(url)...)
	}
	for name, tt := range map[string]struct{ args, want []string }{
		"nested":              {backfillArgs(url, weights, "--field", "list.body"), []string{"nested"}},
		"no text":             {backfillArgs(url, weights, "--field", "none"), []string{"not a text field"}},
		"no such weights":     {backfillArgs(url, "/no/such"), []string{"no such file"}},
		"no terms":            {append([]string{"index", "norms", "snapshot", "--out", out}, ofDocs(url)...), []string{"no document has terms"}},
		"a matrix":            {backfillArgs(url, matrix), []string{"is a similarity matrix", "akin index norms snapshot"}},
		"no similarities":     {backfillArgs(url, weights, "--matrix", weights), []string{"has no similarities", "akin index norms snapshot"}},
		"no such matrix":      {backfillArgs(url, weights, "--matrix", "/no/such"), []string{"no such file"}},
		"number of documents": {backfillArgs(url, vectors), []string{enrich.ErrNoDocs.Error()}},
		"model, no weights":   {model(matrix, matrix), []string{"is a similarity matrix", "akin index norms snapshot"}},
		"model, no matrix":    {model(weights, weights), []string{"has no similarities", "akin index norms snapshot"}},
	} {
		t.Run(name, func(t *testing.T) { ends(t, exitFailure, tt.args, tt.want...) })
	}
	if c.writes() > 0 {
		t.Error("something was written")
	}
}

func TestFieldsWhoseNormsShareANameAreRefused(t *testing.T) {
	c, url := newNormsCluster(t, "car")
	file := snapshotOf(t, url)
	c.others = `,"a":{"properties":{"b":{"type":"text"}}},"a__b":{"type":"text"},"c":{"properties":{"d":{"type":"text"}}},"c__d":{"type":"keyword"}`
	for field, refused := range map[string]bool{"a.b": true, "a__b": true, "body": false, "c.d": false} {
		_, stderr, status := akin(t, backfillArgs(url, file, "--dry-run", "--field", field)...)
		explained := strings.Contains(stderr, `"a.b"`) && strings.Contains(stderr, `"a__b"`) && strings.Contains(stderr, "one name, akin_norm.a__b")
		check.That(t, refused == explained && (!refused || status == exitFailure), "%s: status %d\n%s", field, status, stderr)
	}
}
