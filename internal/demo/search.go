package demo

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"hash/fnv"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// maxResultWindow bounds from + size, as index.max_result_window does.
const maxResultWindow = 10_000

func (e *Engine) search(c *call) any {
	if e.NoScripts && bytes.Contains(c.body, []byte(`"script_score"`)) {
		panic(badRequest("illegal_argument_exception", "cannot execute [inline] scripts"))
	}
	r := parseSearch(c.searchBody())
	indices := e.named(c)
	all := r.find(indices)
	out := map[string]any{"timed_out": false, "_shards": shards(len(indices), true), "hits": r.answer(all, r.page(all))}
	if c.params.Has("scroll") {
		out["_scroll_id"] = e.openScroll(c, r, all)
	} else if r.slice.max > 0 {
		panic(badRequest("search_exception", "`slice` cannot be used outside of a scroll context"))
	}
	out["took"] = e.took(c)
	return out
}

func (e *Engine) count(c *call) any {
	a := newArgs("count", c.searchBody())
	query, _ := a.take("query")
	a.done()
	indices := e.named(c)
	all := (&searchRequest{query: query, byDocument: true}).find(indices)
	return map[string]any{"count": len(all), "_shards": shards(len(indices), true)}
}

// searchBody returns the body of a search, in which the parameters of the query
// string replace members.
func (c *call) searchBody() map[string]any {
	body := newArgs("search", c.decoded()).rest
	for _, name := range []string{"from", "size", "explain", "terminate_after", "track_total_hits"} {
		if c.params.Has(name) {
			body[name] = c.params.Get(name)
		}
	}
	if c.params.Has("q") {
		q := map[string]any{"query": c.params.Get("q")}
		for parameter, member := range map[string]string{"df": "default_field", "default_operator": "default_operator"} {
			if c.params.Has(parameter) {
				q[member] = c.params.Get(parameter)
			}
		}
		body["query"] = map[string]any{"query_string": q}
	}
	return body
}

// A searchRequest is a parsed search body, its query excepted, which is parsed
// for each index.
type searchRequest struct {
	query      any
	from, size int
	source     sourceFilter
	totalUpTo  int // hits are counted up to here; 0 is not at all
	explain    bool
	states     bool // the version of each hit is wanted, and the number of its write
	byDocument bool // sorted by _doc instead of by score
	minScore   float32
	perIndex   int // matches looked at in each index, in its order; 0 is all
	slice      slice
	rescore    []rescorer
}

func parseSearch(body map[string]any) *searchRequest {
	a := newArgs("search", body)
	r := &searchRequest{
		from: a.integer("from", 0), size: a.integer("size", 10), explain: a.boolean("explain", false),
		perIndex: a.integer("terminate_after", 0), minScore: float32(a.number("min_score", 0)),
		rescore: parseRescore(a.list("rescore")), source: parseSource(a),
		states: a.boolean("version", false) || a.boolean("seq_no_primary_term", false),
	}
	r.query, _ = a.take("query")
	if v, ok := a.take("slice"); ok {
		r.slice = parseSlice(v)
	}
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
		if v != "_doc" {
			panic(unsupported("sort by [%v]", v))
		}
		r.byDocument = true
	}
	a.ignore("timeout", "track_scores", "seq_no_primary_term", "stats", "profile")
	a.done()
	switch {
	case len(r.rescore) > 0 && r.byDocument:
		panic(badRequest("illegal_argument_exception", "Cannot use [sort] option in conjunction with [rescore]."))
	case len(r.rescore) > 0 && r.explain:
		panic(unsupported("explain with rescore"))
	case r.from+r.size > maxResultWindow:
		panic(badRequest("illegal_argument_exception",
			"Result window is too large, from + size must be less than or equal to: [%d] but was [%d]", maxResultWindow, r.from+r.size))
	}
	return r
}

// A result is a hit in one of the indices searched.
type result struct {
	hit
	ix    *index
	query query
}

