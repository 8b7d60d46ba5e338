package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// formsCorpus is of a field with an English stemmer, in which nappies and
// diapers, and gas and petrol, meet the same words. The most frequent word of
// "ga" is "Gas", that of "studi" "studies", of "petrol" the term itself.
func formsCorpus() []document {
	var docs []document
	for i := range 60 {
		text := [...]string{
			"Soft nappies for babies, studies say", "Soft diapers for a baby, a study says", "Cheap diapers and a diaper pin for babies: studies",
			"Gas for cars and engines", "Petrol for a car with an engine", "Gas, gases and petrol: engines",
		}[i%6]
		docs = append(docs, document{strconv.Itoa(i), section{"body": fmt.Sprintf("%s number%d", text, i)}})
	}
	return docs
}

// shownForms returns the words that "matrix show" has for terms and their
// neighbors, by term.
func shownForms(t *testing.T, args ...string) map[string]string {
	t.Helper()
	type term struct{ Term, Word string }
	var shown struct {
		Terms []struct {
			term
			Neighbors []term
		}
	}
	if err := json.Unmarshal([]byte(mustAkin(t, append([]string{"matrix", "show", "--json"}, args...)...)), &shown); err != nil {
		t.Fatal(err)
	}
	words := map[string]string{}
	for _, row := range shown.Terms {
		for _, n := range append(row.Neighbors, row.term) {
			if n.Word != "" {
				words[n.Term] = n.Word
			}
		}
	}
	return words
}

// TestTermsAreShownAsPeopleWriteThem follows the forms from the texts of an
// index through file, Redis and proxy to an explanation.
func TestTermsAreShownAsPeopleWriteThem(t *testing.T) {
	redis := commonRedis(t)
	eachEngine(t, func(t *testing.T, e *engine) {
		if e.name != qualityEngine { // one that has the stemmer
			return
		}
		const index, name = "akin-e2e-forms", "akin-e2e-forms"
		const mapping = `"properties":{"body":{"type":"text","analyzer":"english"}}}}`
		e.makeIndex(t, index, `{"mappings":{`+mapping)
		e.index(t, index, formsCorpus())
		dir := newDir(t, "forms")
		build := func(index, file string, args ...string) (path, said string) {
			path = filepath.Join(dir, file)
			built := runAkin(t, append([]string{
				"matrix", "build", "--from-index", e.url, "--index", index, "--field", "body", "--out", path,
			}, args...)...)
			if built.status != 0 {
				t.Fatal(built.stderr)
			}
			return path, built.stderr
		}
		file, _ := build(index, "m.akin")
		want := map[string]string{
			"nappi": "nappies", "diaper": "diapers", "ga": "gas", "babi": "babies", "studi": "studies",
			"engin": "engines", "cheap": "", "petrol": "", "car": "",
		}
		check := func(what string, got map[string]string) {
			t.Helper()
			for term, word := range want {
				if got[term] != word {
					t.Errorf("%s: %s is shown as %q, want %q", what, term, got[term], word)
				}
			}
		}
		terms := []string{"nappi", "diaper", "ga", "babi", "studi", "engin", "cheap", "petrol", "car"}
		check("file", shownForms(t, append([]string{file}, terms...)...))
		if out := mustAkin(t, "matrix", "show", file, "nappi"); !strings.Contains(out, "nappies (nappi)") || !strings.Contains(out, "diapers (diaper)") {
			t.Errorf("matrix show:\n%s", out)
		}
		whole, _ := build(index, "whole.akin", "--exact-analysis")
		check("exact analysis", shownForms(t, append([]string{whole}, terms...)...))

		pushMatrix(t, redis, name, file)
		check("Redis", shownForms(t, append([]string{"--redis", redis.url, name + "@active"}, terms...)...))
		exported := filepath.Join(dir, "exported.akin")
		mustAkin(t, "matrix", "export", "--redis", redis.url, "--out", exported, name+"@active")
		if was, err := os.ReadFile(file); err != nil {
			t.Error(err)
		} else if is, err := os.ReadFile(exported); err != nil || !bytes.Equal(was, is) {
			t.Errorf("the file that was exported is another than the one that was pushed, %v", err)
		}
		a := startAkin(t, section{
			"cluster": section{"urls": []string{e.url}}, "redis": section{"url": redis.url},
			"expansion": section{"budget": widePatience, "max_doc_share": 1},
			"matrices":  []section{{"name": name, "indices": []string{index}}},
		})
		a.awaitMatrix(t, name)
		shown := string(a.admin.must(t, "POST", "/_akin/expand/"+index, `{"query":{"match":{"body":"NAPPY unheard"}}}`))
		for _, part := range []string{`"term":"diaper"`, `"word":"diapers"`, `"words":{"nappi":"NAPPY"}`} {
			if !strings.Contains(shown, part) {
				t.Errorf("%s is not in %s", part, shown)
			}
		}

		const hidden = "akin-e2e-forms-no-source"
		e.makeIndex(t, hidden, `{"mappings":{"_source":{"enabled":false},`+strings.Replace(mapping, `"english"`, `"english","term_vector":"with_positions"`, 1))
		e.index(t, hidden, formsCorpus())
		without, said := build(hidden, "without.akin", "--exact-analysis")
		if n := strings.Count(said, "without the forms"); n != 1 || !strings.Contains(said, "_source") {
			t.Errorf("said %d times that there are no forms:\n%s", n, said)
		}
		if words := shownForms(t, append([]string{without}, terms...)...); len(words) > 0 {
			t.Errorf("without texts there are the words %v", words)
		}
	})
}
