package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A searching is a number of clients that search again and again. Each search
// has to be answered with 200 in 10 s.
type searching struct {
	stop     context.CancelFunc
	clients  sync.WaitGroup
	searches atomic.Int64
	mu       sync.Mutex
	failed   []error
	longest  time.Duration
}

// clientPause is what a client waits between two searches, so that a few clients
// do not take the processors from the tests that run at the same time.
const clientPause = 20 * time.Millisecond

func startSearching(t *testing.T, c cluster, clients int) *searching {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &searching{stop: cancel}
	for range clients {
		s.clients.Go(func() {
			for ctx.Err() == nil {
				s.search(ctx, c)
				time.Sleep(clientPause)
			}
		})
	}
	return s
}

func (s *searching) search(ctx context.Context, c cluster) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	start := time.Now()
	status, answer, err := c.call(ctx, http.MethodPost, relatedPath, relatedSearch("car"))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%d: %s", status, answer)
	}
	s.searches.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.longest = max(s.longest, time.Since(start))
	if err != nil {
		s.failed = append(s.failed, err)
	}
}

// perSecond returns how many searches end in a second, over a while.
func (s *searching) perSecond(d time.Duration) float64 {
	before := s.searches.Load()
	time.Sleep(d)
	return float64(s.searches.Load()-before) / d.Seconds()
}

// end waits for the last searches and fails the test where one failed.
func (s *searching) end(t *testing.T) {
	t.Helper()
	s.stop()
	s.clients.Wait()
	t.Logf("%d searches, %d failed, the longest took %v", s.searches.Load(), len(s.failed), s.longest)
	if len(s.failed) > 0 {
		t.Errorf("searches failed: %v", errors.Join(s.failed[:min(len(s.failed), 5)]...))
	}
}

// A node answers 400 to a head that is too large for it and ignores the
// connection from then on. Nobody else may get that connection.
func TestLargeHeadsHangNobody(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		a := startAkin(t, section{
			"cluster":   section{"urls": []string{e.url}},
			"expansion": section{"budget": widePatience},
			"matrices":  []section{{"name": "main", "file": relatedFile(t, vectorsA)}},
		})
		a.awaitMatrix(t, "main")
		others := startSearching(t, a.cluster, 4)
		for i := range 40 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+relatedPath, strings.NewReader(relatedSearch("car")))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			large := 17 << 10
			if e.name == "opensearch2" {
				large = 9 << 10
			}
			req.Header.Set("X-Large", strings.Repeat("x", large))
			res, err := client.Do(req)
			if err != nil {
				t.Fatalf("request %d with a large head: %v", i, err)
			}
			res.Body.Close()
			cancel()
			if res.StatusCode != http.StatusBadRequest {
				t.Fatalf("the cluster answers %d to a large head", res.StatusCode)
			}
			time.Sleep(20 * time.Millisecond)
		}
		others.end(t)
	})
}

// One of two nodes hangs, comes back and dies while clients search. None of
// their searches fails or waits for long.
func TestSearchesSurviveANodeThatHangsAndDies(t *testing.T) {
	t.Parallel()
	e := oneEngine(t)
	second := newEngine(engineKinds[0])
	second.require(t)
	makeRelated(t, e)
	makeRelated(t, second)
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{e.url, second.url}},
		"expansion": section{"budget": widePatience},
		"matrices":  []section{{"name": "main", "file": relatedFile(t, vectorsA)}},
	})
	a.awaitMatrix(t, "main")
	clients := startSearching(t, a.cluster, 8)
	up := func(want float64) {
		t.Helper()
		waitFor(t, 60*time.Second, "akin_node_up of the second node", func() error {
			if got := a.metric(t, "akin_node_up", "node", second.url); got != want {
				return fmt.Errorf("%v, want %v", got, want)
			}
			return nil
		})
	}
	t.Logf("both well: %.0f searches/s", clients.perSecond(3*time.Second))
	second.proc.signal(t, syscall.SIGSTOP)
	t.Logf("one hangs, its first 5 s: %.0f searches/s", clients.perSecond(5*time.Second))
	up(0)
	t.Logf("one hangs: %.0f searches/s", clients.perSecond(3*time.Second))
	second.proc.signal(t, syscall.SIGCONT)
	up(1)
	t.Logf("both well again: %.0f searches/s", clients.perSecond(3*time.Second))
	second.proc.signal(t, syscall.SIGKILL)
	up(0)
	t.Logf("one is dead: %.0f searches/s", clients.perSecond(3*time.Second))
	clients.end(t)
}

// OpenSearch drops the connection of a client that sends an unknown method.
// That says nothing of the node.
func TestClientsWithUnknownMethodsDoNotPutANodeOut(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		a := startAkin(t, section{"cluster": section{"urls": []string{e.url}}})
		for began := time.Now(); time.Since(began) < 3*time.Second; {
			exchange(t, a.url, rawRequest{method: "FOO", target: "/"})
			if up := a.metric(t, "akin_node_up"); up != 1 {
				t.Fatalf("akin_node_up is %v after %v", up, time.Since(began))
			}
		}
		if broken := a.metric(t, "akin_node_failures_total", `kind="broken"`); broken < 10 && e.name == "opensearch2" {
			t.Errorf("%v connections broke off", broken)
		}
	})
}
