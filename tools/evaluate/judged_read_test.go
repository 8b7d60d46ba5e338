package evaluate

import (
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func file(name, content string) *JudgedFile {
	if content == "" {
		return nil
	}
	return &JudgedFile{name, strings.NewReader(content)}
}

func TestFormatsAreRecognized(t *testing.T) {
	want := &Set{
		Queries: []Query{{ID: "1", Text: "car hire"}, {ID: "2", Text: "wing, flow"}},
		Grades:  map[string]map[string]float64{"1": {"a": 2, "b": 0}, "2": {"c": -1}},
	}
	byText := &Set{
		Queries:  []Query{{ID: "car hire", Text: "car hire"}, {ID: "wing, flow", Text: "wing, flow"}},
		Grades:   map[string]map[string]float64{"car hire": {"a": 2, "b": 0}, "wing, flow": {"c": -1}},
		Ungraded: 1,
	}
	searches := &Set{
		Queries: []Query{{ID: "1", Body: []byte(`{"query": {"match_all": {}}}`)}, {ID: "2", Body: []byte(`{}`)}},
		Grades:  want.Grades,
	}
	semicolons := &Set{Queries: []Query{{ID: "1", Text: "red dress"}}, Grades: map[string]map[string]float64{"1": {"a": 3}}, Ungraded: 1}
	beir := "{\"_id\": \"1\", \"text\": \"car hire\", \"metadata\": {}}\n\n{\"_id\": \"2\", \"text\": \"wing, flow\"}\n"
	for _, test := range []struct {
		name, queries, judgments string
		want                     *Set
	}{
		{"BEIR", beir, "query-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t0\r\n2\tc\t-1\n", want},
		{"BEIR with a byte order mark", "\ufeff" + beir, "\ufeff\nquery-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t0\n2\tc\t-1", want},
		{"TREC", "1\tcar hire\n2\twing, flow\n", "1 0 a 2\n1\t0\tb\t0\n2 Q0 c -1\n", want},
		{"tabs", "1\tcar hire\n2\twing, flow\n", "1 0 a 2\n1 0 a 2\n1 0 b 0\n2 0 c -1\n", want},
		{"CSV with ids", "1\tcar hire\n2\twing, flow\n", "grade,title,Document,query\n2,x,a,1\n0,x,b,1\n-1,\"a\n\nb\",c,2\n", want},
		{"CSV with texts", "", "query,document,grade\ncar hire,a,2\ncar hire,b,0\n\"wing, flow\",c,-1\n\"wing, flow\",d,\n", byText},
		{"spreadsheet with semicolons", "", "query_id;query;document;text;grade\r\n1;red dress;a;\"x; y\";3\r\n1;red dress;b;z;\r\n", semicolons},
		{
			"_rank_eval", "", `{"requests": [{"id": "1", "request": {"query": {"match_all": {}}}, "ratings": [
			{"_index": "i", "_id": "a", "rating": 2}, {"_index": "i", "_id": "b", "rating": 0}]},
			{"id": "2", "request": {}, "ratings": [{"_id": "c", "rating": -1}]}], "metric": {"dcg": {}}}`, searches,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := check.Got(ReadJudged(file("queries", test.queries), file("judgments", test.judgments)))(t)
			check.Equal(t, test.want, got)
		})
	}
}

