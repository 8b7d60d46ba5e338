package advise

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/norms"
)

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
