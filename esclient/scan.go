package esclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient/answers"
)

// scanPage is the number of documents in a page that holds their texts,
// exactPage of those whose term vectors are made at once.
const scanPage, exactPage = 500, 100

// maxSlices is the largest number of slices that the engines allow, unless
// index.max_slices_per_scroll says otherwise.
const maxSlices = 1024

// ScanOptions say which documents [Client.Scan] and [Client.ExactTerms] read.
type ScanOptions struct {
	// Index is an index expression, and Fields are the text fields to read, at
	// least one.
	Index  string
	Fields []string
	// Query keeps the documents that match it: one JSON object, a query of the
	// engines' language. nil keeps all.
	Query []byte
	// Share keeps about this share of the documents that match, chosen as if
	// by chance. It is in [0, 1]; 0 and 1 keep all. The choice depends on Seed
	// and on the documents' sequence numbers: it is the same every time, and on
	// every copy of a shard, until a document is written again.
	Share float64
	// Seed is not negative.
	Seed int
	// Slices cuts the documents into as many parts by their ids or shards, at
	// most 1024, of which Slice is read, from 0. With 0 or 1 nothing is cut.
	// Slices may be read side by side; together they hold each document once,
	// as long as the expression stands for the same indices.
	Slices, Slice int
}

// Validate reports every option that is wrong by itself.
func (o *ScanOptions) Validate() error {
	var errs []error
	if len(o.Fields) == 0 {
		errs = append(errs, errors.New("no field to read"))
	}
	if o.Query != nil {
		if err := checkQuery(o.Query); err != nil {
			errs = append(errs, err)
		}
	}
	if !(o.Share >= 0 && o.Share <= 1) { // written so that NaN fails
		errs = append(errs, fmt.Errorf("share: %v not in [0, 1]", o.Share))
	}
	if o.Seed < 0 {
		errs = append(errs, fmt.Errorf("seed: %d is negative", o.Seed))
	}
	if o.Slices < 0 || o.Slices > maxSlices || o.Slice < 0 || o.Slice >= max(o.Slices, 1) {
		errs = append(errs, fmt.Errorf("slice: %d of %d, at most %d", o.Slice, o.Slices, maxSlices))
	}
	return errors.Join(errs...)
}

// checkQuery reports what is not one JSON object, without a name twice.
func checkQuery(query []byte) error {
	v := jsontext.Value(query)
	if !v.IsValid() {
		return errors.New("query: not valid JSON, or a name is there twice")
	}
	if v.Kind() != jsontext.KindBeginObject {
		return fmt.Errorf(`query: want an object such as {"term":{"lang":"en"}}, not a JSON %s`, v.Kind())
	}
	return nil
}

// body returns the body of the search that begins the scan.
func (o *ScanOptions) body(size int, source any) object {
	body := object{"size": size, "sort": []string{"_doc"}, "_source": source}
	query := o.query()
	if o.Share > 0 && o.Share < 1 {
		query = object{"function_score": object{
			"query":        object{"bool": object{"filter": []any{query}}},
			"random_score": object{"seed": o.Seed, "field": "_seq_no"}, // in [0, 1)
			"boost_mode":   "replace", "min_score": 1 - o.Share,
		}}
	}
	if o.Query != nil || o.Share > 0 && o.Share < 1 {
		body["query"] = query
	}
	if o.Slices > 1 {
		body["slice"] = object{"id": o.Slice, "max": o.Slices}
	}
	return body
}

func (o *ScanOptions) query() any {
	if o.Query == nil {
		return object{"match_all": object{}}
	}
	return jsontext.Value(o.Query)
}

