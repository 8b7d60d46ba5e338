package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// A clientSnippet is a program in docs/clients.md.
type clientSnippet struct {
	name     string
	language string // of its block
	mark     string // which only this program has
	engines  []string
	// prepare makes the program ready, and returns what runs it.
	prepare func(t *testing.T, p *docPage, program string) *exec.Cmd
}

var clientSnippets = []clientSnippet{
	{"elasticsearch-py", "python", "from elasticsearch import", []string{"elasticsearch8", "elasticsearch9"}, pythonSnippet},
	{"opensearch-py", "python", "from opensearchpy import", []string{"opensearch2", "opensearch3"}, pythonSnippet},
	{"elasticsearch-js", "js", "@elastic", []string{"elasticsearch8", "elasticsearch9"}, jsSnippet},
	{"java", "java", "java.net", nil, javaSnippet},
	{"opensearch-go", "go", "opensearch-go", []string{"opensearch2", "opensearch3"}, goSnippet},
	{"ruby", "ruby", "net/http", nil, rubySnippet},
}

// TestClientsPageRuns runs the programs of docs/clients.md.
func TestClientsPageRuns(t *testing.T) {
	long(t)
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		programs := slices.DeleteFunc(slices.Clone(clientSnippets), func(c clientSnippet) bool {
			return c.engines != nil && !slices.Contains(c.engines, e.name) || c.engines == nil && e != oneEngine(t)
		})
		if len(programs) == 0 {
			return
		}
		indexDemoTexts(t, e)
		a := setup(t, e, section{
			"profiles": section{"careful": section{"matching": "same"}},
			"matrices": matrices("docs", e.learn(t, pageIndex, func() []string { return []string{"--index", pageIndex} })),
		})
		p := openPage(t, "clients.md", e)
		p.use("127.0.0.1:9280", strings.TrimPrefix(a.url, "http://"))
		var totals []int
		for _, parameters := range []string{"", "?akin=off", "?akin_profile=careful"} {
			totals = append(totals, a.find(t, "docs"+parameters, `{"query":{"match":{"body":"car rental"}}}`).Hits.Total.Value)
		}
		if totals[0] <= totals[1] || totals[1] != totals[2] {
			t.Fatalf("%v hits with akin, without, and with the profile", totals)
		}
		for _, c := range programs {
			t.Run(c.name, func(t *testing.T) { c.run(t, p, a, totals) })
		}
	})
}

// run runs the program and compares what it prints with these numbers of hits.
func (c clientSnippet) run(t *testing.T, p *docPage, a *akin, totals []int) {
	t.Helper()
	i := slices.IndexFunc(p.blocks(c.language), func(block string) bool { return strings.Contains(block, c.mark) })
	if i < 0 {
		t.Fatalf("docs/clients.md has no program in %s with %s", c.language, c.mark)
	}
	cmd := c.prepare(t, p, p.blocks(c.language)[i])
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, &stderr)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) < len(totals) {
		t.Fatalf("printed %q", lines)
	}
	for k, total := range totals {
		if got := regexp.MustCompile(`\d+`).FindString(lines[k]); got != strconv.Itoa(total) {
			t.Errorf("line %d is %q, want %d hits", k+1, lines[k], total)
		}
	}
	if c.name != "opensearch-py" { // which shows no headers of answers
		a.admin.must(t, http.MethodGet, "/_akin/explanations/"+lines[len(totals)], "")
	}
}

func pythonSnippet(t *testing.T, p *docPage, program string) *exec.Cmd {
	t.Helper()
	args, _ := pythonClient("")(t)
	return exec.CommandContext(t.Context(), args[0], "-B", p.write(t, "search.py", program))
}

func jsSnippet(t *testing.T, p *docPage, program string) *exec.Cmd {
	t.Helper()
	args, env := jsClient(t)
	cmd := exec.CommandContext(t.Context(), args[0], p.write(t, "search.js", program))
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

func javaSnippet(t *testing.T, p *docPage, program string) *exec.Cmd {
	t.Helper()
	jdk, err := findJDK(17)
	if err != nil {
		check.Missing(t, "needs a JDK 17 or newer: %v", err)
	}
	return exec.CommandContext(t.Context(), filepath.Join(jdk, "bin", "java"), "-XX:TieredStopAtLevel=1", p.write(t, "Search.java", program))
}

func rubySnippet(t *testing.T, p *docPage, program string) *exec.Cmd {
	t.Helper()
	ruby, err := exec.LookPath("ruby")
	if err != nil {
		check.Missing(t, "needs ruby: %v", err)
	}
	return exec.CommandContext(t.Context(), ruby, p.write(t, "search.rb", program))
}

// goSnippet builds the program with the libraries of the other programs in Go.
func goSnippet(t *testing.T, p *docPage, program string) *exec.Cmd {
	t.Helper()
	goClient("")(t) // skips where the libraries are not to be had
	binary := filepath.Join(p.dir, "search")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", filepath.Join(clientsFolder, "go"), "-o", binary, p.write(t, "search.go", program))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return exec.CommandContext(t.Context(), binary)
}
