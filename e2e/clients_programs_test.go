package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

const clientsFolder = "testdata/clients"

// A clientProgram is a program below testdata/clients. It takes the address
// of a search API, the name of an index and the fixture that is to go into
// it, uses a client library in every way that applications do, and prints
// what the library answered.
type clientProgram struct {
	name    string
	engines []string
	// timesOut is the class of the library's error where it gives up waiting.
	timesOut string
	// classes are those of errors that the cluster answers with, by status and
	// type or by status; "" is for every other.
	classes map[string]string
	// command returns what runs the program, and what to put into its
	// environment.
	command func(t *testing.T) (command, env []string)
}

var clientPrograms = []clientProgram{
	{
		name: "go-elasticsearch", engines: []string{"elasticsearch8", "elasticsearch9"},
		timesOut: "DeadlineExceeded", classes: map[string]string{"": "ElasticsearchError"}, command: goClient("typed"),
	},
	{
		name: "opensearch-go", engines: []string{"opensearch2", "opensearch3"},
		timesOut: "DeadlineExceeded",
		classes:  map[string]string{"404": "StringError", "404 index_not_found_exception": "StructError", "": "StructError"}, command: goClient("opensearch"),
	},
	{
		name: "elasticsearch-py", engines: []string{"elasticsearch8", "elasticsearch9"}, timesOut: "ConnectionTimeout",
		classes: map[string]string{"400": "BadRequestError", "404": "NotFoundError", "409": "ConflictError", "": "ApiError"}, command: pythonClient("elastic.py"),
	},
	{
		name: "opensearch-py", engines: []string{"opensearch2", "opensearch3"}, timesOut: "ConnectionTimeout",
		classes: map[string]string{"400": "RequestError", "404": "NotFoundError", "409": "ConflictError", "": "TransportError"}, command: pythonClient("opensearch.py"),
	},
	{
		name: "elasticsearch-js", engines: []string{"elasticsearch8", "elasticsearch9"},
		timesOut: "TimeoutError", classes: map[string]string{"": "ResponseError"}, command: jsClient,
	},
}

// goClients builds the programs in Go, which are a module of their own, and
// returns the folder with them.
var goClients = sync.OnceValues(func() (string, error) {
	dir, err := makeDir("goclients")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-C", filepath.Join(clientsFolder, "go"), "-o", dir+"/", "./...")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, output)
	}
	return dir, nil
})

func goClient(name string) func(*testing.T) ([]string, []string) {
	return func(t *testing.T) ([]string, []string) {
		t.Helper()
		dir, err := goClients()
		if err != nil {
			check.Missing(t, "needs the Go clients of Elasticsearch and OpenSearch from a module proxy: %v", err)
		}
		return []string{filepath.Join(dir, name)}, nil
	}
}

var clientsPython = sync.OnceValues(func() (string, error) {
	return pythonWith(filepath.Join(clientsFolder, "python", "requirements.txt"))
})

func pythonClient(file string) func(*testing.T) ([]string, []string) {
	return func(t *testing.T) ([]string, []string) {
		t.Helper()
		python, err := clientsPython()
		if err != nil {
			check.Missing(t, "needs python3 3.10 or newer with venv, and the clients of Elasticsearch and OpenSearch from its package index: %v", err)
		}
		return []string{python, "-B", filepath.Join(clientsFolder, "python", file)}, nil
	}
}

// jsModules installs the JavaScript client and returns its node_modules.
var jsModules = sync.OnceValues(func() (string, error) {
	pins := []string{filepath.Join(clientsFolder, "js", "package.json"), filepath.Join(clientsFolder, "js", "package-lock.json")}
	dir, err := installCached("akin-e2e-js", pins, []string{"npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"})
	return filepath.Join(dir, "node_modules"), err
})

func jsClient(t *testing.T) (command, env []string) {
	t.Helper()
	modules, err := jsModules()
	if err != nil {
		check.Missing(t, "needs node 18 or newer with npm, and the client of Elasticsearch from its registry: %v", err)
	}
	return []string{"node", filepath.Join(clientsFolder, "js", "elastic.js")}, []string{"NODE_PATH=" + modules}
}

// pythonWith makes a virtual environment of what a file requires and returns
// its interpreter.
func pythonWith(requirements string) (string, error) {
	dir, err := installCached("akin-e2e-python", []string{requirements}, []string{"python3", "-m", "venv", "."},
		[]string{"bin/python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--requirement", filepath.Base(requirements)})
	return filepath.Join(dir, "bin", "python"), err
}

// installCached makes a folder with copies of the files that pin versions and
// runs the commands in it, once for all runs, in the user's cache folder.
func installCached(name string, pins []string, commands ...[]string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	contents := map[string][]byte{}
	sum := crc32.NewIEEE()
	for _, pin := range pins {
		content, err := os.ReadFile(pin)
		if err != nil {
			return "", err
		}
		contents[filepath.Base(pin)] = content
		_, _ = sum.Write(content)
	}
	dir := filepath.Join(cache, fmt.Sprintf("%s-%08x", name, sum.Sum32()))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	// What is under its final name is complete, also when a run is killed.
	made, err := os.MkdirTemp(cache, name+"-new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made)
	for file, content := range contents {
		if err := os.WriteFile(filepath.Join(made, file), content, 0o600); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for _, args := range commands {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = made
		if output, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, output)
		}
	}
	if err := os.Rename(made, dir); err != nil && !errors.Is(err, fs.ErrExist) { // another run was faster
		return "", err
	}
	return dir, nil
}

// A clientStep is something that a program did: what it is called and what
// came of it.
type clientStep struct {
	Step   string
	Result json.RawMessage
	Error  *clientError
}

// A clientError is an error as a client library surfaces it.
type clientError struct {
	Class  string          `json:"class"`
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`
}

// kind returns status and type of the error, as far as it has them.
func (e clientError) kind() string {
	var body struct {
		Error struct{ Type string }
	}
	_ = json.Unmarshal(e.Body, &body) // not every answer has a type
	return strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, body.Error.Type))
}

// text returns what came of the step in a form that is equal for equal
// answers, with a line for every value.
func (s clientStep) text(t *testing.T) string {
	t.Helper()
	var content any = s.Result
	if s.Error != nil {
		content = s.Error
	}
	text := volatile.ReplaceAllString(toJSON(t, content), "*") // which wants it without blanks
	return strings.ReplaceAll(text, ",", ",\n")
}

// run runs the program on the search API at base and returns its steps.
func (p clientProgram) run(t *testing.T, base, index, fixture string) []clientStep {
	t.Helper()
	args, env := p.command(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], slices.Concat(args[1:], []string{base, index, fixture})...)
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, &stderr)
	}
	var steps []clientStep
	if err := json.Unmarshal(stdout.Bytes(), &steps); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, &stdout)
	}
	return steps
}
