package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// akinBinary builds the binary once and returns its path.
var akinBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(runDir, "akin")
	args := []string{"build", "-tags=nomsgpack", "-o", path} // as the Makefile has it
	env := append(os.Environ(), "CGO_ENABLED=0")             // as the image has it
	if os.Getenv("AKIN_E2E_RACE") == "1" {
		args = append(args, "-race")
		env = append(env, "CGO_ENABLED=1")
	}
	cmd := exec.Command("go", append(args, "./cmd/akin")...)
	cmd.Dir, cmd.Env = repository, env
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/akin: %w\n%s", err, output)
	}
	return path, nil
})

func akinPath(tb testing.TB) string {
	tb.Helper()
	path, err := akinBinary()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// A section is a part of akin's configuration. JSON is YAML, so that it is
// written as JSON.
type section = map[string]any

// An akin is a running `akin serve`.
type akin struct {
	cluster // the proxy

	admin  cluster
	proc   *process
	config string // file
}

// setup starts akin before e with what every test wants laid under config: the
// address of e, free ports, and time enough for a busy machine. Where config
// names no matrices akin has the matrix A of the fixture, whose index is made on
// e. It returns when akin is ready and serves all that the configuration names,
// and ends akin with the test. Variables of the environment are NAME=VALUE.
func setup(tb testing.TB, e *engine, config section, env ...string) *akin {
	tb.Helper()
	full := section{
		"listen": section{"address": "127.0.0.1:0"}, "admin": section{"address": "127.0.0.1:0"},
		"shutdown": section{"delay": "0s"}, // no balancer is there to notice
		"cluster":  section{"urls": []string{e.url}},
	}
	if config["matrices"] == nil {
		makeRelated(tb, e)
		full["matrices"] = matrices("main", relatedFile(tb, vectorsA))
	}
	maps.Copy(full, config)
	expansion := section{
		"budget": widePatience,
		// In the mode auto the order depends on when hits are remembered.
		"mode": "bm25", "rerank_warm_up": false,
	}
	if more, ok := config["expansion"].(section); ok {
		maps.Copy(expansion, more)
	}
	full["expansion"] = expansion
	a := launch(tb, writeFile(tb, "akin.yaml", toJSON(tb, full)), env...)
	a.awaitReady(tb)
	for kind, metric := range map[string]string{"matrices": "akin_matrix_info", "weights": "akin_weights_info"} {
		named, _ := full[kind].([]section)
		for _, m := range named {
			a.awaitMetric(tb, 1, metric, fmt.Sprintf("=%q", m["name"]))
		}
	}
	return a
}

// setupWide is setup with matching: widen, for tests of what related words find
// and of how that ranks.
func setupWide(tb testing.TB, e *engine, config section, env ...string) *akin {
	tb.Helper()
	wide, expansion := section{}, section{"matching": "widen"}
	maps.Copy(wide, config)
	if more, ok := config["expansion"].(section); ok {
		maps.Copy(expansion, more)
	}
	wide["expansion"] = expansion
	return setup(tb, e, wide, env...)
}

// widePatience is a budget that a busy machine does not exceed.
const widePatience = "10s"

// matrices are those of files, each behind its name.
func matrices(namesAndFiles ...string) []section {
	var all []section
	for pair := range slices.Chunk(namesAndFiles, 2) {
		all = append(all, section{"name": pair[0], "file": pair[1]})
	}
	return all
}

// awaitReady waits until akin says that it is ready.
func (a *akin) awaitReady(tb testing.TB) {
	tb.Helper()
	waitFor(tb, 20*time.Second, "/readyz", func() error {
		if a.proc.ended() {
			tb.Fatalf("akin ended:\n%s", a.proc.tail())
		}
		status, answer, err := a.admin.call(tb.Context(), http.MethodGet, "/readyz", "")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d: %s", status, answer)
		}
		return err
	})
}

