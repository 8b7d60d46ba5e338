package demo

import (
	"cmp"
	"slices"
	"strings"
)

// analyze answers which terms an analyzer, or that of a field, makes of texts.
func (e *Engine) analyze(c *call) any {
	a := newArgs("analyze", c.decoded())
	name, field, texts := a.str("analyzer", ""), a.str("field", ""), fieldValues("text", a.list("text"))
	a.done()
	if len(texts) == 0 {
		panic(invalid("Validation Failed: 1: text is missing;"))
	}
	m, gap := e.single(c.PathValue("index")).mapping, positionGap
	if t := m.fields[field]; t != nil && name == "" {
		if name = t.analyzer; t.name != "text" {
			gap = 0
		}
	}
	return map[string]any{"tokens": m.analyzer(cmp.Or(name, "standard")).analyzeAll(texts, gap)}
}

// A vectorTerm is one term of a term vector. As in the real engines, a term
// that the index does not have has no doc_freq.
type vectorTerm struct {
	TermFreq  int `json:"term_freq"`
	DocFreq   int `json:"doc_freq,omitzero"`
	TotalFreq int `json:"ttf,omitzero"`
	// Tokens are in the order of their positions.
	Tokens []map[string]int `json:"tokens,omitempty"`
}

// vector counts the terms of a field, with their places if wanted.
func vector(tokens []analyzedToken, places bool) map[string]*vectorTerm {
	terms := map[string]*vectorTerm{}
	for _, t := range tokens {
		if terms[t.Token] == nil {
			terms[t.Token] = &vectorTerm{}
		}
		term := terms[t.Token]
		term.TermFreq++
		if places {
			term.Tokens = append(term.Tokens, map[string]int{"position": t.Position})
		}
	}
	return terms
}

// termVectors answers with the terms of a document that is given in the
// request, and with what the index knows of them.
func (e *Engine) termVectors(c *call) any {
	a := newArgs("termvectors", c.decoded())
	doc, fields, own := a.object("doc"), a.strings("fields"), a.object("per_field_analyzer")
	ofTerms, ofField := a.boolean("term_statistics", false), a.boolean("field_statistics", true)
	if a.boolean("positions", true) || a.boolean("offsets", true) {
		panic(unsupported("positions and offsets in term vectors"))
	}
	a.ignore("payloads") // there are none
	a.done()
	if doc == nil {
		panic(invalid("Validation Failed: 1: doc is missing;"))
	}
	ix := e.single(c.PathValue("index"))
	vectors := map[string]any{}
	for field, v := range doc {
		t := ix.mapping.fields[field]
		if t == nil || len(fields) > 0 && !slices.Contains(fields, field) {
			continue
		}
		name, ok := own[field].(string)
		if !ok {
			name = t.analyzer
		}
		terms := vector(ix.mapping.analyzer(name).analyzeAll(fieldValues(field, v), positionGap), false)
		if len(terms) == 0 {
			continue
		}
		f := ix.fields[field]
		for term, of := range terms {
			if known := f.of(term); ofTerms {
				of.DocFreq, of.TotalFreq = len(known.list), known.totalFreq
			}
		}
		out := map[string]any{"terms": terms}
		if ofField {
			if f == nil {
				f = &inverted{}
			}
			out["field_statistics"] = map[string]any{"doc_count": f.docCount, "sum_doc_freq": f.sumDocFreq, "sum_ttf": f.tokens}
		}
		vectors[field] = out
	}
	return map[string]any{"_index": ix.name, "_version": 0, "found": true, "took": c.took(), "term_vectors": vectors}
}

// vector counts the terms of a field of a document, with their places if wanted.
func (ix *index) vector(d document, field string, places bool) map[string]*vectorTerm {
	if !ix.mapping.loaded {
		a := ix.mapping.analyzers[ix.mapping.fields[field].analyzer]
		return vector(a.analyzeAll(parseDocument(d.source)[field], positionGap), places)
	}
	if places {
		panic(unsupported("positions of documents that came as terms"))
	}
	terms := map[string]*vectorTerm{}
	for _, o := range d.terms[field] {
		terms[o.of.term] = &vectorTerm{TermFreq: int(o.freq)}
	}
	return terms
}

// manyTermVectors answers with the terms of documents of indices and their
// positions, without what the indices know of them.
func (e *Engine) manyTermVectors(c *call) any {
	a := newArgs("mtermvectors", c.decoded())
	list := a.list("docs")
	a.done()
	places := c.params.Get("positions") != "false"
	for _, option := range strings.Fields(vectorParameters) {
		if c.params.Get(option) != "false" && option != "positions" && option != "payloads" { // of which there are none
			panic(unsupported("[%s] in term vectors of documents", option))
		}
	}
	docs := make([]any, len(list))
	for i, v := range list {
		a := newArgs("docs", v)
		ix, id, fields := e.single(a.str("_index", "")), a.str("_id", ""), a.strings("fields")
		a.ignore("routing") // one shard has all
		a.done()
		number, found := ix.known[id]
		vectors := map[string]any{}
		for _, field := range fields {
			if t := ix.mapping.fields[field]; !found || t == nil || t.name != "text" {
				continue
			}
			if terms := ix.vector(ix.docs[number], field, places); len(terms) > 0 {
				vectors[field] = map[string]any{"terms": terms}
			}
		}
		docs[i] = map[string]any{"_index": ix.name, "_id": id, "_version": 1, "found": found, "term_vectors": vectors}
	}
	return map[string]any{"docs": docs}
}