func TestEveryMistakeIsReportedWithItsLine(t *testing.T) {
	const queries = "1\tcar\n2\twing\n"
	for _, test := range []struct {
		name, queries, judgments string
		want                     []string
	}{
		{"other grades", queries, "1 0 a 2\n2 0 a 1\n1 0 a 1\n", []string{`judgments:3: document "a" of query "1" has grade 1 here and 2 in judgments:1`}},
		{"no numbers", queries, "1 0 a NaN\n1 0 b 0.5\n1 0 c x\n1 0 d 1e999\n", []string{`judgments:1: the grade "NaN" is no number`, `judgments:3: the grade "x"`, `judgments:4: the grade "1e999"`}},
		{"too few columns", queries, "1 0 a 1\n1 0 b\n", []string{"judgments:2: want query, 0, document and grade"}},
		{"ids twice", "1\tcar\n1\tbus\n", "1 0 a 1\n", []string{`queries:2: query "1" is also in queries:1`}},
		{"no text", "1\tcar\n2\t\n", "1 0 a 1\n", []string{"queries:2: a query needs an id and a text"}},
		{"broken JSON", "{\"_id\": \"1\", \"text\": \"car\"}\n{\"_id\": 2}\n", "1 0 a 1\n", []string{"queries:2: "}},
		{"topics", "<top>\n<num> 1\n<title> a\n</top>\n", "1 0 a 1\n", []string{"queries: \"<top>\" begins no format that is known"}},
		{"no judgments", queries, "query-id\tcorpus-id\tscore\n", []string{"judgments: no judgments"}},
		{"empty queries", "\n", "1 0 a 1\n", []string{"queries: empty"}},
		{"empty judgments", queries, "\n \n", []string{"judgments: empty"}},
		{"unknown format", queries, "what is this\n", []string{`judgments: "what is this" begins no format`}},
		{"a long line", queries, "1 0 a 1\n" + strings.Repeat("x", maxLine+1), []string{"judgments:2: the line is longer than 1048576 bytes"}},
		{"CSV", "", "query,document,grade\na,b,1\na,c\n\"a", []string{"judgments:3: wrong number of fields"}},
		{"CSV that is quoted twice", "", "\"query,document,grade\"\n\"a,b,1\"\n", []string{`judgments:1: the first line, ["query,document,grade"], does not name`}},
		{"BEIR without its header", queries, "1\ta\t0.5\n1\tb\t1\n", []string{`begins no format`}},
		{"both in CSV", "", "query,document,grade\na,b,1\na,b,2\n,c,1\n", []string{"judgments:3: document", "judgments:4: a judgment needs"}},
		{
			"_rank_eval", "", "{\"requests\": [\n{\"id\": \"1\", \"request\": {}, \"ratings\": [\n{\"_id\": \"a\", \"rating\": 1},\n" +
				"{\"_id\": \"a\", \"rating\": 2}, {\"_id\": \"b\", \"rating\": \"high\"}]},\n{\"id\": \"2\", \"template_id\": \"t\", \"ratings\": []}]}",
			[]string{`judgments:4: document "a"`, `judgments:4: the grade "high"`, `judgments:5: request "2": want the search itself`},
		},
		{"_rank_eval with queries", queries, `{"requests": [{"id": "1", "request": {}}]}`, []string{"judgments:1: the file already has the queries"}},
		{"no _rank_eval", "", "{\n\"requests\": {}}", []string{"judgments:2: not as JSON with judgments is"}},
		{
			"Quepid's grades", "", "{\"judgmentRatings\": [{\"query\": \"a\", \"ratings\": [{\"docId\": \"x\", \"rating\": 1},\n" +
				"{\"docId\": \"x\", \"rating\": \"2.000\"},{\"docId\": \"y\", \"rating\": \"0,7\"}]}]}",
			[]string{`judgments:2: document "x" of query "a" has grade 2 here and 1 in judgments:1`, `judgments:2: the grade "0,7" is no number`},
		},
		{"no document", "", `{"judgmentRatings": [{"query": "a", "ratings": [{"rating": 1}]}]}`, []string{"needs a query and a document"}},
		{"ratings of another kind", "", "{\"queries\": [\n{\"query\": \"a\", \"ratings\": [1]}]}", []string{"judgments:2: not as JSON with judgments is: "}},
		{"no text of a case", "", `{"queries": [{"ratings": {"x": 1}}]}`, []string{"needs an id and a text"}},
		{"nothing known", "", `{"judgments": []}`, []string{"want \"requests\""}},
		{"many mistakes", queries, strings.Repeat("1 0 a x\n", 50), []string{"and 30 more"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ReadJudged(file("queries", test.queries), file("judgments", test.judgments))
			check.Must(t, err != nil, "no error")
			for _, want := range test.want {
				check.That(t, strings.Contains(err.Error(), want), "%v\nwant %s", err, want)
			}
		})
	}
}

func TestQueriesOfOneSideOnlyStayKnown(t *testing.T) {
	s := check.Got(ReadJudged(file("queries", "1\tcar\n2\twing\n"), file("judgments", "3 0 a 1\n1 0 a 1\n")))(t)
	check.Equal(t, []string{"3"}, s.Unknown())
	check.Equal(t, []Query{{ID: "1", Text: "car"}}, s.Judged())
}

// FuzzRead holds that what is read without an error is a set: each query once,
// with an id and something to search for, and some judgment.
func FuzzRead(f *testing.F) {
	f.Add("1\tcar\n", "1 0 a 1\n")
	f.Add("{\"_id\": \"1\", \"text\": \"car\"}", "query-id\tcorpus-id\tscore\n1\ta\t1\n")
	f.Add("1\tcar\n", "query,document,grade\n1,a,1\n")
	f.Add("", "query,document,grade\n\"car, \"\"hire\"\"\",a,\n")
	f.Add("", `{"requests": [{"id": "1", "request": {"a": 1}, "ratings": [{"_id": "a", "rating": 1}]}]}`)
	f.Fuzz(func(t *testing.T, queries, judgments string) {
		s, err := ReadJudged(file("queries", queries), &JudgedFile{"judgments", strings.NewReader(judgments)})
		if err != nil {
			return
		}
		ids := map[string]bool{}
		for _, q := range s.Queries {
			check.That(t, !ids[q.ID] && q.ID != "" && (q.Text != "" || q.Body != nil), "query %+v", q)
			ids[q.ID] = true
		}
		n := 0
		for query, grades := range s.Grades {
			n += len(grades)
			check.That(t, query != "" && len(grades) != 0, "query %q has grades %v", query, grades)
		}
		check.That(t, n != 0, "no judgments")
	})
}
