package simmatrix

import (
	"math"
	"strings"
	"unicode"

	"github.com/clipperhouse/uax29/v2/words"
)

// maxWordBytes is the longest word that [Texts] takes in. Lucene's standard
// tokenizer cuts at 255 characters; nothing that long is a word.
const maxWordBytes = 255

// Texts gathers documents as sequences of surface words, so that an analyzer
// that is far away has to see each distinct word once only. It splits texts at
// the word boundaries of Unicode's UAX #29, as Lucene's standard tokenizer
// does, and takes what holds a letter or a digit. It is not safe for use by
// several goroutines.
type Texts struct {
	ids      map[string]int32
	words    []string
	sequence []int32 // ids, with endOfDocument behind each document
}

// NewTexts returns no texts.
func NewTexts() *Texts { return &Texts{ids: make(map[string]int32)} }

// Add adds one document, given as the values of its fields in order.
func (t *Texts) Add(values ...string) {
	for _, text := range values {
		for tokens := words.FromString(text); tokens.Next(); {
			if word := tokens.Value(); len(word) <= maxWordBytes && strings.IndexFunc(word, isAlphanumeric) >= 0 {
				t.sequence = append(t.sequence, t.id(word))
			}
		}
	}
	t.sequence = append(t.sequence, endOfDocument)
}

func isAlphanumeric(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

func (t *Texts) id(word string) int32 {
	id, ok := t.ids[word]
	if !ok {
		id = int32(min(len(t.words), math.MaxInt32)) // memory ends long before
		word = strings.Clone(word)                   // else it would keep the whole text alive
		t.ids[word] = id
		t.words = append(t.words, word)
	}
	return id
}

// Words returns the distinct words in the order of their first appearance. The
// caller must not modify them.
func (t *Texts) Words() []string { return t.words }

// Corpus returns the documents as sequences of index terms, where terms[k] are
// the terms that the analyzer makes of Words()[k], none for a stop word. The
// two have the same length.
func (t *Texts) Corpus(terms [][]string) *Corpus {
	c := NewCorpus()
	var document []string
	for _, id := range t.sequence {
		if id == endOfDocument {
			c.AddDocument(document)
			document = document[:0]
			continue
		}
		document = append(document, terms[id]...)
	}
	return c
}
