package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const (
	evalIndex      = "akin-e2e-eval"
	evalDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{
		"body":{"type":"text"},"number":{"type":"integer"}}}}`
	evalMeasures = "nDCG@10,nDCG@3,MAP,MRR,P@5,P@30,recall@20"
)

// makeJudged makes an index of documents that often have equal scores, and
// returns files of queries and of judgments: of some documents, also of ones
// that no query finds, with grades from -1 to 3.
func makeJudged(t *testing.T, e *engine) (queries, judgments string) {
	t.Helper()
	e.makeIndex(t, evalIndex, evalDefinition)
	random := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("alpha beta gamma delta epsilon zeta eta theta iota kappa lambda my")
	var ids []string
	var bulk, topics, qrels strings.Builder
	for i := range 400 {
		id := []string{"%d", "doc-%d", "Ä%d", "d.%03d"}[random.IntN(4)]
		ids = append(ids, fmt.Sprintf(id, i))
		var text []string
		for range 2 + random.IntN(4) {
			text = append(text, words[random.IntN(len(words))])
		}
		fmt.Fprintf(&bulk, "{\"index\":{\"_id\":%q}}\n{\"body\":%q,\"number\":%d}\n", ids[i], strings.Join(text, " "), random.IntN(1000))
	}
	e.must(t, http.MethodPost, "/"+evalIndex+"/_bulk?refresh=true", bulk.String())
	for q := range 40 {
		text := words[random.IntN(len(words))] + " " + words[random.IntN(len(words))]
		if q == 7 {
			text = "nothing"
		}
		fmt.Fprintf(&topics, "%d\t%s\n", q, text)
		for _, d := range random.Perm(len(ids))[:120] {
			fmt.Fprintf(&qrels, "%d 0 %s %d\n", q, ids[d], random.IntN(5)-1)
		}
	}
	return writeFile(t, "topics", topics.String()), writeFile(t, "qrels", qrels.String())
}

// TestMeasuresAreThoseOfTrecEval compares them, query by query, with those that
// ir_measures computes by trec_eval from the run files.
func TestMeasuresAreThoseOfTrecEval(t *testing.T) {
	long(t)
	python, err := pythonWith("testdata/ir_measures_requirements.txt")
	if err != nil {
		skipOrFail(t, "needs python3 3.10 to 3.13 with venv, and ir_measures from its package index: %v", err)
	}
	e := oneEngine(t)
	queries, judgments := makeJudged(t, e)
	for name, template := range map[string]string{
		"by score":     `{"size": 50, "query": {"match": {"body": "{{query}}"}}}`,
		"all equal":    `{"size": 50, "query": {"constant_score": {"filter": {"match": {"body": "{{query}}"}}}}}`,
		"by a field":   `{"query": {"match": {"body": "{{query}}"}}, "sort": ["number", "_doc"], "size": 60}`,
		"tiny scores":  `{"size": 50, "query": {"match": {"body": {"query": "{{query}}", "boost": 1e-9}}}}`,
		"large scores": `{"size": 50, "query": {"function_score": {"query": {"match": {"body": "{{query}}"}}, "weight": 16777217, "boost_mode": "sum"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			runs := newDir(t, "runs")
			var result struct {
				Queries []struct {
					ID   string
					Arms []struct{ Measures map[string]float64 }
				}
			}
			printed := mustAkin(t, "eval", "--cluster", e.url, "--index", evalIndex, "--queries", queries, "--judgments", judgments,
				"--template", writeFile(t, "template.json", template), "--measures", evalMeasures, "--runs", runs, "--json")
			if err := json.Unmarshal([]byte(printed), &result); err != nil {
				t.Fatal(err)
			}
			got := map[string]map[string]float64{}
			for _, q := range result.Queries {
				got[q.ID] = q.Arms[0].Measures
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, python, "testdata/ir_measures_check.py", filepath.Join(runs, "qrels.txt"), filepath.Join(runs, "direct.run"))
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, &stderr)
			}
			var want map[string]map[string]float64
			if err := json.Unmarshal(stdout.Bytes(), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-6)); diff != "" || len(got) != 40 {
				t.Errorf("%d queries (-ir_measures +akin)\n%s", len(got), diff)
			}
		})
	}
}
