package evaluate

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/evaluate/judged"
)

func TestDocumentsThatOnlyOneArmRanksHighDifferMost(t *testing.T) {
	q := judged.LoggedQuery{Query: judged.Query{ID: "1", Text: "wing"}, Count: 1}
	all := differences(q, []string{"new", "same", "a", "b"}, []string{"old", "same", "b", "a", "late"}, 4)
	got := map[string]float64{}
	for _, d := range all {
		got[d.Document] = math.Round(d.Size*1e4) / 1e4
	}
	// 1/log2(2) of the first rank, 1/log2(4) − 1/log2(5) where two have changed places.
	want := map[string]float64{"new": 1, "old": 1, "a": 0.0693, "b": 0.0693}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
}

// TestOrderOfPairsDoesNotShowTheArm wants the two first documents of ten
// queries, one of each arm, in both orders.
func TestOrderOfPairsDoesNotShowTheArm(t *testing.T) {
	var all []Difference
	for _, id := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"} {
		q := judged.LoggedQuery{Query: judged.Query{ID: id}, Count: 1}
		all = append(all, differences(q, []string{"a" + id}, []string{"b" + id}, 10)...)
	}
	chosen := largest(all, 20)
	direct := 0
	for i := 0; i < len(chosen); i += 2 {
		if chosen[i].Query.ID != chosen[i+1].Query.ID {
			t.Fatalf("%v is apart from the other document of its query", chosen[i])
		}
		if chosen[i].Document[0] == 'a' {
			direct++
		}
	}
	if direct < 2 || direct > 8 {
		t.Errorf("of 10 queries %d begin with the first arm's document", direct)
	}
	again := largest(append([]Difference(nil), all...), 20)
	if diff := cmp.Diff(chosen, again); diff != "" {
		t.Errorf("another order the second time:\n%s", diff)
	}
}

func TestPairsOfFrequentQueriesComeFirst(t *testing.T) {
	rare := judged.LoggedQuery{Query: judged.Query{ID: "rare"}, Count: 1}
	often := judged.LoggedQuery{Query: judged.Query{ID: "often"}, Count: 7}
	all := append(differences(rare, []string{"a", "x"}, nil, 10), differences(often, []string{"a", "x"}, nil, 10)...)
	var got []string
	for _, d := range largest(all, 3) {
		got = append(got, d.Query.ID+" "+d.Document)
	}
	for _, want := range []string{"rare a", "often a", "often x"} {
		found := false
		for _, g := range got {
			found = found || g == want
		}
		if !found {
			t.Errorf("%q is not among %q", want, got)
		}
	}
}
