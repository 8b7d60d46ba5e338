package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// The index of these tests has two shards, and two aliases that send what they
// write and what they search to one of them each.
const (
	routingIndex = "akin-e2e-routing"
	routedAlias  = "akin-e2e-routed"
	otherAlias   = "akin-e2e-routed.other"
	// Routings that lead to different shards of two.
	aRouting, otherRouting = "a", "b"
)

const routingDefinition = `{"settings":{"number_of_shards":2,"number_of_replicas":0},
	"mappings":{"properties":{"body":{"type":"text"}}},
	"aliases":{"` + routedAlias + `":{"routing":"` + aRouting + `"},"` + otherAlias + `":{"routing":"` + otherRouting + `"}}}`

// makeRouted makes the index. On the shard of the alias "car" is more frequent
// than on both, and "automobile" rarer: scores of the one read by the statistics
// of both would take the related word for many.
func makeRouted(t *testing.T, e *engine) {
	t.Helper()
	e.makeIndex(t, routingIndex, routingDefinition)
	fill := func(alias, prefix string, fillers int, texts ...string) {
		var docs []document
		for i, text := range texts {
			docs = append(docs, document{fmt.Sprintf("%s-%d", prefix, i), map[string]any{"body": text}})
		}
		for i := range fillers {
			docs = append(docs, document{fmt.Sprintf("%s-filler-%d", prefix, i), map[string]any{"body": fmt.Sprintf("filler %d words", i)}})
		}
		e.index(t, alias, docs)
	}
	fill(routedAlias, "here", 36, strings.Repeat("car ", 5), "car of mine", "car of yours", "automobile of mine")
	fill(otherAlias, "there", 360, slices.Repeat([]string{"automobile of theirs"}, 40)...)
	hits, err := e.search(t.Context(), "/"+routedAlias+"/_search", `{"track_total_hits":true,"size":0}`)
	if err != nil || hits.Shards.Total != 1 || hits.Hits.Total.Value != 40 {
		t.Fatalf("%+v, %v: want 40 documents on one shard", hits, err)
	}
}

// TestRoutedSearchesAreScoredByTheShardsTheyGoTo compares with the grouped form,
// whose scores need no statistics of other shards.
func TestRoutedSearchesAreScoredByTheShardsTheyGoTo(t *testing.T) {
	file := relatedFile(t, vectorsA)
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRouted(t, e)
		a, grouped := serveRelated(t, e, file, nil), serveRelated(t, e, file, section{"scoring": "grouped"})
		for name, path := range map[string]string{
			"routing":        "/" + routingIndex + "/_search?routing=" + aRouting,
			"alias":          "/" + routedAlias + "/_search",
			"alias, pattern": "/" + routedAlias + "*/_search?routing=" + aRouting,
		} {
			t.Run(name, func(t *testing.T) { checkRouted(t, a, grouped, path) })
		}
		shards := map[string]string{}
		for k := range 2 {
			path := fmt.Sprintf("/%s/_search?preference=_shards:%d", routingIndex, k)
			hits, err := e.search(t.Context(), path, relatedSearch("car"))
			if err != nil {
				t.Fatal(err)
			}
			if len(hits.ids()) > 0 {
				shards["preference"] = path
			}
		}
		if len(shards) != 1 {
			t.Fatal("no shard has a hit")
		}
		t.Run("preference", func(t *testing.T) { checkRouted(t, a, grouped, shards["preference"]) })
		t.Run("header of _msearch", func(t *testing.T) { checkRoutedHeader(t, a) })
		t.Run("explain", func(t *testing.T) { checkExplained(t, a) })
	})
}

// checkRouted compares hits and scores of a search for car.
func checkRouted(t *testing.T, a, grouped *akin, path string) {
	t.Helper()
	got, err := a.search(t.Context(), path, relatedSearch("car"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := grouped.search(t.Context(), path, relatedSearch("car"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Hits.Hits, want.Hits.Hits) {
		t.Errorf("hits %v, want those of the grouped form %v", got.Hits.Hits, want.Hits.Hits)
	}
	if ids := got.ids(); len(ids) != 4 || ids[0] != "here-0" || !slices.Contains(ids, "here-3") {
		t.Errorf("hits %v, want here-0 first, and here-3, which has the related word", ids)
	}
}

// checkRoutedHeader sends the routing in the header of one search of two.
func checkRoutedHeader(t *testing.T, a *akin) {
	t.Helper()
	one, err := a.search(t.Context(), "/"+routingIndex+"/_search?routing="+aRouting, relatedSearch("car"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := a.search(t.Context(), "/"+routingIndex+"/_search", relatedSearch("car"))
	if err != nil {
		t.Fatal(err)
	}
	body := `{"routing":"` + aRouting + "\"}\n" + relatedSearch("car") + "\n{}\n" + relatedSearch("car") + "\n"
	r := rawRequest{method: "POST", target: "/" + routingIndex + "/_msearch", header: []string{ndjsonType}, body: body}
	var answer struct{ Responses []hitList }
	if err := json.Unmarshal([]byte(exchange(t, a.url, r).body), &answer); err != nil || len(answer.Responses) != 2 {
		t.Fatalf("%d answers, error %v", len(answer.Responses), err)
	}
	for k, want := range []hitList{one, all} {
		if got := answer.Responses[k]; !slices.Equal(got.Hits.Hits, want.Hits.Hits) {
			t.Errorf("search %d: hits %v, want %v", k, got.Hits.Hits, want.Hits.Hits)
		}
	}
}

// checkExplained has each hit explained, by the one shard that has it, which
// is the shard that the search went to.
func checkExplained(t *testing.T, a *akin) {
	t.Helper()
	hits, err := a.search(t.Context(), "/"+routedAlias+"/_search", relatedSearch("car"))
	if err != nil || len(hits.ids()) == 0 {
		t.Fatalf("hits %v, error %v", hits.ids(), err)
	}
	before := a.metric(t, requestsMetric, rewrittenOutcome)
	for _, hit := range hits.Hits.Hits {
		path := "/" + routingIndex + "/_explain/" + hit.ID + "?routing=" + aRouting
		answer := a.must(t, http.MethodPost, path, `{"query":{"match":{"body":"car"}}}`)
		var e struct {
			Matched     bool
			Explanation struct{ Value float64 }
		}
		if err := json.Unmarshal(answer, &e); err != nil || !e.Matched {
			t.Errorf("%s: matched %t, error %v", hit.ID, e.Matched, err)
		}
		if got := e.Explanation.Value; got <= 0 || math.Abs(got-hit.Score) > 1e-4*hit.Score {
			t.Errorf("%s: explained score %v, want %v", hit.ID, got, hit.Score)
		}
	}
	if n := a.metric(t, requestsMetric, rewrittenOutcome) - before; n != float64(len(hits.ids())) {
		t.Errorf("%v of %d explanations were rewritten", n, len(hits.ids()))
	}
}
