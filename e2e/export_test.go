package e2e

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/demo"
	"github.com/akin-search/akin/tools/evaluate"
)

// TestExportedSearchesFindWhatTheirArmsFound has the engine render the search
// configurations of akin eval --export, as the Search Relevance Workbench does
// with the Mustache of its cluster, and compares the hits with those that the
// arms got. The workbench itself is not installed.
func TestExportedSearchesFindWhatTheirArmsFound(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		if !e.scripts { // nor templates
			return
		}
		indexDemoTexts(t, e)
		p := openPage(t, "evaluation.md", e)
		writeDemoJudgments(t, p)
		p.run(t, `akin matrix build --cluster `+e.url+` --index docs --field title,body --out docs.akin
akin eval --cluster `+e.url+` --index docs --template search.json --queries queries.jsonl --judgments qrels.tsv \
  --arm direct --arm new=matrix:docs.akin,mode=bm25 --runs runs --export workbench`)
		exported := filepath.Join(p.dir, "workbench")
		var queries evaluate.WorkbenchQuerySet
		check.OK(t, json.Unmarshal([]byte(readFile(t, filepath.Join(exported, "query_set.json"))), &queries))
		check.Equal(t, 10, len(queries.Queries))
		for _, arm := range []string{"direct", "new"} {
			var search evaluate.WorkbenchSearch
			check.OK(t, json.Unmarshal([]byte(readFile(t, filepath.Join(exported, "search_"+arm+".json"))), &search))
			var got strings.Builder
			for k, query := range queries.Queries {
				got.WriteString(exportedRun(t, e, &search, demo.Queries()[k].ID, query, arm))
			}
			if diff := cmp.Diff(readFile(t, filepath.Join(p.dir, "runs", arm+".run")), got.String()); diff != "" {
				t.Errorf("%s (-arm +exported):\n%.2000s", arm, diff)
			}
		}
	})
}

// exportedRun returns the hits of an exported search as lines of a TREC run.
func exportedRun(t *testing.T, e *engine, s *evaluate.WorkbenchSearch, id string, query evaluate.WorkbenchQuery, arm string) string {
	t.Helper()
	sized := strings.ReplaceAll(s.Query, `{"_source":false`, `{"size":100,"_source":false`) // as the experiment's size
	body := check.Got(json.Marshal(map[string]any{"source": sized, "params": query}))(t)
	var answer struct {
		Hits struct {
			Hits []struct {
				ID    string  `json:"_id"`
				Score float64 `json:"_score"`
			}
		}
	}
	status, text, err := e.call(t.Context(), http.MethodPost, "/"+s.Index+"/_search/template", string(body))
	check.Must(t, err == nil && status == http.StatusOK, "%s: %d, %v: %s", body, status, err, text)
	check.OK(t, json.Unmarshal(text, &answer))
	hits := make([]evaluate.Hit, len(answer.Hits.Hits))
	for i, h := range answer.Hits.Hits {
		hits[i] = evaluate.Hit{ID: h.ID, Score: h.Score}
	}
	var run strings.Builder
	check.OK(t, evaluate.WriteRun(&run, arm, 0, []evaluate.Answered{{Query: id, Answers: []evaluate.Answer{{Hits: hits}}}}))
	return run.String()
}
