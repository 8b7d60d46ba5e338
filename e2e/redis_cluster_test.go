package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/e2e/freeport"
)

// A redisNode is a redis-server of a cluster, of a master with a replica, or a
// Sentinel. Tests speak to it over its unix socket.
type redisNode struct {
	port string
	db   *redis.Client
	proc *process
}

// startNode starts redis-server with the arguments, in which PORT means a
// free port and DIR for the node's folder, and waits until it answers.
func startNode(t *testing.T, args ...string) *redisNode {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	requireRedis(t, err)
	dir, err := os.MkdirTemp("", "akin") //nolint:usetesting // a socket's name has at most 107 bytes, which t.TempDir can exceed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	port, err := freeport.Pick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range args {
		args[i] = strings.NewReplacer("PORT", port, "DIR", dir).Replace(args[i])
	}
	n := &redisNode{port: port}
	if n.proc, err = startProcess("redis-server", newDir(t, "redis"), exec.Command(path, args...)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.proc.stop() })
	n.proc.logOnFailure(t)
	n.db = redis.NewClient(&redis.Options{Network: "unix", Addr: filepath.Join(dir, "s"), MaxRetries: -1})
	t.Cleanup(func() { n.db.Close() })
	waitFor(t, 10*time.Second, "redis-server", func() error { return n.db.Ping(t.Context()).Err() })
	return n
}

// onPort are the arguments of a redis-server that keeps nothing.
func onPort(more ...string) []string {
	return append([]string{
		"--port", "PORT", "--bind", "127.0.0.1", "--dir", "DIR", "--unixsocket", "DIR/s", "--save", "", "--repl-diskless-sync-delay", "0",
	}, more...)
}

func (n *redisNode) addr() string { return "127.0.0.1:" + n.port }

