package main

import (
	"encoding/json"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/e2e/check"
)

// walk calls f for all commands below cmd.
func walk(cmd *cobra.Command, f func(cmd *cobra.Command)) {
	for _, c := range cmd.Commands() {
		walk(c, f)
	}
	f(cmd)
}

func TestEveryCommandShowsAnExample(t *testing.T) {
	walk(newRoot(), func(cmd *cobra.Command) {
		if !cmd.Hidden {
			ends(t, 0, append(strings.Fields(cmd.CommandPath())[1:], "--help"), "Examples:")
		}
	})
}

func TestVersionTellsWhatWasBuilt(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.3"}}
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123abc"}, {Key: "vcs.modified", Value: "true"}}
	for want, info := range map[string]*debug.BuildInfo{
		"v1.2.3, go1.26.0": info,
		"v1.2.3, commit 0123abc with changes, go1.26.0": {GoVersion: info.GoVersion, Main: info.Main, Settings: vcs},
		"(devel), commit 0123abc":                       {Settings: vcs[:1]},
		"(devel)":                                       {},
	} {
		if got := describeBuild(info, "", "").String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := describeBuild(info, "v2.0.0", "feed").String(); got != "v2.0.0, commit feed, go1.26.0" {
		t.Errorf("what the linker set does not go first: %q", got)
	}
	for _, form := range []string{"--version", "version"} {
		check.Equal(t, "akin "+thisBuild().String(), mustAkin(t, form))
	}
}

// Each command that is not hidden has a page, of which packages install all.
func TestEveryCommandHasAManualPage(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "man1")
	mustAkin(t, "man", folder)
	for _, name := range []string{"akin", "akin-serve", "akin-matrix-build", "akin-eval"} {
		contains(t, name, read(t, filepath.Join(folder, name+".1")), ".SH EXAMPLE")
	}
}

// withoutTable are the commands whose output is no table, and what it is.
var withoutTable = map[string]string{
	"akin completion bash": "a script", "akin completion fish": "a script", "akin completion powershell": "a script", "akin completion zsh": "a script",
	"akin help": "help", "akin man": "files", "akin serve": "a log", "akin ready": "a status", "akin version": "a line", "akin init": "a configuration",
	"akin demo": "a tour to read", "akin demo load": "progress",
	"akin matrix build": "a file", "akin matrix learn": "a file", "akin matrix push": "the version",
	"akin matrix activate": "nothing", "akin matrix rollback": "the version", "akin matrix prune": "the versions, one a line",
	"akin suggest accept": "a line", "akin suggest dismiss": "a line", "akin suggest undo": "a line",
	"akin index norms snapshot": "a file", "akin index norms backfill": "progress",
	"akin index segments backfill": "progress", "akin embeddings warm": "progress",
	"akin index vectors model": "a file", "akin index vectors backfill": "progress",
	"akin matrix export": "a file", "akin norms": "an error", "akin segments": "an error", "akin vectors": "an error",
}

func TestEveryCommandWithATableHasJSON(t *testing.T) {
	root := newRoot()
	root.InitDefaultCompletionCmd("x")
	root.InitDefaultHelpCmd()
	seen := 0
	walk(root, func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		_, listed := withoutTable[path]
		if has := cmd.Flags().Lookup("json") != nil; has {
			seen++
			check.That(t, !listed, "%s has --json", path)
		} else {
			check.That(t, listed || cmd.HasAvailableSubCommands(), "%s has no --json: add it, or say here what it prints", path)
		}
	})
	check.That(t, seen >= 8, "only %d commands have --json", seen)
}

// TestJSONOfTablesIsJSON runs the commands that need no judged queries, whose
// own tests read their JSON. Nothing is colored where there is no terminal.
func TestJSONOfTablesIsJSON(t *testing.T) {
	matrix := encodedFile(t, "docs.akin", fleet(t))
	t.Setenv("AKIN_REDIS_URL", redisServer(t))
	mustAkin(t, "matrix", "push", "--name", "docs", "--activate", matrix)
	for _, line := range []string{
		"matrix list --name docs", "matrix show docs.akin car", "matrix check docs.akin", "matrix diff docs.akin ./docs.akin", "check --config none.yml",
	} {
		for _, more := range []string{" --json", ""} {
			out, stderr, status := akin(t, strings.Fields(line+more)...)
			if more != "" && !json.Valid([]byte(out)) || out == "" || strings.Contains(out+stderr, "\x1b") {
				t.Errorf("%s%s: status %d, not JSON, nothing, or escapes in %q %q", line, more, status, out, stderr)
			}
		}
	}
}

func TestWordVectorsBecomeIndexTerms(t *testing.T) {
	m, said := built(t, "--from-vectors", write(t, "v.txt", "sofas 1 0.1\ncouches 1 0.2\nthe 0.9 0.2\nzeppelins 1 0.3\ncar-hire 0 1\n"),
		"--cluster", demoEngine(t), "--index", "catalogue", "--field", "body")
	contains(t, "build", said, "5 words: they are 3 terms and 1 expressions; 1 are neither; no document has 2")
	row := m.Row("sofa")
	for n := range row.All() {
		check.That(t, n.Term == "couch" && n.DocFreq != 0 && row.Len() == 1, "neighbor of sofa: %+v", n)
	}
	if row.DocFreq() == 0 {
		t.Error("sofa has no document frequency")
	}
}
