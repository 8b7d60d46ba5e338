//go:build unix

package e2e

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
)

// serveTrial starts akin before e with a trial of off against today.
func serveTrial(t *testing.T, e *engine, tried section) *akin {
	t.Helper()
	makeRelated(t, e)
	all := section{"name": "t", "indices": []string{"akin-e2e-*"}, "arms": []string{"off", "today"}, "header": "X-Session"}
	maps.Copy(all, tried)
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": section{"budget": widePatience, "trials": []section{all}},
		"profiles":  section{"today": section{}},
		"matrices":  []section{{"name": "m", "file": relatedFile(t, vectorsA)}},
	})
	a.awaitMatrix(t, "m")
	return a
}

// within reports whether a share of n is near to another one: within five
// standard deviations of a binomial.
func within(count, n int, share float64) bool {
	return math.Abs(float64(count)-share*float64(n)) <= 5*math.Sqrt(float64(n)*share*(1-share))
}

func TestACanaryGivesUsersTheSameArm(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		a := serveTrial(t, e, section{"share": .3})
		const users = 300
		expanded := 0
		for i := range users {
			search := carSearch("", fmt.Sprintf("X-Session: %d", i))
			ids := idsOf(t, exchange(t, a.url, search))
			if again := idsOf(t, exchange(t, a.url, search)); !slices.Equal(ids, again) {
				t.Fatalf("user %d gets %v, then %v", i, ids, again)
			}
			if slices.Contains(ids, "automobile") {
				expanded++
			}
		}
		if !within(expanded, users, .3) || a.metric(t, "akin_trial_searches_total", `arm="today"`) != float64(2*expanded) {
			t.Errorf("%d of %d users are in the second arm", expanded, users)
		}
		if ids := idsOf(t, exchange(t, a.url, carSearch(""))); slices.Contains(ids, "automobile") {
			t.Error("a search without the header is in the second arm")
		}
	})
}
