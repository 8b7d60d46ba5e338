package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCallsEndSoonAfterTheirContext freezes Redis in the middle of calls.
func TestCallsEndSoonAfterTheirContext(t *testing.T) {
	t.Parallel()
	m := manyBatches(t, "one")
	for name, call := range map[string]func(ctx context.Context, s *server, a *Admin, hang func()) error{
		"push": func(ctx context.Context, _ *server, a *Admin, hang func()) error {
			_, err := a.Push(ctx, "main", m, "", during(hang))
			return err
		},
		"list": func(ctx context.Context, _ *server, a *Admin, hang func()) error {
			hang()
			_, err := a.Versions(ctx, "main")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startRedis(t)
			a, err := OpenAdmin(s.at())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var canceled time.Time
			err = call(ctx, s, a, func() {
				s.hang()
				time.AfterFunc(100*time.Millisecond, func() { canceled = time.Now(); cancel() })
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			if err := a.Close(); err != nil { // waits for what was left behind
				t.Error(err)
			}
			if took := time.Since(canceled); took > adminTimeout-time.Second {
				t.Errorf("ended %v after its context", took)
			}
		})
	}
}

func TestActivateRefusesWhatIsNotACompleteVersion(t *testing.T) {
	s := startRedis(t)
	a, c := s.admin(t), s.client(t)
	active := publish(t, a, newMatrix(t, "one", 10))
	evicted, err := a.Push(t.Context(), "main", newMatrix(t, "two", 10), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Del(t.Context(), rowsKey("main", evicted.ID))
	unlisted, err := a.Push(t.Context(), "main", newMatrix(t, "two", 10), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.ZRem(t.Context(), versionsKey("main"), unlisted.ID)
	other, err := a.Push(t.Context(), "other", newMatrix(t, "three", 10), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	before := dump(t, s)
	for _, tt := range []struct {
		name, version string
		want          error
	}{
		{"unknown", "20200101T000000.000000-00000000", ErrUnknownVersion},
		{"of another matrix", other.ID, ErrUnknownVersion},
		{"no longer listed", unlisted.ID, ErrUnknownVersion},
		{"without its rows", evicted.ID, ErrUnknownVersion},
		{"no key part", "a{b}", ErrName},
		{"empty", "", ErrName},
	} {
		if err := a.Activate(t.Context(), "main", tt.version); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if diff := cmp.Diff(before, dump(t, s)); diff != "" {
		t.Errorf("Redis has changed (-before +after):\n%s", diff)
	}
	if got := c.Get(t.Context(), activeKey("main")).Val(); got != active {
		t.Errorf("active is %s, want %s", got, active)
	}
}

func TestUnfinishedVersionCannotBeActivated(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	a := s.admin(t)
	called := false
	_, err := a.Push(t.Context(), "main", manyBatches(t, "one"), "", during(func() {
		called = true
		for _, key := range s.keys(t) {
			_, id, _ := strings.Cut(key, "rows:")
			if id != "" && !errors.Is(a.Activate(t.Context(), "main", id), ErrUnknownVersion) {
				t.Errorf("%s was activated", id)
			}
		}
	}))
	if err != nil || !called {
		t.Fatal(err, called)
	}
}

func TestRollbackGoesBackStepByStep(t *testing.T) {
	s := startRedis(t)
	a := s.admin(t)
	var ids []string
	for _, mark := range []string{"one", "two", "evicted", "three", "four"} {
		ids = append(ids, publish(t, a, newMatrix(t, mark, 10)))
	}
	if err := a.Activate(t.Context(), "main", ids[4]); err != nil { // again: no step of its own
		t.Fatal(err)
	}
	s.client(t).ZRem(t.Context(), versionsKey("main"), ids[1]) // deleted meanwhile: skipped
	s.client(t).Del(t.Context(), rowsKey("main", ids[2]))      // its rows are gone: skipped
	for _, want := range []string{ids[3], ids[0]} {
		got, err := a.Rollback(t.Context(), "main")
		if err != nil || got != want {
			t.Fatalf("back at %s, %v; want %s", got, err, want)
		}
		if active, _, err := a.Rows(t.Context(), "main", "", nil); err != nil || active != want {
			t.Errorf("active is %s, %v; want %s", active, err, want)
		}
	}
	if _, err := a.Rollback(t.Context(), "main"); !errors.Is(err, ErrNoHistory) {
		t.Errorf("beyond the first version: %v", err)
	}
	if active, _, err := a.Rows(t.Context(), "main", "", nil); err != nil || active != ids[0] {
		t.Errorf("active is %s, %v; want %s", active, err, ids[0])
	}
	if _, err := a.Rollback(t.Context(), "other"); !errors.Is(err, ErrNoHistory) {
		t.Errorf("a matrix that never was: %v", err)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	s := startRedis(t)
	a := s.admin(t)
	one := publish(t, a, newMatrix(t, "one", 1))
	two := publish(t, a, newMatrix(t, "two", 1))
	for range maxHistory {
		for _, id := range []string{one, two} {
			if err := a.Activate(t.Context(), "main", id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := s.client(t).LLen(t.Context(), historyKey("main")).Val(); n != maxHistory {
		t.Errorf("history of %d, want %d", n, maxHistory)
	}
}

func TestVersionsAreListedNewestFirst(t *testing.T) {
	s := startRedis(t)
	a := s.admin(t)
	old := publish(t, a, newMatrix(t, "one", 10))
	damaged, err := a.Push(t.Context(), "main", newMatrix(t, "two", 10), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.client(t).Set(t.Context(), metaKey("main", damaged.ID), "{", 0)
	versions, err := a.Versions(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	if len(versions) != 2 || versions[0].ID != damaged.ID || versions[1].ID != old {
		t.Fatalf("versions %+v", versions)
	}
	if versions[0].Active || !versions[1].Active || versions[1].Terms != 11 {
		t.Errorf("versions %+v", versions)
	}
	if none, err := a.Versions(t.Context(), "other"); err != nil || len(none) != 0 {
		t.Errorf("another matrix has %+v, %v", none, err)
	}
}

func TestAdminRows(t *testing.T) {
	s := startRedis(t)
	a := s.admin(t)
	if _, _, err := a.Rows(t.Context(), "main", "", []string{"x"}); !errors.Is(err, ErrNoVersion) {
		t.Errorf("nothing active: %v", err)
	}
	active := publish(t, a, newMatrix(t, "one", 10))
	next, err := a.Push(t.Context(), "main", newMatrix(t, "two", 10), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for version, mark := range map[string]string{"": "one", active: "one", next.ID: "two"} {
		_, rows, err := a.Rows(t.Context(), "main", version, []string{term(3), "unknown"})
		if err != nil || markOf(rows[0]) != mark || rows[0].DocFreq() != 3 || !rows[1].IsZero() {
			t.Errorf("version %q: %v, %v", version, rows, err)
		}
	}
	if _, _, err := a.Rows(t.Context(), "main", "20200101", []string{"x"}); !errors.Is(err, ErrUnknownVersion) {
		t.Errorf("unknown version: %v", err)
	}
	s.client(t).HSet(t.Context(), rowsKey("main", active), term(3), "junk")
	if _, _, err := a.Rows(t.Context(), "main", "", []string{term(3)}); !errors.Is(err, ErrBadRow) {
		t.Errorf("a damaged row: %v", err)
	}
}
