package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/demo"
)

// Each profile has its own options, takes what it leaves out from expansion, and
// looks into its own matrices.
func TestProfilesOfTheConfigurationAreServed(t *testing.T) {
	engine := httptest.NewServer(demo.NewEngine())
	t.Cleanup(engine.Close)
	client, err := esclient.New(esclient.Options{URL: engine.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := (documents.API{Client: client}).CreateIndex(t.Context(), "shop", []byte(`{"mappings":{"properties":{"body":{"type":"text"}}}}`)); err != nil {
		t.Fatal(err)
	}
	var docs []documents.Document
	for _, text := range append([]string{"car", "automobile", "lorry"}, strings.Fields(strings.Repeat("filler ", 40))...) {
		docs = append(docs, documents.Document{Source: map[string]string{"body": text}})
	}
	if err := (documents.API{Client: client}).Index(t.Context(), "shop", docs); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for name, vectors := range map[string]string{
		"first":  "car 1 0 0\nautomobile 0.9 0.1 0\nlorry 0 0 1\n",
		"second": "car 1 0 0\nlorry 0.9 0.1 0\nautomobile 0 0 1\n",
	} {
		if err := os.WriteFile(name+".txt", []byte(vectors), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, stderr, status := akin(t, "matrix", "build", "--from-vectors", name+".txt", "--out", name+".akin"); status != 0 {
			t.Fatal(stderr)
		}
	}
	if err := os.WriteFile("akin.yml", []byte(`
listen: {address: "127.0.0.1:0"}
admin: {address: "127.0.0.1:0"}
cluster: {urls: ["`+engine.URL+`"]}
expansion: {enabled: false, budget: 10s, scoring: linear}
profiles:
  on: {enabled: true}
  other: {enabled: true, matrices: [second]}
  grouped: {enabled: true, scoring: grouped, matrices: [second, first]}
  same: {}
matrices:
  - {name: first, file: first.akin}
  - {name: second, file: second.akin}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, admin := serveConfig(t, "akin.yml")
	const search = `{"query":{"match":{"body":"car"}}}`
	for profile, want := range map[string]expand.Explanation{
		"on":      {Matrix: "first@", Form: "linear", Added: []expand.Added{{Term: "automobile"}}},
		"other":   {Matrix: "second@", Form: "linear", Added: []expand.Added{{Term: "lorry"}}},
		"grouped": {Matrix: "first@", Form: "grouped", Added: []expand.Added{{Term: "automobile"}}},
	} {
		var answer struct{ Clauses []expand.Explanation }
		post(t, admin+"/_akin/expand/shop?akin_profile="+profile, search, &answer)
		if len(answer.Clauses) != 1 {
			t.Fatalf("%s: %+v", profile, answer)
		}
		got := answer.Clauses[0]
		if !strings.HasPrefix(got.Matrix, want.Matrix) || got.Form != want.Form || len(got.Added) != 1 || got.Added[0].Term != want.Added[0].Term {
			t.Errorf("%s: %+v, want %+v", profile, got, want)
		}
	}
	for _, query := range []string{"", "?akin_profile=same", "?akin_profile=unknown"} {
		resp, err := http.Post(admin+"/_akin/expand/shop"+query, "application/json", strings.NewReader(search))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%q: status %d", query, resp.StatusCode)
		}
	}
}
