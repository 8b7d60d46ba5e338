package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

// judgedIndex is the definition of an index for a judged collection: as a
// user makes one, and in one shard so that scores do not depend on where a
// document lies.
const judgedIndex = `{"settings":{"number_of_shards":1,"number_of_replicas":0},
	"mappings":{"properties":{"uid":{"type":"keyword"},"body":{"type":"text","analyzer":"english"}}}}`

// The collections that can be measured. The usual ones take less than a
// minute; the held-out ones had no part in choosing any of akin's defaults.
var (
	usualCollections   = []string{"med", "cran"}
	tunedCollections   = []string{"cran", "med", "cisi", "npl", "scifact_train"}
	heldOutCollections = []string{"semeval_ql" + titlesOnly, "semeval_ql"}
	// Product search is what akin gained least on.
	productCollections = []string{"crowdflower"}
	// The collections of mixedIndex.
	mixedCollections = slices.Concat(tunedCollections, []string{"semeval_ql"}, productCollections)
)

// mixedIndex is the name of all collections in one index. What is measured in it
// of a collection has this name before its own.
const mixedIndex = "mixed"

// judgedCollections loads the collections of this run.
func judgedCollections(tb testing.TB) []*collection {
	tb.Helper()
	names := usualCollections
	switch chosen := os.Getenv("AKIN_E2E_COLLECTIONS"); chosen {
	case "":
	case "all":
		names = slices.Concat(tunedCollections, heldOutCollections, productCollections, []string{mixedIndex})
	default:
		names = strings.Split(chosen, ",")
	}
	collections := make([]*collection, 0, len(names))
	for _, name := range names {
		if name == mixedIndex {
			collections = append(collections, loadMixed(tb)...)
		} else {
			collections = append(collections, loadCollection(tb, name))
		}
	}
	return collections
}

// loadMixed loads each collection with the documents of all, of which those of
// others are not relevant to its queries.
func loadMixed(tb testing.TB) (mixed []*collection) {
	tb.Helper()
	var docs []document
	for _, name := range mixedCollections {
		c := loadCollection(tb, name)
		for _, d := range c.docs {
			docs = append(docs, document{name + "/" + d.id, d.fields})
		}
		for k, q := range c.queries {
			grades := map[string]float64{}
			for id, grade := range q.grades {
				grades[name+"/"+id] = grade
			}
			c.queries[k].grades = grades
		}
		c.name = mixedIndex + "-" + name
		mixed = append(mixed, c)
	}
	for _, c := range mixed {
		c.docs = docs
	}
	return mixed
}

// isMixed reports whether a collection is searched among all others.
func isMixed(c *collection) bool { return strings.HasPrefix(c.name, mixedIndex+"-") }

// A ranking is a way of searching to measure.
type ranking struct {
	name      string  // in rank_stats.txt
	title     string  // of its row in docs/performance.md, if it has one
	expansion section // of the configuration
	form, in  string  // what explanations have to name: the form and its phase
	with      string  // what is mixed into the matrix: nothing, withBuiltin, withModel, or withThesaurus
}

// countedWords are options of a match that count how many words match, by the
// ends of the names of rankings that have them.
var countedWords = map[string]string{
	"and": `"operator":"and"`,
	"75":  `"minimum_should_match":"75%"`,
}

// countedBody is a search for the best documents with as many words of a text.
func countedBody(option string) func(text string) string {
	return func(text string) string {
		return fmt.Sprintf(`{"query":{"match":{"body":{"query":%s,%s}}},"size":%d,"_source":false,%s}`, quote(text), option, wholeList, idColumn)
	}
}

const (
	withBuiltin   = "words" // those that akin contains, as by default
	withModel     = "model"
	withThesaurus = "thesaurus" // weighed by the matrix
)

// soft reports whether akin puts the first hits in order.
func (r *ranking) soft() bool { return r.expansion["mode"] == "soft" }

// embeds reports whether vectors of a language model put the first hits in order.
func (r *ranking) embeds() bool { return r.expansion["rerank"] == "embeddings" }

