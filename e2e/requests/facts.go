package requests

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Facts are what akin can ask an engine about the indices of the fixture. They
// are not the calls that it made, but what these are made of: a term of a field
// has so many documents, a text has these tokens. So they answer the questions in
// any order and any grouping.
type Facts struct {
	// PIT is the id of a point in time of [Shop], and Weights the file of the
	// weights of [Measured].
	PIT     string `json:"pit"`
	Weights []byte `json:"weights"`
	// Expressions are the index expressions with their options, as of a query
	// string.
	Expressions map[string]Expression `json:"expressions"`
	Indices     map[string]*Index     `json:"indices"`
	// Terms are those that statistics are known of: those of S and of Texts. One
	// that a field does not list is in none of its documents.
	Terms []string              `json:"terms"`
	Texts map[string][]Analysis `json:"texts"`
	// Questions are the others, each with its answer.
	Questions map[string]Answer `json:"questions"`
}

// An Expression is what an index expression stands for, or how the engine refuses
// it.
type Expression struct {
	Indices []string `json:"indices,omitempty"`
	Refused *Answer  `json:"refused,omitempty"`
}

// An Index is a concrete index.
type Index struct {
	// Definition is its part of the answer to GET /INDEX?flat_settings=true, and
	// Mappings that of GET /INDEX/_mapping/field/*?include_defaults=true for each
	// field of text.
	Definition json.RawMessage            `json:"definition"`
	Mappings   map[string]json.RawMessage `json:"mappings"`
	// Fields are those that akin asks the statistics of.
	Fields map[string]*Field `json:"fields"`
}

// A Field has the statistics of a field.
type Field struct {
	// Shards are those of _termvectors, by shard, and Refused is how the engine
	// refuses the call. Search are those that aggregations find in all shards.
	Shards  []Statistics `json:"shards,omitempty"`
	Refused *Answer      `json:"refused,omitempty"`
	Search  *Statistics  `json:"search,omitempty"`
	// Explanation is that of a score of some terms.
	Explanation json.RawMessage `json:"explanation,omitempty"`
}

// Statistics are how many documents have the field, and each of its terms.
type Statistics struct {
	Docs  int64            `json:"docs"`
	Terms map[string]int64 `json:"terms"`
}

// An Analysis is what some analyzers make of a text. They are named as
// "INDEX ANALYZER".
type Analysis struct {
	Analyzers []string `json:"analyzers"`
	Answer
}

