package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	r := startRedis(t)
	a := r.admin(t)
	one := publish(t, a, newMatrix(t, "one", 10))
	two := publish(t, a, newMatrix(t, "two", 10))
	s := open(t, Options{Redis: r.at()})
	if got := served(s); got != two {
		t.Fatalf("version %s at start, want %s", got, two)
	}
	quickest := time.Hour // of some: the machine may be busy
	for _, id := range []string{one, two, one} {
		if err := a.Activate(t.Context(), "main", id); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		waitFor(t, 10*time.Second, "the new version", func() bool { return served(s) == id })
		quickest = min(quickest, time.Since(start))
	}
	if quickest > time.Second {
		t.Errorf("a switch took at least %v, want within a second", quickest)
	}
}

func TestChecksumIsThatOfTheMatrix(t *testing.T) {
	r := startRedis(t)
	m := newMatrix(t, "one", 10)
	publish(t, r.admin(t), m)
	for source, s := range map[string]*Store{
		SourceRedis: open(t, Options{Redis: r.at()}), SourceFile: open(t, Options{Files: map[string]Loader{"main": InMemory(m)}}),
	} {
		if got := s.Pin().For("i", "f").Checksum(); got != m.Checksum() {
			t.Errorf("from %s: %q, want %q", source, got, m.Checksum())
		}
	}
}

