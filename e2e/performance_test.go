package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	formsIndex = "akin-e2e-forms"
	// formsDocs is large enough that a search takes longer than its way
	// through the network stack.
	formsDocs = 200_000
	// formsSizes are the numbers of documents that the forms are compared on,
	// unless AKIN_BENCH_DOCS names others.
	formsSizes = "20000,200000"
	// formsQueries is how many texts of each length are searched for.
	formsQueries = 30
	// formsWarmups are enough turns for the engine to compile what it runs.
	formsWarmups, formsTurns = 10, 20
)

// productionJVM has the engine compiled and its memory managed as in
// production; the tests start it with what starts fastest. The variable goes
// after the command line, so it overrides that.
const productionJVM = "-Xms1g -Xmx1g -XX:TieredStopAtLevel=4 -XX:-UseSerialGC -XX:+UseG1GC"

// An entrant is a way of sending the same search.
type entrant struct {
	name string // in the table
	// profile is that of akin's configuration; without one akin rewrites nothing.
	profile     string
	form, phase string // what explanations have to name
	at          cluster
	parameters  string
	// bodies are what is sent for a text; without one, the search as
	// applications send it.
	bodies map[string]string
}

// useProfiles has the entrants that name a profile search through akin.
func useProfiles(entrants []entrant, a *akin) {
	for i, c := range entrants {
		if c.profile != "" {
			entrants[i].at, entrants[i].parameters = a.cluster, "&akin_profile="+c.profile
		}
	}
}

// BenchmarkForms compares what searches cost in each form and phase, with
// feedback and in the mode soft, with the same searches sent directly, in turn
// within one run, and prints tables. It does everything once: run it with
// -benchtime 1x.
func BenchmarkForms(b *testing.B) {
	e := productionEngine(b)
	for size := range strings.SplitSeq(cmp.Or(os.Getenv("AKIN_BENCH_DOCS"), formsSizes), ",") {
		docs, err := strconv.Atoi(size)
		if err != nil {
			b.Fatalf("AKIN_BENCH_DOCS: %v", err)
		}
		b.Run(size, func(b *testing.B) { compareForms(b, e, docs) })
	}
}

func compareForms(b *testing.B, e *engine, docs int) {
	b.Helper()
	texts := loadForms(b, e, judgedIndex, docs)
	matrices := []section{{
		"name": "forms", "indices": []string{formsIndex}, "fields": []string{"body"}, "file": formsMatrix(b, e),
	}}
	a := startAkin(b, section{
		"cluster": section{"urls": []string{e.url}},
		// A search that runs out of time would go out as it came.
		"expansion": section{"budget": "10s", "rerank_budget": "10s"},
		"profiles": section{
			"low":       section{"effort": "low"},
			"normal":    section{"effort": "normal"},
			"fewest":    section{"scoring": "linear", "max_added_terms": 8},
			"linear":    section{"scoring": "linear"},
			"grouped":   section{"scoring": "grouped"},
			"saturated": section{"scoring": "saturated", "phase": "query"},
			"rescore":   section{"scoring": "saturated", "phase": "rescore"},
			"feedback":  section{"feedback": section{"documents": 10}},
			"soft":      section{"mode": "soft", "soft_weight": 1},
			"blend":     section{"mode": "soft"},
		},
		"matrices": matrices,
		"caches":   section{"vectors": "256MiB"},
	})
	a.awaitMatrix(b, "forms")
	entrants := []entrant{
		{name: "directly", at: e.cluster},
		{name: "through akin, switched off", at: a.cluster, parameters: "&akin=off"},
		{name: "effort low", profile: "low", form: "linear", phase: "query"},
		{name: "effort normal", profile: "normal", form: "saturated", phase: "rescore"},
		{name: "linear", profile: "fewest", form: "linear", phase: "query"},
		{name: "linear", profile: "linear", form: "linear", phase: "query"},
		{name: "grouped", profile: "grouped", form: "grouped", phase: "query"},
		{name: "saturated, phase query", profile: "saturated", form: "saturated", phase: "query"},
		{name: "saturated, phase rescore", profile: "rescore", form: "saturated", phase: "rescore"},
		{name: "saturated, phase rescore, feedback", profile: "feedback", form: "saturated", phase: "rescore"},
		{name: "mode soft, `soft_weight: 1`", profile: "soft", form: "linear", phase: "rerank"},
		{name: "mode soft", profile: "blend", form: "saturated", phase: "rerank"},
		{name: "what the rescore writes, sent directly", at: e.cluster, bodies: map[string]string{}},
	}
	useProfiles(entrants, a)
	fmt.Fprintf(os.Stdout, "\n%d documents in %s segments, %d texts of each length, %d searches of each\n",
		docs, segments(b, e), formsQueries, formsTurns)
	at := func(profile string) int {
		return slices.IndexFunc(entrants, func(c entrant) bool { return c.profile == profile })
	}
	for b.Loop() {
		for _, length := range []int{3, 8} {
			known := texts[length][:formsQueries]
			added := addedTerms(b, a, entrants, known)
			took := race(b, a, entrants, known)
			p50 := func(profile string) float64 { return quantile(took[at(profile)], .5) }
			fmt.Fprintf(os.Stdout, "\n%s", formsTable(length, entrants, added, took))
			fmt.Fprintf(os.Stdout, "\nfeedback: %.2f times the rescore, of which 2.2 are the aim; mode soft: %.2f times soft_weight 1, of which 1 is\n",
				p50("feedback")/p50("rescore"), p50("blend")/p50("soft"))
		}
		fmt.Fprintf(os.Stdout, "\n%s", newTextsTable(b, e, matrices, texts))
	}
}

