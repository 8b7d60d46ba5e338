package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// A logbook keeps the states that a Store reports.
type logbook struct {
	mu     sync.Mutex
	states []State
}

func (l *logbook) add(s State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.states = append(l.states, s)
}

// lines returns "version problem" for each state, the version as its position
// in ids, the problem cut at its first colon.
func (l *logbook) lines(ids ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for _, s := range l.states {
		version := "none"
		if i := slices.Index(ids, s.Version); i >= 0 {
			version = string(rune('A' + i))
		}
		problem, _, _ := strings.Cut(s.Problem, ":")
		lines = append(lines, strings.TrimSpace(version+" "+problem))
	}
	return lines
}

const (
	lineAway = "the row store is unavailable"
	lineNone = "no version is active"
)

func TestSwitchIsSeenWithinASecond(t *testing.T) {
	r, a, _ := setup(t)
	one, two := publish(t, a, "one", 10), publish(t, a, "two", 10)
	s := open(t, Options{Redis: r.at()})
	got := served(s)
	check.Must(t, got == two, "version %s at start, want %s", got, two)
	next, active := one, two
	waitFor(t, "a switch within a second", func() bool { // one of many: the machine may be busy
		check.OK(t, a.Activate(t.Context(), "main", next))
		start := time.Now()
		awaitServed(t, s, next)
		next, active = active, next
		return time.Since(start) <= time.Second
	})
}

func TestStateChangesAreReportedOnce(t *testing.T) {
	t.Parallel()
	r, a, c := setup(t)
	var log logbook
	s := open(t, Options{Redis: r.at(), OnState: log.add})
	one := publish(t, a, "one", 10)
	awaitServed(t, s, one)
	two := publish(t, a, "two", 10)
	awaitServed(t, s, two)
	check.OK(t, check.ErrOf(a.Rollback(t.Context(), "main")))
	awaitServed(t, s, one)
	check.OK(t, c.FlushAll(t.Context()).Err())
	awaitServed(t, s, "")
	awaitProblem(t, s, ErrNoVersion)
	time.Sleep(3 * followEvery) // Some polls must report nothing, and none has an event.
	three := publish(t, a, "three", 10)
	awaitServed(t, s, three)
	wantMark(t, s, "three", term(1))
	check.Equal(t, []string{"none " + lineNone, "A", "B", "A", "none " + lineNone, "C"}, log.lines(one, two, three))
}

func TestDamagedVersionKeepsTheLastGoodOne(t *testing.T) {
	t.Parallel()
	r, a, c := setup(t)
	one := publish(t, a, "one", 10)
	s := open(t, Options{Redis: r.at()})
	for _, tt := range []struct {
		name  string
		spoil func(meta, rows string)
		want  error
	}{
		{"another format", func(meta, _ string) { c.Set(t.Context(), meta, `{"format":9}`, 0) }, ErrBadVersion},
		{"no header", func(meta, _ string) { c.Del(t.Context(), meta) }, ErrGone},
		{"header of a wrong type", func(meta, _ string) { c.Del(t.Context(), meta); c.LPush(t.Context(), meta, "x") }, ErrGone},
		{"no rows", func(_, rows string) { c.Del(t.Context(), rows) }, ErrGone},
		{"not complete", func(_, rows string) { c.HDel(t.Context(), rows, completeField) }, ErrGone},
	} {
		v := pushed(t, a, newMatrix(t, "two", 10))
		tt.spoil(metaKey("main", v.ID), rowsKey("main", v.ID))
		c.Set(t.Context(), activeKey("main"), v.ID, 0) // Activate would refuse
		awaitProblem(t, s, tt.want)
		check.Equal(t, one, served(s), tt.name)
		c.Set(t.Context(), activeKey("main"), one, 0)
		awaitProblem(t, s, nil)
	}
	c.Set(t.Context(), activeKey("main"), "no version: a b", 0)
	awaitProblem(t, s, ErrBadVersion)
}

func TestOneSpoiltMatrixLeavesTheOthers(t *testing.T) {
	t.Parallel()
	r, a, c := setup(t)
	c.LPush(t.Context(), activeKey("spoilt"), "x")
	s := open(t, Options{
		Bindings: append([]Binding{{Name: "spoilt", Indices: []string{"x"}, Fields: []string{"*"}}}, everywhere()...),
		Redis:    r.at(),
	})
	awaitServed(t, s, publish(t, a, "one", 10))
	time.Sleep(breakerFailures * followEvery) // As many polls as open the breaker must not, and none has an event.
	states := s.State()
	check.That(t, states[0].Problem == "" && states[1].Name == "spoilt" && strings.HasPrefix(states[1].Problem, ErrBadVersion.Error()), "states %+v", states)
	got := s.Stats()
	check.That(t, got.Breaker == "closed" && got.Failures == 0, "breaker %s after %d failures", got.Breaker, got.Failures)
}

func TestEqualMissesShareOneRoundTrip(t *testing.T) {
	r, a, c := setup(t)
	publish(t, a, "one", 10)
	s := open(t, Options{Redis: r.at()})
	s.stop() // so that only look-ups send HMGET
	s.done.Wait()
	check.OK(t, c.ConfigResetStat(t.Context()).Err())
	r.hang()
	var done sync.WaitGroup
	for range 50 {
		done.Go(func() { wantMark(t, s, "one", term(1), term(2)) })
	}
	waitFor(t, "all to miss", func() bool { return s.Stats().Cache.Misses == 100 })
	done.Go(func() { wantMark(t, s, "", term(1)+"\x00"+term(2)) }) // which joins alike
	waitFor(t, "another to miss", func() bool { return s.Stats().Cache.Misses == 101 })
	r.resume()
	done.Wait()
	calls, _ := r.lookUps(t)
	check.That(t, calls == 2, "%d HMGETs, want one of those that are equal and one more", calls)
}

func TestRowsArriveInTheCacheAfterTheSearchGaveUp(t *testing.T) {
	r, a, _ := setup(t)
	publish(t, a, "one", 10)
	s := open(t, Options{Redis: r.at()})
	r.hang()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := s.Pin().For("i", "f").Rows(ctx, []string{term(1)}, make([]simmatrix.Row, 1))
	check.That(t, errors.Is(err, ErrUnavailable) && errors.Is(err, context.DeadlineExceeded), "error %v", err)
	r.resume()
	waitFor(t, "the cache to fill", func() bool { return s.Stats().Cache.Bytes > 0 })
	r.kill()
	wantMark(t, s, "one", term(1))
}
