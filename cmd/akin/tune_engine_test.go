package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
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
