package esclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/cache"
)

// An Analysis is what the cluster makes of a text in a field. It is shared by
// all who asked for it and must not be modified.
type Analysis struct {
	// Terms are the index terms in the order of the text.
	Terms []string
	// Positions are those of Terms, ascending. Terms that share a position stand
	// for one word of the text.
	Positions []int
	// Written has for each term the part of the text that it is made of, "" where
	// that is the term itself, terms share it, or it is not known. It is nil where all
	// are "".
	Written []string
	// Graph says that a term spans several positions, as a word does that has a
	// synonym of two.
	Graph bool
	// Analyzer names the analyzer that made the terms: the one asked for, or the
	// field's search analyzer, by all names that the indices call it. Queries over
	// several fields keep those of other names apart (OpenSearch 2).
	Analyzer string
	// Similarity is the way the engine scores the field.
	Similarity mapping.Similarity
	// Shards is the number of primary shards of the indices that map the field, at
	// least 1.
	Shards int
	// Routed says that an alias of the expression has a routing for searches, so
	// that some shards may be left out, Filtered that one has a filter. Both may be
	// true where the engine applies none, as with a pattern that matches the alias.
	Routed, Filtered bool
	// Nested is the path of the innermost nested object that the field is in, "" for
	// none.
	Nested string
	// NotWords names what in the field's own analyzers makes other terms than
	// words: n-grams, shingles, phonetic codes, paths. "" is nothing.
	NotWords string
}

// analyzeBody is the body of an _analyze call, by the name of an analyzer or by
// the index analyzer of a field.
type analyzeBody struct {
	Analyzer string   `json:"analyzer,omitempty"`
	Field    string   `json:"field,omitempty"`
	Text     []string `json:"text"`
}

// textTokens bounds the answer of _analyze for the text of a search: the 10,000
// tokens that the cluster makes by default, of 100 bytes each.
const textTokens = 1 << 20

// analyzeText runs _analyze for the text of a search.
func (c *Client) analyzeText(ctx context.Context, index string, body analyzeBody) (*textTerms, error) {
	tokens, err := c.analyze(ctx, index, body, textTokens)
	return newTerms(body.Text[0], tokens), err
}

// analyze runs _analyze in a concrete index or an alias of one: the cluster
// refuses several. The answer is bounded to limit bytes.
func (c *Client) analyze(ctx context.Context, index string, body analyzeBody, limit int64) ([]Token, error) {
	const filter = "?filter_path=tokens.token,tokens.start_offset,tokens.end_offset,tokens.position,tokens.positionLength"
	var answer struct {
		Tokens []Token `json:"tokens"`
	}
	err := c.Call(ctx, Request{Method: http.MethodPost, Path: IndexPath(index, "/_analyze"+filter), Body: body, Limit: limit}, &answer)
	return answer.Tokens, err
}

// textTerms are what an analyzer makes of a text, see [Analysis].
type textTerms struct {
	names     []string
	positions []int
	written   []string
	graph     bool
}

// newTerms returns the terms of an answer. The sort keeps the promise of
// [Analysis] with an analyzer that does not give tokens in the order of their
// positions.
func newTerms(text string, tokens []Token) *textTerms {
	slices.SortStableFunc(tokens, func(a, b Token) int { return a.Position - b.Position })
	t := &textTerms{names: make([]string, len(tokens)), positions: make([]int, len(tokens)), written: Written(text, tokens)}
	for i := range tokens {
		t.names[i], t.positions[i] = tokens[i].Token, tokens[i].Position
		t.graph = t.graph || tokens[i].Length > 1
	}
	return t
}

// newAnalysis returns the analysis of a text in a field by the analyzer named
// or, where that is "", by the field's own.
func newAnalysis(s *mapping.Schema, named string, t *textTerms) *Analysis {
	return &Analysis{
		Terms: t.names, Positions: t.positions, Written: t.written, Graph: t.graph, Analyzer: cmp.Or(named, s.SearchAnalyzers),
		Similarity: s.Similarity, Shards: s.Shards, Routed: s.Routed, Filtered: s.Filtered, Nested: s.Nested, NotWords: s.NotWords,
	}
}

const (
	// wordBatch is the number of words in one _analyze call: the cluster refuses
	// more than 10,000 tokens by default. wordBatchBytes bounds their bytes, unless
	// it is one word.
	wordBatch, wordBatchBytes = 1000, 1 << 20
)

