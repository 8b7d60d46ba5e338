package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// enginePackages have tests that compare with a real engine and skip without
// the address of one.
var enginePackages = []string{"./internal/demo", "./esclient", "./esclient/documents"}

// TestPackagesAgreeWithRealEngines runs the tests of those packages against
// each engine. It has the engines for itself: one of these tests bars expensive
// queries for a moment.
func TestPackagesAgreeWithRealEngines(t *testing.T) {
	dir := newDir(t, "packages")
	build := exec.CommandContext(t.Context(), "go", append([]string{"test", "-tags=nomsgpack", "-vet=off", "-c", "-o", dir}, enginePackages...)...)
	build.Dir = repository
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		for _, name := range enginePackages {
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, filepath.Base(name)+".test"), "-test.v", "-test.run", "Engine")
			cmd.Dir = filepath.Join(repository, name)
			cmd.Env = append(os.Environ(), "AKIN_E2E_ENGINE_URL="+e.url)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
			for _, sign := range []string{"no tests to run", "set AKIN_E2E_ENGINE_URL"} {
				if strings.Contains(string(out), sign) {
					t.Errorf("%s: tests did not run:\n%s", name, out)
				}
			}
		}
	})
}
