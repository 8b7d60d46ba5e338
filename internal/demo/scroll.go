package demo

import (
	"bytes"
	"crypto/rand"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// Limits of scrolls, as in the real engines.
const (
	maxScrolls    = 500
	maxScrollLife = 24 * time.Hour
)

// search answers with the first page of results. A scroll keeps the rest.
func (e *Engine) search(c *call) any {
	if e.NoScripts && bytes.Contains(c.body, []byte(`"script_score"`)) {
		panic(illegal("cannot execute [inline] scripts"))
	}
	r := parseSearch(c.searchBody())
	indices := e.named(c)
	found := r.find(indices)
	out := map[string]any{"timed_out": false, "_shards": shards(len(indices)), "hits": found.next()}
	if c.params.Has("scroll") {
		if r.size == 0 || r.from > 0 {
			panic(illegal("[size] cannot be [0] and [from] must be [0] in a scroll context"))
		}
		found.expires = c.started.Add(scrollLife(c.params.Get("scroll")))
		maps.DeleteFunc(e.scrolls, func(_ string, open *results) bool { return c.started.After(open.expires) })
		if len(e.scrolls) >= maxScrolls {
			panic(refuse(http.StatusTooManyRequests, "too_many_scroll_contexts_exception",
				"Trying to create too many scroll contexts. Must be less than or equal to: [%d].", maxScrolls))
		}
		id := rand.Text()
		e.scrolls[id], out["_scroll_id"] = found, id
	}
	out["took"] = c.took()
	return out
}

func (e *Engine) count(c *call) any {
	a := newArgs("count", c.searchBody())
	query, _ := a.take("query")
	a.done()
	indices := e.named(c)
	found := (&searchRequest{query: query, byDocument: true}).find(indices)
	return map[string]any{"count": found.total(), "_shards": shards(len(indices))}
}

// searchBody returns the body of a search; query parameters replace members.
func (c *call) searchBody() map[string]any {
	body := newArgs("search", c.decoded()).rest
	for _, name := range []string{"size", "explain", "terminate_after", "track_total_hits"} {
		if c.params.Has(name) {
			body[name] = c.params.Get(name)
		}
	}
	if c.params.Has("q") {
		body["query"] = map[string]any{"query_string": map[string]any{"query": c.params.Get("q")}}
	}
	return body
}

func shards(n int) map[string]any {
	return map[string]any{"total": n, "successful": n, "failed": 0, "skipped": 0}
}

func (c *call) scrollArgs() (ids []string, life string) {
	a := newArgs("scroll", c.decoded())
	ids, life = a.strings("scroll_id"), a.str("scroll", c.params.Get("scroll"))
	a.done()
	if len(ids) == 0 {
		panic(illegal("scrollId is missing"))
	}
	return ids, life
}

func (e *Engine) nextPage(c *call) any {
	ids, life := c.scrollArgs()
	found := e.scrolls[ids[0]]
	if found == nil || c.started.After(found.expires) {
		panic(refuse(http.StatusNotFound, "search_context_missing_exception", "No search context found for id [%s]", ids[0]))
	}
	if life != "" {
		found.expires = c.started.Add(scrollLife(life))
	}
	return map[string]any{"_scroll_id": ids[0], "took": c.took(), "timed_out": false, "_shards": shards(1), "hits": found.next()}
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

func scrollLife(text string) time.Duration {
	life, err := time.ParseDuration(text)
	if err != nil || life <= 0 || life > maxScrollLife {
		panic(illegal("failed to parse setting [scroll] with value [%s] as a time value", text))
	}
	return life
}

// manySearches answers the searches of an _msearch, whose index is in the path.
func (e *Engine) manySearches(c *call) any {
	lines := bytes.Split(bytes.TrimSpace(c.body), []byte("\n"))
	responses := []any{}
	for pair := range slices.Chunk(lines, 2) {
		if len(pair) < 2 || string(bytes.TrimSpace(pair[0])) != "{}" {
			panic(illegal("each search of an _msearch has a line {}, and one with its body"))
		}
		one := &call{Request: c.Request, params: url.Values{}, body: pair[1], started: c.started, status: http.StatusOK}
		var answer map[string]any
		if refused := caught(func() { answer, _ = e.search(one).(map[string]any) }); refused != nil {
			answer = map[string]any{"error": refused.object()}
			one.status = refused.status
		}
		answer["status"] = one.status
		responses = append(responses, answer)
	}
	return map[string]any{"took": c.took(), "responses": responses}
}
