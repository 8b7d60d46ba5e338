package simmatrix

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTextsSplitAtWordBoundaries(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"punctuation":  {"The car, rented (cheaply)!", []string{"The", "car", "rented", "cheaply"}},
		"apostrophe":   {"the driver's seat", []string{"the", "driver's", "seat"}},
		"numbers":      {"3.5 litres, 1,000 km", []string{"3.5", "litres", "1,000", "km"}},
		"other script": {"Größe île Москва", []string{"Größe", "île", "Москва"}},
		"nothing":      {" — … !", nil},
		"too long":     {"a " + strings.Repeat("x", 300) + " b", []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			texts := NewTexts()
			texts.Add(tt.text)
			if diff := cmp.Diff(tt.want, texts.Words()); diff != "" {
				t.Errorf("words (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTextsBecomeSequencesOfIndexTerms(t *testing.T) {
	texts := NewTexts()
	texts.Add("The cars", "of the car")
	texts.Add("of the")
	texts.Add("car Wi-Fi")
	analyzed := map[string][]string{"cars": {"car"}, "car": {"car"}, "Wi": {"wi", "wireless"}, "Fi": {"fi"}}
	var terms [][]string
	for _, w := range texts.Words() {
		terms = append(terms, analyzed[w])
	}
	want := NewCorpus()
	want.AddDocument([]string{"car", "car"})
	want.AddDocument(nil)
	want.AddDocument([]string{"car", "wi", "wireless", "fi"})
	got := texts.Corpus(terms)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Corpus{})); diff != "" {
		t.Errorf("corpus (-want +got):\n%s", diff)
	}
}
