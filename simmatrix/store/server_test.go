package store

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/freeport"
	"github.com/akin-search/akin/simmatrix"
)

func TestMain(m *testing.M) {
	logging.Disable() // the library reports every failed dial on stderr
	flag.Parse()
	wide := true
	flag.Visit(func(f *flag.Flag) { wide = wide && f.Name != "test.parallel" })
	if wide { // parallel tests wait for Redis most of their time
		if err := flag.Set("test.parallel", strconv.Itoa(max(8, runtime.GOMAXPROCS(0)))); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// A server is a real redis-server on a unix socket of its own, or on a port.
type server struct {
	socket string
	port   string // "" for none
	args   []string
	cmd    *exec.Cmd
}

// startRedis starts a redis-server that ends with the test.
func startRedis(tb testing.TB, args ...string) *server {
	tb.Helper()
	s := newServer(tb, append([]string{"--port", "0"}, args...)...)
	s.start(tb)
	return s
}

// setup starts a Redis, with an Admin and a plain client of it.
func setup(tb testing.TB, args ...string) (*server, *Admin, *redis.Client) {
	tb.Helper()
	s := startRedis(tb, args...)
	return s, s.admin(tb), s.client(tb)
}

// startOnPort is startRedis with a TCP port besides the socket.
func startOnPort(tb testing.TB, args ...string) *server {
	tb.Helper()
	port := freePort(tb)
	s := newServer(tb, append([]string{"--port", port, "--bind", "127.0.0.1"}, args...)...)
	s.port = port
	s.start(tb)
	return s
}

// newServer returns a redis-server that has a folder and is not started.
func newServer(tb testing.TB, args ...string) *server {
	tb.Helper()
	binary := check.RedisServer(tb)
	dir, err := os.MkdirTemp("", "akin") //nolint:usetesting // a socket's name has at most 107 bytes, which tb.TempDir can exceed
	check.OK(tb, err)
	tb.Cleanup(func() { os.RemoveAll(dir) })
	s := &server{socket: filepath.Join(dir, "s")}
	s.args = append([]string{binary, "--unixsocket", s.socket, "--dir", dir, "--save", "", "--daemonize", "no"}, args...)
	tb.Cleanup(s.kill)
	return s
}

func freePort(tb testing.TB) string {
	tb.Helper()
	return check.Got(freeport.Pick(tb.Context()))(tb)
}

func (s *server) start(tb testing.TB) {
	tb.Helper()
	s.cmd = exec.CommandContext(context.WithoutCancel(tb.Context()), s.args[0], s.args[1:]...)
	check.OK(tb, s.cmd.Start())
	c := s.client(tb)
	waitFor(tb, "redis-server to answer", func() bool {
		ctx, cancel := context.WithTimeout(tb.Context(), time.Second)
		defer cancel()
		err := c.Ping(ctx).Err()
		return err == nil || redis.HasErrorPrefix(err, "NOAUTH")
	})
}

// kill ends the process at once, as a crash would.
func (s *server) kill() {
	if s.cmd != nil && s.cmd.ProcessState == nil {
		s.cmd.Process.Signal(syscall.SIGCONT)
		s.cmd.Process.Kill()
		s.cmd.Wait()
	}
}

// hang keeps the process from answering; its socket still takes connections.
func (s *server) hang()   { s.cmd.Process.Signal(syscall.SIGSTOP) }
func (s *server) resume() { s.cmd.Process.Signal(syscall.SIGCONT) }

func (s *server) url() string { return "unix://" + s.socket }

// addr is where the server listens on TCP.
func (s *server) addr() string { return "127.0.0.1:" + s.port }

func (s *server) at() Redis { return Redis{URL: s.url()} }

// client returns a plain client to look at Redis with.
func (s *server) client(tb testing.TB) *redis.Client {
	tb.Helper()
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket})
	tb.Cleanup(func() { c.Close() })
	return c
}

func (s *server) admin(tb testing.TB) *Admin { tb.Helper(); return adminAt(tb, s.at()) }

// adminAt returns an Admin that is closed with the test. It waits longer than
// one of [OpenAdmin].
func adminAt(tb testing.TB, r Redis) *Admin {
	tb.Helper()
	client := check.Got(NewClient(r, longest))(tb)
	a := &Admin{client: client, patience: patience} // frequent 0: what is looked up is not in the cache yet
	tb.Cleanup(func() { a.Close() })
	return a
}

// keys returns all keys of Redis.
func (s *server) keys(tb testing.TB) []string {
	tb.Helper()
	return check.Got(s.client(tb).Keys(tb.Context(), "*").Result())(tb)
}

// A frontend is a TCP server before a real Redis that can stop playing Redis.
type frontend struct {
	listener net.Listener
	socket   string

	mu      sync.Mutex
	garbage []byte // answer this instead; nil forwards
	conns   map[net.Conn]bool
}

func startFrontend(tb testing.TB, s *server, garbage []byte) *frontend {
	tb.Helper()
	l := check.Got(net.Listen("tcp", "127.0.0.1:0"))(tb)
	f := &frontend{listener: l, socket: s.socket, garbage: garbage, conns: make(map[net.Conn]bool)}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() { f.serve(conn) })
		}
	})
	tb.Cleanup(func() { l.Close(); f.answer(nil); done.Wait() })
	return f
}

func (f *frontend) url() string { return "redis://" + f.listener.Addr().String() }

// answer changes what the server does, for new connections; others end.
func (f *frontend) answer(garbage []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.garbage = garbage
	for conn := range f.conns {
		conn.Close()
	}
	clear(f.conns)
}

