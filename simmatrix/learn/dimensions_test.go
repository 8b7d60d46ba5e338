package learn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// mixedDocuments have words of one of many topics each, and common ones.
func mixedDocuments(topics, perTopic int) [][]string {
	const words, length = 40, 25
	random := rand.New(rand.NewPCG(5, 0))
	var docs [][]string
	for topic := range topics {
		for range perTopic {
			var doc []string
			for range length {
				word := fmt.Sprintf("common%d", random.IntN(20))
				if random.IntN(4) > 0 {
					word = fmt.Sprintf("t%d.%d", topic, random.IntN(words))
				}
				doc = append(doc, word)
			}
			docs = append(docs, doc)
		}
	}
	return docs
}

func TestDimensionsGrowWithCrowding(t *testing.T) {
	for _, tt := range []struct {
		crowding         float64
		dimensions, want int
	}{
		{0, 100, 100},
		{0.04, 100, 100},
		{0.041, 100, 103},
		{0.172, 100, 430},
		{0.281, 100, 703},
		{0.9, 100, 1000},
		{0.02, 10, 10},
		{0.1, 10, 100}, // below 100 the rule does not hold
	} {
		check.Equal(t, tt.want, dimensionsFor(tt.crowding, tt.dimensions), tt.crowding)
	}
}

func TestWordsThatCrowdGetMoreDimensions(t *testing.T) {
	c := corpusOf(mixedDocuments(30, 12)...)
	o := DefaultCorpusOptions()
	o.Dimensions = fewestDimensions
	few := mustLearn(t, c, o).Meta()
	check.That(t, few.CrowdingWarning() != "" && strings.HasPrefix(few.Vectors(), "100 dimensions in place of "), "%v", few.Params)
	o.Dimensions = 0
	all := mustLearn(t, c, o).Meta()
	before := check.Got(strconv.ParseFloat(few.Params[simmatrix.CrowdingParam], 64))(t)
	crowding := check.Got(strconv.ParseFloat(all.Params[simmatrix.CrowdingParam], 64))(t)
	dimensions := check.Got(strconv.Atoi(all.Params[simmatrix.DimensionsParam]))(t)
	check.That(t, dimensions > fewestDimensions && crowding < before, "%d dimensions, crowding %v, before %v", dimensions, crowding, before)
	check.Equal(t, "", all.Params[simmatrix.WantedDimensionsParam])

	v, rare, _, err := c.prepare(&o)
	check.OK(t, err)
	for o.MaxMemory = 1 << 20; check.ErrOf(memoryRoom(c, v, len(rare.terms), dimensions-1, &o)) != nil; o.MaxMemory += 1 << 10 {
	}
	bounded := mustLearn(t, c, o).Meta()
	check.That(t, strings.HasSuffix(bounded.Vectors(), bounded.Params[simmatrix.CrowdingParam]) &&
		strings.Contains(bounded.Vectors(), fmt.Sprintf(" dimensions in place of %d, ", dimensions)), "%s", bounded.Vectors())
}

func TestDimensionsFallToWhatMemorySufficesFor(t *testing.T) {
	c, o := corpusOf(zipfDocuments(300, 30, 2000)...), DefaultCorpusOptions()
	v, rare, _, err := c.prepare(&o)
	check.OK(t, err)
	for _, dimensions := range []int{400, 300, fewestDimensions} {
		o.Dimensions, o.MaxMemory = fewestDimensions, 1
		for ; check.ErrOf(memoryRoom(c, v, len(rare.terms), dimensions, &o)) != nil; o.MaxMemory += 1 << 16 {
		}
		got, room := c.affordable(v, rare, 1000, &o)
		check.That(t, got <= dimensions && got >= max(dimensions*9/10-1, fewestDimensions) && room >= 0, "%d dimensions, room for %d bytes", got, room)
	}
}

// Of rare terms in long documents, contexts take more than all else.
func TestMemoryForLearnedTermsSufficesForRareOnes(t *testing.T) {
	c, o := corpusOf(zipfDocuments(200, 400, 20_000)...), DefaultCorpusOptions()
	o.Neighbors = 20
	v, rare, _, err := c.prepare(&o)
	check.OK(t, err)
	v.order(c.sequence)
	few := o
	few.Dimensions = fewestDimensions
	rare.opts = &few
	_, _, err = learnVectors(t.Context(), v, rare, math.MaxInt64, nil)
	check.OK(t, err)
	for dimensions, times := range map[int]int{fewestDimensions: 1, fewestDimensions + 50: 2} {
		for o.MaxMemory = 1 << 20; check.ErrOf(memoryRoom(c, v, len(rare.terms), dimensions, &o)) != nil; o.MaxMemory += 1 << 16 {
		}
		learned := 0
		meta := check.Got(FromCorpus(t.Context(), c, o, func(stage string, done, _ int) {
			if stage == "co-occurrence" && done == 0 {
				learned++
			}
		}))(t).Meta()
		check.That(t, learned == times && strings.Contains(meta.Vectors(), " dimensions in place of "), "learned %d times: %s", learned, meta.Vectors())
	}
}

