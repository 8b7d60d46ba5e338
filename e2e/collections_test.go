package e2e

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/tools/evaluate"
)

// A collection is a set of documents with judged queries.
type collection struct {
	name    string
	docs    []document
	queries []judgedQuery
}

// A judgedQuery is a query for which at least one document of the collection
// is relevant.
type judgedQuery struct {
	id, text string
	grades   map[string]float64
}

// titlesOnly ends the name of a collection whose queries have a title and a
// text, of which only the title is to be searched for.
const titlesOnly = "-titles"

// threeTermsOnly ends the name of a collection of whose queries only the three
// terms of highest idf are to be searched for.
const threeTermsOnly = "-three"

// A termVector is a term of a text, as _termvectors has it.
type termVector struct {
	DocFreq int `json:"doc_freq"`
	Tokens  []struct {
		Start int `json:"start_offset"`
		End   int `json:"end_offset"`
	}
}

// threeTerms returns the collection with each query cut down to the words of its
// three rarest terms in the collection's index, ties in byte order.
func (e *engine) threeTerms(tb testing.TB, c *collection) *collection {
	tb.Helper()
	short := &collection{name: c.name + threeTermsOnly, docs: c.docs}
	for _, q := range c.queries {
		vectors := ask[struct {
			TermVectors map[string]struct {
				Terms map[string]termVector
			} `json:"term_vectors"`
		}](tb, e.cluster, http.MethodPost, "/"+judgedIndexName(c)+"/_termvectors?realtime=false",
			`{"doc":{"body":`+quote(q.text)+`},"fields":["body"],"term_statistics":true,"positions":false}`)
		found := vectors.TermVectors["body"].Terms
		maps.DeleteFunc(found, func(_ string, v termVector) bool { return v.DocFreq == 0 })
		rarest := slices.SortedFunc(maps.Keys(found), func(a, b string) int {
			return cmp.Or(cmp.Compare(found[a].DocFreq, found[b].DocFreq), strings.Compare(a, b))
		})
		text := utf16.Encode([]rune(q.text)) // in which engines count
		var words []string
		for _, term := range rarest[:min(3, len(rarest))] {
			first := found[term].Tokens[0]
			words = append(words, string(utf16.Decode(text[first.Start:first.End])))
		}
		short.queries = append(short.queries, judgedQuery{q.id, strings.Join(words, " "), q.grades})
	}
	return short
}

// loadCollection reads a collection.
func loadCollection(tb testing.TB, name string) *collection {
	tb.Helper()
	folder, titles := strings.CutSuffix(name, titlesOnly)
	dir := check.Data(tb, folder)
	c := &collection{name: name}
	known := map[string]bool{}
	eachLine(tb, filepath.Join(dir, "corpus.jsonl"), func(line string) error {
		var d struct {
			ID    string `json:"_id"`
			Title string
			Text  string
		}
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			return err
		}
		known[d.ID] = true
		c.docs = append(c.docs, document{d.ID, map[string]any{"body": d.Title + " \n " + d.Text}})
		return nil
	})
	grades := loadJudgments(tb, dir, known)
	eachLine(tb, filepath.Join(dir, "queries.jsonl"), func(line string) error {
		var q struct {
			ID    string `json:"_id"`
			Title string
			Text  string
		}
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			return err
		}
		text := q.Text
		switch {
		case titles:
			text = q.Title
		case q.Title != "":
			text = q.Title + " \n " + q.Text
		}
		if len(evaluate.Relevant(grades[q.ID])) > 0 {
			c.queries = append(c.queries, judgedQuery{q.ID, text, grades[q.ID]})
		}
		return nil
	})
	if len(c.docs) == 0 || len(c.queries) == 0 {
		tb.Fatalf("%s: %d documents, %d judged queries", dir, len(c.docs), len(c.queries))
	}
	return c
}

// loadJudgments reads the judgments in a folder, qrels.tsv or several files
// candidates_*.tsv: lines of query, document, grade and what else there is,
// behind a header line. It keeps those of known documents.
func loadJudgments(tb testing.TB, dir string, known map[string]bool) map[string]map[string]float64 {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "candidates_*.tsv"))
	if err != nil {
		tb.Fatal(err)
	}
	if len(files) == 0 {
		files = []string{filepath.Join(dir, "qrels.tsv")}
	}
	grades := map[string]map[string]float64{}
	for _, path := range files {
		header := true
		eachLine(tb, path, func(line string) error {
			if header {
				header = false
				return nil
			}
			fields := strings.Split(line, "\t")
			if len(fields) < 3 {
				return fmt.Errorf("%d fields, want at least 3", len(fields))
			}
			grade, err := strconv.ParseFloat(fields[2], 64)
			if err != nil || !known[fields[1]] {
				return err
			}
			if grades[fields[0]] == nil {
				grades[fields[0]] = map[string]float64{}
			}
			grades[fields[0]][fields[1]] = grade
			return nil
		})
	}
	return grades
}

// eachLine calls f for every line of a file.
func eachLine(tb testing.TB, path string, f func(line string) error) {
	tb.Helper()
	file, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 4<<20)
	for n := 1; scanner.Scan(); n++ {
		if err := f(scanner.Text()); err != nil {
			tb.Fatalf("%s:%d: %v", path, n, err)
		}
	}
	if err := scanner.Err(); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
}
