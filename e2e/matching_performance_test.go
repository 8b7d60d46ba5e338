package e2e

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
)

const (
	// matchingTexts is how many texts are searched for, in batches whose processor
	// time is told.
	matchingTexts, matchingBatch = 300, 10
	// matchingWarmups is how many other texts have the engine compile what it runs,
	// in so many turns.
	matchingWarmups, matchingTurns = 100, 5
)

// A costComparison is of searches that go different ways: the first entrant sends
// them directly, the others through an akin with profiles that start starts.
// Where an entrant has bodies, these become what effort high writes. model, if
// set, makes the vectors that order hits.
type costComparison struct {
	start    func(tb testing.TB, e *engine, config section, env ...string) *akin
	profiles section
	model    string
	entrants []entrant
	kinds    []searchKind
}

// A searchKind is how an application searches for a text of so many words, which
// has between least and most hits by itself.
type searchKind struct {
	name        string
	words       int
	body        func(text string) string
	least, most int
}

// allWordsBody is a search for documents with all words of a text.
func allWordsBody(text string) string {
	return `{"query":{"match":{"body":{"query":` + quote(text) + `,"operator":"and"}}}}`
}

// BenchmarkMatching compares what searches cost by default, which finds more
// only where the search itself finds too little, with the same searches sent
// directly, as [costComparison.run] does. The language model of those that it
// orders is a stand-in that answers at once, or that at AKIN_E2E_EMBEDDINGS. Run
// it with -benchtime 1x.
func BenchmarkMatching(b *testing.B) {
	model := os.Getenv("AKIN_E2E_EMBEDDINGS")
	if model == "" {
		model = startTextModel(b).url
	}
	operators := func(text string) string {
		words := strings.Fields(text)
		return `{"query":{"query_string":{"default_field":"body","query":` + quote(words[0]+" AND ("+words[1]+" OR "+words[2]+")") + `}}}`
	}
	costComparison{
		start: setup,
		model: model,
		profiles: section{
			"low": section{"effort": "low"}, "normal": section{"effort": "normal"}, "high": section{"effort": "high"},
			"soft":       section{"mode": "soft", "effort": "normal"},
			"embeddings": section{"mode": "auto", "effort": "normal", "rerank": "embeddings"},
		},
		entrants: []entrant{
			{name: "directly"},
			{name: "effort low", profile: "low"},
			{name: "effort normal", profile: "normal"},
			{name: "effort high", profile: "high"},
			{name: "mode soft", profile: "soft"},
			{name: "embeddings", profile: "embeddings"},
		},
		kinds: []searchKind{
			{"1 word, finds enough", 1, formsBody, 100, math.MaxInt},
			{"3 words, finds enough", 3, formsBody, 100, math.MaxInt},
			{"3 words in two fields, finds enough", 3, twoFieldsBody, 100, math.MaxInt},
			{"8 words, finds enough", 8, formsBody, 100, math.MaxInt},
			{"a realistic search of 3 words, finds enough", 3, realisticBody, 100, math.MaxInt},
			{"3 words, finds too few", 3, formsBody, 0, 99},
			{"all of 3 words, finds enough", 3, allWordsBody, 10, math.MaxInt},
			{"all of 3 words, finds too few", 3, allWordsBody, 0, 9},
			{"3 words with operators, finds enough", 3, operators, 100, math.MaxInt},
			{"3 words with operators, finds too few", 3, operators, 0, 99},
		},
	}.run(b)
}

// BenchmarkForms compares what searches cost in each form and phase, with
// feedback, in the mode soft and with each effort, where related words always
// find, with the same searches sent directly, as [costComparison.run] does. Run it
// with -benchtime 1x.
func BenchmarkForms(b *testing.B) {
	costComparison{
		start: setupWide,
		profiles: section{
			"low":       section{"effort": "low"},
			"normal":    section{"effort": "normal"},
			"high":      section{"effort": "high"},
			"linear":    section{"effort": "high", "scoring": "linear"},
			"grouped":   section{"effort": "high", "scoring": "grouped"},
			"saturated": section{"effort": "high", "scoring": "saturated", "phase": "query"},
			"same":      section{"effort": "high", "matching": "same"},
			"feedback":  section{"effort": "high", "feedback": section{"documents": 5}},
			"soft":      section{"effort": "high", "mode": "soft"},
			"softer":    section{"effort": "normal", "mode": "soft"},
		},
		entrants: []entrant{
			{name: "directly"},
			{name: "through akin, switched off", parameters: "&akin=off"},
			{name: "effort low", profile: "low", form: "linear", phase: "query"},
			{name: "effort normal", profile: "normal", form: "saturated", phase: "rescore"},
			{name: "effort high", profile: "high", form: "saturated", phase: "rescore"},
			{name: "linear, 30 terms", profile: "linear", form: "linear", phase: "query"},
			{name: "grouped, 30 terms", profile: "grouped", form: "grouped", phase: "query"},
			{name: "saturated, phase query", profile: "saturated", form: "saturated", phase: "query"},
			{name: "effort high, `matching: same`", profile: "same", form: "saturated", phase: "rescore"},
			{name: "effort high, feedback", profile: "feedback", form: "saturated", phase: "rescore"},
			{name: "mode soft, effort high", profile: "soft", form: "linear", phase: "rerank"},
			{name: "mode soft, effort normal", profile: "softer", form: "linear", phase: "rerank"},
			{name: "what effort high writes, sent directly", bodies: map[string]string{}},
		},
		kinds: []searchKind{{"3 words", 3, formsBody, 0, math.MaxInt}, {"all of 3 words", 3, allWordsBody, 0, math.MaxInt}},
	}.run(b)
}

