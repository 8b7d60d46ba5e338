// Command lowlevel uses the low-level API of the Go client of Elasticsearch
// as applications do, and prints what it answers.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8"
	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/elastic/go-elasticsearch/v8/esutil"

	"github.com/akin-search/akin/e2e/testdata/clients/go/record"
)

const oddID = "a/b c%2F+ü?#&"

// An app is the application: a client and the index that it works with.
type app struct {
	*elasticsearch.Client

	address, index string
	fixture        record.Fixture
}

func main() {
	a := app{}
	a.address, a.index, a.fixture = record.Arguments()
	a.Client = record.Must(elasticsearch.NewClient(elasticsearch.Config{Addresses: []string{a.address}}))
	r := &record.Recorder{Describe: describe}
	a.write(r)
	a.search(r)
	a.documents(r)
	a.options(r)
	r.Print()
}

// An apiError is an answer that the client calls an error.
type apiError struct {
	status int
	body   any
}

func (e apiError) Error() string { return fmt.Sprint(e.status) }

func describe(err error) record.Failure {
	var answered apiError
	switch {
	case errors.As(err, &answered):
		return record.Failure{Class: "IsError", Status: answered.status, Body: answered.body}
	case errors.Is(err, context.DeadlineExceeded):
		return record.Failure{Class: "DeadlineExceeded"}
	default:
		return record.Failure{Class: err.Error()}
	}
}

// read returns the body of an answer, decoded, or its status where it has
// none.
func read(res *esapi.Response, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if len(content) == 0 {
		return res.StatusCode, nil
	}
	var body any
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	if err := decoder.Decode(&body); err != nil {
		return nil, err
	}
	if res.IsError() {
		return nil, apiError{res.StatusCode, body}
	}
	return body, nil
}

// cars is a search for cars that returns so many at most.
func cars(size int) string {
	return fmt.Sprintf(`{"query":{"match":{"body":"car"}},"size":%d,"sort":[{"n":"asc"}]}`, size)
}

func (a app) write(r *record.Recorder) {
	r.Step("ping", func() (any, error) { return read(a.Ping()) })
	r.Step("info", func() (any, error) { return read(a.Info()) })
	r.Step("exists before", func() (any, error) { return read(a.Indices.Exists([]string{a.index})) })
	r.Step("create index", func() (any, error) {
		return read(a.Indices.Create(a.index, a.Indices.Create.WithBody(bytes.NewReader(a.fixture.Definition))))
	})
	r.Step("create index again", func() (any, error) { return read(a.Indices.Create(a.index)) })
	r.Step("exists", func() (any, error) { return read(a.Indices.Exists([]string{a.index})) })
	r.Step("mapping", func() (any, error) { return read(a.Indices.GetMapping(a.Indices.GetMapping.WithIndex(a.index))) })
	r.Step("bulk helper", func() (any, error) { return a.bulkIndexer(a.Client, a.fixture.Documents) })
	r.Step("bulk helper with failing items", func() (any, error) {
		return a.bulkIndexer(a.Client, []record.Document{{ID: "bad", Fields: json.RawMessage(`{"n":"many"}`)}})
	})
	r.Step("bulk with failing items", func() (any, error) {
		lines := `{"create":{"_id":"car"}}
{"n":1}
{"index":{"_id":"bad"}}
{"n":"many"}
{"index":{"_id":"` + oddID + `"}}
{"body":"odd","n":100}
{"delete":{"_id":"nobody"}}
`
		return read(a.Bulk(strings.NewReader(lines), a.Bulk.WithIndex(a.index)))
	})
	r.Step("refresh", func() (any, error) { return read(a.Indices.Refresh(a.Indices.Refresh.WithIndex(a.index))) })
}

