package requests

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Recorder stands between akin and an engine, and notes what akin asks about.
// [Recorder.Write] asks the engine for all facts about that.
type Recorder struct {
	engine  string // its URL
	forward http.Handler
	facts   *Facts

	mu     sync.Mutex
	failed error
	// What was asked about: texts, analyzers by "INDEX ANALYZER", and fields.
	texts     map[string]bool
	analyzers map[string]bool
	fields    map[string]*askedField
}

// An askedField is a field of an expression that akin asks the statistics of.
type askedField struct {
	field  string
	source string // the member of the document for _termvectors, "" where a search counts
	nested string // its path
	scored bool   // only a score is asked, as of an alias
	of     question
}

// NewRecorder returns a recorder before the engine at a URL. It answers by
// forward.
func NewRecorder(engine string, forward http.Handler) *Recorder {
	return &Recorder{
		engine: engine, forward: forward, texts: map[string]bool{}, analyzers: map[string]bool{}, fields: map[string]*askedField{},
		facts: &Facts{Expressions: map[string]Expression{}, Indices: map[string]*Index{}, Texts: map[string][]Analysis{}, Questions: map[string]Answer{}},
	}
}

// ServeHTTP notes a question and hands it on.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	if err := r.note(in.Context(), newQuestion(in, takeBody(in))); err != nil {
		r.mu.Lock()
		r.failed = errors.Join(r.failed, err)
		r.mu.Unlock()
	}
	r.forward.ServeHTTP(w, in)
}

func (r *Recorder) note(ctx context.Context, q *question) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.expression != "" && r.facts.Indices[q.expression] == nil {
		if _, known := r.facts.Expressions[q.indices()]; !known {
			if err := r.resolve(ctx, q); err != nil {
				return err
			}
		}
	}
	switch q.kind() {
	case aboutDefinitions, aboutMappings: // which are asked of every index
	case aboutText:
		for _, text := range texts(q.json["text"]) {
			r.texts[text] = true
		}
		if name, _ := q.json["analyzer"].(string); name != "" {
			r.analyzers[q.expression+" "+name] = true
		}
	case aboutStatistics, aboutCounts, aboutScores:
		r.noteField(q)
	case aboutOther:
		answer, err := r.ask(ctx, q.method, q.path, q.query, q.body)
		r.facts.Questions[q.String()] = answer
		return err
	case aboutDocuments:
		for _, one := range slices.Concat(q.documents()...) {
			answer, err := r.ask(ctx, q.method, q.api, q.query, mustMarshal(one.json))
			var documents struct{ Docs []json.RawMessage }
			if err == nil {
				err = json.Unmarshal(answer.Body, &documents)
			}
			if err != nil || len(documents.Docs) != 1 {
				return fmt.Errorf("%s: %w", one, err)
			}
			answer.Body = documents.Docs[0]
			r.facts.Questions[one.String()] = answer
		}
	}
	return nil
}

// noteField notes the fields and the terms of a question.
func (r *Recorder) noteField(q *question) {
	note := func(asked askedField, terms ...string) {
		asked.of = *q
		r.facts.Terms = append(r.facts.Terms, terms...)
		// Sorted, those that only a score is asked of come last.
		r.fields[fmt.Sprint(asked.scored, " ", q.indices(), " ", asked.field, " ", asked.source)] = &asked
	}
	switch q.kind() {
	case aboutStatistics:
		fields, _ := q.statistics()
		for _, f := range fields {
			note(askedField{field: f.field, source: f.source}, f.terms...)
		}
	case aboutCounts:
		nested := nestedPath(q.json["aggs"])
		count(q.json["aggs"].(section), func(field string, term *string) int64 {
			note(askedField{field: field, nested: nested})
			if term != nil {
				r.facts.Terms = append(r.facts.Terms, *term)
			}
			return 0
		})
	default:
		nested := nestedPath(q.json["query"])
		eachTerm(q.json["query"], func(field, term string) {
			note(askedField{field: field, nested: nested, scored: true}, term)
		})
	}
}

