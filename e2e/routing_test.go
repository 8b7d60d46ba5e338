package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestRoutedSearchesAreScoredByTheShardsTheyGoTo compares with the grouped form,
// whose scores need no statistics of other shards. On the shard of an alias "car"
// is more frequent than on both, and "automobile" rarer: scores of the one read
// by the statistics of both would take the related word for many.
func TestRoutedSearchesAreScoredByTheShardsTheyGoTo(t *testing.T) {
	const index, here, there = "akin-e2e-routing", "akin-e2e-routed", "akin-e2e-routed.other"
	// The routings lead to different shards of two.
	const definition = `{"settings":{"number_of_shards":2,"number_of_replicas":0},"mappings":{"properties":{"body":{"type":"text"}}},
		"aliases":{"` + here + `":{"routing":"a"},"` + there + `":{"routing":"b"}}}`
	eachEngine(t, func(t *testing.T, e *engine) {
		e.makeIndex(t, index, definition)
		fill := func(alias, prefix string, fillers int, texts ...string) {
			var docs []document
			for i := range fillers {
				texts = append(texts, fmt.Sprintf("filler %d words", i))
			}
			for i, text := range texts {
				docs = append(docs, document{fmt.Sprintf("%s-%d", prefix, i), section{"body": text}})
			}
			e.index(t, alias, docs)
		}
		fill(here, "here", 36, strings.Repeat("car ", 5), "car of mine", "car of yours", "automobile of mine")
		fill(there, "there", 360, slices.Repeat([]string{"automobile of theirs"}, 40)...)
		if hits := e.find(t, here, `{"track_total_hits":true,"size":0}`); hits.Shards.Total != 1 || hits.Hits.Total.Value != 40 {
			t.Fatalf("%+v: want 40 documents on one shard", hits)
		}
		a := setup(t, e, section{"profiles": section{"grouped": section{"scoring": "grouped"}}})
		searches := []string{index + "?routing=a", here + "?", here + "*?routing=a"}
		for k := range 2 {
			if search := fmt.Sprintf("%s?preference=_shards:%d", index, k); len(e.find(t, search, relatedSearch("car")).ids()) > 0 {
				searches = append(searches, search)
			}
		}
		if len(searches) != 4 {
			t.Fatalf("no shard has a hit: %v", searches)
		}
		for _, search := range searches {
			got, want := a.find(t, search, relatedSearch("car")), a.find(t, search+"&akin_profile=grouped", relatedSearch("car"))
			if fmt.Sprint(got.Hits) != fmt.Sprint(want.Hits) {
				t.Errorf("%s: hits %+v, want those of the grouped form %+v", search, got.Hits, want.Hits)
			}
			if ids := got.ids(); len(ids) != 4 || ids[0] != "here-0" || !got.has("here-3") {
				t.Errorf("%s: hits %v, want here-0 first, and here-3, which has the related word", search, ids)
			}
		}
		checkNoFallback(t, a)
	})
}
