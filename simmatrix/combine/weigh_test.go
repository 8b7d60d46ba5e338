package combine

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// expressed returns a matrix of entries "term > neighbor similarity", where
// terms of several words are expressions; docFreqs are those of the words.
func expressed(t *testing.T, docs uint64, docFreqs map[string]uint32, entries ...string) *simmatrix.Matrix {
	t.Helper()
	term := func(text string) string {
		words := strings.Fields(text)
		if len(words) == 1 {
			return text
		}
		positions := make([]int, len(words))
		for k := range positions {
			positions[k] = k
		}
		return check.Got(simmatrix.Expression(words, positions))(t)
	}
	rows := map[string]*simmatrix.TermRow{}
	row := func(text string) *simmatrix.TermRow {
		if rows[text] == nil {
			rows[text] = &simmatrix.TermRow{Term: term(text), DocFreq: docFreqs[text]}
		}
		return rows[text]
	}
	for word := range docFreqs {
		row(word)
	}
	for _, entry := range entries {
		left, right, _ := strings.Cut(entry, " > ")
		at := strings.LastIndexByte(right, ' ')
		row(right[:at])
		r := row(left)
		r.Neighbors = append(r.Neighbors, simmatrix.Neighbor{Term: term(right[:at]), Similarity: float32(check.Got(strconv.ParseFloat(right[at+1:], 32))(t))})
	}
	var all []simmatrix.TermRow
	for _, r := range rows {
		all = append(all, *r)
	}
	return check.Got(simmatrix.New(simmatrix.Meta{Docs: docs, Params: map[string]string{simmatrix.PowerParam: "3"}}, all))(t)
}

func spelledRows(m *simmatrix.Matrix) map[string]string {
	got := map[string]string{}
	for term, row := range m.Rows() {
		var words []string
		for n := range row.All() {
			words = append(words, fmt.Sprintf("%s:%.4g", simmatrix.Spelled(n.Term), n.Similarity))
		}
		if len(words) > 0 {
			got[simmatrix.Spelled(term)] = strings.Join(words, " ")
		}
	}
	return got
}

func TestAThesaurusIsWeighedByTheIndex(t *testing.T) {
	docs := expressed(t, 1000, map[string]uint32{"heart": 50, "attack": 60, "myocardial": 50, "infarction": 60, "bank": 40, "money": 40, "shore": 40, "river": 30},
		"heart > myocardial 0.5", "attack > infarction 0.4", "bank > money 0.3", "money > bank 0.25")
	thesaurus := expressed(t, 0, nil,
		"heart attack > myocardial infarction 0.5", "heart attack > river shore 0.5", // the one is used alike, the other not
		"coronary thrombosis > heart attack 0.5", // of whose source no document has a word
		"heart attack > coronary thrombosis 0.5",
		"bank > money 0.2", "money > bank 0.2", "bank > shore 0.2", "bank > river 1", "shore > river bank 0.5")
	m, counts, err := Weigh(thesaurus, docs)
	check.OK(t, err)
	check.Equal(t, map[string]string{
		"heart attack": "myocardial infarction:0.5", "coronary thrombosis": "heart attack:0.5",
		"bank": "river:1 money:0.3", "money": "bank:0.3",
	}, spelledRows(m))
	check.That(t, counts.Exact == 1 && counts.Kept == 4 && counts.Dropped == 4 && len(counts.Lost) == 3, "%+v", counts)
}

// What other inputs lack says nothing of an expression.
func TestEnsemblesKeepExpressionsAsTheyAre(t *testing.T) {
	learned := expressed(t, 1000, map[string]uint32{"heart": 50, "attack": 60}, "heart > attack 0.2")
	synonyms := expressed(t, 0, nil, "heart attack > infarct 1", "heart > inner organ 0.6", "heart > attack 0.4")
	for rule, want := range map[Rule]string{RuleAverage: "inner organ:0.6 attack:0.3", RuleMinimum: "inner organ:0.6 attack:0.2", RuleMaximum: "inner organ:0.6 attack:0.4"} {
		o := DefaultOptions()
		o.Rule = rule
		m, err := Combine(t.Context(), []Input{{Name: "learned", Matrix: learned}, {Name: "synonyms", Matrix: synonyms}}, o, nil)
		check.OK(t, err)
		check.Equal(t, map[string]string{"heart": want, "heart attack": "infarct:1"}, spelledRows(m))
	}
}

func TestOverridesOfSeveralWordsSetExpressions(t *testing.T) {
	m := expressed(t, 1000, map[string]uint32{"heart": 50, "attack": 60, "infarct": 5, "big": 1, "apple": 1, "new": 1, "york": 1}, "heart > attack 0.2")
	rules, err := ParseOverrides(strings.NewReader(`set "heart attack" infarct 1` + "\n" + `set "big apple" -> "new york" 1` + "\n"))
	check.OK(t, err)
	rules, unknown, err := rules.Resolve(m, nil)
	check.That(t, err == nil && len(unknown) == 0, "%v, unknown %q", err, unknown)
	m, _, err = rules.Apply(m)
	check.OK(t, err)
	check.Equal(t, map[string]string{"heart": "attack:0.2", "heart attack": "infarct:1", "infarct": "heart attack:1", "big apple": "new york:1"}, spelledRows(m))
}

// Nobody counts the documents of an expression, so that a least number of
// documents leaves it in.
func TestFiltersKeepExpressionsWithoutACount(t *testing.T) {
	m := expressed(t, 1000, map[string]uint32{"rare": 1, "heart": 50}, "heart attack > heart 1", "rare > heart 0.5")
	m, dropped, err := (&TermFilter{MinDocFreq: 3}).Apply(m)
	check.That(t, err == nil && dropped == 1, "%d dropped, %v", dropped, err)
	check.Equal(t, map[string]string{"heart attack": "heart:1"}, spelledRows(m))
}
