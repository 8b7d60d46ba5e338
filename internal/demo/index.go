package demo

import (
	"crypto/rand"
	"maps"
	"regexp"
	"slices"
	"sort"
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
	docs       []document     // by document number
	known      map[string]int // document number by id
	fields     map[string]*inverted
}

// A document is never changed.
type document struct {
	id     string
	source []byte                  // as it came
	terms  map[string][]occurrence // by field, where the source does not have them
}

// An occurrence says how often a document has a term.
type occurrence struct {
	of   *postings
	freq int32
}

// A fieldEntry is one field of one document as it is indexed.
type fieldEntry struct {
	freqs  map[string]int // by term
	length int            // as quantizedLength remembers it
	tokens int
}

// An inverted field has the documents of each of its terms.
type inverted struct {
	bm25       bm25
	terms      map[string]*postings
	docCount   int // documents with at least one term
	tokens     int
	sumDocFreq int
}

// The postings of a term, in ascending order of documents.
type postings struct {
	term      string
	list      []posting
	totalFreq int
}

// A posting says how often a document has a term in a field of that length.
type posting struct{ doc, freq, length int32 }

// of returns the postings of a term, empty ones where no document has it.
func (f *inverted) of(term string) *postings {
	if f == nil || f.terms[term] == nil {
		return &postings{}
	}
	return f.terms[term]
}

func newIndex(name string, created time.Time, m *mapping) *index {
	return &index{
		name: name, uuid: rand.Text(), created: created, replicas: "1", mapping: m,
		known: map[string]int{}, fields: map[string]*inverted{},
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
	ix.add(id, source, entries)
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

// add puts a document behind the others, with its fields.
func (ix *index) add(id string, source []byte, entries map[string]*fieldEntry) {
	number := int32(len(ix.docs)) //nolint:gosec // as many documents do not fit in memory
	d := document{id: id, source: source}
	if ix.mapping.loaded {
		d.terms = make(map[string][]occurrence, len(entries))
	}
	ix.known[id] = len(ix.docs)
	ix.docs = append(ix.docs, d)
	for name, e := range entries {
		f := ix.fields[name]
		if f == nil {
			f = &inverted{bm25: ix.mapping.fields[name].bm25, terms: map[string]*postings{}}
			ix.fields[name] = f
		}
		if len(e.freqs) > 0 {
			f.docCount++
		}
		f.tokens += e.tokens
		f.sumDocFreq += len(e.freqs)
		for term, freq := range e.freqs {
			p := f.terms[term]
			if p == nil {
				p = &postings{term: term}
				f.terms[term] = p
			}
			p.list = append(p.list, posting{number, int32(freq), int32(e.length)}) //nolint:gosec // of a text that was sent
			p.totalFreq += freq
			if d.terms != nil {
				d.terms[name] = append(d.terms[name], occurrence{p, int32(freq)}) //nolint:gosec // as above
			}
		}
	}
}

// seek returns where the list has the document, or else the first behind it.
// The last place that was sought makes it fast where documents ascend.
func seek(list []posting, last, doc int) int {
	if last > 0 && int(list[last-1].doc) >= doc {
		last = 0
	}
	if last == len(list) || int(list[last].doc) >= doc {
		return last
	}
	return last + sort.Search(len(list)-last, func(i int) bool { return int(list[last+i].doc) >= doc })
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

// A fieldType says how the values of one field are indexed. It is immutable.
type fieldType struct {
	name      string // of the type: text or keyword
	analyzer  string
	bm25      bm25
	subfields []string // by their full names
}

// A mapping has the fields of an index by their full names. It is immutable.
type mapping struct {
	fields     map[string]*fieldType
	properties map[string]any // as written
	analyzers  map[string]*analyzer
	loaded     bool // by [Engine.Load]: a document may have other fields, too
}

func newMapping(definition map[string]any, known map[string]*analyzer) *mapping {
	a := newArgs("mapping", definition)
	m := &mapping{fields: map[string]*fieldType{}, properties: a.object("properties"), analyzers: known}
	a.done()
	for name, field := range m.properties {
		m.define(name, field)
	}
	return m
}

func (m *mapping) define(name string, definition any) *fieldType {
	a := newArgs("field "+name, definition)
	t := &fieldType{name: a.str("type", ""), bm25: defaultBM25()}
	switch t.name {
	case "text":
		t.analyzer = a.str("analyzer", "standard")
	case "keyword":
		t.analyzer = "keyword"
	default:
		panic(mapperError("No handler for type [%s] declared on field [%s]", t.name, name))
	}
	if m.analyzers[t.analyzer] == nil {
		panic(mapperError("analyzer [%s] has not been configured in mappings", t.analyzer))
	}
	subfields := a.object("fields")
	a.done()
	for _, sub := range slices.Sorted(maps.Keys(subfields)) {
		full := name + "." + sub
		if len(m.define(full, subfields[sub]).subfields) > 0 {
			panic(mapperError("Field [%s] can't have fields of its own", full))
		}
		t.subfields = append(t.subfields, full)
	}
	m.fields[name] = t
	return t
}

// matching returns the fields whose names match the pattern, sorted. A name
// without wildcard is returned as it is.
func (m *mapping) matching(pattern string) []string {
	if !strings.Contains(pattern, "*") {
		return []string{pattern}
	}
	out := slices.Sorted(maps.Keys(m.fields))
	return slices.DeleteFunc(out, func(name string) bool { return !wildcard(pattern, name) })
}

// wildcard reports whether pattern, in which each * stands for any number of
// characters, matches all of s.
func wildcard(pattern, s string) bool {
	expression := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
	matches, err := regexp.MatchString("(?s)^"+expression+"$", s)
	return matches && err == nil
}
