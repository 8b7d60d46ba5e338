package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const fewIndex = "akin-e2e-few"

// With few_hits a search is expanded where the original finds little, on every
// page alike, and of several searches those that do.
func TestExpandedOnlyWhereLittleIsFound(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		e.makeIndex(t, fewIndex, `{"settings":{"number_of_shards":3,"number_of_replicas":0},"mappings":{"properties":{"body":{"type":"text"},"uid":{"type":"keyword"}}}}`)
		t.Cleanup(func() { e.dropIndex(fewIndex) })
		var docs []document
		for n := range 40 { // "red" is in many, "car" in three, which "automobile" is related to
			text := "red"
			switch {
			case n < 3:
				text = "car"
			case n < 9:
				text = "automobile"
			}
			docs = append(docs, document{strconv.Itoa(n), map[string]any{"body": text + " thing", "uid": strconv.Itoa(n)}})
		}
		e.index(t, fewIndex, docs)
		a := startAkin(t, section{
			"cluster":   section{"urls": []string{e.url}},
			"expansion": section{"when": "few_hits", "below": 4, "budget": widePatience, "max_doc_share": 1},
			"profiles":  section{"always": section{"when": "always"}},
			"matrices":  []section{{"name": "m", "file": relatedFile(t, vectorsA)}},
		})
		a.awaitMatrix(t, "m")
		total := func(c cluster, path, body string) int {
			var answer struct {
				Count *int
				Hits  struct{ Total struct{ Value int } }
			}
			if err := json.Unmarshal(c.must(t, http.MethodPost, path, body), &answer); err != nil {
				t.Fatal(err)
			}
			if answer.Count != nil {
				return *answer.Count
			}
			return answer.Hits.Total.Value
		}
		const car, red = `"query":{"match":{"body":"car"}}`, `"query":{"match":{"body":"red"}}`
		search, count := "/"+fewIndex+"/_search", "/"+fewIndex+"/_count"
		expanded := total(a.cluster, search+"?akin_profile=always", `{`+car+`}`)
		if n := total(a.cluster, search+"?akin_profile=always", `{`+red+`}`); expanded <= 3 || n < 31 {
			t.Fatalf("the matrix brings %d and %d hits", expanded, n)
		}
		for name, tt := range map[string]struct {
			path, body string
			want       int
		}{
			"few":             {search, `{` + car + `}`, expanded},
			"enough":          {search, `{` + red + `}`, 31},
			"a later page":    {search, `{"from":30,` + car + `}`, expanded},
			"without hits":    {search, `{"size":0,` + car + `}`, expanded},
			"a count":         {count, `{` + car + `}`, expanded},
			"a count of many": {count, `{` + red + `}`, 31},
		} {
			if got := total(a.cluster, tt.path, tt.body); got != tt.want {
				t.Errorf("%s: %d hits, want %d", name, got, tt.want)
			}
		}
		var several struct {
			Responses []struct {
				Hits struct{ Total struct{ Value int } }
			}
		}
		text := a.must(t, http.MethodPost, "/"+fewIndex+"/_msearch", "{}\n{"+red+"}\n{}\n{"+car+"}\n{}\n{"+red+"}\n")
		if err := json.Unmarshal(text, &several); err != nil || len(several.Responses) != 3 {
			t.Fatalf("%v: %s", err, text)
		}
		for k, want := range []int{31, expanded, 31} {
			if got := several.Responses[k].Hits.Total.Value; got != want {
				t.Errorf("search %d of several: %d hits, want %d", k, got, want)
			}
		}
		// A search that fails on one of the shards says little about how much there is.
		failing := `{"query":{"bool":{"must":{"match":{"body":"car"}},"filter":{"script":{"script":"if (doc['uid'].value == '1') { throw new Exception('no') } return true"}}}}}`
		if e.scripts {
			before := a.metric(t, "akin_few_hits_total", `result="failed"`)
			var answer, direct hitList
			for c, to := range map[cluster]*hitList{a.cluster: &answer, e.cluster: &direct} {
				if err := json.Unmarshal(c.must(t, http.MethodPost, search, failing), to); err != nil {
					t.Fatal(err)
				}
			}
			if direct.Shards.Failed != 1 || answer.Shards.Failed != 1 || !slices.Equal(answer.ids(), direct.ids()) {
				t.Errorf("%v with %d failed shards, directly %v with %d", answer.ids(), answer.Shards.Failed, direct.ids(), direct.Shards.Failed)
			}
			if n := a.metric(t, "akin_few_hits_total", `result="failed"`) - before; n != 1 {
				t.Errorf("%v searches are counted as failed", n)
			}
		}
		if direct := e.must(t, http.MethodPost, search, `{`+red+`}`); !strings.Contains(string(direct), `"value":31`) {
			t.Errorf("directly %s", direct)
		}
	})
}
