package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// client is what the tests speak HTTP with, except where bytes matter.
var client = &http.Client{
	Timeout: 60 * time.Second,
	Transport: &http.Transport{
		MaxIdleConnsPerHost: 16, DisableCompression: true, TLSClientConfig: &tls.Config{RootCAs: runAuthority.pool},
	},
}

// A cluster is a search API at an address: an engine's own or akin's.
type cluster struct{ url string }

// call sends one request, whose body is JSON, with more lines of the header, and
// returns status and body of the answer.
func (c cluster) call(ctx context.Context, method, path, body string, header ...string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// getJSON reads the answer of a GET into v; any status but 200 is an error.
func (c cluster) getJSON(ctx context.Context, path string, v any) error {
	status, answer, err := c.call(ctx, http.MethodGet, path, "")
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("GET %s: %d: %s", path, status, answer)
	}
	return json.Unmarshal(answer, v)
}

// must is call for a request that has to succeed.
func (c cluster) must(tb testing.TB, method, path, body string) []byte {
	tb.Helper()
	status, answer, err := c.call(tb.Context(), method, path, body)
	if err != nil {
		tb.Fatalf("%s %s: %v", method, path, err)
	}
	if status >= 300 {
		tb.Fatalf("%s %s: %d: %s", method, path, status, answer)
	}
	return answer
}

// ask sends a request that has to succeed, and decodes its answer.
func ask[T any](tb testing.TB, c cluster, method, path, body string) (answer T) {
	tb.Helper()
	decode(tb, c.must(tb, method, path, body), &answer)
	return answer
}

func decode(tb testing.TB, answer []byte, into any) {
	tb.Helper()
	if err := json.Unmarshal(answer, into); err != nil {
		tb.Fatalf("%v: %.2000s", err, answer)
	}
}

// A found is what the tests read of the answer to a search.
type found struct {
	Hits struct {
		Total struct{ Value int }
		Hits  []hit
	}
	Shards   struct{ Total, Failed int } `json:"_shards"`
	ScrollID string                      `json:"_scroll_id"`
}

// A hit is one of its hits.
type hit struct {
	ID        string  `json:"_id"` // or what is in the column of idColumn
	Score     float64 `json:"_score"`
	SeqNo     int     `json:"_seq_no"`
	Routing   string  `json:"_routing"`
	Fields    map[string][]any
	Sort      json.RawMessage
	Named     []string        `json:"matched_queries"`
	Source    json.RawMessage `json:"_source"`
	InnerHits map[string]struct {
		Hits struct{ Hits []hit }
	} `json:"inner_hits"`
}

// UnmarshalJSON reads a hit, whose id may be in the column of idColumn.
func (h *hit) UnmarshalJSON(text []byte) error {
	type plain hit
	err := json.Unmarshal(text, (*plain)(h))
	if uid := h.Fields["uid"]; h.ID == "" && len(uid) == 1 {
		h.ID = fmt.Sprint(uid[0])
	}
	return err
}

// idColumn has a search return the keyword "uid" of its hits in place of _id,
// which is stored with their texts: to unpack these is what takes an engine most
// of the time of a long list of hits.
const idColumn = `"stored_fields":"_none_","docvalue_fields":["uid"]`

// ids returns the ids of the hits, best first.
func (f *found) ids() []string {
	ids := make([]string, 0, len(f.Hits.Hits))
	for _, h := range f.Hits.Hits {
		ids = append(ids, h.ID)
	}
	return ids
}

// sorted returns the ids of the hits in alphabetical order.
func (f *found) sorted() []string { return slices.Sorted(slices.Values(f.ids())) }

// has reports whether a document is among the hits.
func (f *found) has(id string) bool { return slices.Contains(f.ids(), id) }

// scores returns the scores of the hits by their ids.
func (f *found) scores() map[string]float64 {
	scores := map[string]float64{}
	for _, h := range f.Hits.Hits {
		scores[h.ID] = h.Score
	}
	return scores
}

