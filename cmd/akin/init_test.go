package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
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
	check.OK(t, err)
	text := read(t, file)
	check.That(t, !strings.Contains(text, "hunter2") && !strings.Contains(text, "somebody"), "credentials in\n%s", text)
	check.Must(t, len(cfg.Matrices) != 0 && cfg.Matrices[0].File != "", "no matrices in\n%s", text)
	check.That(t, strings.HasSuffix(out, strings.TrimSpace(betterWords)), "it does not end with what a language model brings:\n%s", out)
	next := nextCommands(out)
	check.Must(t, len(next) == len(cfg.Matrices)+2 && next[len(next)-1][0] == "serve", "next %q", next)
	for _, args := range next[:len(next)-1] {
		out := mustAkin(t, args...)
		check.That(t, args[0] != "check" || strings.Contains(out, "saturated") && strings.Contains(out, " high "), "nothing is expanded:\n%s", out)
	}
}

func TestInitPrintsTheConfigurationThatItWouldWrite(t *testing.T) {
	out := mustAkin(t, "init", "--url", demoEngine(t), "--index", "catalogue", "--out", "-")
	cfg, err := configs.Parse("printed", []byte(out))
	check.That(t, err == nil && len(cfg.Matrices) == 1 && strings.Join(cfg.Matrices[0].Indices, ",") == "catalogue", "%v, %+v\n%s", err, cfg, out)
	if isThere("akin.yml") {
		t.Error("akin.yml is written")
	}
}

func TestInitSaysWhatIsMissing(t *testing.T) {
	init := func(url string, more ...string) []string { return append([]string{"init", "--url", url}, more...) }
	mine := write(t, "akin.yml", "mine")
	if ends(t, exitUsage, init(demoEngine(t), "--out", mine), "or remove it"); read(t, mine) != "mine" {
		t.Error("a file is replaced")
	}
	ends(t, exitUsage, init(demoEngine(t), "--out", "/nonexistent/akin.yml"), "no folder")
	ends(t, exitFailure, init(demoEngine(t), "--index", "nosuch", "--out", "-"), "next: see which indices")
	ends(t, exitFailure, init(refusing(t, "/", 401, "missing"), "--out", "-"), "AKIN_CLUSTER_USERNAME")
}
