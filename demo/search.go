package demo

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// maxResultWindow bounds from + size, as index.max_result_window does.
const maxResultWindow = 10_000

// A searchRequest is a parsed search body, its query excepted, which is parsed
// for each index.
type searchRequest struct {
	query      any
	from, size int
	source     sourceFilter
	highlight  *highlighter
	totalUpTo  int // hits are counted up to here; 0 is not at all
	explain    bool
	byDocument bool // sorted by _doc instead of by score
	sorted     bool // a sort was given, so that each hit carries its sort values
	minScore   float32
	perIndex   int // matches looked at in each index, in its order; 0 is all
	slice      slice
	rescore    []rescorer
}

// parseSearch reads the body of a search.
func parseSearch(body any) (*searchRequest, error) {
	if body == nil {
		body = map[string]any{}
	}
	a := newArgs("search", body)
	m := a.mistake
	r := &searchRequest{totalUpTo: maxResultWindow}
	r.query, _ = a.take("query")
	r.from, r.size = a.integer("from", 0), a.integer("size", 10)
	r.explain = a.boolean("explain", false)
	r.perIndex = a.integer("terminate_after", 0)
	r.minScore = float32(a.number("min_score", 0))
	v, _ := a.take("_source")
	r.source = m.source(v)
	if v, ok := a.take("highlight"); ok {
		r.highlight = m.highlight(v)
	}
	if v, ok := a.take("slice"); ok {
		r.slice = m.slice(v)
	}
	r.parseTotal(a)
	r.parseSort(a)
	r.rescore = m.rescorers(a.list("rescore"))
	switch {
	case len(r.rescore) > 0 && r.sorted:
		m.fail(badRequest("illegal_argument_exception", "Cannot use [sort] option in conjunction with [rescore]."))
	case len(r.rescore) > 0 && r.explain:
		m.fail(unsupported("explain with rescore"))
	}
	for _, neutral := range []string{"timeout", "track_scores", "version", "seq_no_primary_term", "stats", "profile"} {
		a.take(neutral)
	}
	if err := a.done(); err != nil {
		return nil, err
	}
	if r.from+r.size > maxResultWindow {
		return nil, badRequest("illegal_argument_exception",
			"Result window is too large, from + size must be less than or equal to: [%d] but was [%d]", maxResultWindow, r.from+r.size)
	}
	return r, nil
}

func (r *searchRequest) parseTotal(a *args) {
	switch v, _ := a.take("track_total_hits"); v := v.(type) {
	case nil:
	case bool:
		r.totalUpTo = 0
		if v {
			r.totalUpTo = math.MaxInt
		}
	case float64:
		if v < 0 || v > math.MaxInt32 || v != math.Trunc(v) {
			a.fail(parsingError("[track_total_hits] parameter must be positive, got %v", v))
		}
		r.totalUpTo = int(v)
	default:
		a.fail(parsingError("[track_total_hits] must be a boolean or a number"))
	}
}

// parseSort reads the sort orders that this engine has: by _score descending,
// and by _doc.
func (r *searchRequest) parseSort(a *args) {
	for i, v := range a.list("sort") {
		field, order := sortKey(v)
		byScore := field == "_score" && (order == nil || order == "desc")
		byDocument := field == "_doc" && (order == nil || order == "asc")
		if !byScore && !byDocument {
			a.fail(unsupported("sort by [%v]", v))
		}
		r.sorted = true
		r.byDocument = r.byDocument || i == 0 && byDocument
	}
}

// sortKey splits a sort, which is "field", {"field": "order"} or
// {"field": {"order": "order"}}; order is nil where it is not given.
func sortKey(v any) (field, order any) {
	object, ok := v.(map[string]any)
	if !ok || len(object) != 1 {
		return v, nil
	}
	for name, order := range object {
		if inner, ok := order.(map[string]any); ok {
			order = inner["order"]
		}
		return name, order
	}
	return v, nil
}

// A result is a hit in one of the indices searched.
type result struct {
	hit
	ix    *index
	query query
}

// find runs the query over the indices and returns every match in the order of
// the answer: by score, ties by index and document.
func (r *searchRequest) find(indices []*index) ([]result, error) {
	var out []result
	if len(indices) == 0 { // still refuse what cannot be parsed
		if _, err := parseQuery(newIndex("", "", indexEpoch, analyzers()), r.query); err != nil {
			return nil, err
		}
	}
	for _, ix := range indices {
		q, err := parseQuery(ix, r.query)
		if err != nil {
			return nil, err
		}
		hits := hitsOf(q, ix)
		if r.perIndex > 0 {
			hits = hits[:min(r.perIndex, len(hits))]
		}
		hits = slices.DeleteFunc(hits, func(h hit) bool { return h.score < r.minScore })
		for k := range r.rescore {
			if err := r.rescore[k].apply(ix, hits); err != nil {
				return nil, err
			}
		}
		for _, h := range hits {
			out = append(out, result{h, ix, q})
		}
	}
	out = r.slice.of(out)
	if !r.byDocument {
		slices.SortStableFunc(out, func(a, b result) int { return cmp.Compare(b.score, a.score) })
	}
	return out, nil
}

// page returns the results that the request asks for.
func (r *searchRequest) page(all []result) []result {
	from := min(r.from, len(all))
	return all[from:min(from+r.size, len(all))]
}

