package esclient

import (
	"context"

	"github.com/akin-search/akin/esclient/memory"
)

// Analyze returns what the cluster makes of a text in a field, by the analyzer
// named or, where that is "", by the field's own search analyzer. The error
// wraps [mapping.ErrNotText], [mapping.ErrMixed] or [ErrRemote] where the field is not one to
// expand.
//
// What is not remembered takes one round trip where indices is one index, else
// two; one more for an alias of a field. A text is analyzed once for all the
// fields of the indices that have the same analyzer.
func (c *Cached) Analyze(ctx context.Context, indices Indices, field, analyzer, text string) (*Analysis, error) {
	k := c.key(indices, field)
	k.analyzer, k.text = analyzer, text
	a, warm, err := c.recallAnalysis(k)
	if !warm {
		own := k.clone()
		a, err = memory.Wait[*Analysis](ctx, memory.Start(ctx, &c.analysis.analyses, own,
			func() (*Analysis, bool, error) { return c.recallAnalysis(own) },
			func(ctx context.Context) (*Analysis, error) { return c.analyze(ctx, own) },
			func(*Analysis, error) {})) // what it is made of is remembered
	}
	c.tally(&c.analysis.Counters, warm, err)
	return a, err
}

// recallAnalysis answers from memory. It reports whether it could.
func (c *Cached) recallAnalysis(k key) (*Analysis, bool, error) {
	s, ok, err := c.analysis.schemas.Get(k.ofField())
	if !ok || err != nil {
		return nil, ok, err
	}
	name, err := s.Analyzer(k.analyzer)
	if err != nil {
		return nil, true, err
	}
	t, ok, err := c.analysis.texts.Get(k.ofText(s, name))
	if !ok || err != nil {
		return nil, ok, err
	}
	return newAnalysis(s, k.analyzer, t), true, nil
}

// analyze makes the calls for an analysis.
func (c *Cached) analyze(ctx context.Context, k key) (*Analysis, error) {
	var guess memory.Flight
	if _, known, _ := c.analysis.schemas.Get(k.ofField()); !known {
		guess = c.guess(ctx, k)
	}
	s, err := c.schema(ctx, k.ofField())
	if err != nil {
		return nil, err
	}
	name, err := s.Analyzer(k.analyzer)
	if err != nil {
		return nil, err
	}
	t, err := c.analysis.texts.Load(ctx, k.ofText(s, name), func(ctx context.Context) (*textTerms, error) {
		if t, ok := c.guessRight(ctx, guess, k, name); ok {
			return t, nil
		}
		return c.client.analyzeText(ctx, s.Targets[0].Index, analyzeBody{Analyzer: name, Text: []string{k.text}})
	})
	if err != nil {
		return nil, err
	}
	return newAnalysis(s, k.analyzer, t), nil
}

// guessed is a text analyzed before the schema of its field was known.
type guessed struct {
	// field is the one whose index analyzer was taken, where none was named.
	field string
	terms *textTerms
}

// guess starts the analysis that a field whose schema is not known most often
// leads to, to have it with the schema: in the index as named, by the analyzer
// named or the field's index analyzer, since _analyze knows no other way to
// name the analyzer of a field. The first field that asks for a text guesses
// for all. It returns nil where there is nothing to guess.
func (c *Cached) guess(ctx context.Context, k key) memory.Flight {
	if c.about(k).check() != nil || !k.single() {
		return nil
	}
	body := analyzeBody{Analyzer: k.analyzer, Text: []string{k.text}}
	if k.analyzer == "" {
		body.Field = k.field
	}
	asked := k
	asked.field = ""
	return memory.Start(ctx, &c.analysis.guesses, asked, memory.Unknown[guessed], func(ctx context.Context) (guessed, error) {
		terms, err := c.client.analyzeText(ctx, k.Expression, body)
		return guessed{k.field, terms}, err
	}, func(guessed, error) {})
}

// guessRight waits for a guess and reports whether it was made by the analyzer
// of that name.
func (c *Cached) guessRight(ctx context.Context, f memory.Flight, k key, name string) (*textTerms, bool) {
	if f == nil {
		return nil, false
	}
	g, err := memory.Wait[guessed](ctx, f)
	if err != nil {
		return nil, false // an alias of several indices, say: the cluster tells when it is asked again
	}
	if k.analyzer == "" {
		first := k.ofField()
		first.field = g.field
		lead, err := c.schema(ctx, first)
		if err != nil || lead.IndexAnalyzer != name {
			return nil, false
		}
	}
	return g.terms, true
}
