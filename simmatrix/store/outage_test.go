package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// shortTimeout is the Redis timeout where Redis is not to answer.
const shortTimeout = 500 * time.Millisecond

// An outage is a way for Redis to be away.
type outage struct {
	name string
	// start starts a Redis whose data survives an end.
	start func(t *testing.T) *server
	// url is where the store finds it.
	url func(t *testing.T, s *server) string
	// begin and end are the outage.
	begin, end func(t *testing.T, s *server)
}

// startLasting starts a Redis that has its data again after it was killed.
func startLasting(t *testing.T) *server {
	t.Helper()
	return startOnPort(t, "--appendonly", "yes", "--appendfsync", "always")
}

// startLastingCluster starts the only node of a cluster.
func startLastingCluster(t *testing.T) *server {
	t.Helper()
	return startOnlyNode(t, startOnPort, "--appendonly", "yes", "--appendfsync", "always")
}

// outages returns the ways in which Redis is away.
func outages() []outage {
	var list []outage
	for _, place := range []struct {
		name  string
		start func(t *testing.T) *server
		url   func(t *testing.T, s *server) string
	}{
		{"", startLasting, func(_ *testing.T, s *server) string { return s.url() }},
		{"behind Sentinel ", startLasting, func(t *testing.T, s *server) string {
			t.Helper()
			return "redis+sentinel://" + startSentinel(t, s.port).addr() + "/main"
		}},
		{"as a cluster ", startLastingCluster, func(_ *testing.T, s *server) string { return "redis+cluster://" + s.addr() }},
	} {
		refuse, start := func(_ *testing.T, s *server) { s.kill() }, func(t *testing.T, s *server) { t.Helper(); s.start(t) }
		hang, resume := func(_ *testing.T, s *server) { s.hang() }, func(_ *testing.T, s *server) { s.resume() }
		list = append(
			list, outage{place.name + "refuses", place.start, place.url, refuse, start},
			outage{place.name + "hangs", place.start, place.url, hang, resume},
		)
	}
	for _, name := range []string{"HTTP", "noise", "huge string", "huge array", "short array"} { // fuzzing covers the others
		answer := garbageAnswers[name]
		var f *frontend
		list = append(list, outage{
			"answers garbage: " + name, startLasting,
			func(t *testing.T, s *server) string { t.Helper(); f = startFrontend(t, s, nil); return f.url() },
			func(_ *testing.T, _ *server) { f.answer([]byte(answer)) },
			func(_ *testing.T, _ *server) { f.answer(nil) },
		})
	}
	return list
}

func TestRedisAwayAtStartAndLater(t *testing.T) {
	for _, o := range outages() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			r := o.start(t)
			url := o.url(t, r)
			id := publish(t, r.admin(t), "one", 10)
			var log logbook
			wantStates := func(want ...string) {
				t.Helper()
				check.Equal(t, want, log.lines(id))
			}

			o.begin(t, r)
			start := time.Now()
			s := open(t, Options{Redis: Redis{URL: url}, RedisTimeout: shortTimeout, OnState: log.add})
			took := time.Since(start)
			check.That(t, took <= 20*shortTimeout && served(s) == "", "opened after %v with version %q", took, served(s))
			time.Sleep(4 * followEvery) // Some polls must find nothing new, and none has an event.
			wantStates("none " + lineAway)
			o.end(t, r)
			awaitServed(t, s, id)
			waitFor(t, "its rows", func() bool { // Look-ups have little time.
				rows, err := rowsOf(t, s, term(1))
				return err == nil && markOf(rows[0]) == "one"
			})
			wantStates("none "+lineAway, "A")

			o.begin(t, r)
			for i := range 2 * breakerFailures {
				start := time.Now()
				_, err := rowsOf(t, s, term(2))
				took := time.Since(start)
				check.That(t, took <= 20*shortTimeout, "look-up %d failed after %v", i, took)
				if !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrBadRow) { // some garbage is a reply, but no row
					t.Errorf("look-up %d: %v", i, err)
				}
			}
			waitFor(t, "the outage to be reported", func() bool { return s.State()[0].Problem != "" })
			got := s.Stats()
			check.That(t, got.Failures != 0 && served(s) == id, "stats %+v, version %q", got, served(s))
			wantMark(t, s, "one", term(1)) // from the cache
			o.end(t, r)
			waitFor(t, "recovery", func() bool {
				rows, err := rowsOf(t, s, term(2))
				return err == nil && markOf(rows[0]) == "one"
			})
			awaitProblem(t, s, nil)
			check.Equal(t, "closed", s.Stats().Breaker)
			wantStates("none "+lineAway, "A", "A "+lineAway, "A")
		})
	}
}

func TestOpenBreakerFailsAtOnceAndClosesByItself(t *testing.T) {
	t.Parallel()
	r, a, _ := setup(t)
	publish(t, a, "one", 10)
	s := open(t, Options{Redis: r.at(), RedisTimeout: shortTimeout})
	r.hang()
	waitFor(t, "the breaker to open", func() bool {
		rowsOf(t, s, term(1))
		return s.Stats().Breaker == "open"
	})
	var err error
	waitFor(t, "a look-up that is not made", func() bool {
		start := time.Now()
		_, err = rowsOf(t, s, term(1))
		return strings.Contains(err.Error(), "not asked again yet") && time.Since(start) < shortTimeout
	})
	check.Error(t, ErrUnavailable, err)
	r.resume()
	// No search asks: the poll of the active version finds Redis well.
	waitFor(t, "the breaker to close", func() bool { return s.Stats().Breaker == "closed" })
}

// TestALookUpHasAShareOfTheTimeOfItsSearch has Redis hang for longer than usual
// look-ups wait.
func TestALookUpHasAShareOfTheTimeOfItsSearch(t *testing.T) {
	t.Parallel()
	r := &remote{timeout: 30 * time.Millisecond}
	within := func(budget time.Duration) time.Duration {
		ctx, cancel := context.WithTimeout(t.Context(), budget)
		defer cancel()
		return r.within(ctx)
	}
	check.Equal(t, r.timeout, r.within(t.Context()))
	check.Equal(t, r.timeout, within(50*time.Millisecond))
	cold := within(time.Second)
	check.That(t, cold <= 600*time.Millisecond && cold > r.timeout, "%v of a second", cold)
	check.Equal(t, mostLookUp, within(time.Hour))

	server, a, _ := setup(t)
	id := publish(t, a, "one", 10)
	s := open(t, Options{Redis: server.at(), RedisTimeout: 100 * time.Millisecond})
	awaitServed(t, s, id)
	server.hang()
	resume := time.AfterFunc(200*time.Millisecond, server.resume)
	defer resume.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rows := make([]simmatrix.Row, 1)
	check.OK(t, s.Pin().For("i", "f").Rows(ctx, []string{term(2)}, rows))
	check.Equal(t, "one", markOf(rows[0]))
}
