package demo

import (
	"maps"
	"slices"
	"strings"
)

// A highlighter marks the terms of the query in the fields of a hit. It cuts
// texts into sentences and returns those with a match.
type highlighter struct {
	fields    []string // patterns
	pre, post string
	fragments int // at most; 0 is the whole text
	anyField  bool
	query     any // nil is the query of the search
}

// highlight reads a highlight member. Options that only choose between
// the real engines' highlighters and their fragment sizes are accepted.
func (m *mistake) highlight(v any) *highlighter {
	a := m.members("highlight", v)
	h := &highlighter{pre: "<em>", post: "</em>", fragments: 5}
	h.options(a)
	for _, v := range a.list("fields") {
		fields := m.members("highlight", v)
		for _, name := range slices.Sorted(maps.Keys(fields.rest)) {
			own := m.members("highlight", fields.rest[name])
			h.options(own)
			_ = own.done() // it stays with m
			h.fields = append(h.fields, name)
		}
	}
	_ = a.done() // as above
	return h
}

// options reads the options that stand for all fields or for one; the last one
// read counts for all.
func (h *highlighter) options(a *args) {
	if tags := a.strings("pre_tags"); len(tags) > 0 {
		h.pre = tags[0]
	}
	if tags := a.strings("post_tags"); len(tags) > 0 {
		h.post = tags[0]
	}
	h.fragments = a.integer("number_of_fragments", h.fragments)
	h.anyField = !a.boolean("require_field_match", !h.anyField)
	if q, ok := a.take("highlight_query"); ok {
		h.query = q
	}
	for _, neutral := range []string{"type", "fragment_size", "fragmenter", "boundary_scanner", "order", "encoder", "no_match_size"} {
		a.take(neutral)
	}
}

// mark returns the marked fragments of a result by field.
func (h *highlighter) mark(res result) (map[string]any, error) {
	q := res.query
	if h.query != nil {
		var err error
		if q, err = parseQuery(res.ix, h.query); err != nil {
			return nil, err
		}
	}
	wanted := termsByField(q)
	values, err := flatten(res.ix.docs[res.doc].source)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, pattern := range h.fields {
		for _, name := range res.ix.mapping.matching(pattern) {
			t, terms := res.ix.mapping.fields[name], wanted[name]
			if h.anyField {
				terms = wanted[""]
			}
			if t == nil || t.kind != textField {
				continue
			}
			if fragments := h.fragmentsOf(values[name], res.ix.analyzers[t.analyzer], terms); len(fragments) > 0 {
				out[name] = fragments
			}
		}
	}
	return out, nil
}

// termsByField collects the terms that q looks for by field, and under "" those
// of every field.
func termsByField(q query) map[string]map[string]bool {
	wanted := map[string]map[string]bool{}
	q.terms(func(field, term string) {
		for _, key := range []string{field, ""} {
			if wanted[key] == nil {
				wanted[key] = map[string]bool{}
			}
			wanted[key][term] = true
		}
	})
	return wanted
}

func (h *highlighter) fragmentsOf(values []any, a *analyzer, terms map[string]bool) []string {
	var out []string
	for _, v := range values {
		text, _ := textOf(v)
		pieces := []string{text}
		if h.fragments > 0 {
			pieces = strings.SplitAfter(text, ". ")
		}
		for _, piece := range pieces {
			if marked, ok := h.markText(piece, a, terms); ok && (h.fragments == 0 || len(out) < h.fragments) {
				out = append(out, strings.TrimSpace(marked))
			}
		}
	}
	return out
}

// markText puts the tags around the terms in text and reports whether there
// was any.
func (h *highlighter) markText(text string, a *analyzer, terms map[string]bool) (string, bool) {
	var b strings.Builder
	last := 0
	tokens, _ := a.analyze(text)
	for _, t := range tokens {
		if terms[t.term] {
			b.WriteString(text[last:t.start] + h.pre + text[t.start:t.end] + h.post)
			last = t.end
		}
	}
	b.WriteString(text[last:])
	return b.String(), last > 0
}
