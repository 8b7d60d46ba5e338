package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
)

// fleet returns a small matrix with one-way pairs, an odd term, and two
// origins.
func fleet(t *testing.T) *simmatrix.Matrix {
	t.Helper()
	n := func(term string, similarity float32, origins uint8) simmatrix.Neighbor {
		return simmatrix.Neighbor{Term: term, Similarity: similarity, Origins: origins}
	}
	m, err := simmatrix.New(simmatrix.Meta{
		Source: "a small fleet", Docs: 100, Origins: []string{"vectors", "overrides"},
		Params: map[string]string{"power": "3", "neighbors": "4"},
	}, []simmatrix.TermRow{
		{Term: "bus", DocFreq: 12, Neighbors: []simmatrix.Neighbor{n("car", 0.25, 1), n("tram\t7", 0.75, 3)}},
		{Term: "car", DocFreq: 40, Neighbors: []simmatrix.Neighbor{n("bus", 0.25, 1), n("lorry", 0.8, 2)}},
		{Term: "lorry", DocFreq: 9, Neighbors: []simmatrix.Neighbor{n("car", 0.6, 1)}},
		{Term: "tram\t7", DocFreq: 3},
		{Term: "van"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// encodedFile writes a matrix to a file of that name in a new folder, makes the
// folder the current one and returns the name.
func encodedFile(t *testing.T, name string, m *simmatrix.Matrix) string {
	t.Helper()
	t.Chdir(t.TempDir())
	addEncodedFile(t, name, m)
	return name
}

func addEncodedFile(t *testing.T, name string, m *simmatrix.Matrix) {
	t.Helper()
	if err := cli.Write(t.Context(), name, func(w io.Writer) error { return simmatrix.Encode(w, m) }); err != nil {
		t.Fatal(err)
	}
}

func TestMatrixIsAFileOrAVersionInRedis(t *testing.T) {
	t.Setenv("AKIN_REDIS_URL", "")
	m := fleet(t)
	file := encodedFile(t, "docs@active", m) // goes before Redis
	var flags cli.Redis
	got, err := flags.Matrix(t.Context(), io.Discard, file)
	if err != nil || got.Checksum() != m.Checksum() {
		t.Errorf("a file named like a version: %v", err)
	}
	if _, err := flags.Matrix(t.Context(), io.Discard, "docs@7"); err == nil || !errors.As(err, new(cli.UsageError)) ||
		!strings.Contains(err.Error(), "docs@7 is no file") || !strings.Contains(err.Error(), "--redis") {
		t.Errorf("no file and no Redis: %v", err)
	}
	for _, ref := range []string{"docs.akin", "folder/docs@7", "@7", "docs@", "a@b@c"} {
		if _, err := flags.Matrix(t.Context(), io.Discard, ref); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "NAME@VERSION") {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if err := os.WriteFile("bad@1", []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := flags.Matrix(t.Context(), io.Discard, "bad@1"); !errors.Is(err, simmatrix.ErrFormat) {
		t.Errorf("a damaged file named like a version: %v", err)
	}
}

// TestMatrixCommandsReadVersionsInRedis pushes two versions to a real Redis
// and looks at them.
func TestMatrixCommandsReadVersionsInRedis(t *testing.T) {
	url := redisServer(t)
	t.Setenv("AKIN_REDIS_URL", url)
	m := fleet(t)
	file := encodedFile(t, "docs.akin", m)
	version, stderr, status := akin(t, "matrix", "push", "--name", "docs", "--activate", file)
	if status != 0 {
		t.Fatalf("push: status %d\n%s", status, stderr)
	}
	version = strings.TrimSpace(version)
	for _, ref := range []string{"docs@active", "docs@" + version} {
		out, stderr, status := akin(t, "matrix", "check", ref)
		if status != 0 || !strings.Contains(out, m.Checksum()) || !strings.Contains(stderr, "pull: 5 of 5") {
			t.Errorf("check %s: status %d\n%s%s", ref, status, out, stderr)
		}
	}
	out, stderr, status := akin(t, "matrix", "diff", "--redis", url, file, "docs@active")
	if status != 0 || !strings.Contains(out, "rows changed  0 of 5") {
		t.Errorf("diff: status %d\n%s%s", status, out, stderr)
	}
	_, stderr, status = akin(t, "matrix", "check", "docs@nosuchversion")
	if status != exitFailure || !strings.Contains(stderr, "nosuchversion") || !strings.Contains(stderr, "akin matrix list --name docs") {
		t.Errorf("unknown version: status %d\n%s", status, stderr)
	}
	_, stderr, status = akin(t, "matrix", "check", "others@active")
	if status != exitFailure || !strings.Contains(stderr, "akin matrix list --name others") {
		t.Errorf("no active version: status %d\n%s", status, stderr)
	}
	_, stderr, status = akin(t, "matrix", "check", "--redis", "redis://127.0.0.1:1", "docs@active")
	if status != exitFailure || !strings.Contains(stderr, "docs@active in Redis: ") || strings.Contains(stderr, "no file") {
		t.Errorf("no Redis there: status %d\n%s", status, stderr)
	}
}

// redisServer starts a redis-server that ends with the test and returns its
// URL.
func redisServer(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: needs redis-server")
	}
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		const hint = "no redis-server in PATH: install it (apt-get install redis-server, brew install redis)"
		if os.Getenv("AKIN_TEST") == "all" {
			t.Fatal(hint)
		}
		t.Skip(hint)
	}
	dir, err := os.MkdirTemp("", "akin") //nolint:usetesting // a socket's name has at most 107 bytes, which t.TempDir can exceed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	server := exec.CommandContext(ctx, binary, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--daemonize", "no")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		server.Wait()
	})
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if conn, err := net.Dial("unix", socket); err == nil {
			conn.Close()
			return "unix://" + socket
		}
	}
	t.Fatal("redis-server does not listen")
	return ""
}