// bulkIndexer writes documents with the helper, which tells what the cluster
// refuses.
func (a app) bulkIndexer(client *elasticsearch.Client, documents []record.Document) (any, error) {
	var refused []esutil.BulkIndexerResponseItem
	indexer, err := esutil.NewBulkIndexer(esutil.BulkIndexerConfig{Client: client, Index: a.index, NumWorkers: 1, FlushBytes: 2000, Refresh: "true"})
	if err != nil {
		return nil, err
	}
	for _, d := range documents {
		item := esutil.BulkIndexerItem{
			Action: "index", DocumentID: d.ID, Body: bytes.NewReader(d.Fields),
			OnFailure: func(_ context.Context, _ esutil.BulkIndexerItem, answer esutil.BulkIndexerResponseItem, _ error) {
				refused = append(refused, answer)
			},
		}
		if err := indexer.Add(context.Background(), item); err != nil {
			return nil, err
		}
	}
	if err := indexer.Close(context.Background()); err != nil {
		return nil, err
	}
	stats := indexer.Stats()
	return map[string]any{"indexed": stats.NumIndexed, "failed": stats.NumFailed, "requests": stats.NumRequests, "refused": refused}, nil
}

func (a app) search(r *record.Recorder) {
	r.Step("search car", func() (any, error) {
		return read(a.Search(a.Search.WithIndex(a.index), a.Search.WithSize(20), a.Search.WithTrackTotalHits(true),
			a.Search.WithSourceIncludes("title", "n"), a.Search.WithBody(strings.NewReader(
				`{"query":{"match":{"body":"car"}},"sort":[{"_score":"desc"},{"n":"asc"}],"track_scores":true,
				"highlight":{"fields":{"body":{}}},"aggs":{"n":{"stats":{"field":"n"}}}}`))))
	})
	r.Step("search by parameters", func() (any, error) {
		return read(a.Search(a.Search.WithIndex(a.index), a.Search.WithQuery("body:lorry"), a.Search.WithFilterPath("hits.hits._id")))
	})
	r.Step("search filler", func() (any, error) {
		query := map[string]any{
			"query": map[string]any{"bool": map[string]any{
				"must":   map[string]any{"match": map[string]any{"body": "filler"}},
				"filter": map[string]any{"range": map[string]any{"n": map[string]any{"lt": 30}}},
			}},
			"aggs": map[string]any{"tens": map[string]any{"histogram": map[string]any{"field": "n", "interval": 10}}},
		}
		return read(a.Search(a.Search.WithIndex(a.index), a.Search.WithBody(esutil.NewJSONReader(query)), a.Search.WithFrom(5),
			a.Search.WithSize(3), a.Search.WithSort("n:asc"), a.Search.WithTimeout(10*time.Second)))
	})
	r.Step("scroll of car", func() (any, error) { return a.scroll(cars(2)) })
	r.Step("pages of car", a.pages)
	missing := `{"index":"akin-e2e-missing"}
{"query":{"match_all":{}}}
`
	r.Step("msearch of car", func() (any, error) {
		return read(a.Msearch(strings.NewReader("{}\n"+cars(20)+"\n"+missing), a.Msearch.WithIndex(a.index)))
	})
	r.Step("msearch", func() (any, error) {
		return read(a.Msearch(strings.NewReader(`{"index":"` + a.index + "\"}\n{\"query\":{\"match\":{\"body\":\"lorry\"}}}\n" + missing)))
	})
	r.Step("count of car", func() (any, error) {
		return read(a.Count(a.Count.WithIndex(a.index), a.Count.WithBody(strings.NewReader(`{"query":{"match":{"body":"car"}}}`))))
	})
	r.Step("count", func() (any, error) { return read(a.Count(a.Count.WithIndex(a.index))) })
	r.Step("async search", func() (any, error) {
		return read(a.AsyncSearch.Submit(a.AsyncSearch.Submit.WithIndex(a.index), a.AsyncSearch.Submit.WithWaitForCompletionTimeout(10*time.Second),
			a.AsyncSearch.Submit.WithBody(strings.NewReader(`{"query":{"match":{"body":"lorry"}}}`))))
	})
}

// An answer is what the application reads of a search.
type answer struct {
	ScrollID string `json:"_scroll_id"`
	PitID    string `json:"pit_id"`
	ID       string
	Hits     struct {
		Hits []struct {
			ID   string `json:"_id"`
			Sort []any
		}
	}
}

