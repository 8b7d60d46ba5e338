package e2e

import (
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const likeStatsFile = "testdata/like_stats.txt"

// likeRankings are what is measured of more_like_this: with words of any number
// of documents, and with those that five documents have, as by default.
var likeRankings = []struct{ name, direct, options string }{
	{"like", direct, `"min_term_freq":1,"min_doc_freq":1`},
	{"like-five", direct + "-five", `"min_term_freq":1`},
}

// TestMoreLikeThisRelevance ranks by judged queries as texts of more_like_this,
// directly and through akin.
func TestMoreLikeThisRelevance(t *testing.T) {
	long(t)
	t.Parallel()
	e := theEngine(t, qualityEngine)
	if e == nil {
		return
	}
	stats := rankStats{}
	for _, c := range judgedCollections(t) {
		if isMixed(c) {
			continue
		}
		index, matrix := e.judged(t, c)
		a := setup(t, e, section{"expansion": section{"more_like_this": true}, "matrices": matrices("m", matrix)})
		for _, r := range likeRankings {
			body := func(text string) string {
				return fmt.Sprintf(`{"query":{"more_like_this":{"fields":["body"],"like":%s,%s}},"size":%d,"_source":false,%s}`,
					quote(text), r.options, wholeList, idColumn)
			}
			directly := rank(t, e.cluster, index, body, c.queries)
			stats.note(e, c.name, r.direct, directly, nil)
			stats.note(e, c.name, r.name, rank(t, a.cluster, index, body, c.queries), directly)
		}
	}
	checkRankStats(t, likeStatsFile, stats)
}

func TestQueriesDocShowsTheAcceptedMeasures(t *testing.T) {
	var rows []gainsRow
	asSpans := strings.NewReplacer(`"`, "", ":", ": ", ",", "`, `")
	for _, r := range likeRankings {
		rows = append(rows, gainsRow{rankKey{engine: qualityEngine, ranking: r.name}, "`" + asSpans.Replace(r.options) + "`"})
	}
	table := gainsTable(acceptedStats(t, likeStatsFile), "| MAP / nDCG@10 | five, mean | five, least | titles | questions |", tunedCollections, heldOutCollections, rows)
	checkDocShows(t, filepath.Join(repository, "docs", "queries.md"), likeStatsFile, table)
}

// likeFrequencies are how many of 40 documents have a word in the field body;
// half as many have it in title, but "rare", which all have there.
var likeFrequencies = map[string]int{"one": 1, "few": 4, "rare": 5, "some": 9, "several": 14, "many": 22, "most": 34}

// TestMoreLikeThisIsExpandedByTheWordsThatTheEngineChooses compares the words,
// and how much each counts, with those of the engine's own query.
func TestMoreLikeThisIsExpandedByTheWordsThatTheEngineChooses(t *testing.T) {
	const index = "akin-e2e-like"
	docs := make([]document, 40)
	for i := range docs {
		body, title := []string{"filler"}, []string{"filler"} // all documents count for the engine
		for word, n := range likeFrequencies {
			if i < n {
				body = append(body, word)
			}
			if i < n/2 || word == "rare" {
				title = append(title, word)
			}
		}
		docs[i] = document{strconv.Itoa(i), section{"body": strings.Join(body, " "), "title": strings.Join(title, " ")}}
	}
	var pairs strings.Builder
	for word := range likeFrequencies {
		pairs.WriteString(word + "\trelated" + word + "\t0.5\n")
		docs[0].fields["body"] = docs[0].fields["body"].(string) + " related" + word
		docs[0].fields["title"] = docs[0].fields["title"].(string) + " related" + word
	}
	const many, some = `"Most one many several many few","several many some rare","most unknown several"`, `"Some rare"`
	fields := func(names, options string) string { return `"fields":` + names + options + `,"like":` }
	var queries []string
	for _, options := range []string{
		``, `,"min_term_freq":1`, `,"min_term_freq":1,"min_doc_freq":1`, `,"min_term_freq":1,"min_doc_freq":1,"max_query_terms":4`,
		`,"min_term_freq":1,"max_doc_freq":14`, `,"min_term_freq":1,"min_word_length":5`, `,"min_term_freq":1,"max_word_length":4`,
		`,"min_term_freq":1,"stop_words":["some","most"]`, `,"min_term_freq":3,"minimum_should_match":1,"boost":2`,
		`,"min_term_freq":1,"boost_terms":0.5`, `,"min_term_freq":1,"min_doc_freq":1,"max_query_terms":3,"boost_terms":3`,
		`,"min_term_freq":1,"unlike":["Many","rare nothing"]`, `,"min_term_freq":1,"unlike":"several","boost_terms":1`,
	} {
		for _, names := range []string{`["body"]`, `["title","body"]`} {
			queries = append(queries, fields(names, options)+`[`+many+`]`,
				fields(names, options)+`[{"_index":"`+index+`","doc":{"body":[`+many+`],"number":3}},{"doc":{"body":`+some+`}}]`,
				fields(names, options)+`[`+many+`,{"doc":{"body":`+some+`,"title":`+some+`}}]`)
			if strings.Contains(options, `"min_term_freq":1`) {
				queries = append(queries, fields(names, options)+`[{"_id":"3"},{"_index":"`+index+`","_id":"8"},{"_id":"gone"}]`,
					fields(names, options)+`["most",{"_id":"1"}]`)
			}
		}
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		e.makeIndex(t, index, oneShard(`"body":{"type":"text"},"title":{"type":"text"},"number":{"type":"long"}`))
		e.index(t, index, docs)
		a := setup(t, e, section{
			"expansion": section{"more_like_this": true, "max_doc_share": 1, "fit": false},
			"matrices":  matrices("m", build(t, "--from-tsv", writeFile(t, "pairs.tsv", pairs.String()))),
		})
		for _, like := range queries {
			body := `{"query":{"more_like_this":{` + like + `}}}`
			query := string(e.must(t, http.MethodGet, "/"+index+"/_validate/query?explain=true&rewrite=true&filter_path=explanations.explanation", body))
			var want, got []string
			for _, m := range likeWord.FindAllStringSubmatch(query, -1) {
				want = append(want, m[1])
			}
			for _, c := range a.explain(t, index, body).Clauses {
				got = append(got, c.Terms...)
			}
			want, got = sortedOnce(want), sortedOnce(got)
			if len(want) == 0 || !slices.Equal(want, got) {
				t.Errorf("%s: expands %v, the engine searches for %v: %s", body, got, want, query)
			}
			twoBoosts := strings.Count(like, some) == 2 || strings.Contains(like, `"most",{`) || strings.Contains(like, `"_id"`) && strings.Contains(like, `"title"`)
			if strings.Contains(like, "boost_terms") && !twoBoosts {
				checkLikeBoosts(t, a, index, body, query)
			}
		}
	})
}

func sortedOnce(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}

// likeWord is a word in the text of an engine's query, with how much it counts.
var likeWord = regexp.MustCompile(`(?:body|title):(\w+)(?:\)\^([0-9.]+))?`)

// checkLikeBoosts checks that related words count as much more by boost_terms
// as their words.
func checkLikeBoosts(t *testing.T, a *akin, index, body, query string) {
	t.Helper()
	boosts := func(body string) map[string]float64 {
		of := map[string]float64{}
		for _, c := range a.explain(t, index, body).Clauses {
			for _, added := range c.Added {
				of[added.From] = added.Boost
			}
		}
		return of
	}
	plain, raised := boosts(strings.Replace(body, `"boost_terms"`, `"boost_terms":0,"_name"`, 1)), boosts(body)
	for _, m := range likeWord.FindAllStringSubmatch(query, -1) {
		want := 1.0
		if m[2] != "" {
			want, _ = strconv.ParseFloat(m[2], 64)
		}
		if got := raised[m[1]] / plain[m[1]]; math.Abs(got-want) > .001*want {
			t.Errorf("%s: %s counts %v times, with the engine %v times: %s", body, m[1], got, want, query)
		}
	}
}
