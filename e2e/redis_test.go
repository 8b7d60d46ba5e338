package e2e

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/freeport"
)

// A redisServer is a Redis that the tests started.
type redisServer struct {
	url  string
	dir  string
	port string
	proc *process
}

// sharedRedis is started on first use. Tests that use it keep apart by the
// names of their matrices.
var sharedRedis = sync.OnceValues(func() (*redisServer, error) {
	r, err := startRedis()
	if err == nil {
		keepShared(r.proc)
	}
	return r, err
})

// commonRedis returns the Redis that tests share; without one the test is
// skipped.
func commonRedis(t *testing.T) *redisServer {
	t.Helper()
	r, err := sharedRedis()
	requireRedis(t, err)
	return r
}

// ownRedis starts a Redis that the test may stop, freeze and damage.
func ownRedis(t *testing.T) *redisServer {
	t.Helper()
	r, err := startRedis()
	requireRedis(t, err)
	t.Cleanup(func() { _ = r.proc.stop() })
	return r
}

func requireRedis(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		check.Missing(t, "needs redis-server: %v", err)
	}
}

// section is what configures akin for a matrix in this Redis.
func (r *redisServer) section() section { return section{"url": r.url} }

// client returns a client of this Redis.
func (r *redisServer) client(t *testing.T) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(r.url)
	if err != nil {
		t.Fatal(err)
	}
	db := redis.NewClient(options)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// startRedis starts redis-server on a free port. Its data outlives a restart.
func startRedis() (*redisServer, error) {
	dir, err := makeDir("redis")
	if err != nil {
		return nil, err
	}
	port, err := freeport.Pick(context.Background())
	if err != nil {
		return nil, err
	}
	r := &redisServer{url: "redis://127.0.0.1:" + port + "/0", dir: dir, port: port}
	return r, r.start()
}

// start starts the server, again after it was stopped, and waits for it.
func (r *redisServer) start() error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return err
	}
	cmd := exec.Command(path, "--port", r.port, "--bind", "127.0.0.1", "--dir", r.dir,
		"--save", "", "--appendonly", "yes", "--daemonize", "no")
	if r.proc, err = startProcess("redis-server", r.dir, cmd); err != nil {
		return err
	}
	return r.proc.await(10*time.Second, func() bool {
		conn, err := net.DialTimeout("tcp", "127.0.0.1:"+r.port, time.Second)
		return err == nil && conn.Close() == nil
	})
}

// TestRedisWithTLSAndUsers has a private authority, certificates for clients,
// and a user each for the proxy and for those who push.
func TestRedisWithTLSAndUsers(t *testing.T) {
	t.Parallel()
	e := oneEngine(t)
	dir := certificates(t, "server", "client")
	path, err := exec.LookPath("redis-server")
	requireRedis(t, err)
	port, err := freeport.Pick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	users := writeFile(t, "users.acl", "user default off\n"+
		"user proxy on >secret/1 ~akin:* -@all +get +hget +hmget +hlen +lrange\n"+
		"user pusher on >secret@2 ~akin:* -@all +@read +@write +@scripting +@transaction\n")
	in := func(name string) string { return filepath.Join(dir, name) }
	server, err := startProcess("redis-server", newDir(t, "redis"), exec.Command(path, "--port", "0", "--tls-port", port, "--bind", "127.0.0.1",
		"--save", "", "--aclfile", users, "--tls-ca-cert-file", in("ca.crt"), "--tls-cert-file", in("server.crt"), "--tls-key-file", in("server.key")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.stop() })
	server.logOnFailure(t)
	waitFor(t, 10*time.Second, "redis-server", func() error {
		conn, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	trust := []string{"--redis-ca-file", in("ca.crt"), "--redis-cert-file", in("client.crt"), "--redis-key-file", in("client.key")}
	push := func(user string, more ...string) commandResult {
		url := "rediss://" + user + "@127.0.0.1:" + port
		return runAkin(t, append([]string{"matrix", "push", "--name", "main", "--activate", relatedFile(t, vectorsA), "--redis", url}, more...)...)
	}
	const pusher, proxy = "pusher:secret%402", "proxy:secret%2F1"
	for name, r := range map[string]commandResult{
		"no authority": push(pusher), "no certificate": push(pusher, trust[:2]...),
		"wrong password": push("pusher:hunter2", trust...), "no right": push(proxy, trust...),
	} {
		if r.status != 1 || strings.Contains(r.stderr, "secret") || strings.Contains(r.stderr, "hunter2") {
			t.Errorf("%s: status %d\n%s", name, r.status, r.stderr)
		}
	}
	if r := push(pusher, trust...); r.status != 0 {
		t.Fatal(r.stderr)
	}
	makeRelated(t, e)
	a := setupWide(t, e, section{
		"matrices": []section{{"name": "main"}},
		"redis":    section{"tls": section{"ca_file": in("ca.crt"), "cert_file": in("client.crt"), "key_file": in("client.key")}},
	}, "AKIN_REDIS_URL=rediss://"+proxy+"@127.0.0.1:"+port)
	if !a.expands(t, relatedIndex) {
		t.Errorf("not expanded:\n%s", requestMetrics(t, a))
	}
	if log := readFile(t, a.proc.stderr); strings.Contains(log, "secret") {
		t.Errorf("the log has the password:\n%s", log)
	}
}
