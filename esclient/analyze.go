package esclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/akin-search/akin/esclient/answers"
	"github.com/akin-search/akin/esclient/mapping"
)

// An Analysis is what the cluster makes of a text in a field. It is shared by
// all who asked for it and must not be modified.
type Analysis struct {
	// Terms are the index terms in the order of the text.
	Terms []string
	// Positions are the terms' positions, one for each of Terms, ascending.
	// Terms that share a position stand for one word of the text.
	Positions []int
	// Graph says that a term spans several positions, as one word does that has
	// a synonym of two.
	Graph bool
	// Analyzer is the name of the analyzer that made the terms: the one asked
	// for or the field's own search analyzer. Where the indices call theirs by
	// several names, it is all of these with the names of the indices. Queries
	// over several fields keep those apart whose analyzers have other names,
	// though they be defined alike (OpenSearch 2).
	Analyzer string
	// Similarity is the way the engine scores the field.
	Similarity mapping.Similarity
	// Shards is the number of primary shards of the indices that map the field,
	// at least 1.
	Shards int
	// Routed says that an alias of the expression has a routing for searches,
	// so that some of the shards may be left out. It may be true where the
	// engine asks all of them, as with a pattern that matches the alias.
	Routed bool
	// Filtered says that an alias of the expression has a filter. It may be true
	// where the engine applies none, as with a pattern that matches the alias and
	// its index.
	Filtered bool
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
// tokens that the cluster makes by default, of 100 bytes each with what stands
// around them. Texts of so many are not expanded.
const textTokens = 1 << 20

// analyzeText runs _analyze for the text of a search.
func (c *Client) analyzeText(ctx context.Context, index string, body analyzeBody) (*textTerms, error) {
	tokens, err := c.analyze(ctx, index, body, textTokens)
	return newTerms(tokens), err
}

// analyze runs _analyze in an index, which is a concrete one or an alias of
// one: the cluster refuses several. The answer is bounded to limit bytes.
func (c *Client) analyze(ctx context.Context, index string, body analyzeBody, limit int64) ([]answers.Token, error) {
	const filter = "?filter_path=tokens.token,tokens.start_offset,tokens.end_offset,tokens.position,tokens.positionLength"
	var answer struct {
		Tokens []answers.Token `json:"tokens"`
	}
	err := c.Call(ctx, Request{Method: http.MethodPost, Path: IndexPath(index, "/_analyze"+filter), Body: body, Limit: limit}, &answer)
	return answer.Tokens, err
}

// textTerms are what an analyzer makes of a text, see [Analysis].
type textTerms struct {
	names     []string
	positions []int
	graph     bool
}

// newTerms returns the terms of an answer. The cluster gives the tokens in the
// order of their positions; the sort keeps the promise of [Analysis] with an
// analyzer that does not.
func newTerms(tokens []answers.Token) *textTerms {
	slices.SortStableFunc(tokens, func(a, b answers.Token) int { return a.Position - b.Position })
	t := &textTerms{names: make([]string, len(tokens)), positions: make([]int, len(tokens))}
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
		Terms: t.names, Positions: t.positions, Graph: t.graph, Analyzer: cmp.Or(named, s.SearchAnalyzers),
		Similarity: s.Similarity, Shards: s.Shards, Routed: s.Routed, Filtered: s.Filtered, NotWords: s.NotWords,
	}
}

const (
	// wordBatch is the number of words in one _analyze call. The cluster
	// refuses calls that make more than 10,000 tokens, unless
	// index.analyze.max_token_count says otherwise.
	wordBatch = 1000
	// wordBatchBytes bounds the bytes of the words in one _analyze call, unless
	// it is of one word.
	wordBatchBytes = 1 << 20
)

// AnalyzeWords returns the index terms of each word, by the index analyzer of a
// field: none for a word that the analyzer drops, several for one that it
// splits. A word that by itself makes more tokens than the cluster allows in a call
// has none. It returns an error that wraps [mapping.ErrNotText] or [mapping.ErrMixed] where the
// indices do not agree on an analyzer.
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
			if split, ok := answers.SplitTokens(batch, tokens); ok {
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
// tokens: with 500 and illegal_state_exception in Elasticsearch 7 and
// OpenSearch, with 400 and status_exception in Elasticsearch 8.
func tooManyTokens(err error) bool {
	var e *answers.Error
	return errors.As(err, &e) && strings.Contains(e.Reason, "index.analyze.max_token_count")
}
