package trial

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/evaluate/clicks"
)

func TestAUnitStaysInItsArmAndTheShareIsKept(t *testing.T) {
	const units = 20_000
	small, large := Trial{Name: "t", Share: .1}, Trial{Name: "t", Share: .3}
	other := Trial{Name: "u", Share: .1}
	in, both := 0, 0
	for i := range units {
		unit := "session " + strconv.Itoa(i)
		drawn := small.Draws(unit)
		if drawn != small.Draws(unit) {
			t.Fatal("another draw for the same unit")
		}
		if drawn && !large.Draws(unit) {
			t.Fatal("a larger share leaves out who was in")
		}
		if drawn {
			in++
			if other.Draws(unit) {
				both++
			}
		}
	}
	// Five standard deviations of a binomial.
	if sd := math.Sqrt(units * .1 * .9); math.Abs(float64(in)-units*.1) > 5*sd {
		t.Errorf("%d of %d are in a tenth", in, units)
	}
	if n := float64(in); math.Abs(float64(both)-n*.1) > 5*math.Sqrt(n*.1*.9) {
		t.Errorf("of %d in a trial %d are in a tenth of another: they depend on each other", in, both)
	}
	if none, all := (&Trial{}), (&Trial{Share: 1}); none.Draws("x") || !all.Draws("x") {
		t.Error("a share of 0 or 1 is not exact")
	}
}

// The example of the paper: where the rankings are the same, so is the page.
func TestEqualRankingsStayAsTheyAre(t *testing.T) {
	same := []string{"a", "b", "c", "d"}
	arms := [2]int{}
	for i, pick := range Draft(same, same, 10, 1) {
		if pick.Rank != i {
			t.Errorf("rank %d has %+v", i, pick)
		}
		arms[pick.Arm]++
	}
	if arms != [2]int{2, 2} {
		t.Errorf("the arms have %v", arms)
	}
}

func TestTheRestOfOneArmCountsForNeither(t *testing.T) {
	got := Draft([]string{"a"}, []string{"b", "c", "d"}, 10, 3)
	first := got[0].Arm
	rest := []Pick{{List: 1, Rank: 1, Arm: Neither}, {List: 1, Rank: 2, Arm: Neither}}
	if first == 0 { // a and b, each of its arm
		rest = append([]Pick{{List: 1, Rank: 0, Arm: Neither}}, rest...)
	} else {
		rest = append([]Pick{{List: 0, Rank: 0, Arm: 0}}, rest...)
	}
	if diff := cmp.Diff(rest, got[1:]); diff != "" {
		t.Errorf("after arm %d (-want +got)\n%s", first, diff)
	}
	if got := Draft(nil, nil, 10, 1); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
	if got := Draft([]string{"a", "a", "b"}, []string{"a"}, 10, 1); len(got) != 2 {
		t.Errorf("a document twice in one ranking: %v", got)
	}
}

// Each arm has each rank in half of the pages.
func TestDraftsAreFair(t *testing.T) {
	const n = 4000
	a, b := strings.Split("abcdefghij", ""), strings.Split("badklmnopq", "")
	var second [10]int
	for seed := range uint64(n) {
		for rank, pick := range Draft(a, b, 10, seed) {
			second[rank] += pick.Arm
		}
	}
	for rank, count := range second {
		if math.Abs(float64(count)-n/2) > 5*math.Sqrt(n/4) {
			t.Errorf("rank %d is the second arm's in %d of %d", rank, count, n)
		}
	}
}

