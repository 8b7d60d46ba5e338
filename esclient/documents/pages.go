package documents

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient"
)

// keepTime is how long the cluster keeps a scroll or a point in time: longer
// than pageTimeout.
const keepTime = 10 * time.Minute

// A hit is a document in a page of a scan.
type hit struct {
	Index       string                    `json:"_index"`
	ID          string                    `json:"_id"`
	Routing     string                    `json:"_routing"`
	Source      jsontext.Value            `json:"_source"`
	SeqNo       int64                     `json:"_seq_no"`
	PrimaryTerm int64                     `json:"_primary_term"`
	Version     int64                     `json:"_version"`
	Fields      map[string]jsontext.Value `json:"fields"`
	Sort        jsontext.Value            `json:"sort"` // its place in the order asked for
}

// A page is an answer to a search that is read page by page.
type page struct {
	ScrollID string       `json:"_scroll_id"`
	PIT      string       `json:"pit_id"`
	Shards   shardsFailed `json:"_shards"`
	Hits     struct {
		Hits []hit `json:"hits"`
	} `json:"hits"`
}

// inPages are the members of a page.
var inPages = []string{
	"_scroll_id", "pit_id", "_shards.failed", "hits.hits._index", "hits.hits._id", "hits.hits._routing", "hits.hits._source",
	"hits.hits._seq_no", "hits.hits._primary_term", "hits.hits._version", "hits.hits.fields", "hits.hits.sort",
}

// page keeps the ids in an answer that is cut.
func (a API) page(ctx context.Context, r esapi.Request) (p page, err error) {
	err = a.Client.Do(ctx, esclient.Call{Timeout: pageTimeout, Limit: maxPage, Request: r}, &p)
	return p, cmp.Or(err, p.Shards.check())
}

// A reading passes the hits of a search to fn, page by page.
type reading func(a API, ctx context.Context, index string, body esclient.Object, fn func([]hit) error) error

// scan searches with body and passes the hits to fn, which must not keep them,
// page by page: by a scroll or, where the cluster has or allows none, in a
// point in time, or else by id. However it ends, the cluster drops its state,
// at the latest after keepTime.
func (a API) scan(ctx context.Context, index string, body esclient.Object, fn func([]hit) error) error {
	var refusals []error
	for _, read := range []reading{API.scroll, API.inElasticsearchPIT, API.inOpenSearchPIT, API.byID} {
		began := false
		err := read(a, ctx, index, maps.Clone(body), func(page []hit) error {
			began = true
			return fn(page)
		})
		if err == nil {
			return nil
		}
		if began || !esclient.IsUnavailable(err) && (len(refusals) == 0 || !isBad(err)) {
			return fmt.Errorf("scan: %w", err)
		}
		refusals = append(refusals, err)
	}
	return fmt.Errorf("scan: %w", errors.Join(refusals...))
}

// isBad reports whether the cluster answered 400, as an engine does to paths of
// another: Elasticsearch 7 takes them for those of documents.
func isBad(err error) bool {
	refused, ok := errors.AsType[*esclient.Error](err)
	return ok && refused.Status == http.StatusBadRequest
}

// ErrNoPointInTime says that the cluster has or allows no points in time.
var ErrNoPointInTime = errors.New("no points in time")

// PointInTime reads a page in a point in time. The error is [ErrNoPointInTime],
// or says why that is not known.
func (a API) PointInTime(ctx context.Context, index string) error {
	enough := errors.New("one page")
	for _, read := range []reading{API.inElasticsearchPIT, API.inOpenSearchPIT} {
		err := read(a, ctx, index, esclient.Object{"size": 1, "_source": false}, func([]hit) error { return enough })
		switch {
		case err == nil, errors.Is(err, enough):
			return nil
		case !isBad(err) && !esclient.IsUnavailable(err):
			return err
		}
	}
	return ErrNoPointInTime
}

// scroll passes the first page to fn once it has the second: a cluster may
// refuse only that.
func (a API) scroll(ctx context.Context, index string, body esclient.Object, fn func([]hit) error) (err error) {
	p, err := a.page(ctx, esapi.SearchRequest{
		Index: []string{esclient.Name(index)}, Scroll: keepTime, FilterPath: inPages, Body: esclient.JSON(body),
	})
	id := p.ScrollID
	defer func() { err = cmp.Or(err, a.drop(ctx, "/_search/scroll", "scroll_id", id)) }()
	for ready := [][]hit{p.Hits.Hits}; err == nil && len(p.Hits.Hits) > 0; ready = nil {
		p, err = a.page(ctx, esapi.ScrollRequest{Scroll: keepTime, FilterPath: inPages, Body: esclient.JSON(esclient.Object{"scroll_id": id})})
		id = cmp.Or(p.ScrollID, id)
		for _, hits := range append(ready, p.Hits.Hits) {
			if err == nil && len(hits) > 0 {
				err = fn(hits)
			}
		}
	}
	return err
}

