package demo

import (
	"strings"
	"unicode"
	"unicode/utf16"

	porterstemmer "github.com/blevesearch/go-porterstemmer"
	"github.com/clipperhouse/uax29/v2/words"
)

// A token is one term of a text. Offsets count bytes of the text, positions
// start at 0. A token of length 0 takes one.
type token struct {
	term                         string
	start, end, position, length int
}

// An analyzer makes terms of texts. It is safe for concurrent use.
type analyzer struct {
	split  func(text string) []token
	filter func(term string) (filtered string, kept bool)
}

// analyzers returns the analyzers of this engine by the engines' names.
func analyzers() map[string]*analyzer {
	unchanged := func(term string) (string, bool) { return term, true }
	lower := func(term string) (string, bool) { return strings.ToLower(term), true }
	whole := func(text string) []token { return []token{{text, 0, len(text), 0, 0}} }
	return map[string]*analyzer{
		"standard": {splitWords, lower},
		"english":  {splitWords, englishTerm},
		"keyword":  {whole, unchanged},
	}
}

// analyze returns the tokens of text and the number of positions, those of
// removed tokens included.
func (a *analyzer) analyze(text string) (tokens []token, positions int) {
	all := a.split(text)
	for _, t := range all {
		if term, kept := a.filter(t.term); kept {
			t.term = term
			tokens = append(tokens, t)
		}
	}
	return tokens, len(all)
}

// Gaps between the values of one field, as the real engines put them: offsets
// go on after one character, positions of a text field after a hundred.
const offsetGap, positionGap = 1, 100

// An analyzedToken is a token of a list of texts: offsets count UTF-16 units
// and, like positions, run on from text to text.
type analyzedToken struct {
	Token       string `json:"token"`
	StartOffset int    `json:"start_offset"`
	EndOffset   int    `json:"end_offset"`
	Position    int    `json:"position"`
	Length      int    `json:"positionLength,omitzero"`
}

func (a *analyzer) analyzeAll(values []string, gap int) []analyzedToken {
	out := []analyzedToken{}
	position, offset := 0, 0
	for _, text := range values {
		tokens, positions := a.analyze(text)
		at := 0 // in bytes, what offset is in UTF-16 units
		advance := func(end int) int {
			offset += utf16Len(text[at:end])
			at = end
			return offset
		}
		for _, t := range tokens {
			out = append(out, analyzedToken{t.term, advance(t.start), advance(t.end), position + t.position, t.length})
		}
		offset = advance(len(text)) + offsetGap
		position += positions + gap
	}
	return out
}

// luceneStopWords are the 33 words of EnglishAnalyzer.ENGLISH_STOP_WORDS_SET.
const luceneStopWords = " a an and are as at be but by for if in into is it no not of on or such " +
	"that the their then there these they this to was will with "

// englishTerm filters as EnglishAnalyzer does: it removes possessives and stop
// words and stems the rest.
func englishTerm(term string) (string, bool) {
	term = strings.ToLower(term)
	for _, possessive := range []string{"'s", "\u2019s", "\uFF07s"} {
		if owner, ok := strings.CutSuffix(term, possessive); ok {
			term = owner
			break
		}
	}
	if strings.Contains(luceneStopWords, " "+term+" ") {
		return "", false
	}
	switch term { // the stemmer misses words that are nothing but a suffix
	case "eed", "eeds":
		return "eed", true
	case "ies":
		return "i", true
	case "sses":
		return "ss", true
	default:
		return string(porterstemmer.StemWithoutLowerCasing([]rune(term))), true
	}
}

// splitWords segments text as Lucene's StandardTokenizer does, by the word
// boundaries of UAX #29.
func splitWords(text string) (tokens []token) {
	for segments := words.FromString(text); segments.Next(); {
		if isWord(segments.Value()) {
			tokens = appendCut(tokens, text, segments.Start(), segments.End())
		}
	}
	return tokens
}

// isWord tells words from what is between them. Words of scripts without
// spaces are left out: the engines find them in a dictionary.
func isWord(segment string) bool {
	has := func(scripts ...*unicode.RangeTable) bool {
		return strings.ContainsFunc(segment, func(r rune) bool { return unicode.In(r, scripts...) })
	}
	return has(unicode.Nd) || !has(unicode.Thai, unicode.Lao, unicode.Myanmar, unicode.Khmer) &&
		has(unicode.L, unicode.Nl, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Han)
}

// maxTokenUnits is the length in UTF-16 units at which Lucene's tokenizers cut
// a token.
const maxTokenUnits = 255

// appendCut appends text[start:end] to tokens, in pieces if it is longer than
// maxTokenUnits.
func appendCut(tokens []token, text string, start, end int) []token {
	from, units := start, 0
	for i, r := range text[start:end] {
		if units += utf16.RuneLen(r); units > maxTokenUnits {
			tokens = append(tokens, token{text[from : start+i], from, start + i, len(tokens), 0})
			from, units = start+i, utf16.RuneLen(r)
		}
	}
	return append(tokens, token{text[from:end], from, end, len(tokens), 0})
}

// utf16Len returns the number of UTF-16 units of s, in which the engines count
// offsets.
func utf16Len(s string) (units int) {
	for _, r := range s {
		units += utf16.RuneLen(r)
	}
	return units
}
