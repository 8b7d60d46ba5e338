package demo

import (
	"cmp"
	"slices"
)

// analyze answers with the terms that an analyzer, or a field's, makes.
func (e *Engine) analyze(c *call) any {
	a := newArgs("analyze", c.decoded())
	name := a.str("analyzer", "")
	field := a.str("field", "")
	texts := fieldValues("text", a.list("text"))
	a.done()
	if len(texts) == 0 {
		panic(illegal("text is missing"))
	}
	m := e.single(c.PathValue("index")).mapping
	if t := m.fields[field]; t != nil && name == "" {
		name = t.analyzer
	}
	analyzer := m.analyzers[cmp.Or(name, "standard")]
	if analyzer == nil {
		panic(illegal("failed to find analyzer [%s]", name))
	}
	return map[string]any{"tokens": analyzer.all(texts)}
}

// A vectorTerm is one term of a term vector. As in the real engines, a term
// that the index lacks has no doc_freq.
type vectorTerm struct {
	TermFreq  int `json:"term_freq"`
	DocFreq   int `json:"doc_freq,omitzero"`
	TotalFreq int `json:"ttf,omitzero"`
	// Tokens are sorted by position.
	Tokens []map[string]int `json:"tokens,omitempty"`
}

// termVectors answers with statistics of the terms of a document in the
// request, and of its fields. Values are taken as terms.
func (e *Engine) termVectors(c *call) any {
	a := newArgs("termvectors", c.decoded())
	doc := a.object("doc")
	fields := a.strings("fields")
	analyzers := a.object("per_field_analyzer")
	if !a.boolean("term_statistics", false) || !a.boolean("field_statistics", true) || a.boolean("positions", true) || a.boolean("offsets", true) {
		panic(unsupported("term vectors without statistics, or with positions and offsets"))
	}
	a.ignore("payloads") // there are none
	a.done()
	if doc == nil {
		panic(illegal("doc is missing"))
	}
	ix := e.single(c.PathValue("index"))
	vectors := map[string]any{}
	for field, v := range doc {
		if ix.mapping.fields[field] == nil || len(fields) > 0 && !slices.Contains(fields, field) {
			continue
		}
		if analyzers[field] != "keyword" {
			panic(unsupported("term vectors but by the analyzer [keyword]"))
		}
		f := ix.fields[field]
		if f == nil {
			f = &inverted{}
		}
		terms := map[string]vectorTerm{}
		for _, term := range fieldValues(field, v) {
			known := f.of(term)
			terms[term] = vectorTerm{TermFreq: terms[term].TermFreq + 1, DocFreq: known.docFreq, TotalFreq: known.totalFreq}
		}
		if len(terms) > 0 {
			vectors[field] = map[string]any{
				"terms": terms, "field_statistics": f.statistics(),
			}
		}
	}
	return map[string]any{"_index": ix.name, "_version": 0, "found": true, "took": c.took(), "term_vectors": vectors}
}

func (ix *index) vector(d document, field string, places bool) map[string]vectorTerm {
	terms := map[string]vectorTerm{}
	if ix.mapping.loaded && places {
		panic(unsupported("positions of documents that came as terms"))
	}
	for _, o := range d.terms[field] {
		terms[o.of.term] = vectorTerm{TermFreq: int(o.freq)}
	}
	members, _ := decodeJSON(d.source).(map[string]any)
	for _, t := range ix.mapping.analyzers[ix.mapping.fields[field].analyzer].all(fieldValues(field, members[field])) {
		term := terms[t.Term]
		term.TermFreq++
		if places {
			term.Tokens = append(term.Tokens, map[string]int{"position": t.Position})
		}
		terms[t.Term] = term
	}
	return terms
}

func (f *inverted) statistics() map[string]any {
	return map[string]any{"doc_count": f.docCount, "sum_doc_freq": f.sumDocFreq, "sum_ttf": f.tokens}
}

// manyTermVectors answers with the terms of indexed documents and their
// positions, without statistics of terms.
func (e *Engine) manyTermVectors(c *call) any {
	a := newArgs("mtermvectors", c.decoded())
	list := a.list("docs")
	a.done()
	places := c.params.Get("positions") != "false"
	for _, option := range []string{"offsets", "term_statistics"} {
		if c.params.Get(option) != "false" {
			panic(unsupported("[%s] in term vectors of documents", option))
		}
	}
	docs := make([]any, len(list))
	for i, v := range list {
		a := newArgs("docs", v)
		ix := e.single(a.str("_index", ""))
		id := a.str("_id", "")
		fields := a.strings("fields")
		a.ignore("routing") // there is one shard
		a.done()
		number, found := ix.known[id]
		vectors := map[string]any{}
		for _, field := range fields {
			if !found || ix.mapping.fields[field] == nil {
				continue
			}
			if terms := ix.vector(ix.docs[number], field, places); len(terms) > 0 {
				vector := map[string]any{"terms": terms}
				if c.params.Get("field_statistics") != "false" {
					vector["field_statistics"] = ix.fields[field].statistics()
				}
				vectors[field] = vector
			}
		}
		docs[i] = map[string]any{"_index": ix.name, "_id": id, "_version": 1, "found": found, "term_vectors": vectors}
	}
	return map[string]any{"docs": docs}
}
