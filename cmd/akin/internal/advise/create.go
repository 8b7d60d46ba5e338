package advise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/norms"
)

// create prints the body that creates an index: one like the one that was
// found, else one that has only the field. What to do with it goes to notes.
func (a *adviser) create(ctx context.Context, found []mapping.Inspection, out, notes io.Writer) error {
	name, source := a.Index, ""
	like := &index{Inspection: mapping.Inspection{Field: a.Field, Source: a.Field, Analyzer: a.Analyzer}}
	if len(found) > 0 {
		if err := a.checkLike(ctx, found); err != nil {
			return err
		}
		like.Inspection, source = found[0], string(encode(found[0].Index))
	}
	if source != "" || strings.ContainsAny(name, "*,") {
		name = "NAME" // the one that is there is in use
	}
	s := &strings.Builder{}
	if a.alias != "" {
		fmt.Fprintf(s, "%s is an alias of %s: searches by that name are ranked in mode bm25.\n", terminal.Visible(a.alias), terminal.Visible(a.Field))
	}
	fmt.Fprintf(s, "Create the index with the body on the standard output:\n  PUT /%s\n", url.PathEscape(name))
	if source != "" {
		fmt.Fprintf(s, "and copy the documents into it:\n  POST /_reindex {\"source\": {\"index\": %s}, \"dest\": {\"index\": %q}}\n", source, name)
	}
	fmt.Fprintf(s, "Where nothing but mode hard searches %s, the field itself may have the similarity in place of a multi-field.\n"+
		"When the documents are in it:\n  %s\n  %s\n  %s\n\n", terminal.Visible(a.Field),
		a.command(name, "norms snapshot", "--out", newWeights),
		a.command(name, "norms backfill", "--weights", newWeights),
		a.command(name, "index advise", "--weights", newWeights))
	if _, err := io.WriteString(notes, s.String()); err != nil {
		return err
	}
	_, err := io.WriteString(out, indented(a.body(like)))
	return err
}

// checkLike checks that an index like the one that was found would be of use.
func (a *adviser) checkLike(ctx context.Context, found []mapping.Inspection) error {
	switch like := &found[0]; {
	case len(found) > 1:
		return terminal.Usage(fmt.Errorf("--new: %q is %d indices, name one", a.Index, len(found)))
	case like.Closed:
		return fmt.Errorf("--new: index %q is closed", like.Index)
	case like.Problem != "":
		return fmt.Errorf("--new: field %q: index %q %s", a.Field, like.Index, like.Problem)
	case like.Field == "":
		return fmt.Errorf("--new: index %q does not map the field %q", like.Index, a.Field)
	case a.Analyzer != "":
		return terminal.Usage(fmt.Errorf("--analyzer: index %q is there, and has an analyzer for the field", like.Index))
	}
	if _, err := a.docs.Countable(ctx, found[0].Index, a.Field); err != nil {
		return fmt.Errorf("--new: %w", err) // nor could it be of another index like this one
	}
	return nil
}

// body returns the settings and mappings of the new index.
func (a *adviser) body(like *index) object {
	settings := object{}
	for name, value := range like.Settings {
		if slices.ContainsFunc(keptSettings(), func(start string) bool { return strings.HasPrefix(name, start) }) &&
			!strings.HasPrefix(name, similarityPrefix) {
			settings[name] = value
		}
	}
	for name, value := range a.similarity {
		settings[similarityPrefix+name] = value
	}
	mappings := decode(like.Mappings)
	properties := member(mappings, "properties")
	keys, _ := like.property()
	if keys == nil { // of an index that is not there
		keys = strings.Split(like.Source, ".")
		property := at(properties, keys)
		if property["type"] = "text"; like.Analyzer != "" {
			property["analyzer"] = like.Analyzer
		}
	}
	like.addLinear(at(properties, keys), like.multiName())
	for _, name := range []string{norms.Object, norms.WeightsObject} {
		if own, _ := properties[name].(object); own["type"] != nil && own["type"] != "object" {
			delete(properties, name) // which holds no number of a document, such as a nested one
		}
		a.addStored(properties, like, name)
	}
	return object{"settings": settings, "mappings": mappings}
}

