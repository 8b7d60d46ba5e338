package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// followWithin is how soon a proxy serves a version that was made active.
const followWithin = time.Second

// An observation is one search of a client during the live switch.
type observation struct {
	start time.Time
	ids   string // sorted
	err   error
}

// The hits of a search for "car boat" with each matrix, sorted.
var (
	hitsWithA = sortedWords("car", "car-red", "car-automobile", "automobile", "boat", "boat-blue", "boat-ship", "ship")
	hitsWithB = sortedWords("car", "car-red", "car-automobile", "lorry", "boat", "boat-blue", "boat-ship", "canoe")
)

func sortedWords(words ...string) string {
	slices.Sort(words)
	return strings.Join(words, " ")
}

// A switchover is a moment after which one version has to be served.
type switchover struct {
	settled time.Time // followWithin after the command ended
	until   time.Time // the next command began
	ids     string
}

// TestMatrixIsReplacedWhileClientsSearch switches between two matrices by
// every command that can, while eight clients search.
func TestMatrixIsReplacedWhileClientsSearch(t *testing.T) {
	const name = "akin-e2e-live"
	e, redis := oneEngine(t), commonRedis(t)
	makeRelated(t, e)
	fileA, fileB := relatedFile(t, vectorsA), relatedFile(t, vectorsB)
	versionA := pushMatrix(t, redis, name, fileA)
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": section{"budget": widePatience},
		"matrices":  []section{{"name": name}},
		"redis":     section{"url": redis.url},
	})
	a.awaitMatrix(t, name)
	untouched := indexState(t, e)

	stop := keepSearching(t, a, 8)
	on := []string{"--redis", redis.url, "--name", name}
	var versionB string
	steps := []struct {
		ids string
		run func()
	}{
		{hitsWithB, func() { versionB = pushMatrix(t, redis, name, fileB) }},
		{hitsWithA, func() { mustAkin(t, append([]string{"matrix", "rollback"}, on...)...) }},
		{hitsWithB, func() { mustAkin(t, append([]string{"matrix", "activate", versionB}, on...)...) }},
		{hitsWithA, func() { mustAkin(t, append([]string{"matrix", "activate", versionA}, on...)...) }},
		{hitsWithB, func() { mustAkin(t, append([]string{"matrix", "rollback"}, on...)...) }},
		{hitsWithA, func() { pushMatrix(t, redis, name, fileA) }},
		{hitsWithB, func() { pushMatrix(t, redis, name, fileB) }},
	}
	var switches []switchover
	for _, s := range steps {
		s.run()
		settled := time.Now().Add(followWithin)
		time.Sleep(followWithin + 200*time.Millisecond)
		switches = append(switches, switchover{settled, time.Now(), s.ids})
	}
	observations := stop()
	checkObservations(t, observations, switches)
	if after := indexState(t, e); after != untouched {
		t.Errorf("the index was touched:\nbefore %s\nafter  %s", untouched, after)
	}
	if n := a.metric(t, requestsMetric, rewrittenOutcome); int(n) != len(observations) {
		t.Errorf("%v of %d searches were rewritten", n, len(observations))
	}
}

// keepSearching lets clients search until the function it returns is called,
// which hands over what they saw.
func keepSearching(t *testing.T, a *akin, clients int) func() []observation {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	seen := make([][]observation, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				start := time.Now()
				// Not canceled: the last search is to end in good order.
				hits, err := a.search(context.WithoutCancel(ctx), relatedPath, relatedSearch("car boat"))
				seen[i] = append(seen[i], observation{start, strings.Join(sortedIDs(hits), " "), err})
				time.Sleep(clientPause)
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() }) // where the test fails before it stops them
	return func() []observation {
		cancel()
		wg.Wait()
		return slices.Concat(seen...)
	}
}

// checkObservations checks that no search failed, that every answer comes
// from one version, and that the right one answered once it had to.
func checkObservations(t *testing.T, observations []observation, switches []switchover) {
	t.Helper()
	problems := map[string]int{}
	checked := make([]int, len(switches))
	for _, o := range observations {
		switch {
		case o.err != nil:
			problems["failed: "+o.err.Error()]++
		case o.ids != hitsWithA && o.ids != hitsWithB:
			problems["neither version by itself answers "+o.ids]++
		}
		for i, s := range switches {
			if o.start.Before(s.settled) || o.start.After(s.until) {
				continue
			}
			checked[i]++
			if o.ids != s.ids {
				problems[fmt.Sprintf("switch %d: the old version answers after %v", i, followWithin)]++
			}
		}
	}
	for p, n := range problems {
		t.Errorf("%d times: %s", n, p)
	}
	if slices.Contains(checked, 0) {
		t.Errorf("searches after each switch: %v, want some after every one", checked)
	}
	t.Logf("%d searches, after the switches had to be done: %v", len(observations), checked)
}

// indexState is what would change if anything wrote to the index.
func indexState(t *testing.T, e *engine) string {
	t.Helper()
	var state strings.Builder
	for _, path := range []string{
		"/_mapping", "/_settings", "/_count?filter_path=count",
		"/_stats/docs,indexing?level=shards&filter_path=indices.*.shards.*.seq_no,indices.*.total.docs,indices.*.total.indexing.index_total",
	} {
		state.Write(e.must(t, http.MethodGet, "/"+relatedIndex+path, ""))
	}
	return state.String()
}
