package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/tools/enrich"
)

// A normsDoc is a document of a normsCluster.
type normsDoc struct {
	text    string
	seqNo   int64
	norm    *float64
	weights string
}

// A normsCluster answers what the norms commands ask of a cluster, about one
// index, docs, whose documents have a text in body.
type normsCluster struct {
	mu      sync.Mutex
	docs    []normsDoc
	mapping string // of the norms, in the mapping
	others  string // more fields in the mapping
	refused string // the id of a document that cannot be written
	refresh int    // status of _refresh
	written func() // is called when a bulk was written and not answered yet; nil is nothing
	calls   []string
}

func newNormsCluster(t *testing.T, texts ...string) (*normsCluster, string) {
	t.Helper()
	c := &normsCluster{
		refresh: http.StatusOK,
		mapping: `,"akin_norm":{"properties":{"body":{"type":"float"}}},"akin_norm_weights":{"properties":{"body":{"type":"keyword"}}}`,
	}
	for _, text := range texts {
		c.docs = append(c.docs, normsDoc{text: text})
	}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return c, server.URL
}

// writes returns how many calls wrote documents.
func (c *normsCluster) writes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Count(strings.Join(c.calls, "\n"), "_bulk")
}

// ServeHTTP implements [http.Handler].
func (c *normsCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, r.Method+" "+r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	d := json.NewDecoder(r.Body)
	switch path := r.URL.Path; {
	case path == "/docs":
		fmt.Fprintf(w, `{"docs":{"mappings":%s,"settings":{}}}`, c.mappings())
	case strings.HasSuffix(path, "/_refresh"):
		w.WriteHeader(c.refresh)
		fmt.Fprint(w, `{}`)
	case path == "/docs/_stats/docs":
		last := int64(0)
		for i := range c.docs {
			last = max(last, c.docs[i].seqNo)
		}
		fmt.Fprintf(w, `{"indices":{"docs":{"shards":{"0":[{"routing":{"primary":true},"commit":{"user_data":{"history_uuid":"h"}},"seq_no":{"global_checkpoint":%d}}]}}}}`, last)
	case strings.HasSuffix(path, "/_count"):
		fmt.Fprintf(w, `{"count":%d}`, len(c.matching(d)))
	case path == "/docs/_search":
		c.page(w, c.matching(d))
	case path == "/_search/scroll":
		c.page(w, nil)
	case path == "/_mtermvectors":
		c.vectors(w, d)
	case path == "/_bulk":
		c.bulk(w, d)
	default:
		http.Error(w, `{"error":"no handler found"}`, http.StatusBadRequest)
	}
}

// mappings returns those of the index.
func (c *normsCluster) mappings() string {
	return `{"properties":{"body":{"type":"text"},"list":{"type":"nested","properties":{"body":{"type":"text"}}}` + c.mapping + c.others + `}}`
}

// matching returns the documents that a query matches.
func (c *normsCluster) matching(d *json.Decoder) []int {
	var body struct {
		Query struct {
			Bool struct {
				MustNot []struct {
					Bool struct {
						Filter []struct {
							Term map[string]struct{ Value string }
						}
					}
				} `json:"must_not"`
			}
		}
	}
	_ = d.Decode(&body)
	var found []int
	for i := range c.docs {
		not := body.Query.Bool.MustNot
		if len(not) == 0 || c.docs[i].norm == nil || c.docs[i].weights != not[0].Bool.Filter[0].Term["akin_norm_weights.body"].Value {
			found = append(found, i)
		}
	}
	return found
}

func (c *normsCluster) page(w http.ResponseWriter, docs []int) {
	hits := []any{}
	for _, i := range docs {
		hits = append(hits, map[string]any{"_index": "docs", "_id": strconv.Itoa(i), "_version": 1, "_seq_no": c.docs[i].seqNo, "_primary_term": 1})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"_scroll_id": "s", "hits": map[string]any{"hits": hits}})
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
		for word := range strings.FieldsSeq(c.docs[i].text) {
			terms[word] = map[string]int{"term_freq": terms[word]["term_freq"] + 1}
		}
		docs = append(docs, map[string]any{
			"found": true, "_version": 1, "term_vectors": map[string]any{"body": map[string]any{"terms": terms}},
		})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"docs": docs})
}

