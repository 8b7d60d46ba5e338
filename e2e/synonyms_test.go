package e2e

import (
	"bytes"
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
)

const synonymsIndex = "akin-e2e-synonym-files"

// A synonymField is how a field is analyzed.
type synonymField struct {
	name, analyzer string
	files          string // of testdata/synonyms; all if ""
	// alone says that the engine's filters take no synonyms behind these: all
	// entries of a line have to find each other, but for refused, of which stop
	// words leave a part.
	alone   bool
	refused string
}

// synonymFilters are those that the fields need. The Elasticsearch 8 and 9 of
// the tests have none, see [engine].scripts.
const synonymFilters = `
	"folded":{"type":"asciifolding","preserve_original":true},
	"parted":{"type":"dictionary_decompounder","word_list":["fach","kataster","kraft","fahrzeug","park","platz","turn","schuhe"]},
	"stems":{"type":"stemmer","language":"english"},
	"divided":{"type":"word_delimiter","preserve_original":true},
	"graph":{"type":"word_delimiter_graph","preserve_original":true,"catenate_all":true}`

var synonymFields = []synonymField{
	{name: "standard", analyzer: `"tokenizer":"standard","filter":["lowercase"]`},
	{name: "blanks", analyzer: `"tokenizer":"whitespace","filter":["lowercase"]`},
	{name: "english", analyzer: `"tokenizer":"standard","filter":["lowercase","stop","porter_stem"]`, files: "music court emoji shop streets cjk split"},
	{name: "cjk", analyzer: `"tokenizer":"standard","filter":["cjk_width","lowercase","cjk_bigram"]`},
	{name: "french", analyzer: `"tokenizer":"standard","filter":["elision","lowercase","french_stem"]`},
	{name: "german", analyzer: `"tokenizer":"standard","filter":["lowercase","german_normalization","german_stem"]`},
	{name: "folded", analyzer: `"tokenizer":"standard","filter":["lowercase","folded"]`},
	{name: "parted", analyzer: `"tokenizer":"standard","filter":["lowercase","parted"]`, files: "german split cjk streets", alone: true},
	{name: "stems", analyzer: `"tokenizer":"standard","filter":["lowercase","keyword_repeat","stems"]`, files: "german split french shop streets", alone: true},
	{name: "divided", analyzer: `"tokenizer":"whitespace","filter":["divided","lowercase"]`, files: "german split shop streets", alone: true},
	{name: "graph", analyzer: `"tokenizer":"whitespace","filter":["graph","lowercase"]`, files: "german split shop", alone: true},
}

// synonymLanguages are the fields of engines without filters.
var synonymLanguages = []synonymField{
	{name: "standard", analyzer: `"type":"standard"`, files: "german split shop streets cjk", alone: true},
	{name: "english", analyzer: `"type":"english"`, files: "split shop", alone: true},
	{name: "cjk", analyzer: `"type":"cjk"`, files: "cjk split", alone: true, refused: "t-shirt"},
	{name: "french", analyzer: `"type":"french"`, files: "french", alone: true},
	{name: "german", analyzer: `"type":"german"`, files: "german", alone: true},
}

