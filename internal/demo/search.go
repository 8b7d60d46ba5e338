package demo

import (
	"cmp"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/internal/glob"
)

// maxResultWindow limits from + size, as index.max_result_window does.
const maxResultWindow = 10_000

// A searchRequest is a parsed search body, except for its query, which is
// parsed for each index.
type searchRequest struct {
	query      any
	from, size int
	noSource   bool
	source     []string // patterns of the fields to return; none means all
	totalUpTo  int      // hits are counted up to this; 0 means not at all
	explain    bool
	states     bool // return each hit's version and sequence number
	numbers    bool // return the sequence number as a field
	nameless   bool // return no id
	byDocument bool // sorted by _doc or _seq_no instead of by score
	minScore   float32
	perIndex   int // limit of matches read in each index, in index order; 0 means all
	slice      int // of slices, by the hash of the id
	slices     int
	rescore    []rescorer
}

func parseSearch(body map[string]any) *searchRequest {
	a := newArgs("search", body)
	r := &searchRequest{
		from: a.integer("from", 0), size: a.integer("size", 10), explain: a.boolean("explain", false),
		perIndex: a.integer("terminate_after", 0), minScore: float32(a.number("min_score", 0)),
		states: a.boolean("version", false) || a.boolean("seq_no_primary_term", false),
	}
	r.query, _ = a.take("query")
	for _, field := range a.strings("docvalue_fields") {
		if r.numbers = field == "_seq_no"; !r.numbers {
			panic(unsupported("docvalue_fields but [_seq_no]"))
		}
	}
	for _, field := range a.strings("stored_fields") {
		if r.nameless = field == "_none_"; !r.nameless {
			panic(unsupported("stored_fields but [_none_]"))
		}
	}
	if wanted, ok := a.rest["_source"].(bool); ok {
		a.ignore("_source")
		r.noSource = !wanted
	}
	r.source = a.strings("_source")
	for _, v := range a.list("rescore") {
		r.rescore = append(r.rescore, parseRescorer(v))
	}
	slice := newArgs("slice", a.object("slice"))
	r.slice, r.slices = slice.integer("id", 0), max(slice.integer("max", 1), 1)
	slice.done()
	switch total := a.str("track_total_hits", ""); total {
	case "":
		r.totalUpTo = maxResultWindow
	case "true":
		r.totalUpTo = math.MaxInt
	case "false":
	default:
		n, err := strconv.ParseUint(total, 10, 31)
		if err != nil {
			panic(parsingError("[track_total_hits] must be a boolean or a positive number, got %s", total))
		}
		r.totalUpTo = int(n)
	}
	for _, v := range a.list("sort") {
		if v != "_doc" && v != "_seq_no" { // which are the same here
			panic(unsupported("sort by [%v]", v))
		}
		r.byDocument = true
	}
	a.ignore("timeout", "track_scores", "seq_no_primary_term", "stats", "profile")
	a.done()
	switch {
	case len(r.rescore) > 0 && r.byDocument:
		panic(illegal("Cannot use [sort] option in conjunction with [rescore]."))
	case len(r.rescore) > 0 && r.explain:
		panic(unsupported("explain with rescore"))
	case r.from+r.size > maxResultWindow:
		panic(illegal("Result window is too large, from + size must be less than or equal to: [%d] but was [%d]", maxResultWindow, r.from+r.size))
	}
	return r
}

type rescorer struct {
	query                   any
	window                  int
	queryWeight, nextWeight float32
}

func parseRescorer(v any) rescorer {
	a := newArgs("rescore", v)
	window, inner := a.integer("window_size", 10), newArgs("query", a.object("query"))
	a.done()
	if mode := inner.str("score_mode", "total"); mode != "total" {
		panic(unsupported("rescore with the score_mode [%s]", mode))
	}
	query, ok := inner.take("rescore_query")
	if !ok {
		panic(parsingError("missing rescore query"))
	}
	s := rescorer{query, window, float32(inner.number("query_weight", 1)), float32(inner.number("rescore_query_weight", 1))}
	inner.done()
	return s
}

// results are what a search found, in order, over the documents as they were.
type results struct {
	request   *searchRequest
	all, rest []result  // rest starts at the next page
	expires   time.Time // for a scroll
}

