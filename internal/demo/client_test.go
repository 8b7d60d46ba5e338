package demo

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/akin-search/akin/e2e/check"
)

// A client sends requests to one engine, this one or a real one.
type client struct {
	base string
	http *http.Client
}

// newClient returns a client of a new embedded engine.
func newClient() *client { return clientOf(NewEngine()) }

// clientOf returns a client of an engine that it asks without a network.
func clientOf(e *Engine) *client {
	return &client{"http://demo", &http.Client{Transport: transport{e}}}
}

type transport struct{ *Engine }

func (e transport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w.Result(), nil
}

// do sends a request and returns status and answer. A body that is no string
// is sent as JSON.
func (c *client) do(tb testing.TB, method, path string, body any) (int, any) {
	tb.Helper()
	var data []byte
	contentType := "application/json"
	switch b := body.(type) {
	case nil:
	case string:
		data = []byte(b)
		if strings.Contains(path, "_bulk") {
			contentType = "application/x-ndjson"
		}
	default:
		var err error
		data, err = json.Marshal(b, json.Deterministic(true))
		check.OK(tb, err)
	}
	request, err := http.NewRequestWithContext(tb.Context(), method, c.base+path, bytes.NewReader(data))
	check.OK(tb, err)
	if body != nil {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.http.Do(request)
	check.Must(tb, err == nil, "%s %s: %v", method, path, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	check.Must(tb, err == nil, "%s %s: %v", method, path, err)
	if len(answer) == 0 || !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		return response.StatusCode, string(answer)
	}
	var v any
	if err := json.Unmarshal(answer, &v); err != nil {
		tb.Fatalf("%s %s answers %q: %v", method, path, answer, err)
	}
	return response.StatusCode, v
}

// ok is do for a request that has to succeed.
func (c *client) ok(tb testing.TB, method, path string, body any) any {
	tb.Helper()
	status, answer := c.do(tb, method, path, body)
	check.Must(tb, status >= 200 && status <= 299, "%s %s %v: status %d, %v", method, path, body, status, answer)
	return answer
}

// load creates an index with the mapping and writes the documents.
func (c *client) load(tb testing.TB, index string, properties map[string]any, docs ...loaded) {
	tb.Helper()
	c.ok(tb, "PUT", "/"+index, map[string]any{
		"mappings": map[string]any{"properties": properties},
		"settings": map[string]any{"number_of_shards": 1, "number_of_replicas": 0},
	})
	var bulk strings.Builder
	for _, d := range docs {
		action := check.Got(json.Marshal(map[string]any{"index": map[string]any{"_id": d.id}}))(tb)
		source := check.Got(json.Marshal(d.source))(tb)
		bulk.Write(append(append(append(action, '\n'), source...), '\n'))
	}
	if len(docs) == 0 {
		return
	}
	answer := c.ok(tb, "POST", "/"+index+"/_bulk?refresh=true", bulk.String())
	check.Must(tb, at(answer, "errors") == false, "bulk: %v", answer)
}

// loaded is a document to load.
type loaded struct {
	id     string
	source map[string]any
}

// text maps a field as English text.
func text() map[string]any { return map[string]any{"type": "text", "analyzer": "english"} }

// at follows a path of member names and array indices; nil where it leads
// nowhere.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := v.(map[string]any)
			v = object[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

// scores returns the scores of a search's answer by document id.
func scores(answer any) map[string]float64 {
	out := map[string]float64{}
	hits, _ := at(answer, "hits", "hits").([]any)
	for _, h := range hits {
		id, _ := at(h, "_id").(string)
		out[id], _ = at(h, "_score").(float64)
	}
	return out
}

// ids returns the document ids of a search's answer in order.
func ids(answer any) []string {
	out := []string{}
	hits, _ := at(answer, "hits", "hits").([]any)
	for _, h := range hits {
		id, _ := at(h, "_id").(string)
		out = append(out, id)
	}
	return out
}

// best follows a path into the first hit of a search's answer.
func best(answer any, path ...any) any { return at(at(answer, "hits", "hits", 0), path...) }

// corpus returns the documents of an index of the corpus.
func corpus(index string) (docs []loaded) {
	for _, d := range Docs(index) {
		docs = append(docs, loaded{d.ID, map[string]any{"title": d.Title, "body": d.Body}})
	}
	return docs
}

// normalized returns v as it looks once it went through JSON.
func normalized(tb testing.TB, v any) any {
	tb.Helper()
	data := check.Got(json.Marshal(v))(tb)
	return decodeJSON(data)
}
