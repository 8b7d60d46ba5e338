package e2e

import (
	"bufio"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The files with the measures of the last run that was accepted.
const (
	rankStatsFile = "testdata/rank_stats.txt"
	modeStatsFile = "testdata/mode_stats.txt"
)

// rankTolerance is how far a measure may move before the test fails: about
// one query of cran that loses all it had.
const rankTolerance = 0.005

// A rankKey says what was measured: the engine, the collection, and the
// ranking, "direct" for the search without akin.
type rankKey struct{ engine, collection, ranking string }

func (k rankKey) String() string { return k.engine + " " + k.collection + " " + k.ranking }

// rankStats are the measures of a run.
type rankStats map[rankKey]measures

// direct names the search that does not go through akin.
const direct = "direct"

// formatRankStats writes one block for each engine and collection, the direct
// search first, and behind every other value its gain over the direct one. The
// first line names the test that measured them.
func formatRankStats(test string, stats rankStats) string {
	keys := make([]rankKey, 0, len(stats))
	for k := range stats {
		keys = append(keys, k)
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
		fmt.Fprintf(&b, "  %-9s", k.ranking)
		base := stats[rankKey{k.engine, k.collection, direct}].all()
		for i, v := range stats[k].all() {
			fmt.Fprintf(&b, "  %s: %.4f", measureNames[i], v)
			if k.ranking != direct {
				fmt.Fprintf(&b, " (%+.1f %%)", gainOver(v, base[i]))
			}
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
			form, m, err := parseRankLine(line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			stats[rankKey{engine, collection, form}] = m
		}
	}
	return stats, scanner.Err()
}

func parseRankLine(line string) (form string, m measures, err error) {
	form, _, _ = strings.Cut(strings.TrimSpace(line), " ")
	values := make([]float64, len(measureNames))
	for i, name := range measureNames {
		_, rest, ok := strings.Cut(line, name+": ")
		if !ok {
			return "", measures{}, fmt.Errorf("no %s", name)
		}
		number, _, _ := strings.Cut(rest, " ")
		if values[i], err = strconv.ParseFloat(number, 64); err != nil {
			return "", measures{}, err
		}
	}
	return form, measures{MAP: values[0], NDCG10: values[1], Recall100: values[2], MRR: values[3]}, nil
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
		was := old.all()
		for i, v := range m.all() {
			if math.Abs(v-was[i]) > rankTolerance {
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
		{"opensearch2", "med", direct}:     {MAP: .5, NDCG10: .25, Recall100: .75, MRR: .125},
		{"opensearch2", "med", "grouped"}:  {MAP: .6, NDCG10: .5, Recall100: .5, MRR: 1},
		{"elasticsearch8", "cran", direct}: {MAP: .0625, NDCG10: .1, Recall100: .2, MRR: .3},
		{"elasticsearch8", "cran", "auto"}: {MAP: .5},
	}
	text := formatRankStats("TestX", stats)
	got, err := parseRankStats(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stats, got); diff != "" {
		t.Errorf("rank stats (-written +read):\n%s\n%s", diff, text)
	}
	if want := "MAP: 0.6000 (+20.0 %)"; !strings.Contains(text, want) {
		t.Errorf("%q is not in\n%s", want, text)
	}
}

func TestMovedRankStatsAreReported(t *testing.T) {
	key := rankKey{"opensearch2", "med", direct}
	accepted := rankStats{key: {MAP: .5}, {"elasticsearch9", "med", direct}: {MAP: .5}}
	for _, test := range []struct {
		name string
		got  rankStats
		want []string
	}{
		{"within the tolerance", rankStats{key: {MAP: .5049}}, nil},
		{"below it", rankStats{key: {MAP: .4949}}, []string{"opensearch2 med direct: MAP was 0.5000, is 0.4949"}},
		{"above it", rankStats{key: {MAP: .5, MRR: .0051}}, []string{"opensearch2 med direct: MRR@10 was 0.0000, is 0.0051"}},
		{"unknown", rankStats{{"x", "med", direct}: {}}, []string{"x med direct: not measured before"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, movedRankStats(accepted, test.got)); diff != "" {
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
