package store

import (
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/glob"
)

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
		{"kept out by name", []string{"*", "-tenant-*"}, "tenant-a", false},
		{"one of a list kept out", []string{"*", "-tenant-*"}, "logs,tenant-a", false},
		{"next to what is excluded", []string{"*", "-tenant-*"}, "logs,shop-*", true},
		{"a wildcard that may name it", []string{"*", "-tenant-*"}, "*-a", false},
		{"a wildcard inside of it", []string{"*", "-tenant-*"}, "tenant-a*", false},
		{"all indices, with some kept out", []string{"*", "-tenant-*"}, "", false},
		{"_all, with some kept out", []string{"*", "-tenant-*"}, "_all", false},
		{"nothing but an exclusion, with some kept out", []string{"*", "-tenant-*"}, "-logs", false},
		{"the request takes it away as well", []string{"*", "-tenant-*"}, "logs*,-tenant-*", true},
		{"date math", []string{"*"}, "<logs-{now/d}>", true},
		{"date math may name what is kept out", []string{"*", "-tenant-*"}, "<logs-{now/d}>", false},
		{"date math under a pattern", []string{"logs-*"}, "<logs-{now/d}>", false},
	} {
		set := newIndexSet(tt.patterns)
		check.Equal(t, tt.want, set.covers(tt.expression), tt.name, tt.patterns, tt.expression)
	}
}

func TestExpressionStandsForIndicesOfABinding(t *testing.T) {
	for _, tt := range []struct {
		name       string
		patterns   []string
		expression string
		names      []string
		want       bool
	}{
		{"an alias", []string{"docs*"}, "live", []string{"docs1", "docs2"}, true},
		{"an alias of more", []string{"docs*"}, "live", []string{"docs1", "logs"}, false},
		{"an alias of more, each bound", []string{"docs*", "logs"}, "live", []string{"docs1", "logs"}, true},
		{"nothing", []string{"*"}, "lost-*", nil, false},
		{"date math", []string{"logs-*"}, "<logs-{now/d}>", []string{"logs-2026.11.22"}, true},
		{"an exclusion of the request", []string{"docs1"}, "docs*,-docs2", []string{"docs1"}, true},
		{"an index that is kept out", []string{"docs*", "-docs2"}, "live", []string{"docs1", "docs2"}, false},
		{"an alias that is kept out", []string{"docs*", "-tenant-*"}, "tenant-a", []string{"docs1"}, false},
		{"a wildcard that may name such an alias", []string{"docs*", "-tenant-*"}, "t*", []string{"docs1"}, false},
		{"date math that may name such an alias", []string{"docs*", "-tenant-*"}, "<t-{now/d}>", []string{"docs1"}, false},
		{"another alias", []string{"docs*", "-tenant-*"}, "live", []string{"docs1"}, true},
	} {
		set := newIndexSet(tt.patterns)
		check.Equal(t, tt.want, set.holds(tt.expression, tt.names), tt.name, tt.patterns, tt.expression, tt.names)
	}
}

func TestPatternsOverlapWhereANameMatchesBoth(t *testing.T) {
	all := func(letters string, most int) []string {
		out := []string{""}
		for done := 0; done < len(out); done++ {
			if len(out[done]) < most {
				for _, r := range letters {
					out = append(out, out[done]+string(r))
				}
			}
		}
		return out
	}
	patterns, names := all("ab*", 4), all("ab", 6)
	matches := make([]map[string]bool, len(patterns))
	for i, p := range patterns {
		matches[i] = map[string]bool{}
		for _, n := range names {
			if glob.Match(p, n) {
				matches[i][n] = true
			}
		}
	}
	for i, a := range patterns {
		for k, b := range patterns {
			want := false
			for n := range matches[i] {
				want = want || matches[k][n]
			}
			check.Must(t, overlap(a, b) == want, "%q and %q overlap: %v, want %v", a, b, !want, want)
		}
	}
	if !overlap("tenant-*", strings.Repeat("*a", 300)) || overlap("tenant-*", strings.Repeat("*a", 200)) != overlap("tenant-*", "*a*a") {
		t.Error("long patterns")
	}
}
