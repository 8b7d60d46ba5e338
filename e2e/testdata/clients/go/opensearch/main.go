// Command opensearch uses the Go client of OpenSearch as applications do, and
// prints what it answers.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/opensearch-project/opensearch-go/v4"
	"github.com/opensearch-project/opensearch-go/v4/opensearchapi"
	"github.com/opensearch-project/opensearch-go/v4/opensearchutil"

	"github.com/akin-search/akin/e2e/testdata/clients/go/record"
)

const (
	oddID = "a/b c%2F+ü?#&"
	lorry = `{"query":{"match":{"body":"lorry"}}}`
)

var ctx = context.Background()

// An app is the application: a client and the index that it works with.
type app struct {
	*opensearchapi.Client

	address, index string
	fixture        record.Fixture
}

func main() {
	a := app{}
	a.address, a.index, a.fixture = record.Arguments()
	a.Client = record.Must(connect(opensearch.Config{Addresses: []string{a.address}}))
	r := &record.Recorder{Describe: describe}
	a.write(r)
	a.search(r)
	a.options(r)
	r.Print()
}

func connect(config opensearch.Config) (*opensearchapi.Client, error) {
	return opensearchapi.NewClient(opensearchapi.Config{Client: config})
}

func describe(err error) record.Failure {
	var answered *opensearch.StructError
	var worded *opensearch.StringError
	switch {
	case errors.As(err, &answered):
		return record.Failure{Class: "StructError", Status: answered.Status, Body: answered}
	case errors.As(err, &worded):
		return record.Failure{Class: "StringError", Status: worded.Status, Body: worded}
	case errors.Is(err, context.DeadlineExceeded):
		return record.Failure{Class: "DeadlineExceeded"}
	default:
		return record.Failure{Class: fmt.Sprintf("%T", err), Body: err.Error()}
	}
}

// status returns the status of an answer that has no body.
func status(res *opensearch.Response, err error) (any, error) {
	if res == nil {
		return nil, err
	}
	return res.StatusCode, nil
}

func body(s string) io.Reader { return strings.NewReader(s) }

// cars is a search for cars that returns so many at most.
func cars(size int) string {
	return fmt.Sprintf(`{"query":{"match":{"body":"car"}},"size":%d,"sort":[{"n":"asc"}]}`, size)
}

func (a app) write(r *record.Recorder) {
	indices := []string{a.index}
	r.Step("ping", func() (any, error) { return status(a.Ping(ctx, nil)) })
	r.Step("info", func() (any, error) { return a.Info(ctx, nil) })
	r.Step("exists before", func() (any, error) {
		return status(a.Indices.Exists(ctx, opensearchapi.IndicesExistsReq{Indices: indices}))
	})
	r.Step("create index", func() (any, error) {
		return a.Indices.Create(ctx, opensearchapi.IndicesCreateReq{Index: a.index, Body: bytes.NewReader(a.fixture.Definition)})
	})
	r.Step("create index again", func() (any, error) { return a.Indices.Create(ctx, opensearchapi.IndicesCreateReq{Index: a.index}) })
	r.Step("exists", func() (any, error) {
		return status(a.Indices.Exists(ctx, opensearchapi.IndicesExistsReq{Indices: indices}))
	})
	r.Step("mapping", func() (any, error) {
		answer, err := a.Indices.Mapping.Get(ctx, &opensearchapi.MappingGetReq{Indices: indices})
		return answer.GetIndices(), err
	})
	r.Step("bulk helper", func() (any, error) { return a.bulkIndexer(a.Client, a.fixture.Documents) })
	r.Step("bulk helper with failing items", func() (any, error) {
		return a.bulkIndexer(a.Client, []record.Document{{ID: "bad", Fields: json.RawMessage(`{"n":"many"}`)}})
	})
	r.Step("bulk with failing items", func() (any, error) {
		return a.Bulk(ctx, opensearchapi.BulkReq{Index: a.index, Body: body(`{"create":{"_id":"car"}}
{"n":1}
{"index":{"_id":"bad"}}
{"n":"many"}
{"index":{"_id":"` + oddID + `"}}
{"body":"odd","n":100}
{"delete":{"_id":"nobody"}}
`)})
	})
	r.Step("refresh", func() (any, error) { return a.Indices.Refresh(ctx, &opensearchapi.IndicesRefreshReq{Index: indices}) })
}

