// Package documents reads and writes the documents of a cluster: to learn from
// them, to store norms in them, to compare them with a search, and to load a
// demo.
package documents

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

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
)

// pageTimeout bounds a call that reads or writes many documents, with what the
// caller does with a page of them.
const pageTimeout = 5 * time.Minute

// An API makes the calls of the document APIs. Its methods may be called at the
// same time; their errors are those of the client.
type API struct{ Client *esclient.Client }

// A DocRef names a document as it was when it was found.
type DocRef struct {
	// Index is the concrete index, and Routing "" where the document has none.
	Index, ID, Routing string
	// SeqNo and PrimaryTerm change with every write, as Version does; they serve to
	// write the document on the condition that it has not changed.
	SeqNo, PrimaryTerm, Version int64
	// HasValue says that it has a value in the field asked for.
	HasValue bool
	// Texts are the strings that its source has at the path asked for, as
	// [API.Scan] has them.
	Texts []string
	// Source is what its source has at the paths asked for, as a JSON object.
	Source []byte
}

// A ConcreteIndex is one index with the number of its primary shards, at least
// 1. UUID tells it from another of this name, before or after; it is "" where a
// hosted cluster keeps it to itself.
type ConcreteIndex struct {
	Name, UUID string
	Shards     int
}

// Indices returns the concrete indices that an expression stands for, by name.
func (a API) Indices(ctx context.Context, index string) ([]ConcreteIndex, error) {
	var answer map[string]struct {
		Settings struct {
			Index struct {
				UUID   string `json:"uuid"`
				Shards int    `json:"number_of_shards,string"`
			} `json:"index"`
		} `json:"settings"`
	}
	const api = "/_settings?filter_path=*.settings.index.uuid,*.settings.index.number_of_shards"
	if err := a.Client.Do(ctx, esclient.Call{Path: esclient.IndexPath(index, api)}, &answer); err != nil {
		return nil, err
	}
	all := make([]ConcreteIndex, 0, len(answer))
	for _, name := range slices.Sorted(maps.Keys(answer)) {
		about := answer[name].Settings.Index
		all = append(all, ConcreteIndex{name, about.UUID, max(about.Shards, 1)})
	}
	return all, nil
}

// Count returns how many documents of an index expression match a query; nil is
// all.
func (a API) Count(ctx context.Context, index string, query []byte) (int64, error) {
	r := esclient.Call{Path: esclient.IndexPath(index, "/_count")}
	if query != nil {
		if err := checkQuery(query); err != nil {
			return 0, err
		}
		r.Method, r.Body = http.MethodPost, esclient.Object{"query": jsontext.Value(query)}
	}
	var answer struct {
		Count int64 `json:"count"`
	}
	err := a.Client.Do(ctx, r, &answer)
	return answer.Count, err
}

// checkQuery reports a query that is not one JSON object, without a name twice.
func checkQuery(query []byte) error {
	switch v := jsontext.Value(query); {
	case query == nil:
		return nil
	case !v.IsValid():
		return errors.New("query: not valid JSON, or a name is there twice")
	case v.Kind() != jsontext.KindBeginObject:
		return fmt.Errorf(`query: want an object such as {"term":{"lang":"en"}}, not a JSON %s`, v.Kind())
	default:
		return nil
	}
}

// shardsFailed is the part of an answer that tells how many shards failed.
type shardsFailed struct {
	Failed int `json:"failed"`
}

// check returns an error of which [Interrupted] is true where some did.
func (s shardsFailed) check() error {
	if s.Failed > 0 {
		return fmt.Errorf("%d of them: %w", s.Failed, errShards)
	}
	return nil
}

// errShards says that an answer misses what some shards have.
var errShards = errors.New("shards failed: the documents would not be all")

// Refresh makes all writes to the indices of an expression visible to searches.
func (a API) Refresh(ctx context.Context, index string) error {
	var answer struct {
		Shards shardsFailed `json:"_shards"`
	}
	r := esclient.Call{Method: http.MethodPost, Path: esclient.IndexPath(index, "/_refresh"), Timeout: pageTimeout}
	if err := a.Client.Do(ctx, r, &answer); err != nil {
		return err
	}
	if err := answer.Shards.check(); err != nil {
		return fmt.Errorf("POST %s: %w", r.Path, err)
	}
	return nil
}

// ErrUncountable says that documents do not tell the term frequencies of a
// field.
var ErrUncountable = errors.New("its term frequencies cannot be read from the documents")

// A CountableIndex is a concrete index whose documents tell the term
// frequencies of a field. Texts are the names of its fields as of
// [mapping.OwnTexts].
type CountableIndex struct {
	Name  string
	Texts []string
}

