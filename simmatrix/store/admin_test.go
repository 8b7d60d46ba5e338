package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

func TestCallsEndSoonAfterTheirContext(t *testing.T) {
	t.Parallel()
	m := newMatrix(t, "one", many)
	for name, call := range map[string]func(ctx context.Context, a *Admin, hang func()) error{
		"push": func(ctx context.Context, a *Admin, hang func()) error {
			_, err := a.Push(ctx, "main", m, "", during(hang))
			return err
		},
		"list": func(ctx context.Context, a *Admin, hang func()) error {
			hang()
			_, err := a.Versions(ctx, "main")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startRedis(t)
			a := adminAt(t, s.at())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var canceled time.Time
			err := call(ctx, a, func() {
				s.hang()
				time.AfterFunc(100*time.Millisecond, func() { canceled = time.Now(); cancel() })
			})
			check.Error(t, context.Canceled, err)
			check.OK(t, a.Close()) // waits for what was left behind
			took := time.Since(canceled)
			check.That(t, took <= longest/2, "ended %v after its context", took)
		})
	}
}

func TestActivateRefusesWhatIsNotACompleteVersion(t *testing.T) {
	s, a, c := setup(t)
	active := publish(t, a, "one", 10)
	evicted, unlisted := pushed(t, a, newMatrix(t, "two", 10)), pushed(t, a, newMatrix(t, "two", 10))
	c.Del(t.Context(), rowsKey("main", evicted.ID))
	c.ZRem(t.Context(), versionsKey("main"), unlisted.ID)
	other := check.Got(a.Push(t.Context(), "other", newMatrix(t, "three", 10), "", nil))(t)
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
		check.Error(t, tt.want, a.Activate(t.Context(), "main", tt.version), tt.name)
	}
	check.Equal(t, before, dump(t, s))
	check.Equal(t, active, c.Get(t.Context(), activeKey("main")).Val())
}

func TestRollbackGoesBackStepByStep(t *testing.T) {
	_, a, c := setup(t)
	var ids []string
	for _, mark := range []string{"one", "two", "evicted", "three", "four"} {
		ids = append(ids, publish(t, a, mark, 10))
	}
	if err := a.Activate(t.Context(), "main", ids[4]); err != nil { // again: no step of its own
		t.Fatal(err)
	}
	c.ZRem(t.Context(), versionsKey("main"), ids[1]) // deleted meanwhile: skipped
	c.Del(t.Context(), rowsKey("main", ids[2]))      // its rows are gone: skipped
	last := ""
	for _, want := range []string{ids[3], ids[0], ""} {
		got, err := a.Rollback(t.Context(), "main")
		check.Must(t, got == want && errors.Is(err, ErrNoHistory) == (want == ""), "back at %s, %v; want %s", got, err, want)
		if want != "" {
			last = want
		}
		if active, _, err := a.Rows(t.Context(), "main", "", nil); err != nil || active != last {
			t.Errorf("active is %s, %v; want %s", active, err, last)
		}
	}
	check.Error(t, ErrNoHistory, check.ErrOf(a.Rollback(t.Context(), "other")))
}

func TestHistoryIsBounded(t *testing.T) {
	_, a, c := setup(t)
	one, two := publish(t, a, "one", 1), publish(t, a, "two", 1)
	for range maxHistory {
		check.OK(t, a.Activate(t.Context(), "main", one))
		check.OK(t, a.Activate(t.Context(), "main", two))
	}
	check.Equal(t, maxHistory, c.LLen(t.Context(), historyKey("main")).Val())
}

func TestVersionsAreListedNewestFirst(t *testing.T) {
	_, a, c := setup(t)
	old := publish(t, a, "one", 10)
	damaged := pushed(t, a, newMatrix(t, "two", 10))
	c.Set(t.Context(), metaKey("main", damaged.ID), "{", 0)
	versions := check.Got(a.Versions(t.Context(), "main"))(t)
	check.Must(t, len(versions) == 2 && versions[0].ID == damaged.ID && versions[1].ID == old, "versions %+v", versions)
	check.That(t, !versions[0].Active && versions[1].Active && versions[1].Terms == 11, "versions %+v", versions)
	none, err := a.Versions(t.Context(), "other")
	check.That(t, err == nil && len(none) == 0, "another matrix has %+v, %v", none, err)
}

func TestAdminRows(t *testing.T) {
	_, a, c := setup(t)
	_, _, err := a.Rows(t.Context(), "main", "", []string{"x"})
	check.Error(t, ErrNoVersion, err, "nothing active")
	active := publish(t, a, "one", 10)
	next := pushed(t, a, newMatrix(t, "two", 10))
	for version, mark := range map[string]string{"": "one", active: "one", next.ID: "two"} {
		_, rows, err := a.Rows(t.Context(), "main", version, []string{term(3), "unknown"})
		check.That(t, err == nil && markOf(rows[0]) == mark && rows[0].DocFreq() == 3 && rows[1].IsZero(), "version %q: %v, %v", version, rows, err)
	}
	_, _, err = a.Rows(t.Context(), "main", "20200101", []string{"x"})
	check.Error(t, ErrUnknownVersion, err, "unknown version")
	c.HSet(t.Context(), rowsKey("main", active), term(3), "junk")
	_, _, err = a.Rows(t.Context(), "main", "", []string{term(3)})
	check.Error(t, ErrBadRow, err, "a damaged row")
}
