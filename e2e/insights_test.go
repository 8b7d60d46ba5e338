package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/akin-search/akin/simmatrix"
)

// The indices of User Behavior Insights, with what is read of them and a part of
// the rest mapped as OpenSearch's plugin does.
const (
	insightQueries = `{"settings":{"number_of_replicas":0},"mappings":{"dynamic":false,"properties":{
		"timestamp":{"type":"date"},"query_id":{"type":"keyword","ignore_above":100},
		"user_query":{"type":"text","fields":{"keyword":{"type":"keyword","ignore_above":256}}},
		"query":{"type":"text"},"query_attributes":{"type":"flat_object"},
		"query_response_id":{"type":"keyword","ignore_above":100},"query_response_hit_ids":{"type":"keyword"}}}}`
	insightEvents = `{"settings":{"number_of_replicas":0},"mappings":{"properties":{
		"action_name":{"type":"keyword","ignore_above":100},
		"timestamp":{"type":"date","format":"rfc3339_lenient||epoch_millis","ignore_malformed":true},
		"event_attributes":{"dynamic":true,"properties":{
			"position":{"properties":{"ordinal":{"type":"integer"}}},
			"object":{"properties":{"object_id":{"type":"keyword","ignore_above":256},"object_id_field":{"type":"keyword"}}}}}}}}`
)

// TestUserBehaviorInsightsAreLearnedFrom has topics whose documents are useful if
// they have one word, and useless if they have another. Users click the useful
// ones, of which S knows nothing.
func TestUserBehaviorInsightsAreLearnedFrom(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		if e.name != qualityEngine {
			return
		}
		const index, topics = "akin-e2e-insights", 12
		dir := newDir(t, "insights")
		rows := []simmatrix.TermRow{{Term: "wrong", DocFreq: 10 * topics}}
		var docs, queries, events []document
		for k := range topics {
			topic, right := fmt.Sprintf("topic%02d", k), fmt.Sprintf("right%02d", k)
			rows = append(rows, simmatrix.TermRow{Term: right, DocFreq: 10},
				simmatrix.TermRow{Term: topic, DocFreq: 20, Neighbors: []simmatrix.Neighbor{{Term: "wrong", Similarity: 0.4}}})
			var shown []string
			for d := range 10 {
				for _, word := range []string{"wrong", right} {
					id := fmt.Sprintf("%s-%s-%d", topic, word, d)
					docs = append(docs, document{id, map[string]any{"body": topic + " " + word}})
					if d < 5 { // nobody sees the others
						shown = append(shown, id)
					}
				}
			}
			for n, text := range []string{topic, "the " + topic, topic + " and", "of " + topic} {
				for user := range 3 {
					query := fmt.Sprintf("%s-%d-%d", topic, n, user)
					queries = append(queries, document{query, map[string]any{
						"timestamp": "2025-07-01T12:00:00Z", "query_id": query, "user_query": text, "query_response_hit_ids": shown,
						"query_attributes": map[string]any{"page": 1},
					}})
					for rank, id := range shown {
						action := "click"
						if rank%2 == 0 {
							action = "item_hover"
						}
						events = append(events, document{fmt.Sprintf("%s-%d", query, rank), map[string]any{
							"action_name": action, "timestamp": "2025-07-01T12:00:05Z", "query_id": query,
							"event_attributes": map[string]any{
								"object": map[string]any{"object_id": id, "object_id_field": "_id"}, "position": map[string]any{"ordinal": rank + 1},
							},
						}})
					}
				}
			}
		}
		e.makeIndex(t, index, judgedIndex)
		e.index(t, index, docs)
		e.makeIndex(t, "ubi_queries", insightQueries)
		e.index(t, "ubi_queries", queries)
		e.makeIndex(t, "ubi_events", insightEvents)
		e.index(t, "ubi_events", events)
		m, err := simmatrix.New(simmatrix.Meta{Source: "by hand", Docs: 20 * topics}, rows)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := simmatrix.Encode(&file, m); err != nil {
			t.Fatal(err)
		}
		plain, learned := filepath.Join(dir, "plain.akin"), filepath.Join(dir, "learned.akin")
		if err := os.WriteFile(plain, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		r := runAkin(t, "matrix", "learn", plain, "--cluster", e.url, "--index", index, "--field", "body", "--ubi", "--out", learned)
		if r.status != 0 || !strings.Contains(r.stderr, "learned from 48 of 48 queries") {
			t.Fatal(r.stderr)
		}
		// Four texts, three users who click five documents.
		for _, want := range []string{"right03", "learned: 60 clicks"} {
			if out := mustAkin(t, "matrix", "show", "--file", learned, "topic03"); !strings.Contains(out, want) {
				t.Errorf("no %s:\n%s", want, out)
			}
		}
	})
}
