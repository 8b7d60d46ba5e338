package esclient

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/akin-search/akin/esclient/mapping"
)

// analyzeBody is the body of an _analyze call, with an analyzer's name or a
// field whose index analyzer is used.
type analyzeBody struct {
	Analyzer string   `json:"analyzer,omitempty"`
	Field    string   `json:"field,omitempty"`
	Text     []string `json:"text"`
}

// textTokens limits the answer of _analyze for a search's text: 10,000 tokens,
// the cluster's default limit, of 100 bytes each.
const textTokens = 1 << 20

func (c *Client) analyzeText(ctx context.Context, index string, body analyzeBody) (*Analysis, error) {
	tokens, err := c.analyze(ctx, index, body, textTokens)
	return newTerms(body.Text[0], tokens), err
}

// analyze runs _analyze in a concrete index or an alias of one; the cluster
// refuses several. limit is the largest answer in bytes.
func (c *Client) analyze(ctx context.Context, index string, body analyzeBody, limit int64) ([]Token, error) {
	var answer struct {
		Tokens []Token `json:"tokens"`
	}
	err := c.Do(ctx, Call{Request: esapi.IndicesAnalyzeRequest{
		Index: Name(index), Body: JSON(body),
		FilterPath: []string{"tokens.token", "tokens.start_offset", "tokens.end_offset", "tokens.position", "tokens.positionLength"},
	}, Limit: limit}, &answer)
	return answer.Tokens, err
}

// A Token is a token of an _analyze answer. Offsets are in UTF-16 units.
type Token struct {
	Token    string `json:"token"`
	Start    int    `json:"start_offset"`
	End      int    `json:"end_offset"`
	Position int    `json:"position"`
	// Length is the number of positions it spans; 0 means 1.
	Length int `json:"positionLength"`
}

// Spans reports whether the token comes from the whole text.
func (t Token) Spans(text string) bool { return t.End-t.Start == utf16Len(text) }

// Before returns what is before the token in its text.
func (t Token) Before(text string) string {
	units := utf16.Encode([]rune(text))
	return string(utf16.Decode(units[:max(0, min(t.Start, len(units)))]))
}

// SplitTokens assigns the tokens of an _analyze call to its words, with offsets
// in these. It returns false if the answer is ambiguous.
//
// Offsets count from the start of the first text, with one unit between texts,
// but are too small if a filter stops early (limit). Positions grow by
// PositionGap or more between texts, but possibly within a text, too. A token
// belongs to a word only if both agree.
func SplitTokens(words []string, tokens []Token) ([][]Token, bool) {
	of := make([][]Token, len(words))
	if len(words) == 1 {
		of[0] = tokens
		return of, true
	}
	var word, start, last int
	end := utf16Len(words[0])
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
		t.Start, t.End = t.Start-start, t.End-start
		of[word] = append(of[word], t)
	}
	return of, true
}

// Written returns, for each token in the order of positions, the part of the
// text that it comes from. That is "" if it equals the token, if tokens share
// it, as synonyms do, or if the offsets are not in the text. If all are "",
// Written returns nil.
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

// utf16Len returns the length of s in UTF-16 units, as Java counts.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// An Analysis is the result of analyzing a text in a field. It is shared and
// must not be modified.
type Analysis struct {
	// Terms are the index terms in text order.
	Terms []string
	// Positions are those of Terms, ascending. Terms with the same position stand
	// for one word of the text.
	Positions []int
	// Written has the part of the text that each term comes from, "" if that is
	// the term itself, is shared, or is unknown. It is nil if all are "".
	Written []string
	// Graph says that a term spans several positions, such as a word with a
	// two-word synonym.
	Graph bool
	// Spanned says that terms which span several positions are in the place of the
	// terms at these, so that the text has no graph: of wi-fi, wi, fi and router,
	// wi-fi and router. The engine also finds the others as a phrase.
	Spanned bool
	// Whole is one plus the number of a term that spans all positions of a graph, as
	// wi-fi beside wi and fi: the text is one word. 0 means none.
	Whole int
	// Analyzer names the analyzer that was used: the one asked for, or the field's
	// search analyzer under all names that the indices have for it. Queries over
	// several fields keep those with different names apart (OpenSearch 2).
	Analyzer string
	// Similarity is how the engine scores the field.
	Similarity mapping.Similarity
	// Phrases is how the field finds phrases.
	Phrases mapping.Phrases
	// Shards is the number of primary shards of the indices with the field, or 1.
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
	// NotWords names the component of the field's analyzers that makes terms other
	// than words: n-grams, shingles, phonetic codes, paths. "" means none.
	NotWords string
}

