package proxy

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/report"
)

// A clusterInNeed is a proxy before a cluster that refuses rewritten searches,
// or all, as long as it is to.
type clusterInNeed struct {
	*rig

	refusesRewritten, refusesOriginals atomic.Bool
	rewritten                          atomic.Int64
}

// startClusterInNeed starts one whose cluster refuses with an answer.
func startClusterInNeed(t *testing.T, o Options, refusal string) *clusterInNeed {
	t.Helper()
	c := &clusterInNeed{}
	c.refusesRewritten.Store(true)
	if o.Expander == nil {
		o.Expander = rewriteTo(`{"rewritten":1}`)
	}
	c.rig = start(t, o, func(_ int, r rawRequest) string {
		isRewritten := strings.Contains(r.body, `"rewritten"`)
		if isRewritten {
			c.rewritten.Add(1)
		}
		if isRewritten && c.refusesRewritten.Load() || !isRewritten && strings.HasPrefix(r.line, "POST ") && c.refusesOriginals.Load() {
			return refusal
		}
		return answerOf(searchAnswer(`{"failed":0}`))
	})
	return c
}

// A busyAnswer is that of a cluster that refuses a whole search.
func busyAnswer(status int) string {
	return answerWith(status, jsonType, `{"error":{"root_cause":[{"type":"es_rejected_execution_exception","reason":"x"}],"type":"x"},"status":1}`)
}

// searchN sends n searches and returns how many failed.
func (p *rig) searchN(t *testing.T, target string, n int) (failed int) {
	t.Helper()
	for range n {
		got := p.post(t, target, jsonType, original)
		if !strings.HasPrefix(got, "HTTP/1.1 200 ") || strings.Contains(got, `"error"`) {
			failed++
		}
	}
	return failed
}

// Where the cluster refuses rewritten searches and takes the originals, clients
// do not pay for it: after a few refusals all searches are sent as they came,
// until the cluster takes one that is rewritten.
func TestRewritingPausesWhereTheClusterRefusesRewrittenSearches(t *testing.T) {
	for target, status := range map[string]int{"/a/_search": 429, "/_count": 503, "/_msearch": 429, "/a/_search?akin_profile=other": 503} {
		t.Run(fmt.Sprint(target, status), func(t *testing.T) {
			t.Parallel()
			var book logBook
			c := startClusterInNeed(t, Options{
				Logger: book.logger(), OnRefused: neverTold(t), Profiles: map[string]Expander{"other": rewriteTo(`{"rewritten":2}`)},
			}, busyAnswer(status))
			// With nothing saved up, the retry budget covers the first one.
			if failed := c.searchN(t, target, manySearches); failed > maxRefusals {
				t.Errorf("%d of %d searches failed", failed, manySearches)
			}
			paused := c.value(t, "akin_requests_total", "outcome", report.Unchanged, "reason", reasonPaused)
			gauge := c.value(t, "akin_rewriting_paused")
			check.That(t, gauge == 1 && paused >= manySearches/2, "paused: %v, searches sent as they came: %v", gauge, paused)
			all := c.server.condition(t.Context()).Degraded
			check.That(t, len(all) != 0 && all[0].Reason == report.Paused, "degraded: %v", all)
			if c.searchN(t, "/elsewhere/_search?akin_profile=other", 1); c.value(t, "akin_requests_total", "reason", reasonPaused) <= paused {
				t.Error("there is another state for another profile")
			}
			// The one that tries, after each pause, gets its answer as well, also
			// where the retry budget is used up.
			untilPaused := func(what string, so func() bool) {
				waitFor(t, what, func() bool {
					for c.server.upstream.TakeRepeat() { // until nothing is left
					}
					failed := c.searchN(t, target, 1)
					check.Must(t, failed <= 0, "a search failed in the pause")
					return so()
				})
			}
			before := c.rewritten.Load()
			untilPaused("a trial", func() bool { return c.rewritten.Load() > before })
			c.refusesRewritten.Store(false)
			untilPaused("rewriting to go on", func() bool { return c.value(t, "akin_rewriting_paused") == 0 })
			all = c.server.condition(t.Context()).Degraded
			check.That(t, len(all) == 0 || all[0].Reason != report.Paused, "degraded: %v", all)
			text := book.text()
			check.That(t, strings.Count(text, "rewriting is paused") == 1 && strings.Count(text, "rewriting goes on") == 1, "the log has %s", text)
		})
	}
}