// TestOddIndexesLearnOrSayWhyNot takes what real indexes have.
func TestOddIndexesLearnOrSayWhyNot(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	same := func(docs int, text ...string) (all [][]string) {
		for range docs {
			all = append(all, text)
		}
		return all
	}
	numbers := func(form string) (all [][]string) {
		for range 400 {
			all = append(all, []string{fmt.Sprintf(form, random.IntN(1_000_000)), fmt.Sprintf(form, random.IntN(1_000_000))})
		}
		return all
	}
	languages := slices.Concat(zipfDocuments(200, 20, 300), func() [][]string {
		docs := zipfDocuments(200, 20, 300)
		for _, d := range docs {
			for k := range d {
				d[k] = "ü" + d[k]
			}
		}
		return docs
	}())
	spelled := func(docs [][]string, letters ...string) [][]string {
		for _, d := range docs {
			for k, word := range d {
				d[k] = ""
				for _, digit := range word[1:] {
					d[k] += letters[digit-'0']
				}
			}
		}
		return docs
	}
	for _, tt := range []struct {
		name  string
		docs  [][]string
		terms int // 0: no vocabulary
	}{
		{"one document", same(1, "a", "b", "c"), 0},
		{"400 documents that are the same", same(400, "a", "b", "c", "d"), 4},
		{"400 documents of one word", same(400, "a"), 1},
		{"product numbers", numbers("%d"), 0},
		{"product numbers with letters", numbers("ab%d"), 0},
		{"two languages in one field", languages, 600},
		{"German", spelled(zipfDocuments(200, 20, 300), "ä", "bö", "cü", "ß", "Ü", "f", "größe", "h", "i", "straßen"), 300},
		{"Chinese", spelled(zipfDocuments(200, 20, 300), "猫", "在", "沙", "发", "上", "睡", "觉", "狗", "花", "园"), 300},
		{"source code", spelled(zipfDocuments(200, 20, 300), "ptr_", "x", "(ctx)", "->", "::", "i++", "{", "}", "//", "\t"), 300},
	} {
		m, err := FromCorpus(t.Context(), corpusOf(tt.docs...), DefaultCorpusOptions(), nil)
		if tt.terms == 0 {
			check.Error(t, simmatrix.ErrNoVocabulary, err, tt.name)
			continue
		}
		check.Must(t, err == nil, "%s: %v", tt.name, err)
		check.That(t, m.Len() > tt.terms*9/10 && m.Len() <= tt.terms, "%s: %d terms, want %d", tt.name, m.Len(), tt.terms)
	}
}

func TestOnlyTheMostFrequentTermsAreLearned(t *testing.T) {
	c, o := corpusOf(zipfDocuments(600, 30, 2000)...), smallOptions()
	o.MaxTerms = 100
	plan := check.Got(c.Plan(&o))(t)
	check.Equal(t, Plan{Distinct: len(c.terms), Learned: 100, Rare: 100}, plan)
	m := mustLearn(t, c, o)
	check.Equal(t, 200, m.Len())
	frequent := slices.Clone(c.docFreqs)
	slices.Sort(frequent)
	slices.Reverse(frequent)
	for term, row := range m.Rows() {
		check.That(t, row.DocFreq() >= frequent[199], "%s is in %d documents, others are in more", term, row.DocFreq())
		for n := range row.All() {
			check.That(t, n.DocFreq >= frequent[99], "%s is a neighbor, in %d documents", n.Term, n.DocFreq)
		}
	}
}

// Titles are short, so that there are many of them before there are too many
// words: each takes some bytes of its own.
func TestManyShortDocumentsTakeBoundedMemory(t *testing.T) {
	c := corpusOf(zipfDocuments(100, 4, 50)...)
	c.docs = 5_000_000
	check.OK(t, c.checkMemory(200<<20))
	check.Message(t, "5000000 documents take about 114 MB of 64 MB", c.checkMemory(64<<20))
}
