package answer

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
)

// Values of "_shards" as OpenSearch 2.19 and Elasticsearch 8.19 write them, the
// failures shortened.
const (
	wholeShards  = `{"total":2,"successful":2,"skipped":0,"failed":0}`
	shardFailure = `{"shard":0,"index":"b","node":"n","reason":{"type":"illegal_argument_exception","reason":"Rescore window [100] is too large."}}`
	scriptError  = `{"shard":0,"index":"b","reason":{"type":"script_exception","reason":"runtime error","script_stack":["x"],"caused_by":{"type":"x","reason":"y"}}}`
	busyShard    = `{"shard":0,"reason":{"type":"es_rejected_execution_exception","reason":"x"}}`
	unservedOne  = `{"shard":1,"index":"r","node":null,"reason":{"type":"no_shard_available_action_exception","reason":null}}`
)

func failedShards(failures ...string) string {
	return `{"total":2,"successful":1,"skipped":0,"failed":1,"failures":[` + strings.Join(failures, ",") + `]}`
}

// searchAnswer is the answer to a search with the value of "_shards".
func searchAnswer(shards string) string {
	return `{"took":3,"timed_out":false,"_shards":` + shards + `,"hits":{"hits":[{"_id":"a","_source":{"_shards":{"failed":1}}}]}}`
}

// told says in short what is known of a failure, nothing for none.
func told(f *Failure) string {
	if f == nil {
		return ""
	}
	text := "failed"
	if f.Search != UnknownSearch {
		text = strconv.Itoa(f.Search)
	}
	if f.Busy {
		text += " busy"
	}
	if f.Whole {
		text += " whole"
	}
	parts := []string{text}
	for _, c := range f.Causes {
		parts = append(parts, c.Type+": "+c.Reason)
	}
	return strings.Join(parts, "; ")
}

// Items of the answers of _msearch, as Elasticsearch 8.19 writes them.
const (
	goodItem = `{"took":1,"hits":{"hits":[{"_source":{"error":"none"}}]},"status":200}`
	badItem  = `{"error":{"root_cause":[],"type":"too_many_clauses","reason":"maxClauseCount is set to 1024"},"status":400}`
)

func responses(items ...string) string {
	return `{"took":3,"responses":[` + strings.Join(items, ",") + `]}`
}

const window = "; illegal_argument_exception: Rescore window [100] is too large."

func TestFailuresOfShardsAreRead(t *testing.T) {
	partial := searchAnswer(failedShards(shardFailure))
	async := func(response string) string { return `{"id":"x","is_running":false,"response":` + response + `}` }
	for _, tt := range []struct {
		name, answer, want string
		unread             bool
	}{
		{"whole", searchAnswer(wholeShards), "", false},
		{"partial", partial, "failed" + window, false},
		{"pretty", "{\n  \"took\" : 3,\n  \"_shards\" : {\n    \"failed\" : 12,\n    \"failures\" : [\n      " + shardFailure + "\n    ]\n  }\n}\n", "failed" + window, false},
		{"causes of causes", searchAnswer(failedShards(scriptError, shardFailure)), "failed; script_exception: runtime error; x: y" + window, false},
		{"failures not shown", `{"_shards":{"failed":1},"hits":{}}`, "failed", false},
		{"count not shown", `{"_shards":{"failures":[{"index":"b"}]}}`, "failed", false},
		{"shards behind the hits", `{"hits":{"hits":[]},"_shards":` + failedShards(shardFailure) + `}`, "", false},
		{"nothing shown", `{}`, "", false},
		{"other things shown", `{"suggest":[],"_shards":1}`, "", false},
		{"a shard without a node", searchAnswer(failedShards(unservedOne)), "", false},
		{"shards without a node, one that failed", searchAnswer(failedShards(unservedOne, shardFailure, unservedOne)), "failed" + window, false},
		{"a busy shard", searchAnswer(failedShards(busyShard)), "failed busy; es_rejected_execution_exception: x", false},
		{"a busy one, one that failed", searchAnswer(failedShards(busyShard, shardFailure)), "failed; es_rejected_execution_exception: x" + window, false},
		{"phases", `{"took":1,"phase_took":{"query":1},` + partial[1:], "failed" + window, false},
		{"a scroll", `{"_scroll_id":"xyz",` + partial[1:], "failed" + window, false},
		{"count", `{"count":1,"_shards":` + failedShards(shardFailure) + `}`, "failed" + window, false},
		{"async", async(partial), "failed" + window, false},
		{"async, whole", async(searchAnswer(wholeShards)), "", false},
		{"async, nothing yet", async("null"), "", false},
		{"odd values", searchAnswer(`{"failed":"1","failures":{}}`), "", false},
		{"shards are no object", searchAnswer(`[]`), "", true},
		{"no object", `["_shards"]`, "", true},
		{"broken before", `{"took":3,"timed_out":fal`, "", true},
		{"broken inside", `{"took":3,"_shards":{"total":2,`, "", true},
		{"broken behind", searchAnswer(wholeShards)[:90], "", false},
		{"broken in the failures", `{"took":3,"_shards":{"failed":1,"failures":[{`, "failed", false},
	} {
		got, scroll, err := ReadSearch(strings.NewReader(tt.answer))
		check.That(t, told(got) == tt.want && (err != nil) == tt.unread && (scroll == "xyz") == strings.Contains(tt.answer, "_scroll_id"), "%s: %q, %v, scroll %q, want %q", tt.name, told(got), err, scroll, tt.want)
	}
}

