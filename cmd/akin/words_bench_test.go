package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// strengthsTried are the strengths λ of the saturated form among which the
// benchmark chooses.
var strengthsTried = []float64{0.15, 0.25, 0.35, 0.45}

// BenchmarkRelatedWords measures what related words gain on judged collections,
// without a server: exact BM25 of the embedded engine, English analysis, 30
// terms in the saturated form over all documents. It does so for a matrix of
// the documents alone, for one with the built-in words and, with a model of
// embeddings, for one with that; for the queries as they are and for their three
// rarest terms. `make bench-words` runs it; AKIN_DATA names the folder of the
// collections, AKIN_WORDS_EMBEDDINGS the URL of all-MiniLM-L6-v2. It prints the
// gains in MAP and nDCG@10 over BM25, in percent, and which strength is chosen
// for a collection by the four others.
func BenchmarkRelatedWords(b *testing.B) {
	data, model := os.Getenv("AKIN_DATA"), os.Getenv("AKIN_WORDS_EMBEDDINGS")
	if data == "" {
		b.Fatal("AKIN_DATA names no folder of judged collections")
	}
	names := []string{"med", "cran", "cisi", "npl", "scifact_train"}
	matrices := []string{"documents", "words"}
	if model != "" {
		matrices = append(matrices, "mixed")
	}
	for b.Loop() {
		gains := map[string]map[float64][][4]float64{} // by matrix and strength, of each collection: MAP and nDCG of full, of short queries
		for _, m := range matrices {
			gains[m] = map[float64][][4]float64{}
		}
		for _, name := range names {
			c := readJudgedWords(b, filepath.Join(data, name))
			direct := [][2]float64{c.measure(b, c.full, nil, nil), c.measure(b, c.short, nil, nil)}
			for _, m := range matrices {
				s := c.learn(b, m, model)
				for _, strength := range strengthsTried {
					how := configs.Default().Expansion.Profile
					how.Effort, how.Scoring, how.NoRescore = form.High, form.Saturated, true
					how.Matching = expand.Widen
					how.Strength = strength / form.LambdaOf(1).Saturated
					var gain [4]float64
					for k, queries := range [][]string{c.full, c.short} {
						with := c.measure(b, queries, &how, s)
						gain[2*k], gain[2*k+1] = 100*(with[0]/direct[k][0]-1), 100*(with[1]/direct[k][1]-1)
					}
					gains[m][strength] = append(gains[m][strength], gain)
					b.Logf("%-14s %-10s λ %.2f  full %5.1f / %4.1f  short %5.1f / %4.1f", name, m, strength, gain[0], gain[1], gain[2], gain[3])
				}
			}
		}
		for _, m := range matrices {
			for _, strength := range strengthsTried {
				b.Logf("mean of five   %-10s λ %.2f  %s", m, strength, shownGains(gains[m][strength]))
			}
			var chosen [][4]float64
			var which []string
			for left := range names {
				best := slices.MaxFunc(strengthsTried, func(x, y float64) int {
					return cmp.Compare(worth(gains[m][x], left), worth(gains[m][y], left))
				})
				chosen, which = append(chosen, gains[m][best][left]), append(which, fmt.Sprintf("%s %.2f", names[left], best))
			}
			b.Logf("left out each  %-10s %s (%s)", m, shownGains(chosen), strings.Join(which, ", "))
		}
	}
}

// worth is what a strength is chosen by: the gains in nDCG@10 of all collections
// but one, a full query's counting as much as a short one's.
func worth(gains [][4]float64, without int) (sum float64) {
	for i, g := range gains {
		if i != without {
			sum += g[1] + g[3]
		}
	}
	return sum
}

func shownGains(gains [][4]float64) string {
	var mean [4]float64
	for _, g := range gains {
		for k := range g {
			mean[k] += g[k] / float64(len(gains))
		}
	}
	return fmt.Sprintf("full %5.2f / %4.2f  short %5.2f / %4.2f", mean[0], mean[1], mean[2], mean[3])
}

// judgedWords is a collection in an embedded engine.
type judgedWords struct {
	url         string
	client      *esclient.Client
	full, short []string
	grades      []map[string]float64
}