// mappings returns what the concrete indices of an expression that map the
// field say of it, and all their mappings.
func (a API) mappings(ctx context.Context, index, field string) ([]mapping.Field, map[string]jsontext.Value, error) {
	fields, err := a.Client.Fields(ctx, index, field)
	if err != nil {
		return nil, nil, err
	}
	var answer map[string]struct {
		Mappings jsontext.Value `json:"mappings"`
	}
	if err := a.Client.Do(ctx, esclient.Call{Path: esclient.IndexPath(index, "/_mapping")}, &answer); err != nil {
		return nil, nil, err
	}
	whole := make(map[string]jsontext.Value, len(answer))
	for name, about := range answer {
		whole[name] = about.Mappings
	}
	return fields, whole, nil
}

// Countable returns the concrete indices of an expression that map the field,
// by name. The error wraps [mapping.ErrNotText], [mapping.ErrMixed] where they
// have other index analyzers for it, and [ErrUncountable] where
// [API.TermFreqs] would be wrong or a partial update would lose something: the
// field is nested or filled by copy_to, or not the whole _source is kept.
func (a API) Countable(ctx context.Context, index, field string) ([]CountableIndex, error) {
	fields, mappings, err := a.mappings(ctx, index, field)
	var all []CountableIndex
	for i := range fields {
		f := &fields[i]
		if err := countable(f, &fields[0], mappings[f.Index]); err != nil {
			return nil, fmt.Errorf("field %q of index %q: %w", field, f.Index, err)
		}
		texts, err := mapping.OwnTexts(mappings[f.Index])
		if err != nil {
			return nil, fmt.Errorf("mapping of index %q: %w", f.Index, err)
		}
		all = append(all, CountableIndex{f.Index, texts})
	}
	return all, err
}

// countable returns why the terms of f cannot be counted like those of first,
// the same field of another index.
func countable(f, first *mapping.Field, mappings jsontext.Value) error {
	switch {
	case f.Nested != "":
		return fmt.Errorf("it is in the nested documents of %q, each of which is a document to the engine: %w", f.Nested, ErrUncountable)
	case f.AliasOf != "":
		return fmt.Errorf("it is an alias, name the field %q itself: %w", f.AliasOf, ErrUncountable)
	case f.Settings.Definition(f.IndexAnalyzer) != first.Settings.Definition(first.IndexAnalyzer):
		return fmt.Errorf("its analyzer is another one than in index %q: %w", first.Index, mapping.ErrMixed)
	}
	if reason := mapping.Uncountable(mappings, f.Source); reason != "" {
		return fmt.Errorf("%s: %w", reason, ErrUncountable)
	}
	return nil
}

// Readable reports whether [API.DocVectors] tells all terms that documents of a
// concrete index have in a field: it is no alias, not filled by copy_to, and
// the index keeps the whole _source. The error wraps [mapping.ErrNotText] as
// elsewhere.
func (a API) Readable(ctx context.Context, index, field string) (bool, error) {
	fields, mappings, err := a.mappings(ctx, index, field)
	return err == nil && !slices.ContainsFunc(fields, func(f mapping.Field) bool {
		return f.AliasOf != "" || mapping.Uncountable(mappings[f.Index], f.Source) != ""
	}), err
}

// NotStoring returns those of the concrete indices of an expression, in their
// order, that do not map number as a float and keyword as a keyword, both with
// doc values: what is written there would not be found, or be mapped as the
// engine sees fit.
func (a API) NotStoring(ctx context.Context, index string, indices []string, number, keyword string) ([]string, error) {
	type fieldMapping struct {
		Type      string `json:"type"`
		DocValues *bool  `json:"doc_values"`
		Index     *bool  `json:"index"`
	}
	var answer map[string]struct {
		Mappings map[string]struct {
			Mapping map[string]fieldMapping `json:"mapping"`
		} `json:"mappings"`
	}
	path := esclient.IndexPath(index, "/_mapping/field/"+url.PathEscape(number+","+keyword))
	if err := a.Client.Do(ctx, esclient.Call{Path: path}, &answer); err != nil {
		return nil, err
	}
	fits := func(name, field, want string, indexed bool) bool {
		m := answer[name].Mappings[field].Mapping[field[strings.LastIndexByte(field, '.')+1:]]
		return m.Type == want && (m.DocValues == nil || *m.DocValues) && (!indexed || m.Index == nil || *m.Index)
	}
	return slices.DeleteFunc(slices.Clone(indices), func(name string) bool {
		return fits(name, number, "float", false) && fits(name, keyword, "keyword", true)
	}), nil
}