func decode(res *esapi.Response, err error) (answer, error) {
	var page answer
	if err != nil {
		return page, err
	}
	defer res.Body.Close()
	return page, json.NewDecoder(res.Body).Decode(&page)
}

// scroll returns the ids of all hits, page by page.
func (a app) scroll(body string) (any, error) {
	var pages [][]string
	page, err := decode(a.Search(a.Search.WithIndex(a.index), a.Search.WithBody(strings.NewReader(body)), a.Search.WithScroll(time.Minute)))
	for ; err == nil && len(page.Hits.Hits) > 0; page, err = decode(a.Scroll(a.Scroll.WithScrollID(page.ScrollID), a.Scroll.WithScroll(time.Minute))) {
		var ids []string
		for _, hit := range page.Hits.Hits {
			ids = append(ids, hit.ID)
		}
		pages = append(pages, ids)
	}
	if err != nil {
		return nil, err
	}
	cleared, err := read(a.ClearScroll(a.ClearScroll.WithScrollID(page.ScrollID)))
	return []any{pages, cleared}, err
}

// pages reads all documents about cars, two at a time, at one point in time.
func (a app) pages() (any, error) {
	pit, err := decode(a.OpenPointInTime([]string{a.index}, "1m"))
	if err != nil {
		return nil, err
	}
	id := pit.ID
	request := map[string]any{"query": map[string]any{"match": map[string]any{"body": "car"}}, "size": 2, "sort": []string{"n", "_shard_doc"}}
	found := map[string][]any{}
	for {
		request["pit"] = map[string]any{"id": id, "keep_alive": "1m"}
		page, err := decode(a.Search(a.Search.WithBody(esutil.NewJSONReader(request))))
		if err != nil {
			return nil, err
		}
		if len(page.Hits.Hits) == 0 {
			break
		}
		for _, hit := range page.Hits.Hits {
			found[hit.ID], request["search_after"] = hit.Sort, hit.Sort
		}
		id = page.PitID
	}
	closed, err := read(a.ClosePointInTime(a.ClosePointInTime.WithBody(esutil.NewJSONReader(map[string]any{"id": id}))))
	return []any{slices.Sorted(maps.Keys(found)), found, closed}, err
}

func (a app) documents(r *record.Recorder) {
	odd := url.PathEscape(oddID)
	body := func(s string) io.Reader { return strings.NewReader(s) }
	r.Step("get", func() (any, error) { return read(a.Get(a.index, "car")) })
	r.Step("get with an odd id", func() (any, error) { return read(a.Get(a.index, odd)) })
	r.Step("get source", func() (any, error) { return read(a.GetSource(a.index, "car-red", a.GetSource.WithSourceIncludes("n"))) })
	r.Step("get missing", func() (any, error) { return read(a.Get(a.index, "nobody")) })
	r.Step("mget", func() (any, error) {
		return read(a.Mget(esutil.NewJSONReader(map[string]any{"ids": []string{"car", "nobody", oddID}}), a.Mget.WithIndex(a.index)))
	})
	r.Step("exists document", func() (any, error) { return read(a.Exists(a.index, odd)) })
	r.Step("exists no document", func() (any, error) { return read(a.Exists(a.index, "nobody")) })
	r.Step("update", func() (any, error) { return read(a.Update(a.index, "lorry", body(`{"doc":{"n":4000}}`))) })
	r.Step("upsert", func() (any, error) {
		return read(a.Update(a.index, "new", body(`{"doc":{"n":1},"doc_as_upsert":true}`), a.Update.WithRefresh("true")))
	})
	r.Step("update conflict", func() (any, error) {
		return read(a.Index(a.index, body(`{"n":5}`), a.Index.WithDocumentID("lorry"), a.Index.WithIfSeqNo(0), a.Index.WithIfPrimaryTerm(1)))
	})
	r.Step("create conflict", func() (any, error) { return read(a.Create(a.index, "lorry", body(`{"n":5}`))) })
	r.Step("delete", func() (any, error) { return read(a.Delete(a.index, "new", a.Delete.WithRefresh("true"))) })
	r.Step("delete missing", func() (any, error) { return read(a.Delete(a.index, "new")) })
}