// productionEngine returns an OpenSearch 2 of its own that runs as in
// production, or the engine that AKIN_E2E_ENGINE_URL names.
func productionEngine(b *testing.B) *engine {
	b.Helper()
	if os.Getenv("AKIN_E2E_ENGINE_URL") != "" {
		all, err := engines()
		if err != nil {
			b.Fatal(err)
		}
		return all[0]
	}
	b.Setenv("_JAVA_OPTIONS", productionJVM)
	e := newEngine(engineKinds[slices.IndexFunc(engineKinds, func(k engineKind) bool { return k.name == "opensearch2" })])
	e.require(b)
	return e
}

// loadForms indexes docs generated documents, in an index of one shard that is
// defined so, and returns texts to search for, by the number of their words.
func loadForms(b *testing.B, e *engine, definition string, docs int) map[int][]string {
	b.Helper()
	e.makeIndex(b, formsIndex, strings.Replace(definition, `{"number_of_shards"`, `{"refresh_interval":"-1","number_of_shards"`, 1))
	g := newTextGenerator(docs)
	const most = 5000
	var batch []document
	for n := range docs {
		batch = append(batch, document{strconv.Itoa(n), map[string]any{"body": g.text()}})
		if len(batch) == most || n == docs-1 {
			e.index(b, formsIndex, batch)
			batch = batch[:0]
		}
	}
	settle(b, e)
	return map[int][]string{3: g.queries(b, formsQueries+newTexts, 3), 8: g.queries(b, formsQueries+newTexts, 8)}
}

// settle waits until the index is as it stays, and makes that visible.
func settle(b *testing.B, e *engine) {
	b.Helper()
	waitFor(b, 15*time.Minute, "the end of merging", func() error {
		if text := e.must(b, http.MethodGet, "/"+formsIndex+"/_stats/merge?filter_path=_all.total.merges.current", ""); !strings.Contains(string(text), `"current":0}`) {
			return errors.New(string(text))
		}
		return nil
	})
	e.must(b, http.MethodPost, "/"+formsIndex+"/_refresh", "")
}

// formsMatrix learns S from a part of the documents and in few dimensions,
// which takes a fraction of the time: how long searches take does not depend
// on how good S is. flags are more of those of akin matrix build.
func formsMatrix(b *testing.B, e *engine, flags ...string) string {
	b.Helper()
	file := filepath.Join(newDir(b, "matrix"), "forms.akin")
	cmd := exec.CommandContext(b.Context(), akinPath(b), append([]string{
		"matrix", "build", "--from-index", e.url, "--index", formsIndex,
		"--field", "body", "--out", file, "--max-docs", "60000", "--dim", "50",
	}, flags...)...)
	cmd.Env = cleanEnvironment()
	if output, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("akin matrix build: %v\n%s", err, output)
	}
	return file
}

// segments returns how many segments the index has.
func segments(b *testing.B, e *engine) string {
	b.Helper()
	const path = "/_stats/segments?filter_path=_all.total.segments.count"
	var answer struct {
		All struct {
			Total struct{ Segments struct{ Count int } }
		} `json:"_all"`
	}
	if err := e.getJSON(b.Context(), "/"+formsIndex+path, &answer); err != nil {
		b.Fatal(err)
	}
	return strconv.Itoa(answer.All.Total.Segments.Count)
}

