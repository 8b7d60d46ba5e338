package demo

import (
	"bytes"
	"embed"
	"fmt"

	"github.com/go-json-experiment/json"
)

// corpusFiles holds a file for each index and one of queries, all in JSON
// Lines. The texts were written for this project; the judgments were made by
// reading them, before any search, and must not be changed to suit a result.
//
//go:embed corpus/*.jsonl
var corpusFiles embed.FS

// A Doc is one document of the corpus.
type Doc struct {
	// ID is unique in the corpus: the index's name and a number, "help-001".
	ID string `json:"_id"`
	// Title is a heading of a few words.
	Title string `json:"title"`
	// Body is a paragraph of 35 to 80 words.
	Body string `json:"body"`
}

// An Index is the documents that belong into one index.
type Index struct {
	// Name is the name to give to the index.
	Name string
	// Docs are the documents in the order of their ids.
	Docs []Doc
}

// A Query is a search together with what it should find.
type Query struct {
	// ID is unique among the queries: "q01".
	ID string `json:"_id"`
	// Index is the [Index.Name] of the index to search.
	Index string `json:"index"`
	// Text is what a user would type, two to five words.
	Text string `json:"text"`
	// Judgments maps the ids of the relevant documents to their grade: 2
	// answers the query, 1 is related or helpful. A document that is not in
	// the map is not relevant.
	Judgments map[string]int `json:"relevant"`
}

// Indices returns the corpus: a help center, a product catalogue and a
// knowledge base of everyday topics. Their texts name the same thing by
// different words (couch, settee, sofa), and different things by the same word
// (a dripping tap, tap dancing). The caller owns the result.
//
// Indices panics if an embedded file is malformed, which the tests rule out.
func Indices() []Index {
	names := [...]string{"help", "catalogue", "knowledge"}
	indices := make([]Index, len(names))
	for i, name := range names {
		indices[i] = Index{Name: name, Docs: mustReadLines[Doc](name)}
	}
	return indices
}

// Queries returns the judged queries in the order of their ids. The caller
// owns the result.
//
// Queries panics if the embedded file is malformed, which the tests rule out.
func Queries() []Query { return mustReadLines[Query]("queries") }

// mustReadLines returns the values of the embedded file of that name, and
// panics where [parseLines] fails.
func mustReadLines[T any](name string) []T {
	file := "corpus/" + name + ".jsonl"
	data, err := corpusFiles.ReadFile(file)
	if err != nil {
		panic(fmt.Sprintf("demo: %v", err))
	}
	values, err := parseLines[T](data)
	if err != nil {
		panic(fmt.Sprintf("demo: %s: %v", file, err))
	}
	return values
}

// parseLines returns the value of each line of data. It accepts no empty
// lines, no unknown and no repeated names; errors state the line.
func parseLines[T any](data []byte) ([]T, error) {
	values := make([]T, 0, bytes.Count(data, []byte("\n")))
	for line := range bytes.Lines(data) {
		var v T
		if err := json.Unmarshal(line, &v, json.RejectUnknownMembers(true)); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(values)+1, err)
		}
		values = append(values, v)
	}
	return values, nil
}
