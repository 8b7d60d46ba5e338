package e2e

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serveFromRedis starts akin before e with the matrix "main" of a Redis.
func serveFromRedis(t *testing.T, e *engine, redisURL string) *akin {
	t.Helper()
	return startAkin(t, section{
		"cluster":  section{"urls": []string{e.url}},
		"matrices": []section{{"name": "main"}},
		"redis":    section{"url": redisURL},
	})
}

// The sorted hits of a search for "car", without and with matrix A.
var (
	plainHits    = sortedWords("car", "car-red", "car-automobile")
	expandedHits = sortedWords("car", "car-red", "car-automobile", "automobile")
)

// searchMany searches n times for "car" and returns how often each set of
// hits came. Any other set, or an error, fails the test.
func searchMany(t *testing.T, a *akin, n int) (plain, expanded int) {
	t.Helper()
	for range n {
		switch ids := strings.Join(sortedIDs(a.searchRelated(t, relatedSearch("car"))), " "); ids {
		case plainHits:
			plain++
		case expandedHits:
			expanded++
		default:
			t.Fatalf("hits %s", ids)
		}
	}
	return plain, expanded
}

// awaitExpansion waits until searches are expanded, by themselves again.
func awaitExpansion(t *testing.T, a *akin) {
	t.Helper()
	waitFor(t, 30*time.Second, "expanded searches", func() error {
		if _, expanded := searchMany(t, a, 1); expanded == 0 {
			return errors.New("not expanded; " + requestMetrics(t, a))
		}
		return nil
	})
}

// stateChanges returns the log lines about the matrix: whether it had a
// problem, in order.
func stateChanges(t *testing.T, a *akin) []bool {
	t.Helper()
	var problems []bool
	for _, line := range a.logLines(t) {
		if line["msg"] == "matrix" {
			problems = append(problems, line["problem"] != "")
		}
	}
	return problems
}

// TestSearchesGoOnWhileRedisIsAway takes one akin through all that can happen
// to its Redis.
func TestSearchesGoOnWhileRedisIsAway(t *testing.T) {
	e, redis := oneEngine(t), ownRedis(t)
	makeRelated(t, e)
	file := relatedFile(t, vectorsA)
	if err := redis.proc.stop(); err != nil {
		t.Fatal(err)
	}
	a := serveFromRedis(t, e, redis.url)

	if plain, _ := searchMany(t, a, 20); plain != 20 {
		t.Errorf("without Redis %d of 20 searches are the plain ones", plain)
	}
	if err := redis.start(); err != nil {
		t.Fatal(err)
	}
	if plain, _ := searchMany(t, a, 20); plain != 20 {
		t.Errorf("without a matrix %d of 20 searches are the plain ones", plain)
	}
	pushMatrix(t, redis, "main", file)
	awaitExpansion(t, a)

	redis.proc.signal(t, syscall.SIGKILL)
	if _, err := redis.proc.wait(hold); err != nil {
		t.Fatal(err)
	}
	searchMany(t, a, 20)
	searchUncached(t, a, "boat")
	if err := redis.start(); err != nil {
		t.Fatal(err)
	}
	awaitExpansion(t, a)
	waitFor(t, 30*time.Second, "rows of a word not seen before", func() error {
		if hits := a.searchRelated(t, relatedSearch("boat")); !slices.Contains(hits.ids(), "ship") {
			return fmt.Errorf("hits %v", hits.ids())
		}
		return nil
	})
	checkFewLines(t, a)
}

// searchUncached searches for a word whose rows are not in akin's memory.
func searchUncached(t *testing.T, a *akin, word string) {
	t.Helper()
	before := a.metric(t, requestsMetric, `outcome="failed_open"`)
	for range 20 {
		hits := a.searchRelated(t, relatedSearch(word))
		if !slices.Contains(hits.ids(), word) || len(hits.ids()) != 3 {
			t.Errorf("hits of %s: %v, want the plain ones", word, hits.ids())
		}
	}
	if failed := a.metric(t, requestsMetric, `outcome="failed_open"`) - before; failed != 20 {
		t.Errorf("%v of 20 searches counted as failed open:\n%s", failed, requestMetrics(t, a))
	}
}

