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
	"unicode/utf16"

	"github.com/akin-search/akin/simmatrix"
)

const expressionsStatsFile = "testdata/expressions_stats.txt"

// unswapped is the ranking of the judged queries through akin, with the matrix of
// the index. Behind "swapped" an expression of each is in another form: directly,
// through akin, and with the pairs of forms as exact synonyms.
const unswapped = "akin"

// swappedOnly begins the name of a collection of the queries that have other forms.
const swappedOnly = "swapped-"

// swappedCosine is the least of both forms in the matrix of the index.
const swappedCosine = 0.5

// TestSwappedForms ranks the judged queries that have an expression of the
// thesaurus, and the same with another form of that expression.
func TestSwappedForms(t *testing.T) {
	long(t)
	t.Parallel()
	e := theEngine(t, qualityEngine)
	if e == nil {
		return
	}
	stats, pooled := rankStats{}, map[string][]measures{}
	note := func(collection string, by map[string][]measures) {
		for ranking, got := range by {
			stats.note(e, collection, ranking, got, by[rankKey{ranking: ranking}.baseline().ranking])
		}
	}
	for _, c := range judgedCollections(t) {
		index, learned := e.judged(t, c)
		queries, swapped, synonyms := e.swapForms(t, c)
		t.Logf("%s: %d of %d queries have another form", c.name, len(queries), len(c.queries))
		if len(queries) == 0 {
			continue
		}
		exact := newPath(t, "exact.akin")
		mustAkin(t, append([]string{"matrix", "build", "--from-thesaurus", writeFile(t, "synonyms.txt", synonyms), "--out", exact}, e.of(index, "body")...)...)
		a := setupWide(t, e, section{
			"profiles": section{"learned": section{"matrices": []string{"learned"}}, "exact": section{"matrices": []string{"exact"}}},
			"matrices": matrices("learned", learned, "exact", build(t, "--from-matrices", learned+","+exact)),
		})
		by := map[string][]measures{
			direct:           rank(t, e.cluster, index, wholeBody, queries),
			unswapped:        rank(t, a.cluster, index+"?akin_profile=learned", wholeBody, queries),
			"swapped-direct": rank(t, e.cluster, index, wholeBody, swapped),
			"swapped":        rank(t, a.cluster, index+"?akin_profile=learned", wholeBody, swapped),
			"swapped-exact":  rank(t, a.cluster, index+"?akin_profile=exact", wholeBody, swapped),
		}
		note(swappedOnly+c.name, by)
		for ranking, got := range by {
			pooled[ranking] = append(pooled[ranking], got...)
		}
	}
	if os.Getenv("AKIN_E2E_COLLECTIONS") == "all" {
		note(fmt.Sprintf("%d queries in another form", len(pooled[direct])), pooled)
	}
	checkRankStats(t, expressionsStatsFile, stats)
}

// The texts of all collections together, as the files of measures name them.
const (
	shortQueries   = "50 texts of 1 to 3 words"
	swappedQueries = "221 queries in another form"
)

// regained is the share of nDCG@10 of the queries as they were that those in
// another form have at least, with the pairs of forms as exact synonyms.
const regained = 0.97

// expressionsTables write what expressions gain, as Markdown.
func expressionsTables(t *testing.T) (gains, swapped string) {
	t.Helper()
	stats := acceptedStats(t, rankStatsFile)
	short := rankKey{qualityEngine, shortQueries, expressionsRanking}
	gains = fmt.Sprintf("| whole | three words | titles | questions | %s |\n|---|---|---|---|---|\n|%s %s / %s |\n",
		shortQueries, gainCells(stats, expressionsRanking), stats.starred(short, mapMeasure), stats.starred(short, ndcgMeasure))
	stats = acceptedStats(t, expressionsStatsFile)
	row := func(name, ranking string) string {
		got, was := stats[rankKey{qualityEngine, swappedQueries, ranking}].NDCG10, stats[rankKey{qualityEngine, swappedQueries, unswapped}].NDCG10
		return fmt.Sprintf("| %s | %.3f, %.1f %% |\n", name, got, 100*got/was)
	}
	swapped = "| " + swappedQueries + " | nDCG@10 |\n|---|---|\n" + row("as they were", unswapped) + row("another form", "swapped") +
		row("the same, with exact synonyms", "swapped-exact")
	return gains, swapped
}

