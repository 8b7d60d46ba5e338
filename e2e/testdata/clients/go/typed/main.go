// Command typed uses the typed API of the Go client of Elasticsearch as
// applications do, and prints what it answers.
package main

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/elastic/go-elasticsearch/v8"
	"github.com/elastic/go-elasticsearch/v8/typedapi/core/search"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types/enums/refresh"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types/enums/sortorder"

	"github.com/akin-search/akin/e2e/testdata/clients/go/record"
)

// The typed API escapes a percent sign but not a slash in an id.
const oddID = "b c%2F+ü?#&"

// An app is the application: a client and the index that it works with.
type app struct {
	*elasticsearch.TypedClient

	address, index string
	fixture        record.Fixture
}

var ctx = context.Background()

func main() {
	a := app{}
	a.address, a.index, a.fixture = record.Arguments()
	a.TypedClient = record.Must(elasticsearch.NewTypedClient(elasticsearch.Config{Addresses: []string{a.address}}))
	r := &record.Recorder{Describe: describe}
	a.write(r)
	a.search(r)
	a.options(r)
	r.Print()
}

func describe(err error) record.Failure {
	var answered *types.ElasticsearchError
	switch {
	case errors.As(err, &answered):
		return record.Failure{Class: "ElasticsearchError", Status: answered.Status, Body: answered}
	case errors.Is(err, context.DeadlineExceeded):
		return record.Failure{Class: "DeadlineExceeded"}
	default:
		return record.Failure{Class: err.Error()}
	}
}

func (a app) write(r *record.Recorder) {
	r.Step("ping", func() (any, error) { return a.Ping().IsSuccess(ctx) })
	r.Step("info", func() (any, error) { return a.Info().Do(ctx) })
	r.Step("exists before", func() (any, error) { return a.Indices.Exists(a.index).IsSuccess(ctx) })
	r.Step("create index", func() (any, error) {
		return a.Indices.Create(a.index).Raw(bytes.NewReader(a.fixture.Definition)).Do(ctx)
	})
	r.Step("create index again", func() (any, error) { return a.Indices.Create(a.index).Do(ctx) })
	r.Step("exists", func() (any, error) { return a.Indices.Exists(a.index).IsSuccess(ctx) })
	r.Step("mapping", func() (any, error) { return a.Indices.GetMapping().Index(a.index).Do(ctx) })
	r.Step("bulk", func() (any, error) {
		bulk := a.Bulk().Index(a.index)
		for _, d := range a.fixture.Documents {
			if err := bulk.IndexOp(types.IndexOperation{Id_: &d.ID}, d.Fields); err != nil {
				return nil, err
			}
		}
		return bulk.Do(ctx)
	})
	r.Step("bulk with failing items", func() (any, error) {
		bulk := a.Bulk().Index(a.index).Refresh(refresh.True)
		err := errors.Join(
			bulk.CreateOp(types.CreateOperation{Id_: new("car")}, map[string]any{"n": 1}),
			bulk.IndexOp(types.IndexOperation{Id_: new("bad")}, map[string]any{"n": "many"}),
			bulk.IndexOp(types.IndexOperation{Id_: new(oddID)}, map[string]any{"body": "odd", "n": 100}),
			bulk.DeleteOp(types.DeleteOperation{Id_: new("nobody")}),
		)
		if err != nil {
			return nil, err
		}
		return bulk.Do(ctx)
	})
}

// match is a query for words in body.
func match(words string) *types.Query {
	return &types.Query{Match: map[string]types.MatchQuery{"body": {Query: words}}}
}

// byNumber sorts by n.
func byNumber() types.SortCombinations {
	return types.SortOptions{SortOptions: map[string]types.FieldSort{"n": {Order: &sortorder.Asc}}}
}

func (a app) search(r *record.Recorder) {
	r.Step("search car", func() (any, error) {
		return a.Search().Index(a.index).Request(&search.Request{
			Query:          match("car"),
			Size:           new(20),
			Sort:           []types.SortCombinations{"_score", byNumber()},
			Source_:        []string{"title", "n"},
			Highlight:      &types.Highlight{Fields: map[string]types.HighlightField{"body": {}}},
			TrackScores:    new(true),
			TrackTotalHits: true,
			Aggregations:   map[string]types.Aggregations{"n": {Stats: &types.StatsAggregation{Field: new("n")}}},
		}).Do(ctx)
	})
	r.Step("search car by methods", func() (any, error) {
		return a.Search().Index(a.index).Query(match("car")).Sort(byNumber()).Size(20).Do(ctx)
	})
	r.Step("search by parameters", func() (any, error) { return a.Search().Index(a.index).Q("body:lorry").Do(ctx) })
	r.Step("search filler", func() (any, error) {
		var below types.Float64 = 30
		return a.Search().Index(a.index).Request(&search.Request{
			Query: &types.Query{Bool: &types.BoolQuery{
				Must:   []types.Query{*match("filler")},
				Filter: []types.Query{{Range: map[string]types.RangeQuery{"n": types.NumberRangeQuery{Lt: &below}}}},
			}},
			From:           new(5),
			Size:           new(3),
			Sort:           []types.SortCombinations{byNumber()},
			TrackTotalHits: 10,
			Timeout:        new("10s"),
			Aggregations: map[string]types.Aggregations{"tens": {
				Histogram:    &types.HistogramAggregation{Field: new("n"), Interval: new(types.Float64(10))},
				Aggregations: map[string]types.Aggregations{"most": {Max: &types.MaxAggregation{Field: new("n")}}},
			}},
		}).Do(ctx)
	})
	r.Step("scroll of car", a.scroll)
	r.Step("pages of car", a.pages)
	r.Step("msearch of car", func() (any, error) {
		multi := a.Msearch()
		err := errors.Join(
			multi.AddSearch(types.MultisearchHeader{Index: []string{a.index}}, types.MultisearchBody{Query: match("car"), Sort: []types.SortCombinations{byNumber()}}),
			multi.AddSearch(types.MultisearchHeader{Index: []string{"akin-e2e-missing"}}, types.MultisearchBody{}),
		)
		if err != nil {
			return nil, err
		}
		return multi.Do(ctx)
	})
	r.Step("count of car", func() (any, error) { return a.Count().Index(a.index).Query(match("car")).Do(ctx) })
	r.Step("count", func() (any, error) { return a.Count().Index(a.index).Do(ctx) })
	r.Step("async search", func() (any, error) {
		return a.AsyncSearch.Submit().Index(a.index).Query(match("lorry")).WaitForCompletionTimeout("10s").Do(ctx)
	})
}

