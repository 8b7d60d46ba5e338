package norms

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// An edit replaces the bytes of a place by others.
type edit struct {
	at   span
	text []byte
}

// A splicer makes a copy of a body with edits.
type splicer struct {
	body []byte
	// out is the copy of the body up to the place at, nil before the first edit.
	out []byte
	at  int
}

// add makes edits, which stand in the order of their places, one behind the
// other, behind those made before.
func (s *splicer) add(edits []edit) {
	if len(edits) == 0 {
		return
	}
	size := len(s.body) - s.at
	for i := range edits {
		size += len(edits[i].text)
	}
	s.out = slices.Grow(s.out, size)
	for i := range edits {
		s.out = append(append(s.out, s.body[s.at:edits[i].at.start]...), edits[i].text...)
		s.at = edits[i].at.end
	}
}

// end returns the copy, nil where there were no edits.
func (s *splicer) end() []byte {
	if s.out == nil {
		return nil
	}
	return append(s.out, s.body[s.at:]...)
}

// A value is what a document gets for one field.
type value struct {
	field string
	norm  float64 // 0 for a field without terms
	id    string  // "" where the document does not have the field, or terms of it are not known
}

// put returns the edits that put values into a document; those of the names
// that are there already go. explicit says that a missing norm is written as
// null, to be merged over one that is stored.
func (t *tree) put(body []byte, values []value, explicit bool) ([]edit, error) {
	var old [2]tree
	for i, name := range [...]string{Object, WeightsObject} {
		m := t.find(name)
		if m == nil || jsontext.Value(m.value.of(body)).Kind() == jsontext.KindNull {
			continue
		}
		var err error
		if old[i], err = readTree(body, m.value); err != nil {
			return nil, errShape
		}
	}
	edits, kept := t.cut(values)
	text := appendObject(nil, Object, body, &old[0], values, func(dst []byte, v *value) []byte {
		switch {
		case v.norm > 0:
			return append(appendName(dst, Name(v.field)), FormatNorm(v.norm)...)
		case explicit:
			return append(appendName(dst, Name(v.field)), "null"...)
		default:
			return dst
		}
	})
	text = appendObject(text, WeightsObject, body, &old[1], values, func(dst []byte, v *value) []byte {
		switch {
		case v.id != "":
			return appendString(appendName(dst, Name(v.field)), v.id)
		case explicit:
			return append(appendName(dst, Name(v.field)), "null"...)
		default:
			return dst
		}
	})
	if len(text) > 0 && !kept {
		text = text[1:] // the comma before the first
	}
	if len(text) > 0 {
		end := t.at.end - 1
		edits = append(edits, edit{span{end, end}, text})
	}
	return edits, nil
}

// cut returns the edits that take out the members for values, and whether
// some member is left.
func (t *tree) cut(values []value) (edits []edit, kept bool) {
	for i := range t.members {
		m := &t.members[i]
		ours := m.name == Object || m.name == WeightsObject || slices.ContainsFunc(values, func(v value) bool {
			return m.name == NormPath(v.field) || m.name == WeightsPath(v.field)
		})
		switch {
		case !ours:
			kept = true
		case kept: // with the comma before it
			edits = append(edits, edit{at: span{t.members[i-1].at.end, m.at.end}})
		case i+1 < len(t.members): // with the comma after it
			edits = append(edits, edit{at: span{m.at.start, t.members[i+1].at.start}})
		default:
			edits = append(edits, edit{at: m.at})
		}
	}
	return edits, kept
}

// appendObject appends a comma and a member that is an object of one member
// for each value that add appends one of, and of those members of old that
// are not for the values; nothing where it would be empty.
func appendObject(dst []byte, name string, body []byte, old *tree, values []value, add func([]byte, *value) []byte) []byte {
	start := len(dst)
	dst = append(appendName(dst, name), '{')
	empty := len(dst)
	for i := range old.members {
		m := &old.members[i]
		if slices.ContainsFunc(values, func(v value) bool { return Name(v.field) == m.name }) {
			continue
		}
		if len(dst) > empty {
			dst = append(dst, ',')
		}
		dst = append(dst, m.at.of(body)...)
	}
	for i := range values {
		before := len(dst)
		dst = add(dst, &values[i])
		if before == empty && len(dst) > before { // appendName has put a comma before the first
			dst = append(dst[:before], dst[before+1:]...)
		}
	}
	if len(dst) == empty {
		return dst[:start]
	}
	return append(dst, '}')
}

// appendName appends a comma and the name of a member with its colon.
func appendName(dst []byte, name string) []byte {
	return append(appendString(append(dst, ','), name), ':')
}

// appendString appends a JSON string.
func appendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // what is no UTF-8 is replaced
	return dst
}
