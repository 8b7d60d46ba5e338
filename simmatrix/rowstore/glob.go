package rowstore

import "strings"

// A glob is a pattern split at its '*' wildcards, each of which stands for any
// run of characters. There are no other wildcards.
type glob []string

func newGlob(pattern string) glob { return strings.Split(pattern, "*") }

// match reports whether the whole of s matches. A '*' in s is matched by a
// wildcard only, so for a pattern s it tells whether g covers all that s does.
func (g glob) match(s string) bool {
	first, rest := g[0], g[1:]
	if len(rest) == 0 {
		return s == first
	}
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for _, part := range rest[:len(rest)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, rest[len(rest)-1])
}

// A globs value is a list of patterns, one of which has to match.
type globs []glob

func newGlobs(patterns []string) globs {
	gs := make(globs, len(patterns))
	for i, p := range patterns {
		gs[i] = newGlob(p)
	}
	return gs
}

func (gs globs) match(s string) bool {
	for _, g := range gs {
		if g.match(s) {
			return true
		}
	}
	return false
}

// covers reports whether every index that the expression can name matches.
// The expression is that of a request's path: names and patterns separated by
// commas, where "-name" takes indices away again; "" and "_all" are "*".
func (gs globs) covers(expression string) bool {
	included := false
	for part := range strings.SplitSeq(expression, ",") {
		if strings.HasPrefix(part, "-") { // no index name begins so: an exclusion
			continue
		}
		if part == "" || part == "_all" {
			part = "*"
		}
		if !gs.match(part) {
			return false
		}
		included = true
	}
	return included || gs.match("*")
}
