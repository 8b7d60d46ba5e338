package demo

import (
	"net/http"
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
	body, err := c.decoded()
	if err != nil {
		return 0, nil, err
	}
	a, err := newArgs("analyze", body)
	if err != nil {
		return 0, nil, err
	}
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