// nestedPath returns the path of the nested aggregation or query, "" for none.
func nestedPath(v any) string {
	parts, _ := v.(section)
	for name, part := range parts {
		inner, _ := part.(section)
		if path, ok := inner["path"].(string); ok && name == "nested" {
			return path
		}
		if path := nestedPath(part); path != "" {
			return path
		}
	}
	return ""
}

// resolve asks what an index expression stands for, and how these indices are
// defined.
func (r *Recorder) resolve(ctx context.Context, q *question) error {
	query, err := url.ParseQuery(q.options)
	if err != nil {
		return err
	}
	query.Set("flat_settings", "true")
	path := "/" + url.PathEscape(q.expression)
	answer, err := r.ask(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	if answer.Status != http.StatusOK {
		r.facts.Expressions[q.indices()] = Expression{Refused: &answer}
		return nil
	}
	var indices map[string]json.RawMessage
	if err := json.Unmarshal(answer.Body, &indices); err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	ours := []string{Archive, Depot, Measured, Shop} // others are of tests that run at the same time
	maps.DeleteFunc(indices, func(name string, _ json.RawMessage) bool { return !slices.Contains(ours, name) })
	r.facts.Expressions[q.indices()] = Expression{Indices: slices.Sorted(maps.Keys(indices))}
	for name, definition := range indices {
		if r.facts.Indices[name] == nil {
			r.facts.Indices[name] = &Index{Definition: definition, Fields: map[string]*Field{}}
		}
	}
	return nil
}

// ask asks the engine.
func (r *Recorder) ask(ctx context.Context, method, path string, query url.Values, body []byte) (Answer, error) {
	target := r.engine + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return Answer{res.StatusCode, steady(answer)}, err
}

// namesAtHand matches the names of a node, a cluster, an index and a moment, which
// are others each time.
var namesAtHand = regexp.MustCompile(`(^\{"name"|"_?node"|"(?:index\.)?(?:uuid|creation_date)"|"index_uuid"|"cluster_name"|"cluster_uuid"):"[^"]*"`)

// steady returns an answer as JSON without white space, and without what differs
// each time.
func steady(answer []byte) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, answer) != nil { // none has a body that is no JSON, but to HEAD
		return mustMarshal(string(answer))
	}
	named := namesAtHand.ReplaceAll(b.Bytes(), []byte(`$1:"recorded"`))
	return regexp.MustCompile(`"took":\d+`).ReplaceAll(named, []byte(`"took":0`))
}

// post asks the engine, and reads an answer that is no refusal.
func (r *Recorder) post(ctx context.Context, path string, query url.Values, body, into any) (Answer, error) {
	answer, err := r.ask(ctx, http.MethodPost, path, query, mustMarshal(body))
	if err == nil && answer.Status == http.StatusOK {
		err = json.Unmarshal(answer.Body, into)
	}
	if err != nil {
		err = fmt.Errorf("POST %s: %w", path, err)
	}
	return answer, err
}

func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is made of texts
	}
	return b
}

