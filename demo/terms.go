package demo

import "slices"

// Gaps between the values of one field, as the real engines put them: offsets
// go on after one character, positions of a text field after a hundred.
const offsetGap, textPositionGap = 1, 100

// maxAnalyzedTokens bounds _analyze, as index.analyze.max_token_count does.
const maxAnalyzedTokens = 10_000

// An analyzedToken is a token of a list of texts: offsets count UTF-16 units
// and, like positions, run on from text to text.
type analyzedToken struct {
	Token       string `json:"token"`
	StartOffset int    `json:"start_offset"`
	EndOffset   int    `json:"end_offset"`
	Type        string `json:"type"`
	Position    int    `json:"position"`
}

// analyzeAll analyzes the values of one field.
func (a *analyzer) analyzeAll(values []any, positionGap int) []analyzedToken {
	out := []analyzedToken{}
	position, offset := 0, 0
	for _, v := range values {
		text, _ := textOf(v)
		tokens, positions := a.analyze(text)
		at := 0 // in bytes, what offset is in UTF-16 units
		advance := func(end int) int {
			offset += utf16Len(text[at:end])
			at = end
			return offset
		}
		for _, t := range tokens {
			out = append(out, analyzedToken{t.term, advance(t.start), advance(t.end), t.kind, position + t.position})
		}
		offset = advance(len(text)) + offsetGap
		position += positions + positionGap
	}
	return out
}

// analyze answers which terms an analyzer, or the index analyzer of a field,
// makes of a text.
func (e *Engine) analyze(c *call) any {
	a := newArgs("analyze", c.decoded())
	name, field, texts := a.str("analyzer", ""), a.str("field", ""), a.list("text")
	a.done()
	if len(texts) == 0 {
		panic(badRequest("action_request_validation_exception", "Validation Failed: 1: text is missing;"))
	}
	gap := 0
	if index := c.PathValue("index"); index != "" {
		gap = textPositionGap
		if t := e.single(index).mapping.fields[field]; t != nil && name == "" {
			if name = t.analyzer; name == "" {
				panic(badRequest("illegal_argument_exception",
					"Can't process field [%s], Analysis requests are only supported on tokenized fields", field))
			}
			if t.name != "text" {
				gap = 0
			}
		}
	} else if field != "" {
		panic(badRequest("illegal_argument_exception", "a field needs an index to be analyzed in"))
	}
	if name == "" {
		name = "standard"
	}
	if e.analyzers[name] == nil {
		panic(badRequest("illegal_argument_exception", "failed to find analyzer [%s]", name))
	}
	tokens := e.analyzers[name].analyzeAll(texts, gap)
	if len(tokens) > maxAnalyzedTokens {
		panic(badRequest("illegal_state_exception",
			"The number of tokens produced by calling _analyze has exceeded the allowed maximum of [%d]."+
				" This limit can be set by changing the [index.analyze.max_token_count] index level setting.", maxAnalyzedTokens))
	}
	return map[string]any{"tokens": tokens}
}

// termVectors answers with the terms of a document that is given in the
// request, and with what the index knows of them.
func (e *Engine) termVectors(c *call) any {
	a := newArgs("termvectors", c.decoded())
	doc, fields, own := a.object("doc"), a.strings("fields"), a.object("per_field_analyzer")
	o := vectorOptions{
		term: a.boolean("term_statistics", false), field: a.boolean("field_statistics", true),
		positions: a.boolean("positions", true), offsets: a.boolean("offsets", true),
	}
	a.ignore("payloads") // there are none
	a.done()
	if doc == nil {
		panic(badRequest("action_request_validation_exception", "Validation Failed: 1: doc is missing;"))
	}
	values := map[string][]any{}
	flatten(values, "", doc, 0)
	ix := e.single(c.PathValue("index"))
	vectors := map[string]any{}
	for field, list := range values {
		t := ix.mapping.fields[field]
		if t == nil || t.analyzer == "" || len(fields) > 0 && !slices.Contains(fields, field) {
			continue
		}
		name, ok := own[field].(string)
		if !ok {
			name = t.analyzer
		}
		if e.analyzers[name] == nil {
			panic(badRequest("illegal_argument_exception", "failed to find analyzer [%s] for field [%s]", name, field))
		}
		if tokens := e.analyzers[name].analyzeAll(list, textPositionGap); len(tokens) > 0 {
			vectors[field] = ix.vector(field, tokens, o)
		}
	}
	return map[string]any{"_index": ix.name, "_version": 0, "found": true, "took": e.took(c), "term_vectors": vectors}
}

// vectorOptions say which statistics and places of a term vector are wanted.
type vectorOptions struct{ term, field, positions, offsets bool }

// A vectorTerm is one term of a term vector. As in the real engines, a term
// that the index does not have has no doc_freq.
type vectorTerm struct {
	TermFreq  int              `json:"term_freq"`
	DocFreq   int              `json:"doc_freq,omitzero"`
	TotalFreq int              `json:"ttf,omitzero"`
	Tokens    []map[string]int `json:"tokens,omitempty"`
}

// vector renders the term vector of one field.
func (ix *index) vector(field string, tokens []analyzedToken, o vectorOptions) map[string]any {
	f := ix.fields[field]
	if f == nil {
		f = &fieldStatistics{}
	}
	terms := map[string]*vectorTerm{}
	for _, t := range tokens {
		term := terms[t.Token]
		if term == nil {
			term = &vectorTerm{}
			terms[t.Token] = term
		}
		term.TermFreq++
		if o.term {
			term.DocFreq, term.TotalFreq = f.docFreq[t.Token], f.totalFreq[t.Token]
		}
		place := map[string]int{}
		if o.positions {
			place["position"] = t.Position
		}
		if o.offsets {
			place["start_offset"], place["end_offset"] = t.StartOffset, t.EndOffset
		}
		if len(place) > 0 {
			term.Tokens = append(term.Tokens, place)
		}
	}
	out := map[string]any{"terms": terms}
	if o.field {
		out["field_statistics"] = map[string]any{"doc_count": f.docCount, "sum_doc_freq": f.sumDocFreq, "sum_ttf": f.totalTermFreq}
	}
	return out
}
