package demo

import (
	"strings"
	"unicode"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/analysis/token/porter"
	"github.com/blevesearch/bleve/v2/analysis/token/stop"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/single"
	segmenter "github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
)

// luceneStopWords are the 33 words of EnglishAnalyzer.ENGLISH_STOP_WORDS_SET.
// Bleve's own list is longer.
const luceneStopWords = "a an and are as at be but by for if in into is it no not of on or such " +
	"that the their then there these they this to was will with"

// A token is one term of a text. Offsets count bytes of the text, positions
// start at 0.
type token struct {
	term       string
	start, end int
	position   int
	kind       string // the engines' name of the token's class
}

// An analyzer makes terms of texts. It is safe for concurrent use.
type analyzer struct {
	tokenizer analysis.Tokenizer
	filters   []analysis.TokenFilter
}

// analyzers returns the analyzers of this engine by the engines' names.
func analyzers() map[string]*analyzer {
	lower := lowerCase{}
	words := analysis.NewTokenMap()
	for w := range strings.FieldsSeq(luceneStopWords) {
		words.AddToken(w)
	}
	return map[string]*analyzer{
		"standard": {wordTokenizer{}, []analysis.TokenFilter{lower}},
		"english": {wordTokenizer{}, []analysis.TokenFilter{
			en.NewPossessiveFilter(), lower, stop.NewStopTokensFilter(words), porterStemmer{porter.NewPorterStemmer()},
		}},
		"keyword":    {single.NewSingleTokenTokenizer(), nil},
		"whitespace": {runTokenizer(notWhitespace), nil},
		"simple":     {runTokenizer(unicode.IsLetter), []analysis.TokenFilter{lower}},
	}
}

// analyze returns the tokens of text and the number of positions that the
// tokenizer counted, those of removed tokens included.
func (a *analyzer) analyze(text string) (tokens []token, positions int) {
	stream := a.tokenizer.Tokenize([]byte(text)) // a copy: filters write into their input
	positions = len(stream)
	for _, f := range a.filters {
		stream = f.Filter(stream)
	}
	_, words := a.tokenizer.(wordTokenizer)
	tokens = make([]token, len(stream))
	for i, t := range stream {
		kind := "word"
		if words {
			kind = wordClass(t.Type, text[t.Start:t.End])
		}
		tokens[i] = token{string(t.Term), t.Start, t.End, t.Position - 1, kind}
	}
	return tokens, positions
}

// terms returns the terms of text in the order of the text.
func (a *analyzer) terms(text string) []string {
	tokens, _ := a.analyze(text)
	terms := make([]string, len(tokens))
	for i := range tokens {
		terms[i] = tokens[i].term
	}
	return terms
}

// maxTokenUnits is the length in UTF-16 units at which Lucene's tokenizers cut
// a token.
const maxTokenUnits = 255

// appendCut appends the token [start, end) of text to stream, in pieces where
// it is longer than maxTokenUnits.
func appendCut(stream analysis.TokenStream, text []byte, start, end int, kind analysis.TokenType) analysis.TokenStream {
	from, units := start, 0
	emit := func(to int) {
		stream = append(stream, &analysis.Token{
			Term: text[from:to:to], Start: from, End: to, Position: len(stream) + 1, Type: kind,
		})
		from, units = to, 0
	}
	for i, r := range string(text[start:end]) {
		n := utf16Len(r)
		if units+n > maxTokenUnits {
			emit(start + i)
		}
		units += n
	}
	emit(end)
	return stream
}

// utf16Len returns the number of UTF-16 units of r, in which the engines count
// offsets.
func utf16Len(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// wordTokenizer is the Unicode segmentation of bleve, made to agree with
// Lucene's StandardTokenizer: a run of underscores is no token there.
type wordTokenizer struct{}

// Tokenize returns the words of text.
func (wordTokenizer) Tokenize(text []byte) analysis.TokenStream {
	var stream analysis.TokenStream
	for _, t := range segmenter.NewUnicodeTokenizer().Tokenize(text) {
		if strings.ContainsFunc(string(t.Term), isWordRune) {
			stream = appendCut(stream, text, t.Start, t.End, t.Type)
		}
	}
	return stream
}

// isWordRune reports whether r, standing in a word, makes it one: connectors,
// marks and format characters do not.
func isWordRune(r rune) bool { return !unicode.In(r, unicode.Pc, unicode.M, unicode.Cf) }

// wordClass names the class of a word as StandardTokenizer does.
func wordClass(kind analysis.TokenType, word string) string {
	has := func(script *unicode.RangeTable) bool {
		return strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(script, r) })
	}
	switch {
	case kind == analysis.Numeric:
		return "<NUM>"
	case has(unicode.Hangul):
		return "<HANGUL>"
	case kind != analysis.Ideographic:
		return "<ALPHANUM>"
	case has(unicode.Hiragana):
		return "<HIRAGANA>"
	case has(unicode.Katakana):
		return "<KATAKANA>"
	default:
		return "<IDEOGRAPHIC>"
	}
}

// runTokenizer makes a token of each longest run of runes that it accepts.
// Bleve's character tokenizer ends at the first U+FFFD of a text.
type runTokenizer func(rune) bool

// Tokenize returns the runs of text.
func (accepts runTokenizer) Tokenize(text []byte) analysis.TokenStream {
	var stream analysis.TokenStream
	start := -1
	for i, r := range string(text) {
		switch in := accepts(r); {
		case in && start < 0:
			start = i
		case !in && start >= 0:
			stream = appendCut(stream, text, start, i, analysis.AlphaNumeric)
			start = -1
		}
	}
	if start >= 0 {
		stream = appendCut(stream, text, start, len(text), analysis.AlphaNumeric)
	}
	return stream
}

// notWhitespace reports whether Java's Character.isWhitespace, by which the
// engines split, denies r: no-break spaces are not whitespace there, the
// information separators are.
func notWhitespace(r rune) bool {
	switch r {
	case '\u00a0', '\u2007', '\u202f', '\u0085':
		return true
	case '\u001c', '\u001d', '\u001e', '\u001f':
		return false
	default:
		return !unicode.IsSpace(r)
	}
}

// lowerCase lowers each rune on its own, as Lucene does. Bleve's filter turns
// a sigma at the end of a word into its final form.
type lowerCase struct{}

// Filter lowers the terms of stream.
func (lowerCase) Filter(stream analysis.TokenStream) analysis.TokenStream {
	for _, t := range stream {
		t.Term = []byte(strings.ToLower(string(t.Term)))
	}
	return stream
}

// porterStemmer is bleve's, made to agree with Lucene's on words that are
// nothing but a suffix of step 1, which bleve's does not recognize.
type porterStemmer struct{ stemmer *porter.PorterStemmer }

// Filter stems the terms of stream.
func (p porterStemmer) Filter(stream analysis.TokenStream) analysis.TokenStream {
	for _, t := range stream {
		switch string(t.Term) {
		case "eed", "eeds":
			t.Term, t.KeyWord = []byte("eed"), true
		case "ies":
			t.Term, t.KeyWord = []byte("i"), true
		case "sses":
			t.Term, t.KeyWord = []byte("ss"), true
		}
	}
	return p.stemmer.Filter(stream)
}

// utf16Text returns the number of UTF-16 units of s.
func utf16Text(s string) int {
	n := 0
	for _, r := range s {
		n += utf16Len(r)
	}
	return n
}
