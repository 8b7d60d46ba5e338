package store

import (
	"iter"
	"slices"
	"strings"

	"github.com/akin-search/akin/internal/glob"
)

// matchAny reports whether one of the patterns matches s.
func matchAny(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return glob.Match(p, s) })
}

// An indexSet is the indices of a binding: patterns to include and to exclude.
type indexSet struct{ in, out []string }

// Covers returns a function that reports whether the patterns match everything
// that an index expression can name, as for [Binding.Indices].
func Covers(patterns []string) func(expression string) bool {
	s := newIndexSet(patterns)
	return s.covers
}

// newIndexSet parses patterns. A leading "-", as no index name has, excludes.
func newIndexSet(patterns []string) indexSet {
	var s indexSet
	for _, p := range patterns {
		if out, ok := strings.CutPrefix(p, "-"); ok {
			s.out = append(s.out, out)
		} else {
			s.in = append(s.in, p)
		}
	}
	return s
}

// covers reports whether every index that the expression can name is in the
// set. The expression is from a request's path: names and patterns separated by
// commas, where "-name" removes indices again; "" and "_all" mean "*".
func (s *indexSet) covers(expression string) bool {
	for part := range partsOf(expression) {
		if !matchAny(s.in, part) {
			return false
		}
	}
	return !s.canNameExcluded(expression)
}

// holds reports whether all names that an expression resolves to are in the
// set. An excluded name in the expression stays excluded even if its index is
// in: it may be an alias with a filter.
func (s *indexSet) holds(expression string, names []string) bool {
	for _, name := range names {
		if !matchAny(s.in, name) || s.excludes(name) {
			return false
		}
	}
	return len(names) > 0 && !s.canNameExcluded(expression)
}

// canNameExcluded reports whether the expression can name an excluded index.
func (s *indexSet) canNameExcluded(expression string) bool {
	for part := range partsOf(expression) {
		if strings.HasPrefix(part, "<") { // date math can become any name
			part = "*"
		}
		if s.excludes(part) {
			return true
		}
	}
	return false
}

func (s *indexSet) excludes(pattern string) bool {
	return slices.ContainsFunc(s.out, func(out string) bool { return overlap(out, pattern) })
}

// partsOf yields the parts of an index expression that are not exclusions, or
// "*" if there are none.
func partsOf(expression string) iter.Seq[string] {
	return func(yield func(string) bool) {
		none := true
		for part := range strings.SplitSeq(expression, ",") {
			if strings.HasPrefix(part, "-") {
				continue
			}
			none = false
			if part == "" || part == "_all" {
				part = "*"
			}
			if !yield(part) {
				return
			}
		}
		if none {
			yield("*")
		}
	}
}

// maxPattern limits patterns that are compared; names have at most 255 bytes.
const maxPattern = 512

// overlap reports whether some name matches both patterns. It is also true if
// the second is too long.
func overlap(a, b string) bool {
	if len(b) > maxPattern {
		return true
	}
	// meet[k] says that the rest of a overlaps b[k:].
	meet, next := make([]bool, len(b)+1), make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		for k := len(b); k >= 0; k-- {
			switch aEnds, bEnds := i == len(a), k == len(b); {
			case aEnds && bEnds:
				meet[k] = true
			case !aEnds && a[i] == '*': // matches nothing, or one more character
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
