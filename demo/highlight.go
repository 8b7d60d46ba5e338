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
	query     any // nil is the query of the search
}

// parseHighlight reads a highlight member.
func parseHighlight(v any) *highlighter {
	a := newArgs("highlight", v)
	h := &highlighter{pre: "<em>", post: "</em>", fragments: 5}
	fields := a.list("fields")
	h.options(a)
	for _, v := range fields {
		byName := newArgs("highlight", v).rest
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			h.options(newArgs("highlight", byName[name]))
			h.fields = append(h.fields, name)
		}
	}
	return h
}

// options reads the options for all fields or for one; the last one read counts
// for all. It accepts options that only choose between the real engines'
// highlighters and their fragment sizes.
func (h *highlighter) options(a *args) {
	if tags := a.strings("pre_tags"); len(tags) > 0 {
		h.pre = tags[0]
	}
	if tags := a.strings("post_tags"); len(tags) > 0 {
		h.post = tags[0]
	}
	h.fragments = a.integer("number_of_fragments", h.fragments)
	if q, ok := a.take("highlight_query"); ok {
		h.query = q
	}
	a.ignore("type", "fragment_size", "fragmenter", "boundary_scanner", "order", "encoder", "no_match_size")
	a.done()
}

// mark returns the marked fragments of a result by field.
func (h *highlighter) mark(res result) map[string]any {
	q := res.query
	if h.query != nil {
		q = parseQuery(res.ix, h.query, false)
	}
	m := res.ix.mapping
	values := parseDocument(res.ix.docs[res.doc].source)
	out := map[string]any{}
	for _, pattern := range h.fields {
		for _, name := range m.matching(pattern) {
			if t := m.fields[name]; t != nil && t.name == "text" {
				wanted := func(text string) bool { return slices.Contains(q.terms, term{name, text}) }
				if fragments := h.fragmentsOf(values[name], m.analyzers[t.analyzer], wanted); len(fragments) > 0 {
					out[name] = fragments
				}
			}
		}
	}
	return out
}

// fragmentsOf returns the sentences of values that have a wanted term, with the
// tags around it.
func (h *highlighter) fragmentsOf(values []any, a *analyzer, wanted func(text string) bool) (out []string) {
	for _, v := range values {
		text, _ := textOf(v)
		pieces := []string{text}
		if h.fragments > 0 {
			pieces = strings.SplitAfter(text, ". ")
		}
		for _, piece := range pieces {
			var marked strings.Builder
			last := 0
			tokens, _ := a.analyze(piece)
			for _, t := range tokens {
				if wanted(t.term) {
					marked.WriteString(piece[last:t.start] + h.pre + piece[t.start:t.end] + h.post)
					last = t.end
				}
			}
			if last > 0 && (h.fragments == 0 || len(out) < h.fragments) {
				out = append(out, strings.TrimSpace(marked.String()+piece[last:]))
			}
		}
	}
	return out
}