func TestFailuresOfSeveralSearchesAreRead(t *testing.T) {
	const (
		multi    = expand.EndpointMultiSearch
		rank     = expand.EndpointRankEval
		validate = expand.EndpointValidate

		clauses    = "; too_many_clauses: maxClauseCount is set to 1024"
		busyItem   = `{"error":{"root_cause":[],"type":"rejected_execution_exception","reason":"x"},"status":429}`
		deniedItem = `{"error":{"root_cause":[],"type":"security_exception"},"status":403}`
	)
	for _, tt := range []struct {
		name         string
		endpoint     expand.Endpoint
		answer, want string
		unread       bool
	}{
		{"all well", multi, responses(goodItem, goodItem, goodItem), "", false},
		{"the first failed", multi, responses(badItem, goodItem, goodItem), "0 whole" + clauses, false},
		{"the last failed", multi, responses(goodItem, goodItem, badItem), "2 whole" + clauses, false},
		{"one that was left alone failed", multi, responses(goodItem, badItem, goodItem), "", false},
		{"two failed", multi, responses(badItem, badItem, searchAnswer(failedShards(shardFailure))), "0 whole" + clauses, false},
		{"an item too many failed", multi, responses(goodItem, goodItem, goodItem, badItem), "", false},
		{"a shard failed", multi, responses(goodItem, goodItem, searchAnswer(failedShards(shardFailure))), "2" + window, false},
		{"a shard of what was left alone failed", multi, responses(goodItem, searchAnswer(failedShards(shardFailure)), goodItem), "", false},
		{"a shard without a node", multi, responses(searchAnswer(failedShards(unservedOne))), "", false},
		{"the cluster is busy", multi, responses(busyItem, goodItem, goodItem), "0 busy whole; rejected_execution_exception: x", false},
		{"it is busy, and one failed", multi, responses(busyItem, goodItem, badItem), "2 whole" + clauses, false},
		{"the client is denied", multi, responses(deniedItem, goodItem, goodItem), "", false},
		{"failures among the hits", multi, responses(`{"_shards":` + wholeShards + `,"hits":{"hits":[{"_source":{"failures":[1]}}]},"status":200}`), "", false},
		{"an item's shards are no object", multi, responses(`{"_shards":1,"failures":[]}`), "", false},
		{"an error that is a text", multi, responses(`{"error":"no"}`), "0 whole", false},
		{"no items", multi, responses(), "", false},
		{"no list", multi, `{"responses":{"error":{}}}`, "", true},
		{"no object", multi, `["error"]`, "", true},
		{"items are no objects", multi, `{"responses":[1,"error"]}`, "", true},
		{"half", multi, responses(goodItem, badItem)[:90] + `"error":`, "", true},
		{"valid", validate, `{"_shards":{"total":1},"valid":true,"explanations":[{"valid":false}]}`, "", false},
		{"not valid", validate, `{"_shards":{},"valid":false,"explanations":[]}`, "failed", false},
		{"valid is no truth value", validate, `{"valid":"false"}`, "", false},
		{"evaluated", rank, `{"metric_score":1,"details":{"failures":{"a":{}}},"failures":{}}`, "", false},
		{"not all evaluated", rank, `{"metric_score":1,"details":{},"failures":{"b":` + badItem + `}}`, "failed" + clauses, false},
		{"failures are none", rank, `{"failures":null}`, "", false},
	} {
		firstAndLast := func(k int) bool { return k == 0 || k == 2 }
		got, err := ReadSeveral(strings.NewReader(tt.answer), tt.endpoint, firstAndLast)
		check.That(t, told(got) == tt.want && (err != nil) == tt.unread, "%s: %q, %v, want %q", tt.name, told(got), err, tt.want)
	}
	// Where filter_path removes items, any that failed may be a rewritten one.
	if got, err := ReadSeveral(strings.NewReader(responses(`{"error":{"type":"x"}}`)), multi, nil); told(got) != "failed whole; x: " || err != nil {
		t.Errorf("filtered: %q, %v", told(got), err)
	}
}