// run prints ratios of the engine's processor time, without its cache of
// queries, with intervals of 95 %: of texts that akin meets for the first time,
// and of the same texts once more. AKIN_BENCH_ENGINE names the engine,
// AKIN_BENCH_DOCS the numbers of documents, AKIN_BENCH_SEGMENTS to how many
// segments they are merged. With several numbers of documents it also prints how
// the processor time grows with them.
func (c costComparison) run(b *testing.B) {
	b.Helper()
	e := productionEngine(b, cmp.Or(os.Getenv("AKIN_BENCH_ENGINE"), qualityEngine))
	growth := map[string]*matchingGrowth{}
	eachSize(b, func(b *testing.B, docs int) {
		b.Helper()
		c.atSize(b, e, docs, func(name string, engine []float64) {
			if growth[name] == nil {
				growth[name] = &matchingGrowth{entrants: c.entrants, engine: make([][]float64, len(c.entrants))}
			}
			growth[name].add(docs, engine)
		})
	})
	for _, kind := range c.kinds {
		if g := growth[kind.name]; g != nil && len(g.docs) > 1 {
			fmt.Fprintf(os.Stdout, "\n%s", g.table(kind.name))
		}
	}
}

// A matchingGrowth is the engine's processor time of a search, in ms, by entrant
// and number of documents.
type matchingGrowth struct {
	entrants []entrant
	docs     []float64 // in millions
	engine   [][]float64
}

func (g *matchingGrowth) add(docs int, engine []float64) {
	g.docs = append(g.docs, float64(docs)/1e6)
	for i, ms := range engine {
		g.engine[i] = append(g.engine[i], ms)
	}
}

// table returns the line of least squares of each entrant: a fixed part and what
// a million documents add, of which the last column is that of the first entrant.
func (g *matchingGrowth) table(name string) string {
	var t strings.Builder
	fmt.Fprintf(&t, "| %s | fixed | a million documents | over the first |\n|---|---|---|---|\n", name)
	_, first := stat.LinearRegression(g.docs, g.engine[0], nil, false)
	for i, entrant := range g.entrants {
		fixed, slope := stat.LinearRegression(g.docs, g.engine[i], nil, false)
		fmt.Fprintf(&t, "| %s | %.2f ms | %.2f ms | %.2f |\n", entrant.name, fixed, slope, slope/first)
	}
	return t.String()
}

// atSize prints a table for each kind of search, and passes the means of the
// engine's processor time of known texts to tell.
func (c costComparison) atSize(b *testing.B, e *engine, docs int, tell func(name string, engine []float64)) {
	b.Helper()
	const pool = 1900 // of which some of three words have ten hits with all of them
	uncached := strings.Replace(formsDefinition, `"number_of_shards":1`, `"number_of_shards":1,"index.queries.cache.enabled":false`, 1)
	texts := loadForms(b, e, uncached, docs, pool)
	if most := os.Getenv("AKIN_BENCH_SEGMENTS"); most != "" {
		_, _, _ = e.call(b.Context(), http.MethodPost, "/"+formsIndex+"/_forcemerge?max_num_segments="+most, "") // it may go on for longer than a call
		settle(b, e)
	}
	config := section{
		"profiles": c.profiles,
		"matrices": []section{{"name": "forms", "indices": []string{formsIndex}, "fields": []string{"title", "body"}, "file": formsMatrix(b, e, "--language-model", "none", "--dimensions", "100")}},
		"caches":   section{"size": "640MiB"},
	}
	if c.model != "" {
		config["embeddings"] = section{"url": c.model, "model": "spelling", "fields": []string{"title", "body"}, "budget": "1s", "size": "1GiB"}
	}
	a := c.start(b, e, config)
	if c.model != "" {
		a.awaitModel(b)
	}
	entrants := slices.Clone(c.entrants)
	for i := range entrants {
		entrants[i].at = e.cluster
		if entrants[i].parameters != "" {
			entrants[i].at = a.cluster
		}
	}
	useProfiles(entrants, a)
	fmt.Fprintf(os.Stdout, "\n%s, %d documents in %s segments\n", e.name, docs, segments(b, e))
	for b.Loop() {
		for _, kind := range c.kinds {
			some := kind.some(b, e, texts[kind.words])
			if len(some) < 2*matchingBatch+matchingWarmups {
				fmt.Fprintf(os.Stdout, "\n%s: only %d texts\n", kind.name, len(some))
				continue
			}
			for i := range entrants {
				for _, text := range some {
					if entrants[i].bodies != nil {
						entrants[i].bodies[text] = string(a.explain(b, formsIndex+"?akin_profile=high", kind.body(text)).Body)
					}
				}
				if entrants[i].form != "" {
					addedTerms(b, a, entrants[i:i+1], some[:matchingBatch], kind.body)
				}
			}
			table, known := compareTexts(b, e, a, entrants, some, kind.name, kind.body)
			fmt.Fprintf(os.Stdout, "\n%s", table)
			tell(kind.name, known)
		}
	}
}

