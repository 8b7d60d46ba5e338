package enrich

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
)

const defaultLimit = 10_000 // of both engines

// A Filling says which texts of documents are cut how, and where the segments
// are put.
type Filling struct {
	Cut

	// Field is the full name of the text field, and Source the one that documents
	// have its text under: another one for a multi-field.
	Field, Source string
	// Path is the full name of the nested field for the segments.
	Path string
	// Limit is how many segments a document may have.
	Limit int
}

// StampPath is the full name of the keyword that says which text the segments
// of a document are of, and how it was cut.
func (f *Filling) StampPath() string { return f.Path + "_by" }

// Stamp is what that keyword has, such as "body:paragraphs".
func (f *Filling) Stamp() string { return f.Field + ":" + f.String() }

// blankStamp is what it has for a text without segments: a document that has
// Stamp and no segments has lost them.
func (f *Filling) blankStamp() string { return f.Stamp() + ":blank" }

// below returns an object with segments and stamp at the end of a path. Each
// object above has the next in its member inside, "" for none.
func below(path, inside string, segments, stamp any) object {
	name, rest, deeper := strings.Cut(path, ".")
	switch {
	case !deeper:
		return object{name: segments, name + "_by": stamp}
	case inside == "":
		return object{name: below(rest, inside, segments, stamp)}
	default:
		return object{name: object{inside: below(rest, inside, segments, stamp)}}
	}
}

// Task returns the task of filling the documents that have the field, unless
// they have segments of this text that were cut so. A text that was changed by
// a partial update since cannot be known from its segments. Documents without
// text get a stamp only, and count as empty. Among all documents are those
// whose text is gone, so that their segments go, too.
func (f *Filling) Task() Task {
	filled := object{"nested": object{"path": f.Path, "ignore_unmapped": true, "query": esclient.ExistsQuery(f.Path + ".position")}}
	return Task{
		Stage: "cutting texts", Field: f.Field, Fill: f.fill, Scan: documents.RefOptions{Text: f.Source},
		Done: []object{
			{"bool": object{"filter": []object{Stamped(f.StampPath(), f.Stamp()), filled}}}, Stamped(f.StampPath(), f.blankStamp()),
		},
		Stale: object{"prefix": object{f.StampPath(): object{"value": f.Field + ":"}}},
	}
}

// fill is the [Fill] of the task. A segment has its text, its position, from 1,
// and its share of the words of all of them, in (0, 1].
func (f *Filling) fill(_ context.Context, docs []documents.DocRef) ([]Part, error) {
	parts := make([]Part, len(docs))
	for i := range docs {
		all, err := f.Texts(docs[i].Texts, f.Limit)
		if err != nil {
			parts[i].Result = documents.UpdateResult{Status: documents.Refused, Err: err}
			continue
		}
		total, stamp := 0, f.Stamp()
		for _, s := range all {
			total += s.Words
		}
		if len(all) == 0 {
			stamp = f.blankStamp()
		}
		list := make([]object, len(all))
		for k, s := range all {
			list[k] = object{"text": s.Text, "position": k + 1, "share": float32(s.Words) / float32(total)}
		}
		parts[i] = newPart(below(f.Path, "", list, stamp), len(all) == 0)
	}
	return parts, nil
}

// Check sets Source and, where the index takes fewer segments, Limit, by what
// the mapping and the settings of an index are. It returns what the mapping
// lacks for the segments, as the body of a request that puts it, nil for
// nothing. The error says what cannot be changed in the index, or that its
// documents have the text under another name than Source, where that is set.
func (f *Filling) Check(i *mapping.Inspection) (lacking []byte, err error) {
	if f.Source != "" && f.Source != i.Source {
		return nil, fmt.Errorf("index %q: its documents have the text of %s under the name %s, and those of other indices under %s: name the indices one by one",
			i.Index, f.Field, i.Source, f.Source)
	}
	f.Source = i.Source
	limit := defaultLimit
	if text := i.Settings.Text(LimitSetting); text != "" {
		if limit, err = strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("index %q: %s is %q", i.Index, LimitSetting, text)
		}
	}
	if f.Limit == 0 || limit < f.Limit {
		f.Limit = limit
	}
	find := func(name string) *mapping.Property {
		p, findErr := mapping.Find(i.Properties, name)
		err = errors.Join(err, findErr)
		return p
	}
	own, at, stamp := find(f.Field), find(f.Path), find(f.StampPath())
	members := object{}                           // that the mapping lacks
	for name, types := range map[string][]string{ // the first is the one that a mapping is given
		"text": {"text"}, "position": {"integer", "short", "long"}, "share": {"float", "double", "half_float"},
	} {
		switch p := find(f.Path + "." + name); {
		case p == nil:
			members[name] = object{"type": types[0]}
		case !slices.Contains(types, p.Type) || string(p.Index) == "false":
			err = errors.Join(err, fmt.Errorf("%s.%s is mapped as %s, wanted is %s that is indexed: name another --path", f.Path, name, p.TypeName(), types[0]))
		}
	}
	switch {
	case at != nil && at.Type != "nested":
		err = errors.Join(err, fmt.Errorf("%s is mapped as %s, and segments need a field that is nested, which cannot be changed in an index: "+
			"name another one with --path", f.Path, at.TypeName()))
	case at != nil && at.Nested != "":
		err = errors.Join(err, fmt.Errorf("%s is in the nested documents of %s, and segments are those of a whole document: name another one with --path",
			f.Path, at.Nested))
	case stamp != nil && stamp.Type != "keyword":
		err = errors.Join(err, fmt.Errorf("%s is mapped as %s, wanted is a keyword: name another --path", f.StampPath(), stamp.TypeName()))
	}
	if err = errors.Join(err, f.refuseShared(find)); err != nil {
		return nil, fmt.Errorf("index %q: %w", i.Index, err)
	}
	if at != nil && stamp != nil && len(members) == 0 {
		return nil, nil
	}
	if text, ok := members["text"].(object); ok {
		for name, value := range map[string]string{"analyzer": own.Analyzer, "search_analyzer": own.SearchAnalyzer, "similarity": own.Similarity} {
			if value != "" {
				text[name] = value
			}
		}
	}
	return encode(object{"properties": below(f.Path, "properties", object{"type": "nested", "properties": members}, object{"type": "keyword"})})
}

// refuseShared returns an error where an object above the nested field has
// other fields, too. Documents may have a list of such objects, and a partial
// update would put one with segments in its place.
func (f *Filling) refuseShared(find func(name string) *mapping.Property) error {
	for i := range f.Path {
		if f.Path[i] != '.' {
			continue
		}
		above := find(f.Path[:i])
		if above == nil {
			return nil
		}
		for key := range above.Properties {
			if name := f.Path[:i+1] + key; name != f.Path && name != f.StampPath() && !strings.HasPrefix(f.Path, name+".") {
				return fmt.Errorf("%s has other fields, such as %s: where documents have a list of it, segments would replace that; name another --path",
					f.Path[:i], name)
			}
		}
	}
	return nil
}
