package esclient

import (
	"context"

	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/cache"
)

// Analyze returns the analysis of a text in a field, by the named analyzer or,
// if that is "", by the field's search analyzer. The error wraps
// [mapping.ErrNotText], [mapping.ErrMixed] or [ErrRemote] if the field cannot
// be expanded.
//
// What is not cached takes one round trip if indices is one index, else two;
// one more for an alias of a field. A text is analyzed once for all fields of
// the indices with the same analyzer.
func (c *Cached) Analyze(ctx context.Context, indices Indices, field, analyzer, text string) (*Analysis, error) {
	k := c.key(indices, field).as(analysisOfText)
	k.analyzer, k.text = analyzer, text
	a, warm, err := c.recallAnalysis(k)
	if !warm {
		own := k.clone()
		a, err = cache.Get(ctx, c.analysis, own, 0, func(ctx context.Context) (*Analysis, error) { return c.analyze(ctx, own) })
	}
	c.tally(c.analysis, indices, warm, err)
	return a, err
}

// recallAnalysis answers from the cache, if it can.
func (c *Cached) recallAnalysis(k key) (*Analysis, bool, error) {
	s, ok, err := cache.Peek[*mapping.Schema](c.analysis, k.ofField())
	if !ok || err != nil {
		return nil, ok, err
	}
	name, err := s.Analyzer(k.analyzer)
	if err != nil {
		return nil, true, err
	}
	terms, ok, err := cache.Peek[*Analysis](c.analysis, k.ofText(s, name))
	if !ok || err != nil {
		return nil, ok, err
	}
	return terms.in(s, k.analyzer), true, nil
}

// analyze makes the calls for an analysis, and caches its parts.
func (c *Cached) analyze(ctx context.Context, k key) (*Analysis, error) {
	var guess *cache.Flight
	if _, known, _ := cache.Peek[*mapping.Schema](c.analysis, k.ofField()); !known {
		guess = c.guess(ctx, k)
	}
	s, err := c.schema(ctx, k)
	if err != nil {
		return nil, err
	}
	name, err := s.Analyzer(k.analyzer)
	if err != nil {
		return nil, err
	}
	terms, err := cache.Get(ctx, c.analysis, k.ofText(s, name), c.ttl, func(ctx context.Context) (*Analysis, error) {
		if terms, ok := c.guessRight(ctx, guess, k, name); ok {
			return terms, nil
		}
		return c.client.analyzeText(ctx, s.Targets[0].Index, analyzeBody{Analyzer: name, Text: []string{k.text}})
	})
	if err != nil {
		return nil, err
	}
	return terms.in(s, k.analyzer), nil
}

// guessed is a text analyzed before the schema of its field is known.
type guessed struct {
	// field is the field whose index analyzer was used, if none was named.
	field string
	terms *Analysis
}

// guess starts the most likely analysis for a field without a known schema: in
// the index as named, by the analyzer named or the field's index analyzer, the
// only one that _analyze uses for a field. The first field that asks for a text
// guesses for all. It returns nil if it cannot guess.
func (c *Cached) guess(ctx context.Context, k key) *cache.Flight {
	if c.about(k).check() != nil || !k.single() {
		return nil
	}
	body := analyzeBody{Analyzer: k.analyzer, Text: []string{k.text}}
	if k.analyzer == "" {
		body.Field = k.field
	}
	asked := k.as(guessOfText)
	asked.field = ""
	return cache.Start(ctx, c.analysis, asked, 0, func(ctx context.Context) (guessed, error) {
		terms, err := c.client.analyzeText(ctx, k.Expression, body)
		return guessed{k.field, terms}, err
	})
}

// guessRight waits for a guess and reports whether it used that analyzer.
func (c *Cached) guessRight(ctx context.Context, f *cache.Flight, k key, name string) (*Analysis, bool) {
	if f == nil {
		return nil, false
	}
	g, err := cache.Wait[guessed](ctx, f)
	if err != nil {
		return nil, false // e.g. an alias of several indices: ask again for the error
	}
	if k.analyzer == "" {
		first := k
		first.field = g.field
		lead, err := c.schema(ctx, first)
		if err != nil || lead.IndexAnalyzer != name {
			return nil, false
		}
	}
	return g.terms, true
}
