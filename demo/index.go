package demo

import (
	"crypto/rand"
	"time"

	"github.com/go-json-experiment/json"
)

// An index has documents and statistics of their fields.
type index struct {
	name, uuid string
	created    time.Time
	replicas   string
	mapping    *mapping
	docs       []document // by document number
	known      map[string]bool
	fields     map[string]*fieldStatistics
}

// A document is never changed.
type document struct {
	id     string
	source []byte // as it came
	fields map[string]*fieldEntry
}

// A fieldEntry is one field of one document as it is indexed.
type fieldEntry struct {
	freqs  map[string]int // by term
	length int            // as quantizedLength remembers it
	tokens int
}

// The fieldStatistics of one field.
type fieldStatistics struct {
	docFreq, totalFreq map[string]int // by term
	docCount           int            // documents with at least one term
	totalTermFreq      int
	sumDocFreq         int
}

func newIndex(name string, created time.Time, m *mapping) *index {
	return &index{
		name: name, uuid: rand.Text(), created: created, replicas: "1", mapping: m,
		known: map[string]bool{}, fields: map[string]*fieldStatistics{},
	}
}

// put writes a document under a new id. One that does not fit the mapping
// changes nothing.
func (ix *index) put(id string, source []byte) {
	entries := map[string]*fieldEntry{}
	for name, values := range parseDocument(source) {
		t := ix.mapping.fields[name]
		if t == nil {
			panic(badRequest("strict_dynamic_mapping_exception", "mapping set to strict, dynamic introduction of [%s] is not allowed", name))
		}
		for _, field := range append([]string{name}, t.subfields...) {
			entries[field] = ix.mapping.entry(field, values)
		}
	}
	ix.known[id] = true
	ix.docs = append(ix.docs, document{id, source, entries})
	ix.count(entries)
}

// entry inverts the values of a field of a document.
func (m *mapping) entry(name string, values []string) *fieldEntry {
	t := m.fields[name]
	e := &fieldEntry{freqs: map[string]int{}, length: 1}
	for _, text := range values {
		if t.name != "text" {
			e.freqs[text] = 1 // documents only, without frequencies
			e.tokens = len(e.freqs)
			continue
		}
		tokens, _ := m.analyzers[t.analyzer].analyze(text)
		for _, token := range tokens {
			e.freqs[token.term]++
		}
		e.tokens += len(tokens)
	}
	if t.name == "text" {
		e.length = quantizedLength(e.tokens)
	}
	return e
}

// count adds the fields of a document to the statistics.
func (ix *index) count(entries map[string]*fieldEntry) {
	for name, e := range entries {
		f := ix.fields[name]
		if f == nil {
			f = &fieldStatistics{docFreq: map[string]int{}, totalFreq: map[string]int{}}
			ix.fields[name] = f
		}
		if len(e.freqs) > 0 {
			f.docCount++
		}
		f.totalTermFreq += e.tokens
		f.sumDocFreq += len(e.freqs)
		for term, freq := range e.freqs {
			f.docFreq[term]++
			f.totalFreq[term] += freq
		}
	}
}

// parseDocument returns the values of a document by field, in order.
func parseDocument(source []byte) map[string][]string {
	var members map[string]any
	if err := json.Unmarshal(source, &members); err != nil || members == nil {
		panic(mapperError("failed to parse: a document is a JSON object: %v", err))
	}
	values := map[string][]string{}
	for name, v := range members {
		values[name] = fieldValues(name, v)
	}
	return values
}

// fieldValues returns the values of one field, without nulls.
func fieldValues(name string, v any) (values []string) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, v := range list {
		text, ok := textOf(v)
		if !ok && v != nil {
			panic(mapperError("failed to parse field [%s]: the embedded engine has no objects in documents", name))
		}
		if ok {
			values = append(values, text)
		}
	}
	return values
}