// auto reports whether related words find documents only where a search finds too
// little, as by default; with the others they always do, or never.
func (r *ranking) auto() bool { return strings.HasPrefix(r.name, "auto") }

// counted returns how the words of a text are counted, "" if they are not.
func (r *ranking) counted() string { return countedWords[strings.TrimPrefix(r.name, "auto-")] }

// feedback reports whether terms of the first hits are added.
func (r *ranking) feedback() bool { return r.expansion["feedback"] != nil }

// rankings are what is measured of an engine: matching: widen, and on one
// engine the default and the other forms and phases as well.
func rankings(e *engine) []ranking {
	if !e.scripts {
		return []ranking{{"grouped", "grouped", section{}, "grouped", "query", ""}}
	}
	const saturated, rescore = "saturated", "rescore"
	high := ranking{rescore, "high", section{}, saturated, rescore, ""}
	if e.name != qualityEngine {
		return []ranking{high}
	}
	feedback := section{"documents": 5}
	return []ranking{
		high,
		{"normal", "", section{"effort": "normal"}, saturated, rescore, ""},
		{"low", "", section{"effort": "low"}, "linear", "query", ""},
		{"linear", "`scoring: linear`", section{"scoring": "linear"}, "linear", "query", ""},
		{"grouped", "`scoring: grouped`", section{"scoring": "grouped"}, "grouped", "query", ""},
		{saturated, "`phase: query`", section{"scoring": saturated, "phase": "query"}, saturated, "query", ""},
		{"same", "high, `matching: same`", section{"matching": "same"}, saturated, rescore, ""},
		{"feedback", "high, feedback", section{"feedback": feedback}, saturated, rescore, ""},
		{"feedback-query", "`phase: query`, feedback", section{"scoring": saturated, "phase": "query", "feedback": feedback}, saturated, "query", ""},
		{"words", "normal, built-in words", section{}, saturated, rescore, withBuiltin},
		{"words-low", "low, built-in words", section{"effort": "low"}, "linear", "query", withBuiltin},
		{"words-high", "high, built-in words", section{"effort": "high"}, saturated, rescore, withBuiltin},
		{"auto", "`matching: auto`, built-in words", section{}, saturated, rescore, withBuiltin},
		{"auto-low", "low, `matching: auto`, built-in words", section{"effort": "low"}, saturated, rescore, withBuiltin},
		{"auto-and", "`matching: auto`, all words", section{}, saturated, rescore, withBuiltin},
		{"auto-75", "`matching: auto`, 75 % of the words", section{}, saturated, rescore, withBuiltin},
		{"auto-soft", "", section{"mode": "soft"}, "linear", "rerank", withBuiltin},
		{"embeddings", "", section{"rerank": "embeddings"}, saturated, rescore, withBuiltin},
		{"auto-embeddings", "", section{"rerank": "embeddings"}, saturated, rescore, withBuiltin},
		{softEmbeddings, "", section{"mode": "auto", "rerank": "embeddings"}, saturated, rescore, withBuiltin},
		{"words-soft", "soft, normal, built-in words", section{"mode": "soft"}, "linear", "rerank", withBuiltin},
		{"model", "high, model", section{"effort": "high"}, saturated, rescore, withModel},
		{"model-feedback", "high, model, feedback", section{"effort": "high", "feedback": feedback}, saturated, rescore, withModel},
		{"model-normal", "normal, model", section{}, saturated, rescore, withModel},
		{"model-low", "low, model", section{"effort": "low"}, "linear", "query", withModel},
		{"soft", "soft, high", section{"mode": "soft"}, "linear", "rerank", ""},
		{"soft-feedback", "soft, high, feedback", section{"mode": "soft", "feedback": feedback}, "linear", "rerank", ""},
		{"model-soft", "soft, normal, model", section{"mode": "soft"}, "linear", "rerank", withModel},
		{"model-soft-feedback", "soft, normal, model, feedback", section{"mode": "soft", "feedback": feedback}, "linear", "rerank", withModel},
		{thesaurusRanking, "", section{"expressions": false}, saturated, rescore, withThesaurus},
		{expressionsRanking, "", section{}, saturated, rescore, withThesaurus},
	}
}