// formsBody is the search as applications send it.
func formsBody(text string) string {
	return `{"query":{"match":{"body":` + quote(text) + `}}}`
}

// addedTerms returns the mean number of terms that each entrant adds, makes
// sure that it writes what its name says, and gives the last one the bodies
// that the rescore writes.
func addedTerms(b *testing.B, a *akin, entrants []entrant, texts []string) []float64 {
	b.Helper()
	means := make([]float64, len(entrants))
	for i, c := range entrants {
		if c.profile == "" {
			continue
		}
		for _, text := range texts {
			e := a.explain(b, formsIndex+"?akin_profile="+c.profile, formsBody(text))
			if len(e.Clauses) != 1 || e.Clauses[0].Form != c.form || e.Clauses[0].Phase != c.phase {
				b.Fatalf("%s: explained as %+v", c.name, e.Clauses)
			}
			means[i] += float64(len(e.Clauses[0].Added)) / float64(len(texts))
			if last := &entrants[len(entrants)-1]; c.profile == "rescore" {
				last.bodies[text] = string(e.Body)
			}
		}
	}
	return means
}

// race sends every text by every entrant in turn and returns how long each
// entrant took, shortest first.
func race(b *testing.B, a *akin, entrants []entrant, texts []string) [][]time.Duration {
	b.Helper()
	took := make([][]time.Duration, len(entrants))
	counted := func() [3]int { // rewritten, with feedback, and reranked
		return [3]int{
			int(a.metric(b, requestsMetric, rewrittenOutcome)),
			int(a.metric(b, "akin_feedback_total", `result="used"`)),
			int(a.metric(b, rerankedMetric, rerankedResult)),
		}
	}
	want := counted()
	for turn := range formsWarmups + formsTurns {
		for n, text := range texts {
			for i := range entrants {
				i = (i + turn + n) % len(entrants) // nobody is always behind the same
				t, err := entrants[i].search(b.Context(), text)
				if err != nil {
					b.Fatalf("%s: %v", entrants[i].name, err)
				}
				if turn >= formsWarmups {
					took[i] = append(took[i], t)
				}
			}
		}
	}
	searches := len(texts) * (formsWarmups + formsTurns)
	for i := range entrants {
		slices.Sort(took[i])
		if entrants[i].profile != "" {
			want[0] += searches
		}
		if entrants[i].profile == "feedback" {
			want[1] += searches
		}
		if entrants[i].phase == "rerank" {
			want[2] += searches
		}
	}
	if got := counted(); got != want {
		b.Fatalf("%v searches were rewritten, had feedback, and were reranked, want %v", got, want)
	}
	return took
}

// search sends the search once and returns how long the whole answer took.
func (c *entrant) search(ctx context.Context, text string) (time.Duration, error) {
	body, ok := c.bodies[text]
	if !ok {
		body = formsBody(text)
	}
	start := time.Now()
	status, answer, err := c.at.call(ctx, http.MethodPost, "/"+formsIndex+"/_search?request_cache=false"+c.parameters, body)
	took := time.Since(start)
	if err == nil && (status != http.StatusOK || !strings.Contains(string(answer), `"failed":0`)) {
		err = fmt.Errorf("%d: %.2000s", status, answer)
	}
	return took, err
}

// formsTable writes what race measured as Markdown, next to the first
// entrant.
func formsTable(length int, entrants []entrant, added []float64, took [][]time.Duration) string {
	var t strings.Builder
	fmt.Fprintf(&t, "| %d words | added terms | p50 | p90 | ratio of p50 | ratio of p90 |\n|---|---|---|---|---|---|\n", length)
	for i, c := range entrants {
		p50, p90 := quantile(took[i], .5), quantile(took[i], .9)
		terms := "–"
		if c.profile != "" {
			terms = fmt.Sprintf("%.0f", added[i])
		}
		fmt.Fprintf(&t, "| %s | %s | %.2f ms | %.2f ms | %.2f | %.2f |\n", c.name, terms, p50*1e3, p90*1e3,
			p50/quantile(took[0], .5), p90/quantile(took[0], .9))
	}
	return t.String()
}

// quantile returns the quantile q of sorted durations, in seconds.
func quantile(sorted []time.Duration, q float64) float64 {
	return sorted[int(q*float64(len(sorted)-1)+.5)].Seconds()
}