// keptSettings are the starts of the names of settings that an index like
// another one has to have for the same documents and searches.
func keptSettings() []string {
	return []string{
		"index.analysis.", "index.similarity.", "index.mapping.", "index.sort.", "index.query.", "index.number_of_shards",
		"index.number_of_replicas", "index.max_ngram_diff", "index.max_shingle_diff", "index.default_pipeline", "index.final_pipeline",
	}
}

// An object is a JSON object. Its numbers are as they were written.
type object = map[string]any

// decode returns the object that raw holds, an empty one where it holds none.
func decode(raw jsontext.Value) object {
	var o object
	numbers := json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
		if d.PeekKind() == '0' {
			*v = jsontext.Value(nil) // which the number is kept in
		}
		return errors.ErrUnsupported // go on as without this
	}))
	if json.Unmarshal(raw, &o, numbers, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) != nil || o == nil {
		return object{}
	}
	return o
}

// encode returns the JSON of what was read as JSON.
func encode(v any, options ...json.Options) jsontext.Value {
	text, err := json.Marshal(v, append(options, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))...)
	if err != nil {
		return jsontext.Value("null") // there is nothing in it that has no JSON
	}
	return text
}

// indented returns the JSON of o as people read it.
func indented(o object) string { return string(encode(o, jsontext.WithIndent("  "))) + "\n" }

// exists returns a query for the documents that have a field.
func exists(field string) object { return object{"exists": object{"field": field}} }

// member returns the object that is a member of o, made where there is none.
func member(o object, name string) object {
	m, ok := o[name].(object)
	if !ok {
		m = object{}
		o[name] = m
	}
	return m
}

// at returns the property that keys lead to, from object to object. What is
// missing on the way is made.
func at(properties object, keys []string) object {
	for _, key := range keys[:len(keys)-1] {
		properties = member(member(properties, key), "properties")
	}
	return member(properties, keys[len(keys)-1])
}

// property returns the keys that lead to the text's property, and that.
func (i *index) property() ([]string, object) {
	return find(member(decode(i.Mappings), "properties"), i.Source)
}

// find returns the keys that lead to a field which is no multi-field, and its
// property. In a mapping without objects a key has several segments of the
// path.
func find(properties object, path string) ([]string, object) {
	for end := 1; end <= len(path); end++ {
		if end < len(path) && path[end] != '.' {
			continue
		}
		property, ok := properties[path[:end]].(object)
		if ok && end == len(path) {
			return []string{path}, property
		}
		if below, _ := property["properties"].(object); below != nil {
			if keys, found := find(below, path[end+1:]); keys != nil {
				return append([]string{path[:end]}, keys...), found
			}
		}
	}
	return nil, nil
}

// multiName returns the name for the linear multi-field of the field, which may
// be a multi-field itself: these have none of their own.
func (i *index) multiName() string {
	if own, ok := strings.CutPrefix(i.Field, i.Source+"."); ok {
		return own + "_" + linearName
	}
	return linearName
}

// addLinear adds the multi-field that scores linearly to the text's property.
func (i *index) addLinear(property object, name string) {
	multi := object{"type": "text", "similarity": linearSimilarity, "norms": false, "index_options": "freqs"}
	if i.Analyzer != "" {
		multi["analyzer"] = i.Analyzer
	}
	if i.SearchAnalyzer != "" {
		multi["search_analyzer"] = i.SearchAnalyzer
	}
	member(property, "fields")[name] = multi
}

// addStored adds the field's member of one of the two objects for norms.
func (a *adviser) addStored(properties object, i *index, name string) {
	keys := []string{name, norms.Name(a.Field)}
	if decode(i.Mappings)["subobjects"] == false {
		keys = []string{strings.Join(keys, ".")}
	}
	p := at(properties, keys)
	clear(p)
	if p["type"] = "keyword"; name == norms.Object {
		p["type"], p["index"] = "float", false
	}
}
