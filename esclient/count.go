package esclient

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/recovery"
)

const (
	// maxTermBytes is Lucene's limit of an indexed term.
	maxTermBytes = 32766
	// maxSampledShards limits the shards whose statistics are added up; if there
	// are more, so many are asked and their sums scaled up.
	maxSampledShards = 32
	shardCalls       = 8    // asked concurrently
	termChunk        = 1000 // terms in one call
	escapedByte      = 6    // of JSON for one byte, as in \u001f
)

// A termCount has the statistics of a field and of some terms.
type termCount struct {
	docCount  int64
	docFreqs  []int64
	uncounted bool   // see [FieldStatistics]
	record    uint64 // the id of the record that has it, 0 before it is cached
}

// of returns the count with the N of a record, under which its frequencies are
// cached.
func (n termCount) of(r fieldRecord) termCount {
	return termCount{docCount: r.docCount, docFreqs: n.docFreqs, uncounted: r.uncounted, record: r.id}
}

// DocFreqs returns the number of documents with each of the terms in the field,
// over all shards, and the number with the field.
func (c *Client) DocFreqs(ctx context.Context, index, field string, terms []string) ([]int64, int64, error) {
	q := c.about(index, field)
	s, err := q.schema(ctx)
	if err != nil {
		return nil, 0, err
	}
	count, err := q.count(ctx, s, terms)
	return count.docFreqs, count.docCount, err
}

