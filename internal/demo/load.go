package demo

import (
	"fmt"
	"iter"
	"maps"
	"time"
)

// A Field is a text field of an index that [Engine.Load] makes.
type Field struct {
	// Analyze returns the terms of a text that is searched for. It may be called
	// by several searches at the same time.
	Analyze func(text string) ([]Token, error)
	// K1 and B are the parameters of BM25, and Scale is what each score is
	// multiplied by: k1+1 in Elasticsearch and in OpenSearch up to 2, 1 in
	// OpenSearch 3.
	K1, B, Scale float64
}

// A Token is a term at its position in a text, from where it takes so many.
type Token struct {
	Term             string
	Position, Length int
}

// Load makes an index of documents that come as terms: for each its id and, by
// field, how often it has each term. They have no source. Ids are unique, and
// fields are those given; a search of others is refused.
func (e *Engine) Load(name string, fields map[string]Field, docs iter.Seq2[string, map[string]map[string]int]) error {
	ix := newIndex(name, e.now(), e.loaded(fields))
	for id, terms := range docs {
		entries := map[string]*fieldEntry{}
		for field, freqs := range terms {
			entry := &fieldEntry{freqs: freqs}
			for _, freq := range freqs {
				entry.tokens += freq
			}
			entry.length = quantizedLength(entry.tokens)
			entries[field] = entry
		}
		ix.add(id, []byte("{}"), entries)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.indices[name] != nil {
		return fmt.Errorf("index [%s] already exists", name)
	}
	e.indices[name] = ix
	return nil
}

// loaded returns the mapping of an index with those fields only.
func (e *Engine) loaded(fields map[string]Field) *mapping {
	m := &mapping{fields: map[string]*fieldType{}, properties: map[string]any{}, analyzers: maps.Clone(e.analyzers), loaded: true}
	for field, f := range fields {
		own := "analyzer of " + field
		m.fields[field] = &fieldType{name: "text", analyzer: own, bm25: bm25{float32(f.K1), float32(f.B), float32(f.Scale)}}
		m.properties[field] = map[string]any{"type": "text", "analyzer": own}
		m.analyzers[own] = &analyzer{f.tokens, func(term string) (string, bool) { return term, true }}
	}
	return m
}

func (f Field) tokens(text string) []token {
	found, err := f.Analyze(text)
	if err != nil {
		panic(badRequest("illegal_argument_exception", "analyzing [%s]: %v", text, err))
	}
	tokens := make([]token, len(found))
	for i, t := range found {
		tokens[i] = token{term: t.Term, position: t.Position, length: t.Length}
	}
	return tokens
}

// Check returns why an index with those fields would refuse a search, whatever
// its documents and the terms of the search; nil where it would not.
func (e *Engine) Check(fields map[string]Field, body []byte) error {
	if refusal := caught(func() {
		parseSearch(newArgs("search", decodeJSON(body)).rest).find([]*index{newIndex("", time.Time{}, e.loaded(fields))})
	}); refusal != nil {
		return fmt.Errorf("%s: %s", refusal.kind, refusal.reason)
	}
	return nil
}

// vector renders the terms that a loaded document has in a field.
func (d *document) vector(field string, places bool) map[string]any {
	if places {
		panic(unsupported("positions of documents that came as terms"))
	}
	terms := map[string]vectorTerm{}
	for _, o := range d.terms[field] {
		terms[o.of.term] = vectorTerm{TermFreq: int(o.freq)}
	}
	return map[string]any{"terms": terms}
}
