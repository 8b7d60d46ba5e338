package rowstore

import (
	"iter"
	"slices"
	"strings"
)

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

// An indexSet is what a binding says of indices: patterns of those that it
// takes in, and patterns of those that it keeps out.
type indexSet struct {
	in  globs
	out []string
}

// newIndexSet reads patterns, of which those with a leading "-" keep out. No
// name of an index begins so.
func newIndexSet(patterns []string) indexSet {
	var s indexSet
	for _, p := range patterns {
		if out, ok := strings.CutPrefix(p, "-"); ok {
			s.out = append(s.out, out)
		} else {
			s.in = append(s.in, newGlob(p))
		}
	}
	return s
}

// covers reports whether every index that the expression can name is in the
// set. The expression is that of a request's path: names and patterns separated
// by commas, where "-name" takes indices away again; "" and "_all" are "*".
func (s *indexSet) covers(expression string) bool {
	included := false
	for part := range partsOf(expression) {
		if !s.in.match(part) {
			return false
		}
		included = true
	}
	return (included || s.in.match("*")) && !s.bars(expression)
}

// holds reports whether all names are in the set that an expression stands for.
// A name that is kept out stays out where the expression spells it, though the
// index behind it is in: it may be an alias with a filter.
func (s *indexSet) holds(expression string, names []string) bool {
	for _, name := range names {
		if !s.in.match(name) || s.keepsOut(name) {
			return false
		}
	}
	return len(names) > 0 && !s.bars(expression)
}

// bars reports whether the expression can name something that is kept out.
func (s *indexSet) bars(expression string) bool {
	if len(s.out) == 0 {
		return false
	}
	included := false
	for part := range partsOf(expression) {
		if strings.HasPrefix(part, "<") { // date math, which may become any name
			part = "*"
		}
		if s.keepsOut(part) {
			return true
		}
		included = true
	}
	return !included // all indices, and some that are kept out among them
}

func (s *indexSet) keepsOut(pattern string) bool {
	return slices.ContainsFunc(s.out, func(out string) bool { return overlap(out, pattern) })
}

// partsOf yields the parts of an index expression that are no exclusions.
func partsOf(expression string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for part := range strings.SplitSeq(expression, ",") {
			if strings.HasPrefix(part, "-") {
				continue
			}
			if part == "" || part == "_all" {
				part = "*"
			}
			if !yield(part) {
				return
			}
		}
	}
}

// maxPattern bounds the patterns of a request that are compared: names have 255
// bytes at most.
const maxPattern = 512

// overlap reports whether there is a name that both patterns match; true, too,
// for a second one that is too long.
func overlap(a, b string) bool {
	if len(b) > maxPattern {
		return true
	}
	// meet[k] says that what is left of a and b[k:] overlap.
	meet, next := make([]bool, len(b)+1), make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		for k := len(b); k >= 0; k-- {
			switch aEnds, bEnds := i == len(a), k == len(b); {
			case aEnds && bEnds:
				meet[k] = true
			case !aEnds && a[i] == '*': // it stands for nothing, or for one character more
				meet[k] = next[k] || !bEnds && meet[k+1]
			case !bEnds && b[k] == '*':
				meet[k] = meet[k+1] || !aEnds && next[k]
			default:
				meet[k] = !aEnds && !bEnds && a[i] == b[k] && next[k+1]
			}
		}
		meet, next = next, meet
	}
	return next[0]
}
