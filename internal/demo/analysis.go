package demo

import (
	"strings"
	"unicode"
	"unicode/utf16"

	porterstemmer "github.com/blevesearch/go-porterstemmer"
	"github.com/clipperhouse/uax29/v2/words"
)

// A Token is a term of a text. Its position counts from 0, offsets count UTF-16
// units.
type Token struct {
	Term     string `json:"token"`
	Start    int    `json:"start_offset"`
	End      int    `json:"end_offset"`
	Position int    `json:"position"`
	Length   int    `json:"positionLength,omitzero"` // how many positions it takes; 0 is one
}

// An analyzer makes terms of a text, and counts the positions, those of removed
// terms included. It is safe for concurrent use.
type analyzer func(text string) (tokens []Token, positions int)

func analyzers() map[string]analyzer {
	return map[string]analyzer{
		"standard": func(text string) ([]Token, int) { return splitWords(text, strings.ToLower) },
		"english":  func(text string) ([]Token, int) { return splitWords(text, englishTerm) },
		"keyword":  func(text string) ([]Token, int) { return []Token{{Term: text, End: utf16Len(text)}}, 1 },
	}
}

// Gaps between the values of one text field, as the real engines put them:
// offsets go on after one character, positions after a hundred.
const offsetGap, positionGap = 1, 100

// all returns the tokens of a list of texts, whose offsets and positions run on
// from text to text.
func (a analyzer) all(texts []string) []Token {
	out := []Token{}
	position, offset := 0, 0
	for _, text := range texts {
		tokens, positions := a(text)
		for _, t := range tokens {
			t.Position, t.Start, t.End = t.Position+position, t.Start+offset, t.End+offset
			out = append(out, t)
		}
		position += positions + positionGap
		offset += utf16Len(text) + offsetGap
	}
	return out
}

// maxTokenUnits is the length in UTF-16 units at which Lucene's tokenizers cut
// a token.
const maxTokenUnits = 255

// splitWords segments text as Lucene's StandardTokenizer does, by the word
// boundaries of UAX #29, and drops the words of which filter leaves nothing.
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

// isWord tells words from what is between them. Words of scripts without
// spaces are left out: the engines find them in a dictionary.
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

// englishTerm filters as EnglishAnalyzer does: it removes possessives and stop
// words, of which nothing remains, and stems the rest.
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
	switch term { // the stemmer misses words that are nothing but a suffix
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

// utf16Len returns the number of UTF-16 units of s, in which the engines count
// offsets.
func utf16Len(s string) (units int) {
	for _, r := range s {
		units += utf16.RuneLen(r)
	}
	return units
}
