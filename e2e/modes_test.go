package e2e

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/esclient"
)

// modesDoc shows how good the modes are.
const modesDoc = "../docs/modes.md"

// The rankings of the modes, by the names of the profiles, in the order in which
// the document has them. The measure is the soft cosine alone, exact that for all
// hits, and cosine the mode hard with nothing in S.
var modeRankings = []string{"bm25", "soft", "softcosine", "measure", "exact", "hard", "cosine"}

// staleRankings are those of the mode softcosine by the soft norms of an S that
// was learned from half of the documents.
var staleRankings = []string{"softcosine-stale", "exact-stale"}

// modeFloors are the least gains of MAP over the direct search, in hundredths.
// They lie under what was measured (testdata/mode_stats.txt).
var modeFloors = map[rankKey]float64{
	{qualityEngine, "med", "bm25"}: 12, {qualityEngine, "med", "measure"}: 15, {qualityEngine, "med", "hard"}: 15,
	{qualityEngine, "cran", "bm25"}: 2, {qualityEngine, "cran", "measure"}: 2.5,
}

// TestModes ranks the judged queries in each mode, on indices that were made as
// docs/modes.md says, with S learned from them: the default one, and rows of
// 30 neighbors for the mode hard.
func TestModes(t *testing.T) {
	long(t)
	t.Parallel()
	e := theEngine(t, qualityEngine)
	if e == nil {
		return
	}
	stats := rankStats{}
	for _, c := range judgedCollections(t) {
		t.Run(c.name, func(t *testing.T) {
			index := "akin-e2e-modes-" + c.name
			a := serveModes(t, e, index, c)
			directly := rank(t, e.cluster, index, modeBody, c.queries)
			stats.note(e, c.name, direct, directly, nil)
			note := func(name, mode string) {
				stats.note(e, c.name, name, rank(t, a.cluster, index+"?akin_profile="+mode, modeBody, c.queries), directly)
				a.checkExplained(t, index+"?akin_profile="+mode, modeBody(c.queries[0].text), modeForms[mode][0], modeForms[mode][1], "")
			}
			for _, mode := range modeRankings {
				if s := a.matrixOf[mode]; s != "" {
					e.storeNorms(t, index, "body", a.weights, s)
				}
				note(mode, mode)
			}
			checkModesUsed(t, a.akin, c)
			for i, mode := range []string{"softcosine", "exact"} {
				e.storeStaleNorms(t, index, a, c, mode)
				note(staleRankings[i], mode)
			}
		})
	}
	for key, least := range modeFloors {
		m, ran := stats[key]
		base := stats[rankKey{key.engine, key.collection, direct}]
		if gain := gainOver(m.MAP, base.MAP); ran && gain < least {
			t.Errorf("%v: MAP %+.2f %%, want at least %+.1f %%", key, gain, least)
		}
	}
	for key, m := range stats {
		base := stats[rankKey{key.engine, key.collection, direct}]
		for _, of := range []int{mapMeasure, ndcgMeasure} {
			if p := m.P.all()[of]; (key.ranking == "soft" || key.ranking == "softcosine") && p < .05 && m.all()[of] < base.all()[of] {
				t.Errorf("%v: %s %.4f, directly %.4f, p = %.4f", key, measureNames[of], m.all()[of], base.all()[of], p)
			}
		}
	}
	checkRankStats(t, modeStatsFile, stats)
}

// modeForms are the form and the phase of each profile.
var modeForms = map[string][2]string{
	"bm25": {"saturated", "rescore"}, "soft": {"linear", "rerank"}, "measure": {"linear", "rerank"}, "hard": {"hard", "query"}, "cosine": {"hard", "query"},
	"softcosine": {"saturated + softcosine", "rescore"}, "exact": {"softcosine", "query"},
}

// A modesAkin has a profile for each mode, the file of the weights, and for those
// that need soft norms that of S.
type modesAkin struct {
	*akin

	weights  string
	matrixOf map[string]string
}

// serveModes indexes a collection, and starts akin before it.
func serveModes(t *testing.T, e *engine, index string, c *collection) modesAkin {
	t.Helper()
	e.makeHardIndex(t, index, hardSetting{scripted: true, shards: 1, sorted: true}, "english", c.docs)
	files := e.makeHardFiles(t, index, c)
	_, whole := e.judged(t, c)
	e.storeNorms(t, index, "body", files.weights, whole)
	e.merge(t, index) // statistics count the old versions of documents until they are merged away
	a := setupWide(t, e, section{
		"profiles": section{
			"bm25":    section{"matrices": []string{"whole"}},
			"soft":    section{"matrices": []string{"whole"}, "mode": "soft"},
			"measure": section{"matrices": []string{"whole"}, "mode": "soft", "soft_weight": 1},
			"hard":    section{"matrices": []string{"short"}, "mode": "hard"},
			"cosine":  section{"matrices": []string{"empty"}, "mode": "hard"},
			// The weight was chosen on the same collections, by figures of another program.
			"softcosine": section{"matrices": []string{"whole"}, "mode": "softcosine", "soft_weight": 0.15},
			"exact":      section{"matrices": []string{"short"}, "mode": "softcosine", "soft_weight": 1},
		},
		"matrices": matrices("whole", whole, "short", files.matrix, "empty", files.weights),
		"weights":  matrices("weights", files.weights),
	})
	return modesAkin{a, files.weights, map[string]string{"softcosine": whole, "exact": files.matrix}}
}

