package e2e

import (
	"net/http"
	"strconv"
	"testing"
)

// TestExpandedOnlyWhereLittleIsFound: with few_hits a search is expanded where the
// original finds little, on every page alike, and of several searches those that
// do.
func TestExpandedOnlyWhereLittleIsFound(t *testing.T) {
	t.Parallel()
	const index = "akin-e2e-few"
	var docs []document
	for n := range 40 { // "red" is in many, "car" in three, which "automobile" is related to
		text := "red"
		switch {
		case n < 3:
			text = "car"
		case n < 9:
			text = "automobile"
		}
		docs = append(docs, document{strconv.Itoa(n), section{"body": text + " thing"}})
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		e.makeIndex(t, index, `{"settings":{"number_of_shards":3,"number_of_replicas":0},"mappings":{"properties":{"body":{"type":"text"}}}}`)
		e.index(t, index, docs)
		a := setup(t, e, section{
			"expansion": section{"when": "few_hits", "below": 4, "max_doc_share": 1},
			"matrices":  matrices("m", relatedFile(t, vectorsA)),
		})
		const car, red = `"query":{"match":{"body":"car"}}`, `"query":{"match":{"body":"red"}}`
		for body, want := range map[string]int{
			`{` + car + `}`: 9, `{` + red + `}`: 31, `{"from":30,` + car + `}`: 9, `{"size":0,` + car + `}`: 9,
		} {
			if got := a.find(t, index, body).Hits.Total.Value; got != want {
				t.Errorf("%s: %d hits, want %d", body, got, want)
			}
		}
		type counted struct{ Count int }
		for body, want := range map[string]int{`{` + car + `}`: 9, `{` + red + `}`: 31} {
			if got := ask[counted](t, a.cluster, http.MethodPost, "/"+index+"/_count", body).Count; got != want {
				t.Errorf("the count of %s is %d, want %d", body, got, want)
			}
		}
		several := ask[struct{ Responses []found }](t, a.cluster, http.MethodPost, "/"+index+"/_msearch", "{}\n{"+red+"}\n{}\n{"+car+"}\n{}\n{"+red+"}\n")
		for k, want := range []int{31, 9, 31} {
			if got := several.Responses[k].Hits.Total.Value; got != want {
				t.Errorf("search %d of several: %d hits, want %d", k, got, want)
			}
		}
	})
}