type result struct {
	hit
	ix    *index
	query query
	named map[string]query
}

// find runs the query over the indices. Every match is a result, sorted by
// score, ties by index and document.
func (r *searchRequest) find(indices []*index) *results {
	if len(indices) == 0 { // still refuse a malformed query
		parseQuery(newIndex("", &mapping{}), r.query, false)
	}
	var all []result
	for _, ix := range indices {
		q, named := parseQuery(ix, r.query, r.explain)
		hits := q.hits(ix)
		if r.perIndex > 0 {
			hits = hits[:min(r.perIndex, len(hits))]
		}
		hits = slices.DeleteFunc(hits, func(h hit) bool { return h.score < r.minScore })
		for _, rescorer := range r.rescore {
			rescorer.apply(ix, hits)
		}
		for _, h := range hits {
			if r.slices < 2 || int(crc32.ChecksumIEEE([]byte(ix.docs[h.doc].id)))%r.slices == r.slice {
				all = append(all, result{h, ix, q, named})
			}
		}
	}
	if !r.byDocument {
		slices.SortFunc(all, func(a, b result) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.ix.name, b.ix.name), cmp.Compare(a.doc, b.doc))
		})
	}
	return &results{request: r, all: all, rest: all[min(r.from, len(all)):]}
}

// apply rescores the first hits of one index and sorts all hits. As in Lucene's
// QueryRescorer, the weight of the query multiplies the scores of all hits,
// also behind the window.
func (s *rescorer) apply(ix *index, hits []hit) {
	byScore := func(a, b hit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.doc, b.doc)) }
	slices.SortFunc(hits, byScore)
	next, _ := parseQuery(ix, s.query, false)
	for i := range hits {
		hits[i].score *= s.queryWeight
		if i < s.window {
			if e := next(hits[i].doc, 1); e != nil {
				hits[i].score += s.nextWeight * e.Value
			}
		}
	}
	slices.SortFunc(hits, byScore)
}

// total returns how many documents the results stand for.
func (s *results) total() (n int) {
	for _, res := range s.all {
		n += res.ix.docs[res.doc].stands
	}
	return n
}

func (s *results) next() map[string]any {
	r := s.request
	hits := make([]any, min(r.size, len(s.rest)))
	for i := range hits {
		hits[i] = r.render(s.rest[i])
	}
	s.rest = s.rest[len(hits):]
	answer := map[string]any{"hits": hits, "max_score": nil}
	if len(s.all) > 0 && r.size > 0 && !r.byDocument {
		answer["max_score"] = s.all[0].score
	}
	switch total := s.total(); {
	case r.totalUpTo == 0: // not wanted
	case total > r.totalUpTo:
		answer["total"] = map[string]any{"value": r.totalUpTo, "relation": "gte"}
	default:
		answer["total"] = map[string]any{"value": total, "relation": "eq"}
	}
	return answer
}

func (r *searchRequest) render(res result) map[string]any {
	doc := res.ix.docs[res.doc]
	h := map[string]any{"_index": res.ix.name, "_id": doc.id, "_score": res.score}
	if r.byDocument {
		h["_score"], h["sort"] = nil, []any{res.doc}
	}
	if r.states {
		h["_version"] = 1
		h["_seq_no"] = res.doc
		h["_primary_term"] = 1
	}
	if r.numbers {
		h["fields"] = map[string]any{"_seq_no": []int{res.doc}}
	}
	if r.nameless {
		delete(h, "_id")
	}
	switch {
	case r.noSource:
	case len(r.source) == 0:
		h["_source"] = jsontext.Value(doc.source) // as it came
	default:
		members, _ := decodeJSON(doc.source).(map[string]any)
		maps.DeleteFunc(members, func(name string, _ any) bool {
			return !slices.ContainsFunc(r.source, func(pattern string) bool { return glob.Match(pattern, name) })
		})
		h["_source"] = members
	}
	var matched []string
	for _, name := range slices.Sorted(maps.Keys(res.named)) {
		if res.named[name].matches(res.doc) {
			matched = append(matched, name)
		}
	}
	if matched != nil {
		h["matched_queries"] = matched
	}
	if r.explain {
		h["_explanation"] = res.query(res.doc, 1)
	}
	return h
}
