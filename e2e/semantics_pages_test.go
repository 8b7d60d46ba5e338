package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestPagesOfAPointInTimeAreOnePage reads the hits of a point in time by
// search_after, while another version of the matrix becomes the active one: the
// pages are those of the version that was active at the first.
func TestPagesOfAPointInTimeAreOnePage(t *testing.T) {
	redis := commonRedis(t)
	first, second := openMatrix(t), generatedMatrix(t, 4, func(s speaker) string { return openWord(s.IntN(openWords)) })
	query := `{"match":{"body":"` + strings.Join([]string{openWord(3), openWord(9), openWord(40)}, " ") + `"}}`
	eachEngine(t, func(t *testing.T, e *engine) {
		if e.name == "elasticsearch7" {
			return // as it is here, it has no points in time
		}
		makeGenerated(t, e, 3)
		name := "akin-e2e-pit-" + e.name
		pushMatrix(t, redis, name, first)
		for _, w := range writingsOf(e) {
			w.expansion["max_doc_share"] = 1
			a := setup(t, e, section{"expansion": w.expansion, "matrices": []section{{"name": name}}, "redis": redis.section()})
			page := func(point, after string, size int) (ids []string, next string) {
				t.Helper()
				hits, err := a.search(t.Context(), "/_search", fmt.Sprintf(
					`{"size":%d,"_source":false,"query":%s,"pit":{"id":%q,"keep_alive":"2m"},"sort":[{"_score":"desc"},{"uid":"asc"}]%s}`, size, query, point, after))
				if err != nil {
					t.Fatal(err)
				}
				if n := len(hits.Hits.Hits); n == size {
					next = `,"search_after":` + string(hits.Hits.Hits[n-1].Sort)
				}
				return hits.ids(), next
			}
			point := openPoint(t, e, a.cluster, openAlias(3))
			whole, _ := page(point, "", 1000)
			pages, next := page(point, "", 17)
			version := pushMatrix(t, redis, name, second)
			a.awaitMetric(t, 1, "akin_matrix_info", `version="`+version+`"`)
			for next != "" {
				var ids []string
				ids, next = page(point, next, 17)
				pages = append(pages, ids...)
			}
			if !slices.Equal(pages, whole) || len(whole) < 3*17 {
				t.Errorf("%s: one page %q, in pages %q", w.name, whole, pages)
			}
			if n := a.metric(t, requestsMetric, rewrittenOutcome); n < float64(len(whole))/17 {
				t.Errorf("%s: %v searches were rewritten", w.name, n)
			}
			if fresh, _ := page(openPoint(t, e, a.cluster, openAlias(3)), "", 1000); slices.Equal(fresh, whole) {
				t.Errorf("%s: a new point in time shows the hits of the old matrix", w.name)
			}
			pushMatrix(t, redis, name, first)
		}
	})
}