// A floor is the least gain over the direct search or, where the ranking has
// another baseline, over that, in hundredths.
type floor struct {
	engine, collection, ranking string
	measure                     int // in measureNames
	gain                        float64
}

const (
	mapMeasure  = 0
	ndcgMeasure = 1
)

// floors are the gains that akin promises with matching: widen, with feedback, and
// with expressions where that is significant.
// They lie under what these were measured to give (testdata/rank_stats.txt).
var floors = []floor{
	{"opensearch2", "med", "rescore", mapMeasure, 12},
	{"opensearch2", "med", "rescore", ndcgMeasure, 2},
	{"opensearch2", "cran", "rescore", mapMeasure, 2.5},
	{"opensearch2", "cran", "rescore", ndcgMeasure, 1.5},
	{"opensearch2", "med", "saturated", mapMeasure, 12},
	{"opensearch2", "med", "saturated", ndcgMeasure, 2},
	{"opensearch2", "cran", "saturated", mapMeasure, 2.5},
	{"opensearch2", "cran", "saturated", ndcgMeasure, 1.5},
	{"opensearch2", "med", "feedback", mapMeasure, 17},
	{"opensearch2", "med", "feedback", ndcgMeasure, 4},
	{"opensearch2", "cran", "feedback", mapMeasure, 9},
	{"opensearch2", "cran", "feedback", ndcgMeasure, 5.5},
	{"opensearch2", "med-three", "feedback", mapMeasure, 50},
	{"opensearch2", "med-three", "feedback", ndcgMeasure, 10},
	{"opensearch2", "cran-three", "feedback", mapMeasure, 17},
	{"opensearch2", "cran-three", "feedback", ndcgMeasure, 8},
	{"opensearch2", "cisi", expressionsRanking, mapMeasure, 0.2},
	{"opensearch2", "scifact_train-three", expressionsRanking, ndcgMeasure, 0.3},
	{"elasticsearch8", "med", "grouped", mapMeasure, 10},
	{"elasticsearch8", "med", "grouped", ndcgMeasure, 0},
	{"elasticsearch8", "cran", "grouped", mapMeasure, 2},
	{"elasticsearch8", "cran", "grouped", ndcgMeasure, 0},
}

