package esclient

import (
	"context"
	"slices"
	"strings"
	"unique"

	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/cache"
)

// FieldStatistics are statistics of a field for scoring.
type FieldStatistics struct {
	// DocCount is N, the number of documents with the field; of nested documents
	// if the field is in one.
	DocCount int64
	// Scale is the constant by which the engine's BM25 multiplies idf·tf/(tf+K):
	// k1+1 in Elasticsearch and OpenSearch 1 and 2, 1 in OpenSearch 3; 0 if the
	// field is not scored by BM25 or the scale is unknown.
	Scale float64
	// Uncounted says that the cluster answers no call that counts terms: DocCount
	// and the document frequencies are 0.
	Uncounted bool
	// Scripts reports whether the cluster runs inline scripts in queries.
	Scripts bool
}

// Statistics sets docFreqs[k] to the number of documents with terms[k] in a
// field, over all shards of the indices with the field; of more than 32 shards,
// it asks 32 and extrapolates. The slices have the same length.
//
// What is not cached takes one round trip of several concurrent calls; more for
// over 8 shards, or if Analyze was not asked about the field before.
func (c *Cached) Statistics(ctx context.Context, indices Indices, field string, terms []string, docFreqs []int64) (FieldStatistics, error) {
	k := c.key(indices, field)
	st, warm := c.recallTerms(k, terms, docFreqs)
	var err error
	if !warm {
		st, err = c.learn(ctx, k.clone(), terms, docFreqs)
	}
	c.tally(c.statistics, indices, warm, err)
	return st, err
}

// recallTerms answers from the cache, and reports whether nothing is missing.
func (c *Cached) recallTerms(k key, terms []string, docFreqs []int64) (FieldStatistics, bool) {
	record, missing := c.recallFreqs(k, terms, docFreqs)
	scale, scaled, unscaled := cache.Peek[learned[float64]](c.statistics, k.as(scaleOfField))
	scripts, scripted, unknown := cache.Peek[learned[bool]](c.statistics, k.ofIndices(scriptsOfIndices))
	st := FieldStatistics{DocCount: record.docCount, Uncounted: record.uncounted, Scale: scale.value, Scripts: scripts.value}
	return st, record.id > 0 && scaled && unscaled == nil && scripted && unknown == nil && len(missing) == 0
}

// recallFreqs returns the cached record of a field, with id 0 if there is none,
// and the places of terms whose document frequencies are missing.
func (c *Cached) recallFreqs(k key, terms []string, docFreqs []int64) (record fieldRecord, missing []int) {
	record, known, _ := cache.Peek[fieldRecord](c.statistics, k.as(recordOfField))
	for i, t := range terms {
		df, ok := int64(0), false
		if known {
			df, ok, _ = cache.Peek[int64](c.terms, termKey{record.id, t})
		}
		if !ok && !record.uncounted {
			missing = append(missing, i)
		}
		docFreqs[i] = df
	}
	return record, missing
}

// learn asks concurrently for all that recallTerms lacks.
func (c *Cached) learn(ctx context.Context, k key, terms []string, docFreqs []int64) (st FieldStatistics, err error) {
	own := make([]string, len(terms)) // copies, for loads that outlast the caller
	for i, t := range terms {
		own[i] = strings.Clone(t)
	}
	start := func(names []string) *cache.Flight {
		asked := k.as(countOfTerms)
		for _, name := range slices.Backward(names) {
			asked.terms = unique.Make(termList{name, asked.terms})
		}
		return cache.Start(ctx, c.statistics, asked, 0, func(ctx context.Context) (termCount, error) { return c.count(ctx, k, names) })
	}
	record, missing := c.recallFreqs(k, own, docFreqs)
	names := make([]string, len(missing))
	for i, at := range missing {
		names[i] = own[at]
	}
	var counting *cache.Flight
	_, _, failed := cache.Peek[any](c.statistics, k.as(failureOfField))
	if failed == nil {
		counting = start(names)
	}
	scaling := cache.Start(ctx, c.statistics, k.as(scaleOfField), c.ttl, func(ctx context.Context) (learned[float64], error) {
		return c.scale(ctx, k, own)
	})
	scripting := cache.Start(ctx, c.statistics, k.ofIndices(scriptsOfIndices), c.ttl, func(ctx context.Context) (learned[bool], error) {
		run, err := c.client.probeScripts(ctx, k.Indices)
		return orLast(c.statistics, k.ofIndices(lastScriptsOfIndices), run, err)
	})
	if failed != nil {
		return st, failed
	}
	n, err := cache.Wait[termCount](ctx, counting)
	if err != nil {
		return st, err
	}
	if n.record != record.id && len(missing) < len(own) { // what was cached is of other documents
		if n, err = cache.Wait[termCount](ctx, start(own)); err != nil {
			return st, err
		}
		copy(docFreqs, n.docFreqs)
	} else {
		for i, at := range missing {
			docFreqs[at] = n.docFreqs[i]
		}
	}
	scale, err := cache.Wait[learned[float64]](ctx, scaling)
	if err != nil {
		return st, err
	}
	scripts, err := cache.Wait[learned[bool]](ctx, scripting)
	return FieldStatistics{DocCount: n.docCount, Uncounted: n.uncounted, Scale: scale.value, Scripts: scripts.value}, err
}

