package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

// An engineKind is one of the engines under engines/.
type engineKind struct {
	name    string
	minJDK  int
	family  string // of whom they are
	scripts bool   // runs painless scripts as it is started here
}

var engineKinds = []engineKind{
	{name: "opensearch2", minJDK: 17, family: "opensearch", scripts: true},
	{name: "elasticsearch7", minJDK: 17, family: "elasticsearch", scripts: true},
	{name: "elasticsearch8", minJDK: 17, family: "elasticsearch"},
	{name: "opensearch3", minJDK: 21, family: "opensearch", scripts: true},
	{name: "elasticsearch9", minJDK: 21, family: "elasticsearch"},
}

// usualEngines are what an installation of JDK 17 runs, and the first of them is
// what `make test` runs.
const usualEngines = "opensearch2,elasticsearch7,elasticsearch8"

// An engine is one search server, started on first use and shared by all
// tests.
type engine struct {
	engineKind
	cluster
	proc  *process
	start func() error // once
	// before is what stands before the address in the URL, "" for "http://".
	before string

	mu      sync.Mutex
	users   map[string]int // of the shared indices
	learned map[string]*learnedFile
}

// shareIndex has create make an index, unless a test that runs at the same time
// has it already. The last of these tests drops it. They must not change it.
func (e *engine) shareIndex(tb testing.TB, name string, create func()) {
	tb.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	tb.Cleanup(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.users[name]--; e.users[name] == 0 {
			e.dropIndex(name)
		}
	})
	if e.users == nil {
		e.users = map[string]int{}
	}
	if e.users[name]++; e.users[name] == 1 {
		create()
	}
}

// engines lists the engines of this run.
var engines = sync.OnceValues(func() (chosen []*engine, err error) {
	names := os.Getenv("AKIN_TEST")
	switch names {
	case "":
		names, _, _ = strings.Cut(usualEngines, ",")
	case "all":
		names = usualEngines
	}
	for name := range strings.SplitSeq(names, ",") {
		k := slices.IndexFunc(engineKinds, func(k engineKind) bool { return k.name == name })
		if k < 0 {
			return nil, fmt.Errorf("AKIN_TEST: no engine %q, there are %v", name, engineKinds)
		}
		chosen = append(chosen, newEngine(engineKinds[k]))
	}
	return chosen, nil
})

func newEngine(kind engineKind) *engine {
	e := &engine{engineKind: kind}
	e.start = sync.OnceValue(func() error {
		home, err := makeDir(e.name)
		if err != nil {
			return err
		}
		return e.launchIn(home, nil)
	})
	return e
}

// launchIn builds the engine where that has not been done, starts one node and
// waits until it serves. The folder may have a configuration.
func (e *engine) launchIn(home string, env []string, settings ...string) error {
	jdk, err := findJDK(e.minJDK)
	if err != nil {
		return err
	}
	script, err := filepath.Abs(filepath.Join("engines", e.name, "start.sh"))
	if err != nil {
		return err
	}
	for _, tool := range []string{"bash", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is not on the PATH", tool)
		}
	}
	// Without the setting, uncollected garbage trips the memory breaker (429).
	cmd := exec.Command(script, append([]string{home, "indices.breaker.total.use_real_memory=false", "script.max_compilations_rate=10000/1m"}, settings...)...)
	cmd.Env = append(append(os.Environ(), "JDK_HOME="+jdk), env...)
	if e.proc, err = startProcess(e.name, home, cmd); err != nil {
		return err
	}
	keepShared(e.proc)
	return e.awaitServing(home)
}

// awaitServing reads the engine's address once it has written it. The first
// start of all downloads and compiles, hence minutes.
func (e *engine) awaitServing(home string) error {
	ports := filepath.Join(home, "logs", "http.ports")
	return e.proc.await(5*time.Minute, func() bool {
		address, err := os.ReadFile(ports)
		if err != nil || !strings.Contains(string(address), "\n") {
			return false
		}
		first, _, _ := strings.Cut(string(address), "\n")
		e.url = cmp.Or(e.before, "http://") + first
		var info map[string]any
		return e.getJSON(context.Background(), "/", &info) == nil
	})
}

// eachEngine runs f on each engine of this run, side by side as far as
// -parallel lets it: a search keeps one processor busy. It returns when all
// have ended.
func eachEngine(t *testing.T, f func(t *testing.T, e *engine)) {
	t.Helper()
	all, err := engines()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		go func() { _ = e.start() }() // require reports the error
	}
	t.Run("on", func(t *testing.T) {
		for _, e := range all {
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				e.require(t)
				f(t, e)
			})
		}
	})
}

// oneEngine returns the first engine of this run: for behavior that does not
// depend on the engine.
func oneEngine(tb testing.TB) *engine {
	tb.Helper()
	all, err := engines()
	if err != nil {
		tb.Fatal(err)
	}
	all[0].require(tb)
	return all[0]
}

// theEngine returns an engine by its name, nil where it is not one of this run.
func theEngine(t *testing.T, name string) *engine {
	t.Helper()
	all, err := engines()
	if err != nil {
		t.Fatal(err)
	}
	k := slices.IndexFunc(all, func(e *engine) bool { return e.name == name })
	if k < 0 {
		return nil
	}
	all[k].require(t)
	return all[k]
}

// require waits until the engine serves; without it the test is skipped.
func (e *engine) require(tb testing.TB) {
	tb.Helper()
	if err := e.start(); err != nil {
		check.Missing(tb, "needs %s, a JDK %d or newer and Maven: %v", e.name, e.minJDK, err)
	}
	if e.proc != nil {
		e.proc.logOnFailure(tb)
	}
}

var jdkVersion = regexp.MustCompile(`(?m)^JAVA_VERSION="(\d+)`)

// findJDK returns the home of the oldest installed JDK of at least version
// minimum, for the engines are not tried with newer ones. JDK_HOME overrules.
func findJDK(minimum int) (string, error) {
	found := map[int]string{}
	for _, home := range jdkHomes() {
		release, err := os.ReadFile(filepath.Join(home, "release"))
		m := jdkVersion.FindSubmatch(release)
		if err != nil || m == nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(home, "bin", "javac")); err != nil {
			continue // a runtime without the compiler cannot build the node
		}
		if version, err := strconv.Atoi(string(m[1])); err == nil && version >= minimum && found[version] == "" {
			found[version] = home
		}
	}
	if len(found) == 0 {
		return "", errors.New("no JDK " + strconv.Itoa(minimum) + " or newer in JDK_HOME, in JAVA_HOME, on the PATH or in /usr/lib/jvm")
	}
	versions := make([]int, 0, len(found))
	for v := range found {
		versions = append(versions, v)
	}
	return found[slices.Min(versions)], nil
}

// jdkHomes lists where JDKs may be, only JDK_HOME if it is set.
func jdkHomes() []string {
	if home := os.Getenv("JDK_HOME"); home != "" {
		return []string{home}
	}
	homes := []string{os.Getenv("JAVA_HOME")}
	if java, err := exec.LookPath("java"); err == nil {
		if java, err = filepath.EvalSymlinks(java); err == nil {
			homes = append(homes, filepath.Dir(filepath.Dir(java)))
		}
	}
	for _, pattern := range []string{"/usr/lib/jvm/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home"} {
		matches, _ := filepath.Glob(pattern) // the patterns are well formed
		homes = append(homes, matches...)
	}
	return homes
}
