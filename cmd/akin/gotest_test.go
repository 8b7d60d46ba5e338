package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTestsEndWithWhatIsSkippedAndKept runs the program of make test on a module
// whose only test is skipped, by a user whose Maven has downloaded something.
func TestTestsEndWithWhatIsSkippedAndKept(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	gotest := filepath.Join(dir, "gotest")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", gotest, "./.ci/gotest")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, content := range map[string]string{
		"go.mod":    "module moon\n",
		"a_test.go": "package moon\n\nimport \"testing\"\n\nfunc TestMoon(t *testing.T) { t.Skip(\"needs a moon\") }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	repository := filepath.Join(home, ".m2", "repository")
	if err := os.MkdirAll(repository, 0o700); err != nil {
		t.Fatal(err)
	}
	places, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	builds, modules, _ := strings.Cut(strings.TrimSpace(string(places)), "\n")
	run := exec.CommandContext(t.Context(), gotest, "-vet=off", "./...")
	run.Dir = dir
	run.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, "cache"), "GOCACHE="+builds, "GOMODCACHE="+modules)
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"Skipped tests:\n  needs a moon: moon TestMoon\n", "kept here for the next run:\n", builds, repository} {
		if !strings.Contains(strings.Join(strings.Fields(string(out)), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	for _, absent := range []string{"npm", "pip", "axe-core"} {
		if strings.Contains(string(out), absent) {
			t.Errorf("%s has kept nothing, but is in\n%s", absent, out)
		}
	}
}
