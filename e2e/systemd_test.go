package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSystemdTakesTheUnit asks systemd itself, with a program that is there in
// place of /usr/bin/akin. Of 100, a service without any hardening is exposed by
// 96.
func TestSystemdTakesTheUnit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		skipOrFail(t, "needs systemd-analyze: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(repository, "deploy", "systemd", "akin.service"))
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "akin.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), "/usr/bin/akin", "/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", "--man=no"}, {"security", "--offline=yes", "--threshold=15"}} {
		if out, err := exec.Command("systemd-analyze", append(args, unit)...).CombinedOutput(); err != nil || strings.Contains(string(out), unit+":") {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}