// count returns the statistics of terms in the field of s.
//
// It asks, shard by shard, for the term vectors of a made-up document of the
// terms: the engine's own numbers, without a search. For nested fields, and if
// the cluster refuses that (routing may be required), it counts by a search.
func (q question) count(ctx context.Context, s *mapping.Schema, terms []string) (termCount, error) {
	count := termCount{docFreqs: make([]int64, len(terms))}
	// The cluster refuses terms that no index can have: their frequency is 0.
	asked, at := make([]string, 0, len(terms)), make([]int, 0, len(terms))
	for i, t := range terms {
		if len(t) <= maxTermBytes && utf8.ValidString(t) {
			asked, at = append(asked, t), append(at, i)
		}
	}
	for from := 0; from == 0 || from < len(asked); from += termChunk {
		part, err := q.countChunk(ctx, s, asked[from:min(from+termChunk, len(asked))])
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

func (q question) countChunk(ctx context.Context, s *mapping.Schema, terms []string) (termCount, error) {
	if s.Nested == "" && !s.Unvectored.Load() {
		count, err := q.countByVectors(ctx, s, terms)
		if err == nil || !refused(err) {
			return count, err
		}
		s.Unvectored.Store(true)
	}
	return q.countBySearch(ctx, s, terms)
}

// A shard is a shard of a concrete index.
type shard struct {
	target *mapping.Target
	number int
}

// sampleShards returns all shards, or limit of them spread evenly, and the
// number of shards that each stands for.
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
func (q question) countByVectors(ctx context.Context, s *mapping.Schema, terms []string) (termCount, error) {
	shards, each := sampleShards(s, maxSampledShards)
	counts := make([]termCount, len(shards))
	if err := recovery.InParallel(len(shards), shardCalls, func(i int) (err error) {
		counts[i], err = q.countShard(ctx, shards[i], terms)
		return err
	}); err != nil {
		return termCount{}, err
	}
	sum := termCount{docFreqs: make([]int64, len(terms))}
	for _, n := range counts {
		sum.docCount += n.docCount
		for i, df := range n.docFreqs {
			sum.docFreqs[i] += df
		}
	}
	scaled := func(n int64) int64 { return int64(math.Round(float64(n) * each)) }
	sum.docCount = scaled(sum.docCount)
	for i, df := range sum.docFreqs {
		sum.docFreqs[i] = scaled(df)
	}
	return sum, nil
}

// countShard returns the statistics of one shard.
func (q question) countShard(ctx context.Context, sh shard, terms []string) (termCount, error) {
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
	field := cmp.Or(sh.target.AliasOf, q.field) // _termvectors does not know aliases
	document := terms
	if len(document) == 0 {
		document = []string{"-"} // without terms the answer omits the field
	}
	// Engines give documents that are not stored an id; if a document with that id
	// was just written, they would refresh the index.
	asSearched := new(false)
	r := Call{Limit: smallAnswer, Request: esapi.TermvectorsRequest{
		Index: Name(sh.target.Index), Preference: "_shards:" + strconv.Itoa(sh.number), Realtime: asSearched,
		FilterPath: []string{"term_vectors.*.field_statistics.doc_count", "term_vectors.*.terms.*.doc_freq"},
		Body: JSON(Object{
			"doc": Object{sh.target.Source: document}, "fields": []string{field}, "per_field_analyzer": Object{field: "keyword"},
			"term_statistics": true, "field_statistics": true, "positions": false, "offsets": false, "payloads": false,
		}),
	}}
	for _, t := range terms {
		r.Limit += escapedByte * int64(len(t)) // the answer repeats each term
	}
	if err := q.client.Do(ctx, r, &answer); err != nil {
		return termCount{}, err
	}
	vector := answer.Vectors[field]
	count := termCount{docCount: vector.Field.DocCount, docFreqs: make([]int64, len(terms))}
	for i, t := range terms {
		count.docFreqs[i] = vector.Terms[t].DocFreq // the answer omits terms that no document has
	}
	return count, nil
}

// inNested returns query, wrapped for the nested field of s if it has one.
func inNested(s *mapping.Schema, query Object) Object {
	if s.Nested == "" {
		return query
	}
	return Object{"nested": Object{"path": s.Nested, "query": query, "ignore_unmapped": true}}
}

// A termAggregations has the counts of a search, In those of nested documents.
type termAggregations struct {
	Terms struct {
		Buckets []documents `json:"buckets"`
	} `json:"terms"`
	Field documents         `json:"field"`
	All   *termAggregations `json:"all"`
	In    *termAggregations `json:"in"`
}

// countBySearch counts by one search for documents with one of the terms, which
// is fast for rare ones; N is counted separately.
func (q question) countBySearch(ctx context.Context, s *mapping.Schema, terms []string) (termCount, error) {
	inNestedToo := func(aggregations Object) Object {
		if s.Nested == "" {
			return aggregations
		}
		return Object{"in": Object{"nested": Object{"path": s.Nested}, "aggs": aggregations}}
	}
	filters := make([]Object, len(terms))
	for i, t := range terms {
		filters[i] = TermQuery(q.field, t)
	}
	aggregations := Object{"all": Object{
		"global": Object{}, "aggs": inNestedToo(Object{"field": Object{"filter": ExistsQuery(q.field)}}),
	}}
	query := Object{"match_none": Object{}}
	if len(terms) > 0 {
		query = inNested(s, Object{"terms": Object{q.field: terms}})
		maps.Copy(aggregations, inNestedToo(Object{"terms": Object{"filters": Object{"filters": filters}}}))
	}
	answer, err := search[none, termAggregations](ctx, q.client, q.indices, "_shards.failed,aggregations",
		Object{"size": 0, "query": query, "aggs": aggregations})
	if err != nil {
		return termCount{}, fmt.Errorf("count terms of %q: %w", q.field, err)
	}
	here, all := &answer.Aggregations, answer.Aggregations.All
	if s.Nested != "" {
		here = cmp.Or(here.In, &termAggregations{})
		all = cmp.Or(all, &termAggregations{}).In
	}
	if len(here.Terms.Buckets) != len(terms) {
		return termCount{}, fmt.Errorf("count terms of %q: %d counts for %d terms", q.field, len(here.Terms.Buckets), len(terms))
	}
	count := termCount{docCount: cmp.Or(all, &termAggregations{}).Field.DocCount, docFreqs: make([]int64, len(terms))}
	for i, b := range here.Terms.Buckets {
		count.docFreqs[i] = b.DocCount
	}
	return count, nil
}
