package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/tools/evaluate"
)

// A text is a document or a query of a judged collection.
type text struct {
	ID    string `json:"_id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// dataFolder returns where the judged collections are.
func dataFolder() string {
	if folder := os.Getenv("AKIN_DATA"); folder != "" {
		return folder
	}
	return filepath.Join(root, "..", "shared", "data")
}

// cranfieldFile returns the path of a file of the collection.
func cranfieldFile(tb testing.TB, name string) string {
	tb.Helper()
	path := filepath.Join(dataFolder(), "cran", name)
	if _, err := os.Stat(path); err != nil {
		tb.Skipf("needs judged collections in the folder that AKIN_DATA names: %v", err)
	}
	return path
}

// cranfield returns the collection's documents or queries.
func cranfield(tb testing.TB, name string) (texts []text) {
	tb.Helper()
	data, err := os.ReadFile(cranfieldFile(tb, name))
	check.OK(tb, err)
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var line text
		check.OK(tb, json.Unmarshal(lines.Bytes(), &line))
		texts = append(texts, line)
	}
	return texts
}

// loadCranfield makes an index of the collection.
func loadCranfield(tb testing.TB, url, index string) *esclient.Client {
	tb.Helper()
	client, err := esclient.New(esclient.Options{URL: url})
	check.OK(tb, err)
	tb.Cleanup(client.Close)
	api := documents.API{Client: client}
	if _, err := api.CreateIndex(tb.Context(), index, []byte(`{"settings":{"number_of_shards":1,"number_of_replicas":0},`+
		`"mappings":{"properties":{"title":{"type":"text","analyzer":"english"},"body":{"type":"text","analyzer":"english"}}}}`)); err != nil {
		tb.Fatal(err)
	}
	var docs []documents.Document
	for _, d := range cranfield(tb, "corpus.jsonl") {
		docs = append(docs, documents.Document{ID: d.ID, Source: map[string]string{"title": d.Title, "body": d.Text}})
	}
	check.OK(tb, api.Index(tb.Context(), index, docs))
	return client
}

// engineWithCranfield loads the collection into the engine of
// AKIN_E2E_ENGINE_URL.
func engineWithCranfield(t *testing.T) (client *esclient.Client, url, index string) {
	t.Helper()
	if url = os.Getenv("AKIN_E2E_ENGINE_URL"); url == "" {
		t.Skip("set AKIN_E2E_ENGINE_URL to the URL of an Elasticsearch or OpenSearch; the tests in e2e do")
	}
	index = fmt.Sprintf("akin-tune-test-%d", time.Now().UnixNano())
	t.Cleanup(func() {
		r, _ := http.NewRequest(http.MethodDelete, url+"/"+index, nil)
		if resp, err := (&http.Client{Timeout: time.Minute}).Do(r); err == nil {
			resp.Body.Close()
		}
	})
	return loadCranfield(t, url, index), url, index
}

// tunedSearches are the kinds of searches that tune ranks, with TEXT for the
// text of the query.
var tunedSearches = map[string]string{
	"match":             `{"query":{"match":{"body":TEXT}}}`,
	"all terms but two": `{"query":{"match":{"body":{"query":TEXT,"minimum_should_match":-2,"boost":1.5}}}}`,
	"best fields":       `{"query":{"multi_match":{"query":TEXT,"fields":["title^2","body"],"tie_breaker":0.3}}}`,
	"most fields":       `{"query":{"multi_match":{"query":TEXT,"fields":["title^2","body"],"type":"most_fields"}}}`,
	"query string":      `{"query":{"query_string":{"query":TEXT,"fields":["title","body^1.5"]}}}`,
	"bool": `{"query":{"bool":{"must":[{"match":{"body":TEXT}}],"should":[{"match":{"title":{"query":TEXT,"boost":0.5}}},{"term":{"body":"wing"}}],` +
		`"filter":[{"terms":{"body":["flow","pressur","effect","boundari"]}}],"must_not":[{"term":{"title":"shock"}}]}}}`,
	"dis_max":        `{"query":{"dis_max":{"tie_breaker":0.2,"queries":[{"match":{"title":TEXT}},{"match":{"body":TEXT}}]}}}`,
	"function score": `{"query":{"function_score":{"query":{"match":{"body":TEXT}},"functions":[{"filter":{"term":{"body":"heat"}},"weight":1.7}]}}}`,
	"constant score": `{"query":{"bool":{"should":[{"match":{"body":TEXT}},{"constant_score":{"filter":{"term":{"body":"flow"}},"boost":0.8}}]}}}`,
	"rescored": `{"query":{"match":{"body":TEXT}},"rescore":{"window_size":30,"query":{"rescore_query":{"match":{"title":TEXT}},` +
		`"query_weight":0.7,"rescore_query_weight":1.2}}}`,
}

// searchesOf returns the searches of a kind for the first queries, each with a
// size.
func searchesOf(t *testing.T, search string, queries int) (bodies [][]byte) {
	t.Helper()
	for _, q := range cranfield(t, "queries.jsonl")[:queries] {
		body := strings.ReplaceAll(search, "TEXT", fmt.Sprintf("%q", strings.NewReplacer("/", " ", "-", " ", "?", "", "(", "", ")", "").Replace(q.Text)))
		bodies = append(bodies, []byte(strings.Replace(body, "{", `{"size":10,`, 1)))
	}
	return bodies
}

// What tune ranks by are the scores that the engine gives: of the searches
// themselves, and of those that akin rewrites under several settings.
func TestTuneScoresAsTheEngineDoes(t *testing.T) {
	client, url, index := engineWithCranfield(t)
	m, _ := built(t, "--from-index", url, "--index", index, "--field", "body", "--top", "50")
	docs, err := loadDocuments(t.Context(), client, index, []string{"title", "body"}, func(string, int, int) {})
	check.OK(t, err)
	defer docs.Close()
	engine := httptest.NewServer(docs.Engine)
	t.Cleanup(engine.Close)
	settings := map[string]func(s *expand.Profile){
		"defaults": func(*expand.Profile) {},
		"linear, all found": func(s *expand.Profile) {
			s.Scoring, s.Strength = form.Linear, 3
		},
		"grouped, same hits": func(s *expand.Profile) {
			s.Scoring, s.SameMatches = form.Grouped, true
		},
		"in the query, few": func(s *expand.Profile) { s.NoRescore, s.MaxAddedTerms = true, 5 },
		"feedback":          func(s *expand.Profile) { s.Feedback.Documents = 10 },
		"blended":           func(s *expand.Profile) { s.Mode, s.SoftWeight = expand.ModeSoft, 0.4 },
	}
	for name, change := range settings {
		profile := expand.DefaultProfile()
		s := &profile
		change(s)
		proxy := serveSetting(t, url, index, s, m)
		for kind, search := range tunedSearches {
			t.Run(name+"/"+kind, func(t *testing.T) {
				b := &tuneBench{URL: engine.URL, Matrix: m, Bodies: searchesOf(t, search, 15)}
				if name == "defaults" {
					if worst, err := b.Difference(t.Context(), client, index, len(b.Bodies)); err != nil || worst > 1e-4 {
						t.Errorf("direct searches differ by %v, want 1e-4 at most: %v", worst, err)
					}
				}
				ours, err := b.Rank(t.Context(), s)
				check.OK(t, err)
				if direct, err := b.Rank(t.Context(), nil); err != nil || cmp.Equal(direct, ours) {
					t.Errorf("direct search has the same scores: the test shows nothing: %v", err)
				}
				for i, body := range b.Bodies {
					compareHits(t, ours[i], proxy+"/"+index+"/_search?akin_profile=tuned", body)
				}
			})
		}
	}
}

// serveSetting returns the URL of an akin with a setting in the profile tuned.
func serveSetting(t *testing.T, cluster, index string, s *expand.Profile, m *simmatrix.Matrix) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tuned.akin")
	check.OK(t, cli.WriteMatrix(t.Context(), file, m))
	var config bytes.Buffer
	check.OK(t, evaluate.WriteProfile(&config, s, configs.Matrix{Name: "m", Indices: []string{index}, Fields: []string{"title", "body"}, File: file}, ""))
	return startServe(t, freePorts+config.String()+fmt.Sprintf("cluster: {urls: ['%s']}\nexpansion: {budget: 10s}\n", cluster)).proxy
}

// compareHits compares hits with those that a search has: the scores by rank.
func compareHits(t *testing.T, ours []evaluate.Hit, url string, body []byte) {
	t.Helper()
	answer := find(t, url, string(body))
	if len(ours) != len(answer.Hits.Hits) {
		t.Fatalf("%s: %d hits, want %d", body, len(ours), len(answer.Hits.Hits))
	}
	for k, h := range answer.Hits.Hits {
		if d := math.Abs(ours[k].Score-h.Score) / h.Score; d > 1e-4 {
			t.Errorf("%s: hit %d, %s with %v, is %s with %v", body, k+1, ours[k].ID, ours[k].Score, h.ID, h.Score)
		}
	}
}