// TestRelevance indexes judged collections, learns S from those indices, and
// ranks the judged queries directly and through akin; on one engine also three
// terms of each query, and with all collections the short queries of all.
func TestRelevance(t *testing.T) {
	long(t)
	t.Parallel()
	collections := judgedCollections(t)
	redis := commonRedis(t)
	stats := rankStats{}
	var mu sync.Mutex // of stats
	eachEngine(t, func(t *testing.T, e *engine) {
		judged := slices.Clone(collections)
		pushed := map[string]bool{}
		for _, c := range collections {
			index, file := e.judged(t, c)
			if !pushed[index] {
				pushMatrix(t, redis, matrixName(e, index), file)
				pushed[index] = true
			}
			if e.name == qualityEngine {
				judged = append(judged, e.threeTerms(t, c))
			}
		}
		measured := map[rankKey][]measures{}
		note := func(collection, ranking string, got []measures) {
			k := rankKey{e.name, collection, ranking}
			measured[k] = got
			mu.Lock()
			defer mu.Unlock()
			stats.note(e, collection, ranking, got, measured[k.baseline()])
		}
		measure := func(ranking string, judged []*collection, rank func(c *collection) []measures) {
			var short []measures
			for _, c := range judged {
				got := rank(c)
				note(c.name, ranking, got)
				if ranking == "auto-and" {
					k := rankKey{e.name, c.name, ranking}
					checkFirstPages(t, k, c.queries, measured[k.baseline()], got)
				}
				for i, q := range c.queries {
					if !isMixed(c) && !strings.HasSuffix(c.name, threeTermsOnly) && len(strings.Fields(q.text)) <= 3 {
						short = append(short, got[i])
					}
				}
			}
			if os.Getenv("AKIN_E2E_COLLECTIONS") == "all" && e.name == qualityEngine {
				note(fmt.Sprintf("%d texts of 1 to 3 words", len(short)), ranking, short)
			}
		}
		measure(direct, judged, func(c *collection) []measures {
			return rank(t, e.cluster, judgedIndexName(c), wholeBody, c.queries)
		})
		if e.name == qualityEngine {
			for name, option := range countedWords {
				measure(direct+"-"+name, judged, func(c *collection) []measures {
					return rank(t, e.cluster, judgedIndexName(c), countedBody(option), c.queries)
				})
			}
		}
		model := languageModel(t)
		for _, r := range rankings(e) {
			if r.embeds() && model.fake { // it knows nothing of texts
				continue
			}
			if r.with == withModel && model.fake {
				if r.feedback() { // as without a model
					continue
				}
				r.name = "fake-" + r.name
			}
			of, by := collections, judged
			if r.with == withModel && model.fake || r.with == withThesaurus { // nothing to learn of a large index
				of, by = slices.DeleteFunc(slices.Clone(of), isMixed), slices.DeleteFunc(slices.Clone(by), isMixed)
			}
			start := setupWide
			if r.auto() {
				start = setup
			}
			a, reason := start(t, e, relevanceConfig(t, e, redis, of, r, model)), ""
			if r.embeds() {
				a.awaitModel(t)
			}
			switch {
			case !e.scripts:
				reason = "no_scripts"
			case r.name == softEmbeddings:
				reason = "not_remembered"
			}
			for _, c := range of {
				if r.counted() != "" { // as typed, where it finds enough
					break
				}
				a.checkExplained(t, judgedIndexName(c), r.body(c.queries[0].text), r.form, r.in, reason)
			}
			measure(r.name, by, func(c *collection) []measures { return rankThroughAkin(t, a, c, r) })
			if r.name == softEmbeddings {
				measure(softEmbeddings+overSoft, by, func(c *collection) []measures { return measured[rankKey{e.name, c.name, r.name}] })
			}
		}
	})
	checkFloors(t, stats)
	checkLosses(t, stats)
	checkRankStats(t, rankStatsFile, stats)
}

// judgedIndexName is the index of a collection.
func judgedIndexName(c *collection) string {
	if isMixed(c) {
		return "akin-e2e-" + mixedIndex
	}
	name := c.name
	for _, otherQueries := range []string{threeTermsOnly, wikipediaTypos, birkbeckTypos} {
		name = strings.TrimSuffix(name, otherQueries)
	}
	return "akin-e2e-" + name
}

// judged returns the index of a collection, and the file of the matrix that is
// learned from it with the defaults. Both are made once for all tests of a run,
// which must not change them.
func (e *engine) judged(tb testing.TB, c *collection) (index, matrix string) {
	tb.Helper()
	index = judgedIndexName(c)
	return index, e.learn(tb, index, func() []string {
		e.remakeIndex(tb, index, judgedIndex)
		e.index(tb, index, withIDs(c.docs))
		return []string{"--index", index, "--language-model", "none"}
	})
}

// A learnedFile is a matrix that several tests use.
type learnedFile struct {
	once sync.Once
	path string // "" where it could not be made
}

// learn returns the file of a matrix that is learned from a field body, with the
// arguments of the command that choose returns.
func (e *engine) learn(tb testing.TB, name string, choose func() []string) string {
	tb.Helper()
	return e.matrixFile(tb, name, func() string {
		return build(tb, append([]string{"--cluster", e.url, "--field", "body"}, choose()...)...)
	})
}

// thesaurusFile is a file of synonyms, Open English WordNet.
func thesaurusFile(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(check.Data(tb, "thesaurus"), "oewn_synonyms.solr.txt")
}

// weighed returns the file of the matrix of a collection combined with the
// thesaurus, which is weighed by it.
func (e *engine) weighed(tb testing.TB, c *collection) string {
	tb.Helper()
	index, learned := e.judged(tb, c)
	return e.matrixFile(tb, index+"-thesaurus", func() string {
		weighed := newPath(tb, "weighed.akin")
		mustAkin(tb, append([]string{"matrix", "build", "--from-thesaurus", thesaurusFile(tb), "--weigh-by", learned, "--out", weighed}, e.of(index, "body")...)...)
		return build(tb, "--from-matrices", learned+","+weighed)
	})
}

