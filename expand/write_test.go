package expand

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/form"
)

// randomQuery writes a clause of a kind that has all forms, or one around two.
func randomQuery(rng *rand.Rand, depth int) string {
	if depth == 0 && rng.IntN(4) == 0 {
		return `{"bool":{"must":[` + randomQuery(rng, 1) + `],"should":[` + randomQuery(rng, 1) + `]}}`
	}
	words := []string{"car", "rental", "cheap", "zeppelin", "lease"}
	var text []string
	for range 1 + rng.IntN(4) {
		text = append(text, words[rng.IntN(len(words))])
	}
	options := []string{
		``, ``, `,"operator":"and"`, `,"minimum_should_match":2`, `,"minimum_should_match":"75%"`, `,"minimum_should_match":"-1"`,
		`,"minimum_should_match":"2<75%"`, `,"boost":2.5`,
	}[rng.IntN(8)]
	query := `"query":"` + strings.Join(text, " ") + `"` + options
	switch rng.IntN(4) {
	case 0:
		return `{"multi_match":{` + query + `,"fields":["body","title^2"],"tie_breaker":0.3}}`
	case 1:
		return `{"multi_match":{` + query + `,"fields":["body^3","title"],"type":"most_fields"}}`
	case 2:
		return `{"multi_match":{` + query + `,"fields":["body","title^2"],"type":"cross_fields"}}`
	default:
		return `{"match":{"body":{` + query + `}}}`
	}
}

// A writing is one of the ways of writing a search.
type writing struct {
	name   string
	change func(o *Profile)
	size   string
	member string
}

// writings begin with those with the fit; the others are the same without it.
var writings = func() []writing {
	all := slices.Clone(fitted)
	for _, v := range fitted {
		all = append(all, writing{"without fit, " + v.name, func(o *Profile) { v.change(o); o.Fit = false }, v.size, v.member})
	}
	return all
}()

var fitted = []writing{
	{"linear", func(o *Profile) { o.Scoring = form.Linear }, "10", "query"},
	{"grouped", func(o *Profile) { o.Scoring = form.Grouped }, "10", "query"},
	{"saturated", func(o *Profile) { o.NoRescore = true }, "10", "query"},
	{"candidates", func(*Profile) {}, "10", "query"},
	{"rescore", func(*Profile) {}, "10", "rescore"},
	{"unscored", func(*Profile) {}, "0", "query"},
}

// expanded returns the body that is sent for query.
func (v writing) expanded(t *testing.T, e *Expander, query string) []byte {
	t.Helper()
	body := []byte(`{"size":` + v.size + `,"query":` + query + `}`)
	r := expanded(t, e, &Request{Index: "docs", Body: body})
	if r.Rewritten {
		return r.Body
	}
	return body
}

var rentalTerms = []string{"car", "rental", "automobile", "hire", "lease", "cheap", "zeppelin"}

func TestAllFormsFindTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	c, m := rental(t)
	for _, matching := range []bool{false, true} {
		var expanders []*Expander
		for _, v := range writings {
			expanders = append(expanders, New(c, m, with(func(o *Profile) {
				v.change(o)
				o.Matching = sameIf(matching)
			})))
		}
		for range rounds(150) {
			query := randomQuery(rng, 0)
			if rng.IntN(4) == 0 { // a field that is no text
				query = strings.ReplaceAll(query, `"title`, `"sku`)
			}
			bodies := make([][]byte, len(writings))
			for i, v := range writings {
				bodies[i] = v.expanded(t, expanders[i], query)
			}
			for range 10 {
				e := &engine{tb: t, cluster: c, doc: document(rng.IntN, []string{"body", "title", "sku"}, rentalTerms)}
				want := e.search(bodies[0], "query")
				if original := e.search([]byte(`{"query":`+query+`}`), "query"); original.found && !want.found ||
					matching && original.found != want.found {
					t.Fatalf("%s finds %t with same matches %t, the original %t", bodies[0], want.found, matching, original.found)
				}
				for i, v := range writings {
					if v.member == "rescore" && !strings.Contains(string(bodies[i]), `"rescore"`) {
						continue
					}
					if got := e.search(bodies[i], v.member); got.found != want.found && (want.found || v.member == "query") { // a rescore sees only hits
						t.Fatalf("%s: found %t in %v, but %t by\n%s\nand the linear form is\n%s",
							v.name, want.found, e.doc, got.found, bodies[i], bodies[0])
					}
				}
			}
		}
	}
}

// TestNormalizedScoresStayBelowTheOriginals holds the factor against documents
// whose every term is saturated, where the original scores the most it can.
func TestNormalizedScoresStayBelowTheOriginals(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	c, m := rental(t)
	highest := map[string]map[string]float64{"body": {}, "title": {}}
	for _, term := range rentalTerms {
		highest["body"][term], highest["title"][term] = 1, 1
	}
	above := map[bool]int{}
	for _, normalize := range []bool{true, false} {
		for _, v := range writings {
			if v.size == "0" {
				continue
			}
			x := New(c, m, with(func(o *Profile) { v.change(o); o.NormalizeScores = normalize }))
			for range rounds(200) {
				query := randomQuery(rng, 1)
				body := v.expanded(t, x, query)
				if v.member == "rescore" && !strings.Contains(string(body), `"rescore"`) {
					continue
				}
				most := (&engine{tb: t, cluster: c, doc: highest}).search([]byte(`{"query":`+query+`}`), "query")
				for range 10 {
					e := &engine{tb: t, cluster: c, doc: document(rng.IntN, []string{"body", "title"}, rentalTerms)}
					if rng.IntN(4) == 0 {
						e.doc = highest
					}
					if got := e.search(body, v.member); got.score > most.score*(1+1e-6) {
						above[normalize]++
						check.Must(t, !normalize, "%s scores %v, the original of\n%s\nat most %v:\n%s", v.name, got.score, query, most.score, body)
					}
				}
			}
		}
	}
	check.That(t, above[false] != 0, "no score is above the original's largest without the factor, so that the test shows nothing")
}

func TestHugeBoostsFitInto32Bits(t *testing.T) {
	query := `{"match":{"body":{"query":"car rental","boost":1e30}}}`
	for _, v := range writings {
		body := v.expanded(t, func() *Expander { c, m := rental(t); return New(c, m, with(v.change)) }(), query)
		check.That(t, json.Valid(body) && !slices.Contains(strings.FieldsFunc(string(body), func(r rune) bool { return strings.ContainsRune(`:,}{]`, r) }), "+Inf"), "%s: %s", v.name, body)
	}
}

// sameIf returns Same, or Widen.
func sameIf(same bool) Matching {
	if same {
		return Same
	}
	return Widen
}
