package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/akin-search/akin/configs"
)

// inited writes a configuration for the demo's engine and returns the file and
// what was printed.
func inited(t *testing.T, args ...string) (file, out string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "akin.yml")
	return file, mustAkin(t, append([]string{"init", "--url", demoEngine(t), "--out", file}, args...)...)
}

// nextCommands returns the arguments of the command lines that were printed.
func nextCommands(out string) (all [][]string) {
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "akin "); ok && !strings.Contains(line, "is written") {
			all = append(all, strings.Fields(rest))
		}
	}
	return all
}

func TestInitWritesAConfigurationThatServesOnceItsCommandsHaveRun(t *testing.T) {
	t.Setenv(configs.EnvClusterUsername, "somebody")
	t.Setenv(configs.EnvClusterPassword, "hunter2")
	file, out := inited(t)
	cfg, err := configs.Load(t.Context(), file)
	if err != nil {
		t.Fatalf("%v\n%s", err, read(t, file))
	}
	text := read(t, file)
	if strings.Contains(text, "hunter2") || strings.Contains(text, "somebody") {
		t.Errorf("credentials in\n%s", text)
	}
	if len(cfg.Matrices) == 0 || cfg.Matrices[0].File == "" {
		t.Fatalf("no matrices in\n%s", text)
	}
	if !strings.HasSuffix(out, strings.TrimSpace(betterWords)) {
		t.Errorf("it does not end with what a language model brings:\n%s", out)
	}
	next := nextCommands(out)
	if len(next) != len(cfg.Matrices)+2 || next[len(next)-1][0] != "serve" {
		t.Fatalf("next %q", next)
	}
	for _, args := range next[:len(next)-1] {
		out := mustAkin(t, args...)
		if args[0] == "check" && (!strings.Contains(out, "saturated") || !strings.Contains(out, " high ")) {
			t.Errorf("nothing is expanded:\n%s", out)
		}
	}
}

func TestInitReplacesNoFile(t *testing.T) {
	file := write(t, "akin.yml", "mine")
	_, stderr, status := akin(t, "init", "--url", demoEngine(t), "--out", file)
	if status != exitUsage || !strings.Contains(stderr, "or remove it") || read(t, file) != "mine" {
		t.Errorf("status %d, %s, %q", status, stderr, read(t, file))
	}
}

func TestInitPrintsTheConfigurationThatItWouldWrite(t *testing.T) {
	out := mustAkin(t, "init", "--url", demoEngine(t), "--index", "catalogue", "--out", "-")
	cfg, err := configs.Parse("printed", []byte(out))
	if err != nil || len(cfg.Matrices) != 1 || strings.Join(cfg.Matrices[0].Indices, ",") != "catalogue" {
		t.Errorf("%v, %+v\n%s", err, cfg, out)
	}
	if _, err := os.Stat("akin.yml"); err == nil {
		t.Error("akin.yml is written")
	}
}

func TestInitSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name, want string
		args       []string
		status     int
	}{
		{"no URL", "--url", []string{}, exitUsage},
		{"no such folder", "no folder", []string{"--url", demoEngine(t), "--out", "/nonexistent/akin.yml"}, exitUsage},
		{"no such index", "next: see which indices", []string{"--url", demoEngine(t), "--index", "nosuch", "--out", "-"}, exitFailure},
		{"no credentials", "AKIN_CLUSTER_USERNAME", []string{"--url", refusing(t, "/", 401, "missing"), "--out", "-"}, exitFailure},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, stderr, status := akin(t, append([]string{"init"}, c.args...)...)
			if status != c.status || !strings.Contains(stderr, c.want) {
				t.Errorf("status %d, want %d and %q in %s", status, c.status, c.want, stderr)
			}
		})
	}
}
