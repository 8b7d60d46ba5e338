package demo

import (
	"fmt"
	"iter"
)

// A Field is a text field of an index that [Engine.Load] makes.
type Field struct {
	// Analyze returns the terms of a text that is searched for. It may be called
	// by several searches at the same time.
	Analyze func(text string) ([]string, error)
	// K1 and B are the parameters of BM25, and Scale is what each score is
	// multiplied by: k1+1 in Elasticsearch and in OpenSearch up to 2, 1 in
	// OpenSearch 3.
	K1, B, Scale float64
}

// Load makes an index of documents that come as terms: for each its id and, by
// field, how often it has each term. They have no source. Ids are unique, and
// fields are those given; a search of others is refused.
func (e *Engine) Load(name string, fields map[string]Field, docs iter.Seq2[string, map[string]map[string]int]) error {
	m := &mapping{fields: map[string]*fieldType{}, analyzers: map[string]*analyzer{}, loaded: true}
	for field, f := range fields {
		m.fields[field] = &fieldType{name: "text", analyzer: field, bm25: bm25{float32(f.K1), float32(f.B), float32(f.Scale)}}
		m.analyzers[field] = &analyzer{f.tokens, func(term string) (string, bool) { return term, true }}
	}
	ix := newIndex(name, e.now(), m)
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
		ix.add(document{id, []byte("{}")}, entries)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.indices[name] != nil {
		return fmt.Errorf("index [%s] already exists", name)
	}
	e.indices[name] = ix
	return nil
}

func (f Field) tokens(text string) []token {
	terms, err := f.Analyze(text)
	if err != nil {
		panic(badRequest("illegal_argument_exception", "analyzing [%s]: %v", text, err))
	}
	tokens := make([]token, len(terms))
	for i, term := range terms {
		tokens[i] = token{term: term, position: i}
	}
	return tokens
}

// A Hit is a document that a search finds.
type Hit struct {
	ID    string
	Score float32
}

// Search returns the hits of a search with that body, those of its page.
// Searches run at the same time.
func (e *Engine) Search(name string, body []byte) (hits []Hit, err error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if refusal := caught(func() {
		ix := e.single(name)
		r := parseSearch(newArgs("search", decodeJSON(body)).rest)
		for _, found := range r.page(r.find([]*index{ix})) {
			hits = append(hits, Hit{ix.docs[found.doc].id, found.score})
		}
	}); refusal != nil {
		return nil, fmt.Errorf("%s: %s", refusal.kind, refusal.reason)
	}
	return hits, nil
}
