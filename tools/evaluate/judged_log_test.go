package evaluate

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/akin-search/akin/e2e/check"
)

func logFile(content string) *JudgedFile { return &JudgedFile{"log", strings.NewReader(content)} }

func TestLogsHaveQueriesWithTheirCounts(t *testing.T) {
	long := strings.Repeat("x", maxText+1)
	for name, test := range map[string]struct {
		log    string
		want   []Query
		causes []string // how what is said of skipped lines begins
	}{
		"text": {"wind tunnel\n\n  flutter \r\nwind tunnel", []Query{{ID: "wind tunnel", Text: "wind tunnel", Count: 2}, {ID: "flutter", Text: "flutter", Count: 1}}, nil},
		"JSON": {
			"\r\n" + `{"id":"17","query":"wind tunnel","count":3}` + "\n" + `{"query":"flutter"}` + "\n" + `{"id":"18","query":"wind tunnel"}`,
			[]Query{{ID: "17", Text: "wind tunnel", Count: 4}, {ID: "flutter", Text: "flutter", Count: 1}},
			nil,
		},
		"a set of the workbench": {
			"{\n\"sampling\": \"manual\",\n\"querySetQueries\": [{\"queryText\": \"wing\"}, {\"queryText\": \"wing\"}]}",
			[]Query{{ID: "wing", Text: "wing", Count: 1}},
			nil, // a set has it once
		},
		"no texts": {"wing\n" + long + "\n\xff\xfe\n", []Query{{ID: "wing", Text: "wing", Count: 1}}, []string{"log:2: a query of 8193 bytes is too long", "log:3: not UTF-8"}},
		"no queries": {
			`{"query":"wing"}` + "\n" + `{"q":"x"}` + "\n" + `{"query":"y","count":0}` + "\nplain",
			[]Query{{ID: "wing", Text: "wing", Count: 1}},
			[]string{"log:2: ", "log:3: ", "log:4: "},
		},
		"an id of two texts": {`{"id":"1","query":"a"}` + "\n" + `{"id":"1","query":"b"}`, []Query{{ID: "1", Text: "a", Count: 1}}, []string{`log:2: query "1" is also in log:1`}},
	} {
		t.Run(name, func(t *testing.T) {
			log := check.Got(ReadLog(logFile(test.log)))(t)
			check.Equal(t, test.want, log.Queries)
			check.Must(t, log.Skipped == len(test.causes) && len(log.Causes) == len(test.causes), "%d lines skipped, for %v", log.Skipped, log.Causes)
			for i, want := range test.causes {
				got := log.Causes[i].Error()
				check.That(t, strings.HasPrefix(got, want), "cause %q, want %q", got, want)
			}
		})
	}
}

func TestLogWithoutQueriesIsAnError(t *testing.T) {
	for _, data := range []string{"", "\n\n", `{"text":"x"}`} {
		check.That(t, check.ErrOf(ReadLog(logFile(data))) != nil, "%q: no error", data)
	}
}

// FuzzLog wants of every log usable queries, each once, and no line lost.
func FuzzLog(f *testing.F) {
	f.Add([]byte("wing\nflutter\nwing"))
	f.Add([]byte(`{"id":"1","query":"wing","count":2}` + "\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		log, err := ReadLog(logFile(string(data)))
		if err != nil {
			return
		}
		texts, ids := map[string]bool{}, map[string]bool{}
		for _, q := range log.Queries {
			check.Must(t, q.Text != "" && q.ID != "" && q.Count >= 1 && !texts[q.Text] && !ids[q.ID] && utf8.ValidString(q.Text), "%q: %+v", data, q)
			texts[q.Text], ids[q.ID] = true, true
		}
	})
}