func readJudgedWords(b *testing.B, folder string) *judgedWords {
	b.Helper()
	c := &judgedWords{}
	corpus, err := os.Open(filepath.Join(folder, "corpus.jsonl"))
	check.OK(b, err)
	defer corpus.Close()
	var docs []documents.Document
	for lines := json.NewDecoder(bufio.NewReader(corpus)); lines.More(); {
		var doc struct {
			ID          string `json:"_id"`
			Title, Text string
		}
		check.OK(b, lines.Decode(&doc))
		docs = append(docs, documents.Document{ID: doc.ID, Source: map[string]string{"body": doc.Title + "\n" + doc.Text}})
	}
	c.url = newIndex(b, loadedIndex, demoMapping, docs)
	c.client, err = esclient.New(esclient.Options{URL: c.url})
	check.OK(b, err)
	b.Cleanup(c.client.Close)
	queries, err := os.Open(filepath.Join(folder, "queries.jsonl"))
	check.OK(b, err)
	defer queries.Close()
	judgments, err := os.Open(filepath.Join(folder, "qrels.tsv"))
	check.OK(b, err)
	defer judgments.Close()
	set, err := evaluate.ReadJudged(&evaluate.JudgedFile{Name: "queries", Content: queries}, &evaluate.JudgedFile{Name: "judgments", Content: judgments})
	check.OK(b, err)
	for _, q := range set.Judged() {
		c.full, c.grades = append(c.full, q.Text), append(c.grades, set.Grades[q.ID])
		c.short = append(c.short, c.threeRarest(b, q.Text))
	}
	return c
}

// threeRarest returns those of a text's terms that are in the fewest documents.
func (c *judgedWords) threeRarest(b *testing.B, text string) string {
	b.Helper()
	at := esclient.Indices{Expression: loadedIndex}
	cluster := esclient.NewCached(c.client, esclient.CacheOptions{AnalysisBytes: 1 << 20, StatisticsBytes: 1 << 20})
	defer cluster.Close()
	analysis, err := cluster.Analyze(b.Context(), at, "body", "", text)
	check.OK(b, err)
	docFreqs := make([]int64, len(analysis.Terms))
	_, err = cluster.Statistics(b.Context(), at, "body", analysis.Terms, docFreqs)
	check.OK(b, err)
	var order []int
	for k, term := range analysis.Terms {
		if docFreqs[k] > 0 && slices.Index(analysis.Terms, term) == k {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(docFreqs[i], docFreqs[j]), cmp.Compare(analysis.Terms[i], analysis.Terms[j]))
	})
	var words []string
	for _, k := range order[:min(3, len(order))] {
		words = append(words, cmp.Or(analysis.Written[k], analysis.Terms[k]))
	}
	return strings.Join(words, " ")
}

// learn returns the matrix that the documents teach, with what is mixed in.
func (c *judgedWords) learn(b *testing.B, mixed, model string) *simmatrix.Matrix {
	b.Helper()
	out := filepath.Join(b.TempDir(), "s.akin")
	args := []string{"matrix", "build", "--cluster", c.url, "--index", loadedIndex, "--field", "body", "--out", out}
	switch mixed {
	case "documents":
		args = append(args, "--language-model", "none")
	case "mixed":
		args = append(args, "--embeddings", model, "--embedding-model", "all-MiniLM-L6-v2")
	}
	mustAkin(b, args...)
	m, err := cli.ReadMatrix(b.Context(), out)
	check.OK(b, err)
	return m
}

// measure returns the means of MAP and nDCG@10 of queries, expanded unless how
// is nil.
func (c *judgedWords) measure(b *testing.B, queries []string, how *expand.Profile, m *simmatrix.Matrix) (means [2]float64) {
	b.Helper()
	arm := directArm(c.client, loadedIndex)
	if how != nil {
		with, end, err := candidateArm(b.Context(), armOptions{Cluster: cli.Cluster{URL: c.url, Index: loadedIndex}, InProcess: true, Log: io.Discard}, *how, m)
		defer end()
		check.OK(b, err)
		arm = with
	}
	bodies := make([][]byte, len(queries))
	for i, q := range queries {
		text, _ := json.Marshal(q)
		bodies[i] = fmt.Appendf(nil, `{"size":1000,"_source":false,"query":{"match":{"body":%s}}}`, text)
	}
	rankings, err := rank(context.Background(), arm, bodies)
	check.OK(b, err)
	for i, hits := range rankings {
		var ids []string
		for _, h := range evaluate.Ranking(hits.Hits) {
			ids = append(ids, h.ID)
		}
		means[0] += evaluate.AveragePrecision(ids, c.grades[i]) / float64(len(queries))
		means[1] += evaluate.NDCG(ids, c.grades[i], measured) / float64(len(queries))
	}
	return means
}
