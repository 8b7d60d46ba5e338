package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/internal/cli"
)

// pipePath returns a path of the reading end of a pipe.
func pipePath(r *os.File) string { return "/dev/fd/" + strconv.Itoa(int(r.Fd())) }

// TestAnInterruptionEndsReadingFromAnOpenPipe interrupts every command that
// reads once what it reads has come to a stop.
func TestAnInterruptionEndsReadingFromAnOpenPipe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no paths of pipes")
	}
	tsv := write(t, "p.tsv", "car\tbus\t0.5\n")
	out := filepath.Join(t.TempDir(), "o")
	build := func(args ...string) []string { return append([]string{"matrix", "build", "--out", out}, args...) }
	for name, args := range map[string][]string{
		"pairs":     build("--from-tsv", "PIPE"),
		"vectors":   build("--from-vectors", "PIPE"),
		"terms":     build("--from-edit-distance", "PIPE"),
		"synonyms":  build("--from-thesaurus", "PIPE"),
		"overrides": build("--from-tsv", tsv, "--overrides", "PIPE"),
		"matrices":  build("--from-matrices", "PIPE"),
		"export":    {"matrix", "export", "--out", out, "PIPE"},
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			root := newRoot()
			for k := range args {
				if args[k] == "PIPE" {
					args[k] = pipePath(r)
				}
			}
			root.SetArgs(args)
			root.SetErr(io.Discard)
			done := make(chan error, 1)
			go func() { done <- root.ExecuteContext(ctx) }()
			time.AfterFunc(20*time.Millisecond, interrupt) // at any time, mostly while it waits for the pipe
			select {
			case err := <-done:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("error %v", err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("reads on")
			}
		})
	}
}

func TestWhereNothingCanBeWrittenIsKnownBefore(t *testing.T) {
	dir := t.TempDir()
	if err := cli.CheckTarget(filepath.Join(dir, strings.Repeat("x", 300))); err == nil {
		t.Error("a name of 300 bytes passes")
	}
	for _, long := range []string{strings.Repeat("x", 254), strings.Repeat("é", 127)} {
		path := filepath.Join(dir, long)
		if err := cli.CheckTarget(path); err != nil {
			t.Errorf("a name of 254 bytes: %v", err)
		}
		if err := cli.Write(t.Context(), path, func(io.Writer) error { return nil }); err != nil {
			t.Errorf("a name of 254 bytes: %v", err)
		}
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if runtime.GOOS != "linux" {
		t.Skip("no folder that nobody can write to")
	}
	if err := cli.CheckTarget("/proc/x.akin"); err == nil || !strings.Contains(err.Error(), "/proc/x.akin cannot be written") {
		t.Errorf("/proc: %v", err)
	}
}
