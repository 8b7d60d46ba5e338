package e2e

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
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
	grades   map[string]int
}

// loadCollection reads a collection from the folder AKIN_DATA; the test is
// skipped where it is absent.
func loadCollection(t *testing.T, name string) *collection {
	t.Helper()
	root := cmp.Or(os.Getenv("AKIN_DATA"), filepath.Join("..", "..", "shared", "data"))
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("needs the judged collection %s: %v\nname the folder that has it in AKIN_DATA", name, err)
	}
	c := &collection{name: name}
	known := map[string]bool{}
	eachLine(t, filepath.Join(dir, "corpus.jsonl"), func(line string) error {
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
	grades := loadJudgments(t, filepath.Join(dir, "qrels.tsv"), known)
	eachLine(t, filepath.Join(dir, "queries.jsonl"), func(line string) error {
		var q struct {
			ID   string `json:"_id"`
			Text string
		}
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			return err
		}
		if len(relevantGrades(grades[q.ID])) > 0 {
			c.queries = append(c.queries, judgedQuery{q.ID, q.Text, grades[q.ID]})
		}
		return nil
	})
	if len(c.docs) == 0 || len(c.queries) == 0 {
		t.Fatalf("%s: %d documents, %d judged queries", dir, len(c.docs), len(c.queries))
	}
	return c
}

// loadJudgments reads lines of query, document and grade behind a header line
// and keeps those of known documents.
func loadJudgments(t *testing.T, path string, known map[string]bool) map[string]map[string]int {
	t.Helper()
	grades := map[string]map[string]int{}
	header := true
	eachLine(t, path, func(line string) error {
		if header {
			header = false
			return nil
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 3 {
			return fmt.Errorf("%d fields, want 3", len(fields))
		}
		grade, err := strconv.Atoi(fields[2])
		if err != nil || !known[fields[1]] {
			return err
		}
		if grades[fields[0]] == nil {
			grades[fields[0]] = map[string]int{}
		}
		grades[fields[0]][fields[1]] = grade
		return nil
	})
	return grades
}

// eachLine calls f for every line of a file.
func eachLine(t *testing.T, path string, f func(line string) error) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 4<<20)
	for n := 1; scanner.Scan(); n++ {
		if err := f(scanner.Text()); err != nil {
			t.Fatalf("%s:%d: %v", path, n, err)
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func TestOnlyQueriesWithARelevantKnownDocumentAreJudged(t *testing.T) {
	root := newDir(t, "collection")
	t.Setenv("AKIN_DATA", root)
	dir := filepath.Join(root, "tiny")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"corpus.jsonl":  `{"_id":"d1","title":"A","text":"b"}` + "\n" + `{"_id":"d2","title":"","text":"c"}` + "\n",
		"queries.jsonl": `{"_id":"q1","text":"one"}` + "\n" + `{"_id":"q2","text":"two"}` + "\n" + `{"_id":"q3","text":"three"}` + "\n",
		"qrels.tsv":     "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\tgone\t1\nq2\td2\t0\nq3\tgone\t1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := loadCollection(t, "tiny")
	ids := slices.Collect(func(yield func(string) bool) {
		for _, q := range c.queries {
			if !yield(q.id) {
				return
			}
		}
	})
	if !slices.Equal(ids, []string{"q1"}) || len(c.queries[0].grades) != 1 {
		t.Errorf("judged queries %v, %+v; want q1 with one grade", ids, c.queries)
	}
	if got := c.docs[0].fields["body"]; got != "A \n b" {
		t.Errorf("body = %q", got)
	}
}
