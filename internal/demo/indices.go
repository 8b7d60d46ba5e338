package demo

import "strings"

// info does not claim to be Elasticsearch; the version says to clients which
// interface to expect.
func (e *Engine) info(*call) any {
	return map[string]any{
		"name": "akin-demo-node", "cluster_name": "akin-demo", "cluster_uuid": e.uuid,
		"version": map[string]any{"distribution": "akin-demo", "number": "8.0.0"},
		"tagline": "An engine in memory to try akin on",
	}
}

// createIndex refuses settings that would change terms, scores or shards. The
// number of replicas changes nothing.
func (e *Engine) createIndex(c *call) any {
	a := newArgs("create_index", c.decoded())
	definition, settings := a.object("mappings"), newArgs("settings", a.object("settings"))
	a.done()
	if n := settings.integer("number_of_shards", 1); n != 1 {
		panic(unsupported("[%d] shards, but one", n))
	}
	settings.ignore("number_of_replicas")
	settings.done()
	ix := e.create(c.PathValue("index"), definition)
	return map[string]any{"acknowledged": true, "shards_acknowledged": true, "index": ix.name}
}

// describe answers with the settings of indices, flat as "index.uuid" or
// nested, and but for _settings with their mappings.
func (e *Engine) describe(c *call) any {
	out := map[string]any{}
	for _, ix := range e.named(c) {
		var settings any = map[string]any{"index": map[string]any{"number_of_shards": "1", "uuid": ix.uuid}}
		if c.flag("flat_settings") {
			settings = map[string]any{"index.number_of_shards": "1", "index.uuid": ix.uuid}
		}
		if strings.HasSuffix(c.Pattern, "/_settings") {
			out[ix.name] = map[string]any{"settings": settings}
			continue
		}
		out[ix.name] = map[string]any{"settings": settings, "aliases": struct{}{}, "mappings": struct {
			Properties map[string]any `json:"properties,omitempty"`
		}{ix.mapping.properties}}
	}
	return out
}