// scroll returns the ids of all hits, page by page.
func (a app) scroll() (any, error) {
	first, err := a.Search().Index(a.index).Query(match("car")).Sort(byNumber()).Size(2).Scroll("1m").Do(ctx)
	if err != nil {
		return nil, err
	}
	pages, hits, id := [][]types.Hit{}, first.Hits.Hits, *first.ScrollId_
	for len(hits) > 0 {
		pages = append(pages, hits)
		next, err := a.Scroll().ScrollId(id).Scroll("1m").Do(ctx)
		if err != nil {
			return nil, err
		}
		hits, id = next.Hits.Hits, *next.ScrollId_
	}
	cleared, err := a.ClearScroll().ScrollId(id).Do(ctx)
	return []any{pages, cleared}, err
}

// pages reads all documents about cars, two at a time, at one point in time.
func (a app) pages() (any, error) {
	pit, err := a.OpenPointInTime(a.index).KeepAlive("1m").Do(ctx)
	if err != nil {
		return nil, err
	}
	found, id, after := []types.Hit{}, pit.Id, []types.FieldValue(nil)
	for {
		page, err := a.Search().Request(&search.Request{
			Pit:         &types.PointInTimeReference{Id: id, KeepAlive: "1m"},
			Query:       match("car"),
			Size:        new(2),
			Sort:        []types.SortCombinations{byNumber(), "_shard_doc"},
			SearchAfter: after,
		}).Do(ctx)
		if err != nil {
			return nil, err
		}
		hits := page.Hits.Hits
		if len(hits) == 0 {
			break
		}
		found, id, after = append(found, hits...), *page.PitId, hits[len(hits)-1].Sort
	}
	closed, err := a.ClosePointInTime().Id(id).Do(ctx)
	return []any{found, closed}, err
}

func (a app) options(r *record.Recorder) {
	r.Step("missing index", func() (any, error) { return a.Search().Index("akin-e2e-missing").Do(ctx) })
	r.Step("missing index, ignored", func() (any, error) { return a.Search().Index("akin-e2e-missing").IgnoreUnavailable(true).Do(ctx) })
	r.Step("bad value", func() (any, error) {
		return a.Search().Index(a.index).Query(&types.Query{Match: map[string]types.MatchQuery{"n": {Query: "many"}}}).Do(ctx)
	})
	r.Step("bad query", func() (any, error) {
		return a.Search().Index(a.index).Raw(bytes.NewReader([]byte(`{"query":{"no_such_query":{}}}`))).Do(ctx)
	})
	r.Step("headers", func() (any, error) {
		res, err := a.Search().Index(a.index).Size(0).Header("X-Opaque-Id", "from-go").Perform(ctx)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		return map[string]any{"id": res.Header["X-Opaque-Id"], "product": res.Header["X-Elastic-Product"], "type": res.Header["Content-Type"]}, nil
	})
	r.Step("compressed car", a.compressed)
	r.Step("nodes", func() (any, error) { return a.Nodes.Info().Metric("http").Do(ctx) })
	r.Step("sniffed", a.sniffed)
	r.Step("client's timeout", func() (any, error) {
		soon, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		return a.Cluster.Health().WaitForNodes("5").Timeout("5s").Do(soon)
	})
	r.Step("delete index", func() (any, error) { return a.Indices.Delete(a.index).Do(ctx) })
}

// compressed searches and counts with bodies that are compressed both ways.
func (a app) compressed() (any, error) {
	squeezed, err := elasticsearch.NewTypedClient(elasticsearch.Config{Addresses: []string{a.address}, CompressRequestBody: true})
	if err != nil {
		return nil, err
	}
	return squeezed.Search().Index(a.index).Query(match("car")).Sort(byNumber()).Size(20).Do(ctx)
}

// sniffed takes the addresses of the nodes from the cluster.
func (a app) sniffed() (any, error) {
	sniffing, err := elasticsearch.NewTypedClient(elasticsearch.Config{Addresses: []string{a.address}})
	if err != nil {
		return nil, err
	}
	if err := sniffing.DiscoverNodes(); err != nil {
		return nil, err
	}
	return sniffing.Count().Index(a.index).Do(ctx)
}
