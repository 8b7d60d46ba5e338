package store

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// pushMany pushes versions of one row and returns their IDs, the oldest first.
func pushMany(t *testing.T, a *Admin, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = pushed(t, a, newMatrix(t, fmt.Sprint("v", i), 1)).ID
	}
	return ids
}

func listed(t *testing.T, a *Admin) []string {
	t.Helper()
	versions := check.Got(a.Versions(t.Context(), "main"))(t)
	var ids []string
	for _, v := range versions {
		ids = append(ids, v.ID)
	}
	return ids
}

func TestPruneRemovesNothingWhileTheActiveVersionIsDamaged(t *testing.T) {
	_, a, c := setup(t)
	ids := pushMany(t, a, 3)
	check.OK(t, a.Activate(t.Context(), "main", ids[2]))
	key := rowsKey("main", ids[2])
	repair := wholeHash(t, c, key)
	check.OK(t, c.HDel(t.Context(), key, term(0)).Err())
	_, err := a.Prune(t.Context(), "main", 1)
	check.That(t, errors.Is(err, ErrMissingRows) && strings.Contains(err.Error(), ids[2]), "got %v", err)
	got := listed(t, a)
	check.That(t, len(got) == 3, "versions %v, want all three", got)
	repair()
	p, err := a.Prune(t.Context(), "main", 1)
	check.That(t, err == nil && len(p) == 2, "after the repair: %v, %v", p, err)
}

func TestPruneKeepsTheNewestAndTheActive(t *testing.T) {
	for _, tt := range []struct {
		name         string
		keep, active int // active: index, -1 for none
		kept         []int
	}{
		{"the active one is old", 2, 1, []int{5, 4, 1}},
		{"the active one is new", 2, 5, []int{5, 4}},
		{"none is active", 3, -1, []int{5, 4, 3}},
		{"one", 1, 4, []int{5, 4}},
		{"more than there are", 7, 0, []int{5, 4, 3, 2, 1, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, a, c := setup(t)
			ids := pushMany(t, a, 6)
			if tt.active >= 0 {
				check.OK(t, a.Activate(t.Context(), "main", ids[tt.active]))
			}
			other := check.Got(a.Push(t.Context(), "other", newMatrix(t, "one", 1), "", nil))(t)
			before := s.keys(t)
			pruned := check.Got(a.Prune(t.Context(), "main", tt.keep))(t)
			var kept, gone []string
			for i, id := range slices.Backward(ids) {
				if slices.Contains(tt.kept, i) {
					kept = append(kept, id)
				} else {
					gone = append(gone, id)
				}
			}
			check.Equal(t, [][]string{kept, gone}, [][]string{listed(t, a), pruned})
			after := s.keys(t)
			check.That(t, len(after) == len(before), "keys %q, want all of %q for the time of grace", after, before)
			for _, key := range before {
				ttl := c.PTTL(t.Context(), key).Val()
				_, id, _ := strings.Cut(strings.TrimPrefix(key, "akin:{main}:"), ":")
				expires := slices.Contains(gone, id)
				check.That(t, expires == (ttl > 0) && ttl <= graceFor, "%s expires in %v", key, ttl)
			}
			_, err := a.Prune(t.Context(), "other", 1)
			check.That(t, err == nil && slices.Contains(s.keys(t), rowsKey("other", other.ID)), "the only version of another matrix: %v", err)
		})
	}
}

func TestPrunedVersionServesThoseWhoHoldItAndNobodyElse(t *testing.T) {
	s, a, c := setup(t)
	one := publish(t, a, "one", 10)
	store := open(t, Options{Redis: s.at()})
	awaitServed(t, store, one)
	pinned := store.Pin().For("i", "f")
	two := publish(t, a, "two", 10)
	check.OK(t, check.ErrOf(a.Prune(t.Context(), "main", 1)))
	rows, err := rowsOfVersion(t, pinned, term(3))
	check.That(t, err == nil && markOf(rows[0]) == "one", "a request that began before: %v, %v", rows, err)
	check.Error(t, ErrUnknownVersion, a.Activate(t.Context(), "main", one))
	if back, err := a.Rollback(t.Context(), "main"); !errors.Is(err, ErrNoHistory) || c.Exists(t.Context(), historyKey("main")).Val() != 0 {
		t.Errorf("rolled back to %s, %v; or the history still has it", back, err)
	}
	awaitServed(t, store, two)
}

func TestActiveVersionIsNotPrunedEvenUnlisted(t *testing.T) {
	_, a, c := setup(t)
	id := publish(t, a, "one", 10)
	check.OK(t, c.ZRem(t.Context(), versionsKey("main"), id).Err())
	pruned, err := a.Prune(t.Context(), "main", 1)
	check.That(t, err == nil && pruned == nil, "pruned %q, %v", pruned, err)
	check.Equal(t, -1, c.PTTL(t.Context(), rowsKey("main", id)).Val())
}

func TestPruneRefuses(t *testing.T) {
	a := adminAt(t, Redis{URL: "unix:///nonexistent/redis.sock"})
	for _, tt := range []struct {
		name string
		keep int
		want error
	}{{"main", 0, errKeep}, {"main", -1, errKeep}, {"a b", 1, ErrName}, {"main", 1, os.ErrNotExist}} {
		check.Error(t, tt.want, check.ErrOf(a.Prune(t.Context(), tt.name, tt.keep)), tt.keep, tt.name)
	}
}
