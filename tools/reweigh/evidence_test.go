package reweigh

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/esclient"
)

// The indices of User Behavior Insights are read from a cluster, and events
// that are no clicks left out.
func TestInsightsAreReadFromTheCluster(t *testing.T) {
	hits := map[string]string{
		"/ubi_queries/_search": `{"_id":"a","_source":{"query_id":"1","user_query":"wing","query_response_hit_ids":["a","b"]}}`,
		"/ubi_events/_search": `{"_id":"a","_source":{"action_name":"click","query_id":"1","event_attributes":{"object":{"object_id":"b"}}}},
			{"_id":"b","_source":{"action_name":"click","query_id":"1","event_attributes":{"object":{"object_id":"z"}}}},
			{"_id":"c","_source":{"action_name":"impression","query_id":"1"}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := hits[r.URL.Path] // none of the scroll's further pages
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"_scroll_id":"s","timed_out":false,"_shards":{"total":1,"successful":1,"failed":0},"hits":{"total":{"value":%d,"relation":"eq"},"hits":[%s]}}`,
			strings.Count(page, `"_id"`), page)
	}))
	t.Cleanup(server.Close)
	client, err := esclient.New(esclient.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	log, err := (&Source{Client: client, UBI: true}).log(t.Context())
	want := &ClickLog{Impressions: []Impression{{QueryID: "1", Query: "wing", Shown: []string{"a", "b"}, Clicked: []string{"b"}}}, NotShown: []string{"z"}}
	if diff := cmp.Diff(want, log); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}
