package demo

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// An index has documents and statistics of their fields. The engine's lock
// guards it.
type index struct {
	name, uuid string
	created    time.Time
	replicas   string
	mapping    *mapping
	analyzers  map[string]*analyzer
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

func newIndex(name, uuid string, created time.Time, known map[string]*analyzer) *index {
	return &index{
		name: name, uuid: uuid, created: created, replicas: "1", mapping: newMapping(), analyzers: known,
		byID: map[string]int{}, fields: map[string]*fieldStatistics{},
	}
}

// put writes a document, replacing one of the same id, and reports whether it
// is new. A document that does not fit the mapping changes nothing.
func (ix *index) put(id string, source []byte) (created bool, err error) {
	values, err := flatten(source)
	if err != nil {
		return false, err
	}
	m, err := ix.extended(values)
	if err != nil {
		return false, err
	}
	entries, err := ix.entries(m, id, values)
	if err != nil {
		return false, err
	}
	ix.mapping = m
	version := 1
	old, exists := ix.byID[id]
	if exists {
		version = ix.docs[old].version + 1
		ix.remove(id)
	}
	doc := len(ix.docs)
	ix.docs = append(ix.docs, document{id, source, version, ix.sequence, entries})
	ix.sequence++
	ix.byID[id] = doc
	ix.count(entries, 1)
	return !exists, nil
}

// extended returns the mapping with the unmapped fields of values added.
func (ix *index) extended(values map[string][]any) (*mapping, error) {
	m := ix.mapping
	for _, path := range slices.Sorted(maps.Keys(values)) {
		if !m.dynamic || m.fields[path] != nil || len(values[path]) == 0 {
			continue
		}
		if m == ix.mapping {
			m = ix.mapping.clone()
		}
		if err := m.addDynamic(path, values[path][0], ix.analyzers); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// entries inverts the values of a document.
func (ix *index) entries(m *mapping, id string, values map[string][]any) (map[string]*fieldEntry, error) {
	entries := map[string]*fieldEntry{}
	for path, list := range values {
		t := m.fields[path]
		if t == nil || len(list) == 0 {
			continue
		}
		for _, name := range append([]string{path}, t.subfields...) {
			e, err := ix.entry(m.fields[name], name, id, list)
			if err != nil {
				return nil, err
			}
			entries[name] = e
		}
	}
	return entries, nil
}

func (ix *index) entry(t *fieldType, name, id string, values []any) (*fieldEntry, error) {
	e := &fieldEntry{freqs: map[string]int{}, length: 1}
	for _, v := range values {
		text, ok := textOf(v)
		number, isNumber := numberOf(v)
		if !ok || t.kind == numberField && !isNumber || t.kind == booleanField && text != "true" && text != "false" {
			return nil, mapperError("failed to parse field [%s] of type [%s] in document with id '%s'. Preview of field's value: '%v'", name, t.name, id, v)
		}
		switch t.kind {
		case numberField:
			e.numbers = append(e.numbers, number)
		case textField:
			for _, term := range ix.analyzers[t.analyzer].terms(text) {
				e.freqs[term]++
				e.tokens++
			}
		case keywordField, booleanField:
			if t.ignoreAbove == 0 || utf16Text(text) <= t.ignoreAbove {
				e.freqs[text] = 1 // docs only, without frequencies
			}
		}
	}
	if t.kind != textField {
		e.tokens = len(e.freqs)
	} else if t.norms {
		e.length = quantizedLength(e.tokens)
	}
	return e, nil
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

// flatten returns the scalar values of a document by dotted path, in order.
// Nulls are left out; a field that has none but nulls is left out too.
func flatten(source []byte) (map[string][]any, error) {
	var root any
	if err := json.Unmarshal(source, &root); err != nil {
		return nil, mapperError("failed to parse: %v", err)
	}
	object, ok := root.(map[string]any)
	if !ok {
		return nil, mapperError("failed to parse: a document is a JSON object")
	}
	values := map[string][]any{}
	if err := flattenInto(values, "", object, 0); err != nil {
		return nil, err
	}
	return values, nil
}

func flattenInto(values map[string][]any, path string, v any, depth int) error {
	if depth > 2*maxObjectDepth {
		return mapperError("failed to parse: field [%s] is nested too deep", path)
	}
	switch v := v.(type) {
	case nil:
	case map[string]any:
		for name, child := range v {
			if name == "" || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
				return mapperError("failed to parse: field name cannot be an empty string")
			}
			full := name
			if path != "" {
				full = path + "." + name
			}
			if err := flattenInto(values, full, child, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, child := range v {
			if err := flattenInto(values, path, child, depth+1); err != nil {
				return err
			}
		}
	default:
		values[path] = append(values[path], v)
	}
	return nil
}
