package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	hybridIndex    = "akin-e2e-hybrid"
	hybridPipeline = "akin-e2e-mixed"
)

// hybridDefinition has vectors of two numbers beside the text.
const hybridDefinition = `{"settings":{"number_of_shards":%d,"number_of_replicas":0,"index.knn":true},"mappings":{"properties":{
	"body":{"type":"text"},"kind":{"type":"keyword"},
	"v":{"type":"knn_vector","dimension":2,"method":{"name":"hnsw","engine":"lucene","space_type":"cosinesimil"}}}}}`

// hybridHalf is a pipeline in which words and vectors count the same.
const hybridHalf = `{"phase_results_processors":[{"normalization-processor":
	{"normalization":{"technique":"min_max"},"combination":{"technique":"arithmetic_mean","parameters":{"weights":[0.5,0.5]}}}}]}`

// hybridNode returns the OpenSearch 2, the only engine here that knows hybrid
// queries.
func hybridNode(t *testing.T) *engine {
	t.Helper()
	all, err := engines()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(e *engine) bool { return e.name == qualityEngine })
	if at < 0 {
		t.Skip(qualityEngine + " is not among the engines of this run")
	}
	all[at].require(t)
	return all[at]
}

// hybridEngine returns it with an index of cars and automobiles, whose vectors
// lie from east to north, and with a pipeline that mixes scores.
func hybridEngine(t *testing.T, shards int) *engine {
	t.Helper()
	e := hybridNode(t)
	e.makeIndex(t, hybridIndex, fmt.Sprintf(hybridDefinition, shards))
	var docs []document
	for n, text := range []string{"car hire", "automobile hire", "red thing", "car", "automobile for automobile", "blue thing", "a car for the city", "green automobile"} {
		docs = append(docs, document{strconv.Itoa(n), map[string]any{"body": text, "kind": []string{"a", "b"}[n%2], "v": []float64{1, float64(n) / 4}}})
	}
	e.index(t, hybridIndex, docs)
	e.must(t, http.MethodPut, "/_search/pipeline/"+hybridPipeline, hybridHalf)
	return e
}

func hybridBody(members string) string {
	return `{"query":{"hybrid":{"queries":[{"match":{"body":"car"}},{"knn":{"v":{"vector":[1,0],"k":8}}}],"pagination_depth":20}}` + members + `}`
}