func (c *normsCluster) bulk(w http.ResponseWriter, d *json.Decoder) {
	var items []any
	for d.More() {
		var action struct {
			Update struct {
				ID    string `json:"_id"`
				SeqNo int64  `json:"if_seq_no"`
			}
		}
		var change struct {
			Doc struct {
				Norm    map[string]*float64 `json:"akin_norm"`
				Weights map[string]string   `json:"akin_norm_weights"`
			}
		}
		_, _ = d.Decode(&action), d.Decode(&change)
		i, _ := strconv.Atoi(action.Update.ID)
		item := map[string]any{"status": http.StatusOK, "result": "updated"}
		switch doc := &c.docs[i]; {
		case action.Update.ID == c.refused:
			item = map[string]any{"status": http.StatusBadRequest, "error": map[string]string{"type": "odd_exception", "reason": "it is odd"}}
		case action.Update.SeqNo != doc.seqNo:
			item = map[string]any{"status": http.StatusConflict, "error": map[string]string{"type": "version_conflict_engine_exception"}}
		case doc.weights == change.Doc.Weights["body"] && doc.norm == nil && change.Doc.Norm["body"] == nil:
			item["result"] = "noop"
		default:
			doc.norm, doc.weights = change.Doc.Norm["body"], change.Doc.Weights["body"]
			doc.seqNo++
		}
		items = append(items, map[string]any{"update": item})
	}
	if c.written != nil {
		c.written()
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"items": items})
}

// snapshotOf runs "norms snapshot" and returns the file.
func snapshotOf(t *testing.T, cluster string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "weights.akin")
	mustAkin(t, "norms", "snapshot", "--cluster", cluster, "--index", "docs", "--field", "body", "--out", out)
	return out
}

func runBackfill(t *testing.T, cluster, weights string, args ...string) (stderr string, status int) {
	t.Helper()
	all := append([]string{"norms", "backfill", "--cluster", cluster, "--index", "docs", "--field", "body", "--weights", weights}, args...)
	_, stderr, status = akin(t, all...)
	return stderr, status
}

func TestSnapshotIsAMatrixOfDocumentFrequencies(t *testing.T) {
	_, url := newNormsCluster(t, "car boat car", "car", "", "ship")
	m, err := cli.ReadMatrix(t.Context(), snapshotOf(t, url))
	if err != nil {
		t.Fatal(err)
	}
	if m.Len() != 3 || m.Meta().Docs != 3 || m.Meta().NonZeros != 0 || m.Row("car").DocFreq() != 2 {
		t.Errorf("%+v, car %d", m.Meta(), m.Row("car").DocFreq())
	}
	several := filepath.Join(t.TempDir(), "several.akin")
	mustAkin(t, "matrix", "build", "--from-matrices", snapshotOf(t, url), "--min-df", "2", "--out", several)
	if m, err = cli.ReadMatrix(t.Context(), several); err != nil || m.Len() != 1 || m.Meta().Docs != 3 {
		t.Errorf("%v, %v", m, err)
	}
}

