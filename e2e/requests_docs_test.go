package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/requests"
)

// queriesDocument returns the text of docs/queries.md.
func queriesDocument(t *testing.T) string {
	t.Helper()
	return readFile(t, filepath.Join(repository, "docs", "queries.md"))
}

// TestDocumentedSearchesStandInTheCorpus checks that the examples of the document were
// tried on real engines.
func TestDocumentedSearchesStandInTheCorpus(t *testing.T) {
	searches := map[string]bool{}
	for _, f := range requestFiles(t) {
		searches[requests.Compact(f.Body)] = true
		wanted, _, _ := strings.Cut(f.Want, "\n"+requests.Separator)
		searches[requests.Compact(wanted)] = true
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(queriesDocument(t), -1)
	if len(blocks) == 0 {
		t.Error("no block found")
	}
	for _, block := range blocks {
		if !searches[requests.Compact(block[1])] {
			t.Errorf("in no file of testdata/requests: %s", block[1])
		}
	}
}

// TestDocumentedNamesStandInTheCorpus looks for a request with each of the
// queries, retrievers, members and parameters that the document names.
func TestDocumentedNamesStandInTheCorpus(t *testing.T) {
	var all strings.Builder
	for _, f := range requestFiles(t) {
		all.WriteString(f.Target + "\n" + strings.Join(f.Headers, "\n") + f.Body + "\n")
	}
	name := regexp.MustCompile("`([a-z_]+)`")
	n := 0
	for _, heading := range []string{"| query | ", "| queries | ", "| retriever | ", "| member | ", "| parameter | "} {
		for _, cell := range firstCells(queriesDocument(t), heading) {
			for _, m := range name.FindAllStringSubmatch(cell, -1) {
				n++
				used := regexp.MustCompile(`"` + m[1] + `" ?:|[?&]` + m[1] + `=`)
				if !used.MatchString(all.String()) {
					t.Errorf("%s%s: in no file of testdata/requests", heading, m[1])
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("%d names found", n)
	}
}

// firstCells returns the first cell of each row of the tables whose heading
// begins with the words given.
func firstCells(document, heading string) []string {
	var cells []string
	inside := false
	for line := range strings.Lines(document) {
		if strings.HasPrefix(line, heading) {
			inside = true
		} else if inside = inside && strings.HasPrefix(line, "|"); inside {
			cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
			cells = append(cells, cell)
		}
	}
	return cells
}
