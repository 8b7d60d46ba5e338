package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// highlightedSearches have words marked elsewhere than in the hits of a query.
var highlightedSearches = []struct {
	name, body string
	// retriever says that only engines with retrievers take the search.
	retriever bool
}{
	{name: "inner hits", body: `{"query":{"nested":{"path":"parts","score_mode":"max","query":{"match":{"parts.body":"car"}},"inner_hits":{"highlight":{"fields":{"parts.body":{}}}}}}}`},
	{
		name: "inner hits and hits",
		body: `{"highlight":{"fields":{"*":{"require_field_match":false}}},"query":{"bool":{"should":[{"match":{"body":"boat"}},{"nested":{"inner_hits":{"highlight":{"type":"plain","fields":{"parts.*":{}}}},"path":"parts","score_mode":"max","query":{"match":{"parts.body":"car"}}}}]}}}`,
	},
	{name: "top hits", body: `{"query":{"match":{"body":"car"}},"size":0,"aggs":{"best":{"top_hits":{"size":50,"highlight":{"fields":{"body":{}}}}}}}`},
	{
		name: "top hits below others",
		body: `{"aggregations":{"some":{"filter":{"range":{"n":{"lt":40}}},"aggs":{"all":{"terms":{"field":"n","size":50},"aggs":{"best":{"top_hits":{"highlight":{"fields":{"body":{}}}}}}}}}},"query":{"match":{"body":"car boat"}}}`,
	},
	{
		name: "top hits of nested objects",
		body: `{"query":{"nested":{"path":"parts","score_mode":"max","query":{"match":{"parts.body":"car"}}}},"aggs":{"parts":{"nested":{"path":"parts"},"aggs":{"best":{"top_hits":{"size":50,"highlight":{"fields":{"parts.body":{}}}}}}}}}`,
	},
	{name: "collapse", body: `{"query":{"match":{"body":"car"}},"collapse":{"field":"n","inner_hits":{"name":"best","highlight":{"fields":{"body":{}}}}}}`},
	{
		name: "collapse with several",
		body: `{"collapse":{"field":"n","inner_hits":[{"name":"first","highlight":{"fields":{"body":{}}}},{"name":"last","sort":["n"],"highlight":{"fields":{"title":{"require_field_match":false}}}}]},"query":{"match":{"body":"boat"}}}`,
	},
	{name: "retriever", retriever: true, body: `{"retriever":{"standard":{"query":{"match":{"body":"car"}}}},"highlight":{"fields":{"body":{}}},"aggs":{"best":{"top_hits":{"size":50,"highlight":{"fields":{"body":{}}}}}}}`},
	{
		name: "retriever that collapses", retriever: true,
		body: `{"retriever":{"standard":{"query":{"match":{"body":"car"}},"collapse":{"field":"n","inner_hits":{"name":"best","highlight":{"fields":{"body":{}}}}}}}}`,
	},
}

// marked collects from an answer what is marked in each hit, by the way that
// leads to it, on which hits and buckets go by their names. A hit without marks
// has nil.
func marked(at string, v any, into map[string]any) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			marked(at, element, into)
		}
	case map[string]any:
		name, _ := json.Marshal([]any{v["_id"], v["_nested"], v["key"]}) // of a hit, an object in it, a bucket
		at += string(name)
		if _, ok := v["_id"]; ok {
			into[at] = v["highlight"]
		}
		for name, member := range v {
			marked(at+"."+name, member, into)
		}
	}
}

// TestOriginalWordsAreHighlightedInEveryPlace compares what is marked in the
// documents that are found directly and through akin. With highlight: related the
// words that were added are marked.
func TestOriginalWordsAreHighlightedInEveryPlace(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		for _, scoring := range []string{"auto", "linear", "grouped", "saturated"} {
			if scoring == "grouped" && !e.scripts {
				continue // which is auto
			}
			a := setupWide(t, e, section{
				"expansion": section{"scoring": scoring}, "profiles": section{"related": section{"highlight": "related"}},
			})
			for _, s := range highlightedSearches {
				if s.retriever && e.scripts {
					continue // these engines have none
				}
				t.Run(scoring+" "+s.name, func(t *testing.T) { checkMarked(t, e, a, s.body) })
			}
			for _, kind := range []string{"unified", "plain"} {
				marks := ask[any](t, a.cluster, http.MethodPost, relatedPath+"?akin_profile=related&filter_path=hits.hits.highlight",
					`{"query":{"match":{"body":"car"}},"highlight":{"type":"`+kind+`","fields":{"body":{}}}}`)
				if text := fmt.Sprint(marks); strings.Count(text, "<em>automobile</em>") != 2 && scoring != "linear" {
					t.Errorf("%s, %s: related words are marked in %s", scoring, kind, text)
				}
			}
		}
	})
}

func checkMarked(t *testing.T, e *engine, a *akin, body string) {
	t.Helper()
	found := func(c cluster) map[string]any {
		into := map[string]any{}
		marked("", ask[any](t, c, http.MethodPost, relatedPath+"?size=50", body), into)
		return into
	}
	var through map[string]any
	direct := found(e.cluster)
	if n := a.rewrites(t, func() { through = found(a.cluster) }); n != 1 || len(through) <= len(direct) {
		t.Fatalf("not expanded: %d hits directly, %d through akin", len(direct), len(through))
	}
	marks, related := 0, 0
	for at := range through {
		if is, ok := direct[at]; !ok {
			related++
			delete(through, at)
		} else if is != nil {
			marks++
		}
	}
	if diff := cmp.Diff(direct, through); diff != "" || marks == 0 || related == 0 {
		t.Errorf("%d hits with marks, %d found only through akin; marks (-direct +through akin):\n%s", marks, related, diff)
	}
}
