package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// slots is the number of hash slots of a Redis Cluster.
const slots = 16384

// A nodes value is the masters of a Redis Cluster, each with a third of the
// slots.
type nodes []*server

// startCluster starts a cluster of three masters.
func startCluster(tb testing.TB, args ...string) nodes {
	tb.Helper()
	c := make(nodes, 3)
	for i := range c {
		c[i] = startNode(tb, startOnPort, args...)
		check.OK(tb, c[i].client(tb).Do(tb.Context(), "cluster", "addslotsrange", i*slots/len(c), (i+1)*slots/len(c)-1).Err())
		c[0].meet(tb, c[i])
	}
	for _, s := range c {
		s.awaitCluster(tb, len(c))
	}
	return c
}

// startNode starts a redis-server that may become a node of a cluster.
func startNode(tb testing.TB, start func(testing.TB, ...string) *server, args ...string) *server {
	tb.Helper()
	return start(tb, append([]string{
		"--cluster-enabled", "yes", "--cluster-port", freePort(tb), "--cluster-node-timeout", "1000",
		"--cluster-announce-ip", "127.0.0.1", "--repl-diskless-sync-delay", "0",
	}, args...)...)
}

// startOnlyNode starts a cluster of one node.
func startOnlyNode(tb testing.TB, start func(testing.TB, ...string) *server, args ...string) *server {
	tb.Helper()
	s := startNode(tb, start, args...)
	check.OK(tb, s.client(tb).Do(tb.Context(), "cluster", "addslotsrange", 0, slots-1).Err())
	s.awaitCluster(tb, 1)
	return s
}

// meet introduces another node to s.
func (s *server) meet(tb testing.TB, other *server) {
	tb.Helper()
	bus := other.client(tb).ConfigGet(tb.Context(), "cluster-port").Val()["cluster-port"]
	check.OK(tb, s.client(tb).Do(tb.Context(), "cluster", "meet", "127.0.0.1", other.port, bus).Err())
}

// awaitCluster waits until s knows so many nodes and all slots.
func (s *server) awaitCluster(tb testing.TB, nodes int) {
	tb.Helper()
	waitFor(tb, "the nodes to know each other", func() bool {
		info := s.client(tb).ClusterInfo(tb.Context()).Val()
		return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", nodes)) &&
			strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d\r", slots))
	})
}

// replicate adds a replica of a node.
func (c nodes) replicate(tb testing.TB, master *server) {
	tb.Helper()
	replica := startNode(tb, startOnPort)
	master.meet(tb, replica)
	replica.awaitCluster(tb, len(c)+1)
	check.OK(tb, replica.client(tb).Do(tb.Context(), "cluster", "replicate", master.id(tb)).Err())
	replica.awaitMaster(tb)
	for _, s := range c {
		s.awaitCluster(tb, len(c)+1)
	}
}

// id is what a node calls itself.
func (s *server) id(tb testing.TB) string {
	tb.Helper()
	return check.Got(s.client(tb).Do(tb.Context(), "cluster", "myid").Text())(tb)
}

// at is the cluster as a client finds it: one node that it names is not there.
func (c nodes) at(tb testing.TB) Redis {
	tb.Helper()
	return Redis{URL: "redis+cluster://127.0.0.1:" + freePort(tb) + "," + c[1].addr() + "," + c[2].addr()}
}

// on returns the node that has the keys of a matrix.
func (c nodes) on(tb testing.TB, name string) *server {
	tb.Helper()
	for _, s := range c {
		for _, key := range s.keys(tb) {
			if key == versionsKey(name) {
				return s
			}
		}
	}
	tb.Fatalf("no node has matrix %s", name)
	return nil
}

// nameOn returns the name of a matrix with a slot in the k-th third.
func nameOn(tb testing.TB, c nodes, k int) string {
	tb.Helper()
	for i := range 100 {
		name := fmt.Sprintf("matrix-%d", i)
		slot := check.Got(c[0].client(tb).ClusterKeySlot(tb.Context(), versionsKey(name)).Result())(tb)
		if int(slot)*3/slots == k {
			return name
		}
	}
	tb.Fatal("no name for the node")
	return ""
}

func TestEveryCallWorksInACluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	a := adminAt(t, c.at(t))
	var bindings []Binding
	active := make(map[string]string)
	for k := range c {
		name := nameOn(t, c, k)
		bindings = append(bindings, Binding{Name: name, Indices: []string{"*"}, Fields: []string{name}})
		active[name] = useEverything(t, a, name)
		got := c.on(t, name)
		check.That(t, got == c[k], "%s is on port %s, want %s", name, got.port, c[k].port)
	}
	s := open(t, Options{Redis: c.at(t), Bindings: bindings})
	for name, id := range active {
		waitFor(t, "the version of "+name, func() bool {
			rows := s.Pin().For("i", name)
			return rows != nil && rows.Version() == name+"@"+id
		})
	}
}

// lookUps returns the number of HMGETs, refused ones apart.
func (s *server) lookUps(tb testing.TB) (done, refused int) {
	tb.Helper()
	for line := range strings.Lines(s.client(tb).Info(tb.Context(), "commandstats").Val()) {
		if fields, ok := strings.CutPrefix(line, "cmdstat_hmget:calls="); ok {
			fmt.Sscanf(fields, "%d", &done)
			_, fields, _ = strings.Cut(fields, "rejected_calls=")
			fmt.Sscanf(fields, "%d", &refused)
		}
	}
	return done, refused
}
