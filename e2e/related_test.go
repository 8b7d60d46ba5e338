package e2e

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/akin-search/akin/simmatrix"
)

// The fixture of the tests that look at single searches: an index in which
// "car" and "boat" have related words, and two matrices that disagree on
// which. Document ids are the words of the document, joined by a hyphen.
const relatedIndex = "akin-e2e-related"

const relatedDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0},
	"mappings":{"properties":{"body":{"type":"text"},"title":{"type":"text"},"n":{"type":"integer"},
		"parts":{"type":"nested","properties":{"body":{"type":"text"}}}}}}`

// Matrix A relates car to automobile and boat to ship; matrix B relates car
// to lorry and boat to canoe.
const (
	vectorsA = `car 1 0 0 0 0 0
automobile 0.9 0.1 0 0 0 0
boat 0 0 1 0 0 0
ship 0 0 0.9 0.1 0 0
lorry 0 0 0 0 1 0
canoe 0 0 0 0 0 1
`
	vectorsB = `car 1 0 0 0 0 0
lorry 0.9 0.1 0 0 0 0
boat 0 0 1 0 0 0
canoe 0 0 0.9 0.1 0 0
automobile 0 0 0 0 1 0
ship 0 0 0 0 0 1
`
)

// relatedDocuments are the six single words, some in pairs, and enough others
// for an added term to be as rare as it has to be.
func relatedDocuments() []document {
	texts := []string{
		"car", "car red", "car automobile", "automobile", "lorry", "boat", "boat blue", "boat ship", "ship", "canoe",
	}
	for i := range 50 {
		texts = append(texts, fmt.Sprintf("filler %d", i))
	}
	docs := make([]document, 0, len(texts))
	for i, text := range texts {
		docs = append(docs, document{
			strings.ReplaceAll(text, " ", "-"),
			map[string]any{"body": text, "title": text, "n": i, "parts": []section{{"body": text}}},
		})
	}
	return docs
}

// makeRelated makes the index of the fixture on e. Tests that run at the same
// time share it, so that only those that run by themselves may change it.
func makeRelated(tb testing.TB, e *engine) {
	tb.Helper()
	e.shareIndex(tb, relatedIndex, func() {
		e.remakeIndex(tb, relatedIndex, relatedDefinition)
		e.index(tb, relatedIndex, relatedDocuments())
	})
}

// relatedFiles are the files of matrices by their vectors.
var relatedFiles sync.Map

// relatedFile returns the file of the matrix of the vectors, which is built
// once.
func relatedFile(tb testing.TB, vectors string) string {
	tb.Helper()
	if file, built := relatedFiles.Load(vectors); built {
		return fmt.Sprint(file)
	}
	file := build(tb, "--from-vectors", writeFile(tb, "vectors.txt", vectors))
	relatedFiles.Store(vectors, file)
	return file
}

func encodedFile(tb testing.TB, m *simmatrix.Matrix) string {
	tb.Helper()
	return writeEncoded(tb, "s.akin", func(b *bytes.Buffer) error { return simmatrix.Encode(b, m) })
}

// readMatrix reads the file of a matrix.
func readMatrix(tb testing.TB, path string) *simmatrix.Matrix {
	tb.Helper()
	m, err := simmatrix.Decode(strings.NewReader(readFile(tb, path)))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// pushMatrix pushes a matrix file, makes it active and returns the version.
func pushMatrix(tb testing.TB, redis *redisServer, name, file string) string {
	tb.Helper()
	return strings.TrimSpace(mustAkin(tb, "matrix", "push", "--redis", redis.url, "--name", name, "--activate", file))
}

// matchBody is a search for words in body, of which the ids and scores of the
// first hits are wanted.
func matchBody(words string, size int) string { return pageBody(words, 0, size) }

// pageBody is a search for a page of hits.
func pageBody(words string, from, size int) string {
	return fmt.Sprintf(`{"query":{"match":{"body":%s}},"from":%d,"size":%d,"_source":false}`, quote(words), from, size)
}

// relatedSearch is a search for words in body.
func relatedSearch(words string) string { return matchBody(words, 100) }

const relatedPath = "/" + relatedIndex + "/_search"

// The sorted hits of a search for "car", without and with matrix A, and for "car
// boat" with each matrix.
var (
	plainHits    = sortedWords("car", "car-red", "car-automobile")
	expandedHits = sortedWords("car", "car-red", "car-automobile", "automobile")
	hitsWithA    = sortedWords("car", "car-red", "car-automobile", "automobile", "boat", "boat-blue", "boat-ship", "ship")
	hitsWithB    = sortedWords("car", "car-red", "car-automobile", "lorry", "boat", "boat-blue", "boat-ship", "canoe")
)

func sortedWords(words ...string) string {
	slices.Sort(words)
	return strings.Join(words, " ")
}

// expands reports whether a search of an index for cars finds what is about
// automobiles, too.
func (c cluster) expands(tb testing.TB, index string) bool {
	tb.Helper()
	return strings.Join(c.find(tb, index, relatedSearch("car")).sorted(), " ") == expandedHits
}
