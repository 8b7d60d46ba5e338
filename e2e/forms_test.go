package e2e

import (
	"fmt"
	"net/http"
	"slices"
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

// TestTermsAreShownAsPeopleWriteThem follows the forms from the texts of an
// index through file, Redis and proxy to an explanation.
func TestTermsAreShownAsPeopleWriteThem(t *testing.T) {
	const index, name = "akin-e2e-forms", "akin-e2e-forms"
	redis := commonRedis(t)
	e := theEngine(t, qualityEngine) // which has the stemmer
	if e == nil {
		return
	}
	e.makeIndex(t, index, oneShard(`"body":{"type":"text","analyzer":"english"}`))
	e.index(t, index, formsCorpus())
	of := []string{"--from-index", e.url, "--index", index, "--field", "body"}
	whole, file := build(t, append(of, "--exact-analysis")...), build(t, of...)
	pushMatrix(t, redis, name, file)
	want := map[string]string{
		"nappi": "nappies", "diaper": "diapers", "ga": "gas", "babi": "babies", "studi": "studies",
		"engin": "engines", "cheap": "", "petrol": "", "car": "",
	}
	for _, from := range [][]string{{file}, {whole}, {"--redis", redis.url, name + "@active"}} {
		type term struct{ Term, Word string }
		var shown struct {
			Terms []struct {
				term
				Neighbors []term
			}
		}
		decode(t, []byte(mustAkin(t, slices.Concat([]string{"matrix", "show", "--json"}, from, []string{"nappi", "diaper", "ga", "babi", "studi", "engin", "cheap", "petrol", "car"})...)), &shown)
		for _, row := range shown.Terms {
			for _, n := range append(row.Neighbors, row.term) {
				if word, known := want[n.Term]; known && n.Word != word {
					t.Errorf("%s: %s is shown as %q, want %q", from[0], n.Term, n.Word, word)
				}
			}
		}
		if len(shown.Terms) != len(want) {
			t.Errorf("%s: %d terms", from[0], len(shown.Terms))
		}
	}
	a := setup(t, e, section{
		"redis": redis.section(), "expansion": section{"max_doc_share": 1}, "matrices": []section{{"name": name, "indices": []string{index}}},
	})
	shown := string(a.admin.must(t, http.MethodPost, "/_akin/expand/"+index, `{"query":{"match":{"body":"NAPPY unheard"}}}`))
	for _, part := range []string{`"term":"diaper"`, `"word":"diapers"`, `"words":{"nappi":"NAPPY"}`} {
		if !strings.Contains(shown, part) {
			t.Errorf("%s is not in %s", part, shown)
		}
	}
}