// answer renders the hits member of the response for one page of all results.
func (r *searchRequest) answer(all, page []result) (map[string]any, error) {
	hits := make([]any, len(page))
	for i, res := range page {
		h, err := r.render(res)
		if err != nil {
			return nil, err
		}
		hits[i] = h
	}
	answer := map[string]any{"hits": hits, "max_score": nil}
	if len(all) > 0 && r.size > 0 && !r.byDocument {
		answer["max_score"] = all[0].score
	}
	if r.totalUpTo > 0 {
		total := map[string]any{"value": len(all), "relation": "eq"}
		if len(all) > r.totalUpTo {
			total = map[string]any{"value": r.totalUpTo, "relation": "gte"}
		}
		answer["total"] = total
	}
	return answer, nil
}

func (r *searchRequest) render(res result) (map[string]any, error) {
	doc := res.ix.docs[res.doc]
	h := map[string]any{"_index": res.ix.name, "_id": doc.id, "_score": res.score}
	if r.byDocument {
		h["_score"] = nil
		h["sort"] = []any{res.doc}
	} else if r.sorted {
		h["sort"] = []any{res.score}
	}
	source, err := r.source.apply(doc.source)
	if err != nil {
		return nil, err
	}
	if source != nil {
		h["_source"] = source
	}
	if r.highlight != nil {
		marked, err := r.highlight.mark(res)
		if err != nil {
			return nil, err
		}
		if len(marked) > 0 {
			h["highlight"] = marked
		}
	}
	if r.explain {
		h["_shard"] = "[" + res.ix.name + "][0]"
		h["_node"] = nodeName
		h["_explanation"] = res.query.explain(place{res.ix, res.doc, true}, 1)
	}
	return h, nil
}

// A sourceFilter says which members of a document's source are returned.
type sourceFilter struct {
	none               bool
	includes, excludes []string // patterns over dotted paths
}

// source reads a _source member: a boolean, a pattern, a list of patterns, or
// an object of includes and excludes.
func (m *mistake) source(v any) sourceFilter {
	switch wanted := v.(type) {
	case nil:
		return sourceFilter{}
	case bool:
		return sourceFilter{none: !wanted}
	case string, []any:
		v = map[string]any{"includes": v}
	}
	a := m.members("_source", v)
	f := sourceFilter{
		includes: append(a.strings("includes"), a.strings("include")...),
		excludes: append(a.strings("excludes"), a.strings("exclude")...),
	}
	_ = a.done() // it stays with m
	return f
}

// apply returns the source as it came where nothing is filtered, nil where it
// is not wanted.
func (f sourceFilter) apply(source []byte) (any, error) {
	if f.none {
		return nil, nil //nolint:nilnil // no source is wanted
	}
	if len(f.includes) == 0 && len(f.excludes) == 0 {
		return rawJSON(source), nil
	}
	v, err := decodeJSON(source)
	if err != nil {
		return nil, err
	}
	object, _ := v.(map[string]any)
	return f.filter("", object), nil
}

func (f sourceFilter) filter(prefix string, object map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range object {
		path := prefix + name
		if slices.ContainsFunc(f.excludes, func(p string) bool { return covers(p, path) }) {
			continue
		}
		if sub, ok := v.(map[string]any); ok {
			if kept := f.filter(path+".", sub); len(kept) > 0 {
				out[name] = kept
			}
			continue
		}
		if len(f.includes) == 0 || slices.ContainsFunc(f.includes, func(p string) bool { return covers(p, path) }) {
			out[name] = v
		}
	}
	return out
}

// covers reports whether pattern matches path or an object that holds it.
func covers(pattern, path string) bool {
	return wildcard(pattern, path) || wildcard(pattern+".*", path) || strings.HasPrefix(path, pattern+".")
}

// A rescorer scores the first hits of each index again, by a second query.
type rescorer struct {
	query                   any
	window                  int
	queryWeight, nextWeight float32
}

// defaultRescoreWindow is the window of a rescorer that states none.
const defaultRescoreWindow = 10

// rescorers reads a rescore member: one rescorer or a list of them.
func (m *mistake) rescorers(list []any) []rescorer {
	out := make([]rescorer, 0, len(list))
	for _, v := range list {
		a := m.members("rescore", v)
		r := rescorer{window: a.integer("window_size", defaultRescoreWindow)}
		inner, _ := a.take("query")
		_ = a.done() // it stays with m
		q := m.members("query", inner)
		if mode := q.str("score_mode", "total"); mode != "total" {
			m.fail(unsupported("rescore with the score_mode [%s]", mode))
		}
		var ok bool
		if r.query, ok = q.take("rescore_query"); !ok {
			m.fail(parsingError("missing rescore query"))
		}
		r.queryWeight, r.nextWeight = float32(q.number("query_weight", 1)), float32(q.number("rescore_query_weight", 1))
		_ = q.done() // as above
		out = append(out, r)
	}
	return out
}

// apply scores the first hits of one index again, out of which all hits come
// ordered. As in Lucene's QueryRescorer, the scores of all hits are multiplied
// by the weight of the query, also of those behind the window.
func (s *rescorer) apply(ix *index, hits []hit) error {
	next, err := parseQuery(ix, s.query)
	if err != nil {
		return err
	}
	sortByScore(hits)
	scores := map[int]float32{}
	for _, h := range hitsOf(next, ix) {
		scores[h.doc] = h.score
	}
	for i := range hits {
		hits[i].score *= s.queryWeight
		if score, ok := scores[hits[i].doc]; ok && i < s.window {
			hits[i].score += s.nextWeight * score
		}
	}
	sortByScore(hits)
	return nil
}

// sortByScore orders the hits of an index: by score, ties by document.
func sortByScore(hits []hit) {
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.doc, b.doc))
	})
}
