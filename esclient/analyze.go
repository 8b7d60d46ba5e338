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
