package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestStatisticsLeaveTheIndexUnrefreshed looks for statistics while documents
// have been written that no search sees yet. Engines number the documents
// that the statistics are asked by, and where such a number is the id of one
// of those, they may refresh the index to find it.
func TestStatisticsLeaveTheIndexUnrefreshed(t *testing.T) {
	const index = "akin-e2e-unrefreshed"
	file := relatedFile(t, vectorsA)
	eachEngine(t, func(t *testing.T, e *engine) {
		e.makeIndex(t, index, strings.Replace(relatedDefinition, `"settings":{`, `"settings":{"refresh_interval":"-1",`, 1))
		write := func() { e.must(t, http.MethodPost, "/"+index+"/_bulk", numberedBulk(20_000)) }
		write()
		e.must(t, http.MethodPost, "/"+index+"/_refresh", "")
		a := serveRelated(t, e, file, nil)
		write()
		before := e.refreshes(t, index)
		if !a.rewrites(t, func() { a.must(t, http.MethodPost, "/"+index+"/_search", relatedSearch("car")) }) {
			t.Error("the search was not rewritten")
		}
		if n := e.refreshes(t, index); n != before {
			t.Errorf("refreshed %d times", n-before)
		}
		// The numbers are still among the ids.
		e.must(t, http.MethodPost, "/"+index+"/_termvectors", `{"doc":{"body":"car"}}`)
		if e.refreshes(t, index) == before {
			t.Error("a call like akin's does not refresh either: the test shows nothing")
		}
	})
}

// numberedBulk is a bulk of n documents, of which few have a related word.
func numberedBulk(n int) string {
	var b strings.Builder
	for i := range n {
		word := "car"
		if i%50 == 0 {
			word = "automobile"
		}
		fmt.Fprintf(&b, "{\"index\":{\"_id\":\"%d\"}}\n{\"body\":\"%s\"}\n", i, word)
	}
	return b.String()
}

// refreshes returns how often an index was refreshed.
func (e *engine) refreshes(t *testing.T, index string) int {
	t.Helper()
	var stats struct {
		All struct {
			Primaries struct {
				Refresh struct{ Total int }
			}
		} `json:"_all"`
	}
	if err := e.getJSON(t.Context(), "/"+index+"/_stats/refresh", &stats); err != nil {
		t.Fatal(err)
	}
	return stats.All.Primaries.Refresh.Total
}
