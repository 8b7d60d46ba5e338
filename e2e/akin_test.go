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

// startAkin runs akin with config over what every test wants: free ports. It
// returns when akin is ready and ends it with the test. Variables of the
// environment may be given as NAME=VALUE.
func startAkin(tb testing.TB, config section, env ...string) *akin {
	tb.Helper()
	a := launchAkin(tb, config, env...)
	a.awaitReady(tb)
	return a
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

// launchAkin is startAkin without waiting until akin is ready: for tests in
// which it is not going to be.
func launchAkin(tb testing.TB, config section, env ...string) *akin {
	tb.Helper()
	return launchAkinUnder(tb, "", config, env...)
}

// launchAkinUnder is launchAkin in a shell that runs commands such as ulimit
// before; "" is none.
func launchAkinUnder(tb testing.TB, commands string, config section, env ...string) *akin {
	tb.Helper()
	full := section{
		"listen": section{"address": "127.0.0.1:0"}, "admin": section{"address": "127.0.0.1:0"},
		"shutdown": section{"delay": "0s"}, // no balancer is there to notice
	}
	maps.Copy(full, config)
	return launchAkinFrom(tb, commands, writeFile(tb, "akin.yaml", toJSON(tb, full)), env...)
}

// launchAkinFrom is launchAkinUnder with a configuration file.
func launchAkinFrom(tb testing.TB, commands, path string, env ...string) *akin {
	tb.Helper()
	cmd := exec.Command(akinPath(tb), "serve", "--config", path)
	if commands != "" {
		cmd = exec.Command("sh", append([]string{"-c", commands + ` && exec "$0" "$@"`}, cmd.Args...)...)
	}
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

// awaitMatrix waits until akin serves a version of the named matrix.
func (a *akin) awaitMatrix(tb testing.TB, name string) {
	tb.Helper()
	waitFor(tb, 20*time.Second, "matrix "+name, func() error {
		if a.metric(tb, "akin_matrix_info", `matrix="`+name+`"`) != 1 {
			return errors.New("not served")
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

// The metric of requests and its labels.
const (
	requestsMetric   = "akin_requests_total"
	rewrittenOutcome = `outcome="rewritten"`
)

// An explanation is what the admin port says of a search without sending it.
type explanation struct {
	Body    json.RawMessage
	Clauses []struct {
		Path, Field, Matrix, Form, Phase, Reason string
		Terms, Indices                           []string
		Nearest                                  []struct{ Term, Known string }
		Added                                    []struct {
			Term, From string
			Boost      float64
		}
	}
}

// explain asks the admin port what becomes of a search.
func (a *akin) explain(tb testing.TB, index, body string) explanation {
	tb.Helper()
	answer := a.admin.must(tb, http.MethodPost, "/_akin/expand/"+index, body)
	var e explanation
	if err := json.Unmarshal(answer, &e); err != nil {
		tb.Fatalf("/_akin/expand: %v: %s", err, answer)
	}
	return e
}

// A commandResult is what a command left when it ended.
type commandResult struct {
	status         int
	stdout, stderr string
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
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Minute)
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
	return commandResult{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
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
