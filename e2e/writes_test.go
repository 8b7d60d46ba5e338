package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const writesIndex = "akin-e2e-writes"

// The text fields of the fixture whose norms are kept. all is filled by copy_to,
// and has none.
var writesFields = []string{"title", "title.std", "meta.t"}

const writesDefinition = `{"settings":{"number_of_shards":2,"number_of_replicas":0,"refresh_interval":"-1"},
	"aliases":{"akin-e2e-writes-alias":{}},
	"mappings":{"dynamic":"strict","properties":{
		"title":{"type":"text","analyzer":"english","copy_to":"all","fields":{"std":{"type":"text"},"raw":{"type":"keyword"}}},
		"meta":{"properties":{"t":{"type":"text"}}},"all":{"type":"text"},"n":{"type":"integer"},
		"akin_norm":{"properties":{"title":{"type":"float","index":false},"title__std":{"type":"float","index":false},"meta__t":{"type":"float","index":false}}},
		"akin_norm_weights":{"properties":{"title":{"type":"keyword"},"title__std":{"type":"keyword"},"meta__t":{"type":"keyword"}}}}}}`

// makeWrites makes the index of the fixture, with the documents that the weights
// are of, and returns the file of the weights.
func makeWrites(t *testing.T, e *engine) string {
	t.Helper()
	e.makeIndex(t, writesIndex, writesDefinition)
	var docs []document
	for i, text := range []string{"the car", "a red car", "boats and boats", "the boat", "ship", "running cars in the rain"} {
		docs = append(docs, document{fmt.Sprint("old-", i), section{"title": text}})
	}
	e.index(t, writesIndex, docs)
	file := filepath.Join(t.TempDir(), "weights.akin")
	mustAkin(t, "norms", "snapshot", "--cluster", e.url, "--index", writesIndex, "--field", "title.std", "--out", file)
	return file
}

// serveWrites starts akin before a cluster, with the weights of a file for all
// fields.
func serveWrites(t *testing.T, url, file string) *akin {
	t.Helper()
	a := startAkin(t, section{
		"cluster": section{"urls": []string{url}},
		"weights": []section{{"name": "weights", "file": file}},
		"norms":   section{"writes": true, "budget": widePatience},
	})
	waitFor(t, 20*time.Second, "the weights", func() error {
		for _, line := range a.logLines(t) {
			if line["of"] == "weights" && line["version"] != "" {
				return nil
			}
		}
		return errors.New("not served")
	})
	return a
}

// awaitRepairs waits until so many repairs have come to their end.
func (a *akin) awaitRepairs(t *testing.T, n int) {
	t.Helper()
	waitFor(t, 30*time.Second, "the repairs", func() error {
		if got := a.metric(t, "akin_norm_repairs_total"); got < float64(n) {
			return fmt.Errorf("%v of %d", got, n)
		}
		return nil
	})
}

// A storedNorms is what a document holds for the fields of the fixture.
type storedNorms struct {
	Version int64
	Values  map[string]any
}

// norms returns what the documents of the fixture hold, by id.
func (c cluster) norms(t *testing.T) map[string]storedNorms {
	t.Helper()
	c.must(t, http.MethodPost, "/"+writesIndex+"/_refresh", "")
	var fields []string
	for _, f := range writesFields {
		name := strings.ReplaceAll(f, ".", "__")
		fields = append(fields, quote("akin_norm."+name), quote("akin_norm_weights."+name))
	}
	answer := c.must(t, http.MethodPost, "/"+writesIndex+"/_search",
		`{"size":1000,"version":true,"_source":false,"docvalue_fields":[`+strings.Join(fields, ",")+`]}`)
	var found struct {
		Hits struct {
			Hits []struct {
				ID      string         `json:"_id"`
				Version int64          `json:"_version"`
				Fields  map[string]any `json:"fields"`
			}
		}
	}
	if err := json.Unmarshal(answer, &found); err != nil {
		t.Fatal(err)
	}
	all := map[string]storedNorms{}
	for _, h := range found.Hits.Hits {
		all[h.ID] = storedNorms{h.Version, h.Fields}
	}
	return all
}

