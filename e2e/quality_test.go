package e2e

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/tools/evaluate"
)

// Measures of a ranking, or the means over the queries of a collection, each
// in [0, 1].
type measures struct {
	// MAP is average precision over all documents retrieved:
	//
	//	(1/R) Σ_k P@k · rel(k)    R: relevant documents of the collection
	MAP float64
	// NDCG10 is the normalized discounted cumulative gain of the first ten,
	// gain = grade, discount = 1/log2(rank+1), ideal = the best ten grades.
	NDCG10 float64
	// Recall100 is the share of relevant documents among the first hundred.
	Recall100 float64
	// MRR is the reciprocal rank of the first relevant document among the
	// first ten, 0 where there is none.
	MRR float64
	// Empty says that one ranking has no document.
	Empty bool
}

// measuresOf returns measures from their values in the order of all.
func measuresOf(all [4]float64) measures {
	return measures{MAP: all[0], NDCG10: all[1], Recall100: all[2], MRR: all[3]}
}

// measureNames are the names of the measures in the order of all.
var measureNames = []string{"MAP", "nDCG@10", "recall@100", "MRR@10"}

// all returns the measures in the order of measureNames.
func (m measures) all() []float64 { return []float64{m.MAP, m.NDCG10, m.Recall100, m.MRR} }

// judge measures one ranking, best first, by the grades of the documents;
// the measures are all 0 where no document is relevant.
func judge(ranking []string, grades map[string]float64) measures {
	return measures{
		MAP:       evaluate.AveragePrecision(ranking, grades),
		NDCG10:    evaluate.NDCG(ranking, grades, 10),
		Recall100: evaluate.Recall(ranking, grades, 100),
		MRR:       evaluate.ReciprocalRank(ranking, grades, 10),
		Empty:     len(ranking) == 0,
	}
}

// meanMeasures returns the arithmetic means.
func meanMeasures(perQuery []measures) measures {
	var sum measures
	n := float64(len(perQuery))
	for _, m := range perQuery {
		sum.MAP += m.MAP / n
		sum.NDCG10 += m.NDCG10 / n
		sum.Recall100 += m.Recall100 / n
		sum.MRR += m.MRR / n
	}
	return sum
}

// gainOver returns by how many hundredths a value exceeds a base.
func gainOver(value, base float64) float64 { return 100 * (value/base - 1) }

// significance returns, for each measure, how likely differences of the means
// as large as these are where the two rankings are equally good. It is 0 without
// queries to compare with.
func significance(perQuery, base []measures) measures {
	if len(base) == 0 {
		return measures{}
	}
	var p [4]float64
	for m := range p {
		differences := make([]float64, len(base))
		for i := range base {
			differences[i] = perQuery[i].all()[m] - base[i].all()[m]
		}
		p[m] = evaluate.Randomization(differences)
	}
	return measuresOf(p)
}

