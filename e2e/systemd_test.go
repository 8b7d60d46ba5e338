package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// TestSystemdTakesTheUnits asks systemd itself, with a program that is there in
// place of akin's. Of 100, a service without any hardening is exposed by 96.
func TestSystemdTakesTheUnits(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		check.Missing(t, "needs systemd-analyze: %v", err)
	}
	dir := t.TempDir()
	var units []string
	for _, name := range []string{"systemd/akin.service", "nightly/akin-rebuild.service", "nightly/akin-rebuild.timer"} {
		unit := filepath.Join(dir, filepath.Base(name))
		text := regexp.MustCompile(`/usr/bin/akin[a-z-]*`).ReplaceAllString(readFile(t, filepath.Join(repository, "deploy", name)), "/bin/true")
		if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		units = append(units, unit)
	}
	for _, args := range [][]string{
		append([]string{"verify", "--man=no"}, units...),
		append([]string{"security", "--offline=yes", "--threshold=15"}, units[:2]...),
	} {
		if out, err := exec.Command("systemd-analyze", args...).CombinedOutput(); err != nil || strings.Contains(string(out), dir) {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}
