package evaluate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

var usualMatrix = MatrixSetting{Neighbors: 200, Power: 3, Share: 0.35}

func TestVariantsDifferFromTheDefaultInOneFactor(t *testing.T) {
	g := Grid{Neighbors: []int{200, 10, 10}, MinSimilarity: []float64{0, 0.1}, Power: []float64{3, 2}, Share: []float64{0, 0.35}}
	check.OK(t, g.Validate())
	variants := g.Variants(usualMatrix)
	var got []string
	for _, v := range variants {
		got = append(got, v.String()+": "+v.Flags())
	}
	check.Equal(t, []string{
		"the default: the defaults", "neighbors 10: --top 10", "min-similarity 0.1: --min-similarity 0.1", "power 2: --power 2", "embedding-share 0: --language-model none",
	}, got)
	check.Equal(t, MatrixSetting{Neighbors: 10, Power: 3, Share: 0.35}, variants[1].MatrixSetting)
	check.Equal(t, MatrixSetting{Neighbors: 200, MinSimilarity: 0.1, Power: 3, Share: 0.35}, variants[2].MatrixSetting)
	check.Equal(t, MatrixSetting{Neighbors: 200, Power: 2, Share: 0.35}, variants[3].MatrixSetting)
	check.Equal(t, MatrixSetting{Neighbors: 200, Power: 3}, variants[4].MatrixSetting)
	check.Equal(t, 1, len((&Grid{Neighbors: []int{200}}).Variants(usualMatrix)))
}

func TestGridsRefuseValuesOutOfRange(t *testing.T) {
	nan := math.NaN()
	for want, g := range map[string]Grid{
		"--neighbors: 0 not in":         {Neighbors: []int{10, 0}},
		"--neighbors: 10001 not in":     {Neighbors: []int{10001}},
		"--min-similarity: NaN not in":  {MinSimilarity: []float64{nan}},
		"--min-similarity: 1 not in":    {MinSimilarity: []float64{1}},
		"--power: 0 not in":             {Power: []float64{0}},
		"--power: NaN not in":           {Power: []float64{nan}},
		"--power: +Inf not in":          {Power: []float64{math.Inf(1)}},
		"--embedding-share: -0.1 not":   {Share: []float64{-0.1}},
		"--embedding-share: 1 not in":   {Share: []float64{1}},
		"51 values to try, at most 50":  {Neighbors: make([]int, 51)},
		"--embedding-share: NaN not in": {Share: []float64{nan}},
	} {
		if err := g.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", g, err, want)
		}
	}
}

// swept returns a sweep over 40 queries. The matrices gain the given amounts of
// nDCG@10 for each query, which differ by noise between queries, and have the
// given sizes.
func swept(gains, noise []float64, sizes []int64) *SweepResult {
	const queries = 40
	r := &Result{Measures: []string{SweptMeasure}}
	matrices := make([]SweptMatrix, len(gains))
	for i := range queries {
		q := QueryResult{Query: Query{ID: string(rune('a' + i))}}
		q.Arms = append(q.Arms, Ranked{Measures: map[string]float64{SweptMeasure: 0.4}})
		for k := range gains {
			value := 0.4 + gains[k] + noise[k]*float64(2*(i%2)-1)
			q.Arms = append(q.Arms, Ranked{Measures: map[string]float64{SweptMeasure: value}, Added: []AddedTerm{{}, {}}})
		}
		r.Queries = append(r.Queries, q)
	}
	answered := make([]Answered, queries)
	for i := range answered {
		answered[i].Answers = make([]Answer, len(gains)+1)
	}
	variants := (&Grid{Neighbors: []int{10, 30}, Power: []float64{1, 2}, Share: []float64{0, 0.5}}).Variants(usualMatrix)
	for k := range len(gains) + 1 {
		r.Arms = append(r.Arms, sumUp(Arm{}, k, r, answered))
	}
	compare(r, SweptMeasure)
	for k := range matrices {
		matrices[k] = SweptMatrix{Variant: variants[k], Bytes: sizes[k], EngineMillis: 2 + float64(k), DirectMillis: 2}
	}
	return Sweep(r, matrices)
}

func TestSweepTakesTheSmallestFileThatIsNotSurelyWorse(t *testing.T) {
	for _, test := range []struct {
		name         string
		gains, noise []float64
		bytes        []int64
		best, take   int
		says         []string
	}{
		{"a smaller one may be as good", []float64{0.2, 0.1, 0.195}, []float64{0.02, 0.02, 0.05}, []int64{9e6, 1e6, 3e6}, 0, 2, []string{
			"neighbors 30 (--top 30): the smallest file that is not surely worse than the best, the default (the defaults)", "ranks surely better than direct search: nDCG@10 +0.1950 (+48.7 %)",
		}},
		{"smaller ones are surely worse", []float64{0.2, 0.1, 0.15}, []float64{0.02, 0.02, 0.02}, []int64{9e6, 1e6, 3e6}, 0, 0, []string{"the default (the defaults): the best"}},
		{"the smaller of two equal ones", []float64{0.2, 0.2, 0.1}, []float64{0.02, 0.02, 0.02}, []int64{9e6, 1e6, 3e6}, 1, 1, []string{"neighbors 10 (--top 10): the best"}},
		{"what is not surely better than direct search does not replace what is", []float64{0.1, 0.05, 0}, []float64{0.02, 0.6, 0.6}, []int64{9e6, 3e6, 1e6}, 0, 0, []string{"the default"}},
		{"nothing is surely better", []float64{0.01, 0, -0.1}, []float64{0.3, 0.3, 0.3}, []int64{9e6, 1e6, 3e6}, 0, 0, []string{"does not rank surely better than direct search"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := swept(test.gains, test.noise, test.bytes)
			check.Equal(t, [2]int{test.best, test.take}, [2]int{s.Best, s.Take}, s.Advice())
			for _, want := range test.says {
				check.That(t, strings.Contains(s.Advice()+"\n"+s.Gain(), want), "%s\n%s", s.Advice(), s.Gain())
			}
		})
	}
}

