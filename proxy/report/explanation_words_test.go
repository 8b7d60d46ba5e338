package report

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
)

func TestClausesShowTheWordsOfTheirTerms(t *testing.T) {
	forms := map[string]map[string]string{
		"main@1":  {"nappi": "nappies", "diaper": "diapers", "pin": "pins", "\x1fbabi\x1fnappi": "baby nappies"},
		"other@2": {"ga": "gas"},
	}
	asked := map[string][]string{}
	clauses := []expand.Explanation{
		{
			Matrix: "main@1", Terms: []string{"nappi", "cheap", "gift"}, Written: []string{"", "CHEAPER", "gift"}, NoRow: []string{"cheap"},
			Added:    []expand.Added{{Term: "diaper", From: "nappi"}, {Term: "ga", From: "nappi"}},
			Nearest:  []expand.NearestWord{{Term: "cheap", Known: "nappi"}},
			LeftOut:  []expand.LeftOut{{Term: "pin", From: "nappi"}},
			Feedback: []expand.AddedFeedback{{Term: "pin"}},
			Alternatives: []expand.Alternative{
				{Key: "\x1fbabi\x1fnappi", ForKey: "diaper"}, {Key: "diaper", ForKey: "\x1fbabi\x1fnappi"}, {Key: "pin", ForKey: "nappi"},
			},
		},
		{Path: "query.term"},
		{Matrix: "other@2", Terms: []string{"ga"}, Added: []expand.Added{{Term: "oil", From: "ga"}}},
		{Matrix: "main@1", Terms: []string{"diaper"}},
	}
	got := Show(t.Context(), clauses, func(_ context.Context, matrix string, terms []string) (words, notes map[string]string) {
		asked[matrix] = append(asked[matrix], terms...)
		return forms[matrix], map[string]string{"\x1fbabi\x1fnappi": "synonyms.txt:3"}
	})
	want := slices.Clone(clauses)
	want[0].Written = nil
	want[0].Words = map[string]string{"nappi": "nappies", "cheap": "CHEAPER"}
	want[0].Added = []expand.Added{{Term: "diaper", From: "nappi", Word: "diapers"}, {Term: "ga", From: "nappi"}}
	want[0].Nearest = []expand.NearestWord{{Term: "cheap", Known: "nappi", Word: "nappies"}}
	want[0].LeftOut = []expand.LeftOut{{Term: "pin", From: "nappi", Word: "pins"}}
	want[0].Feedback = []expand.AddedFeedback{{Term: "pin", Word: "pins"}}
	want[0].Alternatives = []expand.Alternative{
		{Word: "baby nappies", Source: "synonyms.txt:3"},
		{Word: "diapers", Source: "synonyms.txt:3"},
		{Word: "pins"},
	}
	want[2].Words = map[string]string{"ga": "gas"}
	want[3].Words = map[string]string{"diaper": "diapers"}
	check.Equal(t, want, got, cmpopts.EquateEmpty(), "shown")
	wantAsked := map[string][]string{"main@1": {"\x1fbabi\x1fnappi", "cheap", "diaper", "ga", "gift", "nappi", "pin"}, "other@2": {"ga", "oil"}}
	check.Equal(t, wantAsked, asked, "asked once for each matrix")
	for _, c := range Show(t.Context(), clauses, nil) {
		check.That(t, c.Words["nappi"] == "" && !slices.ContainsFunc(c.Added, func(a expand.Added) bool { return a.Word != "" }), "words without forms: %+v", c)
	}
}

func TestListedSearchesHaveTheirText(t *testing.T) {
	var x Ring
	for _, clauses := range [][]expand.Explanation{
		nil,
		{{Path: "query.term"}, {Terms: []string{"nappi", "cheap"}, Written: []string{"Nappies", ""}}, {Terms: []string{"nappi"}}},
		{{Terms: []string{strings.Repeat("long", 100)}}},
	} {
		x.Add(&Record{Result: &expand.Result{Clauses: clauses}})
	}
	listed := x.Last(3)
	check.That(t, listed[1].Text == "Nappies cheap" && listed[2].Text == "" && len(listed[0].Text) == maxText, "listed: %+v", listed)
}
