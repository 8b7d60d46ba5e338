package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestTenantsBehindFilteredAliases gives two aliases of one index, each with a
// filter, matrices of their own and one for all that is searched by the name
// of the index, as docs/security.md says.
func TestTenantsBehindFilteredAliases(t *testing.T) {
	const a, b, c = "akin-e2e-tenant-a", "akin-e2e-tenant-b", "akin-e2e-tenant-c"
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		for _, alias := range []string{a, b, c} {
			e.must(t, http.MethodPut, "/"+relatedIndex+"/_alias/"+alias, `{"filter":{"range":{"n":{"lte":20}}}}`)
		}
		proxy := startAkin(t, section{
			"cluster":   section{"urls": []string{e.url}},
			"expansion": section{"budget": widePatience},
			"matrices": []section{
				{"name": "of-a", "indices": []string{a}, "file": relatedFile(t, vectorsA)},
				{"name": "of-b", "indices": []string{b}, "file": relatedFile(t, vectorsB)},
				{"name": "wide", "indices": []string{relatedIndex, "-akin-e2e-tenant-*"}, "file": relatedFile(t, vectorsA)},
			},
		})
		for _, name := range []string{"of-a", "of-b", "wide"} {
			proxy.awaitMatrix(t, name)
		}
		t.Run("each has its matrix", func(t *testing.T) {
			for alias, words := range map[string][2]string{a: {"automobile", "lorry"}, b: {"lorry", "automobile"}} {
				body := relatedSearch("car")
				got, err := proxy.search(t.Context(), "/"+alias+"/_search", body)
				if err != nil || !slices.Contains(got.ids(), words[0]) || slices.Contains(got.ids(), words[1]) {
					t.Errorf("%s: %v, %v, want %s without %s", alias, err, got.ids(), words[0], words[1])
				}
			}
		})
		t.Run("no other spelling gets the matrix of all", func(t *testing.T) {
			for _, index := range []string{c, "akin-e2e-tenant-*", "akin-e2e-tenant-a*", a + "," + b, "%3C" + a + "%3E"} {
				got, err := proxy.search(t.Context(), "/"+index+"/_search", relatedSearch("car"))
				if err != nil || slices.Contains(got.ids(), "automobile") || slices.Contains(got.ids(), "lorry") {
					t.Errorf("%s: %v, %v, want the hits of the original", index, err, got.ids())
				}
			}
		})
		t.Run("a point in time goes by the alias", func(t *testing.T) {
			got := searchPointInTime(t, e, proxy, b)
			if !slices.Contains(got.ids(), "lorry") || slices.Contains(got.ids(), "automobile") {
				t.Errorf("hits %v, want those of the matrix of b", got.ids())
			}
		})
		t.Run("nothing shows the terms", func(t *testing.T) {
			for _, tt := range []struct{ path, body string }{
				{"/_search", `{"profile":true,` + relatedSearch("car")[1:]},
				{"/_search", `{"\u0065xplain":true,` + relatedSearch("car")[1:]},
				{"/_search?explain=true", relatedSearch("car")},
				{"/_validate/query?explain=true", `{"query":{"match":{"body":"car"}}}`},
				{"/_explain/car-automobile", `{"query":{"match":{"body":"car"}}}`},
			} {
				for index, shown := range map[string]bool{a: false, relatedIndex: true} {
					answer := proxy.must(t, http.MethodPost, "/"+index+tt.path, tt.body)
					if got := strings.Contains(string(answer), "body:automobile"); got != shown {
						t.Errorf("%s%s %s: shows related words: %v, want %v: %.1000s", index, tt.path, tt.body, got, shown, answer)
					}
				}
			}
		})
	})
}

// searchPointInTime searches for "car" through akin on a point in time that is
// opened on an alias.
func searchPointInTime(t *testing.T, e *engine, proxy *akin, alias string) hitList {
	t.Helper()
	open, drop, id := "/_search/point_in_time?keep_alive=1m", "/_search/point_in_time", "pit_id"
	switch {
	case e.name == "elasticsearch7":
		t.Skip("the build without licensed modules has no points in time")
	case e.family == "elasticsearch":
		open, drop, id = "/_pit?keep_alive=1m", "/_pit", "id"
	}
	var opened map[string]any
	if err := json.Unmarshal(proxy.must(t, http.MethodPost, "/"+alias+open, ""), &opened); err != nil {
		t.Fatal(err)
	}
	pit, _ := opened[id].(string)
	defer func() {
		list := `["` + pit + `"]`
		if id == "id" {
			list = quote(pit)
		}
		_, _, _ = e.call(t.Context(), http.MethodDelete, drop, `{"`+id+`":`+list+`}`)
	}()
	hits, err := proxy.search(t.Context(), "/_search", `{"pit":{"id":"`+pit+`"},`+relatedSearch("car")[1:])
	if err != nil {
		t.Fatal(err)
	}
	return hits
}