// The object is that of OpenSearch 2.19, shortened.
func TestRefusalsAreRead(t *testing.T) {
	clauses := `{"error":{"root_cause":[{"type":"query_shard_exception","reason":"failed to create query","index":"a"}],"type":"search_phase_execution_exception",` +
		`"reason":"all shards failed","failed_shards":[{"shard":0,"reason":{"type":"query_shard_exception","reason":"failed","caused_by":{"type":"too_many_clauses",` +
		`"reason":"maxClauseCount is set to 1024","script":{"type":"x","reason":"y"}}}}]},"status":400}`
	for _, tt := range []struct {
		name, answer string
		status       int
		strict       bool
		want         string
	}{
		{"whole", clauses, 400, false, "failed whole; search_phase_execution_exception: all shards failed; query_shard_exception: failed to create query; query_shard_exception: failed; too_many_clauses: maxClauseCount is set to 1024"},
		{"cut", clauses[:120], 400, false, "failed whole; : ; query_shard_exception: failed to create query"},
		{"a text", `{"error":"too_many_clauses","status":400}`, 400, false, "failed whole"},
		{"of a proxy", "<html>", 502, false, "failed busy whole"},
		{"a breaker", `{"error":{"type":"circuit_breaking_exception"}}`, 500, false, "failed busy whole; circuit_breaking_exception: "},
		{"what was asked for", `{"error":{"type":"x","reason":"Partial shards failure"}}`, 503, true, "failed; x: Partial shards failure"},
		{"what was not asked for", `{"error":{"type":"x","reason":"Partial shards failure"}}`, 503, false, "failed busy whole; x: Partial shards failure"},
	} {
		got := ReadRefusal(strings.NewReader(tt.answer), tt.status, tt.strict)
		check.That(t, told(got) == tt.want && got.Status == tt.status, "%s: %q, want %q", tt.name, told(got), tt.want)
	}
}

func TestCausesOfARefusalAreBounded(t *testing.T) {
	deep := strings.Repeat(`{"type":"x","caused_by":`, 1000) + "{}" + strings.Repeat("}", 1000)
	for name, tt := range map[string]struct {
		error  string
		causes int
	}{
		"deep": {deep, maxCauseDepth}, "many": {`{"root_cause":[` + strings.Repeat(`{"type":"x"},`, 1000) + `{}]}`, maxCauses},
		"long": {`{"type":"` + strings.Repeat("x", 10_000) + `"}`, 1}, "wide": {`{"type":"x","failed_shards":[` + strings.Repeat(`{"reason":`+deep[:120], 1000), 7},
	} {
		r := ReadRefusal(strings.NewReader(`{"error":`+tt.error+`}`), http.StatusBadRequest, false)
		check.That(t, len(r.Causes) == tt.causes && len(r.Causes[0].Type) <= maxReasonBytes, "%s: %d causes, want %d", name, len(r.Causes), tt.causes)
	}
}

// The first rewritten search that failed is what a plain reading of the answer
// finds.
func FuzzFailedItem(f *testing.F) {
	for _, seed := range []string{responses(), responses(goodItem, badItem, badItem), `{"responses":[{"error":null},{},{"error":{}}]}`, `{}`, `[]`, `{"responses":1}`, badItem} {
		f.Add(seed)
	}
	firstAndLast := func(k int) bool { return k == 0 || k == 2 }
	f.Fuzz(func(t *testing.T, text string) {
		first, err := ReadSeveral(strings.NewReader(text), expand.EndpointMultiSearch, firstAndLast)
		var page struct {
			Responses []map[string]json.RawMessage `json:"responses"`
		}
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &page) != nil || json.Unmarshal([]byte(text), &members) != nil || string(members["responses"]) == "null" {
			return // it is enough not to panic
		}
		for name := range members {
			if strings.EqualFold(name, "responses") && strings.Count(strings.ToLower(text), "responses") != 1 {
				return // the standard library takes the names for the same, or the last of two
			}
		}
		at := -1
		for k, item := range page.Responses {
			if item == nil || strings.Count(text, "error") > strings.Count(text, `{"error"`) {
				return // no object, or perhaps a name twice
			}
			if _, ok := item["error"]; ok && at < 0 && k != 1 && k < 3 {
				at = k
			}
		}
		if members["responses"] == nil {
			at = -1
		}
		for _, other := range []string{"status", "_shards", "exception"} {
			if strings.Contains(text, other) {
				return // what the cluster is the reason of, or no failure, does not go first
			}
		}
		check.That(t, err != nil || (first != nil) == (at >= 0) && (first == nil || first.Search == at), "%q: got %+v, want that of %d", text, first, at)
	})
}