// An Answer is one of the engine.
type Answer struct {
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`
}

// Recordings returns the facts in a folder, a file for each engine.
func Recordings(folder string) (map[string]*Facts, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	all := map[string]*Facts{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		facts := new(Facts)
		if err := json.Unmarshal(content, facts); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".json")] = facts
	}
	return all, nil
}

// write writes the facts, a line for each.
func (f *Facts) write(path string) error {
	content, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o600)
}

// A question is one that akin asks. Some are known by what they are about.
type question struct {
	method     string
	path       string // escaped
	api        string // its part behind the expression
	expression string // of indices, "" where the path begins with none
	options    string // those of the expression
	query      url.Values
	body       []byte
	json       section // the body
}

func newQuestion(r *http.Request, body []byte) *question {
	q := &question{method: r.Method, path: r.URL.EscapedPath(), api: r.URL.EscapedPath(), query: r.URL.Query(), body: body}
	q.query.Del("filter_path") // facts are whole answers
	first, rest, slash := strings.Cut(q.api[1:], "/")
	if name, err := url.PathUnescape(first); err == nil && first != "" && (first[0] != '_' || first == "_all") {
		q.expression, q.api = name, ""
		if slash {
			q.api = "/" + rest
		}
	}
	options := url.Values{}
	for _, name := range []string{"ignore_unavailable", "allow_no_indices", "expand_wildcards", "ignore_throttled"} {
		if values, ok := q.query[name]; ok {
			options[name] = values
		}
	}
	q.options = options.Encode()
	_ = json.Unmarshal(body, &q.json) // of what is not one object there are no facts
	return q
}

// indices names the index expression among the facts.
func (q *question) indices() string {
	if q.options == "" {
		return q.expression
	}
	return q.expression + "?" + q.options
}

// String returns the whole question, equal ones alike: those, too, that differ
// only in what bounds the work of the cluster.
func (q *question) String() string {
	body := q.body
	if q.json != nil {
		asked := maps.Clone(q.json)
		for _, bound := range []string{"terminate_after", "timeout", "track_total_hits"} {
			delete(asked, bound)
		}
		body, _ = json.Marshal(asked) // sorts the members
	}
	path := q.api
	if q.expression != "" {
		path = "/" + q.expression + path
	}
	if len(q.query) > 0 {
		path += "?" + q.query.Encode()
	}
	return strings.TrimSpace(q.method + " " + path + " " + string(body))
}

// A kind is what a question is about.
type kind int

const (
	aboutOther kind = iota
	aboutDefinitions
	aboutMappings
	aboutText
	aboutStatistics // of a shard
	aboutCounts     // the same by a search
	aboutScores
	aboutDocuments
)

func (q *question) kind() kind {
	switch {
	case q.method == http.MethodGet && q.expression != "" && q.api == "":
		return aboutDefinitions
	case strings.HasPrefix(q.api, "/_mapping/field/"):
		return aboutMappings
	case q.api == "/_analyze":
		return aboutText
	case q.api == "/_termvectors" && q.json["doc"] != nil:
		return aboutStatistics
	case q.api == "/_mtermvectors":
		return aboutDocuments
	case q.api != "/_search":
		return aboutOther
	}
	if aggregations, ok := q.json["aggs"].(section); ok {
		if count(aggregations, func(string, *string) int64 { return 0 }) != nil {
			return aboutCounts
		}
	} else if q.json["explain"] == true && eachTerm(q.json["query"], func(string, string) {}) {
		return aboutScores
	}
	return aboutOther
}

// A fieldTerms is a field with the terms that are asked of it.
type fieldTerms struct {
	field  string
	source string // the member of the document that has them
	terms  []string
}

// statistics returns the fields and the shard of a question about statistics.
func (q *question) statistics() (fields []fieldTerms, shard string) {
	list, _ := q.json["fields"].([]any)
	document, _ := q.json["doc"].(section)
	for _, name := range list {
		asked := fieldTerms{}
		asked.field, _ = name.(string)
		for member := range document { // a field within a field has its text
			if member == asked.field || strings.HasPrefix(asked.field, member+".") && len(member) > len(asked.source) || len(document) == 1 {
				asked.source = member
			}
		}
		asked.terms = texts(document[asked.source])
		fields = append(fields, asked)
	}
	return fields, strings.TrimPrefix(q.query.Get("preference"), "_shards:")
}

// texts returns the texts of a list, or one that stands for a list.
func texts(v any) (all []string) {
	if one, ok := v.(string); ok {
		return []string{one}
	}
	list, _ := v.([]any)
	for _, t := range list {
		one, _ := t.(string)
		all = append(all, one)
	}
	return all
}

// documents returns the questions that one about fields of several documents
// consists of.
func (q *question) documents() (all [][]*question) {
	list, _ := q.json["docs"].([]any)
	for _, d := range list {
		document, _ := d.(section)
		var ofFields []*question
		for _, field := range texts(document["fields"]) {
			one, own := *q, maps.Clone(document)
			own["fields"] = []any{field}
			one.json = section{"docs": []any{own}}
			ofFields = append(ofFields, &one)
		}
		all = append(all, ofFields)
	}
	return all
}

// count answers aggregations that count the documents with a field, or with a
// term where that is not nil, be they nested or not. It returns nil where there
// are others.
func count(aggregations section, documents func(field string, term *string) int64) section {
	all := section{}
	for name, a := range aggregations {
		result := section{"doc_count": int64(0)}
		parts, _ := a.(section)
		for what, part := range parts {
			about, _ := part.(section)
			switch what {
			case "global", "nested":
			case "aggs":
				inner := count(about, documents)
				if inner == nil {
					return nil
				}
				maps.Copy(result, inner)
			case "filter":
				exists, _ := about["exists"].(section)
				field, _ := exists["field"].(string)
				if field == "" || len(about) != 1 {
					return nil
				}
				result["doc_count"] = documents(field, nil)
			case "filters":
				delete(result, "doc_count")
				filters, _ := about["filters"].([]any)
				buckets := make([]section, len(filters))
				for i, filter := range filters {
					field, term, ok := termOf(filter)
					if !ok {
						return nil
					}
					buckets[i] = section{"doc_count": documents(field, &term)}
				}
				result["buckets"] = buckets
			default:
				return nil
			}
		}
		all[name] = result
	}
	return all
}

// eachTerm calls f with the terms that a query looks for, nested or not. It
// reports whether the query does nothing else.
func eachTerm(query any, f func(field, term string)) bool {
	parts, _ := query.(section)
	if nested, ok := parts["nested"].(section); ok {
		return eachTerm(nested["query"], f)
	}
	boolean, _ := parts["bool"].(section)
	should, ok := boolean["should"].([]any)
	for _, clause := range should {
		field, term, is := termOf(clause)
		if ok = ok && is; ok {
			f(field, term)
		}
	}
	return ok && len(parts) == 1 && len(boolean) == 1
}

// termOf returns the field and the term of a term query.
func termOf(query any) (field, term string, ok bool) {
	parts, _ := query.(section)
	fields, _ := parts["term"].(section)
	for name, about := range fields {
		of, _ := about.(section)
		term, ok = of["value"].(string)
		return name, term, ok && len(fields) == 1
	}
	return "", "", false
}

// resolve returns the concrete indices of an expression, or how it is refused.
func (f *Facts) resolve(q *question) (Expression, error) {
	if f.Indices[q.expression] != nil {
		return Expression{Indices: []string{q.expression}}, nil
	}
	e, ok := f.Expressions[q.indices()]
	if !ok {
		return e, fmt.Errorf("the index expression %q", q.indices())
	}
	return e, nil
}

// documents returns how many documents of the index have the field, or the term
// where it is not nil.
func (f *Facts) documents(index, field string, term *string, all []Statistics) (n int64, err error) {
	if term != nil {
		if _, known := slices.BinarySearch(f.Terms, *term); !known {
			return 0, fmt.Errorf("the term %q", *term)
		}
	}
	if len(all) == 0 {
		return 0, fmt.Errorf("the statistics of the field %q of %q", field, index)
	}
	for _, s := range all {
		if term == nil {
			n += s.Docs
		} else {
			n += s.Terms[*term]
		}
	}
	return n, nil
}

// field returns what is known of a field, nothing where there is nothing.
func (f *Facts) field(index, field string) *Field {
	if i := f.Indices[index]; i != nil && i.Fields[field] != nil {
		return i.Fields[field]
	}
	return &Field{}
}

// searched returns what a search finds of the field.
func (f *Field) searched() []Statistics {
	if f.Search != nil {
		return []Statistics{*f.Search}
	}
	return f.Shards
}
