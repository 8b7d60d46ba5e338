package evaluate

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestDocumentsThatOnlyOneArmRanksHighDifferMost(t *testing.T) {
	got := map[string]float64{}
	answered := []Answered{both("q", "new same a b 5 6 7 8 9 10 late", "old same b a 5 6 7 8 9 late 10")}
	for _, d := range Differences([]Query{logged("q", 1)}, answered, 100) {
		got[d.Document.ID] = math.Round(d.Size*1e4) / 1e4
	}
	// 1/log2(2) of the first rank, 1/log2(4) − 1/log2(5) where two have changed
	// places, and 1/log2(11) where the other is beyond the first ten.
	want := map[string]float64{"new": 1, "old": 1, "a": 0.0693, "b": 0.0693, "10": 0.2891, "late": 0.2891}
	check.Equal(t, want, got)
}

func TestOrderOfDifferencesDoesNotShowTheArm(t *testing.T) {
	var log []Query
	var answered []Answered
	for i := range 10 {
		id := strconv.Itoa(i)
		log = append(log, logged(id, 1))
		answered = append(answered, both(id, "a"+id, "b"+id))
	}
	chosen := Differences(log, answered, 20)
	direct := 0
	for i := 0; i < len(chosen); i += 2 {
		check.Must(t, chosen[i].Query.ID == chosen[i+1].Query.ID, "%v is apart from the other document of its query", chosen[i])
		if strings.HasPrefix(chosen[i].Document.ID, "a") {
			direct++
		}
	}
	check.That(t, direct >= 2 && direct <= 8, "of 10 queries %d begin with the first arm's document", direct)
	check.Equal(t, chosen, Differences(log, answered, 20))
}

func TestDifferencesOfFrequentQueriesComeFirst(t *testing.T) {
	log := []Query{logged("rare", 1), logged("often", 7), logged("refused", 9)}
	answered := []Answered{both("rare", "a x", ""), both("often", "a x", ""), {Query: "refused"}}
	var got []string
	for _, d := range Differences(log, answered, 3) {
		got = append(got, d.Query.ID+" "+d.Document.ID)
	}
	slices.Sort(got)
	check.Equal(t, []string{"often a", "often x", "rare a"}, got)
}

func TestDifferencesAreJudgedAndReadAgain(t *testing.T) {
	q := logged("=1+1", 1)
	all := []Difference{
		{Query: q, Document: Hit{ID: "-a", Title: "=cmd|' /C calc'!A0"}},
		{Query: q, Document: Hit{ID: "b", Title: "a \"quote\",\nand a line"}},
		{Query: q, Document: Hit{ID: "c", Title: strings.Repeat("x", 2*shownText)}},
	}
	var b strings.Builder
	check.OK(t, WriteDifferences(&b, all))
	text := b.String()
	if !strings.Contains(text, ",b,\"a \"\"quote\"\", and a line\",\n") || !strings.Contains(text, strings.Repeat("x", shownText)+"…") {
		t.Errorf("texts are not on one line, and cut, in\n%s", text)
	}
	if strings.Contains(text, ",=") || strings.Contains(text, "\n=") || !strings.HasPrefix(text, "query_id,query,document,text,grade\n") {
		t.Errorf("table\n%s", text)
	}
	text = strings.Replace(text, "calc'!A0\",", "calc'!A0\",3", 1)
	got := check.Got(ReadJudged(nil, &JudgedFile{Name: "f", Content: strings.NewReader(text)}))(t)
	want := &Set{Queries: []Query{{ID: q.ID, Text: q.Text}}, Grades: map[string]map[string]float64{"=1+1": {"-a": 3}}, Ungraded: 2}
	check.Equal(t, want, got, text)
}