// bulkIndexer writes documents with the helper, which tells what the cluster
// refuses.
func (a app) bulkIndexer(client *opensearchapi.Client, documents []record.Document) (any, error) {
	var refused []opensearchapi.BulkRespItem
	indexer, err := opensearchutil.NewBulkIndexer(opensearchutil.BulkIndexerConfig{Client: client, Index: a.index, NumWorkers: 1, FlushBytes: 2000, Refresh: "true"})
	if err != nil {
		return nil, err
	}
	for _, d := range documents {
		item := opensearchutil.BulkIndexerItem{
			Action: "index", DocumentID: d.ID, Body: bytes.NewReader(d.Fields),
			OnFailure: func(_ context.Context, _ opensearchutil.BulkIndexerItem, answer opensearchapi.BulkRespItem, _ error) {
				refused = append(refused, answer)
			},
		}
		if err := indexer.Add(ctx, item); err != nil {
			return nil, err
		}
	}
	if err := indexer.Close(ctx); err != nil {
		return nil, err
	}
	stats := indexer.Stats()
	return map[string]any{"indexed": stats.NumIndexed, "failed": stats.NumFailed, "requests": stats.NumRequests, "refused": refused}, nil
}

// find returns a search in the index of the application.
func (a app) find(query string, params opensearchapi.SearchParams) func() (any, error) {
	return func() (any, error) {
		return a.Search(ctx, &opensearchapi.SearchReq{Indices: []string{a.index}, Body: body(query), Params: params})
	}
}

func (a app) search(r *record.Recorder) {
	r.Step("search car", a.find(`{"query":{"match":{"body":"car"}},"sort":[{"_score":"desc"},{"n":"asc"}],"track_scores":true,
		"highlight":{"fields":{"body":{}}},"aggs":{"n":{"stats":{"field":"n"}}}}`,
		opensearchapi.SearchParams{Size: new(20), SourceIncludes: []string{"title", "n"}, TrackTotalHits: true}))
	r.Step("search by parameters", func() (any, error) {
		return a.Search(ctx, &opensearchapi.SearchReq{Indices: []string{a.index}, Params: opensearchapi.SearchParams{Query: "body:lorry"}})
	})
	r.Step("search filler", a.find(`{"query":{"bool":{"must":{"match":{"body":"filler"}},"filter":{"range":{"n":{"lt":30}}}}},
		"aggs":{"tens":{"histogram":{"field":"n","interval":10},"aggs":{"most":{"max":{"field":"n"}}}}}}`,
		opensearchapi.SearchParams{From: new(5), Size: new(3), Sort: []string{"n:asc"}, Timeout: 10 * time.Second}))
	r.Step("scroll of car", a.scroll)
	r.Step("pages of car", a.pages)
	missing := `{"index":"akin-e2e-missing"}
{"query":{"match_all":{}}}
`
	r.Step("msearch of car", func() (any, error) {
		return a.MSearch(ctx, opensearchapi.MSearchReq{Indices: []string{a.index}, Body: body("{}\n" + cars(20) + "\n" + missing)})
	})
	r.Step("msearch", func() (any, error) {
		return a.MSearch(ctx, opensearchapi.MSearchReq{Body: body(`{"index":"` + a.index + "\"}\n" + lorry + "\n" + missing)})
	})
	r.Step("count of car", func() (any, error) {
		return a.Indices.Count(ctx, &opensearchapi.IndicesCountReq{Indices: []string{a.index}, Body: body(`{"query":{"match":{"body":"car"}}}`)})
	})
	r.Step("count", func() (any, error) {
		return a.Indices.Count(ctx, &opensearchapi.IndicesCountReq{Indices: []string{a.index}})
	})
}

// scroll returns all hits, page by page.
func (a app) scroll() (any, error) {
	page, err := a.Search(ctx, &opensearchapi.SearchReq{Indices: []string{a.index}, Body: body(cars(2)), Params: opensearchapi.SearchParams{Scroll: time.Minute}})
	if err != nil {
		return nil, err
	}
	pages, hits, id := [][]opensearchapi.SearchHit{}, page.Hits.Hits, *page.ScrollID
	for len(hits) > 0 {
		pages = append(pages, hits)
		next, err := a.Scroll.Get(ctx, opensearchapi.ScrollGetReq{ScrollID: id, Params: opensearchapi.ScrollGetParams{Scroll: time.Minute}})
		if err != nil {
			return nil, err
		}
		hits, id = next.Hits.Hits, *next.ScrollID
	}
	cleared, err := a.Scroll.Delete(ctx, opensearchapi.ScrollDeleteReq{ScrollIDs: []string{id}})
	return []any{pages, cleared}, err
}

