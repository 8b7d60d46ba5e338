package rowstore

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestGlobMatchesTheWholeName(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"logs", "logs", true},
		{"logs", "logs2", false},
		{"logs", "", false},
		{"*", "", true},
		{"*", "anything", true},
		{"logs-*", "logs-", true},
		{"logs-*", "logs-2026", true},
		{"logs-*", "old-logs-2026", false},
		{"*.text", "title.text", true},
		{"*.text", ".text", true},
		{"*.text", "title.text.raw", false},
		{"a*a", "a", false}, // the two ends may not share a byte
		{"a*a", "aa", true},
		{"a*b*c", "abc", true},
		{"a*b*c", "acb", false},
		{"*ab*ab*", "ab", false},
		{"*ab*ab*", "abab", true},
		{"**", "x", true},
		{"a?c", "abc", false}, // only * is a wildcard
		{"t*", "über", false},
	} {
		if got := newGlob(tt.pattern).match(tt.name); got != tt.want {
			t.Errorf("%q matches %q: %v, want %v", tt.pattern, tt.name, got, tt.want)
		}
	}
}

func TestCoversNeedsEveryPartOfAnIndexExpression(t *testing.T) {
	for _, tt := range []struct {
		name       string
		patterns   []string
		expression string
		want       bool
	}{
		{"one name", []string{"logs"}, "logs", true},
		{"every part", []string{"logs-*"}, "logs-1,logs-2", true},
		{"one part is another index", []string{"logs-*"}, "logs-1,shop", false},
		{"parts of two patterns", []string{"logs-*", "shop"}, "logs-1,shop", true},
		{"all indices by nothing", []string{"logs-*"}, "", false},
		{"all indices by name", []string{"logs-*"}, "_all", false},
		{"all indices by star", []string{"logs-*"}, "*", false},
		{"star covers nothing named", []string{"*"}, "", true},
		{"star covers _all", []string{"*"}, "_all", true},
		{"star covers lists", []string{"*"}, "a,b-*,_all", true},
		{"a narrower wildcard", []string{"logs-*"}, "logs-2026*", true},
		{"the same wildcard", []string{"logs-*"}, "logs-*", true},
		{"a wider wildcard", []string{"logs-*"}, "log*", false},
		{"an exclusion only narrows", []string{"logs-*"}, "logs-*,-shop", true},
		{"an exclusion from all", []string{"logs-*"}, "*,-shop", false},
		{"nothing but an exclusion is all", []string{"logs-*"}, "-logs-1", false},
		{"nothing but an exclusion under star", []string{"*"}, "-logs-1", true},
		{"an empty part is all", []string{"logs-*"}, "logs-1,", false},
		{"another cluster", []string{"logs-*"}, "eu:logs-1", false},
		{"another cluster by pattern", []string{"*:logs-*"}, "eu:logs-1", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := newGlobs(tt.patterns).covers(tt.expression); got != tt.want {
				t.Errorf("%q covers %q: %v, want %v", tt.patterns, tt.expression, got, tt.want)
			}
		})
	}
}

// oracle returns the regular expression that a glob means.
func oracle(pattern string) *regexp.Regexp {
	quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `(?s:.*)`)
	return regexp.MustCompile(`\A(?:` + quoted + `)\z`)
}

func FuzzGlobAgreesWithRegexp(f *testing.F) {
	f.Add("a*b*", "acb", "")
	f.Add("*ab*ab*", "abab", "x")
	f.Add("a*a", "a", "a")
	f.Add("\xcc", "\xb0", "0") // valid UTF-8 only when put together
	f.Fuzz(func(t *testing.T, pattern, name, filler string) {
		if len(pattern) > 100 || !utf8.ValidString(pattern) || !utf8.ValidString(name) || !utf8.ValidString(filler) {
			t.Skip() // regexp reads invalid bytes in its own way
		}
		g := newGlob(pattern)
		if got, want := g.match(name), oracle(pattern).MatchString(name); got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, name, got, want)
		}
		// What a matching pattern stands for matches too.
		if instance := strings.ReplaceAll(name, "*", filler); g.match(name) && !g.match(instance) {
			t.Fatalf("%q covers %q but not its instance %q", pattern, name, instance)
		}
	})
}
