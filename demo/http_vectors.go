package demo

import (
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
)

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
	body, err := c.decoded()
	if err != nil {
		return 0, nil, err
	}
	a, err := newArgs("termvectors", body)
	if err != nil {
		return 0, nil, err
	}
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
		f = &inverted{}
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
func (f *inverted) vectorTerm(term string, tokens []placed, o vectorOptions) map[string]any {
	out := map[string]any{"term_freq": len(tokens)}
	if list := f.postings[term]; o.termStatistics && len(list) > 0 {
		total := 0
		for _, p := range list {
			total += p.freq
		}
		out["doc_freq"], out["ttf"] = len(list), total
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
