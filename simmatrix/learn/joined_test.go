package learn

import (
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestWordsThatAreAlsoWrittenAsTwoAreJoined(t *testing.T) {
	texts := NewTexts()
	for _, text := range []string{
		"the rib cage, Rib-cages", "ribcage", "Ribcages", "an e-mail", "email", "e mail",
		"a cross a cross", "across", "an ion of iron", "onion", "on ion", "ion on", "the rapist", "therapist", "type 2 a", "2a",
	} {
		texts.Add(text)
	}
	for range 40 {
		texts.Add("a the of")
	}
	var terms [][]string
	for _, word := range texts.Words() {
		switch term := strings.TrimSuffix(strings.ToLower(word), "s"); term {
		case "the":
			terms = append(terms, nil)
		case "cros":
			terms = append(terms, []string{"cross"})
		default:
			terms = append(terms, []string{term})
		}
	}
	check.Equal(t, []Joined{
		{"email", "e", "mail", "e mail", 2}, {"onion", "on", "ion", "on ion", 1}, {"ribcage", "rib", "cage", "rib cage", 2},
	}, texts.Joined(terms, texts.Corpus(terms)))
}