func TestSynonymsDocShowsTheAcceptedMeasures(t *testing.T) {
	gains, swapped := expressionsTables(t)
	checkDocShows(t, "../docs/synonyms.md", rankStatsFile, gains)
	checkDocShows(t, "../docs/synonyms.md", expressionsStatsFile, swapped)
}

func TestAnotherFormWithExactSynonymsRanksNearlyAsWell(t *testing.T) {
	stats := acceptedStats(t, expressionsStatsFile)
	ndcg := func(ranking string) float64 { return stats[rankKey{qualityEngine, swappedQueries, ranking}].NDCG10 }
	if was := ndcg(unswapped); was == 0 || ndcg("swapped-exact") < regained*was {
		t.Errorf("nDCG@10 %.4f, want at least %v of %.4f", ndcg("swapped-exact"), regained, was)
	}
}

// swapForms returns the queries with an expression of the thesaurus that has
// another form there, on the same line, the same with that form in its place, and
// the pairs of forms as a file of exact synonyms. Of a query that is the first
// such expression, at each word the longest; of the forms that whose soft cosine to
// it is the largest, and at least swappedCosine.
func (e *engine) swapForms(t *testing.T, c *collection) (queries, swapped []judgedQuery, synonyms string) {
	t.Helper()
	index, file := e.judged(t, c)
	learned := readMatrix(t, file)
	thesaurus := readMatrix(t, build(t, append([]string{"--from-thesaurus", thesaurusFile(t)}, e.of(index, "body")...)...))
	written := func(term string) string {
		form, _ := simmatrix.SplitForm(thesaurus.Form(term))
		return cmp.Or(form, learned.Written(term))
	}
	another := func(expression string) (form string) {
		best := 0.0
		for n := range thesaurus.Row(expression).All() {
			if s := softCosine(learned, expression, n.Term); s >= swappedCosine && s > best {
				best, form = s, written(n.Term)
			}
		}
		return form
	}
	pairs := map[string]bool{}
	for _, q := range c.queries {
		analyzed := ask[struct {
			Tokens []struct {
				Token    string
				Position int
				Start    int `json:"start_offset"`
				End      int `json:"end_offset"`
			}
		}](t, e.cluster, http.MethodPost, "/"+index+"/_analyze", toJSON(t, section{"field": "body", "text": q.text})).Tokens
		var terms []string
		var positions []int
		for _, token := range analyzed {
			terms, positions = append(terms, token.Token), append(positions, token.Position)
		}
	swap:
		for first := range terms {
			for end := min(len(terms), first+simmatrix.MaxExpressionTerms); end >= first+2; end-- {
				expression, err := simmatrix.Expression(terms[first:end], positions[first:end])
				if err != nil {
					continue
				}
				if form := another(expression); form != "" {
					text := utf16.Encode([]rune(q.text)) // in which engines count
					before, after := text[:analyzed[first].Start], text[analyzed[end-1].End:]
					queries = append(queries, q)
					swapped = append(swapped, judgedQuery{q.id, string(utf16.Decode(before)) + form + string(utf16.Decode(after)), q.grades})
					pairs[written(expression)+", "+form] = true
					break swap
				}
			}
		}
	}
	lines := []string{"# akin: exact"}
	for pair := range pairs {
		lines = append(lines, pair)
	}
	slices.Sort(lines[1:])
	t.Log(strings.Join(lines, "\n"))
	return queries, swapped, strings.Join(lines, "\n") + "\n"
}

// softCosine compares expressions, or words, by a matrix of documents, as
// `akin matrix build --weigh-by` does.
func softCosine(m *simmatrix.Matrix, a, b string) float64 {
	meta := m.Meta()
	similarity := func(x, y string) (s float64) {
		if x == y {
			return 1
		}
		for _, pair := range [][2]string{{x, y}, {y, x}} {
			for n := range m.Row(pair[0]).All() {
				if n.Term == pair[1] {
					s = max(s, float64(n.Similarity))
				}
			}
		}
		return math.Pow(s, 1/meta.Power())
	}
	product := func(a, b string) (sum float64) {
		for x := range simmatrix.WordsOf(a) {
			for y := range simmatrix.WordsOf(b) {
				sum += similarity(x, y) * simmatrix.IDF(int64(m.Row(x).DocFreq()), int64(meta.Docs)) * simmatrix.IDF(int64(m.Row(y).DocFreq()), int64(meta.Docs))
			}
		}
		return sum
	}
	return product(a, b) / math.Sqrt(product(a, a)*product(b, b))
}
