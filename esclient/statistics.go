package esclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/esclient/mapping"
)

// Statistics are what the cluster knows of a field for scoring.
type Statistics struct {
	// DocCount is N, the number of documents that have the field; of nested
	// documents where the field is in one.
	DocCount int64
	// Scale is the constant that the engine's BM25 multiplies idf·tf/(tf+K)
	// by: k1+1 in Elasticsearch and OpenSearch 1 and 2, 1 in OpenSearch 3.
	// 0 says that the field is not scored by BM25 or that the scale could not
	// be learnt.
	Scale float64
	// Scripts reports whether the cluster runs inline scripts in queries.
	Scripts bool
}

const (
	// maxTermBytes is Lucene's bound on an indexed term.
	maxTermBytes = 32766
	// maxSampledShards is the number of shards whose statistics are added up;
	// of more, so many are asked and their sums scaled up.
	maxSampledShards = 32
	// shardCalls is the number of shards asked at once.
	shardCalls = 8
	// termChunk is the number of terms in one call.
	termChunk = 1000
	// escapedByte is the most bytes that one of a string takes in JSON, as \u001f
	// does.
	escapedByte = 6
)

// A termCount holds the statistics of terms in a field, over all shards.
type termCount struct {
	docCount int64
	// docFreqs has one entry for each term that was asked for.
	docFreqs []int64
}

// countTerms returns the statistics of terms in the field of s.
//
// It asks for the term vectors of an artificial document that holds the terms,
// shard by shard: the engine's own numbers, read without a search. Where the
// cluster refuses that (nested fields are not seen, a parent field may not take
// the terms, routing may be required) a search counts.
func (c *Client) countTerms(
	ctx context.Context, indices Indices, field string, s *mapping.Schema, terms []string,
) (termCount, error) {
	count := termCount{docFreqs: make([]int64, len(terms))}
	// What cannot be in an index has the document frequency 0, and would make
	// the cluster refuse the call.
	asked, at := make([]string, 0, len(terms)), make([]int, 0, len(terms))
	for i, t := range terms {
		if len(t) <= maxTermBytes && utf8.ValidString(t) {
			asked, at = append(asked, t), append(at, i)
		}
	}
	for from := 0; from == 0 || from < len(asked); from += termChunk {
		chunk := asked[from:min(from+termChunk, len(asked))]
		part, err := c.countChunk(ctx, indices, field, s, chunk)
		if err != nil {
			return termCount{}, err
		}
		count.docCount = part.docCount
		for i, df := range part.docFreqs {
			count.docFreqs[at[from+i]] = df
		}
	}
	return count, nil
}

func (c *Client) countChunk(
	ctx context.Context, indices Indices, field string, s *mapping.Schema, terms []string,
) (termCount, error) {
	if s.Nested == "" && !s.Unvectored.Load() {
		count, err := c.countByVectors(ctx, field, s, terms)
		if err == nil || !refused(err) {
			return count, err
		}
		s.Unvectored.Store(true)
	}
	return c.countBySearch(ctx, indices, field, s, terms)
}

// refused reports whether the cluster answered a call, and not to say that it
// is overloaded: asking in another way may do.
func refused(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Status {
	case http.StatusUnauthorized, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false
	default:
		return true
	}
}

// A shard is a shard of a concrete index.
type shard struct {
	target *mapping.Target
	number int
}

// sampleShards returns the shards to ask, and the number of shards that each
// stands for: all shards, or limit of them, spread evenly.
func sampleShards(s *mapping.Schema, limit int) ([]shard, float64) {
	all := make([]shard, 0, s.Shards)
	for i := range s.Targets {
		for n := range s.Targets[i].Shards {
			all = append(all, shard{&s.Targets[i], n})
		}
	}
	if len(all) <= limit {
		return all, 1
	}
	some := make([]shard, limit)
	for i := range some {
		some[i] = all[i*len(all)/limit]
	}
	return some, float64(len(all)) / float64(limit)
}

// countByVectors adds up the statistics of the shards.
func (c *Client) countByVectors(ctx context.Context, field string, s *mapping.Schema, terms []string) (termCount, error) {
	shards, each := sampleShards(s, maxSampledShards)
	counts := make([]termCount, len(shards))
	var group errgroup.Group // which cancels no call, for the reason in Cached.guess
	group.SetLimit(shardCalls)
	for i, sh := range shards {
		group.Go(c.guarded(func() error {
			var err error
			counts[i], err = c.countShard(ctx, field, sh, terms)
			return err
		}))
	}
	if err := group.Wait(); err != nil {
		return termCount{}, err
	}
	sum := termCount{docFreqs: make([]int64, len(terms))}
	for _, n := range counts {
		sum.docCount += n.docCount
		for i, df := range n.docFreqs {
			sum.docFreqs[i] += df
		}
	}
	if each > 1 {
		sum.docCount = int64(math.Round(float64(sum.docCount) * each))
		for i, df := range sum.docFreqs {
			sum.docFreqs[i] = int64(math.Round(float64(df) * each))
		}
	}
	return sum, nil
}