func TestBackfillStoresNorms(t *testing.T) {
	c, url := newNormsCluster(t, "car boat car", "car", "")
	file := snapshotOf(t, url)
	m, err := cli.ReadMatrix(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	w, err := enrich.NewWeights(m)
	if err != nil {
		t.Fatal(err)
	}
	stderr, status := runBackfill(t, url, file, "--dry-run")
	if status != 0 || !strings.Contains(stderr, "3 documents to do") || !strings.Contains(stderr, "docs: 3") || c.writes() != 0 {
		t.Errorf("dry run: status %d, %d writes\n%s", status, c.writes(), stderr)
	}
	stderr, status = runBackfill(t, url, file)
	if status != 0 || !strings.Contains(stderr, "3 documents written, 1 of them without terms") {
		t.Errorf("status %d\n%s", status, stderr)
	}
	want := w.Norm([]documents.TermFreq{{Term: "car", Freq: 2}, {Term: "boat", Freq: 1}})
	if c.docs[0].norm == nil || float32(*c.docs[0].norm) != float32(want) || c.docs[0].weights != w.ID() {
		t.Errorf("%+v, want %v", c.docs[0], want)
	}
	if c.docs[2].norm != nil || c.docs[2].weights != w.ID() {
		t.Errorf("without terms: %+v", c.docs[2])
	}
	stderr, status = runBackfill(t, url, file)
	if status != 0 || !strings.Contains(stderr, "1 documents to do") || !strings.Contains(stderr, "0 documents written") || c.docs[0].seqNo != 1 {
		t.Errorf("again: status %d, %d writes\n%s", status, c.writes(), stderr)
	}
	if stderr, status = runBackfill(t, url, file, "--all"); status != 0 || c.writes() != 3 {
		t.Errorf("all: status %d, %d writes\n%s", status, c.writes(), stderr)
	}
}

func TestBackfillTellsOfDocumentsThatFail(t *testing.T) {
	c, url := newNormsCluster(t, "car", "boat", "ship")
	file := snapshotOf(t, url)
	c.refused = "1"
	stderr, status := runBackfill(t, url, file)
	if status != exitFailure {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{`document "1" of index "docs"`, "it is odd", "2 documents written", "1 failed", "1 documents failed"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is not in\n%s", want, stderr)
		}
	}
}

func TestInterruptedBackfillTellsWhatWasWritten(t *testing.T) {
	c, url := newNormsCluster(t, "car", "boat", "ship")
	file := snapshotOf(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	c.written = cancel
	var said strings.Builder
	root := newRoot()
	root.SetArgs([]string{"norms", "backfill", "--cluster", url, "--index", "docs", "--field", "body", "--weights", file})
	root.SetErr(&said)
	err := root.ExecuteContext(ctx)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the same command goes on with the rest") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(said.String(), "3 documents written") {
		t.Errorf("three were written, and it says\n%s", said.String())
	}
}

func TestBackfillWithoutTheMappingPrintsIt(t *testing.T) {
	c, url := newNormsCluster(t, "car")
	file := snapshotOf(t, url)
	c.mapping = ""
	stderr, status := runBackfill(t, url, file)
	if status != exitFailure || !strings.Contains(stderr, "PUT /docs/_mapping") || !strings.Contains(stderr, `"akin_norm":{"properties":{"body":{"index":false,"type":"float"}}}`) || c.writes() > 0 {
		t.Errorf("status %d\n%s", status, stderr)
	}
}

func TestBackfillNeedsNoRightToRefresh(t *testing.T) {
	c, url := newNormsCluster(t, "car")
	file := snapshotOf(t, url)
	c.refresh = http.StatusForbidden
	if stderr, status := runBackfill(t, url, file); status != 0 || c.docs[0].norm == nil {
		t.Errorf("status %d\n%s", status, stderr)
	}
}

func TestNormsOfWhatCannotHaveThem(t *testing.T) {
	c, url := newNormsCluster(t, "")
	file := snapshotOf(t, clusterWithTerms(t))
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"nested":          {[]string{"norms", "backfill", "--cluster", url, "--index", "docs", "--field", "list.body", "--weights", file}, "nested"},
		"no text":         {[]string{"norms", "backfill", "--cluster", url, "--index", "docs", "--field", "none", "--weights", file}, "not a text field"},
		"no such weights": {[]string{"norms", "backfill", "--cluster", url, "--index", "docs", "--field", "body", "--weights", "/no/such"}, "no such file"},
		"no terms":        {[]string{"norms", "snapshot", "--cluster", url, "--index", "docs", "--field", "body", "--out", filepath.Join(t.TempDir(), "x")}, "no document has terms"},
	} {
		_, stderr, status := akin(t, tt.args...)
		if status != exitFailure || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: status %d, %q is not in\n%s", name, status, tt.want, stderr)
		}
	}
	if c.writes() > 0 {
		t.Error("something was written")
	}
}

// clusterWithTerms returns a cluster with documents to make weights of.
func clusterWithTerms(t *testing.T) string {
	t.Helper()
	_, url := newNormsCluster(t, "car boat", "car")
	return url
}

func TestMistakesInTheFlagsOfNorms(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x")
	whole := []string{"--cluster", "http://127.0.0.1:1", "--index", "i", "--field", "f"}
	for name, tt := range map[string]struct{ args, want []string }{
		"nothing":               {[]string{"norms", "snapshot"}, []string{"--cluster", "--index", "--field", "--out"}},
		"no weights":            {append([]string{"norms", "backfill"}, whole...), []string{"--weights"}},
		"numbers":               {append([]string{"norms", "snapshot", "--out", out, "--max-memory", "1MB"}, whole...), []string{"64MiB"}},
		"a size without a unit": {append([]string{"norms", "snapshot", "--out", out, "--max-memory", "3000"}, whole...), []string{"--max-memory"}},
		"no such command":       {[]string{"norms", "fill"}, []string{"no command"}},
	} {
		_, stderr, status := akin(t, tt.args...)
		if status != exitUsage {
			t.Errorf("%s: status %d", name, status)
		}
		for _, want := range tt.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, stderr)
			}
		}
	}
}

