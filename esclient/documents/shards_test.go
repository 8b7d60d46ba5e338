package documents

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/esclient/internal/clustertest"
)

func TestShardStatesAreThoseOfThePrimaries(t *testing.T) {
	// As OpenSearch 2.19 and Elasticsearch 8.19 answer, cut to what is read.
	const answer = `{"indices":{
		"logs-2":{"shards":{"0":[{"routing":{"primary":true},"commit":{"user_data":{"history_uuid":"c"}},"seq_no":{"global_checkpoint":-1}}]}},
		"logs-1":{"shards":{
			"10":[{"routing":{"primary":true},"commit":{"user_data":{"history_uuid":"b"}},"seq_no":{"global_checkpoint":12}}],
			"9":[{"routing":{"primary":false},"commit":{"user_data":{"history_uuid":"a"}},"seq_no":{"global_checkpoint":5}},
				{"routing":{"primary":true},"commit":{"user_data":{"history_uuid":"a"}},"seq_no":{"global_checkpoint":7}}],
			"3":[{"routing":{"primary":false},"commit":{"user_data":{"history_uuid":"d"}},"seq_no":{"global_checkpoint":5}}]}}}}`
	f := clustertest.New().Reply("GET /logs-*/_stats/docs", http.StatusOK, answer)
	got, err := client(t, f).ShardStates(t.Context(), "logs-*")
	want := []ShardState{{"logs-1", 9, "a", 7}, {"logs-1", 10, "b", 12}, {"logs-2", 0, "c", -1}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	f.Reply("GET /logs-*/_stats/docs", http.StatusOK, `{}`)
	if got, err := client(t, f).ShardStates(t.Context(), "logs-*"); len(got) > 0 || err != nil {
		t.Errorf("of no index: %v, %v", got, err)
	}
}
