package store

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
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
	waitFor(tb, "the Sentinel to know the replica", func() bool {
		replicas, _ := p.sentinel.client(tb).Do(tb.Context(), "sentinel", "replicas", "main").Slice()
		return len(replicas) == 1
	})
	return p
}

// awaitMaster waits until a replica follows its master.
func (s *server) awaitMaster(tb testing.TB) {
	tb.Helper()
	waitFor(tb, "the replica to be in step", func() bool {
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
	check.OK(tb, os.WriteFile(config, []byte(text+strings.ReplaceAll(strings.Join(args, "\n"), "PORT", port)+"\n"), 0o600))
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

// checkFailover pushes and activates a second version while fail takes the
// master of the matrix main away in the middle, and searches meanwhile.
func checkFailover(t *testing.T, at Redis, master *server, fail func()) {
	t.Helper()
	a := adminAt(t, at)
	one := publish(t, a, "one", many)
	// Replication is not part of an answer. WAIT is for the writes of its own
	// connection, hence the write before it.
	conn := master.client(t).Conn()
	defer conn.Close()
	check.OK(t, conn.Set(t.Context(), "probe:{main}", "", time.Minute).Err())
	if n, err := conn.Wait(t.Context(), 1, longest).Result(); n != 1 {
		t.Fatalf("%d replicas have the first version, %v", n, err)
	}
	s := open(t, Options{Redis: at, RedisTimeout: shortTimeout})
	awaitServed(t, s, one)
	searches := search(t, s, many, map[string]string{one: "one"}, ErrUnavailable, ErrGone)
	two := newMatrix(t, "two", many)
	v, err := a.Push(t.Context(), "main", two, "", during(fail))
	check.OK(t, err)
	searches.knows(v.ID, "two")
	waitFor(t, "rows after the failover", func() bool {
		_, err := rowsOf(t, s, term(rand.IntN(many)))
		return err == nil
	})
	check.OK(t, a.Activate(t.Context(), "main", v.ID))
	awaitServed(t, s, v.ID)
	waitFor(t, "rows of both versions", func() bool { return searches.count(one) > 0 && searches.count(v.ID) > 0 })
	searches.stop()
	check.That(t, searches.longest <= 20*shortTimeout, "a look-up took %v", searches.longest)
	got, _, err := a.Pull(t.Context(), "main", "", nil) // every row
	check.That(t, err == nil && got.Checksum() == two.Checksum(), "pull: %v", err)
	if back, err := a.Rollback(t.Context(), "main"); err != nil || back != one {
		t.Errorf("back at %s, %v; want %s", back, err, one)
	}
}

func TestFailoverInTheMiddleOfAPushAndOfSearches(t *testing.T) {
	t.Run("the master dies", func(t *testing.T) {
		t.Parallel()
		p := startPair(t)
		checkFailover(t, p.at(t), p.master, p.master.kill)
	})
	t.Run("Sentinel changes the roles", func(t *testing.T) {
		t.Parallel()
		p := startPair(t)
		checkFailover(t, p.at(t), p.master, func() {
			check.OK(t, p.sentinel.client(t).Do(t.Context(), "sentinel", "failover", "main").Err())
			// Until then the old master takes writes that it is going to lose.
			waitFor(t, "the master to be a replica", func() bool {
				return strings.Contains(p.master.client(t).Info(t.Context(), "replication").Val(), "role:slave")
			})
		})
	})
	t.Run("a node of a cluster dies", func(t *testing.T) {
		t.Parallel()
		c := startCluster(t)
		slot := check.Got(c[0].client(t).ClusterKeySlot(t.Context(), versionsKey("main")).Result())(t)
		master := c[int(slot)*len(c)/slots]
		c.replicate(t, master)
		checkFailover(t, c.at(t), master, master.kill)
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
		check.That(t, err != nil && strings.Contains(err.Error(), tt.want) && !strings.Contains(err.Error(), "hunter2"), "%s: %v, want %q", name, err, tt.want)
	}
	for _, options := range []string{"sentinel_password=hunter2", "sentinel_username=asker&sentinel_password=hunter2"} {
		a := adminAt(t, Redis{URL: "redis+sentinel://" + locked.addr() + "/main?" + options})
		_, err := a.Versions(t.Context(), "main")
		check.That(t, err == nil, "%s: %v", options, err)
	}
}