// matrixFile returns the file of a matrix that the first test which asks for one
// of that name makes.
func (e *engine) matrixFile(tb testing.TB, name string, create func() string) string {
	tb.Helper()
	e.mu.Lock()
	if e.learned == nil {
		e.learned = map[string]*learnedFile{}
	}
	if e.learned[name] == nil {
		e.learned[name] = &learnedFile{}
	}
	file := e.learned[name]
	e.mu.Unlock()
	file.once.Do(func() { file.path = create() })
	if file.path == "" {
		tb.Fatalf("the matrix %s could not be made by another test", name)
	}
	return file.path
}

// matrixName is the name in Redis of the matrix of an index.
func matrixName(e *engine, index string) string { return index + "-" + e.name }

// relevanceConfig serves the judged indices.
func relevanceConfig(t *testing.T, e *engine, redis *redisServer, collections []*collection, r ranking, model embeddings) section {
	t.Helper()
	var served []section
	for _, c := range collections {
		index := judgedIndexName(c)
		if slices.ContainsFunc(served, func(s section) bool { return s["name"] == matrixName(e, index) }) {
			continue
		}
		matrix := section{"name": matrixName(e, index), "indices": []string{index}, "fields": []string{"body"}}
		switch r.with {
		case withBuiltin:
			matrix["file"] = e.learn(t, index+"-words", func() []string { return []string{"--index", index} })
		case withModel:
			matrix["file"] = e.learn(t, index+"-model", func() []string {
				return []string{"--index", index, "--embeddings", model.url, "--embedding-model", model.name}
			})
		case withThesaurus:
			matrix["file"] = e.weighed(t, c)
		}
		served = append(served, matrix)
	}
	config := section{"expansion": r.expansion, "matrices": served, "redis": redis.section()}
	if r.embeds() {
		config["profiles"] = section{"soft": section{"mode": "soft", "rerank": "none"}}
		config["embeddings"] = section{"url": model.url, "model": model.name, "fields": []string{"body"}, "budget": widePatience}
	}
	return config
}

// awaitVectors waits until the vectors of what the last searches found are made.
func (a *akin) awaitVectors(tb testing.TB) {
	tb.Helper()
	waitFor(tb, 2*time.Hour, "the vectors of documents", func() error {
		if n := a.metric(tb, "akin_embeddings_waiting_documents"); n > 0 {
			return fmt.Errorf("%v wait", n)
		}
		return nil
	})
}

// rankThroughAkin ranks the queries through akin and makes sure that they were
// rewritten.
func rankThroughAkin(t *testing.T, a *akin, c *collection, r ranking) []measures {
	t.Helper()
	type count struct {
		what, metric string
		labels       []string
	}
	counts := []count{{"rewritten", requestsMetric, []string{rewrittenOutcome}}}
	if r.form == "saturated" { // another where the cluster does not say that it runs scripts
		counts = append(counts, count{"rewritten to the form", "akin_clauses_total", []string{rewrittenOutcome, `reason=""`}})
	}
	if r.embeds() { // the first search for each text has the vectors of its hits made
		for some := range slices.Chunk(c.queries, 50) { // of which fewer hits wait than may
			if r.expansion["mode"] == "auto" { // for the soft cosine to remember the hits
				rank(t, a.cluster, judgedIndexName(c)+"?akin_profile=soft", r.body, some)
			}
			rank(t, a.cluster, judgedIndexName(c), r.body, some)
			a.awaitVectors(t)
		}
	}
	if r.soft() || r.embeds() {
		counts = append(counts, count{"reranked", rerankedMetric, []string{rerankedResult}})
	}
	if r.feedback() {
		counts = append(counts, count{"with feedback", feedbackMetric, []string{`result="used"`}})
	}
	before := make([]float64, len(counts))
	for i, n := range counts {
		before[i] = a.metric(t, n.metric, n.labels...)
	}
	perQuery := rank(t, a.cluster, judgedIndexName(c), r.body, c.queries)
	// Words without neighbors are left alone, and a few queries have no others, as
	// function words are where akin knows them.
	least := len(c.queries) / 2
	if r.counted() != "" { // those that find enough stay as they are
		least = 1
	}
	if slices.Contains(usualCollections, strings.TrimSuffix(c.name, threeTermsOnly)) && r.with != withBuiltin && r.with != withModel {
		least = len(c.queries)
	}
	for i, n := range counts {
		got := int(a.metric(t, n.metric, n.labels...) - before[i])
		t.Logf("%s %s: %d of %d searches were %s", c.name, r.name, got, len(c.queries), n.what)
		if got < least {
			t.Errorf("%s %s: %d of %d searches were %s, want at least %d", c.name, r.name, got, len(c.queries), n.what, least)
		}
	}
	return perQuery
}