// countShard returns the statistics of one shard.
func (c *Client) countShard(ctx context.Context, field string, sh shard, terms []string) (termCount, error) {
	type vectorsBody struct {
		Doc              map[string][]string `json:"doc"`
		Fields           []string            `json:"fields"`
		PerFieldAnalyzer map[string]string   `json:"per_field_analyzer"`
		TermStatistics   bool                `json:"term_statistics"`
		FieldStatistics  bool                `json:"field_statistics"`
		Positions        bool                `json:"positions"`
		Offsets          bool                `json:"offsets"`
		Payloads         bool                `json:"payloads"`
	}
	var answer struct {
		Vectors map[string]struct {
			Field struct {
				DocCount int64 `json:"doc_count"`
			} `json:"field_statistics"`
			Terms map[string]struct {
				DocFreq int64 `json:"doc_freq"`
			} `json:"terms"`
		} `json:"term_vectors"`
	}
	if sh.target.AliasOf != "" {
		field = sh.target.AliasOf // _termvectors does not know aliases
	}
	document := terms
	if len(document) == 0 {
		document = []string{"-"} // without any term the answer leaves the field out
	}
	const filter = "&filter_path=term_vectors.*.field_statistics.doc_count,term_vectors.*.terms.*.doc_freq"
	// As a search sees it: engines give numbers as ids to documents that are not
	// stored, and where one with such an id has just been written they would
	// refresh the index to see that.
	const asSearched = "&realtime=false"
	path := indexPath(sh.target.Index, "/_termvectors?preference=_shards:"+strconv.Itoa(sh.number)+asSearched+filter)
	body := vectorsBody{
		Doc:              map[string][]string{sh.target.Source: document},
		Fields:           []string{field},
		PerFieldAnalyzer: map[string]string{field: "keyword"},
		TermStatistics:   true,
		FieldStatistics:  true,
	}
	r := request{method: http.MethodPost, path: path, body: body, limit: smallAnswer}
	for _, t := range terms {
		r.limit += escapedByte * int64(len(t)) // the answer has each of them
	}
	if err := c.call(ctx, r, &answer); err != nil {
		return termCount{}, err
	}
	vector := answer.Vectors[field]
	count := termCount{docCount: vector.Field.DocCount, docFreqs: make([]int64, len(terms))}
	for i, t := range terms {
		count.docFreqs[i] = vector.Terms[t].DocFreq // a term that no document has is left out
	}
	return count, nil
}

// object is a JSON object of a request.
type object = map[string]any

// termQuery returns the query for one term of a field.
func termQuery(field, term string) object {
	return object{"term": object{field: object{"value": term}}}
}

// inNested returns query as it is to be searched for the field of s. An index
// that lacks the nested object matches nothing.
func inNested(s *mapping.Schema, query object) object {
	if s.Nested == "" {
		return query
	}
	return object{"nested": object{"path": s.Nested, "query": query, "ignore_unmapped": true}}
}

// aggregateNested returns an aggregation that counts the documents that score:
// the nested ones where the field of s is in such.
func aggregateNested(s *mapping.Schema, aggregations object) object {
	if s.Nested == "" {
		return aggregations
	}
	return object{"in": object{"nested": object{"path": s.Nested}, "aggs": aggregations}}
}

// countBySearch counts with one search. Its query holds back all documents
// without any of the terms, so that rare terms are counted fast; N is counted
// apart from it.
func (c *Client) countBySearch(
	ctx context.Context, indices Indices, field string, s *mapping.Schema, terms []string,
) (termCount, error) {
	filters := make([]object, len(terms))
	for i, t := range terms {
		filters[i] = termQuery(field, t)
	}
	aggregations := object{
		"all": object{"global": object{}, "aggs": aggregateNested(s, object{
			"field": object{"filter": object{"exists": object{"field": field}}},
		})},
	}
	query := object{"match_none": object{}}
	if len(terms) > 0 {
		query = inNested(s, object{"terms": object{field: terms}})
		matching := aggregateNested(s, object{"terms": object{"filters": object{"filters": filters}}})
		maps.Copy(aggregations, matching)
	}
	var answer countAnswer
	r := request{
		method: http.MethodPost,
		path:   indices.path("/_search", url.Values{"filter_path": {"_shards.failed,aggregations"}}),
		body:   object{"size": 0, "track_total_hits": false, "query": query, "aggs": aggregations},
		limit:  smallAnswer,
	}
	if err := c.call(ctx, r, &answer); err != nil {
		return termCount{}, err
	}
	count, err := answer.count(s.Nested != "", len(terms))
	if err != nil {
		return termCount{}, fmt.Errorf("count terms of %q: %w", field, err)
	}
	return count, nil
}

// A countAnswer is the answer to the search of countBySearch. Nested
// aggregations stand in In.
type countAnswer struct {
	Shards struct {
		Failed int `json:"failed"`
	} `json:"_shards"`
	Aggregations struct {
		Terms buckets `json:"terms"`
		In    struct {
			Terms buckets `json:"terms"`
		} `json:"in"`
		All struct {
			Field documents `json:"field"`
			In    struct {
				Field documents `json:"field"`
			} `json:"in"`
		} `json:"all"`
	} `json:"aggregations"`
}

type documents struct {
	DocCount int64 `json:"doc_count"`
}

type buckets struct {
	Buckets []documents `json:"buckets"`
}

// count returns the counts in the answer, for n terms.
func (a *countAnswer) count(nested bool, n int) (termCount, error) {
	if a.Shards.Failed > 0 {
		return termCount{}, fmt.Errorf("%d shards failed", a.Shards.Failed)
	}
	list, all := a.Aggregations.Terms.Buckets, a.Aggregations.All.Field
	if nested {
		list, all = a.Aggregations.In.Terms.Buckets, a.Aggregations.All.In.Field
	}
	if len(list) != n {
		return termCount{}, fmt.Errorf("%d counts for %d terms", len(list), n)
	}
	count := termCount{docCount: all.DocCount, docFreqs: make([]int64, n)}
	for i, b := range list {
		count.docFreqs[i] = b.DocCount
	}
	return count, nil
}
