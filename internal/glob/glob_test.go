package glob

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/akin-search/akin/e2e/check"
)

func TestPatternMatchesTheWholeName(t *testing.T) {
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
		check.Equal(t, tt.want, Match(tt.pattern, tt.name), tt.pattern, tt.name)
	}
}

// oracle returns the regular expression that a glob means.
func oracle(pattern string) *regexp.Regexp {
	quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `(?s:.*)`)
	return regexp.MustCompile(`\A(?:` + quoted + `)\z`)
}

func FuzzMatchAgreesWithRegexp(f *testing.F) {
	f.Add("a*b*", "acb", "")
	f.Add("*ab*ab*", "abab", "x")
	f.Add("a*a", "a", "a")
	f.Add("*aa*aa", "aaa", "")
	f.Add("\xcc", "\xb0", "0") // valid UTF-8 only when put together
	f.Fuzz(func(t *testing.T, pattern, name, filler string) {
		if len(pattern) > 100 || !utf8.ValidString(pattern) || !utf8.ValidString(name) || !utf8.ValidString(filler) {
			t.Skip("regexp reads invalid bytes in its own way")
		}
		got, want := Match(pattern, name), oracle(pattern).MatchString(name)
		check.Must(t, got == want, "%q matches %q: %v, want %v", pattern, name, got, want)
		// What a matching pattern stands for matches too.
		instance := strings.ReplaceAll(name, "*", filler)
		check.Must(t, !Match(pattern, name) || Match(pattern, instance), "%q covers %q but not its instance %q", pattern, name, instance)
	})
}
