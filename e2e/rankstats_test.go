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

	gocmp "github.com/google/go-cmp/cmp"
)

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

// A rankStat is the means of a ranking, and the significance P of their
// differences from the direct search's, 0 where it was not computed.
type rankStat struct {
	measures
	P measures
}

// rankStats are the measures of a run.
type rankStats map[rankKey]rankStat

// gain returns by how many hundredths a measure exceeds the direct search's.
func (s rankStats) gain(k rankKey, m int) float64 {
	return gainOver(s[k].all()[m], s[rankKey{k.engine, k.collection, direct}].all()[m])
}

// meanGain returns the mean of a ranking's gains on the collections that
// defaults were chosen on, with this behind their names. It reports false where
// one is missing.
func (s rankStats) meanGain(engine, suffix, ranking string, m int) (float64, bool) {
	sum := 0.0
	for _, c := range tunedCollections {
		k := rankKey{engine, c + suffix, ranking}
		if _, ok := s[k]; !ok {
			return 0, false
		}
		sum += s.gain(k, m)
	}
	return sum / float64(len(tunedCollections)), true
}

// direct names the search that does not go through akin.
const direct = "direct"

// formatRankStats writes one block for each engine and collection, the direct
// search first, and behind every other value its gain over the direct one and
// the significance of that; and last the mean gains. The first line names the
// test that measured them.
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
	title := fmt.Sprintf("\n# Mean gains on %s, in hundredths:\n", strings.Join(tunedCollections, ", "))
	for _, k := range keys {
		suffix, first := strings.CutPrefix(k.collection, tunedCollections[0])
		if _, whole := stats.meanGain(k.engine, suffix, k.ranking, 0); !first || !whole || k.ranking == direct {
			continue
		}
		fmt.Fprintf(&b, "%s# %-5s %-*s", title, cmp.Or(strings.TrimPrefix(suffix, "-"), "full"), width, k.ranking)
		title = ""
		for m, name := range measureNames {
			mean, _ := stats.meanGain(k.engine, suffix, k.ranking, m)
			fmt.Fprintf(&b, "  %s: %+.2f", name, mean)
		}
		b.WriteString("\n")
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
	return ranking, rankStat{measures{values[0], values[1], values[2], values[3]}, measures{p[0], p[1], p[2], p[3]}}, nil
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
	text, err := os.ReadFile(file)
	if err != nil && (!*update || !os.IsNotExist(err)) {
		t.Fatal(err)
	}
	want, err := parseRankStats(string(text))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
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
}

func TestRankStatsSurviveWritingAndReading(t *testing.T) {
	stats := rankStats{
		{"opensearch2", "med", direct}: {measures: measures{MAP: .5, NDCG10: .25, Recall100: .75, MRR: .125}},
		{"opensearch2", "med", "grouped"}: {
			measures{MAP: .6, NDCG10: .5, Recall100: .5, MRR: 1}, measures{MAP: .0125, NDCG10: 1, Recall100: .5, MRR: .0001},
		},
		{"elasticsearch8", "cran", direct}: {measures: measures{MAP: .0625, NDCG10: .1, Recall100: .2, MRR: .3}},
		{"elasticsearch8", "cran", "auto"}: {measures: measures{MAP: .5}},
	}
	text := formatRankStats("TestX", stats)
	got, err := parseRankStats(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(stats, got, gocmp.AllowUnexported(rankStat{})); diff != "" {
		t.Errorf("rank stats (-written +read):\n%s\n%s", diff, text)
	}
	if want := "MAP: 0.6000 (+20.0 %, p 0.0125)"; !strings.Contains(text, want) {
		t.Errorf("%q is not in\n%s", want, text)
	}
}

func TestMovedRankStatsAreReported(t *testing.T) {
	key := rankKey{"opensearch2", "med", direct}
	stat := func(m measures) rankStat { return rankStat{measures: m} }
	accepted := rankStats{key: stat(measures{MAP: .5}), {"elasticsearch9", "med", direct}: stat(measures{MAP: .5})}
	for _, test := range []struct {
		name string
		got  rankStats
		want []string
	}{
		{"within the tolerance", rankStats{key: stat(measures{MAP: .5049})}, nil},
		{"below it", rankStats{key: stat(measures{MAP: .4949})}, []string{"opensearch2 med direct: MAP was 0.5000, is 0.4949"}},
		{"above it", rankStats{key: stat(measures{MAP: .5, MRR: .0051})}, []string{"opensearch2 med direct: MRR@10 was 0.0000, is 0.0051"}},
		{"unknown", rankStats{{"x", "med", direct}: {}}, []string{"x med direct: not measured before"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := gocmp.Diff(test.want, movedRankStats(accepted, test.got)); diff != "" {
				t.Errorf("moved (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBrokenRankStatsAreRefused(t *testing.T) {
	for _, text := range []string{"a b\n  direct  MAP: 0.5\n", "a b\n  direct  MAP: x  nDCG@10: 1  recall@100: 1  MRR@10: 1\n"} {
		if got, err := parseRankStats(text); err == nil {
			t.Errorf("parseRankStats(%q) = %v, want an error", text, got)
		}
	}
}

// meanFloors are the mean gains over the five collections that no accepted
// measurement falls below: MAP and nDCG@10 of whole queries, then of three
// terms, in hundredths.
var meanFloors = map[string][4]float64{
	"rescore":             {5.8, 2.9, 26, 5.5},
	"feedback":            {9, 5.4, 29, 8.3},
	"model":               {7.7, 3.7, 30, 8},
	"model-feedback":      {10.5, 6, 34, 10},
	"model-normal":        {5.7, 3.2, 24.5, 6.8},
	"model-low":           {4, 1.2, 22, 3.5},
	"soft":                {7, 3.3, 27, 7},
	"soft-feedback":       {9.5, 5.3, 31, 9},
	"model-soft":          {9, 5.5, 28, 9.5},
	"model-soft-feedback": {11, 6.8, 33, 11},
}

func TestAcceptedMeansAreAboveTheirFloors(t *testing.T) {
	stats := acceptedStats(t, rankStatsFile)
	for ranking, floors := range meanFloors {
		for i, floor := range floors {
			suffix, m := []string{"", threeTermsOnly}[i/2], []int{mapMeasure, ndcgMeasure}[i%2]
			if mean, whole := stats.meanGain(qualityEngine, suffix, ranking, m); !whole || mean < floor {
				t.Errorf("%s%s: %s %+.2f %% on average, want at least %+.1f %%", ranking, suffix, measureNames[m], mean, floor)
			}
		}
	}
}
