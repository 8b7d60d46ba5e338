package demo

import (
	"strings"
	"unicode"
	"unicode/utf16"

	porterstemmer "github.com/blevesearch/go-porterstemmer"
	"github.com/clipperhouse/uax29/v2/words"
)

// A Token is a term of a text. Positions count from 0, offsets in UTF-16 units.
type Token struct {
	Term     string `json:"token"`
	Start    int    `json:"start_offset"`
	End      int    `json:"end_offset"`
	Position int    `json:"position"`
	Length   int    `json:"positionLength,omitzero"` // number of positions; 0 means one
}

// An analyzer returns the terms of a text and the number of positions,
// including removed terms. It is safe for concurrent use.
type analyzer func(text string) (tokens []Token, positions int)

func analyzers() map[string]analyzer {
	return map[string]analyzer{
		"standard": func(text string) ([]Token, int) { return splitWords(text, strings.ToLower) },
		"english":  func(text string) ([]Token, int) { return splitWords(text, englishTerm) },
		"keyword":  func(text string) ([]Token, int) { return []Token{{Term: text, End: utf16Len(text)}}, 1 },
	}
}

// Gaps between the values of a text field, as in the real engines: offsets
// continue after one character, positions after a hundred.
const offsetGap, positionGap = 1, 100

// all returns the tokens of several texts, with offsets and positions going on.
func (a analyzer) all(texts []string) []Token {
	out := []Token{}
	position, offset := 0, 0
	for _, text := range texts {
		tokens, positions := a(text)
		for _, t := range tokens {
			t.Position += position
			t.Start += offset
			t.End += offset
			out = append(out, t)
		}
		position += positions + positionGap
		offset += utf16Len(text) + offsetGap
	}
	return out
}

// maxTokenUnits is where Lucene's tokenizers cut tokens, in UTF-16 units.
const maxTokenUnits = 255

// splitWords splits text like Lucene's StandardTokenizer, at the word
// boundaries of UAX #29, and drops words of which filter leaves nothing.
func splitWords(text string, filter func(term string) string) (tokens []Token, positions int) {
	offset := 0
	for segments := words.FromString(text); segments.Next(); {
		word := segments.Value()
		if !isWord(word) {
			offset += utf16Len(word)
			continue
		}
		for word != "" {
			end, units := len(word), 0
			for i, r := range word {
				if units+utf16.RuneLen(r) > maxTokenUnits {
					end = i
					break
				}
				units += utf16.RuneLen(r)
			}
			if term := filter(word[:end]); term != "" {
				tokens = append(tokens, Token{Term: term, Start: offset, End: offset + units, Position: positions})
			}
			word, offset = word[end:], offset+units
			positions++
		}
	}
	return tokens, positions
}

// isWord distinguishes words from what is between them. Words of scripts
// without spaces do not count: the engines find them in a dictionary.
func isWord(segment string) bool {
	has := func(scripts ...*unicode.RangeTable) bool {
		return strings.ContainsFunc(segment, func(r rune) bool { return unicode.In(r, scripts...) })
	}
	return has(unicode.Nd) || !has(unicode.Thai, unicode.Lao, unicode.Myanmar, unicode.Khmer) &&
		has(unicode.L, unicode.Nl, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Han)
}

// luceneStopWords are the 33 words of EnglishAnalyzer.ENGLISH_STOP_WORDS_SET.
const luceneStopWords = " a an and are as at be but by for if in into is it no not of on or such " +
	"that the their then there these they this to was will with "

// englishTerm filters like EnglishAnalyzer: it removes possessives and stop
// words, for which it returns "", and stems the rest.
func englishTerm(term string) string {
	term = strings.ToLower(term)
	for _, possessive := range []string{"'s", "\u2019s", "\uFF07s"} {
		if owner, ok := strings.CutSuffix(term, possessive); ok {
			term = owner
			break
		}
	}
	if strings.Contains(luceneStopWords, " "+term+" ") {
		return ""
	}
	switch term { // the stemmer misses words that are only a suffix
	case "eed", "eeds":
		return "eed"
	case "ies":
		return "i"
	case "sses":
		return "ss"
	default:
		return string(porterstemmer.StemWithoutLowerCasing([]rune(term)))
	}
}

// utf16Len returns the length of s in UTF-16 units, in which engines count.
func utf16Len(s string) (units int) {
	for _, r := range s {
		units += utf16.RuneLen(r)
	}
	return units
}
