package evaluate

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// exportedSet has the queries of testdata/exchange, and their searches as an
// arm sends them: one with related words, which is rescored, and one as it came.
func exportedSet() (*Set, []Arm, []Answered) {
	sent := func(body string) []Answer { return []Answer{{Sent: []byte(body)}} }
	return exchanged(), []Arm{{Name: "new"}}, []Answered{
		{"red dress", sent(`{"query":{"match":{"title":"red dress"}},"size":100,"_source":false,"rescore":{"window_size":100,"query":{"query_weight":1,"rescore_query":{"match":{"title":"gown"}}}}}`)},
		{"-40 °C, cold", sent(`{"query":{"match":{"title":"-40 °C, cold"}},"size":100,"_source":false}`)},
	}
}

// render puts the fields of a query into a template, as Mustache does with
// variables and sections that have no others in them.
func render(t *testing.T, template string, fields WorkbenchQuery) string {
	t.Helper()
	var sections []string
	for template != "" {
		begin, rest, ok := strings.Cut(template, "{{#")
		check.That(t, ok && begin == "", "no section begins %s", template)
		name, rest, _ := strings.Cut(rest, "}}")
		inside, after, ok := strings.Cut(rest, "{{/"+name+"}}")
		check.That(t, ok, "section %s has no end", name)
		if template = after; fields[name] != "" {
			sections = append(sections, inside)
		}
	}
	out := strings.Join(sections, "")
	for name, value := range fields {
		out = strings.ReplaceAll(out, "{{"+name+"}}", value)
	}
	for strings.Contains(out, "{{") { // a variable without a value
		begin, rest, _ := strings.Cut(out, "{{")
		_, rest, _ = strings.Cut(rest, "}}")
		out = begin + rest
	}
	return out
}

func TestExportIsWhatTheWorkbenchTakes(t *testing.T) {
	set, arms, answered := exportedSet()
	e := check.Got(NewExport("akin", "dresses", set, arms, answered))(t)
	got := map[string]any{"PUT query_sets": e.QuerySet, "PUT judgments": e.Judgments, "PUT search_configurations": e.Searches}
	text := check.Got(json.MarshalIndent(got, "", "  "))(t)
	check.Equal(t, golden(t, "workbench-export.json"), string(text)+"\n")
	judgments := check.Got(json.Marshal(e.Judgments))(t)
	read := check.Got(ReadJudged(nil, &JudgedFile{"judgments.json", strings.NewReader(string(judgments))}))(t)
	check.Equal(t, exchanged().Grades, read.Grades)
}

func TestAnExportedSearchIsTheOneThatWasSent(t *testing.T) {
	set, arms, answered := exportedSet()
	long := strings.Repeat("long ", 3*workbenchText)
	answered[1].Answers[0].Sent = []byte(`{"query":{"match":{"title":"` + long + `"}},"_source":false}`)
	e := check.Got(NewExport("akin", "dresses", set, arms, answered))(t)
	for k, a := range answered {
		query := e.QuerySet.Queries[k]
		for name, value := range query {
			check.That(t, len(value) <= workbenchText && !strings.ContainsAny(value, refusedByTexts), "%s has %d characters: %.40s", name, len(value), value)
		}
		var want, got map[string]json.RawMessage
		check.OK(t, json.Unmarshal([]byte(render(t, e.Searches[0].Query, query)), &got))
		check.OK(t, json.Unmarshal(a.Answers[0].Sent, &want))
		var wrapped struct {
			Wrapper struct{ Query []byte }
		}
		check.OK(t, json.Unmarshal(got["query"], &wrapped))
		check.Equal(t, string(want["query"]), string(wrapped.Wrapper.Query))
		check.Equal(t, k == 0, got["rescore"] != nil)
		if k == 0 {
			check.That(t, strings.Contains(string(got["rescore"]), base64.StdEncoding.EncodeToString([]byte(`{"match":{"title":"gown"}}`))), "%s", got["rescore"])
		}
	}
}

func TestExportLeavesOutWhatTheWorkbenchRefuses(t *testing.T) {
	set := &Set{Queries: []Query{{ID: "1", Text: "tv"}, {ID: "2", Text: `22" tv`}, {ID: "3", Text: "C#"}, {ID: "4", Text: strings.Repeat("é", workbenchText+1)}}}
	var answered []Answered
	for _, q := range set.Queries {
		answered = append(answered, Answered{q.ID, []Answer{{Sent: []byte(`{"query":{"match_all":{}}}`), Reordered: true}}})
	}
	e := check.Got(NewExport("akin", "docs", set, []Arm{{Name: "new"}}, answered))(t)
	check.Equal(t, []string{"2", "3", "4"}, e.Refused)
	check.Equal(t, map[string]int{"new": 1}, e.Reordered)
	check.Equal(t, 1, len(e.QuerySet.Queries))
	for body, why := range map[string]string{
		``:   "is not known",
		`[]`: "no JSON object",
		`{"query":{},"script_fields":{"a":{"script":"{{x}}"}}}`: "{{",
		`{"query":{},"rescore":[{"script":{}}]}`:                "only those with a query",
		`{"query":{},"rescore":1}`:                              "rescore: ",
	} {
		_, err := NewExport("akin", "docs", set, []Arm{{Name: "new"}}, []Answered{{"1", []Answer{{Sent: append([]byte(nil), body...)}}}})
		check.That(t, err != nil && strings.Contains(err.Error(), why), "%s: %v", body, err)
	}
	differ := make([]Answered, 0, 100)
	for range cap(differ) { // forms that differ in a text of their own
		differ = append(differ, Answered{"1", []Answer{{Sent: []byte(`{"suggest":{"text":"` + strings.Repeat("x", 700+len(differ)) + `"}}`)}}})
	}
	_, err := NewExport("akin", "docs", set, []Arm{{Name: "new"}}, differ)
	check.That(t, err != nil && strings.Contains(err.Error(), "highlight and suggest"), "%v", err)
	_, err = NewExport("akin", "docs", &Set{}, []Arm{{Name: "new"}}, answered)
	check.That(t, err != nil && strings.Contains(err.Error(), "no text"), "%v", err)
}

func TestQuepidReadsWhatIsWrittenForIt(t *testing.T) {
	var b strings.Builder
	check.OK(t, WriteQuepid(&b, exchanged()))
	check.Equal(t, "query,docid,rating\nred dress,B071S6LTJJ,0\nred dress,B077ZJXCTS,3\n\" -40 °C, cold\",17,1\n", b.String())
}
