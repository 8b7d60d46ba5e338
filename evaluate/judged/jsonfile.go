package judged

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A jsonFile is a file of JSON with queries, judgments or both. Its members
// say which program it comes from.
type jsonFile struct {
	// Requests are those of a _rank_eval request.
	Requests []located[ratedSearch] `json:"requests"`
	// Ratings and QuerySet are of OpenSearch's Search Relevance Workbench: a
	// judgment list and a query set, as they are sent to it (PUT
	// _plugins/_search_relevance/judgments and …/query_sets, docs.opensearch.org)
	// and kept in its indices. Hits is its answer to a GET of one of them.
	Ratings  []located[workbenchRatings] `json:"judgmentRatings"`
	QuerySet []located[workbenchQuery]   `json:"querySetQueries"`
	Hits     struct {
		Hits []struct {
			Source jsonFile `json:"_source"`
		} `json:"hits"`
	} `json:"hits"`
	// Queries is of Quepid: the export of a case or of its ratings
	// (app/views/api/v1/export of github.com/o19s/quepid).
	Queries []located[quepidQuery] `json:"queries"`
}

// known reports whether the file has anything of what can be read.
func (f *jsonFile) known() bool {
	return f.Requests != nil || f.Ratings != nil || f.QuerySet != nil || f.Queries != nil || f.Hits.Hits != nil
}

// json reads a file of JSON that is not one object a line.
func (r *reader) json(in *bufio.Reader) {
	text, err := io.ReadAll(in)
	if err != nil {
		r.fail(0, "%w", err)
		return
	}
	var file jsonFile
	switch err := json.Unmarshal(text, &file); {
	case err != nil:
		at := int64(0)
		if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			at = syntax.ByteOffset
		} else if kind, ok := errors.AsType[*json.SemanticError](err); ok {
			at = kind.ByteOffset
		}
		r.fail(lineAt(text)(at), "not as JSON with judgments is: %w", err)
	case r.given:
		r.fail(1, "the file has its queries itself: give no file of queries")
	case !file.known():
		r.fail(1, `want "requests" as in a _rank_eval request, "judgmentRatings" or "queries"`)
	default:
		r.add(&file, lineAt(text))
	}
}

// lineAt returns what says in which line of a text a byte is.
func lineAt(text []byte) func(offset int64) int {
	var ends []int64
	for i, c := range text {
		if c == '\n' {
			ends = append(ends, int64(i))
		}
	}
	return func(offset int64) int {
		before, _ := slices.BinarySearch(ends, offset)
		return before + 1
	}
}

// A workbenchRatings is the ratings of one query. A rating is a number or,
// as the workbench keeps it, a text such as "3.000".
type workbenchRatings struct {
	Query   string `json:"query"`
	Ratings []located[struct {
		Document string         `json:"docId"`
		Rating   jsontext.Value `json:"rating"`
	}] `json:"ratings"`
}

// A workbenchQuery is a member of a query set; others than the text are the
// user's own.
type workbenchQuery struct {
	Text string `json:"queryText"`
}

// A quepidQuery is called query where ratings are exported, and query_text
// where a whole case is. Ratings is {"doc": 3}, or [{"doc_id": "doc",
// "rating": 3}] from older versions.
type quepidQuery struct {
	Text    string         `json:"query"`
	InCase  string         `json:"query_text"`
	Ratings jsontext.Value `json:"ratings"`
}

// located is a value of a file and where it ends there.
type located[T any] struct {
	value T
	end   int64
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (l *located[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	err := json.UnmarshalDecode(d, &l.value)
	l.end = d.InputOffset()
	return err
}

// add adds what a file has. The queries of the workbench and of Quepid have
// no ids: the texts are the ids.
func (r *reader) add(f *jsonFile, line func(offset int64) int) {
	r.rankEval(f.Requests, line)
	for i := range f.Hits.Hits {
		r.add(&f.Hits.Hits[i].Source, line)
	}
	for _, q := range f.QuerySet {
		r.text(line(q.end), q.value.Text)
	}
	for _, q := range f.Ratings {
		text := withoutFields(q.value.Query)
		r.text(line(q.end), text)
		for _, g := range q.value.Ratings {
			r.rating(line(g.end), text, g.value.Document, g.value.Rating)
		}
	}
	for _, q := range f.Queries {
		text := cmp.Or(q.value.Text, q.value.InCase)
		r.text(line(q.end), text)
		r.quepidRatings(line(q.end), text, q.value.Ratings)
	}
}

// withoutFields returns the text of a query that the workbench has joined
// with the query's own fields: text#{"field":"value"}.
func withoutFields(query string) string {
	text, fields, _ := strings.Cut(query, "#")
	if value := jsontext.Value(fields); value.Kind() == jsontext.KindBeginObject && value.IsValid() {
		return text
	}
	return query
}

func (r *reader) quepidRatings(line int, text string, ratings jsontext.Value) {
	var err error
	if ratings.Kind() == jsontext.KindBeginObject {
		var byDocument map[string]jsontext.Value
		err = json.Unmarshal(ratings, &byDocument)
		for _, document := range slices.Sorted(maps.Keys(byDocument)) {
			r.rating(line, text, document, byDocument[document])
		}
	} else if ratings.Kind() == jsontext.KindBeginArray {
		var list []struct {
			Document string         `json:"doc_id"`
			Rating   jsontext.Value `json:"rating"`
		}
		err = json.Unmarshal(ratings, &list)
		for _, g := range list {
			r.rating(line, text, g.Document, g.Rating)
		}
	}
	if err != nil {
		r.fail(line, "the ratings of %q: %w", text, err)
	}
}

// text adds a query without an id, which may come again.
func (r *reader) text(line int, text string) {
	if text = strings.TrimSpace(text); r.queries[text] == (place{}) {
		r.query(line, Query{ID: text, Text: text})
	}
}

// rating adds a grade that is a number or a text in JSON, or none yet.
func (r *reader) rating(line int, text, document string, grade jsontext.Value) {
	switch grade.Kind() {
	case jsontext.KindNull, jsontext.KindInvalid:
		r.set.Ungraded++
	case jsontext.KindString:
		if unquoted, err := jsontext.AppendUnquote(nil, grade); err == nil {
			grade = unquoted
		}
		fallthrough
	default:
		r.grade(line, text, document, string(grade))
	}
}