// checkFewLines: one line for each change of state, not for each search.
func checkFewLines(t *testing.T, a *akin) {
	t.Helper()
	var changes []bool
	waitFor(t, hold, "the line that all is well again", func() error {
		if changes = stateChanges(t, a); changes[len(changes)-1] {
			return fmt.Errorf("problem %v", changes)
		}
		return nil
	})
	// Away, no version yet (which may be missed), served, away, served.
	if len(changes) < 4 || len(changes) > 7 {
		t.Errorf("%d lines about the matrix, want about five: problem %v", len(changes), changes)
	}
	if lines := a.logLines(t); len(lines) > 20 {
		t.Errorf("%d log lines", len(lines))
	}
}

// TestSearchesGoOnWhileRedisHangs freezes Redis. What a search then waits for
// is bounded by akin's budget; the metric says how long its own work took.
func TestSearchesGoOnWhileRedisHangs(t *testing.T) {
	e, redis := oneEngine(t), ownRedis(t)
	makeRelated(t, e)
	pushMatrix(t, redis, "main", relatedFile(t, vectorsA))
	a := serveFromRedis(t, e, redis.url)
	awaitExpansion(t, a)

	redis.proc.signal(t, syscall.SIGSTOP)
	const stage = "akin_search_stage_duration_seconds"
	before := a.metric(t, stage+"_sum", `stage="expand"`)
	searchUncached(t, a, "boat")
	// 50 ms each is the budget; go-redis's own timeouts would make it seconds.
	if spent := a.metric(t, stage+"_sum", `stage="expand"`) - before; spent > 20*0.25 {
		t.Errorf("20 searches spent %.2f s on expansion while Redis hangs", spent)
	}
	searchMany(t, a, 20)
	redis.proc.signal(t, syscall.SIGCONT)
	waitFor(t, 30*time.Second, "rows after Redis goes on", func() error {
		if hits := a.searchRelated(t, relatedSearch("boat")); !slices.Contains(hits.ids(), "ship") {
			return fmt.Errorf("hits %v", hits.ids())
		}
		return nil
	})
}

func TestSearchesGoOnWhileRedisAnswersGarbage(t *testing.T) {
	e := oneEngine(t)
	makeRelated(t, e)
	a := serveFromRedis(t, e, "redis://"+garbageServer(t))
	if plain, _ := searchMany(t, a, 20); plain != 20 {
		t.Errorf("%d of 20 searches are the plain ones", plain)
	}
	if changes := stateChanges(t, a); len(changes) == 0 || len(changes) > 2 || !changes[0] {
		t.Errorf("lines about the matrix: problem %v, want one that reports it", changes)
	}
}

// TestBadMatrixFileIsReportedAndReplaced: no file, a damaged one, a good one,
// a damaged one again.
func TestBadMatrixFileIsReportedAndReplaced(t *testing.T) {
	t.Parallel()
	e := oneEngine(t)
	makeRelated(t, e)
	good, err := os.ReadFile(relatedFile(t, vectorsA))
	if err != nil {
		t.Fatal(err)
	}
	path := writeFile(t, "live.akin", "")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	a := startAkin(t, section{
		"cluster":  section{"urls": []string{e.url}},
		"matrices": []section{{"name": "main", "file": path}},
	})
	if plain, _ := searchMany(t, a, 5); plain != 5 {
		t.Errorf("without a file %d of 5 searches are the plain ones", plain)
	}
	replaceFile(t, path, good[:len(good)/2])
	time.Sleep(2 * followWithin) // until akin must have looked
	if plain, _ := searchMany(t, a, 5); plain != 5 {
		t.Errorf("with half a file %d of 5 searches are the plain ones", plain)
	}
	replaceFile(t, path, good)
	awaitExpansion(t, a)
	replaceFile(t, path, damaged(good))
	time.Sleep(2 * followWithin)
	if _, expanded := searchMany(t, a, 5); expanded != 5 {
		t.Errorf("with a damaged file %d of 5 searches use the version before", expanded)
	}
	if changes := stateChanges(t, a); !slices.Contains(changes, true) || !slices.Contains(changes, false) || !changes[len(changes)-1] {
		t.Errorf("lines about the matrix: problem %v, want problems, none, and one at the end", changes)
	}
}

// replaceFile puts content in place of a file in one step.
func replaceFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// damaged returns content with one bit changed near its end.
func damaged(content []byte) []byte {
	c := slices.Clone(content)
	c[len(c)*3/4] ^= 0x10
	return c
}
