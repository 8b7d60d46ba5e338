package combine

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"unicode/utf8"

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

// FuzzTermFilter checks, for random matrices, that the result is the given
// matrix restricted to the terms that match, and that it is no more changed.
func FuzzTermFilter(f *testing.F) {
	f.Add(uint64(1), uint8(9), uint8(2), "")
	f.Add(uint64(2), uint8(30), uint8(0), "[02468]$")
	f.Fuzz(func(t *testing.T, seed uint64, terms, minDocFreq uint8, drop string) {
		m := matrixtest.Random(t, rand.New(rand.NewPCG(seed, 1)), 1+int(terms)%40)
		filter := TermFilter{MinDocFreq: uint32(minDocFreq % 6)}
		if re, err := regexp.Compile(drop); err == nil && drop != "" && utf8.ValidString(drop) {
			filter.Drop = re
		}
		matches := func(i int) bool { return filter.Match(m.Table().Terms[i], m.Table().DocFreqs[i], m.Table().Meta.Docs) }
		var want []simmatrix.TermRow
		for i, term := range m.Table().Terms {
			if !matches(i) {
				continue
			}
			row := simmatrix.TermRow{Term: term, DocFreq: m.Table().DocFreqs[i]}
			for n := range m.Row(term).All() {
				if j, _ := slices.BinarySearch(m.Table().Terms, n.Term); matches(j) {
					row.Neighbors = append(row.Neighbors, n)
				}
			}
			want = append(want, row)
		}
		got, dropped, err := filter.Apply(m)
		if len(want) == 0 {
			check.Must(t, errors.Is(err, simmatrix.ErrNoVocabulary), "nothing left: %v", err)
			return
		}
		check.Must(t, err == nil && dropped == m.Len()-len(want), "%d dropped of %d, %d left: %v", dropped, m.Len(), len(want), err)
		diff := matrixtest.Diff(matrixtest.New(t, got.Meta(), want), got)
		check.Must(t, diff == "", "%v", diff)
		if again, dropped, err := filter.Apply(got); err != nil || dropped != 0 || again.Checksum() != got.Checksum() {
			t.Fatalf("a second time: %d dropped, %v", dropped, err)
		}
	})
}
