package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBindingMatchesWhatAnExpressionStandsFor searches by names that no pattern
// of the configuration matches.
func TestBindingMatchesWhatAnExpressionStandsFor(t *testing.T) {
	file := relatedFile(t, vectorsA)
	eachEngine(t, func(t *testing.T, e *engine) {
		const docs, others = "akin-e2e-bound-docs", "akin-e2e-unbound"
		e.makeIndex(t, docs, `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{"body":{"type":"text"}}},
			"aliases":{"akin-e2e-live":{},"akin-e2e-tenant-a":{"filter":{"match_all":{}}}}}`)
		e.makeIndex(t, others, `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{"body":{"type":"text"}}},
			"aliases":{"akin-e2e-mixed":{}}}`)
		e.must(t, http.MethodPost, "/_aliases", `{"actions":[{"add":{"index":"`+docs+`","alias":"akin-e2e-mixed"}}]}`)
		e.index(t, docs, relatedDocuments())
		a := startAkin(t, section{
			"cluster":   section{"urls": []string{e.url}},
			"expansion": section{"budget": widePatience},
			"matrices":  []section{{"name": "main", "file": file, "indices": []string{"akin-e2e-bound-*", "-akin-e2e-tenant-*"}}},
		})
		a.awaitMatrix(t, "main")
		for _, tt := range []struct {
			name, index string
			expanded    bool
			indices     []string
		}{
			{"the name", docs, true, nil},
			{"an alias", "akin-e2e-live", true, nil},
			{"a wider pattern", "akin-e2e-bou*", true, nil},
			{"an alias by a pattern", "akin-e2e-li*", true, nil},
			{"an alias of an index and others", "akin-e2e-mixed", false, []string{docs, others}},
			{"another index", others, false, []string{others}},
			{"an alias that is kept out", "akin-e2e-tenant-a", false, nil},
			{"a pattern that may name it", "akin-e2e-t*", false, nil},
			{"with exclusions", "akin-e2e-mixed,-" + others, false, nil}, // explicit names are not taken away
			{"a pattern with exclusions", "akin-e2e-bo*,akin-e2e-unb*,-" + others, true, nil},
		} {
			t.Run(tt.name, func(t *testing.T) {
				hits, err := a.search(t.Context(), "/"+tt.index+"/_search", relatedSearch("car"))
				if tt.name == "with exclusions" && err != nil {
					return // engines differ in what they make of it
				}
				if err != nil || slices.Contains(hits.ids(), "automobile") != tt.expanded {
					t.Errorf("%v, %v; expanded: %v", hits.ids(), err, tt.expanded)
				}
				clause := a.explain(t, tt.index, relatedSearch("car")).Clauses[0]
				if (clause.Reason == "no_matrix") == tt.expanded || tt.indices != nil && !slices.Equal(clause.Indices, tt.indices) {
					t.Errorf("%+v, want the indices %q", clause, tt.indices)
				}
			})
		}
	})
}

// TestDataStreamIsBoundByItsName reaches it by an alias.
func TestDataStreamIsBoundByItsName(t *testing.T) {
	file := relatedFile(t, vectorsA)
	eachEngine(t, func(t *testing.T, e *engine) {
		const stream = "akin-e2e-stream"
		template := `{"index_patterns":["` + stream + `"],"priority":500,"data_stream":{},"template":{"settings":{"number_of_replicas":0},
			"mappings":{"properties":{"@timestamp":{"type":"date"},"body":{"type":"text"}}}}}`
		if status, answer, err := e.call(t.Context(), http.MethodPut, "/_index_template/"+stream, template); err != nil || status != http.StatusOK {
			t.Skipf("no data streams: %d %s %v", status, answer, err)
		}
		if status, answer, err := e.call(t.Context(), http.MethodPut, "/_data_stream/"+stream, ""); err != nil || status != http.StatusOK {
			t.Skipf("no data streams: %d %s %v", status, answer, err)
		}
		t.Cleanup(func() {
			for _, path := range []string{"/_data_stream/", "/_index_template/"} {
				if status, answer, err := e.call(context.WithoutCancel(t.Context()), http.MethodDelete, path+stream, ""); err != nil || status != http.StatusOK {
					t.Errorf("%d %s %v", status, answer, err)
				}
			}
		})
		for _, text := range []string{"car", "automobile", "blue", "red", "green", "yellow", "filler one", "filler two", "filler three", "filler four", "filler five"} {
			e.must(t, http.MethodPost, "/"+stream+"/_doc?refresh=true", `{"@timestamp":"2026-11-22T00:00:00Z","body":"`+text+`"}`)
		}
		a := startAkin(t, section{
			"cluster":   section{"urls": []string{e.url}},
			"expansion": section{"budget": widePatience, "max_doc_share": 1},
			"matrices":  []section{{"name": "main", "file": file, "indices": []string{stream}}},
		})
		a.awaitMatrix(t, "main")
		for _, index := range []string{stream, "akin-e2e-str*"} {
			if hits, err := a.search(t.Context(), "/"+index+"/_search", relatedSearch("car")); err != nil || len(hits.ids()) != 2 {
				t.Errorf("%s: %v, %v", index, hits.ids(), err)
			}
		}
	})
}

