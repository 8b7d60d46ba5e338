package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// alternativeStatsFile has the measures that docs/comparison.md shows.
const (
	alternativeStatsFile = "testdata/alternative_stats.txt"
	comparisonDoc        = "../docs/comparison.md"
)

// The ways to find related words that are compared with akin, and what they are
// called in docs/comparison.md.
var alternatives = []struct{ ranking, name string }{
	{"akin", "akin, matrix of the index"},
	{"akin-thesaurus", "akin, the thesaurus at similarity 0.2"},
	{"synonyms-thesaurus", "synonym filter, the thesaurus"},
	{"synonyms-thesaurus-weak", "the same as a second clause, boost 0.2"},
	{"synonyms-neighbors", "synonym filter, the 3 nearest words of akin's matrix"},
	{"synonyms-neighbors-weak", "the same as a second clause, boost 0.2"},
}

// alternativeIndex is the index of a collection that a team makes for synonyms:
// that of the analyzer "english", with a filter for searches.
func alternativeIndex(thesaurus, neighbors []string) section {
	english := func(filters ...string) section { return section{"tokenizer": "standard", "filter": filters} }
	return section{
		"settings": section{"number_of_shards": 1, "number_of_replicas": 0, "analysis": section{
			"filter": section{
				"possessive": section{"type": "stemmer", "language": "possessive_english"},
				"stop_words": section{"type": "stop", "stopwords": "_english_"},
				"thesaurus":  section{"type": "synonym_graph", "lenient": true, "synonyms": thesaurus},
				"neighbors":  section{"type": "synonym_graph", "lenient": true, "synonyms": neighbors},
			},
			"analyzer": section{
				"synonyms-thesaurus": english("possessive", "lowercase", "thesaurus", "stop_words", "porter_stem"),
				"synonyms-neighbors": english("possessive", "lowercase", "stop_words", "porter_stem", "neighbors"),
			},
		}},
		"mappings": section{"properties": section{"uid": section{"type": "keyword"}, "body": section{"type": "text", "analyzer": "english"}}},
	}
}

// TestAlternatives ranks judged collections through akin, and by synonyms at
// search time; one collection if none are chosen.
func TestAlternatives(t *testing.T) {
	t.Parallel()
	collections := judgedCollections(t)
	if os.Getenv("AKIN_E2E_COLLECTIONS") == "" {
		collections = collections[:1]
	}
	stats := rankStats{}
	eachEngine(t, func(t *testing.T, e *engine) {
		if e.name != qualityEngine {
			return // which measures all rankings
		}
		root := dataFolder()
		file := filepath.Join(root, "thesaurus", "oewn_synonyms.solr.txt")
		var thesaurus []string
		eachLine(t, file, func(line string) error {
			if !strings.HasPrefix(line, "#") {
				thesaurus = append(thesaurus, line)
			}
			return nil
		})
		for _, c := range collections {
			_, matrix := e.judged(t, c)
			index := "akin-e2e-alternatives-" + c.name
			e.makeIndex(t, index, toJSON(t, alternativeIndex(thesaurus, nearestWords(t, matrix))))
			e.index(t, index, withIDs(c.docs))
			synonyms := filepath.Join(newDir(t, "thesaurus"), "synonyms.akin")
			mustAkin(t, "matrix", "build", "--from-thesaurus", file, "--cluster", e.url, "--index", index, "--field", "body", "--out", synonyms)
			a := startAkin(t, section{
				"cluster": section{"urls": []string{e.url}}, "expansion": section{"budget": "10s"},
				"profiles": section{"akin": section{"matrices": []string{"main"}}, "akin-thesaurus": section{"matrices": []string{"thesaurus"}}},
				"matrices": []section{{"name": "main", "file": matrix}, {"name": "thesaurus", "file": synonyms}},
			})
			a.awaitMatrix(t, "main")
			a.awaitMatrix(t, "thesaurus")
			directly := rankBy(t, c, e.cluster, index, "", "")
			key := func(ranking string) rankKey { return rankKey{e.name, c.name, ranking} }
			stats[key(direct)] = rankStat{measures: meanMeasures(directly)}
			for _, alternative := range alternatives {
				name := alternative.ranking
				var got []measures
				if strings.HasPrefix(name, "akin") {
					got = rankBy(t, c, a.cluster, index, "&akin_profile="+name, "")
				} else {
					got = rankBy(t, c, e.cluster, index, "", name)
				}
				stats[key(name)] = rankStat{meanMeasures(got), significance(got, directly)}
			}
		}
	})
	checkRankStats(t, alternativeStatsFile, stats)
	t.Log("\n" + formatRankStats(t.Name(), stats))
}

