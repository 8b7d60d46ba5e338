package evaluate

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func logFile(content string) *JudgedFile { return &JudgedFile{"log", strings.NewReader(content)} }

func TestLogOfTextCountsRepeatedQueries(t *testing.T) {
	log, err := ReadLog(logFile("wind tunnel\n\n  flutter \r\nwind tunnel"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Query{{ID: "wind tunnel", Text: "wind tunnel", Count: 2}, {ID: "flutter", Text: "flutter", Count: 1}}
	if diff := cmp.Diff(want, log.Queries); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
}

func TestLogOfJSONHasIDsAndCounts(t *testing.T) {
	log, err := ReadLog(logFile("\r\n" + `{"id":"17","query":"wind tunnel","count":3}
{"query":"flutter"}
{"id":"18","query":"wind tunnel"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Query{{ID: "17", Text: "wind tunnel", Count: 4}, {ID: "flutter", Text: "flutter", Count: 1}}
	if diff := cmp.Diff(want, log.Queries); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
}

func TestLinesWithoutAQueryAreCountedAndNamed(t *testing.T) {
	long := strings.Repeat("x", maxText+1)
	log, err := ReadLog(logFile("wing\n" + long + "\n\xff\xfe\n"))
	if err != nil || log.Skipped != 2 || len(log.Causes) != 2 {
		t.Fatalf("%+v, %v; want two lines skipped", log, err)
	}
	for i, want := range []string{"log:2: 8193 bytes are too long", "log:3: not UTF-8"} {
		if got := log.Causes[i].Error(); !strings.HasPrefix(got, want) {
			t.Errorf("cause %q, want %q", got, want)
		}
	}
	log, err = ReadLog(logFile(`{"query":"wing"}` + "\n" + `{"q":"x"}` + "\n" + `{"query":"y","count":0}` + "\nplain"))
	if err != nil || log.Skipped != 3 || len(log.Queries) != 1 {
		t.Errorf("%+v, %v; want three lines skipped", log, err)
	}
}

func TestLogWithoutQueriesIsAnError(t *testing.T) {
	for _, data := range []string{"", "\n\n", `{"text":"x"}`} {
		if _, err := ReadLog(logFile(data)); err == nil {
			t.Errorf("%q: no error", data)
		}
	}
}

func TestIDOfTwoTextsIsSkipped(t *testing.T) {
	log, err := ReadLog(logFile(`{"id":"1","query":"a"}` + "\n" + `{"id":"1","query":"b"}`))
	if err != nil || len(log.Queries) != 1 || log.Skipped != 1 || log.Causes[0].Error() != `log:2: query "1" is in log:1, too` {
		t.Errorf("%+v, %v", log, err)
	}
}

func TestQuerySetOfTheWorkbenchIsALog(t *testing.T) {
	log, err := ReadLog(logFile("{\n\"sampling\": \"manual\",\n\"querySetQueries\": [{\"queryText\": \"wing\"}, {\"queryText\": \"wing\"}]}"))
	if err != nil || len(log.Queries) != 1 || log.Queries[0].ID != "wing" {
		t.Errorf("%+v, %v", log, err)
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
			if q.Text == "" || q.ID == "" || q.Count < 1 || texts[q.Text] || ids[q.ID] || !utf8.ValidString(q.Text) {
				t.Fatalf("%q: %+v", data, q)
			}
			texts[q.Text], ids[q.ID] = true, true
		}
	})
}
