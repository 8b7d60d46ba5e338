package answer

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
)

func TestReadTotalsOfSeveralSearches(t *testing.T) {
	const answer = `{"took":1,"responses":[
		{"timed_out":false,"_shards":{"total":3,"failed":0},"hits":{"total":{"relation":"gte","value":10000},"hits":[{"_source":{"hits":{"total":1}}}]}},
		{"hits":{"total":4,"hits":[]}}, {"hits":{"hits":[]}}, {"error":{"type":"x"},"status":400},
		{"_shards":{"total":3,"failed":1},"hits":{"total":{"value":2}}}, {"timed_out":true,"hits":{"total":{"value":2}}}]}`
	got, err := ReadTotals(strings.NewReader(answer), expand.EndpointMultiSearch)
	want := []Total{
		{Hits: 10000, AtLeast: true, Page: 1},
		{Hits: 4},
		{Hits: -1},
		{Hits: -1, Page: -1, Failed: true},
		{Hits: 2, Page: -1, Failed: true},
		{Hits: 2, Page: -1, Failed: true},
	}
	diff := cmp.Diff(want, got)
	check.That(t, err == nil && diff == "", "%v (-want +got):\n%s", err, diff)
}

// Where a search counts its hits up to a number, or not at all, the page tells
// that it finds fewer than it asks for.
func TestReadTotalsReadsThePageWhereTheTotalIsNoExactNumber(t *testing.T) {
	for text, want := range map[string]Total{
		`{"hits":{"total":{"value":7,"relation":"eq"},"hits":[{},{}]}}`:  {Hits: 7, Page: -1},
		`{"hits":{"total":{"value":5,"relation":"gte"},"hits":[{},{}]}}`: {Hits: 5, AtLeast: true, Page: 2},
		`{"hits":{"max_score":1,"hits":[{"a":[1]}]}}`:                    {Hits: -1, Page: 1},
		`{"hits":{"max_score":1,"hits":[{"a":[1]},{"b":`:                 {Hits: 2, AtLeast: true, Page: -1},
		`{"hits":{"total":null,"hits":{}}}`:                              {Hits: -1, Page: -1},
	} {
		got, err := ReadTotals(strings.NewReader(text), expand.EndpointSearch)
		diff := cmp.Diff([]Total{want}, got)
		check.That(t, err == nil && diff == "", "%s: %v (-want +got):\n%s", text, err, diff)
	}
}

// Whatever comes as an answer, the total is the one that is in it, or none.
func FuzzReadTotals(f *testing.F) {
	f.Add(`{"hits":{"total":{"value":3}}}`)
	f.Add(`{"_shards":{"failed":2},"hits":{"total":7}}`)
	f.Add(`{"hits":{"total":1e3}}`)
	f.Add(`{"responses":[{"hits":{}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = ReadTotals(strings.NewReader(text), expand.EndpointMultiSearch)
		totals, err := ReadTotals(strings.NewReader(text), expand.EndpointSearch)
		if err != nil || totals[0].Hits < 0 || strings.Contains(text, "count") || strings.Count(text, "hits") > 1 || strings.Contains(text, `\u`) {
			return
		}
		var answer struct{ Hits struct{ Total any } }
		if json.Unmarshal([]byte(text), &answer) != nil {
			return // only the beginning is read
		}
		n, _ := answer.Hits.Total.(float64)
		if object, ok := answer.Hits.Total.(map[string]any); ok {
			n, _ = object["value"].(float64)
		}
		check.Equal(t, totals[0].Hits, int64(n), text, n)
	})
}

func TestReplaceSearchesLeavesOddAnswersAlone(t *testing.T) {
	const three = `{"responses":[ {"a":1}, {"b":2},{"c":3} ]}`
	for name, tt := range map[string]struct {
		answer, others string
		some           []int
		want           string
	}{
		"two of three":    {three, `{"responses":[{"x":1},{"y":2}]}`, []int{0, 2}, `{"responses":[ {"x":1}, {"b":2},{"y":2} ]}`},
		"too few":         {three, `{"responses":[{"x":1}]}`, []int{0, 2}, ""},
		"not in it":       {three, `{"responses":[{"x":1}]}`, []int{3}, ""},
		"none":            {three, `{"responses":[]}`, nil, ""},
		"no answer":       {three, `{"error":{}}`, []int{0}, ""},
		"one that breaks": {`{"responses":[{}`, `{"responses":[{"x":1}]}`, []int{0}, ""},
	} {
		check.Equal(t, tt.want, string(ReplaceSearches([]byte(tt.answer), []byte(tt.others), tt.some)), name)
	}
}
