package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkRemembered prints what searches cost in the mode auto while akin
// learns what their hits hold, beside the mode bm25 and the engine itself: with
// little memory and with much, without the warm-up, and while documents change. Texts of three words come as often as words do in
// a language (Zipf), with a first page of ten hits. AKIN_BENCH_DOCS has the
// numbers of documents, AKIN_BENCH_SHARDS that of the shards. Run it with
// -benchtime 1x.
func BenchmarkRemembered(b *testing.B) {
	e := productionEngine(b, qualityEngine)
	eachSize(b, func(b *testing.B, docs int) { //nolint:thelper // a part of the benchmark
		shards := cmp.Or(os.Getenv("AKIN_BENCH_SHARDS"), "1")
		definition := strings.Replace(formsDefinition, `"number_of_shards":1`, `"number_of_shards":`+shards, 1)
		texts := loadForms(b, e, definition, docs, rememberedTexts)[3]
		file := formsMatrix(b, e, "--language-model", "none", "--dimensions", "100")
		for b.Loop() {
			fmt.Fprintf(os.Stdout, "\n%d documents, %s shards; %d searches a row\n%s", docs, shards, rememberedSearches, rememberedHead)
			for _, size := range []string{"64MiB", "1GiB"} { // for some 40,000 documents, and for all of 600,000
				r := newRememberedRace(b, e, file, size, texts)
				for n := range 5 {
					r.row(b, fmt.Sprintf("caches of %s, searches %d to %d", size, n*rememberedSearches, (n+1)*rememberedSearches))
				}
				if size == "1GiB" && docs <= 200_000 {
					stop := changeDocuments(b, e, docs)
					for range 3 {
						r.row(b, "the same, a fifth of the documents change each minute")
					}
					stop()
				}
			}
		}
	})
}

const (
	rememberedTexts, rememberedSearches, rememberedBatch = 1000, 400, 20

	rememberedHead = "| | ordered by soft | engine's processor time: bm25 | auto | p50: directly | bm25 | auto | p99: bm25 | auto |\n|---|---|---|---|---|---|---|---|---|\n"
)

// A rememberedRace sends the same searches three ways.
type rememberedRace struct {
	engine   *engine
	auto     *akin
	entrants []entrant
	next     func() string
}

func newRememberedRace(b *testing.B, e *engine, file, size string, texts []string) *rememberedRace {
	b.Helper()
	start := func(mode string) *akin {
		return setup(b, e, section{
			"expansion": section{"mode": mode, "effort": "normal", "matching": "auto", "rerank_warm_up": false},
			"matrices":  []section{{"name": "forms", "indices": []string{formsIndex}, "fields": []string{"title", "body"}, "file": file}},
			"caches":    section{"size": size},
		})
	}
	r := &rememberedRace{engine: e, auto: start("auto")}
	r.entrants = []entrant{{name: "directly", at: e.cluster}, {name: "bm25", at: start("bm25").cluster}, {name: "auto", at: r.auto.cluster}}
	zipf := rand.NewZipf(rand.New(rand.NewPCG(56, 3)), 1.1, 1, rememberedTexts-1)
	r.next = func() string { return texts[zipf.Uint64()] }
	return r
}

// row prints what the next searches cost. What akin does after their answers
// counts for the searches of the same batch.
func (r *rememberedRace) row(b *testing.B, name string) {
	b.Helper()
	n := len(r.entrants)
	engine, took := make([]time.Duration, n), make([][]time.Duration, n)
	before := r.auto.metric(b, rerankedMetric, rerankedResult)
	for batch := range rememberedSearches / rememberedBatch {
		texts := make([]string, rememberedBatch)
		for k := range texts {
			texts[k] = r.next()
		}
		for i := range n {
			i = (i + batch) % n // nobody is always behind the same
			used := processorTime(b, r.engine.proc)
			for _, text := range texts {
				t, err := r.entrants[i].search(b.Context(), text, formsBody)
				if err != nil {
					b.Fatalf("%s: %v", r.entrants[i].name, err)
				}
				took[i] = append(took[i], t)
			}
			engine[i] += processorTime(b, r.engine.proc) - used
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	ms := func(i int, q float64) float64 { return quantile(took[i], q) * 1e3 }
	fmt.Fprintf(os.Stdout, "| %s | %.0f %% | %.2f | %.2f | %.2f ms | %.2f ms | %.2f ms | %.1f ms | %.1f ms |\n", name,
		(r.auto.metric(b, rerankedMetric, rerankedResult)-before)/rememberedSearches*100, float64(engine[1])/float64(engine[0]), float64(engine[2])/float64(engine[0]),
		ms(0, .5), ms(1, .5), ms(2, .5), ms(1, .99), ms(2, .99))
}

// changeDocuments writes a fifth of the documents again each minute, until the
// function that it returns is called.
func changeDocuments(b *testing.B, e *engine, docs int) (stop func()) {
	b.Helper()
	const some = 200
	e.must(b, http.MethodPut, "/"+formsIndex+"/_settings", `{"index":{"refresh_interval":"1s"}}`)
	g, rng := newTextGenerator(docs), rand.New(rand.NewPCG(56, 4))
	done, ended := make(chan struct{}), make(chan struct{})
	tick := time.NewTicker(time.Minute / time.Duration(max(docs/5/some, 1)))
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				var batch []document
				for range some {
					body := g.text()
					batch = append(batch, document{strconv.Itoa(rng.IntN(docs)), map[string]any{"title": body[:20], "body": body}})
				}
				e.index(b, formsIndex, batch)
			}
		}
	}()
	return func() {
		tick.Stop()
		close(done)
		<-ended
	}
}
