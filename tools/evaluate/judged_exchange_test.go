package evaluate

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/akin-search/akin/e2e/check"
)

// golden returns a file of testdata/exchange, which were written by hand after
// the sources that jsonFile names.
func golden(t *testing.T, name string) string {
	t.Helper()
	data := check.Got(os.ReadFile(filepath.Join("testdata", "exchange", name)))(t)
	return string(data)
}

// exchanged is what all files of testdata/exchange have.
func exchanged() *Set {
	return &Set{
		Queries: []Query{{ID: "red dress", Text: "red dress"}, {ID: "-40 °C, cold", Text: "-40 °C, cold"}, {ID: "unrated", Text: "unrated"}},
		Grades:  map[string]map[string]float64{"red dress": {"B077ZJXCTS": 3, "B071S6LTJJ": 0}, "-40 °C, cold": {"17": 1}},
	}
}

func TestJudgmentsOfOtherProgramsAreRead(t *testing.T) {
	for _, test := range []struct {
		file     string
		ungraded int
		unrated  bool // the query without ratings is there
	}{
		{"quepid.csv", 1, true},
		{"quepid-ratings.json", 0, true},
		{"quepid-case.json", 1, true},
		{"quepid-case-old.json", 0, true},
		{"workbench-judgments.json", 0, false},
		{"workbench-stored.json", 0, false},
	} {
		t.Run(test.file, func(t *testing.T) {
			got := check.Got(ReadJudged(nil, &JudgedFile{test.file, strings.NewReader(golden(t, test.file))}))(t)
			want := exchanged()
			want.Ungraded = test.ungraded
			if !test.unrated {
				want.Queries = want.Queries[:2]
			}
			check.Equal(t, want, got)
		})
	}
}

// TestFormulasInSpreadsheetsStayText wants what begins like a formula with a
// blank in front, which goes when it is read.
func TestFormulasInSpreadsheetsStayText(t *testing.T) {
	hostile := `=HYPERLINK("http://x","y")`
	var b strings.Builder
	table := csv.NewWriter(&b)
	check.OK(t, table.WriteAll([][]string{{"query_id", "query", "document", "grade"}, {Cell("@1"), Cell(hostile), Cell("-Ab_1"), "2"}}))
	for _, cell := range []string{`" =HYPERLINK(`, `" @1"`, `" -Ab_1"`} {
		check.That(t, strings.Contains(b.String(), cell), "no cell %s in\n%s", cell, &b)
	}
	got := check.Got(ReadJudged(nil, &JudgedFile{"f", strings.NewReader(b.String())}))(t)
	want := &Set{Queries: []Query{{ID: "@1", Text: hostile}}, Grades: map[string]map[string]float64{"@1": {"-Ab_1": 2}}}
	check.Equal(t, want, got)
}

// Lines are counted for each rating, which has taken hundreds of times as long
// as the decoding alone.
func TestManyRatingsOfOtherProgramsAreReadInTime(t *testing.T) {
	const ratings = 200_000
	var text strings.Builder
	text.WriteString(`{"judgmentRatings": [{"query": "a", "ratings": [`)
	for i := range ratings {
		fmt.Fprintf(&text, "\n{\"docId\": \"document-%030d\", \"rating\": \"1.000\"},", i)
	}
	text.WriteString("\n" + `{"docId": "x", "rating": "x"}]}]}`)
	began := time.Now()
	check.OK(t, json.Unmarshal([]byte(text.String()), new(jsonFile)))
	decoded := time.Since(began)
	began = time.Now()
	_, err := ReadJudged(nil, &JudgedFile{"f", strings.NewReader(text.String())})
	check.Message(t, "f:200002: the grade", err)
	took := time.Since(began)
	check.That(t, took <= 50*decoded, "%d ratings took %v, and their decoding %v", ratings, took, decoded)
}
