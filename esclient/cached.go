package esclient

import (
	"context"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Analyze returns what the cluster makes of a text in a field, by the analyzer
// named or, where that is "", by the field's own search analyzer. index is an
// index expression, "" all indices. The error wraps [ErrNotText] or [ErrMixed]
// where the field is not one to expand.
//
// What is not remembered takes one round trip where index is one index, else
// two.
func (c *Cached) Analyze(ctx context.Context, index, field, analyzer, text string) (*Analysis, error) {
	k := textKey{c.key(index, field), analyzer, text}
	a, ok, err := c.analyses.get(k)
	if !ok {
		own := textKey{k.clone(), strings.Clone(analyzer), strings.Clone(text)}
		a, err = c.analyses.load(ctx, own, func(ctx context.Context) (*Analysis, error) {
			return c.analyze(ctx, own)
		})
	}
	c.tally(&c.analysis, ok, err)
	return a, err
}

// analyze makes the calls for an analysis.
func (c *Cached) analyze(ctx context.Context, k textKey) (*Analysis, error) {
	s, known, err := c.schemas.get(k.fieldKey)
	var guess []token
	var guessed bool
	if !known {
		s, guess, guessed, err = c.guess(ctx, k)
	}
	if err != nil {
		return nil, err
	}
	name, err := s.analyzer(k.analyzer)
	if err != nil {
		return nil, err
	}
	if guessed && (k.analyzer != "" || name == s.indexAnalyzer) {
		return newAnalysis(s, guess), nil
	}
	body := analyzeBody{Analyzer: name, Text: []string{k.text}}
	tokens, err := c.client.analyze(ctx, s.targets[0].index, body)
	if err != nil {
		return nil, err
	}
	return newAnalysis(s, tokens), nil
}

// guess asks for the schema of a field and at the same time for the analysis
// that it most often leads to: in the index as named, by the analyzer named or
// the field's index analyzer, since _analyze knows no other way to name the
// analyzer of a field. It reports whether it has tokens.
func (c *Cached) guess(ctx context.Context, k textKey) (*schema, []token, bool, error) {
	if checkNames(k.index, k.field) != nil || !single(k.index) {
		s, err := c.schema(ctx, k.fieldKey)
		return s, nil, false, err
	}
	body := analyzeBody{Analyzer: k.analyzer, Text: []string{k.text}}
	if k.analyzer == "" {
		body.Field = k.field
	}
	var tokens []token
	var failure error
	done := make(chan struct{})
	go func() {
		defer close(done)
		tokens, failure = guard(ctx, func(ctx context.Context) ([]token, error) {
			return c.client.analyze(ctx, k.index, body)
		})
	}()
	s, err := c.schema(ctx, k.fieldKey)
	// The call is not cut short where its answer is of no use: elastictransport
	// takes a cancelled call for a dead node and leaves the node out for a time.
	<-done
	return s, tokens, failure == nil, err
}

// single reports whether an index expression looks like the name of one index
// or alias, as _analyze wants it.
func single(index string) bool {
	return index != "" && index != "_all" && !strings.ContainsAny(index, "*,:")
}

// schema returns what the indices say of a field, from memory or not.
func (c *Cached) schema(ctx context.Context, k fieldKey) (*schema, error) {
	return c.schemas.load(ctx, k, func(ctx context.Context) (*schema, error) {
		return c.client.schema(ctx, k.index, k.field)
	})
}

// Statistics fills docFreqs[k] with the number of documents that hold terms[k]
// in a field, over all shards of the indices that map the field; where these
// have more than 32 shards, estimated from 32 of them. The two slices have the
// same length. index is an index expression, "" all indices.
//
// What is not remembered takes one round trip, of several calls at once; more
// where there are more than 8 shards, or where Analyze has not been asked about
// the field before.
func (c *Cached) Statistics(
	ctx context.Context, index, field string, terms []string, docFreqs []int64,
) (Statistics, error) {
	k := c.key(index, field)
	st, missing, warm := c.recall(k, terms, docFreqs)
	var err error
	if !warm {
		st, err = c.learn(ctx, k.clone(), terms, docFreqs, missing)
	}
	c.tally(&c.statistics, warm, err)
	return st, err
}

// recall answers from memory. It returns the places of the terms that it lacks
// and reports whether it lacks nothing.
func (c *Cached) recall(k fieldKey, terms []string, docFreqs []int64) (Statistics, []int, bool) {
	record, known := c.fields.GetIfPresent(k)
	var missing []int
	for i, t := range terms {
		df, ok := int64(0), false
		if known {
			df, ok = c.terms.GetIfPresent(termKey{record.id, t})
		}
		if !ok {
			missing = append(missing, i)
		}
		docFreqs[i] = df
	}
	scale, scaled, _ := c.scales.get(k)
	scripts, scripted, _ := c.scripts.get(k.indexKey)
	st := Statistics{DocCount: record.docCount, Scale: scale.value, Scripts: scripts.value}
	return st, missing, known && scaled && scripted && len(missing) == 0
}

// learn asks at the same time for all that recall lacks.
func (c *Cached) learn(
	ctx context.Context, k fieldKey, terms []string, docFreqs []int64, missing []int,
) (Statistics, error) {
	own := make([]string, len(terms)) // for loads that outlast the caller
	for i, t := range terms {
		own[i] = strings.Clone(t)
	}
	var st Statistics
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		n, err := c.count(ctx, k, own, missing)
		if err != nil {
			return err
		}
		st.DocCount = n.docCount
		for i, at := range missing {
			docFreqs[at] = n.docFreqs[i]
		}
		return nil
	})
	group.Go(func() error {
		scale, err := c.scales.load(ctx, k, func(ctx context.Context) (learnt[float64], error) {
			return c.scale(ctx, k, own)
		})
		st.Scale = scale.value
		return err
	})
	group.Go(func() error {
		scripts, err := c.scripts.load(ctx, k.indexKey, func(ctx context.Context) (learnt[bool], error) {
			run, err := c.client.probeScripts(ctx, k.index)
			// A call that tells nothing of scripts is no reason to fail.
			return learnt[bool]{value: run, guessed: err != nil}, nil
		})
		st.Scripts = scripts.value
		return err
	})
	if err := group.Wait(); err != nil {
		return Statistics{}, err
	}
	return st, nil
}

