package combine

import (
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

func TestFoundEntriesAreAddedWhereTheDocumentsUseBothSidesAlike(t *testing.T) {
	docFreqs := map[string]uint32{"bmi": 50, "body": 60, "mass": 50, "who": 60, "bodymass": 4}
	docs := expressed(t, 1000, docFreqs, "bmi > body 0.5", "bmi > mass 0.4", "body > mass 0.3", "mass > body 0.3", "bodymass > body 0.6", "bodymass > mass 0.6")
	docFreqs["index"] = 2 // it has no row
	e := func(words ...string) string {
		return check.Got(simmatrix.Expression(words, []int{0, 1, 2}[:len(words)]))(t)
	}
	m, err := AddFound(docs, func(word string) uint32 { return docFreqs[word] },
		Finding{Kind: "acronyms", Cosine: 0.5, Unlike: "unlike", Entries: []FoundEntry{
			{Term: e("body", "index"), For: "bmi", Docs: 1, LeftOut: "rare"},
			{Term: e("body", "mass"), For: "who", Both: true, Docs: 3},
			{Term: e("body", "mass"), For: "bmi", Both: true, Docs: 2, ForForm: "b.m.i.", TermForm: "body-mass", Note: "acronym"},
		}},
		Finding{Kind: "joined words", Entries: []FoundEntry{{Term: "bodymass", For: e("body", "mass")}}})
	check.OK(t, err)
	check.Equal(t, map[string]string{
		"bmi": "body mass:0.5 body:0.5 mass:0.4", "body": "mass:0.3", "mass": "body:0.3", "bodymass": "body:0.6 mass:0.6",
		"body mass": "bmi:0.5 bodymass:0.5",
	}, spelledRows(m))
	check.Equal(t, simmatrix.WithNote("body-mass", "acronym"), m.Form(e("body", "mass")))
	check.Equal(t, []string{
		"acronyms: 1 kept, such as b.m.i. – body-mass; 1 left out (unlike), such as who – body mass; 1 left out (rare), such as bmi – body index",
		"joined words: 1 kept, such as body-mass – bodymass; 0 left out",
	}, simmatrix.Tallies(m.Meta().Params))

	bothLong := FoundEntry{Term: e("body", "mass"), For: e("b", "m"), ForForm: "b-m", TermForm: "body mass", Note: "acronym"}
	m, err = AddFound(docs, func(string) uint32 { return 1 }, Finding{Kind: "acronyms", Entries: []FoundEntry{bothLong}})
	check.OK(t, err)
	check.Equal(t, simmatrix.WithNote("b-m", "acronym"), m.Form(e("b", "m")))

	m, err = AddFound(docs, func(string) uint32 { return 1 }, Finding{Kind: "acronyms"})
	check.OK(t, err)
	check.Equal(t, spelledRows(docs), spelledRows(m))
}
