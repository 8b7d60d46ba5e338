package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/simmatrix"
)

// A failoverPair is a master with a replica that a Sentinel watches.
type failoverPair struct {
	master, replica, sentinel *server
}

// startPair starts them. The Sentinel takes a master for dead after a second.
func startPair(tb testing.TB) *failoverPair {
	tb.Helper()
	quick := []string{"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}
	p := &failoverPair{master: startOnPort(tb, quick...)}
	p.replica = startOnPort(tb, append(quick, "--replicaof", "127.0.0.1 "+p.master.port)...)
	p.sentinel = startSentinel(tb, p.master.port)
	p.replica.awaitMaster(tb)
	waitFor(tb, 20*time.Second, "the Sentinel to know the replica", func() bool {
		replicas, _ := p.sentinel.client(tb).Do(tb.Context(), "sentinel", "replicas", "main").Slice()
		return len(replicas) == 1
	})
	return p
}

// awaitMaster waits until a replica follows its master.
func (s *server) awaitMaster(tb testing.TB) {
	tb.Helper()
	waitFor(tb, 20*time.Second, "the replica to be in step", func() bool {
		return strings.Contains(s.client(tb).Info(tb.Context(), "replication").Val(), "master_link_status:up")
	})
}

// startSentinel starts a Sentinel that watches the master on a port.
func startSentinel(tb testing.TB, master string, args ...string) *server {
	tb.Helper()
	port := freePort(tb)
	s := newServer(tb)
	config := filepath.Join(filepath.Dir(s.socket), "sentinel.conf") // which it rewrites
	text := fmt.Sprintf("bind 127.0.0.1\nunixsocket %s\nsentinel monitor main 127.0.0.1 %s 1\n"+
		"sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 5000\n", s.socket, master)
	if len(args) == 0 {
		text += "port " + port + "\n"
	}
	if err := os.WriteFile(config, []byte(text+strings.ReplaceAll(strings.Join(args, "\n"), "PORT", port)+"\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	s.args = []string{s.args[0], config, "--sentinel"}
	s.port = port
	s.start(tb)
	return s
}

// at is the pair as a client finds it: the first Sentinel is not there.
func (p *failoverPair) at(tb testing.TB) Redis {
	tb.Helper()
	return Redis{URL: "redis+sentinel://127.0.0.1:" + freePort(tb) + "," + p.sentinel.addr() + "/main"}
}

// A searcher looks terms up without pause, as clients do, and checks what it
// gets.
type searcher struct {
	store    *Store
	mu       sync.Mutex
	marks    map[string]string // of versions
	served   map[string]int    // look-ups by version
	failed   int
	longest  time.Duration
	problems []string
}

// search starts a searcher in a store that serves a version with a mark; the
// function it returns ends it.
func search(tb testing.TB, s *Store, version, mark string) (*searcher, func()) {
	tb.Helper()
	c := &searcher{store: s, marks: make(map[string]string), served: make(map[string]int)}
	c.knows(version, mark) // before the first look-up
	ctx, cancel := context.WithCancel(tb.Context())
	var done sync.WaitGroup
	for reader := range 2 {
		rng := rand.New(rand.NewPCG(7, uint64(reader)))
		done.Go(func() {
			for ctx.Err() == nil {
				c.lookUp(ctx, rng)
				time.Sleep(time.Millisecond)
			}
		})
	}
	stop := func() { cancel(); done.Wait() }
	tb.Cleanup(stop)
	return c, stop
}

// knows says which mark the rows of a version have.
func (c *searcher) knows(version, mark string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks["main@"+version] = mark
}

func (c *searcher) lookUp(ctx context.Context, rng *rand.Rand) {
	rows := c.store.Pin().For("i", "f")
	if rows == nil {
		return
	}
	terms := []string{term(rng.IntN(40_000)), term(rng.IntN(40_000)), "unknown"}
	got := make([]simmatrix.Row, len(terms))
	start := time.Now()
	err := rows.Rows(ctx, terms, got)
	took := time.Since(start)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.longest = max(c.longest, took)
	mark, known := c.marks[rows.Version()]
	switch {
	case err != nil && ctx.Err() == nil && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrGone):
		c.problems = append(c.problems, err.Error())
	case err != nil:
		c.failed++
	case !known || markOf(got[0]) != mark || markOf(got[1]) != mark || !got[2].IsZero():
		c.problems = append(c.problems, fmt.Sprintf("%s: marks %q, %q", rows.Version(), markOf(got[0]), markOf(got[1])))
	default:
		c.served[rows.Version()]++
	}
}

// count returns how many look-ups have found rows of a version.
func (c *searcher) count(version string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.served["main@"+version]
}

// check wants no wrong row, no look-up that hung, and rows of the version.
func (c *searcher) check(t *testing.T, version string) {
	t.Helper()
	if c.count(version) == 0 {
		t.Errorf("no look-up in %s", version)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.problems {
		t.Error(p)
	}
	if c.longest > 20*shortTimeout {
		t.Errorf("a look-up took %v", c.longest)
	}
	t.Logf("look-ups by version: %v, failed %d, the longest took %v", c.served, c.failed, c.longest)
}

// checkFailover pushes and activates a second version while fail takes the
// master of the matrix main away in the middle, and searches meanwhile.
func checkFailover(t *testing.T, at Redis, master *server, fail func()) {
	t.Helper()
	a := adminAt(t, at)
	one := publish(t, a, manyBatches(t, "one"))
	// Replication is not part of an answer. WAIT is for the writes of its own
	// connection, hence the write before it.
	conn := master.client(t).Conn()
	defer conn.Close()
	if err := conn.Set(t.Context(), "probe:{main}", "", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Wait(t.Context(), 1, 10*time.Second).Result(); n != 1 {
		t.Fatalf("%d replicas have the first version, %v", n, err)
	}
	s := open(t, Options{Redis: at, RedisTimeout: shortTimeout})
	waitFor(t, 10*time.Second, "the first version", func() bool { return served(s) == one })
	searches, stop := search(t, s, one, "one")

	two := manyBatches(t, "two")
	v, err := a.Push(t.Context(), "main", two, "", during(fail))
	if err != nil {
		t.Fatal(err)
	}
	searches.knows(v.ID, "two")
	waitFor(t, 20*time.Second, "rows after the failover", func() bool {
		_, err := rowsOf(t, s, term(rand.IntN(40_000)))
		return err == nil
	})
	if err := a.Activate(t.Context(), "main", v.ID); err != nil {
		t.Fatal(err)
	}
	waitFor(t, 20*time.Second, "the second version", func() bool { return served(s) == v.ID })
	waitFor(t, 20*time.Second, "rows of the second version", func() bool { return searches.count(v.ID) > 0 })
	stop()
	searches.check(t, one)
	got, _, err := a.Pull(t.Context(), "main", "", nil) // every row
	if err != nil || got.Checksum() != two.Checksum() {
		t.Errorf("pull: %v", err)
	}
	if back, err := a.Rollback(t.Context(), "main"); err != nil || back != one {
		t.Errorf("back at %s, %v; want %s", back, err, one)
	}
}

func TestSentinelFailoverInTheMiddleOfAPushAndOfSearches(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	checkFailover(t, p.at(t), p.master, p.master.kill)
	if role := p.replica.client(t).Do(t.Context(), "role").Val(); fmt.Sprint(role.([]any)[0]) != "master" {
		t.Errorf("the replica is %v", role)
	}
}

// TestMasterThatBecomesAReplicaIsLeft: both are well, and Sentinel changes
// their roles.
func TestMasterThatBecomesAReplicaIsLeft(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	checkFailover(t, p.at(t), p.master, func() {
		if err := p.sentinel.client(t).Do(t.Context(), "sentinel", "failover", "main").Err(); err != nil {
			t.Error(err)
		}
		// Until then the old master takes writes that it is going to lose.
		waitFor(t, 20*time.Second, "the master to be a replica", func() bool {
			return strings.Contains(p.master.client(t).Info(t.Context(), "replication").Val(), "role:slave")
		})
	})
}

func TestSentinelErrorsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	r := startOnPort(t)
	s := startSentinel(t, r.port)
	locked := startSentinel(t, r.port, "port PORT", "requirepass hunter2",
		"user asker on >hunter2 resetchannels &+switch-master &+replica-reconf-done -@all +sentinel|get-master-addr-by-name "+
			"+sentinel|sentinels +subscribe +ping") // as docs/config.md has it
	garbage := startFrontend(t, r, []byte("-ERR\r\n*1\r\n$1\r\nx\r\n")).listener.Addr().String()
	nobody := "127.0.0.1:" + freePort(t)
	for name, tt := range map[string]struct {
		url  string
		want string
	}{
		"another name":     {"redis+sentinel://" + s.addr() + "/other", "it knows no master of that name"},
		"nobody there":     {"redis+sentinel://" + nobody + "/main", nobody},
		"no Sentinel":      {"redis+sentinel://" + r.addr() + "/main", "unknown command"},
		"half an address":  {"redis+sentinel://" + garbage + "/main", "1 values for an address"},
		"no password":      {"redis+sentinel://" + locked.addr() + "/main", "NOAUTH"},
		"a wrong password": {"redis+sentinel://" + locked.addr() + "/main?sentinel_password=hunter23", "WRONGPASS"},
	} {
		_, err := adminAt(t, Redis{URL: tt.url}).Versions(t.Context(), "main")
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	for _, options := range []string{"sentinel_password=hunter2", "sentinel_username=asker&sentinel_password=hunter2"} {
		a := adminAt(t, Redis{URL: "redis+sentinel://" + locked.addr() + "/main?" + options})
		if _, err := a.Versions(t.Context(), "main"); err != nil {
			t.Errorf("%s: %v", options, err)
		}
	}
}

// TestSentinelAnswersAreChecked lets something else answer in its place: the
// process has to survive it.
func TestSentinelAnswersAreChecked(t *testing.T) {
	for _, answer := range []string{
		"*2\r\n$1\r\nh\r\n$4\r\nport\r\n", "*2\r\n$0\r\n\r\n$1\r\n1\r\n", "*0\r\n", "*3\r\n$1\r\nh\r\n$1\r\n1\r\n$1\r\n1\r\n",
		"$1\r\nx\r\n", ":1\r\n", "*2\r\n*0\r\n*0\r\n", "*2\r\n$1\r\nh\r\n$6\r\n999999\r\n",
	} {
		o := options(func(context.Context, string, string) (net.Conn, error) {
			return pipeThatAnswers([]byte("-ERR unknown command\r\n" + answer)), nil
		}, time.Second)
		o.Addrs, o.MasterName = []string{"a:1"}, "main"
		failover := o.Failover()
		failover.OnConnect = checkSentinel("main")
		c := redis.NewFailoverClient(failover)
		if err := c.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), errSentinel.Error()) {
			t.Errorf("%q: %v", answer, err)
		}
		c.Close()
	}
}