// count returns N and the document frequencies of terms, and caches them.
func (c *Cached) count(ctx context.Context, k key, terms []string) (n termCount, err error) {
	n.docFreqs = make([]int64, len(terms))
	if record, missing := c.recallFreqs(k, terms, n.docFreqs); record.id > 0 && len(missing) == 0 { // cached meanwhile
		return n.of(record), nil
	}
	err = c.client.guard.Do(asking, func() error {
		s, err := c.schema(ctx, k)
		if err != nil {
			return err
		}
		n, err = c.about(k).count(ctx, s, terms)
		if lacksCounts(err) {
			n, err = termCount{docFreqs: make([]int64, len(terms)), uncounted: true}, nil
		}
		return err
	})
	if err != nil {
		c.statistics.Put(k.as(failureOfField), nil, err, failureTime)
		return termCount{}, err
	}
	ttl := c.ttl
	if n.uncounted {
		ttl = min(guessTime, ttl)
	}
	fresh := fieldRecord{c.fieldIDs.Add(1), n.docCount, n.uncounted}
	record := cache.PutIfAbsent(c.statistics, k.as(recordOfField), fresh, ttl)
	if record.isOutdated(n.docCount) {
		record = fresh
		c.statistics.Put(k.as(recordOfField), record, nil, ttl)
	}
	if !record.uncounted {
		for i, t := range terms {
			c.terms.Put(termKey{record.id, t}, n.docFreqs[i], nil, c.ttl)
		}
	}
	return n.of(record), nil
}

// scale learns the scale of the field's scores from a probe, or else from the
// engine's version.
func (c *Cached) scale(ctx context.Context, k key, terms []string) (learned[float64], error) {
	s, err := c.schema(ctx, k)
	if err != nil {
		return learned[float64]{}, err
	}
	if s.Similarity != mapping.BM25 {
		return learned[float64]{}, nil
	}
	scale, unprobed := c.about(k).probeScale(ctx, s, terms)
	if unprobed == nil && scale > 0 || unprobed != nil && !isNo(unprobed) {
		if l, err := orLast(c.statistics, k.as(lastScaleOfField), scale, unprobed); err == nil {
			return l, nil
		}
	}
	info, unknown := c.info(ctx)
	if unknown == nil {
		scale = scaleOf(s.FieldScoring, info)
	}
	for _, err := range []error{unprobed, unknown} {
		if scale == 0 && err != nil && !isNo(err) {
			return learned[float64]{}, err
		}
	}
	return learned[float64]{value: scale, guessed: true}, nil
}

// orLast caches and returns v. If err is not nil, it returns the last value as
// a guess, or else the error.
func orLast[V any](of *cache.Cache[key], last key, v V, err error) (learned[V], error) {
	if err == nil {
		of.Put(last, v, nil, lastTime)
		return learned[V]{value: v}, nil
	}
	if v, known, _ := cache.Peek[V](of, last); known {
		return learned[V]{value: v, guessed: true}, nil
	}
	return learned[V]{}, err
}
