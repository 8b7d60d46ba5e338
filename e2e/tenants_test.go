package e2e

import (
	"net/http"
	"testing"
)

// openPoint opens a point in time, of which the tests' Elasticsearch 7 has none.
func openPoint(t *testing.T, e *engine, on cluster, index string) (id string) {
	t.Helper()
	path := "/_pit?keep_alive=5m"
	if e.family == "opensearch" {
		path = "/_search/point_in_time?keep_alive=5m"
	}
	opened := ask[struct {
		ID    string
		PITID string `json:"pit_id"`
	}](t, on, http.MethodPost, "/"+index+path, "")
	return opened.ID + opened.PITID
}

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
		proxy := setupWide(t, e, section{"matrices": []section{
			{"name": "of-a", "indices": []string{a}, "file": relatedFile(t, vectorsA)},
			{"name": "of-b", "indices": []string{b}, "file": relatedFile(t, vectorsB)},
			{"name": "wide", "indices": []string{relatedIndex, "-akin-e2e-tenant-*"}, "file": relatedFile(t, vectorsA)},
		}})
		// No other spelling gets the matrix of all.
		for index, related := range map[string]string{
			a: "automobile", b: "lorry", relatedIndex: "automobile",
			c: "", "akin-e2e-tenant-*": "", "akin-e2e-tenant-a*": "", a + "," + b: "", "%3C" + a + "%3E": "",
		} {
			hits := proxy.find(t, index, relatedSearch("car"))
			if hits.has("automobile") != (related == "automobile") || hits.has("lorry") != (related == "lorry") {
				t.Errorf("%s: %v, want the related word %q", index, hits.ids(), related)
			}
		}
		if e.name == "elasticsearch7" {
			return
		}
		id := openPoint(t, e, proxy.cluster, b)
		hits, err := proxy.search(t.Context(), "/_search", `{"pit":{"id":"`+id+`"},`+relatedSearch("car")[1:])
		if err != nil || !hits.has("lorry") || hits.has("automobile") {
			t.Errorf("the point in time %s: %v, %v, want the hits of the matrix of b", id, hits.ids(), err)
		}
	})
}
