package mapping

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// OwnTexts returns the names of the fields that index text of the documents
// themselves: without those in nested objects and those that copy_to fills.
// mappings are those of an index, whole.
func OwnTexts(mappings jsontext.Value) ([]string, error) {
	var m struct {
		Properties map[string]jsontext.Value `json:"properties"`
	}
	if err := decode(mappings, &m); err != nil {
		return nil, err
	}
	texts, err := textSources(m.Properties)
	if err != nil {
		return nil, err
	}
	copied := copyTargets(mappings)
	maps.DeleteFunc(texts, func(_, source string) bool { return slices.Contains(copied, source) })
	return slices.Sorted(maps.Keys(texts)), nil
}

// maxMappingDepth is the deepest nesting of fields that is followed. The
// engines refuse more than 20 levels, unless told otherwise.
const maxMappingDepth = 100

// textSources returns, by the names of the indexed text fields below some
// properties, the paths of their texts in a document: of a multi-field that of
// the field that it belongs to. Nested documents are others to the engine.
func textSources(properties map[string]jsontext.Value) (map[string]string, error) {
	sources := sourcesOf{}
	return sources, sources.visit("", properties, 0, "")
}

// sourcesOf are the paths of texts by the names of fields.
type sourcesOf map[string]string

// visit adds the text fields among the properties of the object whose names
// start with path. source is the path of their text, "" for their own.
func (s sourcesOf) visit(path string, properties map[string]jsontext.Value, depth int, source string) error {
	if depth > maxMappingDepth {
		return errors.New("nested too deep")
	}
	for key, raw := range properties {
		var p Property
		if err := decode(raw, &p); err != nil {
			return fmt.Errorf("field %q: %w", path+key, err)
		}
		name := path + key
		from := cmp.Or(source, name)
		if p.Type == "text" && string(p.Index) != "false" {
			s[name] = from
		}
		err := s.visit(name+".", p.Fields, depth+1, from)
		if err == nil && (p.Type == "" || p.Type == "object") {
			err = s.visit(name+".", p.Properties, depth+1, "")
		}
		if err != nil {
			return err
		}
	}
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

// Uncountable returns why a mapping does not let the terms of a field be
// counted, whose text documents have at source; "" if it does.
func Uncountable(mappings jsontext.Value, source string) string {
	var m struct {
		Source sourceMapping `json:"_source"`
	}
	if len(mappings) == 0 {
		return ""
	}
	if err := decode(mappings, &m); err != nil {
		return "its mapping cannot be read"
	}
	if lack := m.Source.lack(); lack != "" {
		return lack
	}
	if slices.Contains(copyTargets(mappings), source) {
		return "other fields are copied to it by copy_to"
	}
	return ""
}

// copyTargets returns the fields that copy_to names somewhere in v.
func copyTargets(v jsontext.Value) []string {
	var names []string
	var list []jsontext.Value
	var members map[string]jsontext.Value
	switch {
	case v.Kind() == jsontext.KindBeginArray && decode(v, &list) == nil:
		for _, element := range list {
			names = append(names, copyTargets(element)...)
		}
	case v.Kind() == jsontext.KindBeginObject && decode(v, &members) == nil:
		for name, member := range members {
			var one string
			var several []string
			switch {
			case name != "copy_to":
			case decode(member, &one) == nil:
				names = append(names, one)
			case decode(member, &several) == nil:
				names = append(names, several...)
			}
			names = append(names, copyTargets(member)...)
		}
	}
	return names
}
