package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/demo"
)

// root is the folder of the repository.
var root = filepath.Join("..", "..")

// papers repeats the papers' experiments, next to the package that follows them.
const papers = "simmatrix/softcosine/PAPERS.md"

// userTexts returns the text of every document for users, by name.
func userTexts(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	check.OK(t, err)
	texts := map[string]string{}
	names = append(names, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, filepath.FromSlash(papers)))
	for _, name := range names {
		texts[filepath.Base(name)] = read(t, name)
	}
	return texts
}

// blocks returns the fenced blocks of a language.
func blocks(text, language string) []string {
	var found []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

func TestEveryBlockOfTheDocumentsLoads(t *testing.T) {
	n := 0
	for name, text := range userTexts(t) {
		for _, block := range blocks(text, "yaml") {
			n++
			if _, err := configs.Parse(name, []byte(block)); err != nil {
				t.Errorf("%v\n%s", err, block)
			}
		}
		for _, block := range blocks(text, "json") {
			check.That(t, json.Valid([]byte(block)), "%s: not JSON:\n%s", name, block)
		}
	}
	if n == 0 {
		t.Error("no block found")
	}
}

// anchors are the names of the headings of a page, as GitHub makes them.
func anchors(page string) map[string]bool {
	found := map[string]bool{"": true}
	page = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(page, "")
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		found[strings.ReplaceAll(name, " ", "-")] = true
	}
	return found
}