// TestFieldOfPrefixesIsSearchedAsItCame has the case that was found: "card" on a
// field of edge n-grams got words that happen to begin alike.
func TestFieldOfPrefixesIsSearchedAsItCame(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		if !e.scripts { // the engines with scripts have the module for analysis, too
			t.Skip("the engine has no filter of edge n-grams")
		}
		const index = "akin-e2e-prefixes"
		e.makeIndex(t, index, `{"settings":{"number_of_shards":1,"number_of_replicas":0,"index.max_ngram_diff":20,"analysis":{
			"filter":{"begins":{"type":"edge_ngram","min_gram":2,"max_gram":10}},
			"analyzer":{"autocomplete":{"tokenizer":"standard","filter":["lowercase","begins"]}}}},
			"mappings":{"properties":{"body":{"type":"text","analyzer":"autocomplete","search_analyzer":"standard",
			"fields":{"words":{"type":"text"}}},"typed":{"type":"search_as_you_type"}}}}`)
		var docs []document
		for i := range 120 {
			words := [...]string{"card patients", "cardiac arrest", "assigned group", "group blinded", "carbon blinded"}[i%5]
			docs = append(docs, document{strconv.Itoa(i), section{"body": fmt.Sprintf("%s %d", words, i), "typed": words}})
		}
		e.index(t, index, docs)
		out := filepath.Join(newDir(t, "prefixes"), "m.akin")
		built := runAkin(t, "matrix", "build", "--from-index", e.url, "--index", index, "--field", "body", "--out", out)
		if built.status != 0 || !strings.Contains(built.stderr, "warning: the terms of field body are no words, because of its filter begins (edge_ngram)") {
			t.Errorf("status %d\n%s", built.status, built.stderr)
		}
		if quiet := runAkin(t, "matrix", "build", "--from-index", e.url, "--index", index, "--field", "body.words", "--out", out+"2"); strings.Contains(quiet.stderr, "warning") {
			t.Errorf("a field of words:\n%s", quiet.stderr)
		}
		serve := func(fields ...string) *akin {
			a := startAkin(t, section{
				"cluster":   section{"urls": []string{e.url}},
				"expansion": section{"budget": widePatience, "max_doc_share": 1},
				"matrices":  []section{{"name": "main", "file": out, "fields": fields}},
			})
			a.awaitMatrix(t, "main")
			return a
		}
		all, named := serve("*"), serve("body")
		find := func(c cluster, field string) []string {
			hits, err := c.search(t.Context(), "/"+index+"/_search", `{"size":200,"query":{"match":{"`+field+`":"card"}}}`)
			if err != nil {
				t.Fatal(err)
			}
			return hits.ids()
		}
		if diff := cmp.Diff(find(e.cluster, "body"), find(all.cluster, "body")); diff != "" {
			t.Errorf("hits (-direct +through akin):\n%s", diff)
		}
		for _, tt := range []struct {
			a             *akin
			field, reason string
		}{{all, "body", "not_words"}, {all, "typed._2gram", "not_text"}, {all, "typed._index_prefix", "not_text"}} {
			if clause := tt.a.explain(t, index, `{"query":{"match":{"`+tt.field+`":"card"}}}`).Clauses[0]; clause.Reason != tt.reason {
				t.Errorf("%s: %+v, want %q", tt.field, clause, tt.reason)
			}
		}
		if clause := named.explain(t, index, `{"query":{"match":{"body":"card"}}}`).Clauses[0]; len(clause.Added) == 0 {
			t.Errorf("bound by its full name: %+v", clause)
		}
	})
}

