package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

const (
	formsIndex = "akin-e2e-forms"
	// formsDocs is large enough that a search takes longer than its way
	// through the network stack.
	formsDocs = 200_000
	// formsSizes are the numbers of documents of benchmarks, unless AKIN_BENCH_DOCS
	// names others.
	formsSizes = "20000,200000"
	// formsQueries is how many texts of each length are searched for.
	formsQueries = 30
	// formsWarmups are enough turns for the engine to compile what it runs.
	formsWarmups = 10
)

// formsTurns returns how many turns are measured: fewer of long searches.
func formsTurns(docs int) int { return max(4, min(20, 4_000_000/docs)) }

// productionJVM has the engine compiled and its memory managed as in
// production; the tests start it with what starts fastest. The variable goes
// after the command line, so it overrides that.
const productionJVM = "-Xms1g -Xmx1g -XX:TieredStopAtLevel=4 -XX:-UseSerialGC -XX:+UseG1GC"

// formsDefinition is that of an index for searches in two fields, with filters and
// aggregations.
const formsDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0},
	"mappings":{"properties":{"title":{"type":"text","analyzer":"english"},"body":{"type":"text","analyzer":"english"},
		"category":{"type":"keyword"},"price":{"type":"integer"}}}}`

// formsBody is the search as applications send it.
func formsBody(text string) string {
	return `{"query":{"match":{"body":` + quote(text) + `}}}`
}

func twoFieldsBody(text string) string {
	return `{"query":{"multi_match":{"query":` + quote(text) + `,"fields":["title^2","body"]}}}`
}

// realisticBody is a search with filters, aggregations and highlighting.
func realisticBody(text string) string {
	return `{"size":20,"query":{"bool":{"must":{"match":{"body":` + quote(text) + `}},
		"filter":[{"terms":{"category":["c1","c2","c3","c4","c5"]}},{"range":{"price":{"lte":800}}}]}},
		"aggs":{"categories":{"terms":{"field":"category"}},"prices":{"histogram":{"field":"price","interval":100}},"mean":{"avg":{"field":"price"}}},
		"highlight":{"fields":{"body":{}}}}`
}

// An entrant is a way of sending the same search.
type entrant struct {
	name string // in the table
	// profile is that of akin's configuration; without one akin rewrites nothing.
	profile     string
	form, phase string // what explanations have to name
	at          cluster
	akin        *akin // that it searches through, if another than the others'
	parameters  string
	index       string // formsIndex where it is ""
	// bodies are what is sent for a text; without one, the search as
	// applications send it.
	bodies map[string]string
}

// useProfiles has the entrants that name a profile search through akin.
func useProfiles(entrants []entrant, a *akin) {
	for i, c := range entrants {
		if c.profile != "" {
			entrants[i].at, entrants[i].parameters = cmp.Or(c.akin, a).cluster, "&akin_profile="+c.profile
		}
	}
}

// A cost is what the searches of an entrant took.
type cost struct {
	took         []time.Duration // of each, shortest first
	engine, akin time.Duration   // processor time of all
}

// eachSize runs a benchmark for each number of documents.
func eachSize(b *testing.B, run func(b *testing.B, docs int)) {
	b.Helper()
	for size := range strings.SplitSeq(cmp.Or(os.Getenv("AKIN_BENCH_DOCS"), formsSizes), ",") {
		docs, err := strconv.Atoi(size)
		if err != nil {
			b.Fatalf("AKIN_BENCH_DOCS: %v", err)
		}
		b.Run(size, func(b *testing.B) { run(b, docs) })
	}
}

// BenchmarkCollections prints what searches of judged collections cost, of
// texts that akin has met: 30 of the queries, with all their words and with the
// three rarest, at effort high and low. AKIN_E2E_COLLECTIONS names the
// collections. Run it with -benchtime 1x.
func BenchmarkCollections(b *testing.B) {
	const queries, turns = 30, 20
	e := productionEngine(b, qualityEngine)
	collections := judgedCollections(b)
	var served []section
	for _, c := range collections {
		index, file := e.judged(b, c)
		e.refresh(b, index)
		served = append(served, section{"name": index, "indices": []string{index}, "fields": []string{"body"}, "file": file})
	}
	a := setupWide(b, e, section{
		"profiles": section{"low": section{"effort": "low"}, "high": section{"effort": "high"}}, "matrices": served,
	})
	for b.Loop() {
		for _, c := range collections {
			for _, judged := range []*collection{c, e.threeTerms(b, c)} {
				entrants := []entrant{
					{name: "directly", at: e.cluster},
					{name: "through akin, switched off", at: a.cluster, parameters: "&akin=off"},
					{name: "effort low", profile: "low", form: "linear", phase: "query"},
					{name: "effort high", profile: "high", form: "saturated", phase: "rescore"},
				}
				for i := range entrants {
					entrants[i].index = judgedIndexName(c)
				}
				useProfiles(entrants, a)
				var texts []string // of those that are expanded
				for i := 0; i < len(judged.queries); i += max(1, len(judged.queries)/queries) {
					text := judged.queries[i].text
					if found := a.explain(b, judgedIndexName(c)+"?akin_profile=low", formsBody(text)); len(found.Clauses[0].Added) > 0 {
						texts = append(texts, text)
					}
				}
				fmt.Fprintf(os.Stdout, "\n%s", formsTable(judged.name, entrants, addedTerms(b, a, entrants, texts, formsBody), race(b, e, a, entrants, texts, turns, formsBody)))
			}
		}
	}
}

// keepFolder is a folder in which engines keep generated documents for the next
// run, "" for none.
func keepFolder() string { return os.Getenv("AKIN_BENCH_KEEP") }

// productionEngine returns an engine of its own that runs as in production.
func productionEngine(b *testing.B, name string) *engine {
	b.Helper()
	b.Setenv("_JAVA_OPTIONS", productionJVM)
	e := newEngine(engineKinds[slices.IndexFunc(engineKinds, func(k engineKind) bool { return k.name == name })])
	if keepFolder() != "" {
		home := filepath.Join(keepFolder(), name)
		check.OK(b, errors.Join(os.MkdirAll(home, 0o700), os.RemoveAll(filepath.Join(home, "logs")))) // with the last address
		e.start = sync.OnceValue(func() error { return e.launchIn(home, nil) })
	}
	e.require(b)
	return e
}

// loadForms indexes docs generated documents, in an index of one shard that is
// defined so, and returns so many texts to search for, by the number of their
// words. If there is a [keepFolder], it takes the index of an earlier run, or
// keeps this one.
func loadForms(b *testing.B, e *engine, definition string, docs, searches int) map[int][]string {
	b.Helper()
	b.Cleanup(func() { e.dropIndex(formsIndex) })
	kept := fmt.Sprintf("kept-%08x-%d", crc32.ChecksumIEEE([]byte(definition)), docs)
	known := keepFolder() != "" && e.hasIndex(b, kept)
	if known {
		e.cloneIndex(b, kept, formsIndex)
	} else {
		e.remakeIndex(b, formsIndex, strings.Replace(definition, `{"number_of_shards"`, `{"refresh_interval":"-1","number_of_shards"`, 1))
	}
	g := newTextGenerator(docs)
	const most = 5000
	var batch []document
	for n := range docs {
		body := g.text()
		if known {
			continue
		}
		title := body[:strings.LastIndexByte(body[:40], ' ')] // texts are longer
		batch = append(batch, document{strconv.Itoa(n), map[string]any{
			"title": title, "body": body, "category": "c" + strconv.Itoa(n%10), "price": n * 7919 % 1000,
		}})
		if len(batch) == most || n == docs-1 {
			e.index(b, formsIndex, batch)
			batch = batch[:0]
		}
	}
	settle(b, e)
	if keepFolder() != "" && !known {
		e.cloneIndex(b, formsIndex, kept)
	}
	texts := map[int][]string{}
	for _, words := range []int{1, 3, 8} {
		texts[words] = g.queries(b, searches, words)
	}
	return texts
}

// hasIndex reports whether there is an index.
func (e *engine) hasIndex(b *testing.B, name string) bool {
	b.Helper()
	return slices.Contains(strings.Fields(string(e.must(b, http.MethodGet, "/_cat/indices?h=index", ""))), name)
}

// cloneIndex clones an index by hard links to its segments, in place of another.
func (e *engine) cloneIndex(b *testing.B, from, to string) {
	b.Helper()
	write := func(index, may string) {
		e.must(b, http.MethodPut, "/"+index+"/_settings", `{"index.blocks.write":`+may+`}`)
	}
	write(from, "true")
	e.dropIndex(to)
	e.must(b, http.MethodPost, "/"+from+"/_clone/"+to+"?wait_for_active_shards=1", "")
	write(from, "null")
	write(to, "null")
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
	e.refresh(b, formsIndex)
}

// formsMatrix learns S from a part of the documents, which takes a fraction of
// the time: how long searches take does not depend on how good S is. flags are
// more of those of akin matrix build.
func formsMatrix(b *testing.B, e *engine, flags ...string) string {
	b.Helper()
	return build(b, append([]string{"--cluster", e.url, "--index", formsIndex, "--field", "body", "--max-docs", "60000"}, flags...)...)
}

// segments returns how many segments the index has.
func segments(b *testing.B, e *engine) string {
	b.Helper()
	answer := ask[struct {
		All struct {
			Total struct{ Segments struct{ Count int } }
		} `json:"_all"`
	}](b, e.cluster, http.MethodGet, "/"+formsIndex+"/_stats/segments?filter_path=_all.total.segments.count", "")
	return strconv.Itoa(answer.All.Total.Segments.Count)
}

// addedTerms returns the mean number of terms that each entrant adds, and makes
// sure that it writes what its name says.
func addedTerms(b *testing.B, a *akin, entrants []entrant, texts []string, body func(string) string) []float64 {
	b.Helper()
	means := make([]float64, len(entrants))
	for i, c := range entrants {
		if c.profile == "" {
			continue
		}
		for _, text := range texts {
			e := a.explain(b, cmp.Or(c.index, formsIndex)+"?akin_profile="+c.profile, body(text))
			written := 0
			for _, clause := range e.Clauses {
				if clause.Reason == "not_scoring" || clause.Reason == "other_query" {
					continue // a filter, or vectors
				}
				if clause.Form != c.form || clause.Phase != c.phase {
					b.Fatalf("%s: explained as %+v", c.name, e.Clauses)
				}
				written++
				means[i] += float64(len(clause.Added)) / float64(len(texts))
			}
			if written == 0 {
				b.Fatalf("%s: nothing is written: %+v", c.name, e.Clauses)
			}
		}
	}
	return means
}

// race sends the texts by every entrant in turn, so that a change of the
// machine's speed meets all of them, and returns what each cost.
func race(b *testing.B, e *engine, a *akin, entrants []entrant, texts []string, turns int, body func(string) string) []cost {
	b.Helper()
	costs := make([]cost, len(entrants))
	counted := func() [3]int { // rewritten, with feedback, and reranked
		return [3]int{
			int(a.metric(b, requestsMetric, rewrittenOutcome)),
			int(a.metric(b, feedbackMetric, `result="used"`)),
			int(a.metric(b, rerankedMetric, rerankedResult)),
		}
	}
	want := counted()
	for turn := range formsWarmups + turns {
		for i := range entrants {
			i = (i + turn) % len(entrants) // nobody is always behind the same
			c := &costs[i]
			akin := cmp.Or(entrants[i].akin, a)
			engine, own := processorTime(b, e.proc), processorTime(b, akin.proc)
			for _, text := range texts {
				t, err := entrants[i].search(b.Context(), text, body)
				if err != nil {
					b.Fatalf("%s: %v", entrants[i].name, err)
				}
				if turn >= formsWarmups {
					c.took = append(c.took, t)
				}
			}
			if turn >= formsWarmups {
				c.engine += processorTime(b, e.proc) - engine
				c.akin += processorTime(b, akin.proc) - own
			}
		}
	}
	searches := len(texts) * (formsWarmups + turns)
	for i := range entrants {
		slices.Sort(costs[i].took)
		if other := entrants[i].akin; other != nil {
			if n := int(other.metric(b, rerankedMetric, rerankedResult)); n < searches {
				b.Fatalf("%s: %d of %d searches were reranked", entrants[i].name, n, searches)
			}
			continue
		}
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
	return costs
}

// search sends the search once and returns how long the whole answer took.
func (c *entrant) search(ctx context.Context, text string, body func(string) string) (time.Duration, error) {
	sent, ok := c.bodies[text]
	if !ok {
		sent = body(text)
	}
	start := time.Now()
	status, answer, err := c.at.call(ctx, http.MethodPost, "/"+cmp.Or(c.index, formsIndex)+"/_search?request_cache=false"+c.parameters, sent)
	took := time.Since(start)
	if err == nil && (status != http.StatusOK || !strings.Contains(string(answer), `"failed":0`)) {
		err = fmt.Errorf("%d: %.2000s", status, answer)
	}
	return took, err
}

// processorTime returns what the living threads of a process, without those with
// which Java compiles, have used of the processors so far. It reads it from Linux,
// to the nanosecond: the time of the whole process is told in hundredths of a
// second only.
func processorTime(b *testing.B, p *process) (used time.Duration) {
	b.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err != nil || len(files) == 0 {
		b.Fatalf("no processor times of %s, which Linux tells: %v", p.name, err)
	}
	for _, file := range files {
		name, err := os.ReadFile(filepath.Join(filepath.Dir(file), "comm"))
		if err != nil || bytes.Contains(name, []byte("CompilerThre")) {
			continue // the thread has ended, or compiles
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		onProcessor, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(onProcessor, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		used += time.Duration(ns)
	}
	return used
}

// formsTable writes what race measured as Markdown: ratios to the first entrant.
func formsTable(name string, entrants []entrant, added []float64, costs []cost) string {
	var t strings.Builder
	fmt.Fprintf(&t, "| %s | added terms | engine's processor time | ratio | overhead | p50 | ratio | akin's processor time |\n|---|---|---|---|---|---|---|---|\n", name)
	direct := &costs[0]
	for i, c := range entrants {
		terms := "–"
		if c.profile != "" {
			terms = fmt.Sprintf("%.0f", added[i])
		}
		each := func(d time.Duration) float64 { return float64(d) / float64(len(costs[i].took)) / 1e6 }
		p50 := quantile(costs[i].took, .5)
		fmt.Fprintf(&t, "| %s | %s | %.2f ms | %.2f | %.2f ms | %.2f ms | %.2f | %.2f ms |\n", c.name, terms,
			each(costs[i].engine), float64(costs[i].engine)/float64(direct.engine), each(costs[i].engine-direct.engine),
			p50*1e3, p50/quantile(direct.took, .5), each(costs[i].akin))
	}
	return t.String()
}

// quantile returns the quantile q of sorted durations, in seconds.
func quantile(sorted []time.Duration, q float64) float64 {
	return sorted[int(q*float64(len(sorted)-1)+.5)].Seconds()
}