// find runs the query over the indices and returns every match in the order of
// the answer: by score, ties by index and document.
func (r *searchRequest) find(indices []*index) (out []result) {
	if len(indices) == 0 { // still refuse what cannot be parsed
		parseQuery(newIndex("", time.Time{}, &mapping{}), r.query, false)
	}
	for _, ix := range indices {
		q := parseQuery(ix, r.query, r.explain)
		hits := q.hits(ix)
		if r.perIndex > 0 {
			hits = hits[:min(r.perIndex, len(hits))]
		}
		hits = slices.DeleteFunc(hits, func(h hit) bool { return h.score < r.minScore })
		for _, rescorer := range r.rescore {
			rescorer.apply(ix, hits)
		}
		for _, h := range hits {
			if r.slice.contains(ix.docs[h.doc].id) {
				out = append(out, result{h, ix, q})
			}
		}
	}
	if !r.byDocument {
		slices.SortFunc(out, func(a, b result) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.ix.name, b.ix.name), cmp.Compare(a.doc, b.doc))
		})
	}
	return out
}

func (r *searchRequest) page(all []result) []result {
	from := min(r.from, len(all))
	return all[from:min(from+r.size, len(all))]
}

// answer renders the hits member of the response for one page of all results.
func (r *searchRequest) answer(all, page []result) map[string]any {
	hits := make([]any, len(page))
	for i, res := range page {
		hits[i] = r.render(res)
	}
	answer := map[string]any{"hits": hits, "max_score": nil}
	if len(all) > 0 && r.size > 0 && !r.byDocument {
		answer["max_score"] = all[0].score
	}
	switch {
	case r.totalUpTo == 0: // not wanted
	case len(all) > r.totalUpTo:
		answer["total"] = map[string]any{"value": r.totalUpTo, "relation": "gte"}
	default:
		answer["total"] = map[string]any{"value": len(all), "relation": "eq"}
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
		h["_version"], h["_seq_no"], h["_primary_term"] = 1, res.doc, 1
	}
	if source := r.source.apply(doc.source); source != nil {
		h["_source"] = source
	}
	if r.explain {
		h["_shard"], h["_node"] = "["+res.ix.name+"][0]", nodeName
		h["_explanation"] = res.query(res.doc, 1)
	}
	return h
}

// A sourceFilter says which fields of a document are returned.
type sourceFilter struct {
	none     bool
	includes []string // patterns; nil is all
}

// parseSource reads a _source member: a boolean, a pattern or a list of them.
func parseSource(a *args) sourceFilter {
	if wanted, ok := a.rest["_source"].(bool); ok {
		a.ignore("_source")
		return sourceFilter{none: !wanted}
	}
	return sourceFilter{includes: a.strings("_source")}
}

// apply returns the source as it came if nothing is filtered, nil if it is not
// wanted.
func (f sourceFilter) apply(source []byte) any {
	switch {
	case f.none:
		return nil
	case len(f.includes) == 0:
		return jsontext.Value(source)
	}
	members, _ := decodeJSON(source).(map[string]any)
	maps.DeleteFunc(members, func(name string, _ any) bool {
		return !slices.ContainsFunc(f.includes, func(pattern string) bool { return wildcard(pattern, name) })
	})
	return members
}

// A rescorer scores the first hits of each index again, by a second query.
type rescorer struct {
	query                   any
	window                  int
	queryWeight, nextWeight float32
}

// parseRescore reads a rescore member: one rescorer or a list of them.
func parseRescore(list []any) (out []rescorer) {
	for _, v := range list {
		a := newArgs("rescore", v)
		window := a.integer("window_size", 10)
		inner := newArgs("query", a.object("query"))
		a.done()
		if mode := inner.str("score_mode", "total"); mode != "total" {
			panic(unsupported("rescore with the score_mode [%s]", mode))
		}
		query, ok := inner.take("rescore_query")
		if !ok {
			panic(parsingError("missing rescore query"))
		}
		out = append(out, rescorer{
			query, window, float32(inner.number("query_weight", 1)), float32(inner.number("rescore_query_weight", 1)),
		})
		inner.done()
	}
	return out
}

// apply scores the first hits of one index again and reorders all hits. As in
// Lucene's QueryRescorer, the weight of the query multiplies the scores of all
// hits, also of those behind the window.
func (s *rescorer) apply(ix *index, hits []hit) {
	byScore := func(a, b hit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.doc, b.doc)) }
	slices.SortFunc(hits, byScore)
	next := parseQuery(ix, s.query, false)
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