func TestSnapshotNeverMixesVersions(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	a := r.admin(t)
	const terms = 200
	marks := make(map[string]string) // of a version
	var ids []string
	for _, mark := range []string{"one", "two", "three"} {
		id := publish(t, a, newMatrix(t, mark, terms))
		ids, marks["main@"+id] = append(ids, id), mark
	}
	s := open(t, Options{Redis: r.at()})
	var done sync.WaitGroup
	stop := make(chan struct{})
	seen := make([]map[string]bool, 4)
	for reader := range seen {
		seen[reader] = make(map[string]bool)
		rng := rand.New(rand.NewPCG(1, uint64(reader)))
		done.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				pinned := s.Pin()
				for range 3 { // the clauses of one request
					rows := pinned.For("i", "f")
					seen[reader][rows.Version()] = true
					if err := checkMarks(t.Context(), rows, marks[rows.Version()], rng, terms); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for i := range 9 {
		id := ids[i%len(ids)]
		if err := a.Activate(t.Context(), "main", id); err != nil {
			t.Fatal(err)
		}
		waitFor(t, 10*time.Second, "the new version", func() bool { return served(s) == id })
		time.Sleep(10 * time.Millisecond)
	}
	close(stop)
	done.Wait()
	for reader, versions := range seen {
		if len(versions) < 2 {
			t.Errorf("reader %d saw %d versions, too few to tell", reader, len(versions))
		}
	}
}

// checkMarks looks four terms up, one of them unknown, and wants the mark.
func checkMarks(ctx context.Context, rows *Rows, mark string, rng *rand.Rand, terms int) error {
	asked := []string{term(rng.IntN(terms)), term(rng.IntN(terms)), term(rng.IntN(terms)), "unknown"}
	got := make([]simmatrix.Row, len(asked))
	if err := rows.Rows(ctx, asked, got); err != nil {
		return err
	}
	for k, want := range []string{mark, mark, mark, ""} {
		if markOf(got[k]) != want {
			return errors.New(asked[k] + " of " + rows.Version() + " has mark " + markOf(got[k]) + ", want " + want)
		}
	}
	return nil
}

func TestStateChangesAreReportedOnce(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	a := r.admin(t)
	var log logbook
	s := open(t, Options{Redis: r.at(), OnState: log.add})
	one := publish(t, a, newMatrix(t, "one", 10))
	waitFor(t, 10*time.Second, "the first version", func() bool { return served(s) == one })
	two := publish(t, a, newMatrix(t, "two", 10))
	waitFor(t, 10*time.Second, "the second version", func() bool { return served(s) == two })
	if _, err := a.Rollback(t.Context(), "main"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, 10*time.Second, "the first version", func() bool { return served(s) == one })
	c := r.client(t)
	c.Del(t.Context(), activeKey("main"))
	waitFor(t, 10*time.Second, "no version", func() bool { return served(s) == "" })
	time.Sleep(3 * followEvery) // nothing new to report
	want := []string{"none " + lineNone, "A", "B", "A", "none " + lineNone}
	if diff := cmp.Diff(want, log.lines(one, two)); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

func TestDamagedVersionKeepsTheLastGoodOne(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	a, c := r.admin(t), r.client(t)
	one := publish(t, a, newMatrix(t, "one", 10))
	s := open(t, Options{Redis: r.at()})
	for _, tt := range []struct {
		name  string
		spoil func(id string)
		want  error
	}{
		{"another format", func(id string) { c.Set(t.Context(), metaKey("main", id), `{"format":9}`, 0) }, ErrBadVersion},
		{"no header", func(id string) { c.Del(t.Context(), metaKey("main", id)) }, ErrGone},
		{"header of a wrong type", func(id string) {
			c.Del(t.Context(), metaKey("main", id))
			c.LPush(t.Context(), metaKey("main", id), "x")
		}, ErrGone},
		{"no rows", func(id string) { c.Del(t.Context(), rowsKey("main", id)) }, ErrGone},
		{"not complete", func(id string) { c.HDel(t.Context(), rowsKey("main", id), completeField) }, ErrGone},
	} {
		v, err := a.Push(t.Context(), "main", newMatrix(t, "two", 10), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		tt.spoil(v.ID)
		c.Set(t.Context(), activeKey("main"), v.ID, 0) // Activate would refuse
		waitFor(t, 10*time.Second, tt.name, func() bool { return strings.HasPrefix(s.State()[0].Problem, tt.want.Error()) })
		if got := served(s); got != one {
			t.Errorf("%s: version %q, want the last good one", tt.name, got)
		}
		c.Set(t.Context(), activeKey("main"), one, 0)
		waitFor(t, 10*time.Second, "health after "+tt.name, func() bool { return s.State()[0].Problem == "" })
	}
	c.Set(t.Context(), activeKey("main"), "no version: a b", 0)
	waitFor(t, 10*time.Second, "a bad ID to be noticed", func() bool {
		return strings.HasPrefix(s.State()[0].Problem, ErrBadVersion.Error())
	})
}

func TestOneSpoiltMatrixLeavesTheOthers(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	a, c := r.admin(t), r.client(t)
	c.LPush(t.Context(), activeKey("spoilt"), "x")
	s := open(t, Options{
		Bindings: append([]Binding{{Name: "spoilt", Indices: []string{"x"}, Fields: []string{"*"}}}, everywhere()...),
		Redis:    r.at(),
	})
	one := publish(t, a, newMatrix(t, "one", 10))
	waitFor(t, 10*time.Second, "the sound matrix", func() bool { return served(s) == one })
	time.Sleep(breakerFailures * followEvery)
	states := s.State()
	if states[0].Problem != "" || states[1].Name != "spoilt" || !strings.HasPrefix(states[1].Problem, ErrBadVersion.Error()) {
		t.Errorf("states %+v", states)
	}
	if got := s.Stats(); got.Breaker != "closed" || got.Failures != 0 {
		t.Errorf("breaker %s after %d failures", got.Breaker, got.Failures)
	}
}

func TestEvictedVersionIsNoticedAndNotCachedAsUnknown(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	a, c := r.admin(t), r.client(t)
	one := publish(t, a, newMatrix(t, "one", 10))
	s := open(t, Options{Redis: r.at()})
	c.Rename(t.Context(), rowsKey("main", one), "aside")
	if _, err := rowsOf(t, s, term(1)); !errors.Is(err, ErrGone) {
		t.Errorf("rows of an evicted version: %v", err)
	}
	waitFor(t, 10*time.Second, "the loss to be noticed", func() bool {
		return strings.HasPrefix(s.State()[0].Problem, ErrGone.Error())
	})
	c.Rename(t.Context(), "aside", rowsKey("main", one))
	waitFor(t, 10*time.Second, "health", func() bool { return s.State()[0].Problem == "" })
	if rows, err := rowsOf(t, s, term(1)); err != nil || markOf(rows[0]) != "one" {
		t.Errorf("after it came back: %v, %v", rows, err)
	}
}

func TestEqualMissesShareOneRoundTrip(t *testing.T) {
	r := startRedis(t)
	publish(t, r.admin(t), newMatrix(t, "one", 10))
	s := open(t, Options{Redis: r.at()})
	s.stop() // so that only look-ups send HMGET
	s.done.Wait()
	must(t, r.client(t).ConfigResetStat(t.Context()).Err())
	r.hang()
	var done sync.WaitGroup
	for range 50 {
		done.Go(func() {
			if rows, err := rowsOf(t, s, term(1), term(2)); err != nil || markOf(rows[1]) != "one" {
				t.Errorf("rows %v, %v", rows, err)
			}
		})
	}
	waitFor(t, time.Second, "all to miss", func() bool { return s.Stats().Cache.Misses == 100 })
	r.resume()
	done.Wait()
	calls := r.client(t).Info(t.Context(), "commandstats").Val()
	if !strings.Contains(calls, "cmdstat_hmget:calls=1,") {
		t.Errorf("more than one HMGET: %s", calls)
	}
}

func TestRowsArriveInTheCacheAfterTheSearchGaveUp(t *testing.T) {
	r := startRedis(t)
	publish(t, r.admin(t), newMatrix(t, "one", 10))
	s := open(t, Options{Redis: r.at()})
	r.hang()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	rows := make([]simmatrix.Row, 1)
	err := s.Pin().For("i", "f").Rows(ctx, []string{term(1)}, rows)
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	r.resume()
	waitFor(t, 10*time.Second, "the cache to fill", func() bool { return s.Stats().Cache.Bytes > 0 })
	r.kill()
	if rows, err := rowsOf(t, s, term(1)); err != nil || markOf(rows[0]) != "one" {
		t.Errorf("rows %v, %v", rows, err)
	}
}
