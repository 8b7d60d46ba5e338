package proxy

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
)

// documentedTable returns the rows of the table of docs/queries.md with the
// heading given, cell by cell.
func documentedTable(t *testing.T, heading string) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "queries.md"))
	check.OK(t, err)
	_, table, found := strings.Cut(string(text), "\n"+heading)
	check.Must(t, found, "docs/queries.md has no table with the heading %s", heading)
	var rows [][]string
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") && len(rows) > 0 {
			break
		}
		if strings.HasPrefix(line, "| ") {
			rows = append(rows, strings.Split(strings.Trim(line, "| \n"), " | "))
		}
	}
	return rows
}

var documentedName = regexp.MustCompile("`([^`]+)`")

func TestDocumentedEndpointsAreTheRoutesOfTheRouter(t *testing.T) {
	treatments := map[bool]string{false: "rewritten", true: "rendered, then rewritten"}
	methods := map[string][]string{}
	for _, r := range newRouter(nil, nil).Routes() {
		methods[r.Path] = append(methods[r.Path], r.Method)
	}
	want := map[string]string{}
	for path, all := range methods {
		slices.Sort(all)
		want[path] = strings.Join(all, ", ") + ": " + treatments[(&route{shape: path}).isTemplate()]
	}
	got := map[string]string{}
	for _, row := range documentedTable(t, "| methods | paths | what is done |\n") {
		for _, m := range documentedName.FindAllStringSubmatch(row[1], -1) {
			got[ginNames.Replace(m[1])] = row[0] + ": " + row[2]
		}
	}
	check.Equal(t, want, got, "the routes of the router and docs/queries.md differ (want the code, got the page)")
}

func TestDocumentedReasonsOfTheProxyAreThoseOfTheCode(t *testing.T) {
	want := ownReasons(t)
	slices.Sort(want)
	check.Equal(t, want, slices.Sorted(slices.Values(reasons())), "the reasons of the proxy and those that metrics begin with differ (-code +metrics)")
	var got []string
	for _, row := range documentedTable(t, "| reason | why the proxy sends a search as it came |\n") {
		for _, m := range documentedName.FindAllStringSubmatch(row[0], -1) {
			got = append(got, m[1])
		}
	}
	slices.Sort(got)
	check.Equal(t, want, got, "the reasons of the proxy and of docs/queries.md differ (want the code, got the page)")
}

// ownReasons returns the values of the constants whose names begin with
// "reason" or "Reason", or "Hidden" in package answer.
func ownReasons(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	check.OK(t, err)
	paths = append(paths, "answer/visible.go")
	var reasons []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		check.OK(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "reason") && !strings.HasPrefix(spec.Names[0].Name, "Hidden") && !strings.HasPrefix(spec.Names[0].Name, "Reason") || len(spec.Values) != 1 {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				value, err := strconv.Unquote(literal.Value)
				check.OK(t, err)
				reasons = append(reasons, value)
			}
			return true
		})
	}
	return reasons
}
