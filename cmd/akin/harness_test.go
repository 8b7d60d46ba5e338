package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/demo"
	"github.com/akin-search/akin/simmatrix"
)

// akin runs one command line and returns what it printed and its status.
func akin(tb testing.TB, args ...string) (stdout, stderr string, status int) {
	tb.Helper()
	var out, errs bytes.Buffer
	status = run(args, &out, &errs)
	return out.String(), errs.String(), status
}

// mustAkin runs a command line that has to succeed and returns its standard
// output without the last line break.
func mustAkin(tb testing.TB, args ...string) string {
	tb.Helper()
	out, stderr, status := akin(tb, args...)
	check.Must(tb, status == 0, "akin %s: status %d\n%s", strings.Join(args, " "), status, stderr)
	return strings.TrimSuffix(out, "\n")
}

// ends runs a command line that has to end with the status and to print each of
// the texts, and returns what it printed.
func ends(tb testing.TB, want int, args []string, texts ...string) string {
	tb.Helper()
	stdout, stderr, status := akin(tb, args...)
	check.That(tb, status == want, "akin %s: status %d, want %d\n%s%s", strings.Join(args, " "), status, want, stdout, stderr)
	contains(tb, strings.Join(args, " "), stdout+stderr, texts...)
	return stdout + stderr
}

// contains looks for texts in another.
func contains(tb testing.TB, what, text string, wants ...string) {
	tb.Helper()
	for _, want := range wants {
		check.That(tb, strings.Contains(text, want), "%s: %q is not in\n%s", what, want, text)
	}
}

