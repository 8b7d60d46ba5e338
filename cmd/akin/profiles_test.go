package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
)

func TestProfilesOfTheConfigurationAreServed(t *testing.T) {
	var docs []documents.Document
	for _, text := range slices.Concat([]string{"car", "automobile", "lorry"}, slices.Repeat([]string{"filler"}, 40)) {
		docs = append(docs, documents.Document{Source: map[string]string{"body": text}})
	}
	engine := newIndex(t, "shop", `{"mappings":{"properties":{"body":{"type":"text"}}}}`, docs)
	s := startServe(t, `
cluster: {urls: ["`+engine+`"]}
expansion: {enabled: false, budget: 10s, scoring: linear}
profiles:
  on: {enabled: true}
  other: {enabled: true, matrices: [second]}
  grouped: {enabled: true, scoring: grouped, matrices: [second, first]}
  same: {}
matrices:
  - {name: first, file: "`+pairsFile(t, "first.akin", "car\tautomobile\t0.9\n")+`"}
  - {name: second, file: "`+pairsFile(t, "second.akin", "car\tlorry\t0.9\n")+`"}
`)
	const search = `{"query":{"match":{"body":"car"}}}`
	for profile, want := range map[string][3]string{
		"on": {"first@", "linear", "automobile"}, "other": {"second@", "linear", "lorry"}, "grouped": {"first@", "grouped", "automobile"},
	} {
		var answer struct{ Clauses []expand.Explanation }
		post(t, s.admin+"/_akin/expand/shop?akin_profile="+profile, search, &answer)
		check.Must(t, len(answer.Clauses) == 1 && len(answer.Clauses[0].Added) == 1, "%s: %+v", profile, answer)
		if got := answer.Clauses[0]; !strings.HasPrefix(got.Matrix, want[0]) || got.Form != want[1] || got.Added[0].Term != want[2] {
			t.Errorf("%s: %+v, want %v", profile, got, want)
		}
	}
	for _, query := range []string{"", "?akin_profile=same", "?akin_profile=unknown"} {
		resp, err := http.Post(s.admin+"/_akin/expand/shop"+query, "application/json", strings.NewReader(search))
		check.OK(t, err)
		resp.Body.Close()
		check.That(t, resp.StatusCode == http.StatusNotFound, "%q: status %d", query, resp.StatusCode)
	}
}
