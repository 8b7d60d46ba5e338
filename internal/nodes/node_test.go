package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/recovery"
)

// A behavior returns the status of an answer, or why there is none.
type behavior func(*http.Request) (int, error)

// A cluster stands for the nodes: behavior by host name.
type cluster struct {
	mu    sync.Mutex
	nodes map[string]behavior
	asked map[string]int // without pings
}

func (c *cluster) RoundTrip(req *http.Request) (*http.Response, error) {
	c.mu.Lock()
	if req.Method != http.MethodHead {
		c.asked[req.URL.Host]++
	}
	node := c.nodes[req.URL.Host]
	c.mu.Unlock()
	status, err := node(req)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(req.URL.Host))}, nil
}

func (c *cluster) set(host string, node behavior) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[host] = node
}

// count returns how many requests host got since the last call.
func (c *cluster) count(host string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.asked[host]
	c.asked[host] = 0
	return n
}

// Behaviors of nodes.
func well(*http.Request) (int, error) { return http.StatusOK, nil }

func refuses(*http.Request) (int, error) {
	return 0, &dialError{kindConnect, errors.New("connection refused")}
}

func hangs(req *http.Request) (int, error) {
	<-req.Context().Done()
	return 0, context.Cause(req.Context())
}

// slow answers after d, but pings at once.
func slow(d time.Duration) behavior {
	return func(req *http.Request) (int, error) {
		if req.Method != http.MethodHead {
			select {
			case <-time.After(d):
			case <-req.Context().Done():
				return 0, context.Cause(req.Context())
			}
		}
		return http.StatusOK, nil
	}
}

// startCluster returns the nodes a and b, which are well, and their pool. It is
// called in a bubble where time is fake.
func startCluster(t *testing.T) (*cluster, *Pool) {
	t.Helper()
	c := &cluster{nodes: map[string]behavior{}, asked: map[string]int{}}
	c.set("a", well)
	c.set("b", well)
	p := testPool(t, "http://a", "http://b")
	p.transport, p.traced = c, c
	return c, p
}

// logOf returns what is logged of the nodes from now on.
func logOf(p *Pool) *bytes.Buffer {
	var logged bytes.Buffer
	for _, n := range p.nodes {
		n.log = slog.New(slog.NewTextHandler(&logged, nil))
	}
	return &logged
}

// stateOf returns the state of a node.
func stateOf(p *Pool, i int) state {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nodes[i].state
}

// setState puts a node into a state.
func setState(p *Pool, i int, s state) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes[i].state = s
}

// load sends one request after the other, each 10 ms after the last answer, for
// a while.
func load(t *testing.T, p *Pool, d time.Duration) { t.Helper(); loadEach(t, p, d, 10*time.Millisecond) }

// loadEach is load with another pause.
func loadEach(t *testing.T, p *Pool, d, pause time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(pause) { // The client pauses.
		do(p, write(t.Context(), ""))
	}
}

func TestUnreachableNodeIsDownTwiceAsLongEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := startCluster(t)
		pings := make(chan time.Time, 100)
		c.set("a", func(req *http.Request) (int, error) {
			pings <- time.Now()
			return refuses(req)
		})
		load(t, p, time.Second/2)
		last := <-pings
		for _, seconds := range []int{1, 2, 4, 8, 16, 30, 30} {
			load(t, p, time.Duration(seconds)*11*time.Second/10+time.Second/2)
			at := <-pings
			rest := at.Sub(last)
			want := time.Duration(seconds) * time.Second
			check.That(t, rest >= want && rest <= want*11/10, "the node was down for %v, want %v and up to a tenth more", rest, want)
			last = at
			check.Must(t, len(pings) == 0, "the node was asked while it was down")
		}
		c.set("a", well)
		load(t, p, 40*time.Second)
		c.count("a")
		check.That(t, stateOf(p, 0) == up && p.nodes[0].backoff == 0, "the node is still down after an answer")
	})
}

func TestOneNodeIsAskedWhereAllAreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := startCluster(t)
		c.set("a", refuses)
		c.set("b", refuses)
		do(p, write(t.Context(), ""))
		for i := range p.nodes {
			check.Equal(t, down, stateOf(p, i), i)
		}
		c.count("a")
		c.count("b")
		_, err := do(p, write(t.Context(), ""))
		check.Must(t, err != nil, "a dead node answered")
		check.Equal(t, 1, c.count("a")+c.count("b"))
		c.set("a", well)
		c.set("b", well)
		_, err = do(p, write(t.Context(), ""))
		check.That(t, err == nil, "a cluster that is back is not noticed: %v", err)
	})
}

// Searches that hang are answered by the other node after a second; then
// nobody is sent to the one that hangs, and a write is not sent twice.
func TestHungNodeGetsNoRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := startCluster(t)
		c.set("a", hangs)
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for range 4 { // of requests that come one by one the first ones share both nodes
			waiting.Go(func() {
				start := time.Now()
				got, err := do(p, read(ctx, ""))
				took := time.Since(start)
				check.That(t, got == "b" && err == nil && took <= maxSilence+time.Millisecond, "got %q, %v after %v", got, err, took)
			})
			waiting.Go(func() {
				got, err := do(p, write(ctx, ""))
				check.That(t, err != nil || got == "b", "got %q", got)
			})
		}
		for c.count("a") == 0 {
			waiting.Go(func() { do(p, read(ctx, "")) })
			synctest.Wait()
		}
		check.Elapse(maxSilence + time.Second/2)
		check.Must(t, stateOf(p, 0) == down, "the hung node is not down")
		toB := c.count("b")
		c.count("a")
		load(t, p, time.Minute) // would not end if a request hung
		check.Equal(t, 0, c.count("a"))
		check.That(t, toB != 0, "the other node got nothing")
		cancel()
		waiting.Wait()
		c.set("a", well)
		load(t, p, maxBackoff*11/10+time.Second)
		check.That(t, c.count("a") != 0, "the node gets no requests after it is back")
	})
}

// As in a garbage collection.
func TestNodeThatPausesForLessThanASecondStaysUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := startCluster(t)
		logged := logOf(p)
		goesOn := time.Now().Add(maxSilence - 10*time.Millisecond)
		c.set("a", func(*http.Request) (int, error) {
			time.Sleep(time.Until(goesOn)) // The node pauses.
			return http.StatusOK, nil
		})
		for c.count("a") == 0 {
			go do(p, write(t.Context(), ""))
			synctest.Wait()
		}
		check.Elapse(3 * maxSilence)
		check.That(t, stateOf(p, 0) == up && logged.Len() == 0, "%s", logged.String())
	})
}

// A node that gets half a body drops the connection, and akin may see that first.
func TestBrokenBodyOfAClientSaysNothingOfTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := startCluster(t)
		broken := fmt.Errorf("chunk 3: %w", ErrBody)
		for _, host := range []string{"a", "b"} {
			c.set(host, func(req *http.Request) (int, error) {
				if req.Method == http.MethodHead {
					return well(req)
				}
				return 0, broken
			})
		}
		for range 3 * enoughFailures {
			_, err := do(p, read(t.Context(), ""))
			check.Error(t, broken, err)
			check.Elapse(minFailing / 10)
		}
		check.Equal(t, 3*enoughFailures, c.count("a")+c.count("b"), "requests")
		counted(t, p, `akin_node_failures_total{kind="broken",node="http://a"} 0`)
	})
}

func TestHungNodeIsNoticedWhereClientsGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := startCluster(t)
		c.set("a", hangs)
		for range 60 {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			do(p, write(ctx, ""))
			cancel()
			check.Elapse(100 * time.Millisecond)
		}
		check.Equal(t, down, stateOf(p, 0))
	})
}

