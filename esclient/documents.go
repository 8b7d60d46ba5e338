package esclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrNoTarget says that a name is not that of one index that documents are
// written to, as far as [WriteTargets] can tell: it is a pattern, a data
// stream, or an alias of several indices none of which is to be written to.
var ErrNoTarget = errors.New("not the name of one index to write to")

// A WriteTarget is the index that writes by a name go to. It is shared and
// must not be modified.
type WriteTarget struct {
	// Index is the concrete index.
	Index string
	// Routing is what the alias adds to writes that have no routing, "" for
	// nothing.
	Routing string
	// Aliases are those of the index, in order.
	Aliases []string
	// Pipelines says that the index names an ingest pipeline of its own, which
	// may change a document before it is indexed.
	Pipelines bool
	// PartialSource says that the index keeps not all of the _source, so that an
	// update would lose something.
	PartialSource bool
	// Texts are the fields that index text of the documents themselves, by name:
	// without those in nested objects and those that copy_to fills.
	Texts []TextField

	// stored are the types of the float and keyword fields with doc values.
	stored map[string]string
}

// A TextField is an indexed field of the type text.
type TextField struct {
	// Name is its full name.
	Name string
	// Source is the path of its text in a document: for a multi-field that of
	// the field it belongs to.
	Source string
}

// Stores reports whether the index maps number as a float and keyword as a
// keyword, both with doc values.
func (t *WriteTarget) Stores(number, keyword string) bool {
	return t.stored[number] == "float" && t.stored[keyword] == "keyword"
}

// bytes estimates the memory of the target.
func (t *WriteTarget) bytes() int {
	n := len(t.Index)
	for _, a := range t.Aliases {
		n += len(a) + 16
	}
	for _, f := range t.Texts {
		n += len(f.Name) + len(f.Source) + 32
	}
	for name := range t.stored {
		n += len(name) + 48
	}
	return n
}

const (
	// targetBytes bounds what is kept of targets; some thousand mappings of
	// some hundred fields fit.
	targetBytes = 32 << 20
	// targetLoads is how many targets are asked for at once.
	targetLoads = 8
	// aliasTime is how long an alias is believed to stand for an index, and
	// aliasBytes bounds what is kept of that.
	aliasTime  = 5 * time.Second
	aliasBytes = 4 << 20
	// maxMappingDepth is the deepest nesting of fields that is followed. The
	// engines refuse more than 20 levels, unless told otherwise.
	maxMappingDepth = 100
)

// WriteTargets answers from memory what index a write goes to and how that
// maps its fields. What it does not know it loads as [Cached] does. Its
// methods may be called at the same time.
type WriteTargets struct {
	client *Client
	loader *loader
	count  counters
	memo   *memo[string, *WriteTarget]
	// aliased are the indices that aliases stand for.
	aliased *memo[string, string]
}

// NewWriteTargets returns targets that ask client and believe an answer for
// ttl, which is positive; which index a name stands for that is not its own, no
// longer than 5 seconds: that is how indices are switched. [WriteTargets.Close]
// ends it.
func NewWriteTargets(client *Client, ttl time.Duration) *WriteTargets {
	t := &WriteTargets{client: client, loader: newLoader(targetLoads, loadTimeout, client.guard, nil)}
	t.memo = newMemo(t.loader, &t.count, false, targetBytes,
		func(name string, target *WriteTarget) int {
			if target == nil { // an error is remembered
				return len(name)
			}
			return len(name) + target.bytes()
		}, func(_ *WriteTarget, err error) time.Duration {
			if err == nil || errors.Is(err, ErrNoTarget) {
				return ttl
			}
			return min(failureTime, ttl)
		})
	t.aliased = newMemo(t.loader, &t.count, false, aliasBytes,
		func(name, index string) int { return len(name) + len(index) },
		func(string, error) time.Duration { return min(aliasTime, ttl) })
	return t
}

// Target returns the index that writes to name go to. The error wraps
// [ErrNoTarget], or an [*Error] with the status 404 where nothing has the
// name.
func (t *WriteTargets) Target(ctx context.Context, name string) (*WriteTarget, error) {
	own := strings.Clone(name)
	if target, ok, err := t.memo.get(name); ok {
		if err != nil || target.Index == name {
			return target, err
		}
		index, err := t.aliased.load(ctx, own, func(ctx context.Context) (string, error) {
			return t.client.writeIndex(ctx, own)
		})
		switch {
		case err != nil:
			return nil, err
		case index == target.Index:
			return target, nil
		}
		t.memo.cache.Invalidate(own)
	}
	return t.memo.load(ctx, own, func(ctx context.Context) (*WriteTarget, error) {
		return t.client.writeTarget(ctx, own)
	})
}

// Forget drops what is known of a name.
func (t *WriteTargets) Forget(name string) {
	t.memo.cache.Invalidate(name)
	t.aliased.cache.Invalidate(name)
}

// Close ends the loads under way and drops what is known.
func (t *WriteTargets) Close() {
	t.loader.close()
	t.memo.close()
	t.aliased.close()
}