// storeStaleNorms stores the soft norms by an S of half of the documents, under
// the id of that of a profile, as if they were by it.
func (e *engine) storeStaleNorms(t *testing.T, index string, a modesAkin, c *collection, mode string) {
	t.Helper()
	s, more := readMatrix(t, a.matrixOf[mode]), []string{}
	if mode == "exact" {
		more = []string{"--top", strconv.Itoa(hardNeighbors)}
	}
	var half []string // the same documents every time
	for k := 0; k < len(c.docs); k += 2 {
		half = append(half, c.docs[k].id)
	}
	query := toJSON(t, section{"ids": section{"values": half}})
	old := build(t, append([]string{"--cluster", e.url, "--index", index, "--field", "body", "--language-model", "none", "--query", query}, more...)...)
	e.storeNorms(t, index, "body", a.weights, old)
	e.must(t, http.MethodPost, "/"+index+"/_update_by_query?refresh=true", toJSON(t, section{
		"query": section{"exists": section{"field": "akin_soft_norm.body"}},
		"script": section{
			"source": "ctx._source.akin_soft_norm_matrix.body = params.id",
			"params": section{"id": esclient.SoftNormID(weightsID(readMatrix(t, a.weights)), s.Checksum())},
		},
	}))
	e.merge(t, index)
}

// checkModesUsed makes sure that searches were ranked in their modes.
func checkModesUsed(t *testing.T, a *akin, c *collection) {
	t.Helper()
	queries := float64(len(c.queries))
	least := queries / 2 // some collections have texts that are longer than akin expands
	if slices.Contains(usualCollections, c.name) {
		least = queries
	}
	if n := a.metric(t, rerankedMetric, rerankedResult); n < 2*least {
		t.Errorf("%s: %v of %v searches were reranked", c.name, n, 2*queries)
	}
	rankings := float64(len(modeRankings))
	if n := a.metric(t, requestsMetric, rewrittenOutcome); n < rankings*least {
		t.Errorf("%s: %v of %v searches were rewritten", c.name, n, rankings*queries)
	}
}

// modesTable writes the gains of every mode as Markdown.
func modesTable(stats rankStats) string {
	var rows []gainsRow
	for _, ranking := range modeRankings {
		rows = append(rows, gainsRow{rankKey{engine: qualityEngine, ranking: ranking}, ranking})
	}
	return gainsTable(stats, "| MAP / nDCG@10 | five, mean | five, least | titles | questions |", tunedCollections, heldOutCollections, rows)
}

// A gainsRow is a row of a table of gains: a ranking of an engine, and its name.
type gainsRow struct {
	of   rankKey
	name string
}

// gainsTable writes the gains over the direct search in hundredths, MAP / nDCG@10,
// as a Markdown table: the mean and the least of the collections first named, and
// the gain on each of the others, with a star where it is significant.
func gainsTable(stats rankStats, head string, together, others []string, rows []gainsRow) string {
	var b strings.Builder
	b.WriteString(head + "\n|" + strings.Repeat("---|", 3+len(others)) + "\n")
	for _, row := range rows {
		mean, least := [2]float64{}, [2]float64{math.Inf(1), math.Inf(1)}
		for _, c := range together {
			for i, m := range []int{mapMeasure, ndcgMeasure} {
				gain := stats.gain(rankKey{row.of.engine, c, row.of.ranking}, m)
				mean[i] += gain / float64(len(together))
				least[i] = min(least[i], gain)
			}
		}
		fmt.Fprintf(&b, "| %s | %+.1f / %+.1f | %+.1f / %+.1f |", row.name, mean[0], mean[1], least[0], least[1])
		for _, c := range others {
			k := rankKey{row.of.engine, c, row.of.ranking}
			fmt.Fprintf(&b, " %s / %s |", stats.starred(k, mapMeasure), stats.starred(k, ndcgMeasure))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// medAndNPL says what a ranking gains on the collection with the largest gains,
// and on that with the least.
func medAndNPL(stats rankStats, engine, ranking string) string {
	gain := func(collection string) float64 { return stats.gain(rankKey{engine, collection, ranking}, mapMeasure) }
	return fmt.Sprintf("%+.1f %% of MAP on med and %+.1f %% on npl", gain("med"), gain("npl"))
}

func TestModesDocShowsTheAcceptedMeasures(t *testing.T) {
	stats := acceptedStats(t, modeStatsFile)
	checkDocShows(t, modesDoc, modeStatsFile, modesTable(stats))
	checkDocShows(t, modesDoc, modeStatsFile, medAndNPL(stats, qualityEngine, "measure"))
	var stale []string
	for _, ranking := range staleRankings {
		mean := [2]float64{}
		for _, c := range tunedCollections {
			for i, of := range []int{mapMeasure, ndcgMeasure} {
				mean[i] += stats.gain(rankKey{qualityEngine, c, ranking}, of) / float64(len(tunedCollections))
			}
		}
		stale = append(stale, fmt.Sprintf("%+.1f / %+.1f", mean[0], mean[1]))
	}
	checkDocShows(t, modesDoc, modeStatsFile, strings.Join(stale, " for softcosine and ")+" for exact")
}
