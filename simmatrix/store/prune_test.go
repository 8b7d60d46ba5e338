package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pushMany pushes versions of one row and returns their IDs, the oldest first.
func pushMany(t *testing.T, a *Admin, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		v, err := a.Push(t.Context(), "main", newMatrix(t, fmt.Sprint("v", i), 1), "", nil)
		must(t, err)
		ids[i] = v.ID
	}
	return ids
}

func listed(t *testing.T, a *Admin) []string {
	t.Helper()
	versions, err := a.Versions(t.Context(), "main")
	must(t, err)
	var ids []string
	for _, v := range versions {
		ids = append(ids, v.ID)
	}
	return ids
}

func TestPruneRemovesNothingWhileTheActiveVersionIsDamaged(t *testing.T) {
	s := startRedis(t)
	a := s.admin(t)
	ids := pushMany(t, a, 3)
	for _, id := range ids {
		must(t, a.Activate(t.Context(), "main", id))
	}
	key := rowsKey("main", ids[2])
	all := a.client.HGetAll(t.Context(), key).Val()
	for term := range all {
		if term != completeField {
			must(t, a.client.HDel(t.Context(), key, term).Err())
		}
	}
	if _, err := a.Prune(t.Context(), "main", 1); !errors.Is(err, ErrMissingRows) || !strings.Contains(err.Error(), ids[2]) {
		t.Errorf("got %v", err)
	}
	if got := listed(t, a); len(got) != 3 {
		t.Errorf("versions %v, want all three", got)
	}
	for term, row := range all {
		must(t, a.client.HSet(t.Context(), key, term, row).Err())
	}
	if p, err := a.Prune(t.Context(), "main", 1); err != nil || len(p) != 2 {
		t.Errorf("after the repair: %v, %v", p, err)
	}
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
			s := startRedis(t)
			a := s.admin(t)
			ids := pushMany(t, a, 6)
			if tt.active >= 0 {
				must(t, a.Activate(t.Context(), "main", ids[tt.active]))
			}
			other, err := a.Push(t.Context(), "other", newMatrix(t, "one", 1), "", nil)
			must(t, err)
			before := s.keys(t)
			pruned, err := a.Prune(t.Context(), "main", tt.keep)
			must(t, err)
			var kept, gone []string
			for _, i := range tt.kept {
				kept = append(kept, ids[i])
			}
			for _, id := range slices.Backward(ids) {
				if !slices.Contains(kept, id) {
					gone = append(gone, id)
				}
			}
			if diff := cmp.Diff(kept, listed(t, a)); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(gone, pruned); diff != "" {
				t.Errorf("pruned (-want +got):\n%s", diff)
			}
			if after := s.keys(t); len(after) != len(before) {
				t.Errorf("keys %q, want all of %q for the time of grace", after, before)
			}
			for _, key := range s.keys(t) {
				ttl := s.client(t).PTTL(t.Context(), key).Val()
				_, id, _ := strings.Cut(strings.TrimPrefix(key, "akin:{main}:"), ":")
				if expires := slices.Contains(gone, id); expires != (ttl > 0) || ttl > graceFor {
					t.Errorf("%s expires in %v", key, ttl)
				}
			}
			if _, err := a.Prune(t.Context(), "other", 1); err != nil || !slices.Contains(s.keys(t), rowsKey("other", other.ID)) {
				t.Errorf("the only version of another matrix: %v", err)
			}
		})
	}
}

func TestPrunedVersionServesThoseWhoHoldItAndNobodyElse(t *testing.T) {
	s := startRedis(t)
	a := s.admin(t)
	one := publish(t, a, newMatrix(t, "one", 10))
	store := open(t, Options{Redis: s.at()})
	waitFor(t, 10*time.Second, "the version", func() bool { return served(store) == one })
	pinned := store.Pin().For("i", "f")
	two := publish(t, a, newMatrix(t, "two", 10))
	if _, err := a.Prune(t.Context(), "main", 1); err != nil {
		t.Fatal(err)
	}
	rows, err := rowsOfVersion(t, pinned, term(3))
	if err != nil || markOf(rows[0]) != "one" {
		t.Errorf("a request that began before: %v, %v", rows, err)
	}
	if err := a.Activate(t.Context(), "main", one); !errors.Is(err, ErrUnknownVersion) {
		t.Errorf("activate: %v", err)
	}
	if back, err := a.Rollback(t.Context(), "main"); !errors.Is(err, ErrNoHistory) {
		t.Errorf("rolled back to %s, %v", back, err)
	}
	if n := s.client(t).Exists(t.Context(), historyKey("main")).Val(); n != 0 {
		t.Error("the history still has it")
	}
	waitFor(t, 10*time.Second, "the second version", func() bool { return served(store) == two })
}

func TestActiveVersionIsNotPrunedEvenUnlisted(t *testing.T) {
	s := startRedis(t)
	a, c := s.admin(t), s.client(t)
	id := publish(t, a, newMatrix(t, "one", 10))
	must(t, c.ZRem(t.Context(), versionsKey("main"), id).Err())
	pruned, err := a.Prune(t.Context(), "main", 1)
	if err != nil || pruned != nil {
		t.Errorf("pruned %q, %v", pruned, err)
	}
	if ttl := c.PTTL(t.Context(), rowsKey("main", id)).Val(); ttl != -1 {
		t.Errorf("its rows expire in %v", ttl)
	}
}

func TestPruneRefuses(t *testing.T) {
	a := adminAt(t, Redis{URL: "unix:///nonexistent/redis.sock"})
	for _, keep := range []int{0, -1} {
		if _, err := a.Prune(t.Context(), "main", keep); !errors.Is(err, errKeep) {
			t.Errorf("keep %d: %v", keep, err)
		}
	}
	if _, err := a.Prune(t.Context(), "a b", 1); !errors.Is(err, ErrName) {
		t.Errorf("a bad name: %v", err)
	}
	if _, err := a.Prune(t.Context(), "main", 1); err == nil {
		t.Error("without Redis: no error")
	}
}
