package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// usualBudget is the default of expansion.budget.
const usualBudget = "50ms"

// TestFirstSearchAfterReadyAsksOnlyForItsOwnWords: mappings, analyzers, the
// scale of scores and whether scripts run are known when /readyz turns green, by
// the name of the index and by that of an alias.
func TestFirstSearchAfterReadyAsksOnlyForItsOwnWords(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		const alias = relatedIndex + "-alias"
		e.must(t, http.MethodPut, "/"+relatedIndex+"/_alias/"+alias, "")
		r := startRecorder(t, e, tripDelay)
		file := relatedFile(t, vectorsA)
		for _, name := range []string{relatedIndex, alias} {
			a := startAkin(t, section{
				"cluster":   section{"urls": []string{r.url}},
				"expansion": section{"budget": widePatience},
				"matrices":  []section{{"name": "main", "indices": []string{relatedIndex + "*"}, "file": file}},
			})
			r.settle()
			const id = "of-the-client"
			path := "/" + name + "/_search"
			answer := exchange(t, a.url, rawRequest{
				method: "POST", target: path, header: []string{jsonType, "X-Opaque-Id: " + id}, body: relatedSearch("car boat"),
			})
			if !strings.Contains(answer.body, `"automobile"`) {
				t.Errorf("%s: no related hit in %s", name, answer.body)
			}
			own := slices.DeleteFunc(r.take(), func(trip trip) bool { return trip.opaqueID == id })
			t.Logf("%s: the first search waits %d times: %v", name, longestChain(own), names(own))
			for _, trip := range own {
				if !strings.Contains(trip.what, "_analyze") && !strings.Contains(trip.what, "_termvectors") && !strings.Contains(trip.what, "_mtermvectors") {
					t.Errorf("%s: the first search waits for %s", name, trip.what)
				}
			}
		}
	})
}

// TestFirstSearchesAfterReadyKeepTheUsualBudget starts akin again and again. How
// many of the first searches are expanded depends on the machine, so that most
// have to be, and the log has the number.
func TestFirstSearchesAfterReadyKeepTheUsualBudget(t *testing.T) {
	const starts = 5
	e := oneEngine(t)
	makeRelated(t, e)
	file := relatedFile(t, vectorsA)
	expanded := 0
	for range starts {
		a := serveRelated(t, e, file, section{"budget": usualBudget})
		hits := a.searchRelated(t, relatedSearch("car boat"))
		if slices.Contains(hits.ids(), "automobile") {
			expanded++
		}
	}
	t.Logf("%d of %d first searches were expanded", expanded, starts)
	if 2*expanded <= starts {
		t.Errorf("%d of %d first searches were expanded", expanded, starts)
	}
}

// TestClusterThatRefusesAkinsOwnCallsKeepsItReady: searches of clients succeed,
// so that no balancer may take this akin away; log and /readyz say what is wrong.
func TestClusterThatRefusesAkinsOwnCallsKeepsItReady(t *testing.T) {
	for _, refusal := range []struct {
		status int
		reason string
	}{{401, "credentials"}, {403, "credentials"}, {429, "throttled"}, {503, "cluster_calls"}} {
		t.Run(refusal.reason, func(t *testing.T) {
			const secured = "Bearer of-a-client"
			node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.Header.Get("Authorization") != secured {
					w.WriteHeader(refusal.status)
					fmt.Fprint(w, `{"error":{"type":"refused","reason":"no"},"status":0}`)
					return
				}
				fmt.Fprint(w, `{"hits":{"hits":[{"_id":"a hit"}]}}`)
			}))
			t.Cleanup(node.Close)
			a := startAkin(t, section{
				"cluster":  section{"urls": []string{node.URL}},
				"matrices": []section{{"name": "main", "file": relatedFile(t, vectorsA)}},
			})
			answer := exchange(t, a.url, rawRequest{
				method: "POST", target: relatedPath, header: []string{jsonType, "Authorization: " + secured}, body: relatedSearch("car"),
			})
			if answer.status != "200 OK" || !strings.Contains(answer.body, "a hit") {
				t.Errorf("the search: %s %s", answer.status, answer.body)
			}
			status, ready, err := a.admin.call(t.Context(), http.MethodGet, "/readyz", "")
			if err != nil || status != http.StatusOK || !strings.Contains(string(ready), `"degraded"`) || !strings.Contains(string(ready), refusal.reason) {
				t.Errorf("/readyz: %d %s %v, want 200, degraded by %s", status, ready, err, refusal.reason)
			}
			if n := a.metric(t, "akin_degraded", `reason="`+refusal.reason+`"`); n != 1 {
				t.Errorf("akin_degraded is %v", n)
			}
			checkWarned(t, a, "started", "degraded", "failing open")
		})
	}
}

// checkWarned checks that there is a line of the level warn with each message.
func checkWarned(t *testing.T, a *akin, messages ...string) {
	t.Helper()
	waitFor(t, 10*time.Second, "lines in the log", func() error {
		lines := a.logLines(t)
		for _, msg := range messages {
			if !slices.ContainsFunc(lines, func(l map[string]any) bool { return l["level"] == "WARN" && l["msg"] == msg }) {
				return fmt.Errorf("no warning %q", msg)
			}
		}
		return nil
	})
}
