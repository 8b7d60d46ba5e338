package answer

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
)

// Items of the answers of _msearch, as Elasticsearch 8.19 writes them.
const (
	goodItem = `{"took":1,"hits":{"hits":[{"_source":{"error":"none"}}]},"status":200}`
	badItem  = `{"error":{"root_cause":[],"type":"too_many_clauses","reason":"maxClauseCount is set to 1024"},"status":400}`
)

func responses(items ...string) string {
	return `{"took":3,"responses":[` + strings.Join(items, ",") + `]}`
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
