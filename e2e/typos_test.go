package e2e

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

const typoStatsFile = "testdata/typo_stats.txt"

// These end the names of collections of whose queries one word each is misspelled
// as in one of the files of AKIN_DATA/spelling.
const (
	wikipediaTypos = "-wikipedia"
	birkbeckTypos  = "-missp"
)

// misspellings returns the misspellings of words in a file of them: a word after
// a $, and below it each misspelling.
func misspellings(t *testing.T, name string) map[string][]string {
	t.Helper()
	root := check.DataFolder(t)
	wrong, word := map[string][]string{}, ""
	eachLine(t, filepath.Join(root, "spelling", strings.TrimPrefix(name, "-")+".dat"), func(line string) error {
		if right, ok := strings.CutPrefix(line, "$"); ok {
			word = strings.ToLower(right)
		} else if !strings.ContainsAny(line, "_ ?") { // blanks, and what nobody could read
			wrong[word] = append(wrong[word], strings.ToLower(line))
		}
		return nil
	})
	return wrong
}

// misspelled returns the queries of c that have a word with misspellings, as
// they are, and with one such word misspelled.
func misspelled(c *collection, name string, wrong map[string][]string) (right, typos *collection) {
	random := rand.New(rand.NewPCG(1, 2))
	right, typos = &collection{name: c.name + name}, &collection{name: c.name + name}
	words := regexp.MustCompile(`\pL+`)
	for _, q := range c.queries {
		at := slices.DeleteFunc(words.FindAllStringIndex(q.text, -1), func(at []int) bool {
			return wrong[strings.ToLower(q.text[at[0]:at[1]])] == nil
		})
		if len(at) == 0 {
			continue
		}
		one := at[random.IntN(len(at))]
		ways := wrong[strings.ToLower(q.text[one[0]:one[1]])]
		text := q.text[:one[0]] + ways[random.IntN(len(ways))] + q.text[one[1]:]
		right.queries = append(right.queries, q)
		typos.queries = append(typos.queries, judgedQuery{q.id, text, q.grades})
	}
	return right, typos
}

// mostLost is how much of nDCG@10 the nearest words may cost on a collection
// whose queries are spelled right: some have words that no document has.
const mostLost = .001

// TestNearestWordsGiveBackHalfOfWhatTyposCost misspells a word of each judged
// query as people do. All queries go through akin, without the nearest known
// words and with them: as they are, and misspelled.
func TestNearestWordsGiveBackHalfOfWhatTyposCost(t *testing.T) {
	long(t)
	t.Parallel()
	e := theEngine(t, qualityEngine)
	if e == nil {
		return
	}
	collections, stats := judgedCollections(t), rankStats{}
	collections = slices.DeleteFunc(collections, func(c *collection) bool { return !slices.Contains(tunedCollections, c.name) })
	for _, name := range []string{wikipediaTypos, birkbeckTypos} {
		wrong := misspellings(t, name)
		cost, back := 0.0, 0.0
		for _, c := range collections {
			index, matrix := e.judged(t, c)
			a := setupWide(t, e, section{
				"profiles": section{"plain": section{"matrices": []string{"s"}, "nearest_words": false}},
				"matrices": []section{{"name": "s", "indices": []string{index}, "file": matrix}},
			})
			right, typos := misspelled(c, name, wrong)
			measured := map[string][]measures{
				direct:        rank(t, e.cluster, index, wholeBody, right.queries),
				"right":       rank(t, a.cluster, index, wholeBody, right.queries),
				"right-plain": rank(t, a.cluster, index+"?akin_profile=plain", wholeBody, right.queries),
				"plain":       rank(t, a.cluster, index+"?akin_profile=plain", wholeBody, typos.queries),
				"nearest":     rank(t, a.cluster, index, wholeBody, typos.queries),
			}
			for i, q := range right.queries {
				if len(a.explain(t, index, listBody(q.text, 10)).Clauses[0].Nearest) == 0 && measured["right"][i] != measured["right-plain"][i] {
					t.Errorf("%s: query %s has no unknown word, and gets another page with nearest words", right.name, q.id)
				}
			}
			for ranking, got := range measured {
				stats.note(e, right.name, ranking, got, measured[direct])
			}
			ndcg := func(ranking string) float64 { return meanMeasures(measured[ranking]).NDCG10 }
			if lost := ndcg("right-plain") - ndcg("right"); lost > mostLost {
				t.Errorf("%s: without typos nearest words cost %.4f of nDCG@10, at most %v may be", right.name, lost, mostLost)
			}
			cost += ndcg("right") - ndcg("plain")
			back += ndcg("nearest") - ndcg("plain")
		}
		if t.Logf("%s: typos cost %.4f of nDCG@10, and nearest words give back %.4f", name, cost, back); back < cost/2 {
			t.Errorf("%s: typos cost %.4f of nDCG@10, and nearest words give back %.4f, want half", name, cost, back)
		}
	}
	checkRankStats(t, typoStatsFile, stats)
}

// A word of two known ones finds them in a row, even where all words are
// required.
func TestAWordThatNoDocumentHasFindsItsPartsInARow(t *testing.T) {
	const index = "akin-e2e-parts"
	eachEngine(t, func(t *testing.T, e *engine) {
		e.makeIndex(t, index, oneShard(`"body":{"type":"text"},"bare":{"type":"text","index_options":"freqs"}`))
		var docs []document
		for id, text := range map[string]string{"row": "the data union of drivers", "apart": "a union and its data on drivers", "other": "drivers and workers"} {
			docs = append(docs, document{id, section{"body": text, "bare": text}})
		}
		e.index(t, index, docs)
		pairs := writeFile(t, "pairs.tsv", "data\tfigures\t0.5\nunion\tpool\t0.5\ndrivers\tchauffeurs\t0.5\n")
		a := setupWide(t, e, section{"matrices": matrices("m", build(t, append([]string{"--from-tsv", pairs}, e.of(index, "body")...)...))})
		for query, want := range map[string][]string{
			`{"match":{"body":{"query":"dataunion","operator":"and"}}}`:                               {"row"},
			`{"match":{"body":{"query":"drivers dataunion","operator":"and"}}}`:                       {"row"},
			`{"match":{"body":{"query":"drivers dataunion workers","minimum_should_match":2}}}`:       {"other", "row"},
			`{"match":{"body":{"query":"dataunion"}}}`:                                                {"apart", "row"},
			`{"match":{"bare":{"query":"dataunion","operator":"and"}}}`:                               nil,
			`{"query_string":{"query":"drivers AND dataunion","default_field":"body"}}`:               {"row"},
			`{"multi_match":{"query":"drivers dataunion","fields":["body","bare"],"operator":"and"}}`: {"row"},
		} {
			found := ask[found](t, a.cluster, http.MethodPost, "/"+index+"/_search", `{"query":`+query+`}`)
			if got := slices.Sorted(maps.Keys(found.scores())); !slices.Equal(want, got) {
				t.Errorf("%s finds %v, want %v", query, got, want)
			}
		}
		checkNoFallback(t, a)
	})
}
