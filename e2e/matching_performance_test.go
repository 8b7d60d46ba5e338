package e2e

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// matchingTexts is how many texts are searched for, in batches whose processor
	// time is told. Each is searched for matchingTurns times.
	matchingTexts, matchingBatch, matchingTurns = 300, 10, 2
	// matchingWarmups is how many other texts have the engine compile what it runs.
	matchingWarmups = 100
)

// BenchmarkMatching compares what searches cost by default, which finds more
// only where the search itself finds too little, with the same searches sent
// directly, without the engine's cache of queries, and prints ratios of the
// engine's processor time with intervals of 95 %. AKIN_BENCH_ENGINE names
// the engine, AKIN_BENCH_DOCS the numbers of documents. Run it with -benchtime
// 1x.
func BenchmarkMatching(b *testing.B) {
	e := productionEngine(b, cmp.Or(os.Getenv("AKIN_BENCH_ENGINE"), qualityEngine))
	for size := range strings.SplitSeq(cmp.Or(os.Getenv("AKIN_BENCH_DOCS"), formsSizes), ",") {
		docs, err := strconv.Atoi(size)
		if err != nil {
			b.Fatalf("AKIN_BENCH_DOCS: %v", err)
		}
		b.Run(e.name+"/"+size, func(b *testing.B) { compareMatching(b, e, docs) })
	}
}

func compareMatching(b *testing.B, e *engine, docs int) {
	b.Helper()
	const pool = 3 * matchingTexts
	uncached := strings.Replace(formsDefinition, `"number_of_shards":1`, `"number_of_shards":1,"index.queries.cache.enabled":false`, 1)
	texts := loadForms(b, e, uncached, docs, pool)
	a := setup(b, e, section{
		"profiles": section{"low": section{"effort": "low"}, "normal": section{"effort": "normal"}, "soft": section{"mode": "soft", "effort": "normal"}},
		"matrices": []section{{"name": "forms", "indices": []string{formsIndex}, "fields": []string{"title", "body"}, "file": formsMatrix(b, e, "--language-model", "none", "--dimensions", "100")}},
		"caches":   section{"size": "640MiB"},
	})
	entrants := []entrant{
		{name: "directly", at: e.cluster},
		{name: "effort low", profile: "low"},
		{name: "effort normal", profile: "normal"},
		{name: "mode soft", profile: "soft"},
	}
	useProfiles(entrants, a)
	and := func(text string) string {
		return `{"query":{"match":{"body":{"query":` + quote(text) + `,"operator":"and"}}}}`
	}
	fmt.Fprintf(os.Stdout, "\n%s, %d documents in %s segments\n", e.name, docs, segments(b, e))
	for b.Loop() {
		for _, s := range []struct {
			name        string
			words       int
			body        func(string) string
			least, most int // hits of the search itself
		}{
			{"1 word, finds enough", 1, formsBody, 100, math.MaxInt},
			{"3 words, finds enough", 3, formsBody, 100, math.MaxInt},
			{"3 words in two fields, finds enough", 3, twoFieldsBody, 100, math.MaxInt},
			{"8 words, finds enough", 8, formsBody, 100, math.MaxInt},
			{"a realistic search of 3 words, finds enough", 3, realisticBody, 100, math.MaxInt},
			{"3 words, finds too few", 3, formsBody, 0, 99},
			{"all of 3 words, finds enough", 3, and, 10, math.MaxInt},
			{"all of 3 words, finds too few", 3, and, 0, 9},
		} {
			var some []string
			for _, text := range texts[s.words] {
				found := ask[struct {
					Hits struct{ Total struct{ Value int } }
				}](b, e.cluster, http.MethodPost, "/"+formsIndex+"/_search?size=0&track_total_hits=true&request_cache=false", s.body(text)).Hits.Total.Value
				if found >= s.least && found <= s.most {
					some = append(some, text)
				}
			}
			if len(some) < 2*matchingBatch+matchingWarmups {
				fmt.Fprintf(os.Stdout, "\n%s: only %d texts\n", s.name, len(some))
				continue
			}
			fmt.Fprintf(os.Stdout, "\n%s", compareTexts(b, e, a, entrants, some, s.name, s.body))
		}
	}
}

// compareTexts returns a table of what searches for texts cost.
func compareTexts(b *testing.B, e *engine, a *akin, entrants []entrant, texts []string, name string, body func(string) string) string {
	b.Helper()
	measured := texts[matchingWarmups:min(len(texts), matchingWarmups+matchingTexts)]
	engine, took := make([][]float64, len(entrants)), make([][]time.Duration, len(entrants))
	own := make([]time.Duration, len(entrants))
	send := func(i int, text string) time.Duration {
		t, err := entrants[i].search(b.Context(), text, body)
		if err != nil {
			b.Fatalf("%s: %v", entrants[i].name, err)
		}
		return t
	}
	for _, text := range texts[:matchingWarmups] {
		for i := range entrants {
			send(i, text)
		}
	}
	for turn := range matchingTurns {
		for batch := range slices.Chunk(measured, matchingBatch) {
			first := turn + len(took[0])/matchingBatch // nobody is always behind the same
			for i := range entrants {
				i = (i + first) % len(entrants)
				before, ownBefore := processorTime(b, e.proc), processorTime(b, a.proc)
				for _, text := range batch {
					took[i] = append(took[i], send(i, text))
				}
				engine[i] = append(engine[i], (processorTime(b, e.proc)-before).Seconds()*1e3)
				own[i] += processorTime(b, a.proc) - ownBefore
			}
		}
	}
	var t strings.Builder
	fmt.Fprintf(&t, "| %s, %d texts | engine's processor time | ratio, 95 %% | p50 | ratio | akin's processor time |\n|---|---|---|---|---|---|\n", name, len(measured))
	searches := float64(len(took[0]))
	for i, c := range entrants {
		slices.Sort(took[i])
		ratio, either := ratioOf(engine[i], engine[0])
		fmt.Fprintf(&t, "| %s | %.2f ms | %.2f ± %.2f | %.2f ms | %.2f | %.2f ms |\n", c.name, sumOf(engine[i])/searches, ratio, either,
			quantile(took[i], .5)*1e3, quantile(took[i], .5)/quantile(took[0], .5), own[i].Seconds()*1e3/searches)
	}
	return t.String()
}

// ratioOf returns the ratio of two sums over the same batches, and half of its
// interval of 95 %, by the residuals of the batches (Cochran: Sampling
// Techniques, 1977, section 6.3).
func ratioOf(values, base []float64) (ratio, either float64) {
	ratio = sumOf(values) / sumOf(base)
	squares, n := 0.0, float64(len(base))
	for k := range base {
		residual := values[k] - ratio*base[k]
		squares += residual * residual
	}
	return ratio, 1.96 * math.Sqrt(n/(n-1)*squares) / sumOf(base)
}

func sumOf(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}
