package demo

import (
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// An index has documents and statistics of their fields.
type index struct {
	name, uuid string
	created    time.Time
	replicas   string
	mapping    *mapping
	docs       []document // by document number; deleted ones stay, so that scrolls can show them
	byID       map[string]int
	fields     map[string]*fieldStatistics
	sequence   int // number of writes
}

// A document is one version of a document.
type document struct {
	id                string
	source            []byte // as it came
	version, sequence int
	fields            map[string]*fieldEntry // nil once it is deleted
}

// A fieldEntry is one field of one document as it is indexed.
type fieldEntry struct {
	freqs   map[string]int // by term
	length  int            // as quantizedLength remembers it
	tokens  int
	numbers []float64
}

// The fieldStatistics of one field count living documents only, as a real
// engine's do once its segments are merged.
type fieldStatistics struct {
	docFreq, totalFreq map[string]int // by term
	docCount           int            // documents with at least one term
	totalTermFreq      int
	sumDocFreq         int
}

func newIndex(name string, created time.Time, known map[string]*analyzer) *index {
	return &index{
		name: name, uuid: rand.Text(), created: created, replicas: "1",
		mapping: &mapping{map[string]*fieldType{}, map[string]any{}, known},
		byID:    map[string]int{}, fields: map[string]*fieldStatistics{},
	}
}

// put writes a document, replacing one of the same id, and returns its version.
// A document that does not fit the mapping changes nothing.
func (ix *index) put(id string, source []byte) (version int) {
	values := parseDocument(source)
	m := ix.mapping.extended(values)
	entries := map[string]*fieldEntry{}
	for path, list := range values {
		if t := m.fields[path]; t != nil {
			for _, name := range append([]string{path}, t.subfields...) {
				entries[name] = m.entry(name, id, list)
			}
		}
	}
	ix.mapping = m
	version = 1
	if old, exists := ix.byID[id]; exists {
		version = ix.docs[old].version + 1
		ix.remove(id)
	}
	ix.byID[id] = len(ix.docs)
	ix.docs = append(ix.docs, document{id, source, version, ix.sequence, entries})
	ix.sequence++
	ix.count(entries, 1)
	return version
}

// entry inverts the values of a field of a document.
func (m *mapping) entry(name, id string, values []any) *fieldEntry {
	t := m.fields[name]
	e := &fieldEntry{freqs: map[string]int{}, length: 1}
	for _, v := range values {
		text, ok := textOf(v)
		number, isNumber := numberOf(v)
		if !ok || t.numeric() && !isNumber || t.name == "boolean" && text != "true" && text != "false" {
			panic(mapperError("failed to parse field [%s] of type [%s] in document with id '%s'. Preview of field's value: '%v'", name, t.name, id, v))
		}
		switch {
		case t.numeric():
			e.numbers = append(e.numbers, number)
		case t.name == "text":
			tokens, _ := m.analyzers[t.analyzer].analyze(text)
			for _, token := range tokens {
				e.freqs[token.term]++
			}
			e.tokens += len(tokens)
		case t.ignoreAbove == 0 || utf16Len(text) <= t.ignoreAbove:
			e.freqs[text] = 1 // documents only, without frequencies
			e.tokens = len(e.freqs)
		}
	}
	if t.name == "text" && t.norms {
		e.length = quantizedLength(e.tokens)
	}
	return e
}

// count adds (sign 1) or takes away (sign -1) the fields of a document.
func (ix *index) count(entries map[string]*fieldEntry, sign int) {
	for name, e := range entries {
		f := ix.fields[name]
		if f == nil {
			f = &fieldStatistics{docFreq: map[string]int{}, totalFreq: map[string]int{}}
			ix.fields[name] = f
		}
		if len(e.freqs) > 0 {
			f.docCount += sign
		}
		f.totalTermFreq += sign * e.tokens
		f.sumDocFreq += sign * len(e.freqs)
		for term, freq := range e.freqs {
			f.docFreq[term] += sign
			f.totalFreq[term] += sign * freq
		}
	}
}

// remove deletes a document that exists.
func (ix *index) remove(id string) {
	doc := &ix.docs[ix.byID[id]]
	delete(ix.byID, id)
	ix.count(doc.fields, -1)
	doc.fields = nil
}

// live returns the numbers of the documents that are not deleted, ascending.
func (ix *index) live() []int { return slices.Sorted(maps.Values(ix.byID)) }

// parseDocument returns the scalar values of a document by dotted path, in
// order. Nulls are left out; a field that has only nulls is left out too.
func parseDocument(source []byte) map[string][]any {
	var root any
	if err := json.Unmarshal(source, &root); err != nil {
		panic(mapperError("failed to parse: %v", err))
	}
	if _, ok := root.(map[string]any); !ok {
		panic(mapperError("failed to parse: a document is a JSON object"))
	}
	values := map[string][]any{}
	flatten(values, "", root, 0)
	return values
}

// flatten adds the scalar values of v, which is at path, to values.
func flatten(values map[string][]any, path string, v any, depth int) {
	if depth > 2*maxObjectDepth {
		panic(mapperError("failed to parse: field [%s] is nested too deep", path))
	}
	switch v := v.(type) {
	case nil:
	case map[string]any:
		for name, child := range v {
			if name == "" || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
				panic(mapperError("failed to parse: field name cannot be an empty string"))
			}
			flatten(values, strings.TrimPrefix(path+"."+name, "."), child, depth+1)
		}
	case []any:
		for _, child := range v {
			flatten(values, path, child, depth+1)
		}
	default:
		values[path] = append(values[path], v)
	}
}
