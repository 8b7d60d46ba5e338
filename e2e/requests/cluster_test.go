package requests

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fixture is what is recorded of a small index.
func fixture() *Facts {
	answer := func(body string) Answer { return Answer{http.StatusOK, json.RawMessage(body)} }
	return &Facts{
		Indices: map[string]*Index{"i": {
			Mappings: map[string]json.RawMessage{"title": json.RawMessage(`{"mapping":{"title":{"analyzer":"english"}}}`)},
			Fields: map[string]*Field{
				"title": {Shards: []Statistics{{3, map[string]int64{"car": 2}}, {2, map[string]int64{"boat": 1, "car": 1}}}},
				"body":  {Shards: []Statistics{{3, map[string]int64{"car": 1}}, {2, nil}}, Explanation: json.RawMessage(`{"value":1}`)},
			},
		}},
		Terms: []string{"boat", "car", "ship"},
		Texts: map[string][]Analysis{
			"cars":      {{[]string{"i english"}, answer(`{"tokens":[{"token":"car","position":0,"start_offset":0,"end_offset":4}]}`)}},
			"the boats": {{[]string{"i english"}, answer(`{"tokens":[{"token":"boat","position":1,"start_offset":4,"end_offset":9}]}`)}},
		},
		Questions: map[string]Answer{
			`POST /_mtermvectors {"docs":[{"_id":"1","fields":["title"]}]}`: answer(`{"_id":"1","term_vectors":{"title":{"terms":{"car":{}}}}}`),
			`POST /_mtermvectors {"docs":[{"_id":"1","fields":["body"]}]}`:  answer(`{"_id":"1","term_vectors":{"body":{"terms":{"ship":{}}}}}`),
		},
	}
}

func TestClusterAnswersInAnyGrouping(t *testing.T) {
	cluster := NewCluster(fixture())
	for _, test := range []struct{ name, target, body, want string }{
		{
			"a term", "/i/_termvectors?preference=_shards:0", `{"doc":{"title":["car"]},"fields":["title"]}`,
			`{"term_vectors":{"title":{"field_statistics":{"doc_count":3},"terms":{"car":{"doc_freq":2,"term_freq":1}}}}}`,
		},
		{
			"terms of two fields", "/i/_termvectors?preference=_shards:1", `{"doc":{"title":["car","ship"],"body":["ship"]},"fields":["title","body"]}`,
			`{"term_vectors":{"body":{"field_statistics":{"doc_count":2},"terms":{"ship":{"term_freq":1}}},
			"title":{"field_statistics":{"doc_count":2},"terms":{"car":{"doc_freq":1,"term_freq":1},"ship":{"term_freq":1}}}}}`,
		},
		{
			"the same by a search", "/i/_search", `{"size":0,"aggs":{"all":{"global":{},"aggs":{
			"n":{"filter":{"exists":{"field":"title"}}},
			"df":{"filters":{"filters":[{"term":{"title":{"value":"car"}}},{"term":{"body":{"value":"car"}}}]}}}}}}`,
			`{"_shards":{"failed":0,"skipped":0,"successful":1,"total":1},"timed_out":false,
			"aggregations":{"all":{"doc_count":0,"n":{"doc_count":5},"df":{"buckets":[{"doc_count":3},{"doc_count":1}]}}}}`,
		},
		{
			"a score of the term that there is", "/i/_search", `{"explain":true,"query":{"bool":{"should":[{"term":{"body":{"value":"ship"}}},{"term":{"body":{"value":"car"}}}]}}}`,
			`{"_shards":{"failed":0,"skipped":0,"successful":1,"total":1},"timed_out":false,"hits":{"hits":[{"_index":"i","_explanation":{"value":1}}]}}`,
		},
		{
			"two texts by the analyzer of a field", "/i/_analyze", `{"field":"title","text":["the boats","cars"]}`,
			`{"tokens":[{"token":"boat","position":1,"start_offset":4,"end_offset":9},{"token":"car","position":102,"start_offset":10,"end_offset":14}]}`,
		},
		{
			"two fields of a document", "/_mtermvectors", `{"docs":[{"_id":"1","fields":["title","body"]}]}`,
			`{"docs":[{"_id":"1","term_vectors":{"body":{"terms":{"ship":{}}},"title":{"terms":{"car":{}}}}}]}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got, want any
			if err := json.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(askCluster(cluster, test.target, test.body)), &got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" || len(cluster.Unknown()) > 0 {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestClusterSaysWhatIsNotRecorded(t *testing.T) {
	cluster := NewCluster(fixture())
	for _, test := range []struct{ name, target, body, want string }{
		{"term", "/i/_termvectors?preference=_shards:0", `{"doc":{"title":["car","bus"]},"fields":["title"]}`, `the term "bus"`},
		{"field", "/i/_termvectors?preference=_shards:0", `{"doc":{"tags":["car"]},"fields":["tags"]}`, `the field "tags"`},
		{"text", "/i/_analyze", `{"analyzer":"english","text":"buses"}`, `the text "buses"`},
		{"expression", "/j/_search", `{"explain":true,"query":{"bool":{"should":[]}}}`, `the index expression "j"`},
		{"question", "/i/_search", `{"query":{"match_all":{}}}`, `the question: POST /i/_search {"query":{"match_all":{}}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			askCluster(cluster, test.target, test.body)
			if unknown := strings.Join(cluster.Unknown(), "\n"); !strings.HasPrefix(unknown, test.want) {
				t.Errorf("got %q, want %q", unknown, test.want)
			}
		})
	}
}

func askCluster(c *Cluster, target, body string) string {
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodPost, target, strings.NewReader(body)))
	answer, _ := io.ReadAll(w.Body) // it is in memory
	return string(answer)
}
