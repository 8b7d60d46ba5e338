package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// The fixture of the differential tests: documents of made words with Zipf's
// frequencies. Everything comes from fixed seeds, so that search number n is
// the same in every run.
const (
	openWords   = 400
	hiddenWords = 300
	openRoots   = 1200
	hiddenRoots = 150
)

// generatedIndex names the index of so many shards.
func generatedIndex(shards int) string { return fmt.Sprintf("akin-e2e-generated-%d", shards) }

// openAlias is an alias of the index that shows only the open documents. The
// hidden ones count in the statistics of terms and are never found: a neighbor
// that only they have is written into a search and can have no effect.
func openAlias(shards int) string { return generatedIndex(shards) + "-open" }

// newRand returns the random numbers of the given stream.
func newRand(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(20180719, stream)) }

// madeWord returns the word of a number: five letters that no stemmer of
// English shortens. Words of different endings differ.
func madeWord(i int, ending string) string {
	const consonants, vowels = "bdfglmnprtvz", "aeiou"
	var w strings.Builder
	for range 2 {
		w.WriteByte(consonants[i%len(consonants)])
		i /= len(consonants)
		w.WriteByte(vowels[i%len(vowels)])
		i /= len(vowels)
	}
	return w.String() + ending
}

func openWord(i int) string   { return madeWord(i, "k") }
func hiddenWord(i int) string { return madeWord(i, "m") }

// A speaker chooses words: the first of the vocabulary often, the last rarely.
type speaker struct {
	*rand.Rand
	open, hidden *rand.Zipf
}

func newSpeaker(stream uint64) speaker {
	r := newRand(stream)
	return speaker{r, rand.NewZipf(r, 1.15, 4, openWords-1), rand.NewZipf(r, 1.05, 8, hiddenWords-1)}
}

// word returns an open word, sometimes with an ending that stemmers take off.
func (s speaker) word() string {
	return openWord(int(s.open.Uint64())) + pick(s, "", "", "", "", "s", "ing")
}

// words returns between least and most words.
func (s speaker) words(least, most int) string {
	out := make([]string, least+s.IntN(most-least+1))
	for i := range out {
		out[i] = s.word()
	}
	return strings.Join(out, " ")
}

// hiddenText returns words that are in no open document, and some that are.
func (s speaker) hiddenText() string {
	var out []string
	for range 4 + s.IntN(12) {
		out = append(out, hiddenWord(int(s.hidden.Uint64())))
	}
	return strings.Join(out, " ") + " " + s.words(0, 3)
}

// pick returns one of several values.
func pick[T any](s speaker, values ...T) T { return values[s.IntN(len(values))] }

// chance reports true in one of n cases.
func (s speaker) chance(n int) bool { return s.IntN(n) == 0 }

// generatedDefinition is the index of the documents for an engine.
func generatedDefinition(e *engine, shards int) string {
	join := ""
	if e.scripts { // the engines with scripts have the module for parents, too
		join = `"relation":{"type":"join","relations":{"question":"reply"}},`
	}
	return fmt.Sprintf(`{"settings":{"number_of_shards":%d,"number_of_replicas":0,"index.query.default_field":["title","body"]},
		"aliases":{%q:{"filter":{"term":{"open":true}}}},
		"mappings":{"dynamic":false,"properties":{%s
			"title":{"type":"text","fields":{"raw":{"type":"keyword"}}},
			"body":{"type":"text","fields":{"stem":{"type":"text","analyzer":"english"}}},
			"note":{"type":"text","similarity":"boolean"},
			"answer":{"type":"text"},
			"tag":{"type":"keyword"},"uid":{"type":"keyword"},"n":{"type":"integer"},"price":{"type":"float"},"open":{"type":"boolean"},
			"parts":{"type":"nested","properties":{"text":{"type":"text"},"open":{"type":"boolean"}}}}}}`,
		shards, openAlias(shards), join)
}

// generatedDocument returns the fields of root document i.
func generatedDocument(s speaker, i int, open bool) section {
	text := s.words
	if !open {
		text = func(int, int) string { return s.hiddenText() }
	}
	doc := section{
		"title": text(1, 5), "body": text(3, 20), "open": open,
		"tag": fmt.Sprintf("t%d", s.open.Uint64()%9), "n": i % 97, "price": float64(s.IntN(1000)) / 8,
	}
	if s.chance(3) {
		doc["note"] = text(1, 4)
	}
	var parts []section
	for range s.IntN(3) {
		parts = append(parts, section{"text": s.words(1, 6), "open": true})
	}
	if s.chance(4) { // hidden parts of documents that are found: searches leave them out by a filter
		parts = append(parts, section{"text": s.hiddenText(), "open": false})
	}
	if len(parts) > 0 {
		doc["parts"] = parts
	}
	return doc
}

// makeGenerated makes the index of the fixture on e with its documents.
func makeGenerated(t *testing.T, e *engine, shards int) {
	t.Helper()
	e.shareIndex(t, generatedIndex(shards), func() { writeGenerated(t, e, shards) })
}

func writeGenerated(t *testing.T, e *engine, shards int) {
	t.Helper()
	e.remakeIndex(t, generatedIndex(shards), generatedDefinition(e, shards))
	s := newSpeaker(1)
	var docs []document
	for i := range openRoots + hiddenRoots {
		id, open := fmt.Sprintf("d%d", i), i%9 != 8
		doc := generatedDocument(s, i, open)
		doc["uid"] = id
		replies := s.IntN(3)
		if e.scripts {
			doc["relation"] = "question"
		}
		docs = append(docs, document{id, doc})
		for k := range replies {
			reply := section{"answer": s.words(1, 8), "open": open, "n": k, "uid": fmt.Sprintf("%sr%d", id, k)}
			if k > 0 || !open { // hidden replies to documents that are found, as with parts
				reply["answer"], reply["open"] = s.hiddenText(), false
			}
			if e.scripts {
				reply["relation"], reply["_routing"] = section{"name": "reply", "parent": id}, id
				docs = append(docs, document{fmt.Sprintf("%sr%d", id, k), reply})
			}
		}
	}
	e.index(t, generatedIndex(shards), docs)
	e.merge(t, generatedIndex(shards)) // so that early ends of a search come at the same document
}

// hiddenMatrix returns the file of a matrix in which the neighbors of the open
// words are hidden words.
func hiddenMatrix(t *testing.T) string {
	t.Helper()
	return generatedMatrix(t, 2, func(s speaker) string { return hiddenWord(int(s.hidden.Uint64())) })
}

// openMatrix returns the file of a matrix in which the neighbors of the open
// words are open words.
func openMatrix(t *testing.T) string {
	t.Helper()
	return generatedMatrix(t, 3, func(s speaker) string { return openWord(s.IntN(openWords)) })
}

// generatedMatrix gives every open word up to six neighbors.
func generatedMatrix(t *testing.T, stream uint64, neighbor func(speaker) string) string {
	t.Helper()
	s := newSpeaker(stream)
	var lines strings.Builder
	for i := range openWords {
		seen := map[string]bool{openWord(i): true}
		for range 1 + s.IntN(6) {
			if n := neighbor(s); !seen[n] {
				seen[n] = true
				fmt.Fprintf(&lines, "%s\t%s\t%.3f\n", openWord(i), n, 0.05+0.95*s.Float64())
			}
		}
	}
	return build(t, "--from-tsv", writeFile(t, "pairs.tsv", lines.String()))
}
