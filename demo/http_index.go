package demo

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

func (e *Engine) info(*call) (int, any, error) {
	return http.StatusOK, map[string]any{
		"name": nodeName, "cluster_name": distribution, "cluster_uuid": e.uuid,
		"version": map[string]any{"distribution": distribution, "number": version},
		"tagline": "An engine in memory to try akin on",
	}, nil
}

func (e *Engine) health(*call) (int, any, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return http.StatusOK, map[string]any{
		"cluster_name": distribution, "status": "green", "timed_out": false, "number_of_nodes": 1, "number_of_data_nodes": 1,
		"active_primary_shards": len(e.indices), "active_shards": len(e.indices), "relocating_shards": 0,
		"initializing_shards": 0, "unassigned_shards": 0,
	}, nil
}

// cat lists the indices as lines of text, or as JSON with format=json.
func cat(c *call, indices []*index) (int, any, error) {
	var text strings.Builder
	if c.flag("v") {
		text.WriteString("health status index uuid pri rep docs.count docs.deleted\n")
	}
	list := make([]any, len(indices))
	for i, ix := range indices {
		live := len(ix.byID)
		fmt.Fprintf(&text, "green open %s %s 1 %s %d %d\n", ix.name, ix.uuid, ix.replicas, live, len(ix.docs)-live)
		list[i] = map[string]any{
			"health": "green", "status": "open", "index": ix.name, "uuid": ix.uuid, "pri": "1", "rep": ix.replicas,
			"docs.count": strconv.Itoa(live), "docs.deleted": strconv.Itoa(len(ix.docs) - live),
		}
	}
	if c.params.Get("format") == "json" {
		return http.StatusOK, list, nil
	}
	return http.StatusOK, text.String(), nil
}

func (e *Engine) createIndex(c *call) (int, any, error) {
	a := c.members("create_index")
	definition, _ := a.take("mappings")
	settings := a.object("settings")
	if aliases := a.object("aliases"); len(aliases) > 0 {
		return 0, nil, unsupported("aliases")
	}
	if err := a.done(); err != nil {
		return 0, nil, err
	}
	replicas, err := parseSettings(settings)
	if err != nil {
		return 0, nil, err
	}
	m := newMapping()
	if err := m.merge(definition, e.analyzers); err != nil {
		return 0, nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	ix, err := e.create(c.PathValue("index"))
	if err != nil {
		return 0, nil, err
	}
	ix.mapping, ix.replicas = m, replicas
	return http.StatusOK, map[string]any{"acknowledged": true, "shards_acknowledged": true, "index": ix.name}, nil
}

// parseSettings refuses settings that would change terms, scores or shards and
// returns the number of replicas, which is only reported.
func parseSettings(settings map[string]any) (replicas string, err error) {
	replicas = "1"
	for name, v := range settings {
		if sub, ok := v.(map[string]any); ok && name == "index" {
			if replicas, err = parseSettings(sub); err != nil {
				return "", err
			}
			continue
		}
		text, _ := textOf(v)
		switch strings.TrimPrefix(name, "index.") {
		case "number_of_shards":
			if text != "1" {
				return "", unsupported("[%s] shards, but one", text)
			}
		case "number_of_replicas":
			replicas = text
		case "refresh_interval", "max_result_window", "codec", "hidden":
		default:
			return "", unsupported("the setting [%s]", name)
		}
	}
	return replicas, nil
}

func (e *Engine) deleteIndex(_ *call, indices []*index) (int, any, error) {
	for _, ix := range indices {
		delete(e.indices, ix.name)
	}
	return http.StatusOK, map[string]any{"acknowledged": true}, nil
}

// settings returns the settings of an index, flat as "index.uuid" or nested.
func (ix *index) settings(flat bool) map[string]any {
	settings := map[string]any{
		"number_of_shards": "1", "number_of_replicas": ix.replicas, "provided_name": ix.name, "uuid": ix.uuid,
		"creation_date": strconv.FormatInt(ix.created.UnixMilli(), 10),
	}
	if !flat {
		return map[string]any{"index": settings}
	}
	out := make(map[string]any, len(settings))
	for name, v := range settings {
		out["index."+name] = v
	}
	return out
}

// describe answers with what member returns for each index.
func describe(indices []*index, member func(*index) map[string]any) (int, any, error) {
	out := map[string]any{}
	for _, ix := range indices {
		out[ix.name] = member(ix)
	}
	return http.StatusOK, out, nil
}

func getIndex(c *call, indices []*index) (int, any, error) {
	return describe(indices, func(ix *index) map[string]any {
		return map[string]any{"aliases": map[string]any{}, "mappings": ix.mapping.rendered(), "settings": ix.settings(c.flag("flat_settings"))}
	})
}

func getMapping(_ *call, indices []*index) (int, any, error) {
	return describe(indices, func(ix *index) map[string]any { return map[string]any{"mappings": ix.mapping.rendered()} })
}

func getSettings(c *call, indices []*index) (int, any, error) {
	return describe(indices, func(ix *index) map[string]any {
		return map[string]any{"settings": ix.settings(c.flag("flat_settings"))}
	})
}

func (e *Engine) putMapping(c *call, indices []*index) (int, any, error) {
	body, err := c.decoded()
	if err != nil {
		return 0, nil, err
	}
	for _, ix := range indices {
		m := ix.mapping.clone()
		if err := m.merge(body, e.analyzers); err != nil {
			return 0, nil, err
		}
		ix.mapping = m
	}
	return http.StatusOK, map[string]any{"acknowledged": true}, nil
}

// refresh does nothing: what is written is searchable at once.
func refresh(_ *call, indices []*index) (int, any, error) {
	return http.StatusOK, map[string]any{"_shards": shards(len(indices), false)}, nil
}

// shards renders the _shards member over n shards.
func shards(n int, search bool) map[string]any {
	out := map[string]any{"total": n, "successful": n, "failed": 0}
	if search {
		out["skipped"] = 0
	}
	return out
}