// In all shapes in which clients send a hybrid query the related words are
// found by its text, and the pipeline mixes the scores as it does without akin.
func TestRelatedWordsAreFoundByTheTextOfAHybridQuery(t *testing.T) {
	for _, shards := range []int{1, 2} {
		t.Run(strconv.Itoa(shards), func(t *testing.T) {
			e := hybridEngine(t, shards)
			a := startAkin(t, section{
				"cluster":   section{"urls": []string{e.url}},
				"expansion": section{"budget": widePatience, "max_doc_share": 1},
				"profiles":  section{"plain": section{"hybrid": false}},
				"matrices":  []section{{"name": "m", "file": relatedFile(t, vectorsA)}},
			})
			a.awaitMatrix(t, "m")
			e.must(t, http.MethodPut, "/"+hybridIndex+"/_settings", `{"index.search.default_pipeline":"`+hybridPipeline+`"}`)
			const search = "/" + hybridIndex + "/_search"
			named := "?search_pipeline=" + hybridPipeline
			for name, tt := range map[string]struct{ path, body string }{
				"that of the page": {search + named, openPage(t, "hybrid.md", e).blocks("json")[0]},
				"named":            {search + named, hybridBody("")},
				"by default":       {search, hybridBody("")},
				"in the body":      {search, hybridBody(`,"search_pipeline":"` + hybridPipeline + `"`)},
				"a page":           {search + named, hybridBody(`,"from":2,"size":3`)},
				"sorted":           {search + named, hybridBody(`,"sort":[{"kind":"asc"}]`)},
				"post_filter":      {search + named, hybridBody(`,"post_filter":{"term":{"kind":"a"}}`)},
				"aggregations":     {search + named, hybridBody(`,"aggs":{"k":{"terms":{"field":"kind"}}}`)},
				"its own rescore":  {search + named, hybridBody(`,"rescore":{"window_size":5,"query":{"rescore_query":{"match":{"body":"hire"}}}}`)},
				"highlights":       {search + named, hybridBody(`,"highlight":{"fields":{"body":{}}}`)},
				"no hits":          {search + named, hybridBody(`,"size":0`)},
			} {
				before := a.metric(t, requestsMetric, rewrittenOutcome)
				direct, through := e.must(t, http.MethodPost, tt.path, tt.body), a.must(t, http.MethodPost, tt.path, tt.body)
				if n := a.metric(t, requestsMetric, rewrittenOutcome) - before; n != 1 {
					t.Errorf("%s: %v searches were rewritten", name, n)
				}
				var d, r hitList
				if json.Unmarshal(direct, &d) != nil || json.Unmarshal(through, &r) != nil || len(r.Hits.Hits) != len(d.Hits.Hits) || r.Hits.Total != d.Hits.Total {
					t.Errorf("%s: %s\ndirectly %s", name, through, direct) // vectors find all eight
				}
				for _, hit := range r.Hits.Hits {
					if name != "sorted" && name != "its own rescore" && (hit.Score < 0 || hit.Score > 1) {
						t.Errorf("%s: the score %v is not normalized", name, hit.Score)
					}
				}
				if strings.Contains(string(through), "<em>automobile") {
					t.Errorf("%s: related words are marked: %s", name, through)
				}
			}
			answer := func(path, body string) hitList {
				t.Helper()
				hits, err := a.search(t.Context(), path, body)
				if err != nil {
					t.Fatal(err)
				}
				return hits
			}
			score := func(hits hitList, id string) float64 { return hits.Hits.Hits[slices.Index(hits.ids(), id)].Score }
			with, without := answer(search+named, hybridBody("")), answer(search+named+"&akin=off", hybridBody(""))
			for _, automobile := range []string{"1", "4"} {
				if score(with, automobile) <= score(without, automobile) {
					t.Errorf("automobile %s scores %v, without akin %v", automobile, score(with, automobile), score(without, automobile))
				}
			}
			for _, thing := range []string{"2", "5"} { // which only vectors find
				if a, b := score(with, thing), score(without, thing); math.Abs(a-b) > 1e-6 {
					t.Errorf("thing %s scores %v, without akin %v", thing, a, b)
				}
			}
			if off := answer(search+named+"&akin_profile=plain", hybridBody("")); fmt.Sprint(off.ids()) != fmt.Sprint(without.ids()) {
				t.Errorf("switched off %v, without akin %v", off.ids(), without.ids())
			}
			lines := strings.Repeat("{}\n"+hybridBody("")+"\n", 3)
			var several struct{ Responses []hitList }
			if err := json.Unmarshal(a.must(t, http.MethodPost, "/"+hybridIndex+"/_msearch", lines), &several); err != nil || len(several.Responses) != 3 {
				t.Fatalf("%v", err)
			}
			for _, one := range several.Responses {
				if fmt.Sprint(one.ids()) != fmt.Sprint(with.ids()) {
					t.Errorf("of several %v, alone %v", one.ids(), with.ids())
				}
			}
			// What the engine refuses it refuses with the words for the original.
			for _, body := range []string{
				`{"query":{"hybrid":{"queries":[]}}}`,
				`{"query":{"hybrid":{"queries":[` + strings.TrimSuffix(strings.Repeat(`{"match":{"body":"car"}},`, 6), ",") + `]}}}`,
				`{"query":{"bool":{"filter":{"term":{"kind":"a"}},"must":{"hybrid":{"queries":[{"match":{"body":"car"}}]}}}}}`,
				`{"query":{"hybrid":{"queries":[{"match":{"body":"car"}}],"unknown":1}}}`,
			} {
				status, direct, err := e.call(t.Context(), http.MethodPost, search, body)
				status2, through, err2 := a.call(t.Context(), http.MethodPost, search, body)
				if err != nil || err2 != nil || status != status2 || status < 500 && string(direct) != string(through) {
					t.Errorf("%s: %d %s, directly %d %s", body, status2, through, status, direct)
				}
			}
		})
	}
}

// Of the request processors that run here, none reads the query: searches with
// one are expanded. A pipeline that is not there, or vanishes, is the engine's
// to complain about.
func TestSearchPipelinesThatLeaveTheQueryUnread(t *testing.T) {
	e := hybridEngine(t, 1)
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": section{"budget": widePatience, "max_doc_share": 1},
		"matrices":  []section{{"name": "m", "file": relatedFile(t, vectorsA)}},
	})
	a.awaitMatrix(t, "m")
	const body = `{"query":{"match":{"body":"car"}}}`
	e.must(t, http.MethodPut, "/_search/pipeline/akin-e2e-enrich", `{"request_processors":[{"neural_query_enricher":{"default_model_id":"m"}}]}`)
	for path, rewritten := range map[string]float64{"?search_pipeline=akin-e2e-enrich": 1, "?search_pipeline=_none": 1} {
		before := a.metric(t, requestsMetric, rewrittenOutcome)
		a.must(t, http.MethodPost, "/"+hybridIndex+"/_search"+path, body)
		if n := a.metric(t, requestsMetric, rewrittenOutcome) - before; n != rewritten {
			t.Errorf("%s: %v searches were rewritten", path, n)
		}
	}
	status, direct, _ := e.call(t.Context(), http.MethodPost, "/"+hybridIndex+"/_search?search_pipeline=gone", body)
	status2, through, _ := a.call(t.Context(), http.MethodPost, "/"+hybridIndex+"/_search?search_pipeline=gone", body)
	if status != status2 || string(direct) != string(through) {
		t.Errorf("a pipeline that is not there: %d %s, directly %d %s", status2, through, status, direct)
	}
	e.must(t, http.MethodDelete, "/_search/pipeline/akin-e2e-enrich", "")
	if status, _, _ := a.call(t.Context(), http.MethodPost, "/"+hybridIndex+"/_search?search_pipeline=akin-e2e-enrich", body); status != http.StatusBadRequest {
		t.Errorf("a pipeline that has vanished: %d", status)
	}
}
