package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEveryProblemOfAConfigurationIsReported wants exit status 2, and each
// problem with its line.
func TestEveryProblemOfAConfigurationIsReported(t *testing.T) {
	path := writeFile(t, "akin.yml", `listen: {address: nowhere}
cluster:
  urls: [ftp://x]
  nodes: 3
expansion:
  scoring: fancy
  max_added_terms: 1000
  budget: soon
  max_doc_share: 0
caches: {size: -1}
`)
	r := runAkin(t, "serve", "--config", path)
	if r.status != 2 {
		t.Errorf("exit status %d, want 2", r.status)
	}
	for line, key := range map[int]string{
		1: "address", 3: "urls", 4: "nodes", 6: "scoring", 7: "max_added_terms", 8: "budget", 9: "max_doc_share", 10: "size",
	} {
		want := path + ":" + strconv.Itoa(line)
		found := slices.ContainsFunc(strings.Split(r.stderr, "\n"), func(s string) bool {
			return strings.Contains(s, want+":") && strings.Contains(s, key)
		})
		if !found {
			t.Errorf("no problem of %s at %s in\n%s", key, want, r.stderr)
		}
	}
}

func TestWrongCommandLinesAreUsageErrors(t *testing.T) {
	for _, args := range [][]string{
		{"serve"},
		{"serve", "--config", "/nonexistent/akin.yml"},
		{"serve", "--nosuch"},
		{"nosuch"},
		{"matrix", "build", "--out", "x"},
		{"matrix", "push", "--redis", "redis://127.0.0.1:1", "--name", "a"},
		{"matrix", "push", "--redis", "no url", "--name", "a", "x"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			if r := runAkin(t, args...); r.status == 0 || r.stderr == "" || r.stdout != "" {
				t.Errorf("status %d, stdout %q, stderr %q; want a failure that is explained", r.status, r.stdout, r.stderr)
			}
		})
	}
}

func TestHelpHasAnExample(t *testing.T) {
	for _, command := range []string{
		"", "serve", "demo", "matrix", "matrix build", "matrix push", "matrix list", "matrix activate", "matrix rollback", "matrix prune", "matrix show",
	} {
		out := mustAkin(t, append(strings.Fields(command), "--help")...)
		if !strings.Contains(out, "Example") || !strings.Contains(out, "akin "+command) {
			t.Errorf("akin %s --help has no example:\n%s", command, out)
		}
	}
}

func TestBadVectorsAreRefusedWithTheirLine(t *testing.T) {
	for _, test := range []struct {
		name, vectors string
		line          int
	}{
		{"short row", "car 1 0 0\nlorry 1 0\n", 2},
		{"long row", "car 1 0 0\nlorry 1 0 0\nvan 1 2 3 4\n", 3},
		{"not a number", "car 1 0\nlorry 1 x\n", 2},
		{"NaN", "car 1 0\nvan 0 1\nlorry NaN 1\n", 3},
		{"infinite", "car 1 0\nlorry 1 inf\n", 2},
		{"too large", "car 1 0\nlorry 1 1e400\n", 2},
		{"hexadecimal", "car 1 0\nvan 0 1\nlorry 1 0x1p3\n", 3},
		{"a header with another dimension", "2 3\ncar 1 0\nvan 0 1\n", 2},
		{"a header with more rows", "3 2\ncar 1 0\nvan 0 1\n", 4}, // where the third is missing
		{"only a word", "car 1 0\nvan\n", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := writeFile(t, "bad.txt", test.vectors)
			out := filepath.Join(newDir(t, "out"), "matrix.akin")
			r := runAkin(t, "matrix", "build", "--from-vectors", in, "--out", out)
			if r.status == 0 {
				t.Error("exit status 0")
			}
			if want := "line " + strconv.Itoa(test.line); !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, in) {
				t.Errorf("want the file and %q in %q", want, r.stderr)
			}
			checkEmpty(t, filepath.Dir(out))
		})
	}
}

// checkEmpty checks that nothing was left in a folder.
func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s was left behind", e.Name())
	}
}

// TestBadFileIsNotPushed compares all of Redis before and after.
func TestBadFileIsNotPushed(t *testing.T) {
	redis := ownRedis(t)
	file := relatedFile(t, vectorsA)
	pushMatrix(t, redis, "main", file)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before := redis.contents(t)
	if len(before) == 0 {
		t.Fatal("the good push left nothing")
	}
	for _, test := range []struct {
		name    string
		content []byte
	}{
		{"empty", nil},
		{"no matrix", []byte("word 1 2 3\n")},
		{"half of it", good[:len(good)/2]},
		{"without its last byte", good[:len(good)-1]},
		{"a byte more", append(slices.Clone(good), 0)},
		{"one bit changed", damaged(good)},
		{"one bit changed in the header", append([]byte{good[0] ^ 1}, good[1:]...)},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := runAkin(t, "matrix", "push", "--redis", redis.url, "--name", "main", "--activate",
				writeFile(t, "bad.akin", string(test.content)))
			if r.status == 0 || r.stdout != "" {
				t.Errorf("status %d, stdout %q", r.status, r.stdout)
			}
			if diff := cmp.Diff(before, redis.contents(t)); diff != "" {
				t.Errorf("Redis (-before +after):\n%s", diff)
			}
		})
	}
}