// in returns a, which has only the terms of a text, as an analysis in a field,
// by the named analyzer or, if that is "", by the field's own.
func (a Analysis) in(s *mapping.Schema, named string) *Analysis {
	a.Analyzer, a.NotWords = cmp.Or(named, s.SearchAnalyzers), s.NotWords
	a.Phrases = s.Phrases
	a.Similarity = s.Similarity
	a.Shards = s.Shards
	a.Routed = s.Routed
	a.Filtered = s.Filtered
	a.Pipelines = s.Pipelines
	a.Nested = s.Nested
	return &a
}

// newTerms returns the terms of an answer. It sorts them, because some
// analyzers do not return tokens in the order of positions.
func newTerms(text string, tokens []Token) *Analysis {
	slices.SortStableFunc(tokens, func(a, b Token) int { return a.Position - b.Position })
	end := 0
	for _, t := range tokens {
		end = max(end, t.end())
	}
	for i, t := range tokens {
		if t.Length > 1 && t.Position == tokens[0].Position && t.end() == end {
			return analysisOf(text, tokens, Analysis{Graph: true, Whole: i + 1})
		}
	}
	graph := slices.ContainsFunc(tokens, func(t Token) bool { return t.Length > 1 })
	if graph {
		if spanning := spanned(utf16.Encode([]rune(text)), tokens); spanning != nil {
			return analysisOf(text, spanning, Analysis{Spanned: true})
		}
	}
	return analysisOf(text, tokens, Analysis{Graph: graph})
}

func analysisOf(text string, tokens []Token, a Analysis) *Analysis {
	a.Written = Written(text, tokens)
	for _, t := range tokens {
		a.Terms, a.Positions = append(a.Terms, t.Token), append(a.Positions, t.Position)
	}
	return &a
}

// end returns the position behind a token.
func (t Token) end() int { return t.Position + max(t.Length, 1) }

// spanned returns tokens, in the order of positions, without those inside
// others: where tokens overlap, those that span all of them, at one position.
// It returns nil if somewhere there is none, or if it comes from several words
// of the text, which a synonym of the engine stands for.
func spanned(text []uint16, tokens []Token) (kept []Token) {
	oneWord := func(t Token) bool {
		return t.Start >= 0 && t.Start < t.End && t.End <= len(text) &&
			!strings.ContainsFunc(string(utf16.Decode(text[t.Start:t.End])), unicode.IsSpace)
	}
	saved := 0 // positions
	for len(tokens) > 0 {
		first, end := tokens[0].Position, tokens[0].end()
		n := 1
		for n < len(tokens) && tokens[n].Position < end {
			end = max(end, tokens[n].end())
			n++
		}
		before := len(kept)
		for _, t := range tokens[:n] {
			if t.Position == first && t.end() == end && oneWord(t) {
				t.Position, t.Length = first-saved, 1
				kept = append(kept, t)
			}
		}
		if len(kept) == before {
			return nil
		}
		saved += end - first - 1
		tokens = tokens[n:]
	}
	return kept
}

const (
	// wordBatch is the number of words in one _analyze call: by default the
	// cluster refuses more than 10,000 tokens. wordBatchBytes limits their bytes,
	// unless it is one word.
	wordBatch, wordBatchBytes = 1000, 1 << 20
)

// AnalyzeTexts returns the tokens of each text, by the index analyzer of a
// field: none if the analyzer drops it all, or makes more tokens of it than the
// cluster allows. Positions are comparable within a text. The error wraps
// [mapping.ErrNotText], or [mapping.ErrMixed] if the indices disagree on the
// analyzer.
func (c *Client) AnalyzeTexts(ctx context.Context, index, field string, words []string) ([][]Token, error) {
	s, err := c.Schema(ctx, index, field)
	if err != nil {
		return nil, err
	}
	split := make([][]Token, 0, len(words))
	most := wordBatch
	if s.Dense {
		most = 1
	}
	size := most
	for len(split) < len(words) {
		batch := nextBatch(words[len(split):], size)
		tokens, err := c.analyze(ctx, s.Targets[0].Index, analyzeBody{Analyzer: s.IndexAnalyzer, Text: batch}, maxAnswer)
		switch {
		case err != nil && !tooManyTokens(err):
			return nil, fmt.Errorf("analyze words: %w", err)
		case err != nil && len(batch) == 1:
			split = append(split, nil)
			continue
		case err == nil:
			if of, ok := SplitTokens(batch, tokens); ok {
				split = append(split, of...)
				size = min(2*size, most)
				continue
			}
		}
		// Too many tokens, or ambiguous: retry with fewer words.
		size = max(len(batch)/2, 1)
	}
	return split, nil
}

// nextBatch returns the first words as they are sent: at least one, at most
// size, and two or more only up to wordBatchBytes.
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