func TestSweepWarnsOfFewQueries(t *testing.T) {
	s := swept([]float64{0.2, 0.1}, []float64{0.1, 0.1}, []int64{2, 1})
	check.That(t, strings.HasPrefix(s.Caution(), "Warning: 40 judged queries are few"), "%s", s.Caution())
	s.Queries = 100
	check.That(t, !strings.Contains(s.Caution(), "Warning"), "%s", s.Caution())
}

func TestMeanEngineIsOfOneArm(t *testing.T) {
	answered := []Answered{{Answers: []Answer{{Engine: time.Millisecond}, {Engine: 4 * time.Millisecond}}}, {Answers: []Answer{{}, {Engine: 5 * time.Millisecond}}}}
	check.Equal(t, [2]float64{0.5, 4.5}, [2]float64{MeanEngine(answered, 0), MeanEngine(answered, 1)})
	check.Equal(t, 0, MeanEngine(nil, 0))
}

// sweepSample is a sweep with all factors.
func sweepSample() *SweepResult {
	s := swept([]float64{0.2, 0.1, 0.195, 0.1, 0.15, 0.1, 0.21}, []float64{0.02, 0.02, 0.05, 0.1, 0, 0.1, 0.1}, []int64{9e6, 1e6, 3e6, 9e6, 9e6, 8e6, 9e6})
	s.notes = []Note{{1, "judged documents are not in the index, and count as not found", []string{"<b>gone"}}}
	return s
}

func TestSweepPagesNeedNothingElse(t *testing.T) {
	s := sweepSample()
	var page, again bytes.Buffer
	check.OK(t, WriteSweepPage(&page, s))
	check.OK(t, WriteSweepPage(&again, s))
	check.That(t, bytes.Equal(page.Bytes(), again.Bytes()), "other bytes")
	text := page.String()
	for _, want := range []string{s.Advice(), "the default", "embedding-share 0.5", "(take)", "&lt;b&gt;gone", "9 MB"} {
		check.That(t, strings.Contains(text, want), "the page lacks %q", want)
	}
	for _, bad := range []string{"NaN", "Inf", "%!", "ZgotmplZ"} {
		check.That(t, !strings.Contains(text, bad), "a value is %s", bad)
	}
	images := regexp.MustCompile(`src="([^"]*)"`).FindAllStringSubmatch(text, -1)
	check.Must(t, len(images) == 2, "%d pictures", len(images))
	for _, image := range images {
		encoded, inside := strings.CutPrefix(strings.ReplaceAll(image[1], "&#43;", "+"), "data:image/svg+xml;base64,")
		drawn, err := base64.StdEncoding.DecodeString(encoded)
		check.Must(t, inside && err == nil, "%.60s: %v", image[1], err)
		for _, want := range []string{"neighbors", "power", "embedding-share", "direct search", "default", ">30<"} {
			check.That(t, bytes.Contains(drawn, []byte(want)), "a picture lacks %q", want)
		}
		check.That(t, !bytes.Contains(drawn, []byte("href=")) && !bytes.Contains(drawn, []byte("url(")), "a picture loads something")
	}
	check.That(t, !regexp.MustCompile(`https?://|<script|<link rel="style`).MatchString(text), "the page loads something")
}

func TestSweepTablesAndJSONHaveTheSameFigures(t *testing.T) {
	s := sweepSample()
	var table bytes.Buffer
	check.OK(t, s.Print(&table))
	for _, want := range []string{
		"40 queries", "direct search    ", "\nneighbors 10         0.5000  +0.1000 (+25.0 %)", "1 MB", "\nTake embedding-share 0.5 (--embedding-share 0.5): the best",
		"Warning: 40 judged", "1 judged documents are not in the index, and count as not found: \"<b>gone\"",
	} {
		check.That(t, strings.Contains(table.String(), want), "the table lacks %q:\n%s", want, table.String())
	}
	text, err := json.Marshal(s)
	check.OK(t, err)
	for _, want := range []string{`"direct":0.4`, `"factor":"neighbors","value":10,"bytes":1000000,"engine_ms":3,"direct_engine_ms":2,"added_terms":2,"nDCG@10":{"mean":0.5`} {
		check.That(t, bytes.Contains(text, []byte(want)), "JSON lacks %s: %s", want, text)
	}
}
