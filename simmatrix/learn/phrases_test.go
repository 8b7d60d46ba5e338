package learn

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// phraseTexts returns texts, and a corpus of their words in lower case without
// "of".
func phraseTexts(docs ...string) (*Texts, [][]string, *Corpus) {
	texts := NewTexts()
	for _, doc := range docs {
		texts.Add(strings.Split(doc, "|")...)
	}
	terms := make([][]string, len(texts.Words()))
	for k, word := range texts.Words() {
		if word != "of" {
			terms[k] = []string{strings.ToLower(word)}
		}
	}
	return texts, terms, texts.Corpus(terms)
}

func TestPhrasesAreWordsThatFollowEachOtherMoreThanByChance(t *testing.T) {
	docs := slices.Repeat([]string{"common words", "other things"}, 100)
	for k := range 6 {
		docs = append(docs,
			fmt.Sprintf("|of|a%d Heart surgery of heart surgery", k), // a phrase
			"point of care",                // a gap
			"common cold", "type 2", "2 b", // a frequent word, and a number
			"one|half", "half one", // another text, another order
			fmt.Sprintf("loose a%d|loose b%d fit c%d", k, k, k), fmt.Sprintf("fit d%d", k))
	}
	docs = append(docs, slices.Repeat([]string{"rare pair"}, 4)...)
	docs = append(docs, slices.Repeat([]string{"loose fit"}, 5)...)
	docs = append(docs, slices.Repeat([]string{"loose", "fit"}, 10)...)
	texts, terms, c := phraseTexts(docs...)
	texts.FindPhrases(terms, c)
	var found []string
	for _, f := range c.phrases {
		found = append(found, fmt.Sprintf("%s %d %.2f", simmatrix.Spelled(f.term), f.docs, f.npmi))
		first := slices.Collect(simmatrix.WordsOf(f.term))[0]
		for _, place := range f.places {
			check.Equal(t, first, c.terms[c.sequence[place]])
		}
	}
	check.Equal(t, []string{`"half one" 6 0.64`, `"heart surgery" 6 1.00`}, found)
	check.Equal(t, 12, len(c.phrases[1].places))
	check.Equal(t, `phrases: 2 kept, such as "half one" (npmi 0.64), "heart surgery" (npmi 1.00); 1 left out, such as "loose fit" (npmi 0.23)`, c.tally.String())
	check.That(t, math.Abs(npmi(5, 100, 100, 1000)+math.Log(2)/math.Log(200)) < 1e-9, "less than by chance: %v", npmi(5, 100, 100, 1000))
}

func TestPhrasesHaveRowsOfTheirOwn(t *testing.T) {
	var docs []string
	for k := range 12 {
		docs = append(docs, "the soft drink has sugar and lemon", "lemon and sugar in water",
			"the soft pillow and bed", "sleep in a bed", "we drink wine at noon", fmt.Sprintf("bottled wine at noon %d", k))
	}
	docs = append(docs, slices.Repeat([]string{"filler"}, 300)...)
	texts, terms, c := phraseTexts(docs...)
	plain := mustLearn(t, c, smallOptions())
	texts.FindPhrases(terms, c)
	m := mustLearn(t, c, smallOptions())
	phrase := simmatrix.Phrase(check.Got(simmatrix.Expression([]string{"soft", "drink"}, []int{0, 1}))(t))
	row := m.Row(phrase)
	check.Equal(t, 12, int(row.DocFreq()))
	sims := map[string]float32{}
	for n := range row.All() {
		sims[n.Term] = n.Similarity
	}
	check.That(t, sims["sugar"] > sims["bed"] && sims["sugar"] > sims["wine"], "%v", sims)
	written, note := simmatrix.SplitForm(m.Form(phrase))
	check.Equal(t, [2]string{`"soft drink"`, "phrase, npmi 0.60"}, [2]string{written, note})
	for term, row := range m.Rows() {
		if !simmatrix.IsPhrase(term) {
			check.Equal(t, fmt.Sprint(slices.Collect(plain.Row(term).All())), fmt.Sprint(slices.Collect(row.All())), term)
		}
	}
	check.Equal(t, plain.Len()+len(c.phrases), m.Len())
}
