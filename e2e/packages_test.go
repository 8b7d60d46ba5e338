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
var enginePackages = []string{"./demo", "./esclient"}

// TestPackagesAgreeWithRealEngines runs the tests of those packages against
// each engine.
func TestPackagesAgreeWithRealEngines(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		args := append([]string{"test", "-p", "1", "-count=1", "-v", "-run", "Engine"}, enginePackages...)
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "AKIN_E2E_ENGINE_URL="+e.url)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, sign := range []string{"no tests to run", "set AKIN_E2E_ENGINE_URL"} {
			if strings.Contains(string(out), sign) {
				t.Errorf("tests did not run:\n%s", out)
			}
		}
	})
}
