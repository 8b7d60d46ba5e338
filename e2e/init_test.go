package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestFromInitToASearchWithRelatedWords runs the commands that akin init prints,
// as they are, and then searches; then akin check looks at fields that are not
// expanded.
func TestFromInitToASearchWithRelatedWords(t *testing.T) {
	e := oneEngine(t)
	mustAkin(t, "demo", "load", "--url", e.url)
	t.Cleanup(func() {
		for _, index := range []string{"catalogue", "help", "knowledge"} {
			e.dropIndex(index)
		}
	})
	folder := newDir(t, "init")
	file := filepath.Join(folder, "akin.yml")
	out := mustAkin(t, "init", "--url", e.url, "--index", "catalogue,help,knowledge", "--out", file)
	// The ports of every other test are free ones, too.
	config, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	config = append(config, "\nlisten: {address: \"127.0.0.1:0\"}\nadmin: {address: \"127.0.0.1:0\"}\nshutdown: {delay: 0s}\n"...)
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	var next []string
	for line := range strings.Lines(out) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "akin "); ok {
			next = append(next, command)
		}
	}
	if len(next) < 3 || next[len(next)-1] != "serve --config "+file {
		t.Fatalf("akin init prints\n%s", out)
	}
	for _, command := range next[:len(next)-1] {
		out = mustAkin(t, strings.Fields(command)...)
	}
	if !strings.Contains(out, "saturated") || !strings.Contains(out, " of ") {
		t.Errorf("akin check prints\n%s", out)
	}
	a := launchAkinFrom(t, "", file)
	a.awaitReady(t)
	const search = `{"query":{"match":{"body":"nappies"}},"track_total_hits":true}`
	total := func(c cluster) int {
		var answer struct {
			Hits struct{ Total struct{ Value int } }
		}
		if err := json.Unmarshal(c.must(t, http.MethodPost, "/catalogue/_search", search), &answer); err != nil {
			t.Fatal(err)
		}
		return answer.Hits.Total.Value
	}
	direct := total(e.cluster)
	waitFor(t, 20*time.Second, "more hits", func() error { // the first search may be over its budget
		if through := total(a.cluster); through <= direct {
			return fmt.Errorf("%d hits through akin, %d direct", through, direct)
		}
		return nil
	})
	checkOtherFields(t, e, filepath.Join(folder, firstMatrix(t, folder)))
}

// firstMatrix returns the name of a matrix file in a folder.
func firstMatrix(t *testing.T, folder string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "*.akin"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%v: no matrix in %s", err, folder)
	}
	return filepath.Base(found[0])
}

// checkOtherFields has akin check look at fields of many kinds, with a matrix of
// English texts.
func checkOtherFields(t *testing.T, e *engine, matrix string) {
	t.Helper()
	const index, alias = "akin-e2e-check", "akin-e2e-check-alias"
	e.makeIndex(t, index, `{"settings":{"number_of_shards":1,"analysis":{"analyzer":{"parts":{"type":"custom","tokenizer":"parts"}},
		"tokenizer":{"parts":{"type":"ngram","min_gram":2,"max_gram":3}}}},
		"mappings":{"properties":{"sku":{"type":"keyword"},"german":{"type":"text","analyzer":"english"},"plain":{"type":"text"},"english":{"type":"text","analyzer":"english","fields":{"parts":{"type":"text","analyzer":"parts"}}}}},
		"aliases":{"`+alias+`":{}}}`)
	german := strings.Fields("waschmaschine trockner angebot garantie kunden deutschland österreich lieferung rechnung farbe")
	english := strings.Fields("diapers nappies strollers babies washing machines laundries sneakers trousers batteries flights")
	docs := make([]document, 20)
	for k := range docs {
		some := func(words []string) string {
			return strings.Join([]string{words[k%len(words)], words[(k+3)%len(words)], words[(k+5)%len(words)]}, " ")
		}
		docs[k] = document{strconv.Itoa(k), map[string]any{"sku": "A-1", "german": some(german), "english": some(english), "plain": some(english)}}
	}
	e.index(t, index, docs)
	config := writeFile(t, "check.yml", fmt.Sprintf("cluster: {urls: [%q]}\nexpansion: {max_doc_share: 1}\nmatrices:\n  - {name: english, indices: [%s, %s, nosuch], fields: [sku, \"*\"], file: %q}\n",
		e.url, index, alias, matrix))
	r := runAkin(t, "check", "--config", config, "--json")
	var report struct {
		Fields []struct{ Verdict, Index, Field, Form, Reason, Says string }
	}
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || r.status != 1 {
		t.Fatalf("status %d, %v: %s%s", r.status, err, r.stdout, r.stderr)
	}
	got := map[string]string{}
	for _, f := range report.Fields {
		got[f.Index+" "+f.Field] = f.Verdict + " " + f.Form + " " + f.Reason + " " + f.Says
	}
	for _, c := range []struct{ name, place, want string }{
		{"text of the matrix's language", index + " english", "ok saturated"},
		{"an alias", alias + " english", "ok saturated"},
		{"another analyzer", index + " plain", "few of the field's frequent terms"},
		{"text of another language", index + " german", "few of the field's frequent terms"},
		{"n-grams", index + " english.parts", "not_words"},
		{"a keyword", index + " sku", "error  not_text"},
		{"no such index", "nosuch sku", "error  unknown_to_cluster"},
	} {
		if !strings.Contains(got[c.place], c.want) {
			t.Errorf("%s: %q, want %q ", c.name, got[c.place], c.want)
		}
	}
}