// longestReranked is how many the longest page may have that akin puts in order.
const longestReranked = 1000

// body is a search for the documents that are ranked.
func (r *ranking) body(text string) string {
	switch {
	case r.counted() != "":
		return countedBody(r.counted())(text)
	case r.soft(), r.embeds(): // which need the names of their hits
		return matchBody(text, longestReranked)
	}
	return wholeBody(text)
}

// checkFloors fails the test for every promised gain that was not reached.
func checkFloors(t *testing.T, stats rankStats) {
	t.Helper()
	for _, f := range floors {
		k := rankKey{f.engine, f.collection, f.ranking}
		if _, ran := stats[rankKey{f.engine, f.collection, direct}]; !ran {
			continue // the engine is not one of this run
		}
		if _, measured := stats[k]; !measured {
			t.Errorf("%s %s: the ranking %s was not measured", f.engine, f.collection, f.ranking)
			continue
		}
		if gain := stats.gain(k, f.measure); gain < f.gain {
			t.Errorf("%s %s %s: %s %+.2f %%, want at least %+.1f %%", f.engine, f.collection, f.ranking,
				measureNames[f.measure], gain, f.gain)
		}
	}
}

// checkFirstPages makes sure that no first page of a search for several words, all
// of which must match, is worse than that of the search as typed, and that of
// those for three words that found nothing at least half find something. In other
// collections than tunedCollections acronyms, which are as good as what they stand
// for, move hits as typed.
func checkFirstPages(t *testing.T, k rankKey, queries []judgedQuery, typed, through []measures) {
	t.Helper()
	better, worse, was, still := 0, 0, 0, 0
	for i, q := range queries {
		if len(strings.Fields(q.text)) == 1 { // words are not counted
			continue
		}
		if through[i].NDCG10 > typed[i].NDCG10 {
			better++
		}
		if through[i].NDCG10 < typed[i].NDCG10 {
			worse++
		}
		if typed[i].Empty {
			was++
		}
		if through[i].Empty {
			still++
		}
	}
	t.Logf("%v: of %d first pages %d are better and %d worse; %d searches found nothing, %d still do", k, len(queries), better, worse, was, still)
	of, three := strings.CutSuffix(k.collection, threeTermsOnly)
	if !slices.Contains(tunedCollections, of) {
		return
	}
	if worse > 0 {
		t.Errorf("%v: %d first pages are worse than those of the search as typed", k, worse)
	}
	if three && 2*still > was {
		t.Errorf("%v: of %d searches that found nothing %d still do, want at most half", k, was, still)
	}
}

// checkLosses fails the test where a ranking by the saturated form is
// significantly worse than its baseline on a collection, in MAP or nDCG@10.
func checkLosses(t *testing.T, stats rankStats) {
	t.Helper()
	for k, got := range stats {
		if strings.HasPrefix(k.ranking, direct) || slices.Contains([]string{"linear", "grouped", "low", "words-low", "model-low"}, k.ranking) {
			continue
		}
		base := stats[k.baseline()]
		for _, m := range []int{mapMeasure, ndcgMeasure} {
			if p := got.P.all()[m]; p < .05 && got.all()[m] < base.all()[m] {
				t.Errorf("%v: %s %.4f, %s %.4f, p = %.4f", k, measureNames[m], got.all()[m], k.baseline().ranking, base.all()[m], p)
			}
		}
	}
}
