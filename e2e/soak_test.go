package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

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
	t.Parallel()
	const name = "akin-e2e-soak"
	e, redis := oneEngine(t), commonRedis(t)
	makeRelated(t, e)
	versions := []string{
		pushMatrix(t, redis, name, relatedFile(t, vectorsA)), pushMatrix(t, redis, name, relatedFile(t, vectorsB)),
	}
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": section{"budget": widePatience},
		"matrices":  []section{{"name": name}},
		"redis":     section{"url": redis.url},
	})
	a.awaitMatrix(t, name)
	stop := keepSearching(t, a, 4)
	time.Sleep(soakSwitch) // caches fill
	before := useOf(t, a)
	var uses []use
	for i, end := 0, time.Now().Add(soakTime()); time.Now().Before(end); i++ {
		mustAkin(t, "matrix", "activate", "--redis", redis.url, "--name", name, versions[i%2])
		time.Sleep(soakSwitch)
		uses = append(uses, useOf(t, a))
	}
	observations := stop()
	problems := map[string]int{}
	for _, o := range observations {
		switch {
		case o.err != nil:
			problems["failed: "+o.err.Error()]++
		case o.ids != hitsWithA && o.ids != hitsWithB:
			problems["neither version answers "+o.ids]++
		}
	}
	for p, n := range problems {
		t.Errorf("%d times: %s", n, p)
	}
	checkFlat(t, before, uses)
	t.Logf("soak of %v: %d searches, %d switches, %d kinds of problems; before %v, at the end %v",
		soakTime(), len(observations), len(uses), len(problems), before, uses[len(uses)-1])
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
func checkFlat(t *testing.T, before use, uses []use) {
	t.Helper()
	least := func(list []use) use {
		low := list[0]
		for _, u := range list[1:] {
			low.goroutines, low.memory = min(low.goroutines, u.goroutines), min(low.memory, u.memory)
		}
		return low
	}
	third := max(1, len(uses)/3)
	first, last := least(append([]use{before}, uses[:third]...)), least(uses[len(uses)-third:])
	const someGoroutines, someMemory = 20, 64 << 20
	if last.goroutines > first.goroutines+someGoroutines || last.memory > first.memory+someMemory {
		var all []string
		for _, u := range uses {
			all = append(all, u.String())
		}
		t.Errorf("from %v to %v: %s", first, last, strings.Join(all, "; "))
	}
}
