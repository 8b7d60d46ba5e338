package answers

import (
	"unicode/utf16"

	"github.com/akin-search/akin/esclient/mapping"
)

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
// The cluster analyzes the texts of a call one after the other. An offset
// counts from the start of the first text, with one unit between texts; but it
// does so by where each analysis stopped, which is before the end of a text
// where a filter stops early (limit). A position grows by PositionGap or more
// from text to text; but it grows within a text too. A word takes a token only
// where the two agree: offsets never lead past the right word, positions never
// short of it.
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

// utf16Len returns the length of s in UTF-16 units, in which Java counts.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
