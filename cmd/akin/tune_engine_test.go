package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/server"
	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/demo"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/evaluate/judged"
	"github.com/akin-search/akin/evaluate/tune"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
)

// cranfield returns the texts of the collection's documents or queries by line.
func cranfield(t *testing.T, name string) (ids, texts []string) {
	t.Helper()
	root := cmp.Or(os.Getenv("AKIN_DATA"), filepath.Join(root, "..", "shared", "data"))
	data, err := os.ReadFile(filepath.Join(root, "cran", name))
	if err != nil {
		t.Skipf("needs the judged collection cran: %v\nname the folder that has it in AKIN_DATA", err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var line struct {
			ID          string `json:"_id"`
			Title, Text string
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		ids, texts = append(ids, line.ID), append(texts, line.Title+" "+line.Text)
	}
	return ids, texts
}

// engineWithCranfield loads the collection into the engine of
// AKIN_E2E_ENGINE_URL.
func engineWithCranfield(t *testing.T) (client *esclient.Client, url, index string) {
	t.Helper()
	if url = os.Getenv("AKIN_E2E_ENGINE_URL"); url == "" {
		t.Skip("set AKIN_E2E_ENGINE_URL to the URL of an Elasticsearch or OpenSearch; the tests in e2e do")
	}
	client, err := esclient.New(esclient.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	index = fmt.Sprintf("akin-tune-test-%d", time.Now().UnixNano())
	api := documents.API{Client: client}
	if _, err := api.CreateIndex(t.Context(), index, []byte(`{"settings":{"number_of_shards":1,"number_of_replicas":0},`+
		`"mappings":{"properties":{"body":{"type":"text","analyzer":"english"}}}}`)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r, _ := http.NewRequest(http.MethodDelete, url+"/"+index, nil)
		if resp, err := (&http.Client{Timeout: time.Minute}).Do(r); err == nil {
			resp.Body.Close()
		}
	})
	var docs []documents.Document
	ids, texts := cranfield(t, "corpus.jsonl")
	for i, id := range ids {
		docs = append(docs, documents.Document{ID: id, Source: map[string]string{"body": texts[i]}})
	}
	if err := api.Index(t.Context(), index, docs); err != nil {
		t.Fatal(err)
	}
	return client, url, index
}

// What tune ranks by are the scores that the engine gives: of the searches
// themselves, and of those that akin rewrites under several settings.
func TestTuneScoresAsTheEngineDoes(t *testing.T) {
	client, url, index := engineWithCranfield(t)
	dir := t.TempDir()
	matrix := filepath.Join(dir, "cran.akin")
	if _, stderr, status := akin(t, "matrix", "build", "--from-index", url, "--index", index, "--field", "body",
		"--dim", "50", "--top", "50", "--out", matrix); status != 0 {
		t.Fatal(stderr)
	}
	m, err := files.ReadMatrix(t.Context(), matrix)
	if err != nil {
		t.Fatal(err)
	}
	b := &tune.Bench{Matrices: []combine.Input{{Name: "cran", Matrix: m}}, Options: server.ExpandOptions}
	ids, texts := cranfield(t, "queries.jsonl")
	for i := range 40 {
		body, err := json.Marshal(map[string]any{"query": map[string]any{"match": map[string]any{"body": texts[i]}}})
		if err != nil {
			t.Fatal(err)
		}
		b.Queries, b.Bodies = append(b.Queries, judged.Query{ID: ids[i]}), append(b.Bodies, body)
	}
	if b.Index, err = tune.Read(t.Context(), client, index, []string{"body"}, nil); err != nil {
		t.Fatal(err)
	}
	defer b.Index.Close()
	if worst, err := b.Index.Difference(t.Context(), client, b.Bodies); err != nil || worst > 1e-4 {
		t.Errorf("direct searches differ by %v, want 1e-4 at most: %v", worst, err)
	}
	for name, change := range map[string]func(s *tune.Setting){
		"defaults":          func(*tune.Setting) {},
		"linear, all found": func(s *tune.Setting) { s.Rewriting.Scoring, s.Rewriting.Strength.Linear = configs.ScoringLinear, 0.6 },
		"grouped, same hits": func(s *tune.Setting) {
			s.Rewriting.Scoring, s.Rewriting.Matching = configs.ScoringGrouped, configs.MatchingSame
		},
		"in the query, few": func(s *tune.Setting) { s.Rewriting.Phase, s.Rewriting.MaxAddedTerms = configs.PhaseQuery, 5 },
		"feedback":          func(s *tune.Setting) { s.Rewriting.Feedback.Documents = 10 },
		"blended":           func(s *tune.Setting) { s.Rewriting.Mode, s.Rewriting.SoftWeight = configs.ModeSoft, 0.4 },
		"another matrix":    func(s *tune.Setting) { s.Shape = tune.Shape{Exponent: 0.5, Threshold: 0.05, Neighbors: 10} },
	} {
		t.Run(name, func(t *testing.T) {
			s := &tune.Setting{Rewriting: configs.Default().Expansion.Rewriting, Shape: tune.Shape{Exponent: 1}}
			change(s)
			ours, err := b.Rank(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			shaped, err := s.Shape.Apply(t.Context(), b.Matrices)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := files.Write(t.Context(), filepath.Join(dir, "tuned.akin"), func(w io.Writer) error { return simmatrix.Encode(w, shaped) }); err != nil {
				t.Fatal(err)
			}
			var config bytes.Buffer
			if err := tune.WriteProfile(&config, s, configs.Matrix{Name: "m", Indices: []string{index}, Fields: []string{"body"}, File: "tuned.akin"}, ""); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&config, "listen: {address: '127.0.0.1:0'}\nadmin: {address: '127.0.0.1:0'}\ncluster: {urls: ['%s']}\nexpansion: {budget: 10s, rerank_budget: 10s}\n", url)
			path := filepath.Join(dir, "akin.yml")
			if err := os.WriteFile(path, config.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			proxy, _ := serveConfig(t, path)
			for i, body := range b.Bodies {
				compareHits(t, ours[i], proxy+"/"+index+"/_search?akin_profile=tuned", body)
			}
		})
	}
}

// compareHits compares hits with those that a search has: the scores by rank.
func compareHits(t *testing.T, ours []demo.Hit, url string, body []byte) {
	t.Helper()
	var answer struct {
		Hits struct {
			Hits []struct {
				ID    string  `json:"_id"`
				Score float64 `json:"_score"`
			}
		}
	}
	post(t, url, string(body), &answer)
	if len(ours) != len(answer.Hits.Hits) || len(ours) == 0 {
		t.Fatalf("%s: %d hits, want %d", body, len(ours), len(answer.Hits.Hits))
	}
	for k, h := range answer.Hits.Hits {
		if d := math.Abs(float64(ours[k].Score)-h.Score) / h.Score; d > 1e-4 {
			t.Errorf("%s: hit %d, %s with %v, is %s with %v", body, k+1, ours[k].ID, ours[k].Score, h.ID, h.Score)
		}
	}
}