func FuzzDraft(f *testing.F) {
	f.Add("a b c", "c b d e", 4, uint64(1))
	f.Add("", "a b b", 10, uint64(2))
	f.Fuzz(func(t *testing.T, first, second string, n int, seed uint64) {
		rankings := [2][]string{strings.Fields(first), strings.Fields(second)}
		n = min(max(n, 0), 1000)
		picks := Draft(rankings[0], rankings[1], n, seed)
		seen, teams, last := map[string]bool{}, [2]int{}, [2]int{-1, -1}
		for _, p := range picks {
			id := rankings[p.List][p.Rank]
			if seen[id] || p.Rank <= last[p.List] || p.Arm != Neither && p.Arm != p.List {
				t.Fatalf("%q is there twice, out of order, or of another arm: %v", id, picks)
			}
			seen[id], last[p.List] = true, p.Rank
			if p.Arm != Neither {
				teams[p.Arm]++
			}
			if d := teams[0] - teams[1]; d < -1 || d > 1 {
				t.Fatalf("the arms are apart: %v", picks)
			}
		}
		all := slices.Concat(rankings[0], rankings[1])
		slices.Sort(all)
		if want := min(n, len(slices.Compact(all))); len(picks) != want {
			t.Fatalf("%d picks, want %d", len(picks), want)
		}
		if diff := cmp.Diff(picks, Draft(rankings[0], rankings[1], n+5, seed)[:len(picks)], cmp.Transformer("places", func(p Pick) [2]int { return [2]int{p.List, p.Rank} })); diff != "" {
			t.Fatalf("a longer page begins in another way: %s", diff)
		}
	})
}

// clickedPages returns the log of n interleaved pages, and clicks by users that
// look from the top and click on what they like with a probability.
func clickedPages(n int, a, b []string, likes func(id string) float64) (impressions, clicks string) {
	random := rand.New(rand.NewPCG(1, 1))
	var pages, clicked strings.Builder
	tried := Trial{Name: "t"}
	for i := range n {
		var shown, arms, on []string
		for _, p := range tried.Draft("user "+strconv.Itoa(i), "text", a, b, 10) {
			id := [2][]string{a, b}[p.List][p.Rank]
			shown, arms = append(shown, id), append(arms, []string{"", "old", "new"}[p.Arm+1])
			if random.Float64() < likes(id)/(1+.3*float64(len(shown))) {
				on = append(on, id)
			}
		}
		fmt.Fprintf(&pages, `{"query_id":"q%d","trial":"t","between":["old","new"],"query":"x","shown":["%s"],"arms":["%s"],"clicked":[]}`+"\n",
			i, strings.Join(shown, `","`), strings.Join(arms, `","`))
		if len(on) > 0 {
			fmt.Fprintf(&clicked, `{"query_id":"q%d","clicked":["%s"]}`+"\n", i, strings.Join(on, `","`))
		}
	}
	return pages.String(), clicked.String()
}

func judge(t *testing.T, impressions, clicked string) *clicks.Judgment {
	t.Helper()
	pages, err := clicks.ReadPages(strings.NewReader(impressions))
	if err != nil {
		t.Fatal(err)
	}
	j, err := pages.Judge(strings.NewReader(clicked))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestTheBetterArmIsFoundFromClicks(t *testing.T) {
	bad, good := strings.Split("xyzabcdefg", ""), strings.Split("abcdefgxyz", "")
	likes := func(id string) float64 { return .4 * float64(strings.Index("gfedcba", id)+2) / 9 }
	for _, c := range []struct {
		name string
		a, b []string
		want string
	}{{"second", bad, good, "new"}, {"first", good, bad, "old"}, {"equal", good, good, ""}} {
		pages, clicks := clickedPages(2000, c.a, c.b, likes)
		p := judge(t, pages, clicks).Preferences[0]
		if p.Preferred() != c.want || p.Searches != 2000 || p.Clicked != p.Wins[0]+p.Wins[1]+p.Ties || p.Low > p.Delta || p.Delta > p.High {
			t.Errorf("%s: prefers %q: %+v", c.name, p.Preferred(), p)
		}
	}
}

// A user who clicks anywhere prefers nothing, also where one arm finds more.
func TestClicksAtRandomPreferNothing(t *testing.T) {
	for _, b := range []string{"klmnopqrst", "klm", "abcklmnopq"} {
		pages, clicks := clickedPages(3000, strings.Split("abcdefghij", ""), strings.Split(b, ""), func(string) float64 { return .2 })
		if p := judge(t, pages, clicks).Preferences[0]; p.Preferred() != "" || p.Clicked < 1000 {
			t.Errorf("against %s: %+v", b, p)
		}
	}
}
