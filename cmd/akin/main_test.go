package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/akin-search/akin/esclient"
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

// demoEngine returns the address of an embedded engine with the demo corpus in it.
// All tests share it, so none of them writes into it.
func demoEngine(t *testing.T) string {
	t.Helper()
	url, err := sharedEngine()
	if err != nil {
		t.Fatal(err)
	}
	return url
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
	if err != nil {
		t.Fatal(err)
	}
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
	if run([]string{"matrix", "build", "--from-index", engine, "--index", demoIndices, "--field", "title,body", "--out", out}, io.Discard, &errs) != 0 {
		return nil, errors.New(errs.String())
	}
	return os.ReadFile(out)
})

func write(tb testing.TB, name, content string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
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

func TestEveryCommandShowsAnExample(t *testing.T) {
	check := func(path []string) {
		out, _, status := akin(t, append(path, "--help")...)
		if status != 0 || !strings.Contains(out, "Examples:") {
			t.Errorf("akin %s --help: status %d, no example in\n%s", strings.Join(path, " "), status, out)
		}
	}
	for _, path := range [][]string{
		{},
		{"serve"},
		{"demo"},
		{"demo", "load"},
		{"matrix"},
		{"matrix", "build"},
		{"matrix", "push"},
		{"matrix", "list"},
		{"matrix", "activate"},
		{"matrix", "rollback"},
		{"matrix", "prune"},
		{"matrix", "show"},
		{"matrix", "check"},
		{"matrix", "diff"},
		{"matrix", "export"},
	} {
		check(path)
	}
}

func TestVersionTellsWhatWasBuilt(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.3"}}
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123abc"}, {Key: "vcs.modified", Value: "true"}}
	for want, info := range map[string]*debug.BuildInfo{
		"v1.2.3, go1.26.0": info,
		"v1.2.3, commit 0123abc with changes, go1.26.0": {GoVersion: info.GoVersion, Main: info.Main, Settings: vcs},
		"(devel), commit 0123abc":                       {Settings: vcs[:1]},
		"(devel)":                                       {},
	} {
		if got := describeBuild(info, "", "").String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := describeBuild(info, "v2.0.0", "feed").String(); got != "v2.0.0, commit feed, go1.26.0" {
		t.Errorf("what the linker set does not go first: %q", got)
	}
	if out, _, status := akin(t, "--version"); status != 0 || out != "akin "+thisBuild().String()+"\n" {
		t.Errorf("status %d: %q", status, out)
	}
}

// Each command that is not hidden has a page, of which packages install all.
func TestEveryCommandHasAManualPage(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "man1")
	if _, stderr, status := akin(t, "man", folder); status != 0 {
		t.Fatal(stderr)
	}
	for _, name := range []string{"akin", "akin-serve", "akin-matrix-build", "akin-eval"} {
		if page, err := os.ReadFile(filepath.Join(folder, name+".1")); err != nil || !bytes.Contains(page, []byte(".SH EXAMPLE")) {
			t.Errorf("%s: %v, %d bytes", name, err, len(page))
		}
	}
}

func TestCommandsThatAreNearlyRightAreSuggested(t *testing.T) {
	for line, want := range map[string]string{"evla": "did you mean eval?", "matrix biuld": "did you mean build?", "frobnicate": `no command "frobnicate"; see akin --help`} {
		if _, stderr, status := akin(t, strings.Fields(line)...); status != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d: %s, want %s", line, status, stderr, want)
		}
	}
}

func TestMistakesOfTheUserExitWithStatus2(t *testing.T) {
	bad := write(t, "bad.yml", "listen: {address: nowhere}\nfrob: 1\nexpansion: {max_added_terms: 900}\n")
	for name, tt := range map[string]struct {
		args []string
		want []string
	}{
		"unknown command":   {[]string{"frob"}, []string{`"frob"`, "--help"}},
		"unknown matrix":    {[]string{"matrix", "frob"}, []string{`"frob"`}},
		"man, no folder":    {[]string{"man"}, []string{"1 arg"}},
		"needless argument": {[]string{"serve", "--config", bad, "frob"}, []string{`"frob"`}},
		"no configuration":  {[]string{"serve"}, []string{"config"}},
		"unknown flag":      {[]string{"serve", "--frob"}, []string{"--frob"}},
		"bad configuration": {[]string{"serve", "--config", bad}, []string{"bad.yml:1:", "bad.yml:2:", "bad.yml:3:"}},
		"no source":         {[]string{"matrix", "build", "--out", "x"}, []string{"--from-index"}},
		"no index":          {[]string{"matrix", "build", "--from-index", "http://127.0.0.1:1", "--out", "x"}, []string{"--index"}},
		"argument to none":  {[]string{"demo", "extra"}, []string{`"extra"`, "akin demo --help"}},
		"no folder":         {[]string{"matrix", "build", "--from-vectors", bad, "--out", "/no/such/folder/x"}, []string{"/no/such/folder"}},
		"a device":          {[]string{"matrix", "build", "--from-vectors", bad, "--out", "/dev/null"}, []string{"regular file"}},
		"numbers":           {[]string{"matrix", "build", "--from-vectors", bad, "--out", "x", "--top", "0", "--recall", "2"}, []string{"--top: 0", "recall"}},
		"misplaced flags":   {[]string{"matrix", "build", "--from-vectors", bad, "--out", "x", "--max-docs", "5"}, []string{"--max-docs"}},
		"no term":           {[]string{"matrix", "show", "x"}, []string{"word"}},
		"no version":        {[]string{"matrix", "activate"}, []string{"arg"}},
		"no redis":          {[]string{"matrix", "list"}, []string{"--redis"}},
		"bad redis":         {[]string{"matrix", "list", "--redis", "http://x"}, []string{"redis"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AKIN_REDIS_URL", "")
			_, stderr, status := akin(t, tt.args...)
			if status != exitUsage {
				t.Errorf("status %d, want %d", status, exitUsage)
			}
			for _, want := range tt.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q is not in\n%s", want, stderr)
				}
			}
		})
	}
}

