package evaluate

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// golden returns a file of testdata/exchange, which were written by hand after
// the sources that jsonFile names.
func golden(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "exchange", name))
	if err != nil {
		t.Fatal(err)
	}
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
			got, err := ReadJudged(nil, &JudgedFile{test.file, strings.NewReader(golden(t, test.file))})
			if err != nil {
				t.Fatal(err)
			}
			want := exchanged()
			want.Ungraded = test.ungraded
			if !test.unrated {
				want.Queries = want.Queries[:2]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestTablesOfSpreadsheetsWithSemicolonsAreRead(t *testing.T) {
	got, err := ReadJudged(nil, &JudgedFile{"f", strings.NewReader("query_id;query;document;text;grade\r\n1;red dress;a;\"x; y\";3\r\n1;red dress;b;z;\r\n")})
	if err != nil {
		t.Fatal(err)
	}
	want := &Set{Queries: []Query{{ID: "1", Text: "red dress"}}, Grades: map[string]map[string]float64{"1": {"a": 3}}, Ungraded: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestFormulasInSpreadsheetsStayText wants what begins like a formula with a
// blank in front, which goes when it is read.
func TestFormulasInSpreadsheetsStayText(t *testing.T) {
	hostile := `=HYPERLINK("http://x","y")`
	var b strings.Builder
	table := csv.NewWriter(&b)
	if err := table.WriteAll([][]string{{"query_id", "query", "document", "grade"}, {Cell("@1"), Cell(hostile), Cell("-Ab_1"), "2"}}); err != nil {
		t.Fatal(err)
	}
	for _, cell := range []string{`" =HYPERLINK(`, `" @1"`, `" -Ab_1"`} {
		if !strings.Contains(b.String(), cell) {
			t.Errorf("no cell %s in\n%s", cell, &b)
		}
	}
	got, err := ReadJudged(nil, &JudgedFile{"f", strings.NewReader(b.String())})
	if err != nil {
		t.Fatal(err)
	}
	want := &Set{Queries: []Query{{ID: "@1", Text: hostile}}, Grades: map[string]map[string]float64{"@1": {"-Ab_1": 2}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestMistakesInFilesOfOtherProgramsHaveTheirLine(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{
			"no number", "{\"judgmentRatings\": [{\"query\": \"a\", \"ratings\": [\n{\"docId\": \"x\", \"rating\": \"0,7\"}]}]}",
			`f:2: the grade "0,7" is no number`,
		},
		{
			"two grades", "{\"judgmentRatings\": [{\"query\": \"a\", \"ratings\": [{\"docId\": \"x\", \"rating\": 1},\n{\"docId\": \"x\", \"rating\": \"2.000\"}]}]}",
			`f:2: document "x" of query "a" has grade 2 here and 1 in f:1`,
		},
		{"no document", `{"judgmentRatings": [{"query": "a", "ratings": [{"rating": 1}]}]}`, "needs a query and a document"},
		{"ratings of another kind", "{\"queries\": [\n{\"query\": \"a\", \"ratings\": [1]}]}", "f:2: not as JSON with judgments is: "},
		{"no text", `{"queries": [{"ratings": {"x": 1}}]}`, "needs an id and a text"},
		{"nothing known", `{"judgments": []}`, "want \"requests\""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ReadJudged(nil, &JudgedFile{"f", strings.NewReader(test.text)})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

// Lines are counted for each rating, which has taken minutes for as many.
func TestManyRatingsOfOtherProgramsAreReadInTime(t *testing.T) {
	const ratings = 200_000
	var text strings.Builder
	text.WriteString(`{"judgmentRatings": [{"query": "a", "ratings": [`)
	for i := range ratings {
		fmt.Fprintf(&text, "\n{\"docId\": \"document-%030d\", \"rating\": \"1.000\"},", i)
	}
	began := time.Now()
	_, err := ReadJudged(nil, &JudgedFile{"f", strings.NewReader(text.String() + "\n" + `{"docId": "x", "rating": "x"}]}]}`)})
	if err == nil || !strings.Contains(err.Error(), "f:200002: the grade") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("%d ratings took %v", ratings, took)
	}
}
