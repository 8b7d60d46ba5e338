package clicks

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func judge(t *testing.T, impressions, clicked string) *Judgment {
	t.Helper()
	pages, err := ReadPages(strings.NewReader(impressions))
	if err != nil {
		t.Fatal(err)
	}
	j, err := pages.Judge(strings.NewReader(clicked))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// The interval is that of Wilson for 3 of 3: from n/(n+z²), that is 3/6.84.
func TestFewClicksSayNothing(t *testing.T) {
	p := Preference{Arms: [2]string{"old", "new"}, Wins: [2]int{0, 3}}
	p.settle()
	if p.Preferred() != "" || math.Abs(p.Low-(3/(3+1.959964*1.959964)-.5)) > 1e-9 || math.Abs(p.High-.5) > 1e-9 {
		t.Errorf("%+v", p)
	}
	p = Preference{}
	if p.settle(); p.Low != -.5 || p.High != .5 || p.Delta != 0 {
		t.Errorf("of nothing: %+v", p)
	}
}

func TestWhatCannotBeCountedIsReported(t *testing.T) {
	const page = `{"query_id":"1","trial":"t","between":["a","b"],"query":"x","shown":["1","2","3"],"arms":["a","b",""],"clicked":["3"]}` + "\n"
	j := judge(t, "\ufeff"+page+`{"query_id":"2","query":"x","shown":["1"],"clicked":["1"]}`+"\n\n"+`{"query_id":"3","que`,
		`{"query_id":"1","clicked":["2","2","9"]}`+"\n"+`{"query_id":"1","clicked":["2"]}`+"\n"+`{"query_id":"7","clicked":["1"]}`)
	want := &Judgment{
		Preferences: []Preference{{Trial: "t", Arms: [2]string{"a", "b"}, Searches: 1, Clicked: 1, Wins: [2]int{0, 1}, Delta: .5}},
		Unknown:     []string{"7"}, NotShown: []string{"9"}, Unreadable: 1,
	}
	got := *j
	got.Preferences = slices.Clone(j.Preferences)
	got.Preferences[0].Low, got.Preferences[0].High = 0, 0
	if diff := cmp.Diff(want, &got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, bad := range []string{"query,clicks\n", `{"clicked":["1"]}`, `{"query_id":"1","shown":["1"],"arms":["a","b"],"between":["a","b"]}`} {
		if _, err := ReadPages(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := ReadPages(strings.NewReader("\n")); !errors.Is(err, ErrEmpty) {
		t.Errorf("without pages: %v", err)
	}
}

// Documents of two indices may have the same id, and clicks name no index.
func TestAnIDOfTwoDocumentsCountsForNoArm(t *testing.T) {
	const page = `{"query_id":"1","trial":"t","between":["a","b"],"shown":["x","y","x","z","y"],"arms":["a","b","b","a","b"]}` + "\n"
	for clicked, want := range map[string]Preference{"x": {}, "y": {Clicked: 1, Wins: [2]int{0, 1}}, "z": {Clicked: 1, Wins: [2]int{1, 0}}} {
		got := judge(t, page+page, `{"query_id":"1","clicked":["`+clicked+`"]}`).Preferences[0]
		if got.Clicked != want.Clicked || got.Wins != want.Wins || got.Searches != 1 {
			t.Errorf("%s: %+v", clicked, got)
		}
	}
}
