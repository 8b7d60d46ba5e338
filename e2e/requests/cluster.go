package requests

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
)

// A Cluster answers akin's questions from facts.
type Cluster struct {
	facts   *Facts
	mu      sync.Mutex
	unknown []string
}

// NewCluster returns a cluster of which the facts are known.
func NewCluster(facts *Facts) *Cluster { return &Cluster{facts: facts} }

// Unknown returns what was asked since the last call and is not known.
func (c *Cluster) Unknown() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	unknown := c.unknown
	c.unknown = nil
	return unknown
}

// ServeHTTP answers a question, with 500 where the answer is not known.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := newQuestion(r, takeBody(r))
	status, answer, err := c.facts.answer(q)
	var body []byte
	if err == nil {
		body, err = json.Marshal(answer)
	}
	if err != nil {
		c.mu.Lock()
		c.unknown = append(c.unknown, fmt.Sprintf("%v: %s", err, q))
		c.mu.Unlock()
		status, body = http.StatusInternalServerError, []byte(`{"error":"not recorded","status":500}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Elastic-Product", "Elasticsearch")
	w.WriteHeader(status)
	_, _ = w.Write(body) // nobody waits for it where it cannot be written
}

// answer returns the answer to a question. The error says what of it is not
// known.
func (f *Facts) answer(q *question) (status int, answer any, err error) {
	kind := q.kind()
	if kind == aboutOther {
		known, ok := f.Questions[q.String()]
		if !ok {
			return 0, nil, errors.New("the question")
		}
		return known.Status, known.Body, nil
	}
	if kind == aboutDocuments {
		docs, err := f.documentVectors(q)
		return http.StatusOK, section{"docs": docs}, err
	}
	expression, err := f.resolve(q)
	if err != nil {
		return 0, nil, err
	}
	if refused := expression.Refused; refused != nil {
		return refused.Status, refused.Body, nil
	}
	switch kind {
	case aboutText:
		return f.analyze(q, expression.Indices)
	case aboutStatistics:
		return f.termVectors(q)
	case aboutDefinitions, aboutMappings:
		all := section{}
		for _, name := range expression.Indices {
			all[name] = f.Indices[name].Definition
			if kind == aboutMappings {
				all[name] = section{"mappings": f.Indices[name].mappings(path.Base(q.api))}
			}
		}
		return http.StatusOK, all, nil
	default:
		answer, err = f.search(q, expression.Indices)
		return http.StatusOK, answer, err
	}
}

// mappings returns those of the fields named.
func (i *Index) mappings(names string) section {
	found := section{}
	for name := range strings.SplitSeq(names, ",") {
		if m, ok := i.Mappings[name]; ok {
			found[name] = m
		}
	}
	return found
}

// documentVectors returns the terms of documents.
func (f *Facts) documentVectors(q *question) (docs []section, err error) {
	for _, ofFields := range q.documents() {
		document, vectors := section{}, section{}
		for _, one := range ofFields {
			known, ok := f.Questions[one.String()]
			if !ok {
				return nil, fmt.Errorf("the document of %s", one)
			}
			document = nil
			if err := json.Unmarshal(known.Body, &document); err != nil {
				return nil, err
			}
			of, _ := document["term_vectors"].(section)
			maps.Copy(vectors, of)
		}
		document["term_vectors"] = vectors
		docs = append(docs, document)
	}
	return docs, nil
}

// termVectors answers for one shard.
func (f *Facts) termVectors(q *question) (status int, answer any, err error) {
	fields, number := q.statistics()
	vectors := section{}
	for _, asked := range fields {
		known := f.field(q.expression, asked.field)
		if known.Refused != nil {
			return known.Refused.Status, known.Refused.Body, nil
		}
		shard, err := strconv.Atoi(number)
		if err != nil || shard >= len(known.Shards) {
			return 0, nil, fmt.Errorf("the field %q in shard %q of %q", asked.field, number, q.expression)
		}
		s := known.Shards[shard : shard+1]
		terms := section{}
		for _, term := range asked.terms {
			n, err := f.documents(q.expression, asked.field, &term, s)
			if err != nil {
				return 0, nil, err
			}
			terms[term] = section{"term_freq": 1}
			if n > 0 {
				terms[term] = section{"term_freq": 1, "doc_freq": n}
			}
		}
		vectors[asked.field] = section{"field_statistics": section{"doc_count": s[0].Docs}, "terms": terms}
	}
	return http.StatusOK, section{"term_vectors": vectors}, nil
}

// search counts documents, or explains a score.
func (f *Facts) search(q *question, indices []string) (answer section, err error) {
	counted := func(index, field string, term *string) int64 {
		n, unknown := f.documents(index, field, term, f.field(index, field).searched())
		if unknown != nil {
			err = unknown
		}
		return n
	}
	answer = section{"timed_out": false, "_shards": section{"total": 1, "successful": 1, "skipped": 0, "failed": 0}}
	if aggregations, ok := q.json["aggs"].(section); ok {
		answer["aggregations"] = count(aggregations, func(field string, term *string) (n int64) {
			for _, index := range indices {
				n += counted(index, field, term)
			}
			return n
		})
		return answer, err
	}
	hits := []section{}
	eachTerm(q.json["query"], func(field, term string) {
		for _, index := range indices {
			if len(hits) == 0 && f.Indices[index].Fields[field] != nil && counted(index, field, &term) > 0 {
				hits = append(hits, section{"_index": index, "_explanation": f.field(index, field).Explanation})
			}
		}
	})
	answer["hits"] = section{"hits": hits}
	return answer, err
}

// analyze answers for one index, as engines do.
func (f *Facts) analyze(q *question, indices []string) (status int, answer any, err error) {
	if len(indices) != 1 {
		return http.StatusBadRequest, section{"error": "several indices", "status": http.StatusBadRequest}, nil
	}
	index := indices[0]
	name, _ := q.json["analyzer"].(string)
	if name == "" {
		var mapped struct {
			Mapping map[string]struct{ Analyzer string }
		}
		field, _ := q.json["field"].(string)
		_ = json.Unmarshal(f.Indices[index].Mappings[field], &mapped) // no field of text is no analyzer
		for _, m := range mapped.Mapping {
			name = m.Analyzer
		}
		if name == "" {
			return http.StatusBadRequest, section{"error": "no field of text", "status": http.StatusBadRequest}, nil
		}
	}
	all := []section{}
	position, offset := 0, 0
	for _, text := range texts(q.json["text"]) {
		known := f.Texts[text]
		i := slices.IndexFunc(known, func(a Analysis) bool { return slices.Contains(a.Analyzers, index+" "+name) })
		if i < 0 {
			return 0, nil, fmt.Errorf("the text %q by the analyzer %q of %q", text, name, index)
		}
		if known[i].Status != http.StatusOK {
			return known[i].Status, known[i].Body, nil
		}
		var made struct{ Tokens []section }
		if err := json.Unmarshal(known[i].Body, &made); err != nil {
			return 0, nil, err
		}
		// Between two texts are a hundred positions and one character.
		last := position
		for _, token := range made.Tokens {
			for member, base := range map[string]int{"position": position, "start_offset": offset, "end_offset": offset} {
				at, _ := token[member].(float64)
				token[member] = int(at) + base
				if member == "position" {
					last = max(last, int(at)+base)
				}
			}
			all = append(all, token)
		}
		position, offset = last+101, offset+len(utf16.Encode([]rune(text)))+1
	}
	return http.StatusOK, section{"tokens": all}, nil
}
