package e2e

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// The file of what was measured on long documents, and the page that shows it.
const (
	longStatsFile = "testdata/long_stats.txt"
	segmentsDoc   = "../docs/segments.md"
)

// The ends of the names of collections of long documents.
const (
	joinedSuffix  = "-joined"
	threadsSuffix = "-threads"
)

// The collections of long documents: the joined ones that defaults could be
// chosen on, those they were checked on, and the threads of a forum.
var longCollections = []string{
	"cran" + joinedSuffix, "med" + joinedSuffix, "cisi" + joinedSuffix, "npl" + joinedSuffix, "scifact_train" + joinedSuffix,
	"semeval_ql" + threadsSuffix,
}

// longQueries is how many queries of a collection are measured at most.
const longQueries = 225

// joinedDocuments is how many documents are joined in one.
const joinedDocuments = 10

// A longDocument is a document in parts.
type longDocument struct {
	id    string
	parts []string
}

func (d longDocument) document() document {
	words := make([]int, len(d.parts))
	sum := 0
	for i, part := range d.parts {
		words[i] = max(len(strings.Fields(part)), 1)
		sum += words[i]
	}
	segments := make([]section, len(d.parts))
	for i, part := range d.parts {
		segments[i] = section{"text": part, "position": i + 1, "share": float64(words[i]) / float64(sum), "godwin": godwinWeight(i+1, len(d.parts))}
	}
	return document{d.id, section{"body": strings.Join(d.parts, "\n\n"), "segments": segments}}
}

// drawn is a number that looks like one by chance, of these texts.
func drawn(texts ...string) uint64 {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return binary.BigEndian.Uint64(sum[:])
}

// join makes long documents of a collection, ten of its own in each, every one
// in exactly one place. A document that is relevant to a query comes with nine
// that are not relevant to any of the queries that it is relevant to, as far as
// that is possible; a long document is relevant as its most relevant part is.
// It also returns how often that was not possible. The groups and the places in
// them depend on the ids only.
func join(c *collection) (long []longDocument, queries []judgedQuery, clashes int) {
	relevantTo := map[string][]int{}
	for n, q := range c.queries {
		for id, grade := range q.grades {
			if grade > 0 {
				relevantTo[id] = append(relevantTo[id], n)
			}
		}
	}
	order := slices.Clone(c.docs)
	slices.SortFunc(order, func(a, b document) int { // those that are hardest to place first
		return cmp.Or(cmp.Compare(len(relevantTo[b.id]), len(relevantTo[a.id])), cmp.Compare(drawn(c.name, a.id), drawn(c.name, b.id)))
	})
	groups := make([][]document, (len(order)+joinedDocuments-1)/joinedDocuments)
	taken := make([]map[int]bool, len(groups)) // the queries that a group has a relevant document of
	for _, d := range order {
		best, least := -1, 0
		for k := range groups {
			g := int((drawn(c.name, "group", d.id) + uint64(k)) % uint64(len(groups)))
			if len(groups[g]) == joinedDocuments {
				continue
			}
			cost := 0
			for _, n := range relevantTo[d.id] {
				if taken[g][n] {
					cost++
				}
			}
			if best < 0 || cost < least {
				best, least = g, cost
			}
			if cost == 0 {
				break
			}
		}
		groups[best] = append(groups[best], d)
		clashes += least
		if taken[best] == nil {
			taken[best] = map[int]bool{}
		}
		for _, n := range relevantTo[d.id] {
			taken[best][n] = true
		}
	}
	in := map[string]string{}
	for g, group := range groups {
		slices.SortFunc(group, func(a, b document) int {
			return cmp.Compare(drawn(c.name, "place", a.id), drawn(c.name, "place", b.id))
		})
		one := longDocument{id: strconv.Itoa(g)}
		for _, d := range group {
			in[d.id] = one.id
			if part := strings.TrimSpace(fmt.Sprint(d.fields["body"])); part != "" {
				one.parts = append(one.parts, part)
			}
		}
		long = append(long, one)
	}
	for _, q := range c.queries {
		grades := map[string]float64{}
		for id, grade := range q.grades {
			grades[in[id]] = max(grades[in[id]], grade)
		}
		queries = append(queries, judgedQuery{q.id, q.text, grades})
	}
	return long, queries, clashes
}

// loadLong loads a collection of long documents.
func loadLong(t *testing.T, name string) *collection {
	t.Helper()
	long := &collection{name: name}
	var docs []longDocument
	if from, threads := strings.CutSuffix(name, threadsSuffix); threads {
		long.queries = loadCollection(t, from).queries
		docs = loadThreads(t, from)
	} else {
		var clashes int
		docs, long.queries, clashes = join(loadCollection(t, strings.TrimSuffix(name, joinedSuffix)))
		t.Logf("%s: %d documents, %d relevant ones are together with another of their query", name, len(docs), clashes)
	}
	if len(long.queries) > longQueries {
		slices.SortFunc(long.queries, func(a, b judgedQuery) int { return cmp.Compare(drawn(name, a.id), drawn(name, b.id)) })
		long.queries = long.queries[:longQueries]
	}
	for _, d := range docs {
		long.docs = append(long.docs, d.document())
	}
	return long
}

// loadThreads returns threads of a forum: the title, the text, and the comments.
func loadThreads(t *testing.T, name string) (threads []longDocument) {
	t.Helper()
	root := check.DataFolder(t)
	eachLine(t, filepath.Join(root, name, "corpus.jsonl"), func(line string) error {
		var d struct {
			ID       string `json:"_id"`
			Title    string
			Text     string
			Comments []string
		}
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			return err
		}
		parts := append([]string{d.Title, d.Text}, d.Comments...)
		parts = slices.DeleteFunc(parts, func(s string) bool { return strings.TrimSpace(s) == "" })
		threads = append(threads, longDocument{d.ID, parts})
		return nil
	})
	return threads
}