// count returns N and the document frequencies of the terms at the places
// missing.
func (c *Cached) count(ctx context.Context, k fieldKey, terms []string, missing []int) (counted, error) {
	if err, ok := c.failed.GetIfPresent(k); ok {
		return counted{}, err
	}
	names := make([]string, len(missing))
	var joined strings.Builder
	for i, at := range missing {
		names[i] = terms[at]
		joined.WriteString(terms[at])
		joined.WriteByte(0)
	}
	ready := func() (counted, bool, error) {
		n := counted{docFreqs: make([]int64, len(names))}
		var ok bool
		if n.fieldRecord, ok = c.fields.GetIfPresent(k); !ok {
			return n, false, nil
		}
		for i, t := range names {
			if n.docFreqs[i], ok = c.terms.GetIfPresent(termKey{n.id, t}); !ok {
				return n, false, nil
			}
		}
		return n, true, nil
	}
	load := func(ctx context.Context) (counted, error) {
		s, err := c.schema(ctx, k)
		if err != nil {
			return counted{}, err
		}
		n, err := c.client.countTerms(ctx, k.index, k.field, s, names)
		return counted{fieldRecord{docCount: n.docCount}, n.docFreqs}, err
	}
	return c.counts.do(ctx, countKey{k, joined.String()}, ready, load, func(n counted, err error) {
		if err != nil {
			_, _ = c.failed.Set(k, err)
			return
		}
		c.keep(k, names, n)
	})
}

// keep remembers what a load of terms gave. A record that is there stays, with
// its id and its N, until its time is over.
func (c *Cached) keep(k fieldKey, terms []string, n counted) {
	n.id = c.fieldIDs.Add(1)
	record, _ := c.fields.SetIfAbsent(k, n.fieldRecord)
	for i, t := range terms {
		c.terms.Set(termKey{record.id, t}, n.docFreqs[i])
	}
}

// scale learns the scale of the field's scores, by a probe or else from what
// the cluster runs.
func (c *Cached) scale(ctx context.Context, k fieldKey, terms []string) (learnt[float64], error) {
	s, err := c.schema(ctx, k)
	if err != nil {
		return learnt[float64]{}, err
	}
	if s.similarity != BM25 {
		return learnt[float64]{}, nil
	}
	if scale, err := c.client.probeScale(ctx, k.index, k.field, s, terms); err == nil && scale > 0 {
		return learnt[float64]{value: scale}, nil
	}
	guess := learnt[float64]{guessed: true}
	if info, err := c.infos.load(ctx, struct{}{}, c.client.Info); err == nil {
		guess.value = s.scaleOf(info)
	}
	return guess, nil
}
