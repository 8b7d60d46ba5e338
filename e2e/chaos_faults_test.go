package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// faults is what is done. What a fault of the cluster costs without akin, it
// may cost with akin: such searches are allowed for in lost.
var faults = []fault{
	{name: "Redis is killed and started again", plain: true, start: killRedis},
	{name: "Redis hangs", plain: true, start: hangRedis},
	{name: "something that is no Redis answers in its place", plain: true, start: replaceRedis},
	{name: "all data of Redis is lost, and the matrix is pushed again", plain: true, start: flushRedis},
	{name: "rows are deleted in Redis and put back", plain: true, start: func(t *testing.T, s *stage) func() {
		t.Helper()
		return damageRows(t, s, func(string) (string, bool) { return "", false })
	}},
	{name: "a bit is flipped in every row in Redis, akin forgets its rows, and the bits are put right", plain: true, start: func(t *testing.T, s *stage) func() {
		t.Helper()
		repair := damageRows(t, s, func(row string) (string, bool) {
			b := []byte(row)
			b[len(b)/2] ^= 4
			return string(b), true
		})
		s.akin.proc.signal(t, syscall.SIGHUP) // what akin has in memory is sound
		return repair
	}},

	// An answer that has begun is cut, as without akin: one for each client at most.
	{name: "one of two nodes is killed", lost: chaosClients, start: killNodes(0)},
	{name: "both nodes are killed", lost: 1 << 20, start: killNodes(0, 1)},
	{name: "one of two nodes hangs", lost: chaosClients, start: func(_ *testing.T, s *stage) func() {
		s.nodes[0].hang()
		return s.nodes[0].resume
	}},
	{name: "one of two nodes takes no connections and refuses none", lost: chaosClients, start: func(t *testing.T, s *stage) func() {
		t.Helper()
		closeQueue := s.nodes[0].dropSYN(t)
		return func() { closeQueue(); s.nodes[0].listen(t) }
	}},
	{name: "one of two nodes answers 503 to everything", lost: 2 * chaosClients, start: answerStatus(http.StatusServiceUnavailable, 1)},
	{name: "both nodes answer 429 to everything", lost: 1 << 20, start: answerStatus(http.StatusTooManyRequests, 2), after: checkFewCalls},
	{name: "both nodes answer 503 to everything", lost: 1 << 20, start: answerStatus(http.StatusServiceUnavailable, 2), after: checkFewCalls},

	{name: "both nodes answer 429 to expanded searches, and take the others", lost: 2 * chaosClients, plain: true, start: refuseExpanded(http.StatusTooManyRequests)},
	{name: "both nodes answer 503 to expanded searches, and take the others", lost: 2 * chaosClients, plain: true, start: refuseExpanded(http.StatusServiceUnavailable)},

	{name: "400 clients keep the last byte of a search of 1 MiB", start: withholdBytes, after: checkMemory},
	{name: "100 clients read no answer", start: readNothing, after: checkMemory},

	{name: "akin is told to read its configuration again, over and over", start: reloadOften},
	{name: "two akins behind a balancer are restarted in turn", start: restartInTurn},

	{name: "a language model that orders hits is killed and started again", with: orderByModel, start: killModel, after: checkModelFailed},
	{name: "a language model that orders hits hangs", with: orderByModel, start: hangModel, after: checkModelFailed},
	{name: "the index is replaced behind its alias, while a language model orders hits", with: orderByModel, start: replaceIndex, after: checkModelOrder},
	{name: "two akins that a language model helps to order hits are restarted in turn", with: orderByModel, start: restartInTurn},
}

// orderByModel has a language model order the hits of an index of its own,
// behind an alias.
func orderByModel(t *testing.T, s *stage, config section) {
	t.Helper()
	s.model = startTextModel(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(s.model.url, "http://"), ":")
	s.index = chaosIndex + "-" + port
	s.engine.makeIndex(t, s.index+"-0", strings.Replace(relatedDefinition, "{", `{"aliases":{"`+s.index+`":{}},`, 1))
	s.engine.index(t, s.index+"-0", relatedDocuments())
	config["expansion"] = section{"budget": "500ms", "rerank": "embeddings"}
	config["embeddings"] = section{"url": s.model.url, "model": "spelling", "fields": []string{"body"}, "budget": "200ms"}
}

func killModel(t *testing.T, s *stage) func() {
	t.Helper()
	s.model.server.CloseClientConnections()
	s.model.server.Close()
	return func() { s.model.restart(t) }
}

func hangModel(_ *testing.T, s *stage) func() {
	s.model.hangs.Store(true)
	return func() { s.model.hangs.Store(false) }
}

// checkModelFailed is checkModelOrder, after searches kept the engine's order.
func checkModelFailed(t *testing.T, s *stage) {
	t.Helper()
	if s.akin.metric(t, rerankedMetric, `result="model"`)+s.akin.metric(t, rerankedMetric, `result="model_late"`) == 0 {
		t.Error("the fault was not felt: no search kept the engine's order")
	}
	checkModelOrder(t, s)
}

