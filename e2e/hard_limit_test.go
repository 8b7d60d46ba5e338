package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/akin-search/akin/simmatrix"
)

// TestHardModeFillsTheClauseLimit relates a word to more words than the engines
// take in a query where nothing else is set. What akin writes is about as much
// as they take, also where they add clauses themselves.
func TestHardModeFillsTheClauseLimit(t *testing.T) {
	const limit, neighbors = 1024, 1500
	eachEngine(t, func(t *testing.T, e *engine) {
		const index = "akin-e2e-hard-limit"
		docs := []document{{"car", map[string]any{"body": "car"}}, {"cars", map[string]any{"body": "car boat car"}}}
		row := simmatrix.TermRow{Term: "car", DocFreq: 2}
		rows := []simmatrix.TermRow{{Term: "boat", DocFreq: 1}}
		for i := range neighbors {
			word := fmt.Sprintf("word%04d", i)
			docs = append(docs, document{word, map[string]any{"body": word}})
			row.Neighbors = append(row.Neighbors, simmatrix.Neighbor{Term: word, Similarity: float32(neighbors-i) / neighbors, DocFreq: 1})
			rows = append(rows, simmatrix.TermRow{Term: word, DocFreq: 1})
		}
		rows = append([]simmatrix.TermRow{rows[0], row}, rows[1:]...)
		e.makeHardIndex(t, index, hardSetting{scripted: e.scripts, shards: 1}, "standard", docs)
		dir := newDir(t, "hard")
		files := hardFiles{filepath.Join(dir, "s.akin"), filepath.Join(dir, "w.akin")}
		m, err := simmatrix.New(simmatrix.Meta{Docs: uint64(len(docs))}, rows)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := simmatrix.Encode(&file, m); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files.matrix, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		e.freezeWeights(t, index, files)
		e.storeNorms(t, index, files)
		a := startHardAkin(t, e, files, nil)
		checkHardLimit(t, a, index, limit)
		// Both have filters that the engine adds to each query itself.
		e.must(t, http.MethodPut, "/"+index+"/_mapping", `{"properties":{"n":{"type":"nested","properties":{"x":{"type":"text"}}}}}`)
		e.must(t, http.MethodPost, "/_aliases", `{"actions":[{"add":{"index":"`+index+`","alias":"`+index+`-some","filter":{"bool":{"must_not":[{"term":{"body":"lorry"}},{"term":{"body":"tram"}}]}}}}]}`)
		checkHardLimit(t, a, index+"-some", limit)
	})
}

func checkHardLimit(t *testing.T, a *akin, name string, limit int) {
	t.Helper()
	sent := int(a.metric(t, requestsMetric, rewrittenOutcome))
	for query, rest := range map[string]int{ // clauses that are not added
		`{"match":{"body":"car"}}`:      2,
		`{"match":{"body":"car boat"}}`: 4,
		`{"bool":{"must":[{"match":{"body":"car"}}],"filter":[{"exists":{"field":"body"}}]}}`:                          3,
		`{"bool":{"must":[{"match":{"body":"car"}}],"must_not":[{"term":{"body":"lorry"}},{"term":{"body":"tram"}}]}}`: 4,
	} {
		body := `{"query":` + query + `,"size":2000}`
		hits := shown(t, a.cluster, name, body)
		sent++
		added := 0
		for _, c := range a.explain(t, name, body).Clauses {
			if c.Form == "" {
				continue // a filter
			}
			if added += len(c.Added); c.Form != "hard" || c.Reason != "truncated" {
				t.Errorf("%s: form %q, reason %q", query, c.Form, c.Reason)
			}
		}
		if n := len(hits.Hits.Hits); n != added+2 {
			t.Errorf("%s: %d terms added, %d hits: it was refused", query, added, n)
		}
		t.Logf("%s %s: %d added", name, query, added)
		if added+rest > limit-16 || added+rest < limit-20 {
			t.Errorf("%s: %d terms added, and %d others", query, added, rest)
		}
		if n := int(a.metric(t, requestsMetric, rewrittenOutcome)); n != sent {
			t.Fatalf("%s: %d of %d searches were taken as they were rewritten", query, n, sent)
		}
	}
}
