package demo

import (
	"bytes"
	"embed"
	"fmt"

	"github.com/go-json-experiment/json"
)

// corpusFiles has a file per index and one of queries, in JSON Lines. The texts
// were written for this project. The judgments were made by reading them,
// before any search, and must not be changed to suit a result.
//
//go:embed corpus/*.jsonl
var corpusFiles embed.FS

// A Doc is one document of the corpus.
type Doc struct {
	ID    string `json:"_id"`   // unique: the index's name and a number, "help-001"
	Title string `json:"title"` // a few words
	Body  string `json:"body"`  // a paragraph of 35 to 80 words
}

// A Query is a search with its relevant documents.
type Query struct {
	ID    string `json:"_id"`   // unique among the queries: "q01"
	Index string `json:"index"` // the index to search
	Text  string `json:"text"`  // what a user would type, two to five words
	// Judgments maps ids of relevant documents to grades: 2 answers the query, 1
	// is related or helpful. Documents not in the map are not relevant.
	Judgments map[string]float64 `json:"relevant"`
}

// Indices returns the names of the corpus's indices: a help center, a product
// catalogue and a knowledge base of everyday topics. Their texts use different
// words for the same thing (couch, settee, sofa), and the same word for
// different things (a dripping tap, tap dancing).
func Indices() []string { return []string{"help", "catalogue", "knowledge"} }

// Docs returns the documents of an index of the corpus, sorted by id. The
// caller owns them. It panics for other names.
func Docs(index string) []Doc { return mustReadLines[Doc](index) }

// Queries returns the judged queries, sorted by id. The caller owns them.
func Queries() []Query { return mustReadLines[Query]("queries") }

// A Search is a search of a recorded hour that found nothing.
type Search struct {
	Index string `json:"index"`
	Text  string `json:"text"`
	None  int64  `json:"none"` // how often
}

// Searches returns those of the hour, the most frequent first. The caller owns
// them.
func Searches() []Search { return mustReadLines[Search]("searches") }

// mustReadLines returns the values of an embedded file. It panics if the file
// is malformed, which tests rule out.
func mustReadLines[T any](name string) (values []T) {
	data, err := corpusFiles.ReadFile("corpus/" + name + ".jsonl")
	for line := range bytes.Lines(data) {
		var v T
		if err == nil {
			err = json.Unmarshal(line, &v, json.RejectUnknownMembers(true))
		}
		values = append(values, v)
	}
	if err != nil {
		panic(fmt.Sprintf("demo: %s, line %d: %v", name, len(values), err))
	}
	return values
}