// synonymLines returns the lines of files, or of all of them.
func synonymLines(t *testing.T, names string) (lines []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/synonyms/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".txt"); names != "" && !slices.Contains(strings.Fields(names), name) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimRight(line, "\n"); line != "" && line[0] != '#' {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// entriesOf returns the entries on each side of the arrow of a line.
func entriesOf(line string) (sides [][]string) {
	for side := range strings.SplitSeq(line, "=>") {
		var entries []string
		for entry := range strings.SplitSeq(side, ",") {
			entries = append(entries, strings.TrimSpace(entry))
		}
		sides = append(sides, entries)
	}
	return sides
}

// allEntries returns the entries of lines, each once.
func allEntries(lines []string) (entries []string) {
	for _, line := range lines {
		entries = append(entries, slices.Concat(entriesOf(line)...)...)
	}
	slices.Sort(entries)
	return slices.Compact(entries)
}

// makeSynonymsIndex makes an index with a field and a field with synonyms for
// each way of analysis, and a document for each entry.
func (e *engine) makeSynonymsIndex(t *testing.T, fields []synonymField, entries []string) {
	t.Helper()
	var filters, analyzers, own []string
	if e.scripts {
		filters = append(filters, synonymFilters)
	}
	for _, f := range fields {
		analyzers = append(analyzers, fmt.Sprintf(`%q:{%s}`, f.name, f.analyzer))
		graph := f.name
		if !f.alone {
			graph += "_graph"
			lines, _ := json.Marshal(synonymLines(t, f.files))
			filters = append(filters, fmt.Sprintf(`%q:{"type":"synonym_graph","lenient":true,"synonyms":%s}`, graph, lines))
			analyzers = append(analyzers, fmt.Sprintf(`%q:{%s}`, graph, strings.Replace(f.analyzer, `]`, `,"`+graph+`"]`, 1)))
		}
		own = append(own, fmt.Sprintf(`%[1]q:{"type":"text","analyzer":%[1]q,"fields":{"graph":{"type":"text","analyzer":%[1]q,"search_analyzer":%[2]q}}}`, f.name, graph))
	}
	e.makeIndex(t, synonymsIndex, fmt.Sprintf(`{"settings":{"number_of_shards":1,"number_of_replicas":0,"analysis":{"filter":{%s},"analyzer":{%s}}},"mappings":{"properties":{%s}}}`,
		strings.Join(filters, ","), strings.Join(analyzers, ","), strings.Join(own, ",")))
	var docs []document
	for k, entry := range entries {
		content := section{}
		for _, f := range fields {
			content[f.name] = entry
		}
		docs = append(docs, document{strconv.Itoa(k), content})
	}
	e.index(t, synonymsIndex, docs)
}

// findEntries returns which entries a search for each entry finds, all of its
// words required.
func findEntries(t *testing.T, c cluster, field string, texts, entries []string) map[string][]string {
	t.Helper()
	var lines bytes.Buffer
	for _, text := range texts {
		query, _ := json.Marshal(section{"size": 1000, "_source": false, "query": section{"match": section{field: section{"query": text, "operator": "and"}}}})
		fmt.Fprintf(&lines, "{\"index\":%q}\n%s\n", synonymsIndex, query)
	}
	several := ask[struct{ Responses []*found }](t, c, http.MethodPost, "/_msearch", lines.String())
	all := map[string][]string{}
	for k, r := range several.Responses {
		for id := range r.scores() {
			n, _ := strconv.Atoi(id)
			all[texts[k]] = append(all[texts[k]], entries[n])
		}
	}
	return all
}

// A file of synonyms finds through akin what it finds in the engine's own
// filter, whatever the analyzer makes of its entries. The files are in the
// manner of those of shops, courts, maps and others.
func TestSynonymFilesFindWhatTheEnginesFilterFinds(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		fields := synonymFields
		if !e.scripts {
			fields = synonymLanguages
		}
		entries := allEntries(synonymLines(t, ""))
		e.makeSynonymsIndex(t, fields, entries)
		var matrices []section
		for _, f := range fields {
			file := writeFile(t, f.name+".txt", "# akin: exact\n"+strings.Join(synonymLines(t, f.files), "\n")+"\n")
			matrices = append(matrices, section{
				"name": f.name, "fields": []string{f.name},
				"file": build(t, append([]string{"--from-thesaurus", file}, e.of(synonymsIndex, f.name)...)...),
			})
		}
		a := setupWide(t, e, section{"matrices": matrices})
		for _, f := range fields {
			lines := synonymLines(t, f.files)
			texts := allEntries(lines)
			direct, through := findEntries(t, e.cluster, f.name, texts, entries), findEntries(t, a.cluster, f.name, texts, entries)
			want, pairs := findEntries(t, e.cluster, f.name+".graph", texts, entries), 0
			if f.alone {
				want = pairsOf(lines, direct, f.refused)
			}
			for _, text := range texts {
				for _, entry := range slices.Concat(want[text], direct[text]) {
					pairs++
					if !slices.Contains(through[text], entry) {
						t.Errorf("%s: %q does not find %q", f.name, text, entry)
					}
				}
			}
			t.Logf("%s: %d pairs of %d entries", f.name, pairs, len(texts))
		}
		checkNoFallback(t, a)
	})
}

// A word that the analyzer also divides finds its synonyms beside other words,
// and what the engine finds by its parts.
func TestDividedWordsFindTheirSynonymsBesideOthers(t *testing.T) {
	const index = "akin-e2e-divided"
	eachEngine(t, func(t *testing.T, e *engine) {
		if !e.scripts { // the others of the tests have no such filter
			return
		}
		e.makeIndex(t, index, `{"settings":{"number_of_shards":1,"number_of_replicas":0,"analysis":{"filter":{`+synonymFilters+`},
			"analyzer":{"graph":{"tokenizer":"whitespace","filter":["graph","lowercase"]}}}},"mappings":{"properties":{"body":{"type":"text","analyzer":"graph"}}}}`)
		var docs []document
		for _, text := range []string{"wi-fi router", "wi fi router", "wireless router", "wireless", "router", "fi router"} {
			docs = append(docs, document{text, section{"body": text}})
		}
		e.index(t, index, docs)
		file := writeFile(t, "wifi.txt", "# akin: exact\nwi-fi, wireless\n")
		a := setup(t, e, section{"matrices": matrices("m", build(t, append([]string{"--from-thesaurus", file}, e.of(index, "body")...)...))})
		for query, want := range map[string][2]string{
			`{"match":{"body":{"query":"wi-fi router","operator":"and"}}}`: {"wi fi router | wi-fi router", "wi fi router | wi-fi router | wireless router"},
			`{"match":{"body":"wi-fi router"}}`: {
				"fi router | router | wi fi router | wi-fi router | wireless router", "fi router | router | wi fi router | wi-fi router | wireless | wireless router",
			},
		} {
			for i, c := range []cluster{e.cluster, a.cluster} {
				r := ask[found](t, c, http.MethodPost, "/"+index+"/_search", `{"query":`+query+`}`)
				if got := strings.Join(slices.Sorted(maps.Keys(r.scores())), " | "); got != want[i] {
					t.Errorf("%s finds %s, want %s", query, got, want[i])
				}
			}
		}
	})
}

// pairsOf returns the entries that each entry has to find, of those that the
// analyzer leaves something of.
func pairsOf(lines []string, direct map[string][]string, refused string) map[string][]string {
	want := map[string][]string{}
	for _, line := range lines {
		sides := entriesOf(line)
		for _, text := range sides[0] {
			for _, entry := range sides[len(sides)-1] {
				if len(direct[text]) > 0 && len(direct[entry]) > 0 && text != refused && entry != refused {
					want[text] = append(want[text], entry)
				}
			}
		}
	}
	return want
}