// launch starts akin with a configuration file, and does not wait until it is
// ready.
func launch(tb testing.TB, path string, env ...string) *akin {
	tb.Helper()
	cmd := exec.Command(akinPath(tb), "serve", "--config", path)
	cmd.Env = append(cleanEnvironment(), env...)
	proc, err := startProcess("akin", newDir(tb, "akin"), cmd)
	if err != nil {
		tb.Fatal(err)
	}
	a := &akin{proc: proc, config: path}
	tb.Cleanup(func() {
		if err := proc.stop(); err != nil {
			tb.Errorf("akin does not end on SIGTERM: %v", err)
		} else if code := proc.cmd.ProcessState.ExitCode(); code != 0 {
			tb.Errorf("akin exits with %d after SIGTERM", code)
		}
		if tb.Failed() {
			tb.Log(proc.tail())
		}
	})
	a.awaitListening(tb)
	return a
}

// awaitListening learns the two addresses from the log.
func (a *akin) awaitListening(tb testing.TB) {
	tb.Helper()
	waitFor(tb, 20*time.Second, "akin's listening line", func() error {
		for _, line := range a.logLines(tb) {
			if line["msg"] == "listening" {
				proxy, admin := fmt.Sprint(line["proxy"]), fmt.Sprint(line["admin"])
				a.url, a.admin.url = "http://"+proxy, "http://"+admin
				return nil
			}
		}
		if a.proc.ended() {
			tb.Fatalf("akin ended:\n%s", a.proc.tail())
		}
		return errors.New("not logged")
	})
}

// cleanEnvironment is the environment without what would configure akin.
func cleanEnvironment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AKIN_") {
			env = append(env, v)
		}
	}
	return env
}

// logLines returns what akin has logged, every line decoded.
func (a *akin) logLines(tb testing.TB) []map[string]any {
	tb.Helper()
	content, err := os.ReadFile(a.proc.stderr)
	if err != nil {
		tb.Fatal(err)
	}
	var lines []map[string]any
	scanner := bufio.NewScanner(bytes.NewReader(content))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var line map[string]any
		if json.Unmarshal(scanner.Bytes(), &line) == nil {
			lines = append(lines, line)
		}
	}
	return lines
}

// logged reports whether akin has logged a message.
func (a *akin) logged(tb testing.TB, message string) bool {
	tb.Helper()
	return slices.ContainsFunc(a.logLines(tb), func(line map[string]any) bool { return line["msg"] == message })
}

// awaitMetric waits until a metric has a value.
func (a *akin) awaitMetric(tb testing.TB, want float64, name string, labels ...string) {
	tb.Helper()
	waitFor(tb, 30*time.Second, name, func() error {
		if got := a.metric(tb, name, labels...); got != want {
			return fmt.Errorf("%v is %v, want %v", labels, got, want)
		}
		return nil
	})
}

// metric returns the sum of the values of the metric's series whose labels,
// as /metrics prints them, contain every one of the given strings.
func (a *akin) metric(tb testing.TB, name string, labels ...string) float64 {
	tb.Helper()
	answer := a.admin.must(tb, http.MethodGet, "/metrics", "")
	sum := 0.0
	for line := range strings.SplitSeq(string(answer), "\n") {
		space := max(0, strings.LastIndexByte(line, ' ')) // labels may have spaces
		series, seriesLabels, _ := strings.Cut(line[:space], "{")
		if series != name || !containsAll(seriesLabels, labels) {
			continue
		}
		v, err := strconv.ParseFloat(line[space+1:], 64)
		if err != nil {
			tb.Fatalf("/metrics: %q: %v", line, err)
		}
		sum += v
	}
	return sum
}

func containsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// counted returns by how much f raises a metric.
func (a *akin) counted(tb testing.TB, f func(), name string, labels ...string) float64 {
	tb.Helper()
	before := a.metric(tb, name, labels...)
	f()
	return a.metric(tb, name, labels...) - before
}

// rewrites returns how many requests f has akin rewrite.
func (a *akin) rewrites(tb testing.TB, f func()) int {
	tb.Helper()
	return int(a.counted(tb, f, requestsMetric, rewrittenOutcome))
}

// The metrics that tests read most, and their labels.
const (
	requestsMetric   = "akin_requests_total"
	rewrittenOutcome = `outcome="rewritten"`
	rerankedMetric   = "akin_reranked_total"
	rerankedResult   = `result="reranked"`
	feedbackMetric   = "akin_feedback_total"
	// Rewritten searches that the engine refused, and of which it then took the
	// original.
	refusedMetric = "akin_rejected_searches_total"
	originalTaken = `original="accepted"`
)

