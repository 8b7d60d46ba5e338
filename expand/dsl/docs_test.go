package dsl

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/reason"
)

// documentedRows returns the rows of all tables of docs/queries.md whose
// heading begins with the words given: the names in code spans of each cell.
func documentedRows(t *testing.T, heading string) [][][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "queries.md"))
	check.OK(t, err)
	var rows [][][]string
	inside := false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, heading):
			inside = true
		case !strings.HasPrefix(line, "|"):
			inside = false
		case inside && !strings.HasPrefix(line, "|---"):
			var row [][]string
			for cell := range strings.SplitSeq(strings.Trim(line, "|\n"), " |") {
				row = append(row, codeSpans(cell))
			}
			rows = append(rows, row)
		}
	}
	check.Must(t, len(rows) != 0, "docs/queries.md has no table with the heading %s", heading)
	return rows
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

func codeSpans(text string) []string {
	var names []string
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

func TestDocumentedQueriesAreThoseOfTheCode(t *testing.T) {
	type treatment struct {
		Read            bool
		Inside, Outside []string
		Reason          string
	}
	want := map[string]treatment{}
	for name, k := range kinds {
		want[name] = treatment{k.read != nil, k.inside, k.outside, string(k.reason)}
	}
	got := map[string]treatment{}
	for _, row := range documentedRows(t, "| query | what is expanded |") {
		for _, name := range row[0] {
			got[name] = treatment{Read: true}
		}
	}
	for _, row := range documentedRows(t, "| query | looks into | does not change |") {
		for _, name := range row[0] {
			got[name] = treatment{Inside: row[1], Outside: row[2]}
		}
	}
	for _, row := range documentedRows(t, "| queries | reason |") {
		for _, name := range row[0] {
			got[name] = treatment{Reason: row[1][0]}
		}
	}
	check.Equal(t, want, got, "kinds and docs/queries.md differ (want the code, got the page)")
}

func TestDocumentedRetrieversAreThoseOfTheCode(t *testing.T) {
	got := map[string]string{}
	for _, row := range documentedRows(t, "| retriever | looks into |") {
		for _, name := range row[0] {
			got[name] = row[1][0]
		}
	}
	check.Equal(t, retrievers, got, "retrievers and docs/queries.md differ (want the code, got the page)")
}

// reasonsOfProxy is the heading of the reasons that are the proxy's own.
const reasonsOfProxy = "| reason | why the proxy "

func TestDocumentedReasonsAreThoseOfTheCode(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "reason", "reason.go"), nil, 0)
	check.OK(t, err)
	var want []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			literal, _ := spec.Values[0].(*ast.BasicLit)
			value, err := strconv.Unquote(literal.Value)
			check.OK(t, err)
			want = append(want, value)
		}
		return true
	})
	var got []string
	for _, row := range documentedRows(t, "| reason | why ") {
		got = append(got, row[0]...) // a heading has none
	}
	for _, row := range documentedRows(t, reasonsOfProxy) {
		got = slices.DeleteFunc(got, func(name string) bool { return slices.Contains(row[0], name) })
	}
	slices.Sort(want)
	slices.Sort(got)
	var all []string
	for _, r := range reason.All() {
		all = append(all, string(r))
	}
	slices.Sort(all)
	check.Equal(t, want, all, "the reasons of reason.go and reason.All differ (-code +All)")
	check.Equal(t, want, got, "the reasons of reason.go and of docs/queries.md differ (want the code, got the page)")
}