// rankBy judges what a cluster answers to every query, with synonyms of an
// analyzer: "" for none, and where its name ends in -weak in a second clause.
func rankBy(t *testing.T, c *collection, on cluster, index, parameters, synonyms string) []measures {
	t.Helper()
	perQuery := make([]measures, len(c.queries))
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(4)
	for i, q := range c.queries {
		group.Go(func() error {
			query := fmt.Sprintf(`{"match":{"body":%s}}`, quote(q.text))
			if analyzer, weak := strings.CutSuffix(synonyms, "-weak"); weak {
				query = fmt.Sprintf(`{"bool":{"should":[%s,{"match":{"body":{"query":%s,"analyzer":%q,"boost":0.2}}}]}}`, query, quote(q.text), analyzer)
			} else if analyzer != "" {
				query = fmt.Sprintf(`{"match":{"body":{"query":%s,"analyzer":%q}}}`, quote(q.text), analyzer)
			}
			hits, err := on.search(ctx, "/"+index+"/_search?filter_path=hits.hits.fields,_shards"+parameters,
				fmt.Sprintf(`{"query":%s,"size":%d,"_source":false,%s}`, query, wholeList, idColumn))
			if err != nil {
				return fmt.Errorf("query %s: %w", q.id, err)
			}
			perQuery[i] = judge(hits.ids(), q.grades)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return perQuery
}

// nearestWords returns lines of a synonym file: each term of a matrix with its
// three nearest neighbors.
func nearestWords(t *testing.T, matrix string) (lines []string) {
	t.Helper()
	tsv := filepath.Join(newDir(t, "export"), "s.tsv")
	mustAkin(t, "matrix", "export", "--out", tsv, matrix)
	type neighbor struct {
		term       string
		similarity float64
	}
	rows := map[string][]neighbor{}
	eachLine(t, tsv, func(line string) error {
		cells := strings.Split(line, "\t")
		similarity, err := strconv.ParseFloat(cells[2], 64)
		if cells[0] != cells[1] {
			rows[cells[0]] = append(rows[cells[0]], neighbor{cells[1], similarity})
		}
		return err
	})
	for _, term := range slices.Sorted(maps.Keys(rows)) {
		row := rows[term]
		slices.SortStableFunc(row, func(a, b neighbor) int { return cmp.Compare(b.similarity, a.similarity) })
		words := []string{term}
		for _, n := range row[:min(3, len(row))] {
			words = append(words, n.term)
		}
		lines = append(lines, term+" => "+strings.Join(words, ", "))
	}
	return lines
}

// alternativesTable writes the gains of the alternatives as Markdown.
func alternativesTable(stats rankStats) string {
	var rows []gainsRow
	for _, alternative := range alternatives {
		rows = append(rows, gainsRow{rankKey{engine: qualityEngine, ranking: alternative.ranking}, alternative.name})
	}
	return gainsTable(stats, "| MAP / nDCG@10 | five, mean | five, least | titles | questions |", tunedCollections, heldOutCollections, rows)
}

func TestComparisonDocShowsTheAcceptedMeasures(t *testing.T) {
	checkDocShows(t, comparisonDoc, alternativeStatsFile, alternativesTable(acceptedStats(t, alternativeStatsFile)))
}
