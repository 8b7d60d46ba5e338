package esclient

import (
	"context"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/esclient/memory"
)

// Statistics fills docFreqs[k] with the number of documents that hold terms[k]
// in a field, over all shards of the indices that map the field; where these
// have more than 32 shards, estimated from 32 of them. The two slices have the
// same length.
//
// What is not remembered takes one round trip, of several calls at once; more
// where there are more than 8 shards, or where Analyze has not been asked about
// the field before.
func (c *Cached) Statistics(
	ctx context.Context, indices Indices, field string, terms []string, docFreqs []int64,
) (Statistics, error) {
	k := c.key(indices, field)
	st, missing, warm := c.recallTerms(k, terms, docFreqs)
	var err error
	if !warm {
		st, err = c.learn(ctx, k.clone(), terms, docFreqs, missing)
	}
	c.tally(&c.statistics.Counters, warm, err)
	return st, err
}

// recallTerms answers from memory. It returns the places of the terms that it lacks
// and reports whether it lacks nothing.
func (c *Cached) recallTerms(k key, terms []string, docFreqs []int64) (Statistics, []int, bool) {
	record, known, _ := c.statistics.fields.Get(k)
	var missing []int
	for i, t := range terms {
		df, ok := int64(0), false
		if known {
			df, ok = c.statistics.terms.GetIfPresent(termKey{record.id, t})
		}
		if !ok {
			missing = append(missing, i)
		}
		docFreqs[i] = df
	}
	scale, scaled, _ := c.statistics.scales.Get(k)
	scripts, scripted, _ := c.statistics.scripts.Get(k.ofIndices())
	st := Statistics{DocCount: record.docCount, Scale: scale.value, Scripts: scripts.value}
	return st, missing, known && scaled && scripted && len(missing) == 0
}

// learn asks at the same time for all that recallTerms lacks.
func (c *Cached) learn(
	ctx context.Context, k key, terms []string, docFreqs []int64, missing []int,
) (Statistics, error) {
	own := make([]string, len(terms)) // for loads that outlast the caller
	for i, t := range terms {
		own[i] = strings.Clone(t)
	}
	var st Statistics
	group, ctx := errgroup.WithContext(ctx)
	group.Go(c.client.guarded(func() error {
		n, err := c.count(ctx, k, own, missing)
		if err != nil {
			return err
		}
		st.DocCount = n.docCount
		for i, at := range missing {
			docFreqs[at] = n.docFreqs[i]
		}
		return nil
	}))
	group.Go(c.client.guarded(func() error {
		scale, err := c.statistics.scales.Load(ctx, k, func(ctx context.Context) (learnt[float64], error) {
			return c.scale(ctx, k, own)
		})
		st.Scale = scale.value
		return err
	}))
	group.Go(c.client.guarded(func() error {
		scripts, err := c.statistics.scripts.Load(ctx, k.ofIndices(), func(ctx context.Context) (learnt[bool], error) {
			run, err := c.client.probeScripts(ctx, k.Indices)
			// A call that tells nothing of scripts is no reason to fail.
			return learnt[bool]{value: run, guessed: err != nil}, nil
		})
		st.Scripts = scripts.value
		return err
	}))
	if err := group.Wait(); err != nil {
		return Statistics{}, err
	}
	return st, nil
}

// count returns N and the document frequencies of the terms at the places
// missing.
func (c *Cached) count(ctx context.Context, k key, terms []string, missing []int) (termCount, error) {
	if _, _, err := c.statistics.failed.Get(k); err != nil {
		return termCount{}, err
	}
	names := make([]string, len(missing))
	var joined strings.Builder
	for i, at := range missing {
		names[i] = terms[at]
		joined.WriteString(terms[at])
		joined.WriteByte(0)
	}
	ready := func() (n termCount, ok bool, err error) {
		record, ok, _ := c.statistics.fields.Get(k)
		n = termCount{record.docCount, make([]int64, len(names))}
		for i := 0; ok && i < len(names); i++ {
			n.docFreqs[i], ok = c.statistics.terms.GetIfPresent(termKey{record.id, names[i]})
		}
		return n, ok, nil
	}
	load := func(ctx context.Context) (termCount, error) {
		s, err := c.schema(ctx, k)
		if err != nil {
			return termCount{}, err
		}
		return c.about(k).count(ctx, s, names)
	}
	asked := k
	asked.text = joined.String()
	return memory.Wait[termCount](ctx, memory.Start(ctx, &c.statistics.counts, asked, ready, load, func(n termCount, err error) {
		if err != nil {
			c.statistics.failed.Put(k, struct{}{}, err)
			return
		}
		c.keep(k, names, n)
	}))
}

// keep remembers what a load of terms gave. A record that is there stays, with
// its id and its N, until its time is over.
func (c *Cached) keep(k key, terms []string, n termCount) {
	record := c.statistics.fields.PutIfAbsent(k, fieldRecord{c.statistics.fieldIDs.Add(1), n.docCount})
	for i, t := range terms {
		c.statistics.terms.Set(termKey{record.id, t}, n.docFreqs[i])
	}
}

// scale learns the scale of the field's scores, by a probe or else from what
// the cluster runs.
func (c *Cached) scale(ctx context.Context, k key, terms []string) (learnt[float64], error) {
	s, err := c.schema(ctx, k)
	if err != nil {
		return learnt[float64]{}, err
	}
	if s.Similarity != mapping.BM25 {
		return learnt[float64]{}, nil
	}
	if scale, err := c.about(k).probeScale(ctx, s, terms); err == nil && scale > 0 {
		return learnt[float64]{value: scale}, nil
	}
	guess := learnt[float64]{guessed: true}
	if info, err := c.info(ctx); err == nil {
		guess.value = scaleOf(s.Scoring, info)
	}
	return guess, nil
}