// inElasticsearchPIT reads in the order of the point in time itself.
func (a API) inElasticsearchPIT(ctx context.Context, index string, body esclient.Object, fn func([]hit) error) (err error) {
	var opened struct {
		ID string `json:"id"`
	}
	if err := a.Client.Do(ctx, esclient.Call{Request: openPIT(index, "/_pit")}, &opened); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, a.drop(ctx, "/_pit", "id", opened.ID)) }()
	body["sort"] = []string{"_shard_doc"}
	body["pit"] = pitObject(opened.ID)
	return a.inOrder(ctx, "/_search", body, fn)
}

// inOpenSearchPIT reads by id, because OpenSearch 2 has no other order in which
// each document has a place of its own.
func (a API) inOpenSearchPIT(ctx context.Context, index string, body esclient.Object, fn func([]hit) error) (err error) {
	const path = "/_search/point_in_time"
	var opened struct {
		ID string `json:"pit_id"`
	}
	if err := a.Client.Do(ctx, esclient.Call{Request: openPIT(index, path)}, &opened); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, a.drop(ctx, path, "pit_id", opened.ID)) }()
	body["sort"] = idOrder
	body["pit"] = pitObject(opened.ID)
	return a.inOrder(ctx, "/_search", body, fn)
}

// idOrder: several indices may have the same id.
var idOrder = []string{"_id", "_index"}

// byID reads the documents as they are. The engines divide only scrolls and
// points in time, so the first slice has all documents.
func (a API) byID(ctx context.Context, index string, body esclient.Object, fn func([]hit) error) error {
	if slice, ok := body["slice"].(esclient.Object); ok && slice["id"] != 0 {
		return nil
	}
	delete(body, "slice")
	body["sort"] = idOrder
	return a.inOrder(ctx, "/"+esclient.Name(index)+"/_search", body, fn)
}

func openPIT(index, path string) esapi.Request {
	return esclient.HTTPRequest{Method: http.MethodPost, Path: fmt.Sprintf("/%s%s?keep_alive=%dm", esclient.Name(index), path, keepTime/time.Minute)}
}

func pitObject(id string) esclient.Object {
	return esclient.Object{"id": id, "keep_alive": fmt.Sprintf("%dm", keepTime/time.Minute)}
}

// inOrder reads page after page in the order of body.
func (a API) inOrder(ctx context.Context, path string, body esclient.Object, fn func([]hit) error) error {
	path += "?filter_path=" + strings.Join(inPages, ",")
	body["track_total_hits"] = false
	var after jsontext.Value
	for {
		p, err := a.page(ctx, esclient.HTTPRequest{Method: http.MethodPost, Path: path, Body: esclient.JSON(body)})
		if err != nil || len(p.Hits.Hits) == 0 {
			return err
		}
		last := p.Hits.Hits[len(p.Hits.Hits)-1].Sort
		if len(last) == 0 || bytes.Equal(last, after) {
			return errors.New("the answer does not follow the page before it")
		}
		if err := fn(p.Hits.Hits); err != nil {
			return err
		}
		after = last
		body["search_after"] = after
		if p.PIT != "" {
			body["pit"] = pitObject(p.PIT)
		}
	}
}

// drop ends a scroll or a point in time, even after a canceled scan.
func (a API) drop(ctx context.Context, path, member, id string) error {
	if id == "" {
		return nil
	}
	var named any = []string{id}
	if member == "id" {
		named = id
	}
	err := a.Client.Do(context.WithoutCancel(ctx), esclient.Call{Request: esclient.HTTPRequest{
		Method: http.MethodDelete, Path: path, Body: esclient.JSON(esclient.Object{member: named}),
	}}, nil)
	refusal, ok := errors.AsType[*esclient.Error](err)
	if ok && (refusal.Status == http.StatusNotFound || refusal.Status == http.StatusForbidden) {
		return nil // already gone, or it expires by itself: all has been read
	}
	return err
}
