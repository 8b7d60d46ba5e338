package expand

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// A shape makes a search body that grows with n.
type shape struct {
	name string
	body func(n int) string
}

// shapes are bodies that could cost more than their length: much of everything
// that a scan counts, compares or remembers.
var shapes = []shape{
	{"clauses", func(n int) string {
		return `{"query":{"bool":{"should":[` + strings.Repeat(`{"match":{"body":"car"}},`, n) + `{"match":{"body":"car"}}]}}}`
	}},
	{"clauses without fields", func(n int) string {
		return `{"query":{"bool":{"should":[` + strings.Repeat(`{"query_string":{"query":"car"}},`, n) + `{"match":{"body":"car"}}]}}}`
	}},
	{"fields", func(n int) string {
		return `{"query":{"multi_match":{"query":"car","fields":[` + manyFields(n) + `]}}}`
	}},
	{"a field again and again", func(n int) string {
		return `{"query":{"multi_match":{"query":"car","fields":[` + strings.Repeat(`"body","title^2",`, n) + `"body"]}}}`
	}},
	{"phrases", func(n int) string {
		return `{"query":{"bool":{"must":[` + strings.Repeat(`{"match_phrase":{"body":"car"}},`, n) + `{"match":{"body":"car"}}]}}}`
	}},
	{"filters", func(n int) string {
		return `{"query":{"bool":{"filter":[` + strings.Repeat(`{"term":{"a":"b"}},`, n) + `{"term":{"a":"b"}}],"must":{"match":{"body":"car"}}}}}`
	}},
	{"notes", func(n int) string {
		return `{"query":{"bool":{"should":[` + strings.Repeat(`{"term":{"a":"b"}},`, n) + `{"match":{"body":"car"}}]}}}`
	}},
	{"highlights", func(n int) string {
		var aggregations strings.Builder
		for i := range n {
			fmt.Fprintf(&aggregations, `"a%d":{"top_hits":{"highlight":{}}},`, i)
		}
		return `{"query":{"match":{"body":"car"}},"aggs":{` + aggregations.String() + `"a":{"filter":{}}}}`
	}},
	{"blanks", func(n int) string {
		return `{"query":` + strings.Repeat(" ", 10*n) + `{"match":{"body":"car"}}}`
	}},
	{"a long name", func(n int) string {
		return `{"query":{"bool":{"must":{"match":{"body":"car"}},"` + strings.Repeat("k", 10*n) + `":1}}}`
	}},
	{"a long text", func(n int) string {
		return `{"query":{"match":{"body":"` + strings.Repeat("car ", 3*n) + `"}}}`
	}},
	{"escapes", func(n int) string {
		return `{"query":{"match":{"body":"` + strings.Repeat(`\u0063`, 3*n) + `"}}}`
	}},
}

// expand expands a body of the shape.
func (s shape) expand(tb testing.TB, e *Expander, body []byte) {
	tb.Helper()
	_, err := e.Expand(tb.Context(), &Request{Body: body})
	check.Must(tb, err == nil, "%s: %v", s.name, err)
}

func TestMemoryGrowsNoFasterThanTheBody(t *testing.T) {
	c, m := rental(t)
	e := New(c, m, widening())
	for _, s := range shapes {
		allocated := func(n int) float64 {
			body := []byte(s.body(n))
			s.expand(t, e, body) // fills the memory that is used again
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s.expand(t, e, body)
			runtime.ReadMemStats(&after)
			return float64(after.TotalAlloc - before.TotalAlloc)
		}
		const fixed = 64 << 10 // what does not depend on the body
		small, large := allocated(1000), allocated(10_000)
		check.That(t, large <= 20*(small+fixed), "%s: %.0f bytes for the body and %.0f for one ten times as long", s.name, small, large)
	}
}