// checkNorms compares what the documents hold with what a backfill of all of
// them computes, which writes a document only where that is something else. A
// backfill marks a text that gives no terms with the id, which a write does not.
func checkNorms(t *testing.T, e *engine, file string) map[string]storedNorms {
	t.Helper()
	got := e.norms(t)
	for _, field := range writesFields {
		mustAkin(t, "norms", "backfill", "--all", "--cluster", e.url, "--index", writesIndex, "--field", field, "--weights", file)
	}
	want := e.norms(t)
	for id := range want {
		if strings.HasPrefix(id, "old-") { // not written through akin
			delete(want, id)
			delete(got, id)
		}
	}
	for id, doc := range want {
		for _, field := range writesFields {
			name := strings.ReplaceAll(field, ".", "__")
			mark := "akin_norm_weights." + name
			if doc.Values["akin_norm."+name] == nil && doc.Values[mark] != nil && got[id].Values[mark] == nil {
				delete(doc.Values, mark)
				doc.Version--
			}
		}
		want[id] = doc
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the documents differ from what a backfill makes of them (-backfill +written):\n%s", diff)
	}
	return got
}

func TestDocumentsWrittenThroughAkinHoldTheirNorms(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		file := makeWrites(t, e)
		a := serveWrites(t, e.url, file)
		repairs := writeAll(t, e, a)
		a.awaitRepairs(t, repairs)
		got := checkNorms(t, e, file)
		for _, id := range []string{"put", "post", "put-create", "post-create", "bulk-index", "bulk-create", "bulk-update", "gzip", "update", "upsert", "many", "deep"} {
			if got[id].Values["akin_norm.title"] == nil && id != "deep" || got[id].Values["akin_norm_weights."+map[bool]string{true: "meta__t", false: "title__std"}[id == "deep"]] == nil {
				t.Errorf("document %q holds %v", id, got[id])
			}
		}
		if v := got["stop"].Values; v["akin_norm.title"] != nil || v["akin_norm_weights.title"] != nil {
			t.Errorf("a document whose text gives no terms holds %v, want neither norm nor id", v)
		}
		if v := got["emptied"].Values; v["akin_norm.title"] != nil || v["akin_norm_weights.title"] == nil {
			t.Errorf("a document without a text any more holds %v, want the id alone", v)
		}
		if v := got["external"].Version; v != 50 {
			t.Errorf("the version of the client's own is %d, want 50", v)
		}
	})
}

