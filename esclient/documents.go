package esclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
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
}

// NewWriteTargets returns targets that ask client and believe an answer for
// ttl, which is positive. [WriteTargets.Close] ends it.
func NewWriteTargets(client *Client, ttl time.Duration) *WriteTargets {
	t := &WriteTargets{client: client, loader: newLoader(targetLoads, loadTimeout)}
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
	return t
}

// Target returns the index that writes to name go to. The error wraps
// [ErrNoTarget], or an [*Error] with the status 404 where nothing has the
// name.
func (t *WriteTargets) Target(ctx context.Context, name string) (*WriteTarget, error) {
	if target, ok, err := t.memo.get(name); ok {
		return target, err
	}
	own := strings.Clone(name)
	return t.memo.load(ctx, own, func(ctx context.Context) (*WriteTarget, error) {
		return t.client.writeTarget(ctx, own)
	})
}

// Forget drops what is known of a name.
func (t *WriteTargets) Forget(name string) { t.memo.cache.Invalidate(name) }

// Close ends the loads under way and drops what is known.
func (t *WriteTargets) Close() {
	t.loader.close()
	t.memo.close()
}

// writeTarget asks for what index a name stands for in a write.
func (c *Client) writeTarget(ctx context.Context, name string) (*WriteTarget, error) {
	if name == "" || strings.HasPrefix(name, "_") || !(Indices{Expression: name}).single() && !strings.HasPrefix(name, "<") {
		return nil, fmt.Errorf("%q: %w", name, ErrNoTarget)
	}
	type aliasEntry struct {
		IndexRouting string `json:"index_routing"`
		Writes       *bool  `json:"is_write_index"`
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
	var names []string // of the indices that may be meant
	for index, about := range answer {
		alias, ok := about.Aliases[name]
		switch {
		case index == name:
		case len(answer) == 1: // date math, or the alias of one index; a data stream has no alias of its name
			ok = ok || strings.HasPrefix(name, "<")
		default:
			ok = ok && alias.Writes != nil && *alias.Writes
		}
		if ok || index == name {
			names = append(names, index)
		}
	}
	if len(names) != 1 {
		return nil, fmt.Errorf("%q stands for %d indices: %w", name, len(answer), ErrNoTarget)
	}
	about := answer[names[0]]
	target := &WriteTarget{
		Index: names[0], Routing: about.Aliases[name].IndexRouting,
		Pipelines: hasPipeline(about.Settings, "default_pipeline") || hasPipeline(about.Settings, "final_pipeline"),
	}
	if err := target.readMappings(about.Mappings); err != nil {
		return nil, fmt.Errorf("mapping of index %q: %w", target.Index, err)
	}
	return target, nil
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
		Source struct {
			Enabled  *bool          `json:"enabled"`
			Mode     string         `json:"mode"`
			Includes jsontext.Value `json:"includes"`
			Excludes jsontext.Value `json:"excludes"`
		} `json:"_source"`
		Properties map[string]jsontext.Value `json:"properties"`
	}
	if err := decode(mappings, &m); err != nil {
		return err
	}
	t.PartialSource = m.Source.Enabled != nil && !*m.Source.Enabled || m.Source.Mode == "disabled" ||
		len(m.Source.Includes) > 0 || len(m.Source.Excludes) > 0
	if err := t.readProperties("", m.Properties, 0); err != nil {
		return err
	}
	copied := copyTargets(mappings)
	t.Texts = slices.DeleteFunc(t.Texts, func(f TextField) bool { return slices.Contains(copied, f.Source) })
	slices.SortFunc(t.Texts, func(a, b TextField) int { return strings.Compare(a.Name, b.Name) })
	return nil
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