// writeTarget asks for what index a name stands for in a write.
func (c *Client) writeTarget(ctx context.Context, name string) (*WriteTarget, error) {
	if name == "" || strings.HasPrefix(name, "_") || !(Indices{Expression: name}).single() && !strings.HasPrefix(name, "<") {
		return nil, fmt.Errorf("%q: %w", name, ErrNoTarget)
	}
	var answer map[string]struct {
		Aliases  map[string]aliasEntry `json:"aliases"`
		Mappings jsontext.Value        `json:"mappings"`
		Settings settings              `json:"settings"`
	}
	const query = "?flat_settings=true&filter_path=*.aliases,*.mappings,*.settings.index*"
	if err := c.call(ctx, request{method: http.MethodGet, path: indexPath(name, query)}, &answer); err != nil {
		return nil, err
	}
	entries := make(map[string]map[string]aliasEntry, len(answer))
	for index, about := range answer {
		entries[index] = about.Aliases
	}
	index := chooseIndex(name, entries)
	if index == "" {
		return nil, fmt.Errorf("%q stands for %d indices: %w", name, len(answer), ErrNoTarget)
	}
	about := answer[index]
	target := &WriteTarget{
		Index: index, Routing: about.Aliases[name].IndexRouting, Aliases: slices.Sorted(maps.Keys(about.Aliases)),
		Pipelines: hasPipeline(about.Settings, "default_pipeline") || hasPipeline(about.Settings, "final_pipeline"),
	}
	if err := target.readMappings(about.Mappings); err != nil {
		return nil, fmt.Errorf("mapping of index %q: %w", target.Index, err)
	}
	return target, nil
}

// An aliasEntry is what an index says of one of its aliases.
type aliasEntry struct {
	IndexRouting string `json:"index_routing"`
	Writes       *bool  `json:"is_write_index"`
}

// chooseIndex returns which of the indices that a name stands for its writes
// go to, "" for none. entries are their aliases.
func chooseIndex(name string, entries map[string]map[string]aliasEntry) string {
	var chosen []string
	for index, aliases := range entries {
		alias, ok := aliases[name]
		switch {
		case index == name:
			ok = true
		case len(entries) == 1: // date math, or the alias of one index; a data stream has no alias of its name
			ok = ok || strings.HasPrefix(name, "<")
		default:
			ok = ok && alias.Writes != nil && *alias.Writes
		}
		if ok {
			chosen = append(chosen, index)
		}
	}
	if len(chosen) != 1 {
		return ""
	}
	return chosen[0]
}

// writeIndex asks for what index a name that is not its own stands for, "" for
// none.
func (c *Client) writeIndex(ctx context.Context, name string) (string, error) {
	path := "/_alias/" + url.PathEscape(name)
	if strings.HasPrefix(name, "<") { // date math
		path = indexPath(name, "/_alias")
	}
	var answer map[string]struct {
		Aliases map[string]aliasEntry `json:"aliases"`
	}
	err := c.call(ctx, request{method: http.MethodGet, path: path}, &answer)
	var refused *Error
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
		return "", nil
	case err != nil:
		return "", err
	}
	entries := make(map[string]map[string]aliasEntry, len(answer))
	for index, about := range answer {
		entries[index] = about.Aliases
	}
	return chooseIndex(name, entries), nil
}

// hasPipeline reports whether a setting names a pipeline. "_none" is none.
func hasPipeline(s settings, name string) bool {
	pipeline := s.text("index." + name)
	return pipeline != "" && pipeline != "_none"
}

// readMappings notes what the mappings of the index say of its fields.
func (t *WriteTarget) readMappings(mappings jsontext.Value) error {
	t.stored = map[string]string{}
	if len(mappings) == 0 {
		return nil
	}
	var m struct {
		Source     sourceMapping             `json:"_source"`
		Properties map[string]jsontext.Value `json:"properties"`
	}
	if err := decode(mappings, &m); err != nil {
		return err
	}
	t.PartialSource = m.Source.lack() != ""
	if err := t.readProperties("", m.Properties, 0); err != nil {
		return err
	}
	copied := copyTargets(mappings)
	t.Texts = slices.DeleteFunc(t.Texts, func(f TextField) bool { return slices.Contains(copied, f.Source) })
	slices.SortFunc(t.Texts, func(a, b TextField) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// A sourceMapping is what a mapping says of the _source.
type sourceMapping struct {
	Enabled  *bool          `json:"enabled"`
	Mode     string         `json:"mode"`
	Includes jsontext.Value `json:"includes"`
	Excludes jsontext.Value `json:"excludes"`
}

// lack returns what an update would lose, "" where the index keeps the whole
// _source.
func (s *sourceMapping) lack() string {
	switch {
	case s.Enabled != nil && !*s.Enabled, s.Mode == "disabled":
		return "the index keeps no _source"
	case len(s.Includes) > 0 || len(s.Excludes) > 0:
		return "the index keeps a part of the _source only, and an update would lose the rest"
	default:
		return ""
	}
}

// readProperties notes the fields below a path, which is "" or ends in a
// dot.
func (t *WriteTarget) readProperties(path string, properties map[string]jsontext.Value, depth int) error {
	if depth > maxMappingDepth {
		return errors.New("nested too deep")
	}
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		var p storedProperty
		if err := decode(properties[key], &p); err != nil {
			return fmt.Errorf("field %q: %w", path+key, err)
		}
		name := path + key
		t.note(name, name, &p)
		for sub, raw := range p.Fields {
			var multi storedProperty
			if err := decode(raw, &multi); err != nil {
				return fmt.Errorf("field %q: %w", name+"."+sub, err)
			}
			t.note(name+"."+sub, name, &multi)
		}
		if p.Type != "" && p.Type != "object" {
			continue // the documents within nested ones are others to the engine
		}
		if err := t.readProperties(name+".", p.Properties, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// A storedProperty is a field's entry in a mapping, as far as it matters
// here.
type storedProperty struct {
	property
	DocValues *bool `json:"doc_values"`
}

// note notes a field.
func (t *WriteTarget) note(name, source string, p *storedProperty) {
	indexed := string(p.Index) != "false"
	switch {
	case p.Type == "text" && indexed:
		t.Texts = append(t.Texts, TextField{Name: name, Source: source})
	case p.DocValues != nil && !*p.DocValues:
	case p.Type == "float", p.Type == "keyword" && indexed:
		t.stored[name] = p.Type
	}
}