// checkModelOrder checks that the model orders hits.
func checkModelOrder(t *testing.T, s *stage) {
	t.Helper()
	waitFor(t, recoverWithin, "hits in the model's order", func() error {
		if s.akin.counted(t, func() { s.akin.find(t, s.index, relatedSearch("car")) }, rerankedMetric, rerankedResult) == 0 {
			return fmt.Errorf("not yet")
		}
		return nil
	})
}

// replaceIndex has the alias name another index with the same documents, and
// deletes the first.
func replaceIndex(t *testing.T, s *stage) func() {
	t.Helper()
	old, replacement := s.index+"-0", s.index+"-1"
	s.engine.makeIndex(t, replacement, relatedDefinition)
	s.engine.index(t, replacement, relatedDocuments())
	s.engine.must(t, http.MethodPost, "/_aliases", `{"actions":[{"add":{"index":"`+replacement+`","alias":"`+s.index+`"}},{"remove":{"index":"`+old+`","alias":"`+s.index+`"}}]}`)
	s.engine.must(t, http.MethodDelete, "/"+old, "")
	return nil
}

// isExpanded reports whether a request is a client's search for cars that akin
// has expanded, and not a call of its own.
func isExpanded(r *http.Request, body string) bool {
	return strings.HasSuffix(r.URL.Path, "/_search") && !r.URL.Query().Has("filter_path") && strings.Contains(body, "automobile")
}

// refuse has nodes answer a status to some requests until it is mended.
func refuse(nodes []*frontNode, status int, which func(r *http.Request, body string) bool) (mend func()) {
	refuses := refusal(func(r *http.Request, body string) int {
		if which(r, body) {
			return status
		}
		return 0
	})
	for _, n := range nodes {
		n.refuses.Store(&refuses)
	}
	return func() {
		for _, n := range nodes {
			n.refuses.Store(nil)
		}
	}
}

// refuseExpanded has the nodes answer a status to expanded searches only.
func refuseExpanded(status int) func(*testing.T, *stage) func() {
	return func(_ *testing.T, s *stage) func() { return refuse(s.nodes, status, isExpanded) }
}

// answerStatus has some nodes answer a status to everything.
func answerStatus(status, nodes int) func(*testing.T, *stage) func() {
	return func(_ *testing.T, s *stage) func() {
		return refuse(s.nodes[:nodes], status, func(*http.Request, string) bool { return true })
	}
}

// searchOf is the head of a search with a body of a length.
func searchOf(index string, length int, more string) string {
	return fmt.Sprintf("POST /%s/_search HTTP/1.1\r\nHost: akin\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n", index, length, more)
}

func killRedis(t *testing.T, s *stage) func() {
	t.Helper()
	s.redis.proc.signal(t, syscall.SIGKILL)
	if _, err := s.redis.proc.wait(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := s.redis.start(); err != nil {
			t.Error(err)
		}
	}
}

func hangRedis(t *testing.T, s *stage) func() {
	t.Helper()
	s.redis.proc.signal(t, syscall.SIGSTOP)
	return func() { s.redis.proc.signal(t, syscall.SIGCONT) }
}

// replaceRedis puts a server in the place of Redis that answers what no Redis
// does.
func replaceRedis(t *testing.T, s *stage) func() {
	t.Helper()
	start := killRedis(t, s)
	var listener net.Listener
	waitFor(t, 5*time.Second, "the port of Redis", func() (err error) {
		listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:"+s.redis.port)
		return err
	})
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
				_, _ = conn.Read(make([]byte, 1024))
				_, _ = io.WriteString(conn, "*9999999999\r\n$-7\r\nHTTP/1.1 400 Bad Request\r\n\r\n")
			})
		}
	})
	return func() {
		_ = listener.Close()
		conns.Wait()
		start()
	}
}

func flushRedis(t *testing.T, s *stage) func() {
	t.Helper()
	if err := s.redis.client(t).FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	file := relatedFile(t, vectorsA)
	return func() { pushMatrix(t, s.redis, "main", file) }
}

