package simmatrix

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// tokens reads "wi-fi:2/wi fi": what shares a position has a slash between, what
// spans several has their number behind a colon, and "_" is a gap.
func tokens(text string) *Tokens {
	t := &Tokens{}
	for position, word := range strings.Fields(text) {
		for term := range strings.SplitSeq(word, "/") {
			if term == "_" {
				continue
			}
			term, length, _ := strings.Cut(term, ":")
			n, _ := strconv.Atoi(length)
			t.Terms, t.Positions, t.Lengths = append(t.Terms, term), append(t.Positions, position), append(t.Lengths, n)
		}
	}
	return t
}

func TestReadingsOfATextAreDecidedByItsTokens(t *testing.T) {
	for text, want := range map[string][]string{
		"email":                         {"email"},
		"e mail":                        {"e mail"},
		"point _ care":                  {"point _ care"},
		"東京 京都 都庁":                      {"東京 京都 都庁"}, // the engines' cjk
		"car/car":                       {"car"},
		"cars/car":                      {"cars", "car"},
		"aeroport/aéroport":             {"aeroport", "aéroport"},
		"aeroport/aéroport de":          {"aeroport de", "aéroport de"},
		"cars/car hires/hire":           {"cars hires", "cars hire", "car hires", "car hire"},
		"fachkataster/fach/kataster":    {"fachkataster"},
		"fachkataster/kataster":         {"fachkataster"},
		"neue fachkataster/kataster/fa": {"neue fachkataster"},
		"mice/mouse":                    {"mice", "mouse"},
		"papa/pa":                       {"papa", "pa"},
		"wi-fi:2/wi fi":                 {"wi-fi", "wi fi"},
		"wi-fi:2/wi fi box":             {"wi-fi _ box", "wi fi box"},
		"nyc:3/new york city":           {"nyc", "new york city"},
		"a b c d e f g h i":             nil,
		"a/b c/d e/f g/h":               {"a c e g", "a c e h", "a c f g", "a c f h", "a d e g", "a d e h", "a d f g", "a d f h"}, // the first eight
		"":                              nil,
		strings.Repeat("a/b/", 50):      nil,
	} {
		var got []string
		for _, reading := range tokens(text).Readings() {
			got = append(got, Spelled(reading))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzReadings(f *testing.F) {
	f.Add("cars/car hires/hire wi-fi:2/wi fi")
	f.Add("a:9/b:0 _ \xff")
	f.Fuzz(func(t *testing.T, text string) {
		own := tokens(text)
		for _, reading := range own.Readings() {
			check.OK(t, CheckTerm(reading))
			for word := range WordsOf(reading) {
				check.Must(t, slices.Contains(own.Terms, word), "%q reads %q", text, reading)
			}
		}
		count := 0
		for path := range own.Paths(0) {
			count++
			for k := range path[1:] {
				check.Must(t, own.Positions[path[k+1]] >= own.Positions[path[k]]+max(own.Lengths[path[k]], 1), "%q: path %v", text, path)
			}
		}
		check.Must(t, count <= maxPaths*MaxExpressionTerms, "%d paths", count)
	})
}
