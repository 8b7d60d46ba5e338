package e2e

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// What generated documents are like. Words come by Zipf's law; a document has
// two of the topics, and words of a topic come together as related words do.
const (
	vocabulary   = 40_000
	topics       = 300
	topicWords   = 500
	commonShare  = 0.55 // of the words of a document
	firstTopic   = 0.85 // up to here the first topic, then the second
	medianLength = 80   // words
	leastLength  = 15
	mostLength   = 400
)

// A textGenerator makes the same documents in every run.
type textGenerator struct {
	rng         *rand.Rand
	words       []string
	common      zipf
	topic, term zipf
	topics      [][]int
	docFreqs    []int
	docs        int
	samples     [][]int // the distinct words of some documents
	every       int     // one document in so many is a sample
}

// newTextGenerator returns a generator of docs documents.
func newTextGenerator(docs int) *textGenerator {
	g := &textGenerator{
		rng:      rand.New(rand.NewPCG(1, 2)),
		common:   newZipf(vocabulary, 2.7),
		topic:    newZipf(topics, 10),
		term:     newZipf(topicWords, 5),
		docFreqs: make([]int, vocabulary),
		every:    max(1, docs/2000),
	}
	for i := range vocabulary {
		g.words = append(g.words, syllables(i))
	}
	for range topics {
		words := make([]int, topicWords)
		for k := range words {
			// Evenly over the logarithms of the ranks, but none of the commonest.
			words[k] = int(50 * math.Pow(vocabulary/50, g.rng.Float64()))
		}
		g.topics = append(g.topics, words)
	}
	return g
}

// syllables spells a number as a word that no stemmer changes.
func syllables(i int) string {
	const consonants, vowels = "bdfghjlmnprstvwz", "aiou"
	var b strings.Builder
	for i += 64; i > 0; i /= 64 {
		b.WriteByte(consonants[i%16])
		b.WriteByte(vowels[i/16%4])
	}
	b.WriteByte('k')
	return b.String()
}

// text makes the next document.
func (g *textGenerator) text() string {
	length := int(medianLength * math.Exp(g.rng.NormFloat64()/2))
	length = min(max(length, leastLength), mostLength)
	first, second := g.topics[g.topic.draw(g.rng)], g.topics[g.topic.draw(g.rng)]
	var text strings.Builder
	ids := make([]int, length)
	for k := range ids {
		switch u := g.rng.Float64(); {
		case u < commonShare:
			ids[k] = g.common.draw(g.rng)
		case u < firstTopic:
			ids[k] = first[g.term.draw(g.rng)]
		default:
			ids[k] = second[g.term.draw(g.rng)]
		}
		text.WriteString(g.words[ids[k]])
		text.WriteByte(' ')
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for _, id := range ids {
		g.docFreqs[id]++
	}
	if g.docs%g.every == 0 {
		g.samples = append(g.samples, ids)
	}
	g.docs++
	return text.String()
}

// queries returns n texts of length words that are next to each other in a document
// and are neither very rare nor in more than a tenth of the documents made.
func (g *textGenerator) queries(tb testing.TB, n, length int) []string {
	tb.Helper()
	rng := rand.New(rand.NewPCG(3, uint64(length)))
	var texts []string
	for _, at := range rng.Perm(len(g.samples)) {
		ids := slices.Clone(g.samples[at])
		rng.Shuffle(len(ids), func(i, k int) { ids[i], ids[k] = ids[k], ids[i] })
		var words []string
		for _, id := range ids {
			if df := g.docFreqs[id]; len(words) < length && df >= 20 && df <= g.docs/10 {
				words = append(words, g.words[id])
			}
		}
		if len(words) == length && len(texts) < n {
			texts = append(texts, strings.Join(words, " "))
		}
	}
	if len(texts) < n {
		tb.Fatalf("%d texts of %d words, want %d", len(texts), length, n)
	}
	return texts
}

// A zipf draws ranks from 0, rank r with a probability in proportion to
// 1/(r + offset): the cumulated probabilities.
type zipf []float64

func newZipf(ranks int, offset float64) zipf {
	z := make(zipf, ranks)
	sum := 0.0
	for r := range z {
		sum += 1 / (float64(r) + offset)
		z[r] = sum
	}
	for r := range z {
		z[r] /= sum
	}
	return z
}

func (z zipf) draw(rng *rand.Rand) int {
	at, _ := slices.BinarySearch(z, rng.Float64())
	return min(at, len(z)-1)
}
