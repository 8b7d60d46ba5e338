package demo

import (
	"net/http"
	"slices"
	"strings"
)

func (e *Engine) search(c *call, indices []*index) (int, any, error) {
	started := e.now()
	body, err := c.searchBody()
	if err != nil {
		return 0, nil, err
	}
	r, err := parseSearch(body)
	if err != nil {
		return 0, nil, err
	}
	if r.slice.max > 0 && !c.params.Has("scroll") {
		return 0, nil, badRequest("search_exception", "`slice` cannot be used outside of a scroll context")
	}
	all, err := r.find(indices)
	if err != nil {
		return 0, nil, err
	}
	hits, err := r.answer(all, r.page(all))
	if err != nil {
		return 0, nil, err
	}
	out := map[string]any{"timed_out": false, "_shards": shards(len(indices), true), "hits": hits}
	if c.params.Has("scroll") {
		life, err := scrollLife(c.params.Get("scroll"))
		if err != nil {
			return 0, nil, err
		}
		if r.size == 0 || r.from > 0 {
			return 0, nil, badRequest("action_request_validation_exception", "[size] cannot be [0] and [from] must be [0] in a scroll context")
		}
		if out["_scroll_id"], err = e.scrolls.start(started, life, r, all); err != nil {
			return 0, nil, err
		}
	}
	out["took"] = e.now().Sub(started).Milliseconds()
	return http.StatusOK, out, nil
}

// searchBody returns the body of a search with what the parameters of the
// query string say put over it.
func (c *call) searchBody() (map[string]any, error) {
	v, err := c.decoded()
	if err != nil {
		return nil, err
	}
	body, ok := v.(map[string]any)
	if v != nil && !ok {
		return nil, parsingError("[search] malformed, expected an object")
	}
	if body == nil {
		body = map[string]any{}
	}
	if q := c.queryParameter(); q != nil {
		body["query"] = q
	}
	for _, name := range []string{"from", "size", "explain", "terminate_after"} {
		if c.params.Has(name) {
			body[name] = c.params.Get(name)
		}
	}
	switch total := c.params.Get("track_total_hits"); total {
	case "":
	case "true", "false":
		body["track_total_hits"] = total == "true"
	default:
		n, ok := numberOf(total)
		if !ok {
			return nil, parsingError("[track_total_hits] must be a boolean or a number")
		}
		body["track_total_hits"] = n
	}
	if c.params.Has("sort") {
		var list []any
		for part := range strings.SplitSeq(c.params.Get("sort"), ",") {
			field, order, ordered := strings.Cut(part, ":")
			if ordered {
				list = append(list, map[string]any{field: order})
			} else {
				list = append(list, field)
			}
		}
		body["sort"] = list
	}
	if source := c.sourceParameter(); source != nil {
		body["_source"] = source
	}
	return body, nil
}

// queryParameter returns the query that q and its companions stand for, nil
// where there is no q.
func (c *call) queryParameter() map[string]any {
	if !c.params.Has("q") {
		return nil
	}
	q := map[string]any{"query": c.params.Get("q")}
	for parameter, member := range map[string]string{
		"df": "default_field", "analyzer": "analyzer", "default_operator": "default_operator", "lenient": "lenient",
	} {
		if c.params.Has(parameter) {
			q[member] = c.params.Get(parameter)
		}
	}
	return map[string]any{"query_string": q}
}

// sourceParameter returns the _source member that the parameters stand for,
// nil where there are none.
func (c *call) sourceParameter() any {
	list := func(name string) []any {
		var out []any
		if text := c.params.Get(name); text != "" {
			for part := range strings.SplitSeq(text, ",") {
				out = append(out, part)
			}
		}
		return out
	}
	switch c.params.Get("_source") {
	case "true":
		return true
	case "false":
		return false
	}
	includes, excludes := slices.Concat(list("_source"), list("_source_includes")), list("_source_excludes")
	if len(includes)+len(excludes) == 0 {
		return nil
	}
	return map[string]any{"includes": includes, "excludes": excludes}
}

func count(c *call, indices []*index) (int, any, error) {
	body, err := c.searchBody()
	if err != nil {
		return 0, nil, err
	}
	for name := range body {
		if name != "query" {
			return 0, nil, parsingError("request does not support [%s]", name)
		}
	}
	r := &searchRequest{query: body["query"], byDocument: true}
	all, err := r.find(indices)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]any{"count": len(all), "_shards": shards(len(indices), true)}, nil
}

// scrollArgs reads the ids and the life time of a scroll request.
func (c *call) scrollArgs() (ids []string, life string, err error) {
	a := c.members("scroll")
	ids = a.strings("scroll_id")
	for _, id := range []string{c.params.Get("scroll_id"), c.PathValue("id")} {
		if id != "" {
			ids = append(ids, strings.Split(id, ",")...)
		}
	}
	life = a.str("scroll", c.params.Get("scroll"))
	if err := a.done(); err != nil {
		return nil, "", err
	}
	if len(ids) == 0 {
		return nil, "", badRequest("action_request_validation_exception", "scrollId is missing")
	}
	return ids, life, nil
}

func (e *Engine) scrollOn(c *call) (int, any, error) {
	started := e.now()
	ids, text, err := c.scrollArgs()
	if err != nil {
		return 0, nil, err
	}
	life, err := scrollLife(text)
	if text != "" && err != nil {
		return 0, nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	sc, page, err := e.scrolls.page(started, ids[0], life)
	if err != nil {
		return 0, nil, err
	}
	hits, err := sc.request.answer(sc.all, page)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]any{
		"_scroll_id": ids[0], "took": e.now().Sub(started).Milliseconds(), "timed_out": false,
		"_shards": shards(1, true), "hits": hits,
	}, nil
}

func (e *Engine) scrollEnd(c *call) (int, any, error) {
	ids, _, err := c.scrollArgs()
	if err != nil {
		return 0, nil, err
	}
	freed := e.scrolls.free(ids)
	status := http.StatusOK
	if freed == 0 {
		status = http.StatusNotFound
	}
	return status, map[string]any{"succeeded": true, "num_freed": freed}, nil
}