// some returns texts with as many hits as the kind says, some to warm up with
// and those to measure.
func (k *searchKind) some(b *testing.B, e *engine, texts []string) (some []string) {
	b.Helper()
	for _, text := range texts {
		if len(some) == matchingWarmups+matchingTexts {
			break
		}
		found := ask[struct {
			Hits struct{ Total struct{ Value int } }
		}](b, e.cluster, http.MethodPost, "/"+formsIndex+"/_search?size=0&track_total_hits=true&request_cache=false", k.body(text)).Hits.Total.Value
		if found >= k.least && found <= k.most {
			some = append(some, text)
		}
	}
	return some
}

// A matchingCost is what searches for texts cost, by entrant.
type matchingCost struct {
	engine [][]float64 // processor time of each batch in ms
	took   [][]time.Duration
	own    []time.Duration // akin's processor time
}

// compareTexts returns a table of what searches for texts cost, new to akin and
// known, and the means of the engine's processor time of known ones in ms.
func compareTexts(
	b *testing.B, e *engine, a *akin, entrants []entrant, texts []string, name string, body func(string) string,
) (table string, engine []float64) {
	b.Helper()
	measured := texts[matchingWarmups:]
	send := func(i int, text string) time.Duration {
		t, err := entrants[i].search(b.Context(), text, body)
		if err != nil {
			b.Fatalf("%s: %v", entrants[i].name, err)
		}
		return t
	}
	for range matchingTurns {
		for _, text := range texts[:matchingWarmups] {
			for i := range entrants {
				send(i, text)
			}
		}
	}
	n := len(entrants)
	measure := func(first int) matchingCost {
		c := matchingCost{make([][]float64, n), make([][]time.Duration, n), make([]time.Duration, n)}
		for batch := range slices.Chunk(measured, matchingBatch) {
			first++ // nobody is always behind the same
			for i := range n {
				i = (i + first) % n
				before, ownBefore := processorTime(b, e.proc), processorTime(b, a.proc)
				for _, text := range batch {
					c.took[i] = append(c.took[i], send(i, text))
				}
				c.engine[i] = append(c.engine[i], (processorTime(b, e.proc)-before).Seconds()*1e3)
				c.own[i] += processorTime(b, a.proc) - ownBefore
			}
		}
		return c
	}
	met := measure(0)
	a.awaitVectors(b)
	known := measure(1)
	var t strings.Builder
	fmt.Fprintf(&t, "| %s, %d texts | engine's processor time, known texts | ratio, 95 %% | new texts | p50, known | ratio | new | akin's processor time, known | new |\n|---|---|---|---|---|---|---|---|---|\n", name, len(measured))
	searches := float64(len(measured))
	for i, entrant := range entrants {
		ratio, either := ratioOf(known.engine[i], known.engine[0])
		newRatio, newEither := ratioOf(met.engine[i], met.engine[0])
		fmt.Fprintf(&t, "| %s | %.2f ms | %.2f ± %.2f | %.2f ± %.2f | %.2f ms | %.2f | %.2f | %.2f ms | %.2f ms |\n", entrant.name,
			sumOf(known.engine[i])/searches, ratio, either, newRatio, newEither,
			known.median(i)*1e3, known.median(i)/known.median(0), met.median(i)/met.median(0),
			known.own[i].Seconds()*1e3/searches, met.own[i].Seconds()*1e3/searches)
	}
	for i := range entrants {
		engine = append(engine, sumOf(known.engine[i])/searches)
	}
	return t.String(), engine
}

// median returns the median time of an entrant's searches in seconds.
func (c *matchingCost) median(entrant int) float64 {
	slices.Sort(c.took[entrant])
	return quantile(c.took[entrant], .5)
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
