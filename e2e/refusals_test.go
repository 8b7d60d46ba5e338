package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// serveBehind starts akin before a node in front of an engine, which refuses
// something from the start.
func serveBehind(t *testing.T, e *engine, config section, refuses refusal) (*akin, *frontNode) {
	t.Helper()
	makeRelated(t, e)
	node := startFrontNode(t, e.url)
	if refuses != nil {
		node.refuses.Store(&refuses)
	}
	full := section{
		"cluster":   section{"urls": []string{node.url()}},
		"expansion": section{"budget": widePatience},
		"matrices":  []section{{"name": "main", "file": relatedFile(t, vectorsA)}},
	}
	maps.Copy(full, config)
	a := startAkin(t, full)
	a.awaitMatrix(t, "main")
	return a, node
}

// expands reports whether a search of an index for cars, which has to succeed,
// finds what is about automobiles, too.
func (c cluster) expands(t *testing.T, index string) bool {
	t.Helper()
	hits, err := c.search(t.Context(), "/"+index+"/_search", relatedSearch("car"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(sortedIDs(hits), " ") == expandedHits
}

// TestRefusedRewritingPauses: a node before a real engine takes original searches
// only. Clients lose a handful of answers, and rewriting goes on when the node
// takes rewritten ones.
func TestRefusedRewritingPauses(t *testing.T) {
	t.Parallel()
	e := oneEngine(t)
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			a, node := serveBehind(t, e, nil, nil)
			if !a.expands(t, relatedIndex) {
				t.Fatal("not expanded at first")
			}
			refuses := refusal(func(r *http.Request, body string) int {
				if isExpanded(r, body) {
					return status
				}
				return 0
			})
			node.refuses.Store(&refuses)
			const searches = 200
			failed := 0
			for range searches {
				if got, _, err := a.call(t.Context(), http.MethodPost, relatedPath, relatedSearch("car")); err != nil || got != http.StatusOK {
					failed++
				}
			}
			if failed > 5 {
				t.Errorf("%d of %d searches failed", failed, searches)
			}
			if n := a.metric(t, requestsMetric, `outcome="unchanged"`, `reason="paused"`); n < searches/2 || a.metric(t, "akin_rewriting_paused") != 1 {
				t.Errorf("%v searches were sent as they came:\n%s", n, requestMetrics(t, a))
			}
			if _, state, _ := a.admin.call(t.Context(), http.MethodGet, "/readyz", ""); !strings.Contains(string(state), "paused: ") {
				t.Errorf("/readyz says %s", state)
			}
			if a.metric(t, "akin_degraded", `reason="paused"`) != 1 {
				t.Error("akin_degraded does not say it")
			}
			node.refuses.Store(nil)
			waitFor(t, recoverWithin, "expanded searches", func() error {
				if !a.expands(t, relatedIndex) {
					return fmt.Errorf("not yet")
				}
				return nil
			})
			if a.metric(t, "akin_rewriting_paused") != 0 {
				t.Error("akin_rewriting_paused does not end")
			}
		})
	}
}

// TestShapeOfASearchThatIsRefusedAnywayStaysExpanded: what one user sends that the
// engine refuses with and without akin says nothing of others' searches.
func TestShapeOfASearchThatIsRefusedAnywayStaysExpanded(t *testing.T) {
	file := relatedFile(t, vectorsA)
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		a := serveRelated(t, e, file, nil)
		wrong := rawRequest{method: "POST", target: relatedPath, header: []string{jsonType}, body: `{"query":{"match":{"body":"car"}},"size":100000,"_source":false}`}
		for range 10 {
			direct, through := exchange(t, e.url, wrong).stable(t), exchange(t, a.url, wrong).stable(t)
			if diff := cmp.Diff(direct, through); diff != "" {
				t.Fatalf("(-direct +through akin):\n%s", diff)
			}
		}
		if !a.expands(t, relatedIndex) {
			t.Errorf("a search of that shape is no longer expanded:\n%s", requestMetrics(t, a))
		}
	})
}

