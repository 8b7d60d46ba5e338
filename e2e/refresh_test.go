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
	var bulk strings.Builder
	for i := range 20_000 {
		word := "car"
		if i%50 == 0 {
			word = "automobile"
		}
		fmt.Fprintf(&bulk, "{\"index\":{\"_id\":\"%d\"}}\n{\"body\":\"%s\"}\n", i, word)
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		e.makeIndex(t, index, strings.Replace(relatedDefinition, `"settings":{`, `"settings":{"refresh_interval":"-1",`, 1))
		write := func() { e.must(t, http.MethodPost, "/"+index+"/_bulk", bulk.String()) }
		refreshes := func() int {
			type stats struct {
				All struct {
					Primaries struct{ Refresh struct{ Total int } }
				} `json:"_all"`
			}
			return ask[stats](t, e.cluster, http.MethodGet, "/"+index+"/_stats/refresh", "").All.Primaries.Refresh.Total
		}
		write()
		e.refresh(t, index)
		a := setupWide(t, e, nil)
		write()
		before := refreshes()
		if n := a.rewrites(t, func() { a.find(t, index, relatedSearch("car")) }); n != 1 {
			t.Error("the search was not rewritten")
		}
		if n := refreshes(); n != before {
			t.Errorf("refreshed %d times", n-before)
		}
		// The numbers are still among the ids.
		e.must(t, http.MethodPost, "/"+index+"/_termvectors", `{"doc":{"body":"car"}}`)
		if refreshes() == before {
			t.Error("a call like akin's does not refresh either: the test shows nothing")
		}
	})
}
