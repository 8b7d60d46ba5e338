package demo

import (
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
)

// Gaps between the values of one field, as the real engines put them: offsets
// go on after one character, positions of a text field after a hundred.
const (
	offsetGap       = 1
	textPositionGap = 100
)

// maxAnalyzedTokens bounds an _analyze request, as
// index.analyze.max_token_count does.
const maxAnalyzedTokens = 10_000

// placed is a token of a list of texts: offsets count UTF-16 units and, like
// positions, run on from text to text.
type placed struct {
	Token       string `json:"token"`
	StartOffset int    `json:"start_offset"`
	EndOffset   int    `json:"end_offset"`
	Type        string `json:"type"`
	Position    int    `json:"position"`
}

// analyzeAll analyzes the values of one field.
func analyzeAll(a *analyzer, texts []string, positionGap int) []placed {
	out := []placed{}
	position, offset := 0, 0
	for _, text := range texts {
		tokens, positions := a.analyze(text)
		at, units := 0, 0 // the offset at in bytes is units in UTF-16
		unitsAt := func(end int) int {
			if end < at {
				at, units = 0, 0
			}
			units += utf16Text(text[at:end])
			at = end
			return offset + units
		}
		for _, t := range tokens {
			start := unitsAt(t.start)
			out = append(out, placed{t.term, start, unitsAt(t.end), t.kind, position + t.position})
		}
		offset = unitsAt(len(text)) + offsetGap
		position += positions + positionGap
	}
	return out
}