// write writes a file in a folder of its own.
func write(tb testing.TB, name, content string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	check.OK(tb, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func read(tb testing.TB, name string) string {
	tb.Helper()
	content, err := os.ReadFile(name)
	check.OK(tb, err)
	return string(content)
}

// isThere says whether there is a file.
func isThere(path string) bool { _, err := os.Stat(path); return err == nil }

// poll calls ready until it returns true, which has to be within a minute.
func poll(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ready(); {
		if time.Now().After(deadline) {
			t.Fatal("not within a minute: " + what)
		}
		time.Sleep(5 * time.Millisecond) // What is polled has no event.
	}
}

// A lockedBuffer may be written and read at the same time.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// demoEngine returns the address of an embedded engine with the demo corpus in it.
// All tests share it, so none of them writes into it.
func demoEngine(t *testing.T) string {
	t.Helper()
	address, err := sharedEngine()
	check.OK(t, err)
	return address
}

// sharedEngine serves until the tests have ended.
var sharedEngine = sync.OnceValues(func() (string, error) {
	server := httptest.NewServer(demo.NewEngine())
	client, err := esclient.New(esclient.Options{URL: server.URL})
	if err != nil {
		return "", err
	}
	defer client.Close()
	return server.URL, loadDemo(context.Background(), client, io.Discard)
})

// demoMatrix returns a file with the matrix that is learned from the titles and
// bodies of the demo corpus. It is learned once for all tests.
func demoMatrix(t *testing.T) string {
	t.Helper()
	content, err := sharedMatrix()
	check.OK(t, err)
	return write(t, "demo.akin", string(content))
}

// sharedMatrix returns the bytes of that file.
var sharedMatrix = sync.OnceValues(func() ([]byte, error) {
	engine, err := sharedEngine()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "akin-demo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "demo.akin")
	var errs bytes.Buffer
	if run([]string{"matrix", "build", "--cluster", engine, "--index", demoIndices, "--field", "title,body", "--out", out}, io.Discard, &errs) != 0 {
		return nil, errors.New(errs.String())
	}
	return os.ReadFile(out)
})

// newIndex returns the address of an embedded engine that has an index with
// documents, and a client of it.
func newIndex(tb testing.TB, index, mapping string, docs []documents.Document) string {
	tb.Helper()
	server := httptest.NewServer(demo.NewEngine())
	tb.Cleanup(server.Close)
	client, err := esclient.New(esclient.Options{URL: server.URL})
	check.OK(tb, err)
	tb.Cleanup(client.Close)
	_, err = documents.API{Client: client}.CreateIndex(tb.Context(), index, []byte(mapping))
	check.OK(tb, err)
	check.OK(tb, documents.API{Client: client}.Index(tb.Context(), index, docs))
	return server.URL
}

// relayTo returns the URL of a relay to a cluster. What before answers is not
// relayed.
func relayTo(t *testing.T, cluster string, before func(w http.ResponseWriter, r *http.Request) (answered bool)) string {
	t.Helper()
	target, err := url.Parse(cluster)
	check.OK(t, err)
	relay := httputil.NewSingleHostReverseProxy(target)
	return answering(t, func(w http.ResponseWriter, r *http.Request) {
		if before(w, r) {
			return
		}
		// The server must not close the body under the transport, which would break
		// the answer now and then: akin would ask once more.
		_ = http.NewResponseController(w).EnableFullDuplex()
		relay.ServeHTTP(w, r)
	})
}

// answering returns the URL of a server.
func answering(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.URL
}

// redisServer starts a redis-server that ends with the test and returns its
// URL.
func redisServer(t *testing.T) string {
	t.Helper()
	binary := check.RedisServer(t)
	dir, err := os.MkdirTemp("", "akin") //nolint:usetesting // a socket's name has at most 107 bytes, which t.TempDir can exceed
	check.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	server := exec.CommandContext(ctx, binary, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--daemonize", "no")
	check.OK(t, server.Start())
	t.Cleanup(func() {
		stop()
		server.Wait()
	})
	poll(t, "redis-server listens", func() bool {
		conn, err := net.Dial("unix", socket)
		return err == nil && conn.Close() == nil
	})
	return "unix://" + socket
}

// freePorts begins the configurations of tests.
const freePorts = "listen: {address: '127.0.0.1:0'}\nadmin: {address: '127.0.0.1:0'}\nshutdown: {delay: 0s}\n"

// A served is a running "akin serve" with its configuration file.
type served struct {
	config, proxy, admin string

	log *lockedBuffer
}

// startServe runs "akin serve" until the test ends. The configuration gets free
// ports unless it has its own.
func startServe(t *testing.T, config string) *served {
	t.Helper()
	if !strings.Contains(config, "listen:") {
		config = freePorts + config
	}
	s := &served{config: write(t, "akin.yml", config), log: &lockedBuffer{}}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	root := newRoot()
	root.SetArgs([]string{"serve", "--config", s.config})
	root.SetErr(s.log)
	go func() { done <- root.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v\n%s", err, s.log.String())
		}
	})
	poll(t, "akin listens", func() bool {
		for line := range strings.Lines(s.log.String()) {
			var record struct{ Msg, Proxy, Admin string }
			if json.Unmarshal([]byte(line), &record) == nil && record.Msg == "listening" {
				s.proxy, s.admin = "http://"+record.Proxy, "http://"+record.Admin
			}
		}
		return s.proxy != ""
	})
	return s
}

// serveDemo serves the demo corpus with its matrix; more is of the configuration.
func serveDemo(t *testing.T, more string) *served {
	t.Helper()
	return startServe(t, "cluster: {urls: ['"+demoEngine(t)+"']}\nmatrices: [{name: demo, file: '"+demoMatrix(t)+"'}]\n"+more)
}

func (s *served) metrics(t *testing.T) string {
	t.Helper()
	_, body := get(t, s.admin+"/metrics")
	return body
}

func get(t *testing.T, address string) (status int, body string) {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(data)
}

func post(t *testing.T, address, body string, answer any) {
	t.Helper()
	resp, err := http.Post(address, "application/json", strings.NewReader(body))
	check.OK(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s: status %d: %s", address, resp.StatusCode, data)
	}
	check.OK(t, json.NewDecoder(resp.Body).Decode(answer))
}

// searched is the answer to a search.
type searched struct {
	Hits struct {
		Total struct{ Value int }
		Hits  []struct {
			ID     string  `json:"_id"`
			Score  float64 `json:"_score"`
			Source struct {
				Title string
			} `json:"_source"`
		}
	}
}

func find(t *testing.T, address, body string) (answer searched) {
	t.Helper()
	post(t, address, body, &answer)
	return answer
}

func total(t *testing.T, address, body string) int {
	t.Helper()
	return find(t, address, body).Hits.Total.Value
}

// matrixOf makes a matrix of rows.
func matrixOf(t *testing.T, meta simmatrix.Meta, rows ...simmatrix.TermRow) *simmatrix.Matrix {
	t.Helper()
	m, err := simmatrix.New(meta, rows)
	check.OK(t, err)
	return m
}

// matrixFile writes a matrix of rows and returns the path.
func matrixFile(t *testing.T, meta simmatrix.Meta, rows ...simmatrix.TermRow) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.akin")
	check.OK(t, cli.WriteMatrix(t.Context(), path, matrixOf(t, meta, rows...)))
	return path
}