// damageRows replaces every row by what damage makes of it, or takes it away.
// The function that it returns puts the rows back.
func damageRows(t *testing.T, s *stage, damage func(row string) (string, bool)) func() {
	t.Helper()
	db := s.redis.client(t)
	keys, err := db.Keys(t.Context(), "akin:{main}:rows:*").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("rows of one version: %v, %v", keys, err)
	}
	rows, err := db.HGetAll(t.Context(), keys[0]).Result()
	if err != nil {
		t.Fatal(err)
	}
	write := func(of func(row string) (string, bool)) {
		_, err := db.TxPipelined(context.Background(), func(pipe redis.Pipeliner) error {
			for term, row := range rows {
				if term == "" {
					continue // marks the version as complete
				}
				if value, ok := of(row); ok {
					pipe.HSet(context.Background(), keys[0], term, value)
				} else {
					pipe.HDel(context.Background(), keys[0], term)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	write(damage)
	return func() { write(func(row string) (string, bool) { return row, true }) }
}

func killNodes(which ...int) func(*testing.T, *stage) func() {
	return func(t *testing.T, s *stage) func() {
		t.Helper()
		for _, i := range which {
			s.nodes[i].kill()
		}
		return func() {
			for _, i := range which {
				s.nodes[i].listen(t)
			}
		}
	}
}

// checkFewCalls compares what reached the nodes with what clients sent: an
// overloaded cluster must not get more work from akin than from its clients,
// plus a tenth.
func checkFewCalls(t *testing.T, s *stage) {
	t.Helper()
	calls := s.nodes[0].calls.Load() + s.nodes[1].calls.Load()
	searches := s.akin.metric(t, requestsMetric)
	own := s.akin.metric(t, "akin_cache_misses_total")
	if float64(calls) > 1.1*searches+own+100 {
		t.Errorf("%d calls reached the nodes for %v requests of clients and %v cache misses", calls, searches, own)
	}
}

// attack runs n connections to akin, each through f, until it is mended.
func attack(t *testing.T, s *stage, n int, f func(ctx context.Context, conn net.Conn)) func() {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	address := strings.TrimPrefix(s.akin.url, "http://")
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err != nil {
				return
			}
			defer conn.Close()
			stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
			defer stop()
			f(ctx, conn)
		})
	}
	return func() { cancel(); wg.Wait() }
}

func withholdBytes(t *testing.T, s *stage) func() {
	t.Helper()
	body := relatedSearch("car")
	body += strings.Repeat(" ", 1<<20-len(body))
	return attack(t, s, 400, func(ctx context.Context, conn net.Conn) {
		_, _ = io.WriteString(conn, searchOf(chaosIndex, len(body), "")+body[:len(body)-1])
		<-ctx.Done()
	})
}

func readNothing(t *testing.T, s *stage) func() {
	t.Helper()
	line := "{}\n" + `{"query":{"match":{"body":"filler car"}},"size":100}` + "\n"
	body := strings.Repeat(line, 100)
	head := fmt.Sprintf("POST /%s/_msearch HTTP/1.1\r\nHost: akin\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n",
		chaosIndex, len(body))
	return attack(t, s, 100, func(ctx context.Context, conn net.Conn) {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(4 << 10)
		}
		_, _ = io.WriteString(conn, head+body)
		<-ctx.Done()
	})
}

// checkMemory checks that akin is back at the memory that it has in peace.
func checkMemory(t *testing.T, s *stage) {
	t.Helper()
	const most = 350 << 20 // the budget for what is held, and what Go and the caches take
	if rss := s.akin.metric(t, "process_resident_memory_bytes"); rss > most {
		t.Errorf("akin has %.0f MB in memory, want at most %d MB", rss/(1<<20), most>>20)
	}
}

// reloadOften sends SIGHUP all the time; every second one finds a configuration
// that is wrong.
func reloadOften(t *testing.T, s *stage) func() {
	t.Helper()
	good := readFile(t, s.akin.config)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			content := good
			if n%2 == 1 {
				content = "{nonsense: true}"
			}
			replaceFile(t, s.akin.config, content)
			s.akin.proc.signal(t, syscall.SIGHUP)
			time.Sleep(200 * time.Millisecond) // akin reads some of the files, and is asked again meanwhile.
		}
	})
	return func() {
		cancel()
		wg.Wait()
		replaceFile(t, s.akin.config, good)
		s.akin.proc.signal(t, syscall.SIGHUP)
	}
}

// restartInTurn has a second akin next to the first, and a balancer that sends
// clients to one that says that it is ready, as it finds out every 50 ms.
// Both are replaced, one after the other.
func restartInTurn(t *testing.T, s *stage) func() {
	t.Helper()
	var all section
	decode(t, []byte(readFile(t, s.akin.config)), &all)
	all["shutdown"] = section{"delay": "1s"} // so that the balancer notices
	start := func() *akin {
		a := launch(t, writeFile(t, "akin.yaml", toJSON(t, all)))
		a.awaitReady(t)
		return a
	}
	var mu sync.Mutex
	pool := []*akin{start(), start()}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			mu.Lock()
			members := append([]*akin(nil), pool...)
			mu.Unlock()
			for _, a := range members {
				status, _, err := a.admin.call(ctx, http.MethodGet, "/readyz", "")
				if err == nil && status == http.StatusOK {
					s.target.Store(&a.cluster)
					break
				}
			}
			time.Sleep(50 * time.Millisecond) // A balancer looks so often.
		}
	})
	waitFor(t, 5*time.Second, "the balancer", func() error {
		if s.target.Load() == &s.akin.cluster {
			return fmt.Errorf("clients still go to the first akin")
		}
		return nil
	})
	for i := range pool {
		old := pool[i]
		old.proc.signal(t, syscall.SIGTERM)
		if code, err := old.proc.wait(20 * time.Second); err != nil || code != 0 {
			t.Errorf("akin left with %d, %v", code, err)
		}
		replacement := start()
		mu.Lock()
		pool[i] = replacement
		mu.Unlock()
	}
	return func() { cancel(); wg.Wait() }
}

// replaceFile puts content in place of a file in one step.
func replaceFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
