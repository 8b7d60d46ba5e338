package esclient

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/akin-search/akin/esclient/mapping"
)

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

// analyzeText runs _analyze for the text of a search, and returns its terms.
func (c *Client) analyzeText(ctx context.Context, index string, body analyzeBody) (*Analysis, error) {
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
	err := c.Do(ctx, Call{Method: http.MethodPost, Path: IndexPath(index, "/_analyze"+filter), Body: body, Limit: limit}, &answer)
	return answer.Tokens, err
}

// A Token is one token of an _analyze answer. Offsets are in UTF-16 units.
type Token struct {
	Token    string `json:"token"`
	Start    int    `json:"start_offset"`
	End      int    `json:"end_offset"`
	Position int    `json:"position"`
	// Length is the number of positions it spans, 0 for 1.
	Length int `json:"positionLength"`
}

// SplitTokens gives each token of an _analyze call to its word. It reports
// false if the answer leaves that open.
//
// Offsets count from the start of the first text, with one unit between texts,
// but fall short where a filter stops early (limit). Positions grow by
// PositionGap or more from text to text, but within a text, too. A word takes a
// token only where the two agree.
func SplitTokens(words []string, tokens []Token) ([][]string, bool) {
	terms := make([][]string, len(words))
	if len(words) == 1 {
		for _, t := range tokens {
			terms[0] = append(terms[0], t.Token)
		}
		return terms, true
	}
	word, start, end, last := 0, 0, utf16Len(words[0]), 0
	for _, t := range tokens {
		if t.Position < last {
			return nil, false
		}
		for range (t.Position - last) / mapping.PositionGap {
			word++
			if word == len(words) {
				return nil, false
			}
			start = end + 1
			end = start + utf16Len(words[word])
		}
		if t.Start < start || t.End > end {
			return nil, false
		}
		last = t.Position
		terms[word] = append(terms[word], t.Token)
	}
	return terms, true
}

// Written returns for each token, in the order of positions, the part of the
// text that it is made of, "" where that is the token itself, where tokens
// share it, as synonyms do, and where its offsets are not of the text; nil if
// all are "".
func Written(text string, tokens []Token) (parts []string) {
	units := utf16.Encode([]rune(text))
	for i, t := range tokens {
		share := func(k int) bool {
			return k >= 0 && k < len(tokens) && (tokens[k].Position == t.Position || tokens[k].Start == t.Start)
		}
		if share(i-1) || share(i+1) || t.Start < 0 || t.End > len(units) || t.Start >= t.End {
			continue
		}
		var part string
		if len(units) == len(text) { // ASCII
			part = text[t.Start:t.End]
		} else {
			part = string(utf16.Decode(units[t.Start:t.End]))
		}
		if part == t.Token {
			continue
		}
		if parts == nil {
			parts = make([]string, len(tokens))
		}
		parts[i] = part
	}
	return parts
}

// utf16Len returns the length of s in UTF-16 units, in which Java counts.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

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
	// Pipelines are the names of the indices' own search pipelines; Filtered is
	// true where there is one, too.
	Routed, Filtered bool
	Pipelines        []string
	// Nested is the path of the innermost nested object that the field is in, "" for
	// none.
	Nested string
	// NotWords names what in the field's own analyzers makes other terms than
	// words: n-grams, shingles, phonetic codes, paths. "" is nothing.
	NotWords string
}

// in returns the analysis in a field of a text of which a has the terms only,
// by the analyzer named or, where that is "", by the field's own.
func (a Analysis) in(s *mapping.Schema, named string) *Analysis {
	a.Analyzer, a.NotWords = cmp.Or(named, s.SearchAnalyzers), s.NotWords
	a.Similarity, a.Shards, a.Routed, a.Filtered, a.Pipelines, a.Nested = s.Similarity, s.Shards, s.Routed, s.Filtered, s.Pipelines, s.Nested
	return &a
}

// newTerms returns the terms of an answer. The sort keeps the promise of
// [Analysis] with an analyzer that does not give tokens in the order of their
// positions.
func newTerms(text string, tokens []Token) *Analysis {
	slices.SortStableFunc(tokens, func(a, b Token) int { return a.Position - b.Position })
	a := &Analysis{Terms: make([]string, len(tokens)), Positions: make([]int, len(tokens)), Written: Written(text, tokens)}
	for i, t := range tokens {
		a.Terms[i], a.Positions[i] = t.Token, t.Position
		a.Graph = a.Graph || t.Length > 1
	}
	return a
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