func (f *frontend) serve(conn net.Conn) {
	defer conn.Close()
	f.mu.Lock()
	garbage := f.garbage
	f.conns[conn] = true
	f.mu.Unlock()
	if garbage != nil {
		conn.Write(garbage)
		io.Copy(io.Discard, conn)
		return
	}
	behind, err := net.Dial("unix", f.socket)
	if err != nil {
		return
	}
	go func() { io.Copy(behind, conn); behind.Close() }()
	io.Copy(conn, behind)
}

// longest is how long anything may take that does not wait for a timeout: far
// longer than on a machine that is very busy.
const longest = 2 * time.Minute

// waitFor fails the test when ok does not become true.
func waitFor(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(longest); !ok(); time.Sleep(5 * time.Millisecond) { // What is polled has no event.
		check.Must(tb, !time.Now().After(end), "waited %v for %s", longest, what)
	}
}

// term returns the i-th term of newMatrix.
func term(i int) string { return fmt.Sprintf("t%05d", i) }

// newMatrix returns a matrix of n terms with one neighbor each, the mark, by
// which a row shows which matrix it is from.
func newMatrix(tb testing.TB, mark string, n int) *simmatrix.Matrix {
	tb.Helper()
	rows := []simmatrix.TermRow{{Term: mark, DocFreq: 7}}
	for i := range n {
		row := simmatrix.TermRow{Term: term(i), DocFreq: uint32(i), Neighbors: []simmatrix.Neighbor{{Term: mark, Similarity: 0.5}}}
		if i%3 == 0 {
			row.Form = formOf(i)
		}
		rows = append(rows, row)
	}
	return check.Got(simmatrix.New(simmatrix.Meta{Source: "test " + mark, Docs: 1000}, rows))(tb)
}

// formOf is the form of every third term of newMatrix.
func formOf(i int) string { return term(i) + "s" }

// markOf returns the mark of a row of newMatrix, "" for the zero Row.
func markOf(row simmatrix.Row) string {
	var marks []string
	for n := range row.All() {
		marks = append(marks, n.Term)
	}
	return strings.Join(marks, " ")
}

// pushed pushes m as the matrix main.
func pushed(tb testing.TB, a *Admin, m *simmatrix.Matrix) Version {
	tb.Helper()
	return check.Got(a.Push(tb.Context(), "main", m, "", nil))(tb)
}

// publish pushes and activates a matrix of newMatrix as main and returns its
// version.
func publish(tb testing.TB, a *Admin, mark string, n int) string {
	tb.Helper()
	return publishMatrix(tb, a, newMatrix(tb, mark, n))
}

func publishMatrix(tb testing.TB, a *Admin, m *simmatrix.Matrix) string {
	tb.Helper()
	id := pushed(tb, a, m).ID
	check.OK(tb, a.Activate(tb.Context(), "main", id))
	return id
}

// minCacheBytes is what the configuration allows at least.
const minCacheBytes = 1 << 20

// everywhere binds the matrix main to all fields.
func everywhere() []Binding {
	return []Binding{{Name: "main", Indices: []string{"*"}, Fields: []string{"*"}}}
}

// open returns a store with defaults for what o leaves out.
func open(tb testing.TB, o Options) *Store {
	tb.Helper()
	if o.Bindings == nil {
		o.Bindings = everywhere()
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = minCacheBytes
	}
	if o.RedisTimeout == 0 {
		o.RedisTimeout = longest
	}
	s := check.Got(Open(tb.Context(), o))(tb)
	tb.Cleanup(func() {
		check.OK(tb, s.Close())
	})
	return s
}

// served returns the version that s serves of main, "" for none.
func served(s *Store) string {
	rows := s.Pin().For("i", "f")
	if rows == nil {
		return ""
	}
	return strings.TrimPrefix(rows.Version(), "main@")
}

// awaitServed waits until s serves a version of main, "" for none.
func awaitServed(tb testing.TB, s *Store, id string) {
	tb.Helper()
	waitFor(tb, "version "+id, func() bool { return served(s) == id })
}

// awaitProblem waits until s reports a problem of its first matrix that begins
// so, nil for none.
func awaitProblem(tb testing.TB, s *Store, want error) {
	tb.Helper()
	waitFor(tb, fmt.Sprintf("problem %q", want), func() bool {
		problem := s.State()[0].Problem
		return want == nil && problem == "" || want != nil && strings.HasPrefix(problem, want.Error())
	})
}

// wantMark wants the rows of terms to be of the matrix with a mark, "" for no
// rows.
func wantMark(tb testing.TB, s *Store, mark string, terms ...string) {
	tb.Helper()
	rows, err := rowsOf(tb, s, terms...)
	for k, row := range rows {
		if err != nil || markOf(row) != mark || row.IsZero() != (mark == "") {
			tb.Errorf("%s of %s has the mark %q, %v; want %q", terms[k], served(s), markOf(row), err, mark)
		}
	}
}

// rowsOf looks terms up in the snapshot taken now.
func rowsOf(tb testing.TB, s *Store, terms ...string) ([]simmatrix.Row, error) {
	tb.Helper()
	r := s.Pin().For("i", "f")
	check.Must(tb, r != nil, "no version is served")
	return rowsOfVersion(tb, r, terms...)
}

func rowsOfVersion(tb testing.TB, r *Rows, terms ...string) ([]simmatrix.Row, error) {
	tb.Helper()
	rows := make([]simmatrix.Row, len(terms))
	return rows, r.Rows(tb.Context(), terms, rows)
}

// For returns the rows of a field of an index expression that is matched as it
// is spelled.
func (s *Snapshot) For(index, field string) *Rows {
	m, err := s.Match(index, field, nil, func() ([]string, error) { return nil, nil })
	if err != nil {
		panic(err)
	}
	return m.Rows
}