// startSentinel starts a Sentinel that takes the master for dead after a
// second.
func startSentinel(t *testing.T, master *redisNode) *redisNode {
	t.Helper()
	config := filepath.Join(newDir(t, "sentinel"), "sentinel.conf") // which it rewrites
	text := fmt.Sprintf("bind 127.0.0.1\nsentinel monitor main 127.0.0.1 %s 1\nsentinel down-after-milliseconds main 1000\n"+
		"sentinel failover-timeout main 5000\n", master.port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startNode(t, config, "--sentinel", "--port", "PORT", "--unixsocket", "DIR/s")
	waitFor(t, 20*time.Second, "the Sentinel to know the replica", func() error {
		if replicas, _ := s.db.Do(t.Context(), "sentinel", "replicas", "main").Slice(); len(replicas) != 1 {
			return fmt.Errorf("replicas %v", replicas)
		}
		return nil
	})
	return s
}

// TestSearchesAndAPushSurviveAFailover kills the master while clients search
// and a large matrix is pushed.
func TestSearchesAndAPushSurviveAFailover(t *testing.T) {
	t.Parallel()
	e := oneEngine(t)
	makeRelated(t, e)
	master := startNode(t, onPort()...)
	replica := startNode(t, onPort("--replicaof", "127.0.0.1 "+master.port)...)
	sentinel := startSentinel(t, master)
	server := &redisServer{url: "redis+sentinel://" + sentinel.addr() + "/main"}
	versionA := pushMatrix(t, server, "main", relatedFile(t, vectorsA))
	waitFor(t, 20*time.Second, "the replica to have the matrix", func() error {
		if active, err := replica.db.Get(t.Context(), "akin:{main}:active").Result(); active != versionA {
			return fmt.Errorf("active version %q, %w", active, err)
		}
		return nil
	})
	a := serveFromRedis(t, e, server.url)
	awaitExpansion(t, a)

	stop := keepSearching(t, a, 4)
	push, err := startProcess("akin push", newDir(t, "akin"),
		exec.Command(akinPath(t), "matrix", "push", "--redis", server.url, "--name", "main", relatedFile(t, manyVectors(6000))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = push.stop() })
	push.logOnFailure(t)
	waitFor(t, 20*time.Second, "rows of the new version", func() error {
		if keys := master.db.Keys(t.Context(), "akin:{main}:rows:*").Val(); len(keys) < 2 {
			return fmt.Errorf("keys %q", keys)
		}
		return nil
	})
	master.proc.signal(t, syscall.SIGKILL)
	if push.ended() {
		t.Fatal("the push was over before its middle")
	}
	status, err := push.wait(90 * time.Second)
	if err != nil || status != 0 {
		t.Errorf("push: status %d, %v", status, err)
	}
	waitFor(t, 30*time.Second, "rows of a word not seen before", func() error {
		if hits := a.searchRelated(t, relatedSearch("lorry")); len(hits.ids()) == 0 {
			return errors.New("no hits")
		}
		if stats := a.metric(t, "akin_matrix_source_healthy", `matrix="main"`); stats != 1 {
			return errors.New("not healthy")
		}
		return nil
	})
	plain := sortedWords("car", "car-red", "car-automobile", "boat", "boat-blue", "boat-ship")
	for _, o := range stop() {
		if o.err != nil || o.ids != hitsWithA && o.ids != plain {
			t.Errorf("hits %s, %v", o.ids, o.err)
		}
	}
	list := mustAkin(t, "matrix", "list", "--redis", server.url, "--name", "main")
	if !strings.Contains(list, versionA) || strings.Count(list, "\n") != 3 {
		t.Errorf("versions, want %s and a new one:\n%s", versionA, list)
	}
	if role := replica.db.Do(t.Context(), "role").Val(); !strings.HasPrefix(fmt.Sprint(role), "[master") {
		t.Errorf("the replica is %v", role)
	}
}

// TestMatrixLivesInARedisCluster goes through the life of a matrix in a
// cluster of three nodes, while akin serves it.
func TestMatrixLivesInARedisCluster(t *testing.T) {
	t.Parallel()
	e := oneEngine(t)
	makeRelated(t, e)
	const slots = 16384
	nodes := make([]*redisNode, 3)
	for i := range nodes {
		bus, err := freeport.Pick(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		nodes[i] = startNode(t, onPort("--cluster-enabled", "yes", "--cluster-port", bus)...)
		for _, command := range [][]any{
			{"cluster", "addslotsrange", i * slots / 3, (i+1)*slots/3 - 1},
			{"cluster", "meet", "127.0.0.1", nodes[0].port, nodes[0].db.ConfigGet(t.Context(), "cluster-port").Val()["cluster-port"]},
		} {
			if err := nodes[i].db.Do(t.Context(), command...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, n := range nodes {
		waitFor(t, 30*time.Second, "the cluster", func() error {
			if info := n.db.ClusterInfo(t.Context()).Val(); !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:3") {
				return errors.New(info)
			}
			return nil
		})
	}
	server := &redisServer{url: "redis+cluster://" + nodes[1].addr() + "," + nodes[2].addr()}
	fileA := relatedFile(t, vectorsA)
	versionA := pushMatrix(t, server, "main", fileA)
	a := serveFromRedis(t, e, server.url)
	awaitExpansion(t, a)
	on := []string{"--redis", server.url, "--name", "main"}
	run := func(args ...string) string { t.Helper(); return strings.TrimSpace(mustAkin(t, append(args, on...)...)) }

	versionB := pushMatrix(t, server, "main", relatedFile(t, vectorsB))
	awaitHits(t, a, "car", sortedWords("car", "car-red", "car-automobile", "lorry"))
	if back := run("matrix", "rollback"); back != versionA {
		t.Errorf("back at %s, want %s", back, versionA)
	}
	awaitHits(t, a, "car", expandedHits)
	versionC := pushMatrix(t, server, "main", fileA)
	if pruned := run("matrix", "prune", "--keep", "1"); pruned != versionB+"\n"+versionA {
		t.Errorf("pruned %q, want B and A", pruned)
	}
	exported := filepath.Join(newDir(t, "out"), "exported.akin")
	mustAkin(t, "matrix", "export", "--redis", server.url, "--out", exported, "main@"+versionC)
	want, errWant := os.ReadFile(fileA)
	got, errGot := os.ReadFile(exported)
	if errWant != nil || errGot != nil || !slices.Equal(want, got) {
		t.Errorf("the file that was exported is not the one that was pushed: %v, %v", errWant, errGot)
	}
	awaitHits(t, a, "car", expandedHits)
}

// awaitHits waits until a search for a word has the sorted hits.
func awaitHits(t *testing.T, a *akin, word, want string) {
	t.Helper()
	waitFor(t, 30*time.Second, "other hits", func() error {
		if ids := strings.Join(sortedIDs(a.searchRelated(t, relatedSearch(word))), " "); ids != want {
			return fmt.Errorf("hits %s, want %s", ids, want)
		}
		return nil
	})
}

// TestRedisWithTLSAndUsers has a private authority, certificates for clients,
// and a user each for the proxy and for those who push.
func TestRedisWithTLSAndUsers(t *testing.T) {
	t.Parallel()
	e := oneEngine(t)
	makeRelated(t, e)
	dir := certificates(t, "server", "client")
	n := startNode(t, "--port", "0", "--tls-port", "PORT", "--bind", "127.0.0.1", "--dir", "DIR", "--unixsocket", "DIR/s", "--save", "",
		"--tls-ca-cert-file", filepath.Join(dir, "ca.crt"), "--tls-cert-file", filepath.Join(dir, "server.crt"),
		"--tls-key-file", filepath.Join(dir, "server.key"))
	for _, user := range [][]any{
		{"acl", "setuser", "proxy", "on", ">secret/1", "~akin:*", "-@all", "+get", "+hget", "+hmget", "+hlen", "+lrange"},
		{"acl", "setuser", "pusher", "on", ">secret@2", "~akin:*", "-@all", "+@read", "+@write", "+@scripting", "+@transaction"},
		{"acl", "setuser", "default", "off"}, // the connection of the test stays
	} {
		if err := n.db.Do(t.Context(), user...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	pusher := "rediss://pusher:secret%402@" + n.addr()
	trust := []string{
		"--redis-ca-file", filepath.Join(dir, "ca.crt"), "--redis-cert-file", filepath.Join(dir, "client.crt"),
		"--redis-key-file", filepath.Join(dir, "client.key"),
	}
	push := []string{"matrix", "push", "--name", "main", "--activate", relatedFile(t, vectorsA), "--redis"}
	mustAkin(t, append(append(push, pusher), trust...)...)
	for name, args := range map[string][]string{
		"no authority":   append(push, pusher),
		"no certificate": append(append(push, pusher), trust[:2]...),
		"wrong password": append(append(push, "rediss://pusher:hunter2@"+n.addr()), trust...),
		"no right":       append(append(push, "rediss://proxy:secret%2F1@"+n.addr()), trust...),
	} {
		if r := runAkin(t, args...); r.status != 1 || strings.Contains(r.stderr, "secret") || strings.Contains(r.stderr, "hunter2") {
			t.Errorf("%s: status %d\n%s", name, r.status, r.stderr)
		}
	}
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": section{"budget": widePatience},
		"matrices":  []section{{"name": "main"}},
		"redis": section{"tls": section{
			"ca_file": filepath.Join(dir, "ca.crt"), "cert_file": filepath.Join(dir, "client.crt"), "key_file": filepath.Join(dir, "client.key"),
		}},
	}, "AKIN_REDIS_URL=rediss://proxy:secret%2F1@"+n.addr())
	awaitExpansion(t, a)
	if content, err := os.ReadFile(a.proc.stderr); err != nil || strings.Contains(string(content), "secret") {
		t.Errorf("%v; the log has the password:\n%s", err, content)
	}
}

// TestRedisOnAUnixSocket serves from one and pushes to it.
func TestRedisOnAUnixSocket(t *testing.T) {
	t.Parallel()
	e := oneEngine(t)
	makeRelated(t, e)
	n := startNode(t, "--port", "0", "--dir", "DIR", "--unixsocket", "DIR/s", "--save", "")
	server := &redisServer{url: "unix://" + n.db.Options().Addr}
	pushMatrix(t, server, "main", relatedFile(t, vectorsA))
	awaitExpansion(t, serveFromRedis(t, e, server.url))
}
