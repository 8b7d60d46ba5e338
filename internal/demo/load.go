package demo

import (
	"fmt"
	"iter"
)

// A Field is a text field of an index that [Engine.Load] makes.
type Field struct {
	// Analyze returns the terms of a searched text. It may be called concurrently.
	Analyze func(text string) ([]Token, error)
	// K1 and B are the parameters of BM25. Scale multiplies each score: k1+1 in
	// Elasticsearch and in OpenSearch up to 2, 1 in OpenSearch 3.
	K1, B, Scale float64
}

// A Loaded is a document that comes as terms.
type Loaded struct {
	ID    string
	Terms map[string]map[string]int // by field: how often each term occurs
	// StandsFor is how many documents it stands for, at least 1: more in a sample.
	// Frequencies, lengths and totals are those of all; it is a single hit.
	StandsFor int
}

// Load makes an index of documents that come as terms. They have no source. Ids
// must be unique. Documents have only the given fields; searches in others are
// refused.
func (e *Engine) Load(name string, fields map[string]Field, docs iter.Seq[Loaded]) error {
	ix := newIndex(name, loadedMapping(fields))
	for d := range docs {
		ix.add([]byte("{}"), d)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.indices[name] != nil {
		return fmt.Errorf("index [%s] already exists", name)
	}
	e.indices[name] = ix
	return nil
}

// Check returns why an index with those fields would refuse a search, whatever
// its documents and the search's terms; nil if it would not.
func (*Engine) Check(fields map[string]Field, body []byte) error {
	if refused := caught(func() {
		parseSearch(newArgs("search", decodeJSON(body)).rest).find([]*index{newIndex("", loadedMapping(fields))})
	}); refused != nil {
		return fmt.Errorf("%s: %s", refused.kind, refused.reason)
	}
	return nil
}

// loadedMapping returns the mapping of an index with only those fields.
func loadedMapping(fields map[string]Field) *mapping {
	m := &mapping{fields: map[string]*fieldType{}, properties: map[string]any{}, analyzers: analyzers(), loaded: true}
	for field, f := range fields {
		own := "analyzer of " + field
		m.fields[field] = &fieldType{analyzer: own, bm25: bm25{float32(f.K1), float32(f.B), float32(f.Scale)}}
		m.properties[field] = map[string]any{"type": "text", "analyzer": own}
		m.analyzers[own] = func(text string) ([]Token, int) {
			tokens, err := f.Analyze(text)
			if err != nil {
				panic(illegal("analyzing [%s]: %v", text, err))
			}
			return tokens, len(tokens)
		}
	}
	return m
}
