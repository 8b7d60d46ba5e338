package e2e

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
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

// call sends one request and returns status and body of the answer. The body
// of the request is JSON.
func (c cluster) call(ctx context.Context, method, path, body string) (int, []byte, error) {
	return c.callWith(ctx, client, method, path, body)
}

// callWith is call through a client of the test's own.
func (c cluster) callWith(ctx context.Context, client *http.Client, method, path, body string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
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

// A document is what the tests index: an id and its fields.
type document struct {
	id     string
	fields map[string]any
}

// index writes the documents with one bulk request, which makes one segment,
// so that documents of equal score come in the order given.
func (c cluster) index(tb testing.TB, index string, docs []document) {
	tb.Helper()
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	for _, d := range docs {
		for _, line := range []any{map[string]any{"index": map[string]any{"_id": d.id}}, d.fields} {
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

// A hitList is what the tests read of the answer to a search.
type hitList struct {
	Hits struct {
		Total struct{ Value int }
		Hits  []listedHit
	}
	Shards struct{ Total, Failed int } `json:"_shards"`
}

// A listedHit is one hit.
type listedHit struct {
	ID    string
	Score float64
}

// UnmarshalJSON reads a hit, whose id may be in the column of idColumn.
func (h *listedHit) UnmarshalJSON(text []byte) error {
	var hit struct {
		ID     string  `json:"_id"`
		Score  float64 `json:"_score"`
		Fields struct{ UID [1]string }
	}
	err := json.Unmarshal(text, &hit)
	*h = listedHit{cmp.Or(hit.ID, hit.Fields.UID[0]), hit.Score}
	return err
}

// idColumn has a search return the keyword "uid" of its hits in place of _id,
// which is stored with their texts: to unpack these is what takes an engine most
// of the time of a long list of hits.
const idColumn = `"stored_fields":"_none_","docvalue_fields":["uid"]`

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

// ids returns the ids of the hits, best first.
func (h hitList) ids() []string {
	ids := make([]string, 0, len(h.Hits.Hits))
	for _, hit := range h.Hits.Hits {
		ids = append(ids, hit.ID)
	}
	return ids
}

// search sends body to path and reads the hits; any status but 200, a failed
// shard and a time-out are errors.
func (c cluster) search(ctx context.Context, path, body string) (hitList, error) {
	return c.searchWith(ctx, client, path, body)
}

// searchWith is search through a client of the test's own.
func (c cluster) searchWith(ctx context.Context, client *http.Client, path, body string) (hitList, error) {
	status, answer, err := c.callWith(ctx, client, http.MethodPost, path, body)
	if err != nil {
		return hitList{}, err
	}
	if status != http.StatusOK {
		return hitList{}, fmt.Errorf("POST %s: %d: %.2000s", path, status, answer)
	}
	var hits hitList
	if err := json.Unmarshal(answer, &hits); err != nil {
		return hitList{}, fmt.Errorf("POST %s: %w: %.2000s", path, err, answer)
	}
	if hits.Shards.Failed > 0 {
		return hits, fmt.Errorf("POST %s: %d shards failed: %.2000s", path, hits.Shards.Failed, answer)
	}
	return hits, nil
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