// Where the cluster refuses the originals, too, nothing is learned: one client's
// bad search does not switch expansion off for others. Originals are sent within
// the retry budget.
func TestRewritingGoesOnWhereTheClusterRefusesOriginalsToo(t *testing.T) {
	c := startClusterInNeed(t, Options{}, busyAnswer(429))
	c.refusesOriginals.Store(true)
	failed := c.searchN(t, "/a/_search", manySearches)
	check.That(t, failed == manySearches && c.rewritten.Load() == manySearches, "%d of %d searches failed, %d were rewritten", failed, manySearches, c.rewritten.Load())
	c.counted(t, 0, "akin_rewriting_paused")
	c.refusesRewritten.Store(false)
	c.refusesOriginals.Store(false)
	failed = c.searchN(t, "/a/_search", 1)
	check.That(t, failed <= 0 && c.rewritten.Load() == manySearches+1, "it does not go on at once")
}

// A share of the rewritten searches is refused, such as those of one profile,
// and others are accepted in between: only a handful of clients lose their
// answer before rewriting pauses.
func TestRewritingPausesWhereOnlySomeRewrittenSearchesAreRefused(t *testing.T) {
	for _, every := range []int{2, 3, 5} {
		c := startClusterInNeed(t, Options{Profiles: map[string]Expander{"small": rewriteTo(`{"small":1}`)}}, busyAnswer(429))
		failed := 0
		for i := range 4 * manySearches {
			target := "/a/_search?akin_profile=small"
			if i%every == 0 {
				target = "/a/_search"
			}
			failed += c.searchN(t, target, 1)
		}
		check.That(t, failed <= 3*maxRefusals, "one in %d is refused: %d of %d searches failed", every, failed, 4*manySearches)
	}
}

// Items of an answer count where they are refused as a whole. What does not tell
// of the whole cluster is no reason to pause: single shards that are too busy, an
// index that no node serves, a client that may not search.
func TestWhatPausesRewriting(t *testing.T) {
	const (
		busyItem  = `{"error":{"root_cause":[{"type":"rejected_execution_exception","reason":"x"}],"type":"search_phase_execution_exception","reason":"all shards failed"},"status":429}`
		busyShard = `{"shard":0,"index":"b","reason":{"type":"es_rejected_execution_exception","reason":"x"}}`
		noShards  = `{"error":{"root_cause":[],"type":"search_phase_execution_exception","reason":"all shards failed","failed_shards":[]},"status":503}`
	)
	allThree := expand.Result{Rewritten: true, Body: []byte(`{"rewritten":1}`)}
	for k := range 3 {
		allThree.Clauses = append(allThree.Clauses, expand.Explanation{Path: fmt.Sprintf("[%d].query", k), Form: "linear"})
	}
	for name, tt := range map[string]struct {
		target, refusal string
		originals       bool // are refused, too
		paused          float64
	}{
		"an item":                     {"/_msearch", answerOf(responses(busyItem, goodItem, goodItem)), false, 1},
		"a shard":                     {"/a/_search", answerOf(searchAnswer(failedShards(busyShard))), false, 0},
		"a shard of an item":          {"/_msearch", answerOf(responses(searchAnswer(failedShards(busyShard)), goodItem, goodItem)), false, 0},
		"an index that is not served": {"/a/_search", answerWith(503, jsonType, noShards), true, 0},
		"the same for an item":        {"/_msearch", answerOf(responses(noShards, goodItem, goodItem)), true, 0},
		"only akin's search":          {"/a/_search", answerWith(503, jsonType, noShards), false, 1},
		"a denied client":             {"/a/_search", answerWith(403, jsonType, `{}`), true, 0},
		"a wrong search":              {"/a/_search", answerWith(400, jsonType, `{}`), true, 0},
		"a balancer":                  {"/a/_search", answerWith(503, "Content-Type: text/html\n", "<html>"), false, 1},
	} {
		c := startClusterInNeed(t, Options{Expander: results(allThree)}, tt.refusal)
		c.refusesOriginals.Store(tt.originals)
		c.searchN(t, tt.target, maxRefusals)
		check.Equal(t, tt.paused, c.value(t, "akin_rewriting_paused"), name)
	}
}