// search sends body to path and reads the hits; any status but 200 and a failed
// shard are errors.
func (c cluster) search(ctx context.Context, path, body string) (*found, error) {
	status, answer, err := c.call(ctx, http.MethodPost, path, body)
	if err != nil {
		return &found{}, err
	}
	if status != http.StatusOK {
		return &found{}, fmt.Errorf("POST %s: %d: %.2000s", path, status, answer)
	}
	var f found
	if err := json.Unmarshal(answer, &f); err != nil {
		return &f, fmt.Errorf("POST %s: %w: %.2000s", path, err, answer)
	}
	if f.Shards.Failed > 0 {
		return &f, fmt.Errorf("POST %s: %d shards failed: %.2000s", path, f.Shards.Failed, answer)
	}
	return &f, nil
}

// find is search for one that has to succeed, of an index and with parameters
// behind a question mark.
func (c cluster) find(tb testing.TB, index, body string) *found {
	tb.Helper()
	name, parameters, _ := strings.Cut(index, "?")
	f, err := c.search(tb.Context(), "/"+name+"/_search?"+parameters, body)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// total counts what a query finds.
func (c cluster) total(tb testing.TB, index, query string) int {
	tb.Helper()
	return c.find(tb, index, `{"track_total_hits":true,"query":`+query+`}`).Hits.Total.Value
}

// makeIndex creates an index that lasts as long as the test.
func (c cluster) makeIndex(tb testing.TB, name, definition string) {
	tb.Helper()
	tb.Cleanup(func() { c.dropIndex(name) })
	c.remakeIndex(tb, name, definition)
}

// remakeIndex creates an index, in place of one of that name.
func (c cluster) remakeIndex(tb testing.TB, name, definition string) {
	tb.Helper()
	c.dropIndex(name)
	c.must(tb, http.MethodPut, "/"+name, definition)
}

// dropIndex deletes an index, which need not exist.
func (c cluster) dropIndex(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, _, _ = c.call(ctx, http.MethodDelete, "/"+name, "")
}

// refresh makes visible what was written.
func (c cluster) refresh(tb testing.TB, index string) {
	tb.Helper()
	c.must(tb, http.MethodPost, "/"+index+"/_refresh", "")
}

// merge puts an index into one segment.
func (c cluster) merge(tb testing.TB, index string) {
	tb.Helper()
	c.must(tb, http.MethodPost, "/"+index+"/_forcemerge?max_num_segments=1", "")
	c.refresh(tb, index)
}

// A document is what the tests index: an id and its fields, of which _routing
// is none.
type document struct {
	id     string
	fields map[string]any
}

// withIDs returns the documents with their ids in the field of idColumn.
func withIDs(docs []document) []document {
	out := make([]document, 0, len(docs))
	for _, d := range docs {
		fields := maps.Clone(d.fields)
		fields["uid"] = d.id
		out = append(out, document{d.id, fields})
	}
	return out
}

// index writes the documents with one bulk request, which makes one segment,
// so that documents of equal score come in the order given.
func (c cluster) index(tb testing.TB, index string, docs []document) {
	tb.Helper()
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	for _, d := range docs {
		action := section{"_id": d.id}
		if routing, ok := d.fields["_routing"]; ok {
			action["routing"] = routing
			d.fields = maps.Clone(d.fields)
			delete(d.fields, "_routing")
		}
		for _, line := range []any{section{"index": action}, d.fields} {
			if err := encoder.Encode(line); err != nil {
				tb.Fatal(err)
			}
		}
	}
	answer := c.must(tb, http.MethodPost, "/"+index+"/_bulk?refresh=true", body.String())
	if bytes.Contains(answer, []byte(`"errors":true`)) {
		tb.Fatalf("bulk: %.2000s", answer)
	}
}

// oneShard is an index of one shard with these properties.
func oneShard(properties string) string {
	return `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{` + properties + `}}}`
}

// toJSON returns v as JSON text.
func toJSON(tb testing.TB, v any) string {
	tb.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// quote returns s as a JSON string. A Go string always has one.
func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}
