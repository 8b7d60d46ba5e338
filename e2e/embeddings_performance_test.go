package e2e

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// BenchmarkEmbeddings prints what searches cost whose first hits a language model
// orders, beside those of the mode bm25 and direct ones: the processor time of
// the engine and of akin, and how long they take. The model is a stand-in that
// answers at once, or the server at AKIN_E2E_EMBEDDINGS. All documents that are
// found have their vectors. AKIN_BENCH_DOCS has the numbers of documents. Run it
// with -benchtime 1x.
func BenchmarkEmbeddings(b *testing.B) {
	e := productionEngine(b, qualityEngine)
	eachSize(b, func(b *testing.B, docs int) {
		b.Helper()
		texts := loadForms(b, e, formsDefinition, docs, embeddingsTexts)[3]
		file := formsMatrix(b, e, "--language-model", "none", "--dimensions", "100")
		url := os.Getenv("AKIN_E2E_EMBEDDINGS")
		if url == "" {
			url = startTextModel(b).url
		}
		start := func(rerank string) *akin {
			return setup(b, e, section{
				"expansion":  section{"mode": "bm25", "effort": "normal", "rerank": rerank, "rerank_warm_up": false},
				"embeddings": section{"url": url, "model": "spelling", "fields": []string{"title", "body"}, "budget": "1s", "size": "1GiB"},
				"matrices":   []section{{"name": "forms", "indices": []string{formsIndex}, "fields": []string{"title", "body"}, "file": file}},
			})
		}
		plain, byModel := start("none"), start("embeddings")
		akins := []*akin{nil, plain, byModel}
		entrants := []entrant{{name: "directly", at: e.cluster}, {name: "bm25", at: plain.cluster}, {name: "embeddings", at: byModel.cluster}}
		for b.Loop() {
			waitFor(b, 10*time.Minute, "the vectors of what is found", func() error {
				lacking := byModel.counted(b, func() { raceEmbeddings(b, e, akins, entrants, texts) }, "akin_cache_misses_total", `cache="embeddings"`)
				if lacking > 0 {
					time.Sleep(time.Second)
					return errors.New("not all of them")
				}
				return nil
			})
			for range matchingTurns { // for the engine to compile what it runs
				raceEmbeddings(b, e, akins, entrants, texts)
			}
			fmt.Fprintf(os.Stdout, "\n%d documents\n| | engine's processor time | over direct | akin's processor time | p50 | p95 |\n|---|---|---|---|---|---|\n", docs)
			n := float64(len(texts))
			rows := raceEmbeddings(b, e, akins, entrants, texts)
			for i, r := range rows {
				ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 / n }
				fmt.Fprintf(os.Stdout, "| %s | %.2f ms | %.2f | %.2f ms | %.2f ms | %.2f ms |\n", entrants[i].name, ms(r.engine), float64(r.engine)/float64(rows[0].engine),
					ms(r.akin), quantile(r.took, .5)*1e3, quantile(r.took, .95)*1e3)
			}
		}
	})
}

// embeddingsTexts is how many texts are searched for.
const embeddingsTexts = 200

// An embeddingsRow is what the searches of an entrant took.
type embeddingsRow struct {
	engine, akin time.Duration
	took         []time.Duration // sorted
}

// raceEmbeddings sends each text through each entrant, in batches in turn.
func raceEmbeddings(b *testing.B, e *engine, akins []*akin, entrants []entrant, texts []string) []embeddingsRow {
	b.Helper()
	rows := make([]embeddingsRow, len(entrants))
	turn := 0
	for batch := range slices.Chunk(texts, rememberedBatch) {
		turn++
		for i := range entrants {
			i = (i + turn) % len(entrants) // nobody is always behind the same
			r := &rows[i]
			own := time.Duration(0)
			if akins[i] != nil {
				own = processorTime(b, akins[i].proc)
			}
			used := processorTime(b, e.proc)
			for _, text := range batch {
				took, err := entrants[i].search(b.Context(), text, formsBody)
				if err != nil {
					b.Fatalf("%s: %v", entrants[i].name, err)
				}
				r.took = append(r.took, took)
			}
			r.engine += processorTime(b, e.proc) - used
			if akins[i] != nil {
				r.akin += processorTime(b, akins[i].proc) - own
			}
		}
	}
	for i := range rows {
		slices.Sort(rows[i].took)
	}
	return rows
}