// TestRefusalOfABlockedIndexIsNoLackOfRights: index.blocks.read answers 403 on a
// cluster without security.
func TestRefusalOfABlockedIndexIsNoLackOfRights(t *testing.T) {
	file := relatedFile(t, vectorsA)
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		const blocked = "akin-e2e-blocked"
		e.makeIndex(t, blocked, relatedDefinition)
		e.index(t, blocked, relatedDocuments())
		a := serveRelated(t, e, file, nil)
		if !a.expands(t, blocked) {
			t.Fatal("not expanded at first")
		}
		e.must(t, http.MethodPut, "/"+blocked+"/_settings", `{"index.blocks.read":true}`)
		search := func(target string) {
			t.Helper()
			r := rawRequest{method: "POST", target: target, header: []string{jsonType}, body: relatedSearch("car")}
			direct, through := exchange(t, e.url, r).stable(t), exchange(t, a.url, r).stable(t)
			if diff := cmp.Diff(direct, through); diff != "" || !strings.Contains(through, "cluster_block_exception") {
				t.Errorf("%s: (-direct +through akin):\n%s\n%s", target, diff, through)
			}
		}
		for range 3 {
			search("/" + blocked + "/_search")
			search("/" + blocked + "/_search?filter_path=hits.hits")
			search("/" + blocked + "," + relatedIndex + "/_search")
		}
		if !a.expands(t, relatedIndex) {
			t.Errorf("another index is no longer expanded:\n%s", requestMetrics(t, a))
		}
		if n := a.metric(t, "akin_authorization_checks_total"); n != 0 {
			t.Errorf("the cluster counts as secured: %v checks", n)
		}
		for _, line := range a.logLines(t) {
			if strings.Contains(fmt.Sprint(line["msg"]), "has security") {
				t.Errorf("the log says %v", line)
			}
		}
		if n := a.metric(t, requestsMetric, `outcome="failed_open"`); n != 0 {
			t.Errorf("%v searches failed open:\n%s", n, requestMetrics(t, a))
		}
		e.must(t, http.MethodPut, "/"+blocked+"/_settings", `{"index.blocks.read":false}`)
		waitFor(t, recoverWithin, "expanded searches of the index", func() error {
			if !a.expands(t, blocked) {
				return fmt.Errorf("not yet")
			}
			return nil
		})
	})
}

// TestProbeForScriptsThatFailsIsNoNo: a search whose form hangs on an answer that
// does not come is sent as it came, and counted; what was known holds.
func TestProbeForScriptsThatFailsIsNoNo(t *testing.T) {
	t.Parallel()
	e := oneEngine(t)
	if !e.scripts {
		t.Skip("the engine runs no scripts")
	}
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, cutOff} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			fails := refusal(func(_ *http.Request, body string) int {
				if isProbe(body) {
					return status
				}
				return 0
			})
			a, node := serveBehind(t, e, section{"caches": section{"ttl": "1s"}}, fails)
			form := func() string {
				if got := a.explain(t, relatedIndex, relatedSearch("car")); len(got.Clauses) == 1 {
					return got.Clauses[0].Form
				}
				return ""
			}
			if a.expands(t, relatedIndex) || form() != "" {
				t.Errorf("expanded as %q though it is not known whether scripts run", form())
			}
			if n := a.metric(t, requestsMetric, `outcome="failed_open"`); n == 0 {
				t.Errorf("not counted:\n%s", requestMetrics(t, a))
			}
			node.refuses.Store(nil)
			waitFor(t, recoverWithin, "a form with scripts", func() error {
				if got := form(); got != "saturated" {
					return fmt.Errorf("form %q", got)
				}
				return nil
			})
			// What is known is over after a second, and the probe fails again.
			node.refuses.Store(&fails)
			probes := node.refused.Load()
			waitFor(t, recoverWithin, "another probe", func() error {
				if got := form(); got != "saturated" {
					t.Fatalf("form %q", got)
				}
				if node.refused.Load() == probes {
					return fmt.Errorf("none yet")
				}
				return nil
			})
			if got := form(); got != "saturated" {
				t.Errorf("form %q after the probe failed", got)
			}
		})
	}
}

// TestRefusedPasswordsAreNoFailure: who guesses passwords has akin neither fail
// nor degrade.
func TestRefusedPasswordsAreNoFailure(t *testing.T) {
	t.Parallel()
	e := securedEngine(t)
	makeRelated(t, e)
	a, _ := serveSecured(t, e, section{"budget": "50ms"})
	const threads, searches = 8, 400
	var guessing sync.WaitGroup
	for k := range threads {
		guessing.Go(func() {
			for n := range searches / threads {
				guess := cluster{url: strings.Replace(a.url, "http://", fmt.Sprintf("http://admin:guess%d-%d@", k, n), 1)}
				if status, answer, err := guess.call(t.Context(), http.MethodPost, relatedPath, relatedSearch("car")); err != nil || status != http.StatusUnauthorized {
					t.Errorf("%v, %d: %.200s", err, status, answer)
				}
			}
		})
	}
	guessing.Wait()
	if n := a.metric(t, requestsMetric, `outcome="failed_open"`); n != 0 {
		t.Errorf("%v searches failed open:\n%s", n, requestMetrics(t, a))
	}
	if n := a.metric(t, requestsMetric, `outcome="unchanged"`, `reason="authorization_pending"`) +
		a.metric(t, requestsMetric, `outcome="unchanged"`, `reason="not_authorized"`); n != searches {
		t.Errorf("%v searches are counted, want %d:\n%s", n, searches, requestMetrics(t, a))
	}
	if _, state, _ := a.admin.call(t.Context(), http.MethodGet, "/readyz", ""); !strings.Contains(string(state), `"ok"`) {
		t.Errorf("/readyz says %s", state)
	}
}