func TestEveryLinkOfTheDocumentsLeadsSomewhere(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	check.OK(t, err)
	for _, name := range append(names, filepath.Join(root, "README.md"), filepath.Join(root, filepath.FromSlash(papers))) {
		for _, m := range regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`).FindAllStringSubmatch(read(t, name), -1) {
			if strings.Contains(m[1], "://") || m[1] == "" && m[2] == "" {
				continue
			}
			to := name
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(name), m[1])
			}
			if info, err := os.Stat(to); err != nil {
				t.Errorf("%s: %s: %v", name, m[0], err)
			} else if !info.IsDir() && !anchors(read(t, to))[m[2]] {
				t.Errorf("%s: %s has no heading #%s", name, to, m[2])
			}
		}
	}
}

// commands returns the commands of a document's shell blocks, in which a quoted
// text may have several lines.
func commands(text string) []string {
	var found []string
	for _, block := range blocks(text, "sh") {
		command := ""
		for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", "")) {
			if command == "" && strings.HasPrefix(strings.TrimSpace(line), "#") {
				continue
			}
			if command += line; strings.Count(command, "'")%2 == 1 {
				continue
			}
			if command = strings.TrimSpace(command); command != "" {
				found = append(found, command)
			}
			command = ""
		}
	}
	return found
}

// akinArgs returns the arguments of a command line that runs akin.
func akinArgs(line string) ([]string, bool) {
	for _, prefix := range []string{"bin/akin ", "akin ", "go run ./cmd/akin "} {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			rest, _, _ = strings.Cut(rest, " > ")
			return strings.Fields(rest), true
		}
	}
	return nil, false
}

func TestEveryCommandOfTheDocumentsExists(t *testing.T) {
	makefile := read(t, filepath.Join(root, "Makefile"))
	n := 0
	for name, text := range userTexts(t) {
		for _, line := range commands(text) {
			n++
			if target, ok := strings.CutPrefix(line, "make "); ok {
				check.That(t, regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(target)+`:`).MatchString(makefile), "%s: %s: no such target", name, line)
				continue
			}
			args, ok := akinArgs(line)
			if !ok {
				check.That(t, strings.HasPrefix(line, "curl "), "%s: no test knows %q", name, line)
				continue
			}
			cmd, rest, err := newRoot().Find(args)
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			check.That(t, err == nil && cmd.Runnable(), "%s: %s: %v", name, line, err)
		}
	}
	check.That(t, n >= 8, "%d commands found", n)
}

// A document names a benchmark in a command, or as the source of a row between
// grave accents.
func TestEveryBenchmarkOfTheDocumentsExists(t *testing.T) {
	there := map[string]bool{}
	check.OK(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			for _, m := range regexp.MustCompile(`(?m)^func Benchmark(\w+)\(`).FindAllStringSubmatch(read(t, path), -1) {
				there[m[1]] = true
			}
		}
		return err
	}))
	n := 0
	for name, text := range userTexts(t) {
		for _, m := range regexp.MustCompile("-bench '?\\^?(?:Benchmark)?([A-Z]\\w+)|\\| `([A-Z]\\w+)` \\|\n").FindAllStringSubmatch(text, -1) {
			if benchmark := m[1] + m[2]; benchmark != "NAME" {
				n++
				check.That(t, there[benchmark], "%s: there is no benchmark %s", name, benchmark)
			}
		}
	}
	check.That(t, n >= 8, "%d benchmarks found", n)
}

func TestREADMEPutsAkinInFrontOfACluster(t *testing.T) {
	var docs []documents.Document
	for _, index := range demo.Indices() { // all texts in one index, called docs
		for _, d := range demo.Docs(index) {
			docs = append(docs, documents.Document{ID: d.ID, Source: map[string]string{"title": d.Title, "body": d.Body}})
		}
	}
	engine := newIndex(t, "docs", demoMapping, docs)
	readme := userTexts(t)["README.md"]
	t.Chdir(t.TempDir())
	ran := ""
	for _, line := range commands(readme) {
		args, ok := akinArgs(strings.ReplaceAll(line, "http://127.0.0.1:9200", engine))
		if !ok {
			continue
		}
		if ran += args[0] + " "; args[0] != "serve" {
			mustAkin(t, args...)
		}
	}
	check.That(t, ran == "init matrix serve ", "%swere run", ran)
	here, err := os.Getwd()
	check.OK(t, err)
	here += string(filepath.Separator)
	onFreePorts := strings.NewReplacer("127.0.0.1:9280", "127.0.0.1:0", "127.0.0.1:9281", "127.0.0.1:0", "\nexpansion:\n", "\nexpansion:\n  budget: 10s\n", " file: ", " file: "+here)
	s := startServe(t, "shutdown: {delay: 0s}\n"+onFreePorts.Replace(read(t, "akin.yml"))) // on a machine that is busy
	const body = `{"query":{"match":{"body":"car rental"}}}`
	var answer struct{ Rewritten bool }
	if post(t, s.admin+"/_akin/expand/docs", body, &answer); !answer.Rewritten {
		t.Error("a search is not rewritten")
	}
	if with, without := total(t, s.proxy+"/docs/_search", body), total(t, s.proxy+"/docs/_search?akin=off", body); with <= without {
		t.Errorf("%d hits with akin, %d without", with, without)
	}
}

// TestEvaluationPageRuns runs the commands of docs/evaluation.md in their order,
// with the demo corpus for the reader's index.
func TestEvaluationPageRuns(t *testing.T) {
	page := userTexts(t)["evaluation.md"]
	set := newDemoSet(t)
	s := serveDemo(t, "expansion: {budget: 5s}\n")
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{
		"queries.jsonl": read(t, set.queries), "qrels.tsv": read(t, set.judgments), "docs.akin": read(t, set.matrix), "search.json": blocks(page, "json")[0],
		"queries.txt": "comfortable couch\nquiet keyboard\n", "judged.csv": "query,document,grade\ncomfortable couch,catalogue-001,1\n",
		"shown.jsonl": blocks(page, "json")[2],
	} {
		check.OK(t, os.WriteFile(name, []byte(content), 0o600))
	}
	local := strings.NewReplacer("http://127.0.0.1:9200", set.engine, "http://127.0.0.1:9280", s.proxy, "http://127.0.0.1:9281", s.admin, "--index docs", "--index "+demoIndices)
	for _, line := range commands(page) {
		if args, ok := akinArgs(local.Replace(line)); ok {
			switch { // the defaults take a minute
			case args[0] == "tune":
				args = append(args, "--settings", "8")
			case args[1] == "sweep":
				args = append(args, "--neighbors", "10", "--min-similarity", "0", "--power", "3")
			}
			ends(t, 0, args)
		}
	}
}