// TestSoftModeLeavesSuggestionsAsTheyAre compares whole suggestions. Completions
// are documents, which the search for the names of hits would not bring.
func TestSoftModeLeavesSuggestionsAsTheyAre(t *testing.T) {
	file := relatedFile(t, vectorsA)
	eachEngine(t, func(t *testing.T, e *engine) {
		const index = "akin-e2e-suggested"
		e.makeIndex(t, index, `{"settings":{"number_of_shards":1,"number_of_replicas":0},
			"mappings":{"properties":{"body":{"type":"text"},"words":{"type":"completion"}}}}`)
		docs := relatedDocuments()
		for i := range docs {
			docs[i].fields = section{"body": docs[i].fields["body"], "words": strings.Split(docs[i].id, "-")}
		}
		e.index(t, index, docs)
		config := softConfig(e, file)
		config["weights"] = []section{{"name": "w", "file": snapshotFile(t, e, index, "body")}}
		a := startAkin(t, config)
		a.awaitMatrix(t, "s")
		const suggest = `"suggest":{"w":{"prefix":"c","completion":{"field":"words"}},"t":{"text":"carr","term":{"field":"body"}}}`
		for _, asked := range []string{"", `"version":true,`, `"seq_no_primary_term":true,`} {
			body := `{` + asked + `"query":{"match":{"body":"car"}},` + suggest + `}`
			type suggestions struct{ Suggest json.RawMessage }
			var direct, through suggestions
			before := a.metric(t, rerankedMetric, rerankedResult)
			decode(t, e.must(t, http.MethodPost, "/"+index+"/_search", body), &direct)
			decode(t, a.must(t, http.MethodPost, "/"+index+"/_search", body), &through)
			if n := a.metric(t, rerankedMetric, rerankedResult); n != before {
				t.Errorf("%s: the hits were reranked", asked)
			}
			if diff := cmp.Diff(string(direct.Suggest), string(through.Suggest)); diff != "" || !strings.Contains(string(direct.Suggest), `"_id"`) {
				t.Errorf("%s (-direct +through akin):\n%s", asked, diff)
			}
		}
	})
}

// snapshotFile freezes the weights of a field in a file.
func snapshotFile(t *testing.T, e *engine, index, field string) string {
	t.Helper()
	file := filepath.Join(newDir(t, "weights"), "w.akin")
	mustAkin(t, "norms", "snapshot", "--cluster", e.url, "--index", index, "--field", field, "--out", file)
	return file
}

// TestBarredExpensiveQueries: scripts are expensive, and queries of nested
// fields, by which akin counts their documents.
func TestBarredExpensiveQueries(t *testing.T) {
	file := relatedFile(t, vectorsA)
	eachEngine(t, func(t *testing.T, e *engine) {
		if !e.ours {
			t.Skip("needs an engine of our own: it changes a cluster setting")
		}
		makeRelated(t, e)
		setExpensiveQueries(t, e, "false")
		t.Cleanup(func() { setExpensiveQueries(t, e, "null") })
		a := serveRelated(t, e, file, nil)
		if hits := a.searchRelated(t, relatedSearch("car")); !slices.Contains(hits.ids(), "automobile") {
			t.Errorf("not expanded: %v", hits.ids())
		}
		if clause := a.explain(t, relatedIndex, relatedSearch("car")).Clauses[0]; clause.Form != "grouped" {
			t.Errorf("%+v", clause)
		}
		nested := rawRequest{
			method: http.MethodPost, target: relatedPath, header: []string{jsonType},
			body: `{"query":{"nested":{"path":"parts","query":{"match":{"parts.body":"car"}}}}}`,
		}
		direct, through := exchange(t, e.url, nested).stable(t), exchange(t, a.url, nested).stable(t)
		if diff := cmp.Diff(direct, through); diff != "" {
			t.Errorf("(-direct +through akin):\n%s", diff)
		}
		if n := a.metric(t, requestsMetric, `outcome="failed_open"`, `reason="expensive_queries_disabled"`); n != 1 {
			t.Errorf("not counted by its cause:\n%s", requestMetrics(t, a))
		}
	})
}
