package combine

import (
	"regexp"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
)

func TestFilterMatchesByFrequencyAndShape(t *testing.T) {
	for _, tt := range []struct {
		name    string
		filter  TermFilter
		term    string
		docFreq uint32
		docs    uint64
		want    bool
	}{
		{"the zero filter", TermFilter{}, "car", 0, 0, true},
		{"often enough", TermFilter{MinDocFreq: 3}, "car", 3, 100, true},
		{"too rare", TermFilter{MinDocFreq: 3}, "car", 2, 100, false},
		{"too rare, of an unknown number", TermFilter{MinDocFreq: 3}, "car", 2, 0, false},
		{"in no document", TermFilter{MinDocFreq: 1}, "car", 0, 100, false},
		{"of unknown frequency", TermFilter{MinDocFreq: 3}, "car", 0, 0, true},
		{"found by Drop", TermFilter{Drop: regexp.MustCompile(`-`)}, "t-shirt", 1, 9, false},
		{"not found by Drop", TermFilter{Drop: regexp.MustCompile(`-`)}, "car", 1, 9, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check.Equal(t, tt.want, tt.filter.Match(tt.term, tt.docFreq, tt.docs), tt.term, tt.docFreq, tt.docs)
		})
	}
}

func TestFilterDropsRowsAndColumns(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{Source: "by hand", Params: map[string]string{"power": "3"}, Docs: 20}, vehicles())
	f := TermFilter{MinDocFreq: 3, Drop: regexp.MustCompile(`^[bc]`)}
	got, dropped, err := f.Apply(m)
	check.OK(t, err)
	// rental is too rare, car and bus are left out by their first letters.
	want := "automobile:\nhire:\nlorry:\n"
	check.That(t, describeRows(got) == want && dropped == 3, "%d dropped, left\n%s", dropped, describeRows(got))
	wantMeta := simmatrix.Meta{
		Source: "by hand", Docs: 20, Terms: 3, Symmetric: true, Dominant: true,
		Params: map[string]string{
			"power": "3", "filter_min_doc_freq": "3", "filter_drop": "^[bc]",
		},
	}
	check.Equal(t, wantMeta, got.Meta())
	onlyBus := TermFilter{Drop: regexp.MustCompile(`^bus$`)}
	got, dropped, err = onlyBus.Apply(m)
	if err != nil || dropped != 1 || describeRows(got) != "automobile: car 0.50\ncar: automobile 0.50 lorry 0.25\nhire: rental 0.90\nlorry:\nrental:\n" {
		t.Errorf("%v, %d dropped\n%s", err, dropped, describeRows(got))
	}
}

func TestFilterThatMatchesNothingIsAnError(t *testing.T) {
	nothing := TermFilter{Drop: regexp.MustCompile(`.`)}
	_, _, err := nothing.Apply(matrixtest.New(t, simmatrix.Meta{}, vehicles()))
	check.Error(t, simmatrix.ErrNoVocabulary, err)
	m, dropped, err := nothing.Apply(matrixtest.New(t, simmatrix.Meta{}, nil))
	check.That(t, err == nil && dropped == 0 && m.Len() == 0, "of no terms: %d dropped, %v", dropped, err)
}