// Write asks the engine for the facts about all that was noted, and writes them
// into a folder. matrix is the file that S is built from. A point in time of an
// earlier recording stays, since its id is another one each time.
func (r *Recorder) Write(ctx context.Context, folder, engine, pit, matrix, weights string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	earlier, err := Recordings(folder)
	if err != nil || r.failed != nil {
		return errors.Join(err, r.failed)
	}
	f := r.facts
	if f.PIT = pit; earlier[engine] != nil && earlier[engine].PIT != "" {
		f.PIT = earlier[engine].PIT
	}
	if f.Weights, err = os.ReadFile(weights); err != nil {
		return err
	}
	similar, err := os.ReadFile(matrix)
	if err != nil {
		return err
	}
	f.Terms = append(f.Terms, strings.Fields(string(similar))...)
	for _, name := range slices.Sorted(maps.Keys(f.Indices)) {
		if err := r.readMappings(ctx, name, f.Indices[name]); err != nil {
			return err
		}
	}
	for _, text := range slices.Sorted(maps.Keys(r.texts)) {
		if err := r.readText(ctx, text); err != nil {
			return err
		}
	}
	slices.Sort(f.Terms)
	f.Terms = slices.Compact(f.Terms)
	for _, key := range slices.Sorted(maps.Keys(r.fields)) {
		asked := r.fields[key]
		expression, err := f.resolve(&asked.of)
		for _, name := range expression.Indices {
			if err == nil {
				err = r.readField(ctx, name, asked)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return f.write(filepath.Join(folder, engine+".json"))
}

// readMappings asks for the mappings of the fields of text.
func (r *Recorder) readMappings(ctx context.Context, name string, index *Index) error {
	answer, err := r.ask(ctx, http.MethodGet, "/"+name+"/_mapping/field/*", url.Values{"include_defaults": {"true"}}, nil)
	var all map[string]struct {
		Mappings map[string]json.RawMessage
	}
	if err == nil {
		err = json.Unmarshal(answer.Body, &all)
	}
	if err != nil {
		return err
	}
	index.Mappings = all[name].Mappings
	maps.DeleteFunc(index.Mappings, func(_ string, m json.RawMessage) bool { return !bytes.Contains(m, []byte(`"search_analyzer"`)) })
	return nil
}

// readText asks what each analyzer of the fields, and each that was named,
// makes of a text.
func (r *Recorder) readText(ctx context.Context, text string) error {
	analyzers := maps.Clone(r.analyzers)
	for name, index := range r.facts.Indices {
		for _, m := range index.Mappings {
			var mapped struct {
				Mapping map[string]struct {
					Analyzer string
					Search   string `json:"search_analyzer"`
				}
			}
			if err := json.Unmarshal(m, &mapped); err != nil {
				return err
			}
			for _, of := range mapped.Mapping {
				analyzers[name+" "+of.Analyzer], analyzers[name+" "+of.Search] = true, true
			}
		}
	}
	var all []Analysis
	for _, key := range slices.Sorted(maps.Keys(analyzers)) {
		index, name, _ := strings.Cut(key, " ")
		if r.facts.Indices[index] == nil {
			continue // an expression, which akin only tries
		}
		var made struct{ Tokens []struct{ Token string } }
		answer, err := r.post(ctx, "/"+index+"/_analyze", nil, section{"analyzer": name, "text": text}, &made)
		if err != nil {
			return err
		}
		for _, t := range made.Tokens {
			r.facts.Terms = append(r.facts.Terms, t.Token)
		}
		same := slices.IndexFunc(all, func(a Analysis) bool { return bytes.Equal(a.Body, answer.Body) })
		if same < 0 {
			all = append(all, Analysis{Answer: answer})
			same = len(all) - 1
		}
		all[same].Analyzers = append(all[same].Analyzers, key)
	}
	r.facts.Texts[text] = all
	return nil
}

// readField asks for the statistics of all terms in a field of an index.
func (r *Recorder) readField(ctx context.Context, name string, asked *askedField) (err error) {
	index := r.facts.Indices[name]
	field := index.Fields[asked.field]
	if field != nil && asked.scored {
		return nil
	}
	if field == nil {
		field = &Field{}
		index.Fields[asked.field] = field
	}
	if asked.source == "" {
		err = r.countTerms(ctx, name, asked, field)
	} else if field.Shards == nil {
		err = r.readShards(ctx, name, asked, field)
	}
	if err != nil || field.Explanation != nil {
		return err
	}
	var should []any
	for _, term := range r.facts.Terms {
		if n, err := r.facts.documents(name, asked.field, &term, field.searched()); err == nil && n > 0 && len(should) < 8 {
			should = append(should, section{"term": section{asked.field: section{"value": term}}})
		}
	}
	var found struct {
		Hits struct {
			Hits []struct {
				Explanation json.RawMessage `json:"_explanation"`
			}
		}
	}
	query := section{"bool": section{"should": should}}
	if asked.nested != "" {
		query = section{"nested": section{"path": asked.nested, "query": query}}
	}
	_, err = r.post(ctx, "/"+name+"/_search", nil, section{"size": 1, "explain": true, "_source": false, "query": query}, &found)
	if len(found.Hits.Hits) > 0 {
		field.Explanation = found.Hits.Hits[0].Explanation
	}
	return err
}

// readShards asks each shard for the statistics of all terms.
func (r *Recorder) readShards(ctx context.Context, name string, asked *askedField, field *Field) error {
	var definition struct {
		Settings struct {
			Shards string `json:"index.number_of_shards"`
		}
	}
	if err := json.Unmarshal(r.facts.Indices[name].Definition, &definition); err != nil {
		return err
	}
	shards, err := strconv.Atoi(definition.Settings.Shards)
	if err != nil {
		return err
	}
	for shard := range shards {
		var answer struct {
			Vectors map[string]struct {
				Field struct {
					Docs int64 `json:"doc_count"`
				} `json:"field_statistics"`
				Terms map[string]struct {
					Docs int64 `json:"doc_freq"`
				}
			} `json:"term_vectors"`
		}
		query := url.Values{"preference": {"_shards:" + strconv.Itoa(shard)}, "realtime": {"false"}}
		refused, err := r.post(ctx, "/"+name+"/_termvectors", query, section{
			"doc": section{asked.source: r.facts.Terms}, "fields": []string{asked.field}, "per_field_analyzer": section{asked.field: "keyword"},
			"term_statistics": true, "field_statistics": true, "positions": false, "offsets": false, "payloads": false,
		}, &answer)
		if err != nil {
			return err
		}
		if refused.Status != http.StatusOK {
			field.Refused = &refused
			return nil
		}
		found := answer.Vectors[asked.field]
		s := Statistics{Docs: found.Field.Docs, Terms: map[string]int64{}}
		for term, of := range found.Terms {
			if of.Docs > 0 {
				s.Terms[term] = of.Docs
			}
		}
		field.Shards = append(field.Shards, s)
	}
	return nil
}

// countTerms counts the documents with each term by a search.
func (r *Recorder) countTerms(ctx context.Context, name string, asked *askedField, field *Field) error {
	filters := []section{}
	for _, term := range r.facts.Terms {
		filters = append(filters, section{"term": section{asked.field: section{"value": term}}})
	}
	type counted struct {
		Docs int64 `json:"doc_count"`
	}
	type counts struct {
		Field counted
		Terms struct{ Buckets []counted }
	}
	var answer struct {
		Aggregations struct {
			All struct {
				counts

				In counts
			}
		}
	}
	aggregations := section{
		"field": section{"filter": section{"exists": section{"field": asked.field}}},
		"terms": section{"filters": section{"filters": filters}},
	}
	if asked.nested != "" {
		aggregations = section{"in": section{"nested": section{"path": asked.nested}, "aggs": aggregations}}
	}
	body := section{"size": 0, "aggs": section{"all": section{"global": section{}, "aggs": aggregations}}}
	if _, err := r.post(ctx, "/"+name+"/_search", nil, body, &answer); err != nil {
		return err
	}
	found := answer.Aggregations.All.counts
	if asked.nested != "" {
		found = answer.Aggregations.All.In
	}
	if len(found.Terms.Buckets) != len(filters) {
		return fmt.Errorf("%d counts for %d terms", len(found.Terms.Buckets), len(filters))
	}
	field.Search = &Statistics{Docs: found.Field.Docs, Terms: map[string]int64{}}
	for i, b := range found.Terms.Buckets {
		if b.Docs > 0 {
			field.Search.Terms[r.facts.Terms[i]] = b.Docs
		}
	}
	return nil
}
