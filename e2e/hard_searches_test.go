package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// shownHits are the hits of a search with all that the tests look at.
type shownHits struct {
	Hits struct {
		Hits []struct {
			ID        string              `json:"_id"`
			Score     float64             `json:"_score"`
			Highlight map[string][]string `json:"highlight"`
			Matched   []string            `json:"matched_queries"`
		}
	}
}

// TestHardModeInEverySearch sends searches with more in them, and to other
// endpoints, where the scores have to be the same.
func TestHardModeInEverySearch(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		const index = "akin-e2e-hard-related"
		e.makeHardIndex(t, index, hardSetting{scripted: e.scripts, shards: 1}, "standard", relatedDocuments())
		files := hardFiles{relatedFile(t, vectorsA), filepath.Join(newDir(t, "weights"), "w.akin")}
		e.freezeWeights(t, index, files)
		e.storeNorms(t, index, files)
		checkHardSearches(t, e, index, files)
	})
}

const hardSearch = `{"query":{"match":{"body":{"query":"car boat","_name":"found"}}},"size":100,"highlight":{"fields":{"body":{"type":"HIGHLIGHTER"}}}}`

func checkHardSearches(t *testing.T, e *engine, index string, files hardFiles) {
	t.Helper()
	a := startHardAkin(t, e, files, nil)
	scores := map[string]float64{}
	for _, highlighter := range []string{"unified", "plain"} {
		body := strings.Replace(hardSearch, "HIGHLIGHTER", highlighter, 1)
		original, hard := shown(t, e.cluster, index, body), shown(t, a.cluster, index, body)
		marks := map[string]string{}
		for _, hit := range original.Hits.Hits {
			marks[hit.ID] = fmt.Sprint(hit.Highlight, hit.Matched)
		}
		for _, hit := range hard.Hits.Hits {
			want, found := marks[hit.ID]
			if !found {
				want = "map[] []"
			}
			if got := fmt.Sprint(hit.Highlight, hit.Matched); got != want || !(hit.Score > 0) {
				t.Errorf("%s highlighter, %s: score %v, shown as %s, want %s", highlighter, hit.ID, hit.Score, got, want)
			}
			delete(marks, hit.ID)
			scores[hit.ID] = hit.Score
		}
		if len(marks) > 0 || scores["automobile"] == 0 || scores["ship"] == 0 {
			t.Errorf("scores %v, not found %v", scores, marks)
		}
	}
	// Both have one word each, so that the measure is its similarity: that of the
	// vectors is 0.9939, and its third power the default.
	one := shown(t, a.cluster, index, relatedSearch("car"))
	for _, hit := range one.Hits.Hits {
		if want, ok := map[string]float64{"car": 1, "automobile": 0.9818}[hit.ID]; ok && relative(hit.Score, want) > 5e-3 {
			t.Errorf("%s scores %v for car, want %v", hit.ID, hit.Score, want)
		}
	}
	query := `{"query":{"match":{"body":"car boat"}}}`
	var count struct{ Count int }
	decode(t, a.must(t, http.MethodPost, "/"+index+"/_count", query), &count)
	if count.Count != len(scores) {
		t.Errorf("%d are counted, %d found", count.Count, len(scores))
	}
	var explained struct {
		Matched     bool
		Explanation struct{ Value float64 }
	}
	decode(t, a.must(t, http.MethodPost, "/"+index+"/_explain/ship", query), &explained)
	if got, want := explained.Explanation.Value, scores["ship"]; !explained.Matched || relative(got, want) > 1e-5 {
		t.Errorf("explained as %v, searched as %v", got, want)
	}
	var several struct{ Responses []shownHits }
	decode(t, a.must(t, http.MethodPost, "/_msearch", `{"index":"`+index+`"}`+"\n"+strings.Replace(query, `{"query"`, `{"size":100,"query"`, 1)+"\n"), &several)
	for _, hit := range several.Responses[0].Hits.Hits {
		if want := scores[hit.ID]; relative(hit.Score, want) > 1e-5 {
			t.Errorf("%s scores %v in _msearch, %v in _search", hit.ID, hit.Score, want)
		}
	}
	if valid := a.must(t, http.MethodPost, "/"+index+"/_validate/query", query); !strings.Contains(string(valid), `"valid":true`) {
		t.Errorf("%s", valid)
	}
	and := `{"query":{"match":{"body":{"query":"car boat","operator":"and"}}},"size":100}`
	if n := len(shown(t, a.cluster, index, and).Hits.Hits); n != 0 {
		t.Errorf("%d documents have both words or what is related to them", n)
	}
	same := startHardAkin(t, e, files, section{"matching": "same"})
	hits := shown(t, same.cluster, index, relatedSearch("car"))
	if n := len(hits.Hits.Hits); n != 3 || hits.Hits.Hits[0].ID != "car-automobile" || hits.Hits.Hits[0].Score < 1.3 {
		t.Errorf("the search that is to find what the original finds has %+v", hits.Hits.Hits)
	}
}

func shown(t *testing.T, c cluster, index, body string) shownHits {
	t.Helper()
	var hits shownHits
	decode(t, c.must(t, http.MethodPost, "/"+index+"/_search", body), &hits)
	return hits
}

func decode(t *testing.T, answer []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(answer, into); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
}
