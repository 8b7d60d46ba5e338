package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/cli"
)

// inited writes a configuration for the demo's engine and returns the file and
// what was printed.
func inited(t *testing.T, args ...string) (file, out string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "akin.yml")
	return file, mustAkin(t, append([]string{"init", "--cluster", demoEngine(t), "--out", file}, args...)...)
}

// nextCommands returns the arguments of the command lines that were printed.
func nextCommands(out string) (all [][]string) {
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "akin "); ok && !strings.Contains(line, "is written") {
			all = append(all, strings.Fields(rest))
		}
	}
	return all
}

func TestInitWritesAConfigurationThatServesOnceItsCommandsHaveRun(t *testing.T) {
	t.Setenv(configs.EnvClusterUsername, "somebody")
	t.Setenv(configs.EnvClusterPassword, "hunter2")
	file, out := inited(t)
	cfg, err := configs.Load(t.Context(), file)
	check.OK(t, err)
	text := read(t, file)
	check.That(t, !strings.Contains(text, "hunter2") && !strings.Contains(text, "somebody"), "credentials in\n%s", text)
	check.Must(t, len(cfg.Matrices) != 0 && cfg.Matrices[0].File != "", "no matrices in\n%s", text)
	check.Equal(t, []string{"body", "title"}, cfg.Expansion.DefaultFields)
	next := nextCommands(out)
	check.Must(t, len(next) == len(cfg.Matrices)+2 && next[len(next)-1][0] == "serve", "next %q", next)
	for _, args := range next[:len(next)-1] {
		out := mustAkin(t, args...)
		check.That(t, args[0] != "check" || strings.Contains(out, "saturated") && strings.Contains(out, " normal "), "nothing is expanded:\n%s", out)
	}
}

func TestInitNamesTheDefaultAnalyzerThatAnIndexDefines(t *testing.T) {
	for want, settings := range map[string]mapping.Settings{
		"standard": nil,
		"default":  {"index.analysis.analyzer.default.type": []byte(`"english"`)},
	} {
		field := mapping.Field{Analyzers: mapping.Analyzers{IndexAnalyzer: "default"}, Settings: settings}
		check.Equal(t, want, analyzerName(&field))
	}
	check.Equal(t, "english", analyzerName(&mapping.Field{Analyzers: mapping.Analyzers{IndexAnalyzer: "english"}}))
}

// configs/akin.yml begins with a list of the keys.
func TestInitWritesTheKeysThatPeopleSet(t *testing.T) {
	file, _ := inited(t)
	var written map[string]any
	check.OK(t, yaml.Unmarshal([]byte(read(t, file)), &written))
	head, _, _ := strings.Cut(read(t, filepath.Join(root, "configs", "akin.yml")), "\n# A file needs only")
	keys := regexp.MustCompile(`(?m)^#   ([a-z_.]+)  +\S`).FindAllStringSubmatch(head, -1)
	check.Equal(t, 10, len(keys))
	for _, m := range keys {
		section, name, nested := strings.Cut(m[1], ".")
		inner, is := written[section].(map[string]any)
		_, there := inner[name]
		check.That(t, written[section] != nil && (!nested || is && there), "init does not write %s", m[1])
	}
}

func TestInitPrintsTheConfigurationThatItWouldWrite(t *testing.T) {
	out := mustAkin(t, "init", "--cluster", demoEngine(t), "--index", "catalogue", "--out", "-")
	cfg, err := configs.Parse("printed", []byte(out))
	check.That(t, err == nil && len(cfg.Matrices) == 1 && strings.Join(cfg.Matrices[0].Indices, ",") == "catalogue", "%v, %+v\n%s", err, cfg, out)
	if isThere("akin.yml") {
		t.Error("akin.yml is written")
	}
}

func TestInitSaysWhatIsMissing(t *testing.T) {
	init := func(url string, more ...string) []string { return append([]string{"init", "--cluster", url}, more...) }
	mine := write(t, "akin.yml", "mine")
	if ends(t, exitUsage, init(demoEngine(t), "--out", mine), "or remove it"); read(t, mine) != "mine" {
		t.Error("a file is replaced")
	}
	ends(t, exitUsage, init(demoEngine(t), "--out", "/nonexistent/akin.yml"), "no folder")
	ends(t, exitFailure, init(demoEngine(t), "--index", "nosuch", "--out", "-"), "next: see which indices")
	ends(t, exitFailure, init(refusing(t, "/", 401, "missing"), "--out", "-"), "AKIN_CLUSTER_USERNAME")
}

