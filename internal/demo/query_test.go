package demo

import (
	"net/http"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestMinimumShouldMatch(t *testing.T) {
	for _, tt := range []struct {
		spec string
		n    int
		want int
	}{
		// The examples of Elasticsearch's reference, "minimum_should_match parameter".
		{"3", 5, 3},
		{"-2", 5, 3},
		{"75%", 5, 3},
		{"75%", 4, 3},
		{"-25%", 4, 3},
		{"-25%", 5, 4},
		{"3<90%", 3, 3},
		{"3<90%", 4, 3},
		{"3<90%", 10, 9},
		{"2<-25% 9<-3", 2, 2},
		{"2<-25% 9<-3", 8, 6},
		{"2<-25% 9<-3", 10, 7},
		// Seen on OpenSearch 2.19: a share that rounds to nothing takes nothing off.
		{"-25%", 3, 3},
		{"-9", 3, 0},
		{"7", 3, 7},
	} {
		check.Equal(t, tt.want, minimumShouldMatch(tt.spec, tt.n), tt.spec, tt.n)
	}
}

func TestQueryStringOperatorsAreRecognized(t *testing.T) {
	for text, want := range map[string]bool{
		"car hire": false, "re-run of Q&A": false, "*": false, " * ": false, "Android or Nothing": false,
		"car AND hire": true, "NOT car": true, "-car": true, "+car": true, "title:car": true, `"car hire"`: true, "ca*": true,
		"car~": true, "car^2": true, "(car": true, "a/b": true, "a && b": true, "!x": true, ">5": true,
	} {
		check.Equal(t, want, operators(text), text)
	}
}

// The terms of the english analyzer, checked on OpenSearch 2.19.
func TestEnglishTerms(t *testing.T) {
	for text, want := range map[string]string{
		"The foxes' dens, and O'Neil's dogs": "fox den o'neil dog",
		"Renting a car is renting":           "rent car rent",
		"ies sses eed happily eeds running":  "i ss eed happili eed run",
		"snake_case __ 3.14 U.S.A.":          "snake_cas 3.14 u.s.a",
		"not if their this":                  "",
	} {
		tokens, _ := analyzers()["english"](text)
		var terms []string
		for _, token := range tokens {
			terms = append(terms, token.Term)
		}
		check.Equal(t, want, strings.Join(terms, " "), text)
	}
}

func TestPositionsCountRemovedWords(t *testing.T) {
	c := newClient()
	c.load(t, "p", map[string]any{"body": text()})
	// As OpenSearch 2.19 answers: a gap of 100 positions between the values of
	// a text field, one character between their offsets.
	for body, want := range map[string][]float64{
		`{"field":"body","text":["The cars of the","a 𝕏 fox"]}`: {1, 4, 8, 105, 18, 20, 106, 21, 24},
		`{"analyzer":"keyword","text":["a b","c"]}`:             {0, 0, 3, 101, 4, 5},
	} {
		tokens, _ := at(c.ok(t, "POST", "/p/_analyze", body), "tokens").([]any)
		var got []float64
		for _, token := range tokens {
			for _, member := range []string{"position", "start_offset", "end_offset"} {
				n, _ := at(token, member).(float64)
				got = append(got, n)
			}
		}
		check.Equal(t, want, got, body)
	}
}

func TestScriptsAreRefusedAsClustersMay(t *testing.T) {
	e := NewEngine()
	e.NoScripts = true
	for body, want := range map[string]int{
		`{"query":{"match_all":{}}}`: http.StatusOK,
		`{"query":{"script_score":{"query":{"match_all":{}},"script":{"source":"` + ScriptProbe + `","params":{"a":1}}}}}`: http.StatusBadRequest,
	} {
		status, answer := clientOf(e).do(t, "POST", "/_search", body)
		check.That(t, status == want, "%s: status %d, want %d: %v", body, status, want, answer)
	}
}