// Limits of scrolls, those of the real engines.
const (
	maxScrolls    = 500
	maxScrollLife = 24 * time.Hour
	maxSlices     = 1024
)

// A slice is one of max parts of the documents, each of which is in one part.
// A max of 0 is all of them.
type slice struct{ id, max int }

func parseSlice(v any) slice {
	a := newArgs("slice", v)
	if field := a.str("field", "_id"); field != "_id" {
		panic(unsupported("slices by the field [%s]", field))
	}
	s := slice{id: a.integer("id", -1), max: a.integer("max", -1)}
	a.done()
	switch {
	case s.max < 2 || s.max > maxSlices:
		panic(badRequest("illegal_argument_exception", "[slice] [max] must be from 2 to %d", maxSlices))
	case s.id < 0 || s.id >= s.max:
		panic(badRequest("illegal_argument_exception", "[slice] [id] must be from 0 to max-1"))
	}
	return s
}

// contains reports whether the document of that id is in the slice. The real
// engines go by the id too, though other documents result.
func (s slice) contains(id string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return s.max == 0 || int64(h.Sum32())%int64(s.max) == int64(s.id)
}

// A scroll is a search whose answer is read in pages, over the documents as
// they were when it began.
type scroll struct {
	request   *searchRequest
	all, rest []result // rest begins with the next page
	expires   time.Time
}

// nextPage cuts the next page off the rest.
func (s *scroll) nextPage() []result {
	page := s.rest[:min(s.request.size, len(s.rest))]
	s.rest = s.rest[len(page):]
	return page
}

// openScroll opens a scroll whose first page is read, and returns its id.
func (e *Engine) openScroll(c *call, r *searchRequest, all []result) (id string) {
	if r.size == 0 || r.from > 0 {
		panic(badRequest("action_request_validation_exception", "[size] cannot be [0] and [from] must be [0] in a scroll context"))
	}
	s := &scroll{r, all, all, c.started.Add(scrollLife(c.params.Get("scroll")))}
	s.nextPage()
	for id, open := range e.scrolls {
		if c.started.After(open.expires) {
			delete(e.scrolls, id)
		}
	}
	if len(e.scrolls) >= maxScrolls {
		panic(&apiError{
			http.StatusTooManyRequests, "too_many_scroll_contexts_exception",
			"Trying to create too many scroll contexts. Must be less than or equal to: [500].", nil,
		})
	}
	id = rand.Text()
	e.scrolls[id] = s
	return id
}

func (c *call) scrollArgs() (ids []string, life string) {
	a := newArgs("scroll", c.decoded())
	ids = a.strings("scroll_id")
	life = a.str("scroll", c.params.Get("scroll"))
	a.done()
	if len(ids) == 0 {
		panic(badRequest("action_request_validation_exception", "scrollId is missing"))
	}
	return ids, life
}

func (e *Engine) nextPage(c *call) any {
	ids, life := c.scrollArgs()
	s := e.scrolls[ids[0]]
	if s == nil || c.started.After(s.expires) {
		panic(&apiError{http.StatusNotFound, "search_context_missing_exception", "No search context found for id [" + ids[0] + "]", nil})
	}
	if life != "" {
		s.expires = c.started.Add(scrollLife(life))
	}
	hits := s.request.answer(s.all, s.nextPage())
	return map[string]any{"_scroll_id": ids[0], "took": e.took(c), "timed_out": false, "_shards": shards(1, true), "hits": hits}
}

func (e *Engine) closeScrolls(c *call) any {
	ids, _ := c.scrollArgs()
	before := len(e.scrolls)
	for _, id := range ids {
		delete(e.scrolls, id)
	}
	freed := before - len(e.scrolls)
	if freed == 0 {
		c.status = http.StatusNotFound
	}
	return map[string]any{"succeeded": true, "num_freed": freed}
}

// scrollLife reads a time such as "1m" or "30s".
func scrollLife(text string) time.Duration {
	life, err := time.ParseDuration(text)
	if err != nil || life <= 0 || life > maxScrollLife {
		panic(badRequest("illegal_argument_exception", "failed to parse setting [scroll] with value [%s] as a time value", text))
	}
	return life
}