// rank searches for every judged query by a body, in an index with parameters
// behind it, and returns the measures of what each finds.
func rank(tb testing.TB, on cluster, index string, body func(text string) string, queries []judgedQuery) []measures {
	tb.Helper()
	name, parameters, _ := strings.Cut(index, "?")
	perQuery := make([]measures, len(queries))
	group, ctx := errgroup.WithContext(tb.Context())
	group.SetLimit(4)
	for i, q := range queries {
		group.Go(func() error {
			hits, err := on.search(ctx, "/"+name+"/_search?"+parameters, body(q.text))
			if err != nil {
				return fmt.Errorf("query %s: %w", q.id, err)
			}
			perQuery[i] = judge(hits.ids(), q.grades)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		tb.Fatal(err)
	}
	return perQuery
}

// listBody is a search for so many of the best documents that match text, of
// which only the ids and the scores are wanted.
func listBody(text string, size int) string {
	return fmt.Sprintf(`{"query":{"match":{"body":%s}},"size":%d,"_source":false,%s}`, quote(text), size, idColumn)
}

// wholeList is so many of the best documents that most of what can be found is
// among them.
const wholeList = 1500

// wholeBody is a search for the documents that match text.
func wholeBody(text string) string { return listBody(text, wholeList) }

// modePage is how many hits are measured of the modes: those that the mode soft
// orders.
const modePage = softWindow

func modeBody(text string) string { return matchBody(text, modePage) }

// note notes the measures of a ranking, and their significance over those of its
// baseline.
func (s rankStats) note(e *engine, collection, ranking string, got, base []measures) {
	s[rankKey{e.name, collection, ranking}] = rankStat{meanMeasures(got), significance(got, base)}
}

// The files with the measures of the last run that was accepted.
const (
	rankStatsFile = "testdata/rank_stats.txt"
	modeStatsFile = "testdata/mode_stats.txt"
)

// rankTolerance is how far a measure may move before the test fails: about
// one query of cran that loses all it had.
const rankTolerance = 0.005

// graphTolerance is that of the nearest vectors: the graph that finds them
// depends on the order in which documents were written.
const graphTolerance = 0.03

// A rankKey says what was measured: the engine, the collection, and the
// ranking, "direct" for the search without akin.
type rankKey struct{ engine, collection, ranking string }

func (k rankKey) String() string { return k.engine + " " + k.collection + " " + k.ranking }

// Rankings with a matrix into which a thesaurus is combined: without and with its
// expressions.
const (
	thesaurusRanking   = "thesaurus"
	expressionsRanking = "thesaurus-expressions"
)

// Embeddings that go on from the order of the soft cosine, as by default, and the
// same told over that order.
const (
	softEmbeddings = "auto-soft-embeddings"
	overSoft       = "-over-soft"
)

// baselines are the rankings over which gains of others are told, where that is
// not the direct search.
var baselines = map[string]string{
	expressionsRanking: thesaurusRanking,
	"auto-and":         direct + "-and", "auto-75": direct + "-75",
	softEmbeddings + overSoft: "auto-soft",
	"like-five":               direct + "-five",
	"swapped":                 unswapped, "swapped-exact": unswapped,
}

func (k rankKey) baseline() rankKey {
	return rankKey{k.engine, k.collection, cmp.Or(baselines[k.ranking], direct)}
}

// A rankStat is the means of a ranking, and the significance P of their
// differences from its baseline's, 0 where it was not computed.
type rankStat struct {
	measures
	P measures
}

// rankStats are the measures of a run.
type rankStats map[rankKey]rankStat

// gain returns by how many hundredths a measure exceeds the baseline's.
func (s rankStats) gain(k rankKey, m int) float64 {
	return gainOver(s[k].all()[m], s[k.baseline()].all()[m])
}

// meanGain returns the mean of a ranking's gains on the collections that
// defaults were chosen on, with this behind their names. It reports false where
// one is missing.
func (s rankStats) meanGain(engine, suffix, ranking string, m int) (float64, bool) {
	return s.meanGainOf(tunedCollections, engine, "", suffix, ranking, m)
}

// meanGainOf is meanGain for collections, with this before and behind their
// names.
func (s rankStats) meanGainOf(collections []string, engine, prefix, suffix, ranking string, m int) (float64, bool) {
	sum := 0.0
	for _, c := range collections {
		k := rankKey{engine, prefix + c + suffix, ranking}
		if _, ok := s[k]; !ok {
			return 0, false
		}
		sum += s.gain(k, m)
	}
	return sum / float64(len(collections)), true
}

// direct names the search that does not go through akin.
const direct = "direct"

// formatRankStats writes one block for each engine and collection, the direct
// search first, and behind every other value its gain over the baseline's and the
// significance of that; and last the mean gains. The first lines name the test
// that measured them, and the baselines.
func formatRankStats(test string, stats rankStats) string {
	keys := make([]rankKey, 0, len(stats))
	width := 0
	for k := range stats {
		keys = append(keys, k)
		width = max(width, len(k.ranking))
	}
	slices.SortFunc(keys, compareRankKeys)
	var b strings.Builder
	fmt.Fprintf(&b, "# Measured by %s. Refresh: go test ./e2e -run %[1]s -update\n", test)
	for _, ranking := range slices.Sorted(maps.Keys(baselines)) {
		if slices.ContainsFunc(keys, func(k rankKey) bool { return k.ranking == ranking }) {
			fmt.Fprintf(&b, "# Gains of %s are over %s.\n", ranking, baselines[ranking])
		}
	}
	block := ""
	for _, k := range keys {
		if name := k.engine + " " + k.collection; name != block {
			block = name
			fmt.Fprintf(&b, "\n%s\n", block)
		}
		fmt.Fprintf(&b, "  %-*s", width, k.ranking)
		for i, v := range stats[k].all() {
			fmt.Fprintf(&b, "  %s: %.4f", measureNames[i], v)
			if k.ranking == direct {
				continue
			}
			fmt.Fprintf(&b, " (%+.1f %%", stats.gain(k, i))
			if p := stats[k].P.all()[i]; p > 0 {
				fmt.Fprintf(&b, ", p %.4f", p)
			}
			b.WriteString(")")
		}
		b.WriteString("\n")
	}
	for _, of := range []struct {
		title, prefix string
		collections   []string
	}{
		{strings.Join(tunedCollections, ", "), "", tunedCollections},
		{"one index of all of " + strings.Join(mixedCollections, ", "), mixedIndex + "-", mixedCollections},
	} {
		title := fmt.Sprintf("\n# Mean gains on %s, in hundredths:\n", of.title)
		for _, k := range keys {
			suffix, first := strings.CutPrefix(k.collection, of.prefix+of.collections[0])
			if _, whole := stats.meanGainOf(of.collections, k.engine, of.prefix, suffix, k.ranking, 0); !first || !whole || strings.HasPrefix(k.ranking, direct) {
				continue
			}
			fmt.Fprintf(&b, "%s# %-5s %-*s", title, cmp.Or(strings.TrimPrefix(suffix, "-"), "full"), width, k.ranking)
			title = ""
			for m, name := range measureNames {
				mean, _ := stats.meanGainOf(of.collections, k.engine, of.prefix, suffix, k.ranking, m)
				fmt.Fprintf(&b, "  %s: %+.2f", name, mean)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func compareRankKeys(a, b rankKey) int {
	name := func(k rankKey) string {
		if k.ranking == direct {
			k.ranking = "" // first
		}
		return k.String()
	}
	return strings.Compare(name(a), name(b))
}

// parseRankStats reads what formatRankStats wrote.
func parseRankStats(text string) (rankStats, error) {
	stats := rankStats{}
	var engine, collection string
	scanner := bufio.NewScanner(strings.NewReader(text))
	for n := 1; scanner.Scan(); n++ {
		line := scanner.Text()
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, " "):
			engine, collection, _ = strings.Cut(line, " ")
		default:
			ranking, s, err := parseRankLine(line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			stats[rankKey{engine, collection, ranking}] = s
		}
	}
	return stats, scanner.Err()
}

// rankValue is a measure in a line of rankings: its name, its value, and its
// significance, which may be missing.
var rankValue = regexp.MustCompile(`  (\S+): (\d\S*)(?: \(\S+ %(?:, p (\S+))?\))?`)

func parseRankLine(line string) (ranking string, s rankStat, err error) {
	ranking, _, _ = strings.Cut(strings.TrimSpace(line), " ")
	found := rankValue.FindAllStringSubmatch(line, -1)
	if len(found) != len(measureNames) {
		return "", rankStat{}, fmt.Errorf("%d measures, want %d", len(found), len(measureNames))
	}
	var values, p [4]float64
	for i, match := range found {
		if match[1] != measureNames[i] {
			return "", rankStat{}, fmt.Errorf("%s, want %s", match[1], measureNames[i])
		}
		if values[i], err = strconv.ParseFloat(match[2], 64); err != nil {
			return "", rankStat{}, err
		}
		if p[i], err = strconv.ParseFloat(cmp.Or(match[3], "0"), 64); err != nil {
			return "", rankStat{}, err
		}
	}
	return ranking, rankStat{measuresOf(values), measuresOf(p)}, nil
}

// movedRankStats describes every measure of got that is not in want or is
// further from it than rankTolerance. What only want has belongs to
// engines that did not run.
func movedRankStats(want, got rankStats) []string {
	var moved []string
	for k, m := range got {
		old, ok := want[k]
		if !ok {
			moved = append(moved, fmt.Sprintf("%v: not measured before", k))
			continue
		}
		tolerance := rankTolerance
		if strings.HasPrefix(k.ranking, "dense-") || strings.HasPrefix(k.collection, hybridOnly) {
			tolerance = graphTolerance
		}
		was := old.all()
		for i, v := range m.all() {
			if math.Abs(v-was[i]) > tolerance {
				moved = append(moved, fmt.Sprintf("%v: %s was %.4f, is %.4f", k, measureNames[i], was[i], v))
			}
		}
	}
	slices.Sort(moved)
	return moved
}

// checkRankStats compares the measures of this run with the accepted ones in a
// file, or with -update accepts them.
func checkRankStats(t *testing.T, file string, got rankStats) {
	t.Helper()
	want := acceptedStats(t, file)
	if *update {
		maps.Copy(want, got)
		if err := os.WriteFile(file, []byte(formatRankStats(t.Name(), want)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, m := range movedRankStats(want, got) {
		t.Errorf("%s (-update accepts it)", m)
	}
	if len(got) > 0 {
		t.Log("\n" + formatRankStats(t.Name(), got))
	}
}

// meanFloors are the mean gains on the five collections that no accepted
// measurement falls below: MAP and nDCG@10 of whole queries, then of three
// terms, in hundredths.
var meanFloors = map[string][4]float64{
	"rescore":             {6, 2.9, 26, 5.9},
	"feedback":            {9, 5.4, 29, 8.3},
	"words":               {6, 2.8, 27, 8.5},
	"words-low":           {4, 1, 23.5, 4.3},
	"words-high":          {7.8, 3.2, 31.2, 8.2},
	"words-soft":          {9.2, 5.9, 31.8, 10.8},
	"auto":                {5, 3.5, 24, 8.4},
	"auto-and":            {250, 140, 350, 210},
	"auto-75":             {45, 44, 75, 41},
	"auto-soft":           {7.7, 6.2, 28.5, 11},
	"embeddings":          {15.2, 13.7, 35, 14.5},
	"auto-embeddings":     {15.2, 14, 32, 14.9},
	"model":               {7.9, 3.4, 30.8, 8.8},
	"model-feedback":      {11.2, 6.7, 34.5, 10.9},
	"model-normal":        {6.2, 3.1, 27.2, 8.2},
	"model-low":           {4, 1.2, 22, 3.5},
	"soft":                {7.8, 4.4, 28.7, 8.1},
	"soft-feedback":       {9.6, 5.3, 31.3, 9.6},
	"model-soft":          {9.7, 6.1, 32.1, 11.2},
	"model-soft-feedback": {11.3, 6.7, 34.5, 12.4},
	expressionsRanking:    {0.45, 0.6, 0.3, 0.35},
}

// mixedFloors are the same of all collections in one index.
var mixedFloors = map[string][4]float64{
	"normal":     {2.5, 1.5, 9.7, 2.5},
	"rescore":    {3, 1.2, 10.2, 2},
	"words":      {4.2, 2.5, 11.3, 3.2},
	"words-high": {3.6, 1.5, 12, 3},
	"words-soft": {6.7, 3.7, 13, 4},
	"auto":       {3.6, 3, 8.5, 3.7},
	"auto-soft":  {5, 3.6, 9.5, 3.9},
}

func TestAcceptedMeansAreAboveTheirFloors(t *testing.T) {
	stats := acceptedStats(t, rankStatsFile)
	for ranking, floors := range meanFloors {
		checkMeanFloors(t, stats, ranking, "", tunedCollections, floors)
	}
	for ranking, floors := range mixedFloors {
		checkMeanFloors(t, stats, ranking, mixedIndex+"-", mixedCollections, floors)
	}
}

func checkMeanFloors(t *testing.T, stats rankStats, ranking, prefix string, collections []string, floors [4]float64) {
	t.Helper()
	for i, floor := range floors {
		suffix, m := []string{"", threeTermsOnly}[i/2], []int{mapMeasure, ndcgMeasure}[i%2]
		if mean, whole := stats.meanGainOf(collections, qualityEngine, prefix, suffix, ranking, m); !whole || mean < floor {
			t.Errorf("%s%s%s: %s %+.2f %% on average, want at least %+.1f %%", prefix, ranking, suffix, measureNames[m], mean, floor)
		}
	}
}

// performanceDoc shows what all rankings gain.
const performanceDoc = "../docs/performance.md"

// qualityEngine is the engine on which all rankings are measured.
const qualityEngine = "opensearch2"

// gainCells writes the gains of a ranking in hundredths, MAP / nDCG@10, as the
// last cells of its row in the document: the means of the collections that
// defaults were chosen on, with whole queries and with three terms, and the
// held-out collections, where significant gains have a star.
func gainCells(stats rankStats, ranking string) string {
	var t strings.Builder
	for _, suffix := range []string{"", threeTermsOnly} {
		precision, _ := stats.meanGain(qualityEngine, suffix, ranking, mapMeasure)
		gain, _ := stats.meanGain(qualityEngine, suffix, ranking, ndcgMeasure)
		fmt.Fprintf(&t, " %+.1f / %+.1f |", precision, gain)
	}
	for _, c := range heldOutCollections {
		k := rankKey{qualityEngine, c, ranking}
		fmt.Fprintf(&t, " %s / %s |", stats.starred(k, mapMeasure), stats.starred(k, ndcgMeasure))
	}
	return t.String()
}

// starred writes a gain, with a star where it is significant.
func (s rankStats) starred(k rankKey, m int) string {
	star := ""
	if s[k].P.all()[m] < .05 {
		star = "*"
	}
	return fmt.Sprintf("%+.1f%s", s.gain(k, m), star)
}

func TestPerformanceDocShowsTheAcceptedMeasures(t *testing.T) {
	stats := acceptedStats(t, rankStatsFile)
	text := readFile(t, performanceDoc)
	for _, r := range rankings(&engine{engineKind: engineKind{name: qualityEngine, scripts: true}}) {
		if r.title == "" {
			continue
		}
		gains := gainCells(stats, r.name)
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(r.title) + ` \|.*` + regexp.QuoteMeta(gains) + `$`)
		if !row.MatchString(text) {
			t.Errorf("%s lacks a row %q that ends with these gains of %s:%s", performanceDoc, r.title, rankStatsFile, gains)
		}
	}
}

// readmeRows are the searches of README's table, as they are by default. Related
// words find nothing in most of the whole texts, and much in searches for all
// words.
var readmeRows = []struct{ title, suffix, ranking string }{
	{"whole queries", "", "auto-soft"},
	{"three words", threeTermsOnly, "auto-soft"},
	{"whole queries, hits new to akin", "", "auto"},
	{"three words, hits new to akin", threeTermsOnly, "auto"},
	{"three words, all must match", threeTermsOnly, "auto-and"},
}

func TestREADMEShowsTheAcceptedMeasures(t *testing.T) {
	stats, readme := acceptedStats(t, rankStatsFile), readFile(t, "../README.md")
	for _, row := range readmeRows {
		var gains strings.Builder
		fmt.Fprintf(&gains, "| %s |", row.title)
		for _, kind := range []struct {
			collections []string
			prefix      string
		}{{tunedCollections, ""}, {heldOutCollections, ""}, {productCollections, ""}, {mixedCollections, mixedIndex + "-"}} {
			mean, _ := stats.meanGainOf(kind.collections, qualityEngine, kind.prefix, row.suffix, row.ranking, ndcgMeasure)
			fmt.Fprintf(&gains, " %+.1f %% |", mean)
		}
		if !strings.Contains(readme, "\n"+gains.String()) {
			t.Errorf("README lacks a row that begins with these gains of %s: %s", rankStatsFile, &gains)
		}
	}
}

// acceptedStats reads a file of measures.
func acceptedStats(t *testing.T, file string) rankStats {
	t.Helper()
	stats, err := parseRankStats(readFile(t, file))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return stats
}

// checkDocShows compares a document with a table, or a sentence, of the measures
// of a file.
func checkDocShows(t *testing.T, doc, file, table string) {
	t.Helper()
	if text := readFile(t, doc); !strings.Contains(text, table) && !strings.Contains(flat(text), table) {
		t.Errorf("%s lacks this of %s:\n%s", doc, file, table)
	}
}

// flat returns text with its line breaks as blanks.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }
