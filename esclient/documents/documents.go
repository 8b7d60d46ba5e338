// Package documents reads and writes documents of a cluster: to learn from
// them, store norms in them, compare them with a search, and load a demo.
package documents

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
)

// pageTimeout limits a call that reads or writes many documents, including the
// caller's work on a page of them.
const pageTimeout = 5 * time.Minute

// An API makes calls to the document APIs. Its methods may be called
// concurrently. Errors are those of the client.
type API struct{ Client *esclient.Client }

// A DocRef identifies a document as it was when found.
type DocRef struct {
	// Index is the concrete index. Routing is "" if the document has none.
	Index, ID, Routing string
	// SeqNo, PrimaryTerm and Version change with every write. With them a write
	// can require that the document has not changed.
	SeqNo, PrimaryTerm, Version int64
	// HasValue says that the field asked for has a value.
	HasValue bool
	// Texts are the strings in its source at the path asked for, as in [API.Scan].
	Texts []string
	// Source has the source at the paths asked for, as a JSON object.
	Source []byte
}

// A ConcreteIndex is one index with the number of its primary shards, at least
// 1. UUID distinguishes it from earlier and later ones of the same name; it is
// "" if a hosted cluster hides it.
type ConcreteIndex struct {
	Name, UUID string
	Shards     int
}

// Indices returns the concrete indices of an expression, by name.
func (a API) Indices(ctx context.Context, index string) ([]ConcreteIndex, error) {
	var answer map[string]struct {
		Settings struct {
			Index struct {
				UUID   string `json:"uuid"`
				Shards int    `json:"number_of_shards,string"`
			} `json:"index"`
		} `json:"settings"`
	}
	r := esapi.IndicesGetSettingsRequest{
		Index: []string{esclient.Name(index)}, FilterPath: []string{"*.settings.index.uuid", "*.settings.index.number_of_shards"},
	}
	if err := a.Client.Do(ctx, esclient.Call{Request: r}, &answer); err != nil {
		return nil, err
	}
	all := make([]ConcreteIndex, 0, len(answer))
	for _, name := range slices.Sorted(maps.Keys(answer)) {
		about := answer[name].Settings.Index
		all = append(all, ConcreteIndex{name, about.UUID, max(about.Shards, 1)})
	}
	return all, nil
}

// Count returns the number of documents that match a query; nil means all.
func (a API) Count(ctx context.Context, index string, query []byte) (int64, error) {
	r := esapi.CountRequest{Index: []string{esclient.Name(index)}}
	if query != nil {
		if err := checkQuery(query); err != nil {
			return 0, err
		}
		r.Body = esclient.JSON(esclient.Object{"query": jsontext.Value(query)})
	}
	var answer struct {
		Count int64 `json:"count"`
	}
	err := a.Client.Do(ctx, esclient.Call{Request: r}, &answer)
	return answer.Count, err
}

// checkQuery returns an error unless query is a JSON object without duplicates.
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

// shardsFailed is the number of failed shards in an answer.
type shardsFailed struct {
	Failed int `json:"failed"`
}

// check returns an error, for which [Interrupted] is true, if shards failed.
func (s shardsFailed) check() error {
	if s.Failed > 0 {
		return fmt.Errorf("%d of them: %w", s.Failed, errShards)
	}
	return nil
}

// errShards says that an answer misses documents of some shards.
var errShards = errors.New("shards failed: the documents would not be all")

// Refresh makes all writes to the indices of an expression searchable.
func (a API) Refresh(ctx context.Context, index string) error {
	var answer struct {
		Shards shardsFailed `json:"_shards"`
	}
	r := esapi.IndicesRefreshRequest{Index: []string{esclient.Name(index)}}
	if err := a.Client.Do(ctx, esclient.Call{Request: r, Timeout: pageTimeout}, &answer); err != nil {
		return err
	}
	if err := answer.Shards.check(); err != nil {
		return fmt.Errorf("refresh %q: %w", index, err)
	}
	return nil
}

// ErrUncountable says that documents do not show a field's term frequencies.
var ErrUncountable = errors.New("its term frequencies cannot be read from the documents")

// Countable returns what each concrete index of an expression says of the
// field, by name. The error wraps [mapping.ErrNotText], [mapping.ErrMixed] if
// index analyzers differ, and [ErrUncountable] if [API.TermFreqs] would be
// wrong or a partial update would lose something: the field is nested or filled
// by copy_to, or not all of _source is kept.
func (a API) Countable(ctx context.Context, index, field string) ([]mapping.Inspection, error) {
	all, err := a.Client.Inspect(ctx, index, field)
	for i := range all {
		if err := countable(&all[i], &all[0]); err != nil {
			return nil, fmt.Errorf("field %q of index %q: %w", field, all[i].Index, err)
		}
	}
	return all, err
}

// countable returns why the terms of f cannot be counted like those of first,
// the same field in another index.
func countable(f, first *mapping.Inspection) error {
	switch {
	case f.Nested != "":
		return fmt.Errorf("it is in the nested documents of %q, each of which is a document to the engine: %w", f.Nested, ErrUncountable)
	case f.AliasOf != "":
		return fmt.Errorf("it is an alias, name the field %q itself: %w", f.AliasOf, ErrUncountable)
	case f.Settings.Definition(f.IndexAnalyzer) != first.Settings.Definition(first.IndexAnalyzer):
		return fmt.Errorf("its analyzer is another one than in index %q: %w", first.Index, mapping.ErrMixed)
	}
	if reason := f.Uncountable(f.Source); reason != "" {
		return fmt.Errorf("%s: %w", reason, ErrUncountable)
	}
	return nil
}

// Readable reports whether [API.DocVectors] returns all terms of documents of a
// concrete index in a field: it is not an alias and not filled by copy_to, and
// the index keeps all of _source. The error wraps [mapping.ErrNotText].
func (a API) Readable(ctx context.Context, index, field string) (bool, error) {
	all, err := a.Client.Inspect(ctx, index, field)
	return err == nil && !slices.ContainsFunc(all, func(i mapping.Inspection) bool {
		return i.AliasOf != "" || i.Uncountable(i.Source) != ""
	}), err
}