// Scan calls fn for every document that has text in one of the fields, with its
// id and its texts: the strings that its source has for the fields, in the
// order of the fields, elements of arrays apart. A number or a boolean is given
// as it is written, since the engine indexes it so. Fields made by copy_to are
// not in the source and have no text.
//
// The documents come in no particular order, as they were when the scan
// started. fn may keep values. Scan ends at the first error, of fn too; then fn
// has seen some documents, and another scan begins anew. [Interrupted] tells
// whether that may help. It returns an error that wraps [ErrNotText] if a field
// is not text.
func (c *Client) Scan(ctx context.Context, o ScanOptions, fn func(id string, values []string) error) error {
	if err := o.Validate(); err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	sources, err := c.sourcePaths(ctx, o.Index, o.Fields)
	if err != nil {
		return err
	}
	var paths []string
	for _, list := range sources {
		paths = append(paths, list...)
	}
	slices.Sort(paths)
	return c.scroll(ctx, o.Index, "", o.body(scanPage, slices.Compact(paths)), func(page []answers.Hit) error {
		for i := range page {
			values, err := page[i].Texts(sources[page[i].Index])
			if err != nil {
				return err
			}
			if len(values) == 0 {
				continue
			}
			if err := fn(page[i].ID, values); err != nil {
				return err
			}
		}
		return nil
	})
}

// Interrupted reports whether a scan that ended with err, and was not ended by
// its context, may come to its end when it is begun again: no answer came or
// half of one, a node is gone or busy, or the cluster has lost its state of the
// scan. It is false for what a cluster refuses for good.
func Interrupted(err error) bool {
	if refusal, ok := errors.AsType[*Error](err); ok {
		switch refusal.Status {
		case http.StatusNotFound:
			return refusal.Type == "search_context_missing_exception"
		case http.StatusRequestTimeout, http.StatusTooManyRequests:
			return true
		default:
			return refusal.Status >= http.StatusInternalServerError
		}
	}
	_, network := errors.AsType[net.Error](err) // a call that took too long is one, too
	return network || errors.Is(err, answers.ErrShards) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// CountMatching returns how many documents of an index expression match a
// query, all of them where it is nil.
func (c *Client) CountMatching(ctx context.Context, index string, query []byte) (int64, error) {
	if query == nil {
		return c.Count(ctx, index)
	}
	if err := checkQuery(query); err != nil {
		return 0, err
	}
	var answer struct {
		Count int64 `json:"count"`
	}
	r := request{method: http.MethodPost, path: indexPath(index, "/_count"), body: object{"query": jsontext.Value(query)}}
	err := c.call(ctx, r, &answer)
	return answer.Count, err
}

// An Index is a concrete index.
type Index struct {
	// Name is its name, and UUID tells it from another of this name, before or
	// after; it is "" where a hosted cluster keeps it to itself.
	Name, UUID string
	// Shards is the number of primary shards, at least 1.
	Shards int
}

// Indices returns the concrete indices that an index expression stands for, by
// name.
func (c *Client) Indices(ctx context.Context, index string) ([]Index, error) {
	var answer map[string]struct {
		Settings struct {
			Index struct {
				UUID   string `json:"uuid"`
				Shards int    `json:"number_of_shards,string"`
			} `json:"index"`
		} `json:"settings"`
	}
	const filter = "?filter_path=*.settings.index.uuid,*.settings.index.number_of_shards"
	if err := c.call(ctx, request{method: http.MethodGet, path: indexPath(index, "/_settings"+filter)}, &answer); err != nil {
		return nil, err
	}
	all := make([]Index, 0, len(answer))
	for _, name := range slices.Sorted(maps.Keys(answer)) {
		about := answer[name].Settings.Index
		all = append(all, Index{Name: name, UUID: about.UUID, Shards: max(about.Shards, 1)})
	}
	return all, nil
}

// sourcePaths returns the paths that documents have the texts of the fields
// under, by index, each once and in the order of the fields.
func (c *Client) sourcePaths(ctx context.Context, index string, fields []string) (map[string][]string, error) {
	if len(fields) == 0 {
		return nil, errors.New("no field to read")
	}
	paths := map[string][]string{}
	for _, f := range fields {
		s, err := c.schema(ctx, Indices{Expression: index}, f)
		if err != nil {
			return nil, err
		}
		for _, t := range s.Targets {
			if !slices.Contains(paths[t.Index], t.Source) {
				paths[t.Index] = append(paths[t.Index], t.Source)
			}
		}
	}
	return paths, nil
}
