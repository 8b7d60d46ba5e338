package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// An observation is one search of a client.
type observation struct {
	start, end time.Time
	ids        string // sorted
	err        error
}

// A load is clients that search again and again.
type load struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	seen   []observation
}

// clientPause is what a client waits between two searches, so that a few clients
// do not take the processors from the tests that run at the same time.
const clientPause = 20 * time.Millisecond

// startLoad lets clients search an index for words until the load is stopped.
// Each search has to be answered within a time.
func startLoad(t *testing.T, clients int, pause, patience time.Duration, target func() cluster, index string, words func(client, n int) string) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel}
	for i := range clients {
		l.wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// Not canceled with the load: the last search is to end in good order.
				one, done := context.WithTimeout(context.WithoutCancel(ctx), patience)
				o := observation{start: time.Now()}
				hits, err := target().search(one, "/"+index+"/_search", relatedSearch(words(i, n)))
				o.end, o.ids, o.err = time.Now(), strings.Join(hits.sorted(), " "), err
				done()
				l.mu.Lock()
				l.seen = append(l.seen, o)
				l.mu.Unlock()
				time.Sleep(pause) // The load is that of people.
			}
		})
	}
	t.Cleanup(func() { l.stop() })
	return l
}

// keepSearching is startLoad of searches for "car boat" in the fixture.
func keepSearching(t *testing.T, a *akin, clients int) *load {
	t.Helper()
	return startLoad(t, clients, clientPause, 10*time.Second, func() cluster { return a.cluster }, relatedIndex, func(int, int) string { return "car boat" })
}

// stop ends the load and returns what the clients saw.
func (l *load) stop() []observation {
	l.cancel()
	l.wg.Wait()
	return l.seen
}

// checkVersions checks that no search failed, and that every answer to "car boat"
// comes from one of the two matrices.
func checkVersions(t *testing.T, seen []observation) {
	t.Helper()
	problems := map[string]int{}
	for _, o := range seen {
		if o.err != nil {
			problems["failed: "+o.err.Error()]++
		} else if o.ids != hitsWithA && o.ids != hitsWithB {
			problems["neither version by itself answers "+o.ids]++
		}
	}
	for p, n := range problems {
		t.Errorf("%d times: %s", n, p)
	}
}

// soakTime is how long the soak lasts: `make chaos` takes ten minutes.
func soakTime() time.Duration {
	if longChaos() {
		return 10 * time.Minute
	}
	return 15 * time.Second
}

// soakSwitch is the time between two switches of the matrix's version.
const soakSwitch = 2 * time.Second

// TestSoak lets clients search while the version of the matrix is switched
// again and again: nothing fails, no answer mixes versions, and memory and
// goroutines stay flat.
func TestSoak(t *testing.T) {
	long(t)
	t.Parallel()
	const name = "akin-e2e-soak"
	e, redis := oneEngine(t), commonRedis(t)
	makeRelated(t, e)
	versions := []string{
		pushMatrix(t, redis, name, relatedFile(t, vectorsA)), pushMatrix(t, redis, name, relatedFile(t, vectorsB)),
	}
	a := setupWide(t, e, section{"matrices": []section{{"name": name}}, "redis": redis.section()})
	clients := keepSearching(t, a, 4)
	time.Sleep(soakSwitch) // Caches fill.
	uses := []use{useOf(t, a)}
	for i, end := 0, time.Now().Add(soakTime()); time.Now().Before(end); i++ {
		mustAkin(t, "matrix", "activate", "--redis", redis.url, "--name", name, versions[i%2])
		time.Sleep(soakSwitch) // Searches go on with the version.
		uses = append(uses, useOf(t, a))
	}
	seen := clients.stop()
	checkVersions(t, seen)
	checkFlat(t, uses)
	t.Logf("soak of %v: %d searches, %d switches; before %v, at the end %v", soakTime(), len(seen), len(uses)-1, uses[0], uses[len(uses)-1])
}

// A use is what a process takes.
type use struct{ goroutines, memory float64 }

func (u use) String() string {
	return fmt.Sprintf("%.0f goroutines and %.0f MB", u.goroutines, u.memory/(1<<20))
}

func useOf(t *testing.T, a *akin) use {
	t.Helper()
	return use{a.metric(t, "go_goroutines"), a.metric(t, "process_resident_memory_bytes")}
}

// checkFlat compares the least use of the last third with that of the first:
// what grows is there at every moment, what comes and goes is not.
func checkFlat(t *testing.T, uses []use) {
	t.Helper()
	least := func(list []use) use {
		low := list[0]
		for _, u := range list[1:] {
			low.goroutines, low.memory = min(low.goroutines, u.goroutines), min(low.memory, u.memory)
		}
		return low
	}
	third := max(1, (len(uses)-1)/3)
	first, last := least(uses[:third+1]), least(uses[len(uses)-third:])
	const someGoroutines, someMemory = 20, 64 << 20
	if last.goroutines > first.goroutines+someGoroutines || last.memory > first.memory+someMemory {
		t.Errorf("from %v to %v: %v", first, last, uses)
	}
}
