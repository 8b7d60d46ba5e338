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

// An indexSet is the indices of a binding: patterns to include and patterns to
// exclude.
type indexSet struct{ in, out []string }

// Covers returns what reports whether all that an index expression can name is
// in the patterns, as the text of [Binding.Indices] is compared.
func Covers(patterns []string) func(expression string) bool {
	s := newIndexSet(patterns)
	return s.covers
}

// newIndexSet reads patterns, of which those with a leading "-" exclude. No
// index name begins so.
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
// set. The expression is that of a request's path: names and patterns
// separated by commas, where "-name" removes indices again; "" and "_all" are
// "*".
func (s *indexSet) covers(expression string) bool {
	for part := range partsOf(expression) {
		if !matchAny(s.in, part) {
			return false
		}
	}
	return !s.canNameExcluded(expression)
}

// holds reports whether all names that an expression stands for are in the
// set. An excluded name in the expression stays excluded, even if its index is
// in: it may be an alias with a filter.
func (s *indexSet) holds(expression string, names []string) bool {
	for _, name := range names {
		if !matchAny(s.in, name) || s.excludes(name) {
			return false
		}
	}
	return len(names) > 0 && !s.canNameExcluded(expression)
}

// canNameExcluded reports whether the expression can name something excluded.
func (s *indexSet) canNameExcluded(expression string) bool {
	for part := range partsOf(expression) {
		if strings.HasPrefix(part, "<") { // date math, which may become any name
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

// partsOf yields the parts of an index expression that are not exclusions, and
// "*" where it has only those.
func partsOf(expression string) iter.Seq[string] {
	return func(yield func(string) bool) {
		none := true
		for part := range strings.SplitSeq(expression, ",") {
			if strings.HasPrefix(part, "-") {
				continue
			}
			if none = false; part == "" || part == "_all" {
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

// maxPattern bounds the patterns of a request that are compared: names have
// 255 bytes at most.
const maxPattern = 512

// overlap reports whether there is a name that both patterns match. It is also
// true if the second one is too long.
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
			case !aEnds && a[i] == '*': // it matches nothing, or one more character
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
