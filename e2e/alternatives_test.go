package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/simmatrix"
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
	{"akin-thesaurus", "akin, the single words of the thesaurus at similarity 0.2"},
	{"akin-expressions", "the same, with its expressions"},
	{"akin-weighed", "akin, matrix of the index and the thesaurus weighed by it"},
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
	long(t)
	t.Parallel()
	e := theEngine(t, qualityEngine) // which measures all rankings
	if e == nil {
		return
	}
	collections := judgedCollections(t)
	if os.Getenv("AKIN_E2E_COLLECTIONS") == "" {
		collections = collections[:1]
	}
	stats := rankStats{}
	file := thesaurusFile(t)
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
		synonyms := build(t, append([]string{"--from-thesaurus", file}, e.of(index, "body")...)...)
		a := setupWide(t, e, section{
			"profiles": section{
				"akin":             section{"matrices": []string{"main"}},
				"akin-thesaurus":   section{"matrices": []string{"thesaurus"}, "expressions": false},
				"akin-expressions": section{"matrices": []string{"thesaurus"}},
				"akin-weighed":     section{"matrices": []string{"both"}},
			},
			"matrices": matrices("main", matrix, "thesaurus", synonyms, "both", e.weighed(t, c)),
		})
		directly := rank(t, e.cluster, index, wholeBody, c.queries)
		stats.note(e, c.name, direct, directly, nil)
		for _, alternative := range alternatives {
			name := alternative.ranking
			if strings.HasPrefix(name, "akin") {
				stats.note(e, c.name, name, rank(t, a.cluster, index+"?akin_profile="+name, wholeBody, c.queries), directly)
			} else {
				stats.note(e, c.name, name, rank(t, e.cluster, index, func(text string) string { return synonymBody(text, name) }, c.queries), directly)
			}
		}
	}
	checkRankStats(t, alternativeStatsFile, stats)
}

// synonymBody is a search by the synonyms of an analyzer, where the name of the
// ranking ends in -weak in a second clause.
func synonymBody(text, ranking string) string {
	query := fmt.Sprintf(`{"match":{"body":{"query":%s,"analyzer":%q}}}`, quote(text), ranking)
	if analyzer, weak := strings.CutSuffix(ranking, "-weak"); weak {
		query = fmt.Sprintf(`{"bool":{"should":[{"match":{"body":%[1]s}},{"match":{"body":{"query":%[1]s,"analyzer":%[2]q,"boost":0.2}}}]}}`, quote(text), analyzer)
	}
	return fmt.Sprintf(`{"query":%s,"size":%d,"_source":false,%s}`, query, wholeList, idColumn)
}

// nearestWords returns lines of a synonym file: each term of a matrix with its
// three nearest neighbors.
func nearestWords(t *testing.T, matrix string) (lines []string) {
	t.Helper()
	type neighbor struct {
		term       string
		similarity float64
	}
	rows := map[string][]neighbor{}
	for line := range strings.Lines(exported(t, matrix)) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		similarity, err := strconv.ParseFloat(cells[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		if cells[0] != cells[1] && !simmatrix.IsExpression(cells[0]) && !simmatrix.IsExpression(cells[1]) {
			rows[cells[0]] = append(rows[cells[0]], neighbor{cells[1], similarity})
		}
	}
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