// chosenLong are the collections of this run: none, unless they are asked for.
func chosenLong() []string {
	chosen := os.Getenv("AKIN_E2E_COLLECTIONS")
	if chosen == "all" {
		return longCollections
	}
	var names []string
	for _, name := range longCollections {
		from, _, _ := strings.Cut(name, "-")
		if slices.Contains(strings.Split(chosen, ","), from) {
			names = append(names, name)
		}
	}
	return names
}

// longIndex is an index as docs/segments.md asks for.
const longIndex = `{"settings":{"number_of_shards":1,"number_of_replicas":0,"refresh_interval":-1},"mappings":{"properties":{
	"uid":{"type":"keyword"},"body":{"type":"text","analyzer":"english"},
	"segments":{"type":"nested","properties":{"text":{"type":"text","analyzer":"english"},"position":{"type":"integer"},"share":{"type":"float"},"godwin":{"type":"float"}}}}}}`

// The ways to score segments.
var (
	longAggregates = []string{"max", "avg", "sum", "first-heavy", "length", "godwin"}
	longCombines   = []string{"add", "replace"}
)

// wholeText is the ranking of akin without segments.
const wholeText = "whole"

// What ends the name of a ranking of segments that adds no related words, and of
// one whose S was learned from the whole texts and from the segments.
const (
	withoutS  = "-plain"
	withParts = "-parts"
)

// nothingRelated are vectors of words that no document has.
const nothingRelated = "xyzzyx 1 0\nyzxxzy 0.9 0.1\n"

// longProfiles returns a profile for each way to score segments, and that for
// none.
func longProfiles() map[string]section {
	profiles := map[string]section{wholeText: {"segments": []section{}}}
	for _, aggregate := range longAggregates {
		for _, combine := range longCombines {
			profiles[aggregate+"-"+combine] = section{"segments": segmentsOf(section{"aggregate": aggregate, "combine": combine})}
		}
	}
	for name, p := range maps.Clone(profiles) {
		p["matrices"] = []string{"main"}
		if name != wholeText {
			profiles[name+withoutS] = section{"segments": p["segments"], "matrices": []string{"nothing"}}
		}
		if name == "max-add" || name == "first-heavy-add" {
			profiles[name+withParts] = section{"segments": p["segments"], "matrices": []string{"parts"}}
		}
	}
	return profiles
}

// TestLongDocuments ranks the judged queries on documents that are long, by
// their whole texts and by their segments, with S learned from the whole texts
// with the defaults, and without; some with S learned from the segments, too. It
// measures what AKIN_E2E_COLLECTIONS names.
func TestLongDocuments(t *testing.T) {
	e := theEngine(t, qualityEngine)
	if e == nil {
		return
	}
	stats := rankStats{}
	for _, name := range chosenLong() {
		t.Run(name, func(t *testing.T) {
			c, index, profiles := loadLong(t, name), "akin-e2e-long-"+name, longProfiles()
			e.makeIndex(t, index, longIndex)
			e.index(t, index, withIDs(c.docs))
			e.merge(t, index)
			learned := func(fields string) string {
				return build(t, "--cluster", e.url, "--index", index, "--language-model", "none", "--field", fields)
			}
			a := setupWide(t, e, section{
				"profiles": profiles,
				"matrices": matrices("main", learned("body"), "parts", learned("body,segments.text"), "nothing", relatedFile(t, nothingRelated)),
			})
			directly := rank(t, e.cluster, index, modeBody, c.queries)
			stats.note(e, name, direct, directly, nil)
			for _, profile := range slices.Sorted(maps.Keys(profiles)) {
				stats.note(e, name, profile, rank(t, a.cluster, index+"?akin_profile="+profile, modeBody, c.queries), directly)
			}
		})
	}
	checkRankStats(t, longStatsFile, stats)
}

// longTable writes the gains of the ways to score segments between which readers
// choose as Markdown: the mean and the least of the joined collections, and in
// threads.
func longTable(stats rankStats) string {
	rankings := []string{wholeText}
	for _, aggregate := range longAggregates {
		rankings = append(rankings, aggregate+"-add")
	}
	rankings = append(rankings, "max-replace", "max-add"+withoutS, "max-add"+withParts, "first-heavy-add"+withParts)
	var rows []gainsRow
	for _, ranking := range rankings {
		rows = append(rows, gainsRow{rankKey{engine: qualityEngine, ranking: ranking}, ranking})
	}
	last := len(longCollections) - 1
	return gainsTable(stats, "| MAP / nDCG@10 | joined, mean | joined, least | threads |", longCollections[:last], longCollections[last:], rows)
}

func TestSegmentsDocShowsTheAcceptedMeasures(t *testing.T) {
	stats := acceptedStats(t, longStatsFile)
	checkDocShows(t, segmentsDoc, longStatsFile, longTable(stats))
	for _, aggregate := range longAggregates { // of which the document says that replace ranks worse than direct searches
		for _, m := range []int{mapMeasure, ndcgMeasure} {
			mean := 0.0
			for _, c := range longCollections[:len(longCollections)-1] {
				mean += stats.gain(rankKey{qualityEngine, c, aggregate + "-replace"}, m)
			}
			if aggregate != "max" && (mean >= 0 || math.IsNaN(mean)) {
				t.Errorf("%s-replace is not below the direct search: %s", aggregate, measureNames[m])
			}
		}
	}
}
