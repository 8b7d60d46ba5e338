package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/akin-search/akin/evaluate/measure"
)

// learnedFolds is how many parts the queries are cut into. Each is held out in
// turn; AKIN_E2E_LEARN=1 has all of them, of three collections, and clicks.
const learnedFolds = 5

// TestLearnedMatricesRankQueriesThatWereNotLearnedFrom learns from four fifths of
// the judged queries, or from clicks of simulated users on what they found with S
// as it was, and ranks the others.
func TestLearnedMatricesRankQueriesThatWereNotLearnedFrom(t *testing.T) {
	t.Parallel()
	all := os.Getenv("AKIN_E2E_LEARN") != ""
	names, folds := []string{"cran"}, 1
	if all {
		names, folds = []string{"cran", "npl", "scifact_train"}, learnedFolds
	}
	if chosen := os.Getenv("AKIN_E2E_COLLECTIONS"); chosen != "" && all {
		names = strings.Split(chosen, ",")
	}
	var collections []*collection
	for _, name := range names {
		collections = append(collections, loadCollection(t, name))
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		if e.name != qualityEngine {
			return
		}
		for _, c := range collections {
			t.Run(c.name, func(t *testing.T) { e.learnFromQueries(t, c, folds, all) })
		}
	})
}

func (e *engine) learnFromQueries(t *testing.T, c *collection, folds int, all bool) {
	t.Helper()
	index := "akin-e2e-learn-" + strings.ReplaceAll(c.name, "_", "-")
	e.makeIndex(t, index, judgedIndex)
	e.index(t, index, withIDs(c.docs))
	dir := newDir(t, "learned")
	plain := filepath.Join(dir, "plain.akin")
	mustAkin(t, "matrix", "build", "--from-index", e.url, "--index", index, "--field", "body", "--out", plain)
	learn := func(name string, args ...string) string {
		file := filepath.Join(dir, name+".akin")
		r := runAkin(t, append([]string{"matrix", "learn", plain, "--cluster", e.url, "--index", index, "--field", "body", "--out", file}, args...)...)
		if r.status != 0 {
			t.Fatal(r.stderr)
		}
		lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
		t.Log(name, lines[len(lines)-1])
		return file
	}
	before := e.serveMatrices(t, index, map[string]string{"plain": plain})
	files, sources := map[string]string{"plain": plain}, []string{"judgments"}
	for fold := range folds {
		queries, judgments := filepath.Join(dir, "queries.jsonl"), filepath.Join(dir, "qrels.tsv")
		writeFold(t, c, fold, queries, judgments)
		files[fmt.Sprint("judgments", fold)] = learn(fmt.Sprint("judgments", fold), "--queries", queries, "--judgments", judgments)
		if all {
			log := filepath.Join(dir, "clicks.jsonl")
			simulateClicks(t, before, index, c, fold, log)
			files[fmt.Sprint("clicks", fold)] = learn(fmt.Sprint("clicks", fold), "--clicks", log, "--bias", "1")
		}
	}
	if all {
		sources = append(sources, "clicks")
	}
	a := e.serveMatrices(t, index, files)
	for _, source := range sources {
		var base, learned, worst float64
		for fold := range folds {
			was := foldNDCG(t, a, index, "plain", c, fold)
			is := foldNDCG(t, a, index, fmt.Sprint(source, fold), c, fold)
			t.Logf("%s, fold %d: nDCG@10 %.4f, with S as it was %.4f (%+.1f %%)", source, fold, is, was, 100*(is/was-1))
			base, learned, worst = base+was, learned+is, min(worst, is/was-1)
		}
		gain := learned/base - 1
		t.Logf("%s, %s: mean %+.1f %%, worst fold %+.1f %%", c.name, source, 100*gain, 100*worst)
		if source == "judgments" && (all && gain < 0.015 || worst < -0.01) {
			t.Errorf("%s, %s: mean %+.1f %%, worst fold %+.1f %%", c.name, source, 100*gain, 100*worst)
		}
	}
}

// serveMatrices starts akin with a profile for each matrix file.
func (e *engine) serveMatrices(t *testing.T, index string, files map[string]string) *akin {
	t.Helper()
	profiles := section{}
	var matrices []section
	for name, file := range files {
		profiles[name] = section{"matrices": []string{name}}
		matrices = append(matrices, section{"name": name, "file": file, "indices": []string{index}, "fields": []string{"body"}})
	}
	a := startAkin(t, section{
		"cluster": section{"urls": []string{e.url}}, "expansion": section{"budget": "10s"},
		"profiles": profiles, "matrices": matrices,
	})
	for name := range files {
		a.awaitMatrix(t, name)
	}
	return a
}

// foldNDCG returns the mean nDCG@10 of the queries of a fold.
func foldNDCG(t *testing.T, a *akin, index, profile string, c *collection, fold int) (mean float64) {
	t.Helper()
	n := 0.0
	for i, q := range c.queries {
		if i%learnedFolds == fold {
			n++
			mean += measure.NDCG(found(t, a, index, profile, q.text), q.grades, 10)
		}
	}
	return mean / n
}

// found returns the first ten documents.
func found(t *testing.T, a *akin, index, profile, text string) []string {
	t.Helper()
	hits, err := a.search(t.Context(), "/"+index+"/_search?akin_profile="+profile, pageBody(text, 0, 10))
	if err != nil {
		t.Fatal(err)
	}
	return hits.ids()
}

// writeFold writes the queries and judgments that are not of the fold.
func writeFold(t *testing.T, c *collection, fold int, queries, judgments string) {
	t.Helper()
	var texts, grades strings.Builder
	grades.WriteString("query-id\tcorpus-id\tscore\n")
	for i, q := range c.queries {
		if i%learnedFolds == fold {
			continue
		}
		line, err := json.Marshal(map[string]string{"_id": q.id, "text": q.text})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&texts, "%s\n", line)
		for id, grade := range q.grades {
			fmt.Fprintf(&grades, "%s\t%s\t%d\n", q.id, id, grade)
		}
	}
	for path, text := range map[string]string{queries: texts.String(), judgments: grades.String()} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// simulateClicks writes a log of 30 users for each query that is not of the fold.
// They look at rank k with the probability 1/k, and click nine of ten relevant
// documents that they look at and one of ten others.
func simulateClicks(t *testing.T, a *akin, index string, c *collection, fold int, path string) {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(fold), 7))
	var log strings.Builder
	for i, q := range c.queries {
		if i%learnedFolds == fold {
			continue
		}
		shown := found(t, a, index, "plain", q.text)
		if len(shown) == 0 {
			continue
		}
		for range 30 {
			clicked := []string{}
			for rank, id := range shown {
				likes := 0.1
				if q.grades[id] > 0 {
					likes = 0.9
				}
				if random.Float64() < likes/float64(rank+1) {
					clicked = append(clicked, id)
				}
			}
			line, err := json.Marshal(map[string]any{"query_id": q.id, "query": q.text, "shown": shown, "clicked": clicked})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&log, "%s\n", line)
		}
	}
	if err := os.WriteFile(path, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
