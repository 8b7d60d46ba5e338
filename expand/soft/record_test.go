package soft

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
)

// many returns a search for "cat" in the mode auto, and so many documents of
// which every third has it.
func many(t *testing.T, n int) (*fakeVectors, *expand.Rerank, []expand.Hit) {
	t.Helper()
	v, fields, _ := pets(t)
	var hits []expand.Hit
	for k := range n {
		hit := v.add(strconv.Itoa(k), map[string]map[string]int64{"body": {[]string{"cat", "dog", "fish"}[k%3]: 1}})
		hit.SeqNo = int64(k)
		hits = append(hits, hit)
	}
	search := by(fields)
	search.Key = expand.HitsKey{Kind: "pets", Search: 1}
	return v, search, hits
}

// No search in the mode auto waits for terms: the first is not put in order, and
// what it lacks is there for the next one.
func TestHitsAreNotWaitedForInTheModeAuto(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, search, hits := many(t, 20)
		r := newReranker(t, v)
		_, err := r.Scores(t.Context(), search, hits)
		check.Error(t, expand.ErrNotRemembered, err)
		synctest.Wait()
		check.Equal(t, 1, len(v.calls))
		scores, err := r.Scores(t.Context(), search, hits)
		check.OK(t, err)
		check.Equal(t, 1, len(v.calls))
		checkScores(t, scores[:3], 1, .5, 0)
	})
}

// A hit in ten may be missing: it is Unknown, and asked for.
func TestWindowsThatLackFewHitsAreOrderedWithoutThem(t *testing.T) {
	for lacking, ordered := range map[int]bool{1: true, 2: true, 3: false} {
		t.Run(strconv.Itoa(lacking), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, search, hits := many(t, 20)
				r := newReranker(t, v)
				check.OK(t, r.Remember(t.Context(), search, hits[lacking:]))
				scores, err := r.Scores(t.Context(), search, hits)
				synctest.Wait()
				check.Equal(t, 2, len(v.calls), "what is lacking is asked for")
				check.Equal(t, lacking, len(v.calls[1]))
				if !ordered {
					check.Error(t, expand.ErrNotRemembered, err)
					return
				}
				check.OK(t, err)
				for k, s := range scores {
					check.Equal(t, k < lacking, s.Unknown, k)
					want := []float64{1, .5, 0}[k%3]
					check.That(t, s.Unknown && s.Soft == 0 || !s.Unknown && s.Soft > want-1e-4 && s.Soft < want+1e-4, "%d: %+v", k, s)
				}
			})
		})
	}
}

func kind(name string) expand.HitsKey { return expand.HitsKey{Kind: name} }

// Searches of a kind are soft when the first three windows, or seven of the last
// eight, were remembered.
func TestRemembersWhatTheLastSearchesFoundRemembered(t *testing.T) {
	for windows, want := range map[string]bool{
		"": false, "ooo": true, "oo": false, "x": false, "ooox": false, "xooo": false, "xooooooo": true, "ooooooox": true,
		"xoooooox": false, "xxxoooooooo": true, "oooooooooooxx": false,
	} {
		r := newRecords(1 << 20)
		for _, w := range windows {
			lacking := 10
			if w == 'x' {
				lacking = 11
			}
			r.add("kind", lacking, 100)
			r.add("other", 100-lacking, 100)
			r.add("kind", 0, 0) // a search without hits says nothing
		}
		check.Equal(t, want, r.remembers(kind("kind")), windows)
		check.That(t, !r.remembers(kind("another")), "%s", windows)
	}
}

// A search is soft when its own hits were remembered, whatever others found.
func TestRemembersTheHitsOfSingleSearches(t *testing.T) {
	r := newRecords(4 * windowBytes)
	for range 8 {
		r.add("kind", 100, 100)
	}
	asked := func(search uint64) bool { return r.remembers(expand.HitsKey{Kind: "kind", Search: search}) }
	r.settle(1, true)
	check.That(t, asked(1) && !asked(2), "its own, or another's")
	r.settle(1, false)
	check.That(t, !asked(1), "they are gone")
	r.settle(2, true)
	r.settle(3, true)
	r.settle(3, false)
	check.That(t, asked(2) && !asked(3), "as many as there is memory for")
	for search := range uint64(10) {
		r.settle(10+search, true)
	}
	check.That(t, !asked(2) && asked(19), "the last ones")
}

func TestRecordsAreBounded(t *testing.T) {
	r := newRecords(1 << 50)
	for k := range maxRecords + 10 {
		r.add(strconv.Itoa(k), 0, 1)
	}
	check.That(t, len(r.kinds) <= maxRecords && r.searches <= 1_000_000, "%d kinds, %d searches", len(r.kinds), r.searches)
}

// A follow-up records what it found remembered before it asked for the rest.
func TestFollowUpsTellWhatIsRemembered(t *testing.T) {
	v, search, hits := many(t, 20)
	r := newReranker(t, v)
	for n := range 9 {
		check.OK(t, r.Remember(t.Context(), search, hits))
		check.Equal(t, n >= 7, r.Remembers(kind("pets")), n) // the first one found nothing
		check.That(t, r.Remembers(search.Key), "its own hits are remembered")
	}
	check.Equal(t, 1, len(v.calls))
	failure := errors.New("a reason")
	v.err = failure
	check.Error(t, failure, r.Remember(t.Context(), search, []expand.Hit{v.add("new", map[string]map[string]int64{"body": {"cat": 1}})}))
}
