package combine

import (
	"errors"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/internal/matrixtest"
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
		{"of unknown frequency", TermFilter{MinDocFreq: 3, MaxDocShare: 0.1}, "car", 0, 0, true},
		{"just the share", TermFilter{MaxDocShare: 0.1}, "car", 10, 100, true},
		{"too frequent", TermFilter{MaxDocShare: 0.1}, "car", 11, 100, false},
		{"a share of an unknown number", TermFilter{MaxDocShare: 0.1}, "car", 11, 0, true},
		{"long enough in code points", TermFilter{MinRunes: 3}, "čaj", 1, 9, true},
		{"too short", TermFilter{MinRunes: 4}, "čaj", 1, 9, false},
		{"short enough in code points", TermFilter{MaxRunes: 3}, "čaj", 1, 9, true},
		{"too long", TermFilter{MaxRunes: 2}, "čaj", 1, 9, false},
		{"a digit first", TermFilter{NoDigits: true}, "3d", 1, 9, false},
		{"an Arabic-Indic digit first", TermFilter{NoDigits: true}, "٣d", 1, 9, false},
		{"a digit last", TermFilter{NoDigits: true}, "mp3", 1, 9, true},
		{"digits allowed", TermFilter{}, "3d", 1, 9, true},
		{"found by Keep", TermFilter{Keep: regexp.MustCompile(`^[a-z]+$`)}, "car", 1, 9, true},
		{"not found by Keep", TermFilter{Keep: regexp.MustCompile(`^[a-z]+$`)}, "t-shirt", 1, 9, false},
		{"found by Drop", TermFilter{Drop: regexp.MustCompile(`-`)}, "t-shirt", 1, 9, false},
		{"found by both", TermFilter{Keep: regexp.MustCompile(`shirt`), Drop: regexp.MustCompile(`-`)}, "t-shirt", 1, 9, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.filter.Match(tt.term, tt.docFreq, tt.docs); got != tt.want {
				t.Errorf("Match(%q, %d, %d) = %v", tt.term, tt.docFreq, tt.docs, got)
			}
		})
	}
}

func TestFilterDropsRowsAndColumns(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{Source: "by hand", Params: map[string]string{"power": "3"}, Docs: 20}, matrixtest.Vehicles())
	f := TermFilter{MinDocFreq: 3, MaxDocShare: 0.5, MinRunes: 2, MaxRunes: 20, NoDigits: true, Keep: regexp.MustCompile(`.`), Drop: regexp.MustCompile(`^b`)}
	got, dropped, err := f.Apply(m)
	if err != nil {
		t.Fatal(err)
	}
	// rental is too rare, car in 12 of 20 documents, bus begins with b.
	want := "automobile:\nhire:\nlorry:\n"
	if describeRows(got) != want || dropped != 3 {
		t.Errorf("%d dropped, left\n%s", dropped, describeRows(got))
	}
	wantMeta := simmatrix.Meta{
		Source: "by hand", Docs: 20, Terms: 3, Symmetric: true, Dominant: true,
		Params: map[string]string{
			"power": "3", "filter_min_doc_freq": "3", "filter_max_doc_share": "0.5", "filter_min_runes": "2",
			"filter_max_runes": "20", "filter_no_digits": "true", "filter_keep": ".", "filter_drop": "^b",
		},
	}
	if diff := cmp.Diff(wantMeta, got.Meta()); diff != "" {
		t.Error(diff)
	}
	onlyBus := TermFilter{Drop: regexp.MustCompile(`^bus$`)}
	got, dropped, err = onlyBus.Apply(m)
	if err != nil || dropped != 1 || describeRows(got) != "automobile: car 0.50\ncar: automobile 0.50 lorry 0.25\nhire: rental 0.90\nlorry:\nrental:\n" {
		t.Errorf("%v, %d dropped\n%s", err, dropped, describeRows(got))
	}
}

func TestFilterThatMatchesNothingIsAnError(t *testing.T) {
	nothing := TermFilter{Keep: regexp.MustCompile(`^\bnone$`)}
	if _, _, err := nothing.Apply(matrixtest.New(t, simmatrix.Meta{}, matrixtest.Vehicles())); !errors.Is(err, simmatrix.ErrNoVocabulary) {
		t.Errorf("%v", err)
	}
	if m, dropped, err := nothing.Apply(matrixtest.New(t, simmatrix.Meta{}, nil)); err != nil || dropped != 0 || m.Len() != 0 {
		t.Errorf("of no terms: %d dropped, %v", dropped, err)
	}
}

func TestFilterReportsEverySetting(t *testing.T) {
	for _, f := range []TermFilter{
		{MaxDocShare: -1, MinRunes: -1, MaxRunes: -1},
		{MaxDocShare: math.NaN(), MinRunes: -5, MaxRunes: -7},
		{MaxDocShare: 1.1, MinRunes: -1, MaxRunes: -1},
	} {
		_, _, err := f.Apply(matrixtest.New(t, simmatrix.Meta{}, matrixtest.Vehicles()))
		for _, want := range []string{"max doc share", "min length", "max length"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: no %q in %v", f, want, err)
			}
		}
	}
	crossed := TermFilter{MinRunes: 3, MaxRunes: 2}
	if err := crossed.Validate(); err == nil {
		t.Error("more runes at least than at most")
	}
}

// FuzzTermFilter checks, for random matrices, that the result is the given
// matrix restricted to the terms that match, and that it is no more changed.
func FuzzTermFilter(f *testing.F) {
	f.Add(uint64(1), uint8(9), uint8(2), uint8(0), "t1", "")
	f.Add(uint64(2), uint8(30), uint8(0), uint8(3), "", "[02468]$")
	f.Fuzz(func(t *testing.T, seed uint64, terms, minDocFreq, maxRunes uint8, keep, drop string) {
		m := matrixtest.Random(t, rand.New(rand.NewPCG(seed, 1)), 1+int(terms)%40)
		filter := TermFilter{MinDocFreq: uint32(minDocFreq % 6), MaxRunes: int(maxRunes % 4), MaxDocShare: 0.004}
		if re, err := regexp.Compile(keep); err == nil && utf8.ValidString(keep) {
			filter.Keep = re
		}
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
			if !errors.Is(err, simmatrix.ErrNoVocabulary) {
				t.Fatalf("nothing left: %v", err)
			}
			return
		}
		if err != nil || dropped != m.Len()-len(want) {
			t.Fatalf("%d dropped of %d, %d left: %v", dropped, m.Len(), len(want), err)
		}
		if diff := matrixtest.Diff(matrixtest.New(t, got.Meta(), want), got); diff != "" {
			t.Fatal(diff)
		}
		if again, dropped, err := filter.Apply(got); err != nil || dropped != 0 || again.Checksum() != got.Checksum() {
			t.Fatalf("a second time: %d dropped, %v", dropped, err)
		}
	})
}
