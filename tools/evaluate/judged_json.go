package evaluate

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A jsonFile is a JSON file with queries, judgments or both. Its members show
// which program wrote it.
type jsonFile struct {
	// Requests are from a _rank_eval request.
	Requests []located[jsonQuery] `json:"requests"`
	// Ratings and QuerySet are from OpenSearch's Search Relevance Workbench: a
	// judgment list and a query set, as clients send them (PUT
	// _plugins/_search_relevance/judgments and …/query_sets, docs.opensearch.org)
	// and as its indices store them. Hits is the answer to a GET of one of them.
	Ratings  []located[jsonQuery]      `json:"judgmentRatings"`
	QuerySet []located[workbenchQuery] `json:"querySetQueries"`
	Hits     struct {
		Hits []struct {
			Source jsonFile `json:"_source"`
		} `json:"hits"`
	} `json:"hits"`
	// Queries are from Quepid: the export of a case or of its ratings
	// (app/views/api/v1/export of github.com/o19s/quepid).
	Queries []located[jsonQuery] `json:"queries"`
}

// A jsonQuery is a query with its ratings. In a _rank_eval request it has ID,
// and Request or Template. In a Quepid case it has InCase, elsewhere Query.
type jsonQuery struct {
	ID       string         `json:"id"`
	Request  jsontext.Value `json:"request"`
	Template string         `json:"template_id"`
	Query    string         `json:"query"`
	InCase   string         `json:"query_text"`
	Ratings  ratings        `json:"ratings"`
}

// A workbenchQuery is a member of a query set. Members besides the text are the
// user's own.
type workbenchQuery struct {
	Text string `json:"queryText"`
}

// A rating has the document under the name of _rank_eval, of the workbench, or
// of older versions of Quepid. The grade is a number, a text such as "3.000",
// or null.
type rating struct {
	ID    string         `json:"_id"`
	DocID string         `json:"docId"`
	InOld string         `json:"doc_id"`
	Grade jsontext.Value `json:"rating"`
}

// ratings are a list, or an object by document in Quepid: {"doc": 3}.
type ratings []located[rating]

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (all *ratings) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != jsontext.KindBeginObject {
		return json.UnmarshalDecode(d, (*[]located[rating])(all))
	}
	var grades map[string]located[jsontext.Value]
	err := json.UnmarshalDecode(d, &grades)
	for document, grade := range grades {
		*all = append(*all, located[rating]{rating{ID: document, Grade: grade.value}, grade.end})
	}
	slices.SortFunc(*all, func(a, b located[rating]) int { return cmp.Compare(a.end, b.end) })
	return err
}

// located is a value of a file with the offset of its end.
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

func (f *jsonFile) known() bool {
	return f.Requests != nil || f.Ratings != nil || f.QuerySet != nil || f.Queries != nil || f.Hits.Hits != nil
}

// json reads a JSON file that does not have one object per line.
func (r *reader) json(text []byte) {
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
		r.fail(1, "the file already has the queries: do not give a file of queries")
	case !file.known():
		r.fail(1, `want "requests" as in a _rank_eval request, "judgmentRatings" or "queries"`)
	default:
		r.add(&file, lineAt(text))
	}
}

// add adds the content of a file. Queries of the workbench and of Quepid have
// no ids, so their texts are the ids.
func (r *reader) add(f *jsonFile, line func(offset int64) int) {
	for i := range f.Hits.Hits {
		r.add(&f.Hits.Hits[i].Source, line)
	}
	for _, q := range f.Requests {
		if q.value.Template != "" || q.value.Request.Kind() != jsontext.KindBeginObject {
			r.fail(line(q.end), "request %q: want the search itself in \"request\"; templates are not read", q.value.ID)
			continue
		}
		r.query(line(q.end), Query{ID: q.value.ID, Body: q.value.Request})
		r.rate(q.value.ID, q.value.Ratings, line)
	}
	for _, q := range f.QuerySet {
		r.queryOnce(line(q.end), q.value.Text, q.value.Text)
	}
	for _, q := range slices.Concat(f.Ratings, f.Queries) {
		text := cmp.Or(q.value.InCase, withoutFields(q.value.Query))
		r.queryOnce(line(q.end), text, text)
		r.rate(text, q.value.Ratings, line)
	}
}

// withoutFields returns the text of a query that the workbench has joined with
// its fields: text#{"field":"value"}.
func withoutFields(query string) string {
	text, fields, _ := strings.Cut(query, "#")
	if value := jsontext.Value(fields); value.Kind() == jsontext.KindBeginObject && value.IsValid() {
		return text
	}
	return query
}

func (r *reader) rate(query string, all ratings, line func(offset int64) int) {
	for _, g := range all {
		grade := strings.Trim(string(g.value.Grade), `"`)
		if grade == "null" {
			grade = ""
		}
		r.grade(line(g.end), query, cmp.Or(g.value.ID, g.value.DocID, g.value.InOld), grade)
	}
}
