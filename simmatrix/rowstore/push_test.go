package rowstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/simmatrix"
)

func TestPushWritesTheDocumentedKeys(t *testing.T) {
	s := startRedis(t)
	a := s.admin(t)
	m := newMatrix(t, "one", 500)
	v, err := a.Push(t.Context(), "main", m, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := s.keys(t)
	slices.Sort(keys)
	want := []string{"akin:{main}:meta:" + v.ID, "akin:{main}:rows:" + v.ID, "akin:{main}:versions"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	c := s.client(t)
	for _, key := range keys {
		if ttl := c.PTTL(t.Context(), key).Val(); ttl != -1 {
			t.Errorf("%s expires in %v", key, ttl)
		}
	}
	fields := c.HGetAll(t.Context(), keys[1]).Val()
	if fields[completeField] != v.ID {
		t.Errorf("marked as %q, want %q", fields[completeField], v.ID)
	}
	delete(fields, completeField)
	if len(fields) != m.Len() {
		t.Errorf("%d rows, want %d", len(fields), m.Len())
	}
	for term, row := range m.Rows() {
		if fields[term] != row.Packed() {
			t.Errorf("row of %s is %q, want %q", term, fields[term], row.Packed())
		}
	}
	got, err := a.Versions(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Version{v}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if v.Checksum != m.Checksum() || !cmp.Equal(v.Meta, m.Meta()) {
		t.Errorf("pushed %+v, want checksum %s and %+v", v, m.Checksum(), m.Meta())
	}
}

func TestPushRefusesABadMatrixBeforeRedisIsAsked(t *testing.T) {
	a, err := OpenAdmin("unix:///nonexistent/redis.sock") // asking it would be another error
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	empty, err := simmatrix.New(simmatrix.Meta{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	long := make([]simmatrix.TermRow, 40) // 39 neighbors of 32,000 bytes in the first row
	for i := range long {
		long[i].Term = fmt.Sprintf("%05d", i) + strings.Repeat("x", 32_000)
		if i > 0 {
			long[0].Neighbors = append(long[0].Neighbors, simmatrix.Neighbor{Term: long[i].Term, Similarity: 1})
		}
	}
	wide, err := simmatrix.New(simmatrix.Meta{}, long)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Push(t.Context(), "main", empty, nil); !errors.Is(err, ErrBadMatrix) {
		t.Errorf("no terms: %v", err)
	}
	if _, err := a.Push(t.Context(), "main", wide, nil); !errors.Is(err, ErrBadMatrix) {
		t.Errorf("a row of over 1 MiB: %v", err)
	}
	if _, err := a.Push(t.Context(), "ma{in", newMatrix(t, "one", 1), nil); !errors.Is(err, ErrName) {
		t.Errorf("a name with a brace: %v", err)
	}
}

// during returns a Progress that calls f once, after the first batch.
func during(f func()) simmatrix.Progress {
	var once sync.Once
	return func(stage string, done, total int) {
		if stage == "push" && done < total {
			once.Do(f)
		}
	}
}

// manyBatches is large enough for a push in several batches.
func manyBatches(tb testing.TB, mark string) *simmatrix.Matrix {
	tb.Helper()
	return newMatrix(tb, mark, 40_000)
}

func TestUnfinishedPushExpiresAndIsNotListed(t *testing.T) {
	s := startRedis(t)
	a, c := s.admin(t), s.client(t)
	called := false
	_, err := a.Push(t.Context(), "main", manyBatches(t, "one"), during(func() {
		called = true
		for _, key := range s.keys(t) {
			ttl := c.PTTL(t.Context(), key).Val()
			if ttl < unfinishedFor-time.Minute || ttl > unfinishedFor {
				t.Errorf("%s expires in %v, want about %v", key, ttl, unfinishedFor)
			}
		}
		versions, err := a.Versions(t.Context(), "main")
		if err != nil || len(versions) != 0 {
			t.Errorf("versions %+v, %v", versions, err)
		}
	}))
	if err != nil || !called {
		t.Fatal(err, called)
	}
}

func TestPushThatEndsEarlyLeavesRedisAsItWas(t *testing.T) {
	for _, tt := range []struct {
		name string
		// spoil makes the push fail.
		spoil func(t *testing.T, s *server, cancel context.CancelFunc)
		want  func(error) bool
	}{
		{
			"interrupted",
			func(_ *testing.T, _ *server, cancel context.CancelFunc) { cancel() },
			func(err error) bool { return errors.Is(err, context.Canceled) },
		},
		{
			"out of memory",
			func(t *testing.T, s *server, _ context.CancelFunc) {
				t.Helper()
				if err := s.client(t).ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
					t.Error(err)
				}
			},
			func(err error) bool { return strings.Contains(err.Error(), "OOM") },
		},
		{
			"rows lost on the way",
			func(t *testing.T, s *server, _ context.CancelFunc) {
				t.Helper()
				for _, key := range s.keys(t) {
					if strings.Contains(key, ":rows:") && s.client(t).TTL(t.Context(), key).Val() > 0 {
						s.client(t).HDel(t.Context(), key, term(0))
					}
				}
			},
			func(err error) bool { return errors.Is(err, errIncomplete) },
		},
		{
			"header lost on the way",
			func(t *testing.T, s *server, _ context.CancelFunc) {
				t.Helper()
				for _, key := range s.keys(t) {
					if strings.Contains(key, ":meta:") && s.client(t).TTL(t.Context(), key).Val() > 0 {
						s.client(t).Del(t.Context(), key)
					}
				}
			},
			func(err error) bool { return errors.Is(err, errIncomplete) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startRedis(t)
			a := s.admin(t)
			id := publish(t, a, newMatrix(t, "old", 100))
			before := dump(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := a.Push(ctx, "main", manyBatches(t, "new"), during(func() { tt.spoil(t, s, cancel) }))
			if err == nil || !tt.want(err) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(before, dump(t, s)); diff != "" {
				t.Errorf("Redis has changed (-before +after):\n%s", diff)
			}
			got, rows, err := a.Rows(t.Context(), "main", "", []string{term(3)})
			if err != nil || got != id || markOf(rows[0]) != "old" {
				t.Errorf("active is %s, row %v, %v; want %s", got, markOf(rows[0]), err, id)
			}
		})
	}
}

// dump returns the serialized value of every key.
func dump(t *testing.T, s *server) map[string]string {
	t.Helper()
	values := make(map[string]string)
	for _, key := range s.keys(t) {
		value, err := s.client(t).Dump(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		values[key] = value
	}
	return values
}

func TestPushWhenRedisDiesSaysWhatIsLeft(t *testing.T) {
	s := startRedis(t)
	_, err := s.admin(t).Push(t.Context(), "main", manyBatches(t, "one"), during(s.kill))
	if err == nil || !strings.Contains(err.Error(), unfinishedFor.String()) {
		t.Errorf("error %v", err)
	}
}

func TestTwoPushesAtOnceDoNotMix(t *testing.T) {
	s := startRedis(t)
	a := s.admin(t)
	marks := []string{"one", "two", "three"}
	ids := make([]string, len(marks))
	var done sync.WaitGroup
	for i, mark := range marks {
		m := manyBatches(t, mark)
		done.Go(func() {
			v, err := a.Push(t.Context(), "main", m, nil)
			if err != nil {
				t.Error(err)
			}
			ids[i] = v.ID
		})
	}
	done.Wait()
	c := s.client(t)
	for i, mark := range marks {
		fields := c.HGetAll(t.Context(), rowsKey("main", ids[i])).Val()
		if len(fields) != 1+1+40_000 { // mark of completeness, mark's own row
			t.Errorf("%s has %d fields", mark, len(fields))
		}
		delete(fields, completeField)
		delete(fields, mark)
		for term, packed := range fields {
			if row, err := simmatrix.ParseRow(packed); err != nil || markOf(row) != mark {
				t.Fatalf("%s of %s: mark %q, %v", term, mark, markOf(row), err)
			}
		}
	}
	versions, err := a.Versions(t.Context(), "main")
	if err != nil || len(versions) != len(marks) {
		t.Errorf("versions %+v, %v", versions, err)
	}
}

func TestActivateRefusesWhatIsNotACompleteVersion(t *testing.T) {
	s := startRedis(t)
	a, c := s.admin(t), s.client(t)
	active := publish(t, a, newMatrix(t, "one", 10))
	evicted, err := a.Push(t.Context(), "main", newMatrix(t, "two", 10), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Del(t.Context(), rowsKey("main", evicted.ID))
	unlisted, err := a.Push(t.Context(), "main", newMatrix(t, "two", 10), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.ZRem(t.Context(), versionsKey("main"), unlisted.ID)
	other, err := a.Push(t.Context(), "other", newMatrix(t, "three", 10), nil)
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
	s := startRedis(t)
	a := s.admin(t)
	called := false
	_, err := a.Push(t.Context(), "main", manyBatches(t, "one"), during(func() {
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
	damaged, err := a.Push(t.Context(), "main", newMatrix(t, "two", 10), nil)
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
	if versions[0].Active || !versions[1].Active || versions[1].Meta.Terms != 11 {
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
	next, err := a.Push(t.Context(), "main", newMatrix(t, "two", 10), nil)
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

func TestURLErrorsKeepTheSecret(t *testing.T) {
	for _, url := range []string{"redis://u:hunter2@h:port/", "http://u:hunter2@h", "redis://u:hunter2@h/x", "hunter2\x7f"} {
		if _, err := OpenAdmin(url); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %v", err)
		}
	}
}