// texts returns the fields of an index that maps each to an analyzer.
func texts(t *testing.T, index string, analyzers map[string]string) []mapping.Text {
	t.Helper()
	properties := map[string]any{}
	for field, analyzer := range analyzers {
		properties[field] = map[string]string{"type": "text", "analyzer": analyzer}
	}
	mappings, err := json.Marshal(map[string]any{"properties": properties})
	check.OK(t, err)
	var m mapping.Index
	const settings = `{"index.analysis.analyzer.parts.tokenizer":"edge_ngram","index.analysis.analyzer.parts.type":"custom"}`
	check.OK(t, json.Unmarshal([]byte(`{"mappings":`+string(mappings)+`,"settings":`+settings+`}`), &m))
	found, err := mapping.Texts(index, m)
	check.OK(t, err)
	return found
}

func TestDefaultFieldsAreThoseOfTheMostDocuments(t *testing.T) {
	many := []string{"body", "a^2"}
	for k := range 20 {
		many = append(many, fmt.Sprint("f", k))
	}
	p := &proposal{groups: []group{{fields: []string{"title"}, docs: 1}, {fields: many, docs: 5}}}
	check.That(t, slices.Equal(p.defaultFields(), append([]string{"body"}, many[2:11]...)), "%q", p.defaultFields())
	p.groups[1].fields = []string{"body", "title"}
	check.Equal(t, []string{"body", "title"}, p.defaultFields())
}

func TestFieldsThatAreAnalyzedAlikeShareAMatrix(t *testing.T) {
	all := map[string][]mapping.Text{
		"books":  texts(t, "books", map[string]string{"title": "english", "body": "english", "code": "parts"}),
		"films":  texts(t, "films", map[string]string{"title": "english", "body": "english"}),
		"livres": texts(t, "livres", map[string]string{"title": "french", "body": "english"}),
	}
	groups, left, err := grouped([]string{"books", "films", "livres"}, all, "")
	check.OK(t, err)
	var got []string
	for _, g := range groups {
		got = append(got, g.name+" "+strings.Join(g.indices, ",")+" "+strings.Join(g.fields, ","))
	}
	want := []string{"english books,films body,title", "english-2 livres body", "french livres title"}
	check.Equal(t, want, got)
	check.That(t, len(left) == 1 && strings.HasPrefix(left[0], "code of books: its terms are no words"), "left out: %q", left)
}

func TestAGroupOfAllThatWasAskedForKeepsTheExpression(t *testing.T) {
	all := map[string][]mapping.Text{"logs-1": texts(t, "logs-1", map[string]string{"message": "english"}), "logs-2": texts(t, "logs-2", map[string]string{"message": "english"})}
	groups, _, err := grouped([]string{"logs-1", "logs-2"}, all, "logs-*")
	check.That(t, err == nil && len(groups) == 1 && strings.Join(groups[0].indices, ",") == "logs-*", "%v, %+v", err, groups)
}

func TestIndicesThatAreTooManyToNameHaveToBeChosen(t *testing.T) {
	all := map[string][]mapping.Text{}
	var names []string
	for k := range 30 {
		name := strings.Repeat("x", 50) + string(rune('a'+k))
		names = append(names, name)
		all[name] = texts(t, name, map[string]string{"message": "english"})
	}
	_, _, err := grouped(names, all, "")
	check.Message(t, "--index", err)
}

func TestFieldsThatNoConfigurationCanNameAreLeftOut(t *testing.T) {
	all := map[string][]mapping.Text{"people": texts(t, "people", map[string]string{"first name": "english", "bio": "english"})}
	groups, left, err := grouped([]string{"people"}, all, "<people-{now/d}>")
	if err != nil || len(groups) != 1 || strings.Join(groups[0].fields, ",") != "bio" || strings.Join(groups[0].indices, ",") != "people" {
		t.Errorf("%v, %+v", err, groups)
	}
	check.That(t, len(left) == 1 && strings.HasPrefix(left[0], `"first name" of people`), "left out: %q", left)
}

// Whatever names a cluster has, the file is one that akin reads, and none of them
// ends a line.
func TestOddNamesAreWrittenSoThatTheyAreReadAgain(t *testing.T) {
	p := &proposal{Cluster: cli.Cluster{URL: "http://127.0.0.1:9200", CAFile: "ca's.pem"}, out: cli.Stdout, nodes: 3}
	p.info.Version = "1\nexpansion: {}"
	p.left = []string{"a\nlisten: {}"}
	odd := []string{"true", "1e3", "null", "~", "naïve", "x.y"}
	p.groups = []group{{name: "yes", analyzer: "an\nalyzer", indices: odd, fields: odd}}
	var b strings.Builder
	check.OK(t, p.write(&b))
	cfg, err := configs.Parse("written", []byte(b.String()))
	check.Must(t, err == nil, "%v\n%s", err, b.String())
	check.Equal(t, odd, cfg.Matrices[0].Indices, "indices")
	check.Equal(t, odd, cfg.Matrices[0].Fields, "fields")
	p.out = "ca's.yml"
	check.Equal(t, `akin matrix build --config 'ca'\''s.yml'`, p.next()[0])
}