// requestMetrics returns the lines of the metric of requests.
func requestMetrics(tb testing.TB, a *akin) string {
	tb.Helper()
	var lines []string
	for line := range strings.Lines(string(a.admin.must(tb, http.MethodGet, "/metrics", ""))) {
		if strings.HasPrefix(line, requestsMetric) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// checkNoFallback fails where akin wrote a search that the engine refused or
// could not look at one.
func checkNoFallback(t *testing.T, all ...*akin) {
	t.Helper()
	for _, a := range all {
		if n := a.metric(t, refusedMetric, originalTaken) + a.metric(t, requestsMetric, `outcome="failed_open"`); n != 0 {
			t.Errorf("the engine refused rewritten searches, or searches failed open: %v\n%s", n, requestMetrics(t, a))
		}
	}
}

// An explanation is what the admin port says of a search without sending it.
type explanation struct {
	Body    json.RawMessage
	Clauses []struct {
		Path, Field, Matrix, Form, Phase, Reason string
		MatrixFrequencies                        bool `json:"matrix_frequencies"`
		Terms, Indices                           []string
		Nearest                                  []struct{ Term, Known string }
		Added                                    []struct {
			Term, From string
			Boost      float64
		}
	}
}

// explain asks the admin port what becomes of a search of an index, which may
// have parameters behind it.
func (a *akin) explain(tb testing.TB, index, body string) explanation {
	tb.Helper()
	return ask[explanation](tb, a.admin, http.MethodPost, "/_akin/expand/"+index, body)
}

// checkExplained checks that one clause is found, written in a form and phase for
// a reason.
func (a *akin) checkExplained(tb testing.TB, index, body, form, phase, reason string) {
	tb.Helper()
	e := a.explain(tb, index, body)
	if len(e.Clauses) != 1 || e.Clauses[0].Form != form || e.Clauses[0].Phase != phase || e.Clauses[0].Reason != reason {
		tb.Errorf("%s: explained as %+v, want the form %q in the phase %q, reason %q", index, e.Clauses, form, phase, reason)
	}
}

// A commandResult is what a command left when it ended.
type commandResult struct {
	status         int
	stdout, stderr string
	process        *os.ProcessState
}

// runAkin runs a command of akin to its end.
func runAkin(tb testing.TB, args ...string) commandResult {
	tb.Helper()
	return runAkinAs(tb, "", args...)
}

// runAkinAs is runAkin with the credentials of a user of the secured engine in
// the environment, "" for none.
func runAkinAs(tb testing.TB, user string, args ...string) commandResult {
	tb.Helper()
	binary := akinPath(tb) // built first, which is not part of the command's time
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = cleanEnvironment()
	if user != "" {
		cmd.Env = append(cmd.Env, "AKIN_CLUSTER_USERNAME="+user, "AKIN_CLUSTER_PASSWORD="+password)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		tb.Fatalf("akin %s: %v", strings.Join(args, " "), err)
	}
	return commandResult{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), cmd.ProcessState}
}

// of names a field of an index to a command.
func (e *engine) of(index, field string) []string {
	return []string{"--cluster", e.url, "--index", index, "--field", field}
}

// mustAkin is runAkin for a command that has to succeed; it returns its
// standard output.
func mustAkin(tb testing.TB, args ...string) string {
	tb.Helper()
	r := runAkin(tb, args...)
	if r.status != 0 {
		tb.Fatalf("akin %s: exit status %d\n%s%s", strings.Join(args, " "), r.status, r.stdout, r.stderr)
	}
	return r.stdout
}

// build runs akin matrix build with arguments and returns the file.
func build(tb testing.TB, args ...string) string {
	tb.Helper()
	out := newPath(tb, "s.akin")
	mustAkin(tb, append([]string{"matrix", "build", "--out", out}, args...)...)
	return out
}

// exported returns the entries of a matrix file, a line "term TAB neighbor TAB
// similarity" each.
func exported(tb testing.TB, file string) string {
	tb.Helper()
	return mustAkin(tb, "matrix", "export", "--out", "-", file)
}
