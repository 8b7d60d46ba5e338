package expand

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/akin-search/akin/expand/dsl"
)

// maxTexts is how many texts of a search are read.
const maxTexts = 4

// A TextReader reads for which texts clients search. Its zero value is ready,
// for one goroutine.
type TextReader struct{ parser dsl.Parser }

// A Wanted says what one search of a request looks for.
type Wanted struct {
	// Index is its index expression; of a point in time the names of its indices.
	Index string
	// Texts are those of its clauses that score, each once. There are none for a
	// later page, and for a search that wants no hits.
	Texts []WantedText
	// Page is how many hits the answer has at least if there are more, 0 if that is
	// not known.
	Page int
}

// A WantedText is a text that a search looks for in fields, as the search names
// them. Those of patterns, and where it names none, are as explanations name
// them.
type WantedText struct {
	Text   string
	Fields []string
}

// Read returns what each search of a request looks for, nil if that is not
// understood. clauses explain the request; there may be none.
func (t *TextReader) Read(req *Request, clauses []Explanation) []Wanted {
	if req.Endpoint != EndpointMultiSearch {
		return []Wanted{t.one(req.Index, req.RawQuery, req.Body, "", clauses)}
	}
	parts, _ := partsOf(req)
	wanted := make([]Wanted, len(parts))
	for k, p := range parts {
		if !p.Odd {
			wanted[k] = t.one(p.Index, p.RawQuery, p.At.Of(req.Body), "["+strconv.Itoa(k)+"].", clauses)
		}
	}
	return wanted
}

// one reads a search; at begins the paths of its clauses.
func (t *TextReader) one(index, rawQuery string, body []byte, at string, clauses []Explanation) (w Wanted) {
	w.Index = index
	defer t.parser.Release()
	parameters, why := dsl.ReadParameters(rawQuery)
	if why == "" {
		body, why = parameters.Body(body, len(bytes.TrimSpace(body)) == 0)
	}
	if why != "" {
		return w
	}
	s, why := t.parser.Parse(body, &parameters)
	if why != "" {
		return w
	}
	if p := readPIT(s.PIT.ID); p != nil && index == "" {
		w.Index = strings.Join(p.names(), ",")
	}
	page, ok := s.Page(&parameters)
	switch {
	case !ok, page.From > 0, s.Hits.After:
		return w
	case !s.Hits.Collapsed && !s.Hits.Bare && !s.Hits.Ext: // else a short page may not have all hits
		w.Page = page.Size
	}
	for i := range s.Clauses {
		if c := &s.Clauses[i]; c.Text != "" && c.Like == nil {
			w.add(c.Text, fieldsOf(c, at+c.Path, clauses))
		}
	}
	return w
}

func (w *Wanted) add(text string, fields []string) {
	k := slices.IndexFunc(w.Texts, func(t WantedText) bool { return t.Text == text })
	switch {
	case k < 0 && len(w.Texts) == maxTexts:
		return
	case k < 0:
		k = len(w.Texts)
		w.Texts = append(w.Texts, WantedText{Text: text})
	}
	for _, f := range fields {
		if !slices.Contains(w.Texts[k].Fields, f) {
			w.Texts[k].Fields = append(w.Texts[k].Fields, f)
		}
	}
}

// fieldsOf returns the fields of a clause at a path.
func fieldsOf(c *dsl.Clause, path string, clauses []Explanation) (names []string) {
	open := len(c.Fields) == 0
	for _, f := range c.Fields {
		names = append(names, f.Name)
		open = open || strings.Contains(f.Name, "*")
	}
	if !open {
		return names
	}
	var explained []string
	for i := range clauses {
		if clauses[i].Path == path && clauses[i].Field != "" {
			explained = append(explained, clauses[i].Field)
		}
	}
	if len(explained) > 0 {
		return explained
	}
	return names
}
