package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/e2e/freeport"
)

// A redisServer is a Redis that the tests started or were given.
type redisServer struct {
	url  string
	dir  string
	port string
	proc *process
}

// sharedRedis is started on first use. Tests that use it keep apart by the
// names of their matrices.
var sharedRedis = sync.OnceValues(func() (*redisServer, error) {
	if url := os.Getenv("AKIN_E2E_REDIS_URL"); url != "" {
		return &redisServer{url: url}, nil
	}
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
		skipOrFail(t, "needs Redis: %v\ninstall redis-server, or name a running one in AKIN_E2E_REDIS_URL "+
			"(tests that stop Redis need redis-server)", err)
	}
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
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if r.proc.ended() {
			return fmt.Errorf("redis-server ended at start:\n%s", r.proc.tail())
		}
		conn, err := net.DialTimeout("tcp", "127.0.0.1:"+r.port, time.Second)
		if err == nil {
			return conn.Close()
		}
	}
	return fmt.Errorf("redis-server does not serve:\n%s", r.proc.tail())
}

// contents returns every key with its serialized value.
func (r *redisServer) contents(t *testing.T) map[string]string {
	t.Helper()
	options, err := redis.ParseURL(r.url)
	if err != nil {
		t.Fatal(err)
	}
	db := redis.NewClient(options)
	defer db.Close()
	all := map[string]string{}
	keys := db.Scan(t.Context(), 0, "*", 1000).Iterator()
	for keys.Next(t.Context()) {
		value, err := db.Dump(t.Context(), keys.Val()).Result()
		if err != nil {
			t.Fatalf("redis: %s: %v", keys.Val(), err)
		}
		all[keys.Val()] = value
	}
	if err := keys.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