// analyze answers which terms an analyzer, or the index analyzer of a field,
// makes of a text.
func (e *Engine) analyze(c *call) (int, any, error) {
	a := c.members("analyze")
	name, field, texts := a.str("analyzer", ""), a.str("field", ""), a.strings("text")
	if err := a.done(); err != nil {
		return 0, nil, err
	}
	if len(texts) == 0 {
		return 0, nil, badRequest("action_request_validation_exception", "Validation Failed: 1: text is missing;")
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	gap := 0
	if index := c.PathValue("index"); index != "" {
		ix, err := e.single(index)
		if err != nil {
			return 0, nil, err
		}
		gap = textPositionGap
		if t := ix.mapping.fields[field]; t != nil && name == "" {
			if name, err = t.analyzerName(field); err != nil {
				return 0, nil, err
			}
			if t.kind != textField {
				gap = 0
			}
		}
	} else if field != "" {
		return 0, nil, badRequest("illegal_argument_exception", "a field needs an index to be analyzed in")
	}
	if name == "" {
		name = "standard"
	}
	if e.analyzers[name] == nil {
		return 0, nil, badRequest("illegal_argument_exception", "failed to find analyzer [%s]", name)
	}
	tokens := analyzeAll(e.analyzers[name], texts, gap)
	if len(tokens) > maxAnalyzedTokens {
		return 0, nil, badRequest("illegal_state_exception",
			"The number of tokens produced by calling _analyze has exceeded the allowed maximum of [%d]."+
				" This limit can be set by changing the [index.analyze.max_token_count] index level setting.", maxAnalyzedTokens)
	}
	return http.StatusOK, map[string]any{"tokens": tokens}, nil
}

// analyzerName returns the analyzer that the field is indexed with.
func (t *fieldType) analyzerName(field string) (string, error) {
	switch t.kind {
	case textField:
		return t.analyzer, nil
	case keywordField:
		return "keyword", nil
	case booleanField, numberField:
	}
	return "", badRequest("illegal_argument_exception", "Can't process field [%s], Analysis requests are only supported on tokenized fields", field)
}

// vectorOptions say what of a term vector is wanted.
type vectorOptions struct {
	analyzers          map[string]any // by field, instead of the field's own
	fields             []string       // none is all
	termStatistics     bool
	fieldStatistics    bool
	positions, offsets bool
}

// termVectors answers with the terms of a document that is given in the
// request, and with what the index knows of them.
func (e *Engine) termVectors(c *call) (int, any, error) {
	started := e.now()
	a := c.members("termvectors")
	doc := a.object("doc")
	o := vectorOptions{
		analyzers: a.object("per_field_analyzer"), fields: a.strings("fields"),
		termStatistics: a.boolean("term_statistics", false), fieldStatistics: a.boolean("field_statistics", true),
		positions: a.boolean("positions", true), offsets: a.boolean("offsets", true),
	}
	a.boolean("payloads", true) // there are none
	if err := a.done(); err != nil {
		return 0, nil, err
	}
	if doc == nil {
		return 0, nil, badRequest("action_request_validation_exception", "Validation Failed: 1: doc is missing;")
	}
	source, err := json.Marshal(doc)
	if err != nil {
		return 0, nil, err
	}
	values, err := flatten(source)
	if err != nil {
		return 0, nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	ix, err := e.single(c.PathValue("index"))
	if err != nil {
		return 0, nil, err
	}
	vectors := map[string]any{}
	for field, list := range values {
		if len(o.fields) > 0 && !slices.Contains(o.fields, field) {
			continue
		}
		vector, err := ix.vector(field, list, o)
		if err != nil {
			return 0, nil, err
		}
		if vector != nil {
			vectors[field] = vector
		}
	}
	return http.StatusOK, map[string]any{
		"_index": ix.name, "_version": 0, "found": true, "took": e.now().Sub(started).Milliseconds(), "term_vectors": vectors,
	}, nil
}

// vector renders the term vector of one field, nil for a field that is not
// mapped or has no terms.
func (ix *index) vector(field string, values []any, o vectorOptions) (map[string]any, error) {
	t := ix.mapping.fields[field]
	if t == nil || t.kind == numberField || t.kind == booleanField {
		return nil, nil //nolint:nilnil // no vector
	}
	name, err := t.analyzerName(field)
	if err != nil {
		return nil, err
	}
	if own, ok := o.analyzers[field].(string); ok {
		name = own
	}
	if ix.analyzers[name] == nil {
		return nil, badRequest("illegal_argument_exception", "failed to find analyzer [%s] for field [%s]", name, field)
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i], _ = textOf(v)
	}
	f := ix.fields[field]
	if f == nil {
		f = &fieldStatistics{}
	}
	terms := map[string]any{}
	byTerm := map[string][]placed{}
	for _, token := range analyzeAll(ix.analyzers[name], texts, textPositionGap) {
		byTerm[token.Token] = append(byTerm[token.Token], token)
	}
	for term, tokens := range byTerm {
		terms[term] = f.vectorTerm(term, tokens, o)
	}
	if len(terms) == 0 {
		return nil, nil //nolint:nilnil // no vector
	}
	out := map[string]any{"terms": terms}
	if o.fieldStatistics {
		out["field_statistics"] = map[string]any{"doc_count": f.docCount, "sum_doc_freq": f.sumDocFreq, "sum_ttf": f.totalTermFreq}
	}
	return out, nil
}

// vectorTerm renders one term. As in the real engines, a term that the index
// does not hold has no doc_freq.
func (f *fieldStatistics) vectorTerm(term string, tokens []placed, o vectorOptions) map[string]any {
	out := map[string]any{"term_freq": len(tokens)}
	if n := f.docFreq[term]; o.termStatistics && n > 0 {
		out["doc_freq"], out["ttf"] = n, f.totalFreq[term]
	}
	if !o.positions && !o.offsets {
		return out
	}
	places := make([]any, len(tokens))
	for i, t := range tokens {
		place := map[string]any{}
		if o.positions {
			place["position"] = t.Position
		}
		if o.offsets {
			place["start_offset"], place["end_offset"] = t.StartOffset, t.EndOffset
		}
		places[i] = place
	}
	out["tokens"] = places
	return out
}