// writeAll writes documents in all ways, and returns how many of them are to be
// repaired.
func writeAll(t *testing.T, e *engine, a *akin) (repairs int) {
	t.Helper()
	const index = "/" + writesIndex
	a.must(t, http.MethodPut, index+"/_doc/put", `{"title":"Cars and more cars", "n" : 1}`)
	a.must(t, http.MethodPost, index+"/_doc/post?refresh=true", `{"title":["the car",null,["a boat",12,true]],"n":1}`)
	a.must(t, http.MethodPost, index+"/_doc", `{"title":"an id of the cluster's"}`)
	a.must(t, http.MethodPut, "/akin-e2e-writes-alias/_create/put-create?routing=x", `{"title":"by an alias to a shard"}`)
	a.must(t, http.MethodPost, index+"/_create/post-create?wait_for_active_shards=1", `{"title":"running"}`)
	a.must(t, http.MethodPut, index+"/_doc/stop", `{"title":"the"}`)
	a.must(t, http.MethodPut, index+"/_doc/none", `{"n":1}`)
	a.must(t, http.MethodPut, index+"/_doc/deep", `{"meta":{"t":"car"},"meta.t":"boat car"}`)
	a.must(t, http.MethodPut, index+"/_doc/many", `{"title":"`+strings.Repeat("word car ship ", 1000)+`"}`)
	a.must(t, http.MethodPut, index+"/_doc/external?version=50&version_type=external", `{"title":"ship"}`)

	a.must(t, http.MethodPut, index+"/_doc/update", `{"title":"ship","n":1}`)
	a.must(t, http.MethodPost, index+"/_update/update?retry_on_conflict=2", `{"doc":{"title":"boats, boats, boats"}}`)
	a.must(t, http.MethodPost, index+"/_update/update", `{"doc":{"n":2}}`)
	a.must(t, http.MethodPost, index+"/_update/upsert", `{"doc":{"n":2},"upsert":{"title":"red ship"}}`)
	a.must(t, http.MethodPost, index+"/_update/doc-as-upsert", `{"doc":{"title":"blue ship"},"doc_as_upsert":true}`)
	a.must(t, http.MethodPut, index+"/_doc/emptied", `{"title":"ship"}`)
	a.must(t, http.MethodPost, index+"/_update/emptied", `{"doc":{"title":null}}`)

	bulk := `{"index":{"_id":"bulk-index"}}
{"title":"one of the cars"}
{"create":{"_id":"bulk-create","_index":"` + writesIndex + `","routing":"y"}}
{"title":"one of the boats", "meta":{"t":"deep"}}
{"index":{"_id":"bulk-update"}}
{"title":"ship"}
{"update":{"_id":"bulk-update"}}
{"doc":{"title":"ships and cars"}}
{"index":{"_id":"bulk-delete"}}
{"title":"ship"}
{"delete":{"_id":"bulk-delete"}}
`
	if answer := a.must(t, http.MethodPost, index+"/_bulk", bulk); bytes.Contains(answer, []byte(`"errors":true`)) {
		t.Errorf("bulk: %s", answer)
	}
	writeGzip(t, a, "{\"index\":{\"_id\":\"gzip\",\"_index\":\""+writesIndex+"\"}}\n{\"title\":\"a compressed car\"}\n")

	// A client that reads and writes back what it has read.
	source := a.must(t, http.MethodGet, index+"/_source/put", "")
	if !bytes.Contains(source, []byte(`"akin_norm"`)) {
		t.Errorf("the document is %s", source)
	}
	a.must(t, http.MethodPut, index+"/_doc/put", strings.Replace(string(source), "Cars", "boats in the rain", 1))

	// One that goes by sequence numbers.
	var found struct {
		SeqNo int64 `json:"_seq_no"`
		Term  int64 `json:"_primary_term"`
	}
	if err := a.getJSON(t.Context(), index+"/_doc/post", &found); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("%s/_doc/post?if_seq_no=%d&if_primary_term=%d", index, found.SeqNo, found.Term)
	a.must(t, http.MethodPut, path, `{"title":"another boat"}`)
	for path, want := range map[string]int{path: 409, index + "/_create/post": 409, index + "/_doc/external?version=49&version_type=external": 409} {
		if status, answer, err := a.call(t.Context(), http.MethodPut, path, `{"title":"ship"}`); err != nil || status != want {
			t.Errorf("PUT %s: %d %s %v, want %d", path, status, answer, err, want)
		}
	}

	// What cannot be computed on the way.
	a.must(t, http.MethodPost, index+"/_update/deep", `{"doc":{"meta":{"t":"red car"}}}`)
	repairs = 1
	if e.scripts {
		a.must(t, http.MethodPut, index+"/_doc/scripted", `{"title":"ship"}`)
		a.must(t, http.MethodPost, index+"/_update/scripted", `{"script":{"source":"ctx._source.title = 'written by a script'"}}`)
		repairs++
	}
	return repairs
}

// writeGzip sends a compressed bulk request.
func writeGzip(t *testing.T, a *akin, body string) {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.WriteString(z, body); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, a.url+"/_bulk", &packed)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("Content-Encoding", "gzip")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"errors":true`)) {
		t.Errorf("bulk: %d %s %v", resp.StatusCode, answer, err)
	}
}

func TestDocumentsAreWrittenWhereTheirNormsCannotBeComputed(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		file := makeWrites(t, e)
		target, err := url.Parse(e.url)
		if err != nil {
			t.Fatal(err)
		}
		toEngine := httputil.NewSingleHostReverseProxy(target)
		failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "termvectors") {
				http.Error(w, `{"status":500}`, http.StatusInternalServerError)
				return
			}
			toEngine.ServeHTTP(w, r)
		}))
		t.Cleanup(failing.Close)
		a := serveWrites(t, failing.URL, file)
		body := `{"title":"ship" }`
		a.must(t, http.MethodPut, "/"+writesIndex+"/_doc/1", body)
		if got := e.must(t, http.MethodGet, "/"+writesIndex+"/_source/1", ""); string(got) != body {
			t.Errorf("the document is %s, want it as it was sent", got)
		}
		if answer := a.must(t, http.MethodPost, "/_bulk", "{\"index\":{\"_index\":\""+writesIndex+"\",\"_id\":\"2\"}}\n"+body+"\n"); bytes.Contains(answer, []byte(`"errors":true`)) {
			t.Errorf("bulk: %s", answer)
		}
		a.awaitRepairs(t, 2)
		if n := a.metric(t, "akin_norm_writes_total", `result="error"`); n != 2 {
			t.Errorf("%v writes that failed were counted, want 2", n)
		}
		if n := a.metric(t, "akin_norm_repairs_total", `result="failed"`); n != 2 {
			t.Errorf("%v repairs that failed were counted, want 2", n)
		}
	})
}
