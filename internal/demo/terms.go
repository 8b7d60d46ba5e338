package demo

import (
	"cmp"
	"slices"
)

// Gaps between the values of one field, as the real engines put them: offsets
// go on after one character, positions of a text field after a hundred.
const offsetGap, textPositionGap = 1, 100

// An analyzedToken is a token of a list of texts: offsets count UTF-16 units
// and, like positions, run on from text to text.
type analyzedToken struct {
	Token       string `json:"token"`
	StartOffset int    `json:"start_offset"`
	EndOffset   int    `json:"end_offset"`
	Position    int    `json:"position"`
	Length      int    `json:"positionLength,omitzero"`
}

func (a *analyzer) analyzeAll(values []string, positionGap int) []analyzedToken {
	out := []analyzedToken{}
	position, offset := 0, 0
	for _, text := range values {
		tokens, positions := a.analyze(text)
		at := 0 // in bytes, what offset is in UTF-16 units
		advance := func(end int) int {
			offset += utf16Len(text[at:end])
			at = end
			return offset
		}
		for _, t := range tokens {
			out = append(out, analyzedToken{t.term, advance(t.start), advance(t.end), position + t.position, t.length})
		}
		offset = advance(len(text)) + offsetGap
		position += positions + positionGap
	}
	return out
}

// analyze answers which terms an analyzer, or that of a field, makes of a text.
func (e *Engine) analyze(c *call) any {
	a := newArgs("analyze", c.decoded())
	name, field, texts := a.str("analyzer", ""), a.str("field", ""), fieldValues("text", a.list("text"))
	a.done()
	if len(texts) == 0 {
		panic(badRequest("action_request_validation_exception", "Validation Failed: 1: text is missing;"))
	}
	gap, known := 0, e.analyzers
	if index := c.PathValue("index"); index != "" {
		m := e.single(index).mapping
		gap, known = textPositionGap, m.analyzers
		if t := m.fields[field]; t != nil && name == "" {
			if name = t.analyzer; t.name != "text" {
				gap = 0
			}
		}
	} else if field != "" {
		panic(badRequest("illegal_argument_exception", "a field needs an index to be analyzed in"))
	}
	return map[string]any{"tokens": named(known, cmp.Or(name, "standard")).analyzeAll(texts, gap)}
}

func named(known map[string]*analyzer, name string) *analyzer {
	if known[name] == nil {
		panic(badRequest("illegal_argument_exception", "failed to find analyzer [%s]", name))
	}
	return known[name]
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
		panic(badRequest("action_request_validation_exception", "Validation Failed: 1: doc is missing;"))
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
		if tokens := named(ix.mapping.analyzers, name).analyzeAll(fieldValues(field, v), textPositionGap); len(tokens) > 0 {
			vectors[field] = ix.vector(field, tokens, vectorOptions{ofTerms: ofTerms, ofField: ofField})
		}
	}
	return map[string]any{"_index": ix.name, "_version": 0, "found": true, "took": e.took(c), "term_vectors": vectors}
}

// vectorParameters are what the query string of many term vectors says.
func vectorParameters() []string {
	return []string{"positions", "offsets", "payloads", "term_statistics", "field_statistics"}
}

// manyTermVectors answers with the terms of documents of indices and their
// positions, without what the indices know of them.
func (e *Engine) manyTermVectors(c *call) any {
	a := newArgs("mtermvectors", c.decoded())
	list := a.list("docs")
	a.done()
	places := c.params.Get("positions") != "false"
	for _, option := range vectorParameters() {
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
			t := ix.mapping.fields[field]
			if !found || t == nil || t.name != "text" {
				continue
			}
			if ix.mapping.loaded {
				vectors[field] = ix.docs[number].vector(field, places)
				continue
			}
			values := parseDocument(ix.docs[number].source)[field]
			if tokens := named(ix.mapping.analyzers, t.analyzer).analyzeAll(values, textPositionGap); len(tokens) > 0 {
				vectors[field] = ix.vector(field, tokens, vectorOptions{places: places})
			}
		}
		docs[i] = map[string]any{"_index": ix.name, "_id": id, "_version": 1, "found": found, "term_vectors": vectors}
	}
	return map[string]any{"docs": docs}
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

// vectorOptions say what a term vector has: statistics of its terms and of the
// field, and the places of the terms.
type vectorOptions struct{ ofTerms, ofField, places bool }

func (ix *index) vector(field string, tokens []analyzedToken, o vectorOptions) map[string]any {
	f := ix.fields[field]
	if f == nil {
		f = &inverted{}
	}
	terms := map[string]vectorTerm{}
	for _, t := range tokens {
		term := terms[t.Token]
		term.TermFreq++
		if o.places {
			term.Tokens = append(term.Tokens, map[string]int{"position": t.Position})
		}
		if o.ofTerms {
			known := f.of(t.Token)
			term.DocFreq, term.TotalFreq = len(known.list), known.totalFreq
		}
		terms[t.Token] = term
	}
	out := map[string]any{"terms": terms}
	if o.ofField {
		out["field_statistics"] = map[string]any{"doc_count": f.docCount, "sum_doc_freq": f.sumDocFreq, "sum_ttf": f.tokens}
	}
	return out
}