// interruptAkin starts a command, interrupts it when reached is closed, and
// wants a failure.
func interruptAkin(t *testing.T, reached <-chan struct{}, args ...string) {
	t.Helper()
	p, err := startProcess("akin "+args[1], newDir(t, "akin"), exec.Command(akinPath(t), args...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.stop() })
	p.logOnFailure(t)
	receive(t, reached, "the middle of "+strings.Join(args[:2], " "))
	p.signal(t, syscall.SIGINT)
	status, err := p.wait(hold)
	if err != nil {
		t.Fatal(err)
	}
	if status == 0 {
		t.Error("exit status 0 after SIGINT")
	}
}

// TestInterruptedBuildLeavesNothing interrupts while documents are read.
func TestInterruptedBuildLeavesNothing(t *testing.T) {
	e := oneEngine(t)
	makeRelated(t, e)
	target, err := url.Parse(e.url)
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan struct{})
	var once sync.Once
	forward := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "_search") {
			_, _ = io.Copy(io.Discard, r.Body) // the server notices the end of the connection only then
			once.Do(func() { close(reached) })
			<-r.Context().Done() // the documents never come
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	out := filepath.Join(newDir(t, "out"), "matrix.akin")
	interruptAkin(t, reached, "matrix", "build", "--from-index", server.URL, "--index", relatedIndex, "--field", "body", "--out", out)
	checkEmpty(t, filepath.Dir(out))
}

// TestInterruptedPushLeavesTheActiveVersion interrupts when half of the rows
// are on their way.
func TestInterruptedPushLeavesTheActiveVersion(t *testing.T) {
	redis := ownRedis(t)
	version := pushMatrix(t, redis, "main", relatedFile(t, vectorsA))
	before := redis.contents(t)
	relay, reached := stallingRelay(t, "127.0.0.1:"+redis.port, 100_000)
	interruptAkin(t, reached, "matrix", "push", "--redis", "redis://"+relay, "--name", "main", "--activate",
		relatedFile(t, manyVectors(3000)))
	list := mustAkin(t, "matrix", "list", "--redis", redis.url, "--name", "main")
	if !strings.Contains(list, version) || strings.Count(strings.TrimSpace(list), "\n") > 1 {
		t.Errorf("versions, want only %s:\n%s", version, list)
	}
	after := redis.contents(t)
	for key, value := range before {
		if after[key] != value {
			t.Errorf("%s has changed", key)
		}
	}
}

// manyVectors returns n vectors in the text form, each near some others.
func manyVectors(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "word%d %d %d %d 1\n", i, i%7, i%11, i%13)
	}
	return b.String()
}

// stallingRelay passes connections on to a server until a number of bytes has
// gone there, then nothing more, and closes reached.
func stallingRelay(t *testing.T, server string, limit int) (address string, reached <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	full := make(chan struct{})
	go func() {
		var once sync.Once
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go relayUntil(client, server, limit, func() { once.Do(func() { close(full) }) })
		}
	}()
	return l.Addr().String(), full
}

// relayUntil relays one connection and calls stalled when limit is reached.
func relayUntil(client net.Conn, server string, limit int, stalled func()) {
	defer client.Close()
	up, err := net.DialTimeout("tcp", server, time.Second)
	if err != nil {
		return
	}
	defer up.Close()
	go func() { // answers
		buf := make([]byte, 4096)
		for {
			n, err := up.Read(buf)
			if err != nil {
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 4096)
	for sent := 0; sent < limit; {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if _, err := up.Write(buf[:n]); err != nil {
			return
		}
		sent += n
	}
	stalled()
	for { // swallows what comes, until the client hangs up
		if _, err := client.Read(buf); err != nil {
			return
		}
	}
}

// TestShowPrintsNeighbors reads a matrix from its file and from Redis.
func TestShowPrintsNeighbors(t *testing.T) {
	redis := commonRedis(t)
	file := relatedFile(t, vectorsA)
	pushMatrix(t, redis, "akin-e2e-show", file)
	for _, from := range [][]string{{file}, {"--redis", redis.url, "akin-e2e-show@active"}} {
		out := mustAkin(t, append(append([]string{"matrix", "show"}, from...), "car", "nosuch")...)
		if !strings.Contains(out, "automobile") || strings.Contains(out, "ship") || !strings.Contains(out, "nosuch") {
			t.Errorf("akin matrix show %s:\n%s", from[0], out)
		}
	}
}

// TestEqualInputGivesEqualFiles: the same vectors and the same index, twice.
func TestEqualInputGivesEqualFiles(t *testing.T) {
	e := oneEngine(t)
	makeRelated(t, e)
	build := func(args ...string) string {
		out := filepath.Join(newDir(t, "out"), "matrix.akin")
		mustAkin(t, append(append([]string{"matrix", "build"}, args...), "--out", out)...)
		content, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	vectors := writeFile(t, "vectors.txt", manyVectors(500))
	fromIndex := []string{"--from-index", e.url, "--index", relatedIndex, "--field", "body", "--min-df", "1"}
	for _, args := range [][]string{{"--from-vectors", vectors}, fromIndex} {
		if first, second := build(args...), build(args...); first != second {
			t.Errorf("matrix build %s gives different files", strings.Join(args, " "))
		}
	}
}