// encodedFile writes a matrix to a file of that name in a new folder, makes the
// folder the current one and returns the name.
func encodedFile(t *testing.T, name string, m *simmatrix.Matrix) string {
	t.Helper()
	t.Chdir(t.TempDir())
	check.OK(t, cli.WriteMatrix(t.Context(), name, m))
	return name
}

// built runs "matrix build" and returns the matrix and what it printed.
func built(t *testing.T, args ...string) (*simmatrix.Matrix, string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "built.akin")
	said := ends(t, 0, append([]string{"matrix", "build", "--out", out}, args...))
	m, err := cli.ReadMatrix(t.Context(), out)
	check.OK(t, err)
	return m, said
}

// fromDemo are the flags of a matrix that is learned from the demo corpus.
func fromDemo(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{"--cluster", demoEngine(t), "--index", demoIndices, "--field", "title,body"}, more...)
}

// pairsFile builds a matrix of pairs, one a line, in a file of that name.
func pairsFile(t *testing.T, name, pairs string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	mustAkin(t, "matrix", "build", "--from-tsv", write(t, "pairs.tsv", pairs), "--out", out)
	return out
}

// rowOf returns the neighbors of a term, best first.
func rowOf(m *simmatrix.Matrix, term string) []string {
	var terms []string
	for n := range m.Row(term).All() {
		terms = append(terms, n.Term)
	}
	return terms
}

// fleet returns a small matrix with one-way pairs, an odd term, and two
// origins.
func fleet(t *testing.T) *simmatrix.Matrix {
	t.Helper()
	n := func(term string, similarity float32, origins uint8) simmatrix.Neighbor {
		return simmatrix.Neighbor{Term: term, Similarity: similarity, Origins: origins}
	}
	return matrixOf(t, simmatrix.Meta{
		Source: "a small fleet", Docs: 100, Origins: []string{"vectors", "overrides"},
		Params: map[string]string{"power": "3", "neighbors": "4"},
	},
		simmatrix.TermRow{Term: "bus", DocFreq: 12, Neighbors: []simmatrix.Neighbor{n("car", 0.25, 1), n("tram\t7", 0.75, 3)}},
		simmatrix.TermRow{Term: "car", DocFreq: 40, Neighbors: []simmatrix.Neighbor{n("bus", 0.25, 1), n("lorry", 0.8, 2)}},
		simmatrix.TermRow{Term: "lorry", DocFreq: 9, Neighbors: []simmatrix.Neighbor{n("car", 0.6, 1)}},
		simmatrix.TermRow{Term: "tram\t7", DocFreq: 3},
		simmatrix.TermRow{Term: "van"},
	)
}
