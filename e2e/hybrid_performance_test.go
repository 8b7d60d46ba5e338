package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"testing"
)

const (
	// hybridDocs is how many documents hybrid searches are measured on, unless
	// AKIN_BENCH_DOCS says otherwise, and hybridDimensions how long their vectors
	// are: as those of small language models.
	hybridDocs, hybridDimensions = "20000", 384
)

// BenchmarkHybrid compares what hybrid searches cost with akin and sent
// directly, and searches for words and vectors in one sum, and prints tables. It
// does everything once: run it with -benchtime 1x.
func BenchmarkHybrid(b *testing.B) {
	docs, err := strconv.Atoi(cmp.Or(os.Getenv("AKIN_BENCH_DOCS"), hybridDocs))
	if err != nil {
		b.Fatalf("AKIN_BENCH_DOCS: %v", err)
	}
	e := productionEngine(b, qualityEngine)
	e.must(b, http.MethodPut, "/_search/pipeline/"+hybridPipeline, hybridHalf)
	e.makeIndex(b, formsIndex, fmt.Sprintf(`{"settings":{"number_of_shards":1,"number_of_replicas":0,"refresh_interval":"-1","index.knn":true},"mappings":{"properties":{
		"body":{"type":"text","analyzer":"english"},
		"v":{"type":"knn_vector","dimension":%d,"method":{"name":"hnsw","engine":"lucene","space_type":"cosinesimil"}}}}}`, hybridDimensions))
	random, g := rand.New(rand.NewPCG(3, 4)), newTextGenerator(docs)
	vector := func() []float32 {
		v := make([]float32, hybridDimensions)
		for k := range v {
			v[k] = float32(random.NormFloat64())
		}
		return v
	}
	var batch []document
	for n := range docs {
		batch = append(batch, document{strconv.Itoa(n), section{"body": g.text(), "v": vector()}})
		if len(batch) == 1000 || n == docs-1 {
			e.index(b, formsIndex, batch)
			batch = batch[:0]
		}
	}
	settle(b, e)
	a := setupWide(b, e, section{"profiles": section{"akin": section{}}, "matrices": matrices("forms", formsMatrix(b, e))})
	entrants := []entrant{
		{name: "directly", at: e.cluster},
		{name: "through akin, switched off", at: a.cluster, parameters: "&akin=off"},
		{name: "with akin", profile: "akin", form: "saturated", phase: "query"},
	}
	useProfiles(entrants, a)
	for b.Loop() {
		fmt.Fprintf(os.Stdout, "\n%d documents in %s segments\n", docs, segments(b, e))
		for _, words := range []int{3, 8} {
			texts := g.queries(b, formsQueries, words)
			vectors := map[string]string{}
			for _, text := range texts {
				vectors[text] = toJSON(b, vector())
			}
			for _, shape := range []struct{ name, body string }{
				{"hybrid", `{"query":{"hybrid":{"queries":[{"match":{"body":%s}},{"knn":{"v":{"vector":%s,"k":100}}}]}},"search_pipeline":"` + hybridPipeline + `"}`},
				{"`bool.should` of both", `{"query":{"bool":{"should":[{"match":{"body":%s}},{"knn":{"v":{"vector":%s,"k":100}}}]}}}`},
			} {
				body := func(text string) string { return fmt.Sprintf(shape.body, quote(text), vectors[text]) }
				fmt.Fprintf(os.Stdout, "\n%s", formsTable(fmt.Sprintf("%s, %d words", shape.name, words), entrants,
					addedTerms(b, a, entrants, texts, body), race(b, e, a, entrants, texts, formsTurns(docs), body)))
			}
		}
	}
}
