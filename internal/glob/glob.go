// Package glob matches names against patterns.
package glob

import "strings"

// Match reports whether a pattern matches all of s. '*' matches any run of
// characters; there are no other wildcards. A '*' in s is matched only by a
// wildcard, so if s is a pattern, Match reports whether pattern matches all
// that s matches.
func Match(pattern, s string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	s, ok := strings.CutPrefix(s, first)
	if !wild || !ok {
		return ok && s == ""
	}
	for {
		part, more, wild := strings.Cut(rest, "*")
		if !wild {
			return strings.HasSuffix(s, part)
		}
		if _, s, ok = strings.Cut(s, part); !ok {
			return false
		}
		rest = more
	}
}