// pages reads all documents about cars, two at a time, at one point in time.
func (a app) pages() (any, error) {
	pit, err := a.PointInTime.Create(ctx, opensearchapi.PointInTimeCreateReq{
		Indices: []string{a.index}, Params: opensearchapi.PointInTimeCreateParams{KeepAlive: time.Minute},
	})
	if err != nil {
		return nil, err
	}
	request := map[string]any{
		"pit":   map[string]any{"id": pit.PitID, "keep_alive": "1m"},
		"query": map[string]any{"match": map[string]any{"body": "car"}},
		"size":  2, "sort": []string{"n"},
	}
	var found []opensearchapi.SearchHit
	for {
		page, err := a.Search(ctx, &opensearchapi.SearchReq{Body: opensearchutil.NewJSONReader(request)})
		if err != nil {
			return nil, err
		}
		hits := page.Hits.Hits
		if len(hits) == 0 {
			break
		}
		found, request["search_after"] = append(found, hits...), hits[len(hits)-1].Sort
	}
	_, err = a.PointInTime.Delete(ctx, opensearchapi.PointInTimeDeleteReq{PitID: []string{pit.PitID}})
	return found, err
}

func (a app) options(r *record.Recorder) {
	missing := []string{"akin-e2e-missing"}
	r.Step("missing index", func() (any, error) { return a.Search(ctx, &opensearchapi.SearchReq{Indices: missing}) })
	r.Step("missing index, ignored", func() (any, error) {
		return a.Search(ctx, &opensearchapi.SearchReq{Indices: missing, Params: opensearchapi.SearchParams{IgnoreUnavailable: new(true)}})
	})
	r.Step("bad query", a.find(`{"query":{"no_such_query":{}}}`, opensearchapi.SearchParams{}))
	r.Step("bad value", a.find(`{"query":{"match":{"n":"many"}}}`, opensearchapi.SearchParams{}))
	r.Step("no JSON", a.find(`{"query":`, opensearchapi.SearchParams{}))
	r.Step("headers", func() (any, error) {
		answer, err := a.Search(ctx, &opensearchapi.SearchReq{
			Indices: []string{a.index}, Header: http.Header{"X-Opaque-Id": {"from-go"}}, Params: opensearchapi.SearchParams{Size: new(0)},
		})
		if err != nil {
			return nil, err
		}
		header := answer.Inspect().Response.Header
		return map[string]any{"id": header["X-Opaque-Id"], "type": header["Content-Type"]}, nil
	})
	r.Step("compressed car", a.compressed)
	r.Step("nodes", func() (any, error) { return a.Nodes.Info(ctx, &opensearchapi.NodesInfoReq{Metrics: []string{"http"}}) })
	r.Step("sniffed", a.sniffed)
	r.Step("client's timeout", func() (any, error) {
		soon, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		return a.Cluster.Health(soon, &opensearchapi.ClusterHealthReq{Params: opensearchapi.ClusterHealthParams{WaitForNodes: "5", Timeout: 5 * time.Second}})
	})
	r.Step("delete index", func() (any, error) {
		return a.Indices.Delete(ctx, opensearchapi.IndicesDeleteReq{Indices: []string{a.index}})
	})
}

// compressed writes and searches with bodies that are compressed both ways.
func (a app) compressed() (any, error) {
	squeezed, err := connect(opensearch.Config{Addresses: []string{a.address}, CompressRequestBody: true})
	if err != nil {
		return nil, err
	}
	defer squeezed.Close()
	var documents []record.Document
	for i := range 10 {
		documents = append(documents, record.Document{ID: fmt.Sprintf("gzip-%d", i), Fields: json.RawMessage(`{"body":"` + strings.Repeat("zipped ", 50) + `"}`)})
	}
	written, err := a.bulkIndexer(squeezed, documents)
	if err != nil {
		return nil, err
	}
	found, err := squeezed.Search(ctx, &opensearchapi.SearchReq{Indices: []string{a.index}, Body: body(cars(20))})
	return []any{written, found}, err
}

// sniffed takes the addresses of the nodes from the cluster.
func (a app) sniffed() (any, error) {
	sniffing, err := connect(opensearch.Config{Addresses: []string{a.address}})
	if err != nil {
		return nil, err
	}
	defer sniffing.Close()
	if err := sniffing.Client.DiscoverNodes(ctx); err != nil {
		return nil, err
	}
	return sniffing.Indices.Count(ctx, &opensearchapi.IndicesCountReq{Indices: []string{a.index}})
}