func (a app) options(r *record.Recorder) {
	search := func(index, body string, more ...func(*esapi.SearchRequest)) func() (any, error) {
		return func() (any, error) {
			return read(a.Search(append(more, a.Search.WithIndex(index), a.Search.WithBody(strings.NewReader(body)))...))
		}
	}
	dated := url.PathEscape("<" + a.index + "-{2026.01||/M{yyyy.MM}}>")
	lorry := `{"query":{"match":{"body":"lorry"}}}`
	r.Step("missing index", search("akin-e2e-missing", "{}"))
	r.Step("missing index, ignored", search("akin-e2e-missing", "{}", a.Search.WithIgnoreUnavailable(true)))
	r.Step("bad query", search(a.index, `{"query":{"no_such_query":{}}}`))
	r.Step("bad value", search(a.index, `{"query":{"match":{"n":"many"}}}`))
	r.Step("no JSON", search(a.index, `{"query":`))
	r.Step("headers", func() (any, error) {
		res, err := a.Search(a.Search.WithIndex(a.index), a.Search.WithSize(0), a.Search.WithOpaqueID("from-go"))
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		return map[string]any{"id": res.Header["X-Opaque-Id"], "product": res.Header["X-Elastic-Product"], "type": res.Header["Content-Type"]}, nil
	})
	r.Step("dated index", func() (any, error) {
		return read(a.Index(dated, strings.NewReader(`{"body":"lorry"}`), a.Index.WithDocumentID("1"), a.Index.WithRefresh("true")))
	})
	r.Step("search dated index", search(dated, lorry))
	r.Step("delete dated index", func() (any, error) { return read(a.Indices.Delete([]string{a.index + "-2026.01"})) })
	r.Step("compressed car", a.compressed)
	r.Step("nodes", func() (any, error) { return read(a.Nodes.Info(a.Nodes.Info.WithMetric("http"))) })
	r.Step("sniffed", a.sniffed)
	r.Step("cluster's timeout", func() (any, error) {
		return read(a.Cluster.Health(a.Cluster.Health.WithWaitForNodes("5"), a.Cluster.Health.WithTimeout(50*time.Millisecond),
			a.Cluster.Health.WithFilterPath("timed_out")))
	})
	r.Step("client's timeout", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		return read(a.Cluster.Health(a.Cluster.Health.WithContext(ctx), a.Cluster.Health.WithWaitForNodes("5"), a.Cluster.Health.WithTimeout(5*time.Second)))
	})
	r.Step("delete index", func() (any, error) { return read(a.Indices.Delete([]string{a.index})) })
}

// compressed writes and searches with bodies that are compressed both ways.
func (a app) compressed() (any, error) {
	squeezed, err := elasticsearch.NewClient(elasticsearch.Config{Addresses: []string{a.address}, CompressRequestBody: true})
	if err != nil {
		return nil, err
	}
	var documents []record.Document
	for i := range 10 {
		documents = append(documents, record.Document{ID: fmt.Sprintf("gzip-%d", i), Fields: json.RawMessage(`{"body":"` + strings.Repeat("zipped ", 50) + `"}`)})
	}
	written, err := a.bulkIndexer(squeezed, documents)
	if err != nil {
		return nil, err
	}
	found, err := read(squeezed.Search(squeezed.Search.WithIndex(a.index), squeezed.Search.WithBody(strings.NewReader(cars(20)))))
	return []any{written, found}, err
}

// sniffed takes the addresses of the nodes from the cluster.
func (a app) sniffed() (any, error) {
	sniffing, err := elasticsearch.NewClient(elasticsearch.Config{Addresses: []string{a.address}})
	if err != nil {
		return nil, err
	}
	if err := sniffing.DiscoverNodes(); err != nil {
		return nil, err
	}
	return read(sniffing.Count(sniffing.Count.WithIndex(a.index)))
}
