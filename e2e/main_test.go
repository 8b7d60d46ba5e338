package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
)

// update has the tests with figures in testdata write them again.
var update = flag.Bool("update", false, "rewrite the figures in testdata")

// repository is the root of the checkout.
const repository = ".."

// runDir has the binary, the logs and the data of everything that the run
// starts. It is removed when the run passes.
var runDir string

func TestMain(m *testing.M) {
	flag.Parse()
	wide := true
	flag.Visit(func(f *flag.Flag) { wide = wide && f.Name != "test.parallel" })
	if wide {
		// Tests wait for servers half of their time, and some for nothing else.
		if err := flag.Set("test.parallel", strconv.Itoa(max(6, runtime.GOMAXPROCS(0)))); err != nil {
			panic(err)
		}
	}
	os.Exit(runTests(m))
}

// runTests owns what the tests share: the folder and the child processes.
func runTests(m *testing.M) (status int) {
	dir, err := os.MkdirTemp("", "akin-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e: no folder for the run:", err)
		return 1
	}
	runDir = dir
	if err := noteSources(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer func() {
		stopShared()
		if status != 0 {
			fmt.Fprintln(os.Stderr, "e2e: logs are kept in", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
		}
	}()
	return m.Run()
}

// noteSources opens the folders of the repository. go test takes a result from
// its cache where what the test itself has opened is as it was, and does not see
// that the binary is built from other sources.
func noteSources() error {
	return filepath.WalkDir(repository, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains([]string{".git", "bin", "engines"}, entry.Name()) {
			return fs.SkipDir // writes into it do not change the binary
		}
		return err
	})
}

// long skips a test that `make test` leaves to .ci/run, unless -run chooses tests.
func long(tb testing.TB) {
	tb.Helper()
	if os.Getenv("AKIN_TEST") == "" && flag.Lookup("test.run").Value.String() == "" {
		tb.Skip("runs with AKIN_TEST=all")
	}
}

// newDir makes a folder below the folder of the run whose name starts with
// name. Unlike t.TempDir it stays when the test fails.
func newDir(tb testing.TB, name string) string {
	tb.Helper()
	dir, err := makeDir(name)
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

func makeDir(name string) (string, error) { return os.MkdirTemp(runDir, name+"-") }

// newPath returns the path of a file that is not there, in a folder of its own.
func newPath(tb testing.TB, name string) string {
	tb.Helper()
	return filepath.Join(newDir(tb, "file"), name)
}

// writeFile writes content to a new file called name and returns its path.
func writeFile(tb testing.TB, name, content string) string {
	tb.Helper()
	path := newPath(tb, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// writeEncoded writes what encode writes to a new file called name and returns
// its path.
func writeEncoded(tb testing.TB, name string, encode func(*bytes.Buffer) error) string {
	tb.Helper()
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		tb.Fatal(err)
	}
	return writeFile(tb, name, b.String())
}

// readFile returns the content of a file.
func readFile(tb testing.TB, path string) string {
	tb.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(content)
}
