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
	"slices"
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

// Countable returns what the concrete indices of an expression that map the
// field have of it, by name. The error wraps [mapping.ErrNotText],
// [mapping.ErrMixed] where they have other index analyzers for it, and
// [ErrUncountable] where [API.TermFreqs] would be wrong or a partial update
// would lose something: the field is nested or filled by copy_to, or not the
// whole _source is kept.
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
// the same field of another index.
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

// Readable reports whether [API.DocVectors] tells all terms that documents of a
// concrete index have in a field: it is no alias, not filled by copy_to, and
// the index keeps the whole _source. The error wraps [mapping.ErrNotText] as
// elsewhere.
func (a API) Readable(ctx context.Context, index, field string) (bool, error) {
	all, err := a.Client.Inspect(ctx, index, field)
	return err == nil && !slices.ContainsFunc(all, func(i mapping.Inspection) bool {
		return i.AliasOf != "" || i.Uncountable(i.Source) != ""
	}), err
}