// AnalyzeWords returns the index terms of each word, by the index analyzer of a
// field: none for a word that the analyzer drops or that by itself makes more
// tokens than the cluster allows, several for one that it splits. The error
// wraps [mapping.ErrNotText] or [mapping.ErrMixed] where the indices do not
// agree on an analyzer.
func (c *Client) AnalyzeWords(ctx context.Context, index, field string, words []string) ([][]string, error) {
	s, err := c.Schema(ctx, index, field)
	if err != nil {
		return nil, err
	}
	terms := make([][]string, 0, len(words))
	most := wordBatch
	if s.Dense {
		most = 1
	}
	size := most
	for len(terms) < len(words) {
		batch := nextBatch(words[len(terms):], size)
		tokens, err := c.analyze(ctx, s.Targets[0].Index, analyzeBody{Analyzer: s.IndexAnalyzer, Text: batch}, maxAnswer)
		switch {
		case err != nil && !tooManyTokens(err):
			return nil, fmt.Errorf("analyze words: %w", err)
		case err != nil && len(batch) == 1:
			terms = append(terms, nil)
			continue
		case err == nil:
			if split, ok := SplitTokens(batch, tokens); ok {
				terms = append(terms, split...)
				size = min(2*size, most)
				continue
			}
		}
		// Too many tokens, or no telling whose they are: fewer words at a time.
		size = max(len(batch)/2, 1)
	}
	return terms, nil
}

// nextBatch returns the first words as they are sent: at least one, at most
// size, and not over wordBatchBytes where there are two.
func nextBatch(words []string, size int) []string {
	batch := make([]string, 0, min(size, len(words)))
	total := 0
	for _, w := range words[:min(size, len(words))] {
		w = strings.ToValidUTF8(w, "\uFFFD")
		total += len(w)
		if len(batch) > 0 && total > wordBatchBytes {
			break
		}
		batch = append(batch, w)
	}
	return batch
}

// tooManyTokens reports whether the cluster refused an _analyze call for its
// tokens: with 500 in Elasticsearch 7 and OpenSearch, with 400 in Elasticsearch
// 8.
func tooManyTokens(err error) bool {
	var e *Error
	return errors.As(err, &e) && strings.Contains(e.Reason, "index.analyze.max_token_count")
}

// Analyze returns what the cluster makes of a text in a field, by the analyzer
// named or, where that is "", by the field's own search analyzer. The error
// wraps [mapping.ErrNotText], [mapping.ErrMixed] or [ErrRemote] where the field
// is not one to expand.
//
// What is not remembered takes one round trip where indices is one index, else
// two; one more for an alias of a field. A text is analyzed once for all fields
// of the indices that have the same analyzer.
func (c *Cached) Analyze(ctx context.Context, indices Indices, field, analyzer, text string) (*Analysis, error) {
	k := c.key(indices, field).as(analysisOfText)
	k.analyzer, k.text = analyzer, text
	a, warm, err := c.recallAnalysis(k)
	if !warm {
		own := k.clone()
		a, err = cache.Get(ctx, c.analysis, own, 0, func(ctx context.Context) (*Analysis, error) { return c.analyze(ctx, own) })
	}
	c.tally(c.analysis, warm, err)
	return a, err
}

// recallAnalysis answers from memory. It reports whether it could.
func (c *Cached) recallAnalysis(k key) (*Analysis, bool, error) {
	s, ok, err := cache.Peek[*mapping.Schema](c.analysis, k.ofField())
	if !ok || err != nil {
		return nil, ok, err
	}
	name, err := s.Analyzer(k.analyzer)
	if err != nil {
		return nil, true, err
	}
	t, ok, err := cache.Peek[*textTerms](c.analysis, k.ofText(s, name))
	if !ok || err != nil {
		return nil, ok, err
	}
	return newAnalysis(s, k.analyzer, t), true, nil
}

// analyze makes the calls for an analysis, and remembers what that is made of.
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
	t, err := cache.Get(ctx, c.analysis, k.ofText(s, name), c.ttl, func(ctx context.Context) (*textTerms, error) {
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

// guess starts the analysis that a field of an unknown schema most likely
// leads to: in the index as named, by the analyzer named or the field's
// index analyzer, the only one that _analyze takes by field. The first field
// that asks for a text guesses for all. It returns nil where there is
// nothing to guess.
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

// guessRight waits for a guess and reports whether it was made by the analyzer
// of that name.
func (c *Cached) guessRight(ctx context.Context, f *cache.Flight, k key, name string) (*textTerms, bool) {
	if f == nil {
		return nil, false
	}
	g, err := cache.Wait[guessed](ctx, f)
	if err != nil {
		return nil, false // an alias of several indices, say: the cluster tells when it is asked again
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