// An engine in this process is as slow as the process.
func TestTrustedNodeMayBeSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: map[string]behavior{"a": func(req *http.Request) (int, error) {
			check.That(t, req.Method != http.MethodHead, "the node is asked whether it answers")
			time.Sleep(time.Minute)
			return http.StatusOK, req.Context().Err()
		}}, asked: map[string]int{}}
		p := poolOf(t, Options{URLs: []string{"http://a"}, Trusted: true})
		p.transport, p.traced = c, c
		_, err := do(p, write(t.Context(), ""))
		check.OK(t, err)
		check.Equal(t, up, stateOf(p, 0))
	})
}

func TestHungSearchesAreRepeatedWithinTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := startCluster(t)
		p.budget = newRetryBudget(0)
		c.set("a", hangs)
		setState(p, 1, down)
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for range 30 {
			waiting.Go(func() { do(p, read(ctx, "")) })
		}
		synctest.Wait()
		setState(p, 1, up)
		check.Elapse(maxSilence + time.Millisecond)
		counted(t, p, `akin_node_retries_total{reason="hung"} 10`)
		cancel()
		waiting.Wait()
	})
}

func TestNodeWithALongSearchStaysUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := startCluster(t)
		logged := logOf(p)
		c.set("a", slow(time.Minute))
		c.set("b", slow(time.Minute))
		for range 3 {
			_, err := do(p, read(t.Context(), ""))
			check.OK(t, err)
		}
		n := c.count("a") + c.count("b")
		check.That(t, n == 3 && logged.Len() == 0, "3 searches were sent %d times; log: %s", n, logged.String())
	})
}

func TestNodeThatAnswers503ToAllIsDown(t *testing.T) {
	for _, code := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, p := startCluster(t)
				c.set("a", func(req *http.Request) (int, error) {
					if req.Method == http.MethodHead { // the process lives
						return http.StatusOK, nil
					}
					return code, nil
				})
				load(t, p, 2*time.Second)
				c.count("a")
				load(t, p, 58*time.Second)
				// The one request of each trial, after 1, 2, 4, 8, 16 and 30 s.
				n := c.count("a")
				check.That(t, n >= 4 && n <= 6, "the node got %d requests of 5,800", n)
				c.set("a", well)
				load(t, p, maxBackoff*11/10+time.Second)
				check.Equal(t, up, stateOf(p, 0))
			})
		})
	}
}

// 503 that come for what is asked, as for an index without its shards, and 429
// do not put a node down.
func TestNodeThatAnswersOthersStaysUp(t *testing.T) {
	for name, codes := range map[string][]int{
		"an index is lost": {503, 503, 503, 503, 503, 503, 503, 503, 503, 200},
		"overload":         {429},
		"refused":          {400, 401, 403, 404, 500},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, p := startCluster(t)
				logged := logOf(p)
				for _, host := range []string{"a", "b"} {
					next := 0
					c.set(host, func(*http.Request) (int, error) {
						next++
						return codes[next%len(codes)], nil
					})
				}
				load(t, p, 10*time.Second)
				check.That(t, logged.Len() == 0, "%v", logged.String())
			})
		})
	}
}

// An engine drops the connection of a client that sends nonsense. That says
// nothing of the node, unless its ping fails, too.
func TestConnectionsThatBreakOffPutANodeDownOnlyWithItsPing(t *testing.T) {
	breaks := func(*http.Request) (int, error) { return 0, io.ErrUnexpectedEOF }
	for name, tt := range map[string]struct {
		ping behavior
		want state
	}{"the ping is answered": {well, up}, "the ping breaks off": {breaks, down}, "the ping hangs": {hangs, down}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, p := startCluster(t)
				var pings atomic.Int32
				drops := func(req *http.Request) (int, error) {
					if req.Method == http.MethodHead {
						pings.Add(1)
						return tt.ping(req)
					}
					return breaks(req)
				}
				c.set("a", drops)
				c.set("b", drops)
				wasDown := false
				for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) { // The client pauses.
					do(p, write(t.Context(), ""))
					wasDown = wasDown || stateOf(p, 0) == down
				}
				if wasDown != (tt.want == down) || pings.Load() > 50 { // at most one a second for failures, and one for silence
					t.Errorf("the node was down: %t, after %d pings of both", wasDown, pings.Load())
				}
				c.set("a", refuses) // with the node on trial
				setState(p, 0, up)
				c.set("b", well)
				load(t, p, 500*time.Millisecond)
				c.set("a", drops)
				load(t, p, 2*time.Second)
				check.Equal(t, tt.want, stateOf(p, 0))
			})
		})
	}
}

func TestNodeOnTrialGetsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := startCluster(t)
		c.set("a", refuses)
		load(t, p, 500*time.Millisecond)
		c.set("a", slow(500*time.Millisecond))
		c.set("b", slow(500*time.Millisecond))
		check.Elapse(2 * time.Second) // the ping
		c.count("a")
		var waiting sync.WaitGroup
		for range 50 {
			waiting.Go(func() { do(p, write(t.Context(), "")) })
		}
		synctest.Wait()
		check.Equal(t, 1, c.count("a"))
		waiting.Wait()
		check.Equal(t, up, stateOf(p, 0))
	})
}

func TestTrialGoesOnWhenItsClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := startCluster(t)
		c.set("a", refuses)
		load(t, p, 500*time.Millisecond)
		c.set("a", hangs)
		setState(p, 0, recovering)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		do(p, write(ctx, ""))
		c.set("a", well)
		got, err := do(p, write(t.Context(), ""))
		check.That(t, got == "a" && err == nil && stateOf(p, 0) == up, "got %q, %v, state %d", got, err, stateOf(p, 0))
	})
}

func TestNodeWithFewerRequestsInFlightIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := startCluster(t)
		c.set("a", slow(500*time.Millisecond))
		var waiting sync.WaitGroup
		for c.count("a") == 0 {
			waiting.Go(func() { do(p, write(t.Context(), "")) })
			synctest.Wait()
		}
		c.count("b")
		for range 20 {
			do(p, write(t.Context(), ""))
		}
		check.Equal(t, 20, c.count("b"))
		waiting.Wait()
	})
}

func TestLogTellsWhenANodeIsDownAndUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := startCluster(t)
		logged := logOf(p)
		c.set("a", refuses)
		load(t, p, 10*time.Second)
		c.set("a", well)
		load(t, p, 10*time.Second)
		got := logged.String()
		for _, want := range []string{
			`level=WARN msg="node is down" node=http://a cause=connect err="connection refused"`,
			`level=INFO msg="node is up again" node=http://a`,
		} {
			check.Equal(t, 1, strings.Count(got, want), want)
		}
		check.Equal(t, 2, strings.Count(got, "\n"), got)
	})
}

func TestPanicWhileNodesArePingedIsCountedAndTheyComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		guard := recovery.New(slog.New(slog.DiscardHandler), registry)
		c, p := startCluster(t)
		p.guard = guard
		c.set("a", refuses)
		load(t, p, time.Second/2) // a is down
		mistakes := 3
		c.set("a", func(req *http.Request) (int, error) {
			if mistakes--; mistakes >= 0 {
				panic("a mistake")
			}
			return well(req)
		})
		c.set("b", func(*http.Request) (int, error) { panic("a mistake") })
		if err := p.Reach(t.Context()); err == nil { // asks both
			t.Error("reached a node that panics")
		}
		c.set("b", well)
		check.Elapse(3 * maxBackoff)
		c.count("a")
		load(t, p, time.Second)
		check.That(t, c.count("a") != 0, "the node is still down")
		text := metricsOf(t, registry)
		check.That(t, strings.Contains(text, `akin_panics_total{operation="checking nodes"} 4`), "counted\n%s", text)
	})
}