func TestBackfillRefusesASimilarityMatrix(t *testing.T) {
	c, url := newNormsCluster(t, "car", "boat")
	pairs := write(t, "pairs.tsv", "car\tautomobile\t0.9\n")
	file := filepath.Join(t.TempDir(), "m.akin")
	if _, stderr, status := akin(t, "matrix", "build", "--from-tsv", pairs, "--out", file); status != 0 {
		t.Fatal(stderr)
	}
	stderr, status := runBackfill(t, url, file)
	if status != exitFailure || !strings.Contains(stderr, "is a similarity matrix") || !strings.Contains(stderr, "akin norms snapshot") || len(c.calls) > 0 {
		t.Errorf("status %d, calls %q\n%s", status, c.calls, stderr)
	}
}

// What is given in the other's place makes vectors that nobody wants, without a
// word.
func TestAModelOfVectorsTakesAMatrixAndWeights(t *testing.T) {
	c, url := newNormsCluster(t, "car", "boat")
	pairs := write(t, "pairs.tsv", "car\tautomobile\t0.9\n")
	dir := t.TempDir()
	matrix, weights := filepath.Join(dir, "m.akin"), filepath.Join(dir, "w.akin")
	if _, stderr, status := akin(t, "matrix", "build", "--from-tsv", pairs, "--out", matrix); status != 0 {
		t.Fatal(stderr)
	}
	if _, stderr, status := akin(t, "norms", "snapshot", "--cluster", url, "--index", "docs", "--field", "body", "--out", weights); status != 0 {
		t.Fatal(stderr)
	}
	before := len(c.calls)
	for _, of := range []struct{ s, w, want string }{{matrix, matrix, "is a similarity matrix"}, {weights, weights, "has no similarities"}} {
		_, stderr, status := akin(t, "vectors", "model", "--cluster", url, "--index", "docs", "--field", "body",
			"--matrix", of.s, "--weights", of.w, "--store", "rank_features", "--out", filepath.Join(dir, "model.akin"))
		if status != exitFailure || !strings.Contains(stderr, of.want) || !strings.Contains(stderr, "akin norms snapshot") || len(c.calls) > before {
			t.Errorf("status %d, calls %q\n%s", status, c.calls, stderr)
		}
	}
}

func TestWeightsHaveToKnowTheNumberOfDocuments(t *testing.T) {
	_, url := newNormsCluster(t, "car")
	vectors := write(t, "vectors.txt", "car 1 0\nboat 0 1\n")
	file := filepath.Join(t.TempDir(), "m.akin")
	if _, stderr, status := akin(t, "matrix", "build", "--from-vectors", vectors, "--out", file); status != 0 {
		t.Fatal(stderr)
	}
	if stderr, status := runBackfill(t, url, file); status != exitFailure || !strings.Contains(stderr, enrich.ErrNoDocs.Error()) {
		t.Errorf("status %d\n%s", status, stderr)
	}
}

func TestFieldsWhoseNormsShareANameAreRefused(t *testing.T) {
	c, url := newNormsCluster(t, "car")
	file := snapshotOf(t, url)
	c.others = `,"a":{"properties":{"b":{"type":"text"}}},"a__b":{"type":"text"},"c":{"properties":{"d":{"type":"text"}}},"c__d":{"type":"keyword"}`
	for field, refused := range map[string]bool{"a.b": true, "a__b": true, "body": false, "c.d": false} {
		_, stderr, status := akin(t, "norms", "backfill", "--dry-run", "--cluster", url, "--index", "docs", "--field", field, "--weights", file)
		explained := strings.Contains(stderr, `"a.b"`) && strings.Contains(stderr, `"a__b"`) && strings.Contains(stderr, "one name, akin_norm.a__b")
		if refused != explained || refused && status != exitFailure {
			t.Errorf("%s: status %d\n%s", field, status, stderr)
		}
	}
}
