package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/cli"
)

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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
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
	if _, _, err := grouped(names, all, ""); err == nil || !strings.Contains(err.Error(), "--index") {
		t.Errorf("error %v", err)
	}
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
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if diff := cmp.Diff(odd, cfg.Matrices[0].Indices); diff != "" {
		t.Errorf("indices (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(odd, cfg.Matrices[0].Fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if next := p.next()[0]; !strings.Contains(next, `--ca-file 'ca'\''s.pem'`) {
		t.Errorf("next %s", next)
	}
}
