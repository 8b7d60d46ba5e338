package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// pagedQuery finds more hits than a page shows.
func pagedQuery() string {
	return `{"match":{"body":"` + strings.Join([]string{openWord(3), openWord(9), openWord(40)}, " ") + `"}}`
}

// TestScrolledPagesAreOnePage scrolls through the hits of a rewritten search.
func TestScrolledPagesAreOnePage(t *testing.T) {
	open := openMatrix(t)
	eachEngine(t, func(t *testing.T, e *engine) {
		makeGenerated(t, e, 3)
		direct := e.scrolled(t, 1000)
		for _, c := range startContenders(t, e, open, nil) {
			whole, pages := c.scrolled(t, 1000), c.scrolled(t, 17)
			if !slices.Equal(whole, pages) {
				t.Errorf("%s: one page %q, in pages %q", c.name, whole, pages)
			}
			if len(whole) <= len(direct) {
				t.Errorf("%s: %d hits, directly %d", c.name, len(whole), len(direct))
			}
			checkDistinct(t, c, whole)
		}
	})
}

// scrolled returns the ids of all hits, read in pages.
func (c cluster) scrolled(t *testing.T, size int) []string {
	t.Helper()
	var ids []string
	body := fmt.Sprintf(`{"size":%d,"_source":false,"query":%s}`, size, pagedQuery())
	answer := c.must(t, http.MethodPost, "/"+openAlias(3)+"/_search?scroll=1m", body)
	for {
		var page struct {
			hitList

			ScrollID string `json:"_scroll_id"`
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			t.Fatal(err)
		}
		if len(page.Hits.Hits) == 0 {
			c.must(t, http.MethodDelete, "/_search/scroll", `{"scroll_id":`+quote(page.ScrollID)+`}`)
			return ids
		}
		ids = append(ids, page.ids()...)
		answer = c.must(t, http.MethodPost, "/_search/scroll", `{"scroll":"1m","scroll_id":`+quote(page.ScrollID)+`}`)
	}
}

func checkDistinct(t *testing.T, c contender, ids []string) {
	t.Helper()
	if sorted := slices.Sorted(slices.Values(ids)); len(slices.Compact(sorted)) != len(ids) {
		t.Errorf("%s: hits twice among %q", c.name, ids)
	}
}

// TestPagesOfAPointInTimeAreOnePage reads the hits of a point in time by
// search_after, while another version of the matrix becomes the active one.
func TestPagesOfAPointInTimeAreOnePage(t *testing.T) {
	redis := commonRedis(t)
	first, second := openMatrix(t), generatedMatrix(t, 4, func(s speaker) string { return openWord(s.IntN(openWords)) })
	eachEngine(t, func(t *testing.T, e *engine) {
		if e.name == "elasticsearch7" {
			return // as it is here, it has no points in time
		}
		makeGenerated(t, e, 3)
		name := "akin-e2e-pit-" + e.name
		pushMatrix(t, redis, name, first)
		var contenders []contender
		for _, w := range writingsOf(e) {
			options := section{"budget": widePatience, "max_doc_share": 1}
			maps.Copy(options, w.expansion)
			a := startAkin(t, section{
				"cluster": section{"urls": []string{e.url}}, "expansion": options,
				"matrices": []section{{"name": name}}, "redis": section{"url": redis.url},
			})
			a.awaitMatrix(t, name)
			contenders = append(contenders, contender{w, a})
		}
		points := make([]*pointInTime, len(contenders))
		whole := make([][]string, len(contenders))
		for i, c := range contenders {
			points[i] = openPointInTime(t, e, c)
			whole[i] = points[i].page(t, 1000)
			points[i].after, points[i].ids = nil, nil
			points[i].page(t, 17)
		}
		pushMatrix(t, redis, name, second)
		time.Sleep(followWithin + 200*time.Millisecond)
		for i, c := range contenders {
			checkPages(t, e, c, points[i], whole[i])
		}
	})
}

// checkPages reads the second and further pages and compares all with what one
// page showed before the matrix was replaced.
func checkPages(t *testing.T, e *engine, c contender, p *pointInTime, whole []string) {
	t.Helper()
	for p.more {
		p.page(t, 17)
	}
	if !slices.Equal(p.ids, whole) || len(whole) < 3*17 {
		t.Errorf("%s: one page %q, in pages %q", c.name, whole, p.ids)
	}
	checkDistinct(t, c, whole)
	if n := c.metric(t, requestsMetric, rewrittenOutcome); n < float64(len(whole))/17 {
		t.Errorf("%s: %v searches were rewritten", c.name, n)
	}
	if fresh := openPointInTime(t, e, c).page(t, 1000); slices.Equal(fresh, whole) {
		t.Errorf("%s: a new point in time shows the hits of the old matrix", c.name)
	}
}

// A pointInTime is read page by page.
type pointInTime struct {
	contender

	id    string
	after json.RawMessage
	ids   []string
	more  bool
}

// openPointInTime opens one on the alias of the open documents.
func openPointInTime(t *testing.T, e *engine, c contender) *pointInTime {
	t.Helper()
	path := "/_pit?keep_alive=2m"
	if e.family == "opensearch" {
		path = "/_search/point_in_time?keep_alive=2m"
	}
	var opened struct {
		ID    string
		PITID string `json:"pit_id"`
	}
	if err := json.Unmarshal(c.must(t, http.MethodPost, "/"+openAlias(3)+path, ""), &opened); err != nil {
		t.Fatal(err)
	}
	return &pointInTime{contender: c, id: opened.ID + opened.PITID, more: true}
}

// page reads the next page and returns the ids on it.
func (p *pointInTime) page(t *testing.T, size int) []string {
	t.Helper()
	after := ""
	if p.after != nil {
		after = `,"search_after":` + string(p.after)
	}
	body := fmt.Sprintf(`{"size":%d,"_source":false,"query":%s,"pit":{"id":%q,"keep_alive":"2m"},"sort":[{"_score":"desc"},{"uid":"asc"}]%s}`,
		size, pagedQuery(), p.id, after)
	var answer struct {
		PITID string `json:"pit_id"`
		Hits  struct {
			Hits []struct {
				ID   string `json:"_id"`
				Sort json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(p.must(t, http.MethodPost, "/_search", body), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.PITID != "" {
		p.id = answer.PITID
	}
	var ids []string
	for _, h := range answer.Hits.Hits {
		ids = append(ids, h.ID)
		p.after = h.Sort
	}
	p.ids = append(p.ids, ids...)
	p.more = len(ids) == size
	return ids
}
