package simmatrix

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestExpressionsKeepTheirTermsAndGaps(t *testing.T) {
	for _, tt := range []struct {
		terms     []string
		positions []int
		want      []string // nil where it is refused
		spelled   string
	}{
		{[]string{"heart", "attack"}, []int{0, 1}, []string{"heart", "attack"}, "heart attack"},
		{[]string{"point", "care"}, []int{7, 9}, []string{"point", "", "care"}, "point _ care"},
		{[]string{"new york", "city"}, []int{0, 1}, []string{"new york", "city"}, "new york city"}, // a term with a blank
		{[]string{"heart"}, []int{0}, nil, ""},
		{nil, nil, nil, ""},
		{strings.Fields("a b c d e f g h i"), []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, nil, ""},
		{[]string{"a", "b"}, []int{3, 3}, nil, ""},
		{[]string{"a", "b"}, []int{0, MaxExpressionPositions}, nil, ""},
		{[]string{"a", ""}, []int{0, 1}, nil, ""},
		{[]string{"a", "b\x1fc"}, []int{0, 1}, nil, ""},
		{[]string{"a", "\xff"}, []int{0, 1}, nil, ""},
	} {
		got, err := Expression(tt.terms, tt.positions)
		check.That(t, (err == nil) == (tt.want != nil), "%q at %v: %q, %v", tt.terms, tt.positions, got, err)
		if err != nil {
			continue
		}
		if !IsExpression(got) || !slices.Equal(slices.Collect(WordsOf(got)), tt.terms) || !slices.Equal(ExpressionTerms(got), tt.want) || Spelled(got) != tt.spelled || CheckTerm(got) != nil {
			t.Errorf("%q: %q, spelled %q, %v", tt.terms, ExpressionTerms(got), Spelled(got), CheckTerm(got))
		}
	}
	for _, bad := range []string{"\x1fa", "\x1f", "\x1f\x1fa\x1fb", "\x1fa\x1f", "\x1fa\x1fb\x1f", strings.Repeat("\x1fa", 9), "\x1fa" + strings.Repeat("\x1f", 20) + "b"} {
		check.That(t, CheckTerm(bad) != nil, "%q is taken", bad)
	}
}

// A file without expressions is what it was; one with some is of another format
// version, which earlier programs refuse.
func TestOnlyFilesWithExpressionsHaveTheNewFormatVersion(t *testing.T) {
	expression, err := Expression([]string{"heart", "attack"}, []int{0, 1})
	check.OK(t, err)
	for _, tt := range []struct {
		other   string
		version byte
		count   uint64
	}{{"infarct", 1, 0}, {expression, 3, 1}} {
		m, err := New(Meta{Source: "test"}, []TermRow{
			{Term: "coronary", Neighbors: []Neighbor{{Term: tt.other, Similarity: 1}}}, {Term: tt.other, Form: "as people write it"}, {Term: "zoo"},
		})
		check.OK(t, err)
		var file bytes.Buffer
		check.OK(t, Encode(&file, m))
		want := tt.version
		if want == 1 {
			want = 2 // for the form
		}
		if got := file.Bytes()[len(fileMagic)]; got != want {
			t.Errorf("%q: version %d, want %d", tt.other, got, want)
		}
		back, err := Decode(bytes.NewReader(file.Bytes()))
		if err != nil || back.Meta().Expressions != tt.count || !back.Has(tt.other) || back.Form(tt.other) != "as people write it" {
			t.Errorf("%q: %v", tt.other, err)
		}
		lied := slices.Clone(file.Bytes())
		lied[len(fileMagic)] = 5 - want
		if _, err := Decode(bytes.NewReader(lied)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q in version %d: %v", tt.other, 5-want, err)
		}
	}
}
