package evaluate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/akin-search/akin/evaluate/judged"
)

// placeholder stands for the text of a query in a [Template].
const placeholder = "{{query}}"

// A Template makes search bodies.
type Template struct {
	text []byte
	// What searches ask for that do not say so themselves.
	depth  int
	source any
}

// NewTemplate returns a template of a search body with {{query}} in some of its
// strings; an empty one is for queries that have bodies of their own. Searches
// that say no size ask for depth hits, and those that say no _source for the
// field title only, "" for none.
func NewTemplate(body []byte, depth int, title string) (*Template, error) {
	t := &Template{depth: depth, source: false}
	if title != "" {
		t.source = []string{title}
	}
	if body = bytes.TrimPrefix(body, []byte("\ufeff")); len(body) == 0 { // a byte order mark
		return t, nil
	}
	if !bytes.Contains(body, []byte(placeholder)) {
		return nil, fmt.Errorf("no %s in the search body, in place of the query's text", placeholder)
	}
	var err error
	t.text, err = t.complete(body)
	return t, err
}

// complete adds to a body what it does not say.
func (t *Template) complete(body []byte) ([]byte, error) {
	var search map[string]json.RawMessage
	if err := json.Unmarshal(body, &search); err != nil {
		return nil, fmt.Errorf("the search body is no JSON object: %w", err)
	}
	for name, value := range map[string]any{"size": t.depth, "_source": t.source} {
		if _, ok := search[name]; !ok {
			search[name], _ = json.Marshal(value) // a number, strings
		}
	}
	return json.Marshal(search)
}

// Body returns the search for a query.
func (t *Template) Body(q judged.Query) ([]byte, error) {
	if q.Body != nil {
		return t.complete(q.Body)
	}
	if t.text == nil {
		return nil, errors.New("a query with a text needs a template of a search")
	}
	text, err := json.Marshal(q.Text)
	if err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(t.text, []byte(placeholder), text[1:len(text)-1]), nil
}

// Depth returns how many hits the searches of the template ask for.
func (t *Template) Depth() int {
	search := struct{ Size int }{t.depth}
	_ = json.Unmarshal(t.text, &search) // "" has no size
	return search.Size
}
