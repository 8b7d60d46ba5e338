package simmatrix

import (
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// written is a matrix with a term that is what people write for another.
func written(t *testing.T) *Matrix {
	t.Helper()
	return mustNew(t, Meta{}, []TermRow{
		{Term: "kidnei", Form: WithNote("kidney", "organ")}, {Term: "renal", Form: WithNote("", "organ")}, {Term: "ga", Form: "gas"}, {Term: "gaa", Form: "ga"}, {Term: "two", Form: WithForms("two", "same", "one", "twos", "shared")}, {Term: "one", Form: WithForms("one", "same", "shared")},
	})
}

func TestWordsAreLookedUpAsPeopleWriteThemThenAsTerms(t *testing.T) {
	want := map[string]string{"kidney": "kidnei", "kidnei": "kidnei", "renal": "renal", "gas": "ga", "ga": "gaa", "same": "one", "one": "one", "twos": "two", "shared": "one"}
	got := written(t).TermsOf("kidney", "kidnei", "renal", "gas", "ga", "same", "liver", "kidney", "one", "twos", "shared")
	check.Equal(t, want, got)
}

func TestNearestSpelling(t *testing.T) {
	m := written(t)
	for word, want := range map[string]string{
		"kidnay": "kidney", "kydnay": "kidney", "kydnays": "", "renals": "renal", "gase": "gas", "gasse": "gas", "gasses": "", "réal": "", "rénal": "renal", "zebra": "",
	} {
		check.Equal(t, want, m.Nearest(word), word)
	}
}