func TestAPauseOutlivesAReload(t *testing.T) {
	c := startClusterInNeed(t, Options{}, busyAnswer(503))
	c.searchN(t, "/a/_search", maxRefusals)
	before := c.rewritten.Load()
	o := c.server.opts
	o.Previous = c.server
	failed := start(t, o, nil).searchN(t, "/a/_search", 1)
	check.That(t, failed <= 0 && c.rewritten.Load() == before, "%d failed, %d rewritten searches", failed, c.rewritten.Load()-before)
}

// A pause is twice as long where the cluster takes the original of a trial and
// not the trial, or where another one begins within a minute of its end. It takes
// a minute at most.
func TestPausesTakeLongerWhereTheyAreInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, log := newPause(nil), slog.New(slog.DiscardHandler)
		busy := &answer.Failure{Busy: true, Whole: true}
		refuse := func(ticket uint64, original string) { p.refused(t.Context(), log, ticket, busy, original) }
		begin := func(original string) {
			for range maxRefusals {
				refuse(0, original)
			}
		}
		// holds reports a pause of exactly d, and returns the trial after it.
		holds := func(d time.Duration) (ticket uint64) {
			t.Helper()
			check.Elapse(d - time.Millisecond)
			if _, paused := p.enter(); !paused {
				t.Errorf("it takes less than %v", d)
			}
			check.Elapse(time.Millisecond)
			ticket, paused := p.enter()
			_, others := p.enter()
			check.Must(t, !paused && ticket != 0 && others, "after %v there is no trial, or there are two", d)
			return ticket
		}
		refuse(0, originalAccepted)
		refuse(0, originalAccepted)
		p.accepted(t.Context(), log, 0)
		refuse(0, originalAccepted)
		if _, paused := p.enter(); paused {
			t.Error("it pauses though one in between was taken")
		}
		p.accepted(t.Context(), log, 0)

		begin(originalAccepted)
		seconds := time.Second
		for range 10 {
			refuse(0, originalAccepted)     // sent before the pause
			p.accepted(t.Context(), log, 0) // that, too
			ticket := holds(seconds)
			refuse(ticket, originalAccepted)
			refuse(ticket, originalAccepted) // not twice
			seconds = min(2*seconds, time.Minute)
		}
		ticket := holds(time.Minute)
		p.leave(ticket) // nothing was added to it
		ticket, _ = p.enter()
		p.accepted(t.Context(), log, ticket)
		if got, paused := p.enter(); got != 0 || paused {
			t.Error("it does not end")
		}

		refuse(0, originalNotSent) // it is not known whether the cluster takes originals
		if _, paused := p.enter(); paused {
			t.Error("it pauses though originals may be refused, too")
		}
		refuse(0, originalAccepted)
		refuse(0, originalNotSent) // soon after another pause one client is enough
		ticket = holds(time.Minute)
		p.accepted(t.Context(), log, ticket)
		check.Elapse(time.Minute)
		begin(originalAccepted)
		ticket = holds(time.Second)
		for range 5 { // an overload: the next one tries
			refuse(ticket, originalRejected)
			if ticket, _ = p.enter(); ticket == 0 {
				t.Fatal("no trial follows one that was refused in both forms")
			}
		}
		check.Elapse(time.Second) // this one hangs
		if next, paused := p.enter(); paused || next == 0 || next == ticket {
			t.Error("a trial that hangs keeps others away")
		}
		p.accepted(t.Context(), log, ticket) // it is too late to end what another one tries
		if _, paused := p.enter(); !paused {
			t.Error("a trial of before ends the pause")
		}
	})
}
