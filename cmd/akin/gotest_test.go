package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// TestTestsEndWithWhatIsSkippedAndMissing runs the program of make test on a
// module whose tests are skipped, by a user whose Maven has downloaded something
// and who has only Go in PATH.
func TestTestsEndWithWhatIsSkippedAndMissing(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	gotest := filepath.Join(dir, "gotest")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", gotest, "./.ci/gotest")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, content := range map[string]string{
		"go.mod": "module moon\n",
		"a_test.go": "package moon\n\nimport \"testing\"\n\n" +
			"func TestMoon(t *testing.T) { t.Skip(\"needs a moon\") }\n" +
			"func TestEngine(t *testing.T) { t.Skip(\"needs a JDK and Maven\") }\n" +
			"func TestRedis(t *testing.T) { t.Skip(\"no redis-server in PATH\") }\n" +
			"func FuzzMoon(f *testing.F) { f.Add(1); f.Fuzz(func(t *testing.T, n int) { t.Skip(\"no such moon\") }) }\n",
	} {
		check.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	repository := filepath.Join(home, ".m2", "repository")
	check.OK(t, os.MkdirAll(repository, 0o700))
	program, err := exec.LookPath("go")
	check.OK(t, err)
	check.OK(t, os.Symlink(program, filepath.Join(home, "go")))
	places, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	check.OK(t, err)
	builds, modules, _ := strings.Cut(strings.TrimSpace(string(places)), "\n")
	run := exec.CommandContext(t.Context(), gotest, "-vet=off", "./...")
	run.Dir = dir
	run.Env = append(os.Environ(), "PATH="+home, "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, "cache"), "GOCACHE="+builds, "GOMODCACHE="+modules)
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := "\nFor the 2 tests that miss a program: apt-get install redis-server openjdk-17-jdk-headless maven\n"; !strings.HasSuffix(string(out), want) {
		t.Errorf("%q is not the end of\n%s", want, out)
	}
	for _, want := range []string{"needs a moon: moon TestMoon no redis-server in PATH: moon TestRedis The slowest", "kept here for the next run:\n", builds, repository} {
		if !strings.Contains(strings.Join(strings.Fields(string(out)), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	for _, absent := range []string{"npm", "pip", "axe-core", "such moon"} {
		if strings.Contains(string(out), absent) {
			t.Errorf("%q should not be in\n%s", absent, out)
		}
	}
}
