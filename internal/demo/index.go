package demo

import (
	"crypto/rand"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/akin-search/akin/internal/glob"
)

// A fieldType says how a text field is indexed. It is immutable.
type fieldType struct {
	analyzer string
	bm25     bm25
}

// A mapping has the fields of an index by name. It is immutable.
type mapping struct {
	fields     map[string]*fieldType
	properties map[string]any // as written
	analyzers  map[string]analyzer
	loaded     bool // by [Engine.Load]: a document may have other fields, too
}

func newMapping(definition map[string]any) *mapping {
	a := newArgs("mapping", definition)
	m := &mapping{fields: map[string]*fieldType{}, properties: a.object("properties"), analyzers: analyzers()}
	a.done()
	for name, field := range m.properties {
		a := newArgs("field "+name, field)
		if kind := a.str("type", ""); kind != "text" {
			panic(mapperError("No handler for type [%s] declared on field [%s]", kind, name))
		}
		// Elasticsearch and OpenSearch up to 2 multiply scores by k1+1 (Lucene's
		// LegacyBM25Similarity), and so does this engine.
		t := &fieldType{analyzer: a.str("analyzer", "standard"), bm25: bm25{k1: 1.2, b: 0.75, scale: 2.2}}
		a.done()
		if m.analyzers[t.analyzer] == nil {
			panic(mapperError("analyzer [%s] has not been configured in mappings", t.analyzer))
		}
		m.fields[name] = t
	}
	return m
}

// matching returns the fields that match pattern, sorted. A name without
// wildcard is returned as it is.
func (m *mapping) matching(pattern string) []string {
	if !strings.Contains(pattern, "*") {
		return []string{pattern}
	}
	out := slices.Sorted(maps.Keys(m.fields))
	return slices.DeleteFunc(out, func(name string) bool { return !glob.Match(pattern, name) })
}

type index struct {
	name, uuid string
	mapping    *mapping
	docs       []document     // by document number
	known      map[string]int // document number by id
	fields     map[string]*inverted
}

// A document is immutable.
type document struct {
	id     string
	source []byte                  // as it came
	terms  map[string][]occurrence // by field, if there is no source with them
	stands int                     // for how many documents, see [Loaded]
}

// An occurrence is the number of times that a document has a term.
type occurrence struct {
	of   *postings
	freq int32
}

type inverted struct {
	bm25       bm25
	terms      map[string]*postings
	docCount   int // documents with at least one term; like all numbers, of those that documents stand for
	tokens     int
	sumDocFreq int
}

// postings of a term are sorted by document.
type postings struct {
	term      string
	list      []posting
	docFreq   int
	totalFreq int
}

// A posting says how often a document has a term in a field of that length, as
// quantized by Lucene.
type posting struct{ doc, freq, length int32 }

// of returns the postings of a term, empty ones if no document has it.
func (f *inverted) of(term string) *postings {
	if f == nil || f.terms[term] == nil {
		return &postings{}
	}
	return f.terms[term]
}

func newIndex(name string, m *mapping) *index {
	return &index{name: name, uuid: rand.Text(), mapping: m, known: map[string]int{}, fields: map[string]*inverted{}}
}

// put writes a new document. One that does not fit the mapping changes nothing.
func (ix *index) put(id string, source []byte) {
	if _, known := ix.known[id]; known {
		panic(refuse(http.StatusConflict, "version_conflict_engine_exception",
			"[%s]: the document exists already; this engine replaces none", id))
	}
	members, ok := decodeJSON(source).(map[string]any)
	if !ok {
		panic(mapperError("failed to parse: a document is a JSON object"))
	}
	terms := map[string]map[string]int{}
	for name, v := range members {
		t := ix.mapping.fields[name]
		if t == nil {
			panic(refuse(http.StatusBadRequest, "strict_dynamic_mapping_exception",
				"mapping set to strict, dynamic introduction of [%s] is not allowed", name))
		}
		terms[name] = map[string]int{}
		for _, token := range ix.mapping.analyzers[t.analyzer].all(fieldValues(name, v)) {
			terms[name][token.Term]++
		}
	}
	ix.add(source, Loaded{ID: id, Terms: terms, StandsFor: 1})
}

// add appends a document.
func (ix *index) add(source []byte, loaded Loaded) {
	number := int32(len(ix.docs)) //nolint:gosec // more documents do not fit in memory
	n := loaded.StandsFor
	d := document{id: loaded.ID, source: source, stands: n}
	if ix.mapping.loaded {
		d.terms = make(map[string][]occurrence, len(loaded.Terms))
	}
	ix.known[d.id] = len(ix.docs)
	ix.docs = append(ix.docs, d)
	for name, freqs := range loaded.Terms {
		t, f := ix.mapping.fields[name], ix.fields[name]
		if f == nil {
			f = &inverted{bm25: t.bm25, terms: map[string]*postings{}}
			ix.fields[name] = f
		}
		if len(freqs) > 0 {
			f.docCount += n
		}
		tokens := 0
		for _, freq := range freqs {
			tokens += freq
		}
		length := quantizedLength(tokens)
		f.tokens += n * tokens
		f.sumDocFreq += n * len(freqs)
		for term, freq := range freqs {
			p := f.terms[term]
			if p == nil {
				p = &postings{term: term}
				f.terms[term] = p
			}
			p.list = append(p.list, posting{number, int32(freq), int32(length)}) //nolint:gosec // counts of one text, at most 64 MiB long
			p.docFreq += n
			p.totalFreq += n * freq
			if d.terms != nil {
				d.terms[name] = append(d.terms[name], occurrence{p, int32(freq)}) //nolint:gosec // as above
			}
		}
	}
}

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
