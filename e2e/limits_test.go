package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// changeSetting changes a setting of the cluster until the test ends.
func (e *engine) changeSetting(t *testing.T, name string, value any) {
	t.Helper()
	put := func(value any) error {
		ctx := context.WithoutCancel(t.Context()) // it is called when the test has ended, too
		status, answer, err := e.call(ctx, http.MethodPut, "/_cluster/settings", toJSON(t, section{"transient": section{name: value}}))
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %s", status, answer)
		}
		return err
	}
	if err := put(value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := put(nil); err != nil {
			t.Error(err)
		}
	})
}

// TestBarredExpensiveQueries bars scripts, and queries of nested fields, by which
// akin counts their documents: before akin starts, and while it believes that it
// may use them.
func TestBarredExpensiveQueries(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		early := setupWide(t, e, nil)
		if !early.expands(t, relatedIndex) {
			t.Error("not expanded at first")
		}
		e.changeSetting(t, "search.allow_expensive_queries", false)
		if e.scripts {
			n := early.counted(t, func() { checkSame(t, e, early, post(relatedPath, relatedSearch("car"))) }, refusedMetric)
			if n != 1 {
				t.Errorf("%v searches are counted as refused", n)
			}
		}
		a := setupWide(t, e, nil)
		if !a.expands(t, relatedIndex) {
			t.Error("not expanded")
		}
		a.checkExplained(t, relatedIndex, relatedSearch("car"), "grouped", "query", "no_scripts")
		checkSame(t, e, a, post(relatedPath, `{"query":{"nested":{"path":"parts","query":{"match":{"parts.body":"car"}}}}}`))
		if n := a.metric(t, requestsMetric, `outcome="failed_open"`, `reason="expensive_queries_disabled"`); n != 1 {
			t.Errorf("not counted by its cause:\n%s", requestMetrics(t, a))
		}
	})
}

// narrowIndex is a copy of the fixture's index that lets fewer hits be rescored
// than a rewritten search does.
const narrowIndex = "akin-e2e-narrow"

func makeNarrow(t *testing.T, e *engine, window int) {
	t.Helper()
	e.makeIndex(t, narrowIndex, strings.Replace(relatedDefinition, `"number_of_shards":1`, fmt.Sprintf(`"index.max_rescore_window":%d,"number_of_shards":1`, window), 1))
	e.index(t, narrowIndex, relatedDocuments())
}

// A limit is learned from one refusal, corrected by what the cluster says, and
// reported.
func TestLimitsAreLearnedFromTheClusterItself(t *testing.T) {
	const narrower = "akin-e2e-narrower" // which has no document
	eachEngine(t, func(t *testing.T, e *engine) {
		if !e.scripts {
			return // nothing is rescored without
		}
		makeNarrow(t, e, 99)
		e.makeIndex(t, narrower, strings.Replace(relatedDefinition, `"number_of_shards":1`, `"index.max_rescore_window":90,"number_of_shards":1`, 1))
		a := setupWide(t, e, section{"expansion": section{"effort": "high"}})
		learned := func(kind string, want float64, r rawRequest) {
			t.Helper()
			refused := a.counted(t, func() {
				for range 3 {
					if answer := exchange(t, a.url, r); answer.status != "200 OK" {
						t.Errorf("%s: %s", answer.status, answer.body)
					}
				}
			}, refusedMetric)
			if refused != 1 {
				t.Errorf("%s: %v searches were refused, want 1:\n%s", kind, refused, requestMetrics(t, a))
			}
			a.awaitMetric(t, want, "akin_learned_limit", `kind="`+kind+`"`)
			if !slices.ContainsFunc(a.logLines(t), func(line map[string]any) bool {
				return line["level"] == "INFO" && line["kind"] == kind && line["index"] != "" && line["limit"] == want
			}) {
				t.Errorf("the log does not tell of the limit of %s", kind)
			}
		}
		expression := relatedIndex + "," + narrower + "," + narrowIndex
		learned("rescore_window", 90, post("/"+expression+"/_search", relatedSearch("car")))
		a.checkExplained(t, expression, relatedSearch("car"), "saturated", "query", "rescore_window")
		if e.family != "opensearch" {
			return // the limit of clauses of the others cannot be changed while they run
		}
		e.changeSetting(t, "indices.query.bool.max_clause_count", 100)
		words := make([]string, 99)
		for i := range words {
			words[i] = fmt.Sprintf("w%d", i)
		}
		learned("clauses", 100, post(relatedPath, `{"query":{"bool":{"should":[{"match":{"body":"`+strings.Join(words, " ")+`"}},{"match":{"body":"car"}}]}}}`))
	})
}
