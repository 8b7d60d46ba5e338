package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// withoutTable are the commands whose output is no table, and what it is.
var withoutTable = map[string]string{
	"akin completion bash": "a script", "akin completion fish": "a script", "akin completion powershell": "a script", "akin completion zsh": "a script",
	"akin help": "help", "akin man": "files", "akin serve": "a log", "akin ready": "a status", "akin init": "a configuration",
	"akin demo": "a tour to read", "akin demo load": "progress",
	"akin matrix build": "a file", "akin matrix learn": "a file", "akin matrix push": "the version",
	"akin matrix activate": "nothing", "akin matrix rollback": "the version", "akin matrix prune": "the versions, one a line",
	"akin norms snapshot": "a file", "akin norms backfill": "progress",
	"akin segments backfill": "progress",
	"akin vectors model":     "a file", "akin vectors backfill": "progress",
	"akin matrix export": "a file",
}

// TestEveryCommandWithATableHasJSON walks the tree of commands.
func TestEveryCommandWithATableHasJSON(t *testing.T) {
	root := newRoot()
	root.InitDefaultCompletionCmd("x")
	root.InitDefaultHelpCmd()
	seen := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			walk(c)
		}
		path := cmd.CommandPath()
		_, listed := withoutTable[path]
		if has := cmd.Flags().Lookup("json") != nil; has {
			seen++
			if listed {
				t.Errorf("%s has --json", path)
			}
		} else if !listed && !cmd.HasAvailableSubCommands() {
			t.Errorf("%s has no --json: add it, or say here what it prints", path)
		}
	}
	walk(root)
	if seen < 8 {
		t.Errorf("only %d commands have --json", seen)
	}
}

// TestJSONOfTablesIsJSON runs the commands that need no judged queries, whose
// own tests read their JSON. Nothing is colored where there is no terminal.
func TestJSONOfTablesIsJSON(t *testing.T) {
	matrix := encodedFile(t, "docs.akin", fleet(t))
	t.Setenv("AKIN_REDIS_URL", redisServer(t))
	mustAkin(t, "matrix", "push", "--name", "docs", "--activate", matrix)
	for _, args := range [][]string{
		{"matrix", "list", "--name", "docs"},
		{"matrix", "show", matrix, "car"},
		{"matrix", "check", matrix},
		{"matrix", "diff", matrix, matrix},
		{"check", "--config", filepath.Join(t.TempDir(), "none.yml")},
	} {
		t.Run(strings.Join(args[:min(len(args), 2)], " "), func(t *testing.T) {
			for _, more := range [][]string{{"--json"}, nil} {
				out, stderr, status := akin(t, append(args, more...)...)
				if more != nil && !json.Valid([]byte(out)) {
					t.Errorf("status %d, not JSON: %s\n%s", status, out, stderr)
				}
				if out == "" || strings.Contains(out+stderr, "\x1b") {
					t.Errorf("nothing, or escapes, in %q %q", out, stderr)
				}
			}
		})
	}
}