func TestMatrixLearnedFromAnIndexExpandsSearches(t *testing.T) {
	engine := demoEngine(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "demo.akin")
	_, stderr, status := akin(t, "matrix", "build", "--from-index", engine, "--index", demoIndices, "--field", "title,body", "--out", file)
	if status != 0 {
		t.Fatalf("build: status %d\n%s", status, stderr)
	}
	if !strings.Contains(stderr, "reading documents: 645 of 645") {
		t.Errorf("no plain line of progress in\n%s", stderr)
	}
	stdout, stderr, status := akin(t, "matrix", "show", file, "--top", "3", "sofa", "nosuchterm")
	if status != 0 || strings.Count(stdout, "df ") != 4 || !strings.Contains(stdout, "nosuchterm  not in") {
		t.Errorf("show: status %d\n%s%s", status, stdout, stderr)
	}
	config := write(t, "akin.yml", `
listen: {address: "127.0.0.1:0"}
admin: {address: "127.0.0.1:0"}
cluster: {urls: ["`+engine+`"]}
expansion: {budget: 5s}
matrices: [{name: demo, file: "`+file+`"}]
`)
	proxy, admin := serveConfig(t, config)
	body := `{"query":{"match":{"body":"comfortable couch"}}}`
	plain, expanded := total(t, engine+"/catalogue/_search", body), total(t, proxy+"/catalogue/_search", body)
	if expanded <= plain {
		t.Errorf("%d hits with akin, %d without", expanded, plain)
	}
	var answer struct {
		Rewritten bool            `json:"rewritten"`
		Body      json.RawMessage `json:"body"`
	}
	post(t, admin+"/_akin/expand/catalogue", body, &answer)
	if !answer.Rewritten || !strings.Contains(string(answer.Body), `"sofa"`) {
		t.Errorf("expand: %+v", answer)
	}
	resp, err := http.Get(admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics, _ := io.ReadAll(resp.Body)
	for _, want := range []string{`akin_matrix_source_healthy{matrix="demo"} 1`, `akin_cache_bytes{cache="rows"}`, `akin_cache_hits_total{cache="analysis"}`} {
		if !strings.Contains(string(metrics), want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
}

// withoutDelay has the file say, unless it does already, that no load balancer
// has to notice the end.
func withoutDelay(t *testing.T, config string) {
	t.Helper()
	content, err := os.ReadFile(config)
	if err == nil && !strings.Contains(string(content), "\nshutdown:") {
		err = os.WriteFile(config, append(content, "\nshutdown: {delay: 0s}\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// serveConfig runs "akin serve" until the test ends and returns the addresses.
func serveConfig(t *testing.T, config string) (proxy, admin string) {
	t.Helper()
	return serveLogging(t, config, &lockedBuffer{})
}

// serveLogging is serveConfig with the log in a buffer that the test can read.
func serveLogging(t *testing.T, config string, log *lockedBuffer) (proxy, admin string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	withoutDelay(t, config)
	root := newRoot()
	root.SetArgs([]string{"serve", "--config", config})
	root.SetErr(log)
	go func() { done <- root.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v\n%s", err, log.String())
		}
	})
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		for line := range strings.Lines(log.String()) {
			var record struct{ Msg, Proxy, Admin string }
			if json.Unmarshal([]byte(line), &record) == nil && record.Msg == "listening" {
				return "http://" + record.Proxy, "http://" + record.Admin
			}
		}
	}
	t.Fatalf("serve does not listen:\n%s", log.String())
	return "", ""
}

func post(t *testing.T, url, body string, answer any) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s: status %d: %s", url, resp.StatusCode, data)
	}
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
		t.Fatal(err)
	}
}

func total(t *testing.T, url, body string) int {
	t.Helper()
	var answer struct {
		Hits struct{ Total struct{ Value int } }
	}
	post(t, url, body, &answer)
	return answer.Hits.Total.Value
}

func TestWordVectorsBecomeIndexTerms(t *testing.T) {
	engine := demoEngine(t)
	vectors := write(t, "v.txt", "sofas 1 0.1\ncouches 1 0.2\nthe 0.9 0.2\nzeppelins 1 0.3\ncar-hire 0 1\n")
	file := filepath.Join(t.TempDir(), "v.akin")
	_, stderr, status := akin(t, "matrix", "build", "--from-vectors", vectors, "--cluster", engine, "--index", "catalogue", "--field", "body", "--out", file)
	if status != 0 || !strings.Contains(stderr, "5 words: 3 became terms of their own, 0 fell on the term of another, 1 are several terms, 1 none; 1 terms are in no document") {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	m, err := cli.ReadMatrix(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	row := m.Row("sofa")
	for n := range row.All() {
		if n.Term != "couch" || n.DocFreq == 0 || row.Len() != 1 {
			t.Errorf("neighbor of sofa: %+v", n)
		}
	}
	if row.DocFreq() == 0 {
		t.Error("sofa has no document frequency")
	}
}

func TestBadVectorsFilesLeaveNothingBehind(t *testing.T) {
	for name, tt := range map[string]struct{ content, want string }{
		"short row":       {"car 1 2 3\nrental 1 2\n", "line 2"},
		"not a number":    {"car 1 2\nrental 1 NaN\n", "line 2"},
		"hexadecimal":     {"car 1 2\nrental 1 3\nbus 1 0x2\n", "line 3"},
		"wrong dimension": {"2 3\ncar 1 2\nrental 1 2\n", "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			vectors := write(t, "v.txt", tt.content)
			dir := t.TempDir()
			_, stderr, status := akin(t, "matrix", "build", "--from-vectors", vectors, "--out", filepath.Join(dir, "out.akin"))
			if status != exitFailure || !strings.Contains(stderr, tt.want) {
				t.Errorf("status %d, want %d and %q in\n%s", status, exitFailure, tt.want, stderr)
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 0 {
				t.Errorf("left behind: %v", entries)
			}
		})
	}
}

func TestFilesAreWrittenWholeOrNotAtAll(t *testing.T) {
	path := write(t, "m.akin", "old")
	failing := func(w io.Writer) error {
		_, _ = w.Write([]byte("half"))
		return errors.New("boom")
	}
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	for name, err := range map[string]error{
		"failed":      cli.Write(t.Context(), path, failing),
		"interrupted": cli.Write(interrupted, path, func(io.Writer) error { return nil }),
	} {
		data, _ := os.ReadFile(path)
		entries, _ := os.ReadDir(filepath.Dir(path))
		if err == nil || string(data) != "old" || len(entries) != 1 {
			t.Errorf("%s: error %v, content %q, files %v", name, err, data, entries)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	err := cli.Write(t.Context(), link, func(w io.Writer) error { _, err := w.Write([]byte("new")); return err })
	if data, _ := os.ReadFile(path); err != nil || string(data) != "new" {
		t.Errorf("through a link: error %v, content %q", err, data)
	}
}

func TestMatrixFileIsReadAgainWhenItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.akin")
	load := cli.Follow(path)
	if _, _, err := load(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	put := func(terms ...string) {
		rows := make([]simmatrix.TermRow, len(terms))
		for i, term := range terms {
			rows[i] = simmatrix.TermRow{Term: term, Neighbors: []simmatrix.Neighbor{{Term: terms[(i+1)%len(terms)], Similarity: 0.5}}}
		}
		m, err := simmatrix.New(simmatrix.Meta{Source: "test"}, rows)
		if err != nil {
			t.Fatal(err)
		}
		if err := cli.Write(t.Context(), path, func(w io.Writer) error { return simmatrix.Encode(w, m) }); err != nil {
			t.Fatal(err)
		}
	}
	put("a", "b")
	if m, written, err := load(t.Context()); err != nil || written.IsZero() || m.Len() != 2 {
		t.Errorf("first: written %v, %v", written, err)
	}
	if _, written, err := load(t.Context()); err != nil || !written.IsZero() {
		t.Errorf("unchanged: written %v, %v", written, err)
	}
	put("a", "b", "c")
	if m, written, err := load(t.Context()); err != nil || written.IsZero() || m.Len() != 3 {
		t.Errorf("second: written %v, %v", written, err)
	}
	if err := os.WriteFile(path, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the error stays for as long as the file is bad
		if _, written, err := load(t.Context()); err == nil || !written.IsZero() {
			t.Errorf("bad file: written %v, %v", written, err)
		}
	}
	put("a", "b")
	ended, end := context.WithCancel(t.Context())
	end()
	if _, written, err := load(ended); !errors.Is(err, context.Canceled) || !written.IsZero() {
		t.Errorf("interrupted: written %v, %v", written, err)
	}
	if m, written, err := load(t.Context()); err != nil || written.IsZero() || m.Len() != 2 {
		t.Errorf("after an interruption: written %v, %v", written, err)
	}
}
