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

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
)

// openPipe returns the path of the reading end of a pipe, and the other end.
func openPipe(t *testing.T) (string, *os.File) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no paths of pipes")
	}
	r, w, err := os.Pipe()
	check.OK(t, err)
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return "/dev/fd/" + strconv.Itoa(int(r.Fd())), w
}

func TestAnInterruptionEndsReadingFromAnOpenPipe(t *testing.T) {
	tsv := write(t, "p.tsv", "car\tbus\t0.5\n")
	for _, line := range []string{
		"build --from-tsv PIPE", "build --from-vectors PIPE", "build --from-edit-distance PIPE", "build --from-thesaurus PIPE",
		"build --from-tsv " + tsv + " --overrides PIPE", "build --from-matrices PIPE", "export PIPE",
	} {
		t.Run(line, func(t *testing.T) {
			pipe, _ := openPipe(t)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			root := newRoot()
			root.SetArgs(strings.Fields("matrix " + strings.Replace(line, "PIPE", pipe, 1) + " --out " + filepath.Join(t.TempDir(), "o")))
			root.SetErr(io.Discard)
			done := make(chan error, 1)
			go func() { done <- root.ExecuteContext(ctx) }()
			time.AfterFunc(20*time.Millisecond, interrupt) // at any time, mostly while it waits for the pipe
			select {
			case err := <-done:
				check.Error(t, context.Canceled, err)
			case <-time.After(20 * time.Second):
				t.Fatal("reads on")
			}
		})
	}
}

func TestFilesAreWrittenWholeOrNotAtAll(t *testing.T) {
	path := write(t, "m.akin", "old")
	failing := func(w io.Writer) error {
		_, _ = w.Write([]byte("half"))
		return errors.New("boom")
	}
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	for name, err := range map[string]error{
		"failed":      cli.Write(t.Context(), path, failing),
		"interrupted": cli.Write(interrupted, path, func(io.Writer) error { return nil }),
	} {
		entries, _ := os.ReadDir(filepath.Dir(path))
		check.That(t, err != nil && read(t, path) == "old" && len(entries) == 1, "%s: error %v, content %q, files %v", name, err, read(t, path), entries)
	}
	link := filepath.Join(t.TempDir(), "link")
	check.OK(t, os.Symlink(path, link))
	check.OK(t, cli.Write(t.Context(), link, func(w io.Writer) error { _, err := w.Write([]byte("new")); return err }))
	if read(t, path) != "new" {
		t.Error("a link is not followed")
	}
}

func TestMatrixFileIsReadAgainWhenItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.akin")
	load := cli.Follow(path)
	put := func(terms ...string) {
		var rows []simmatrix.TermRow
		for i, term := range terms {
			rows = append(rows, simmatrix.TermRow{Term: term, Neighbors: []simmatrix.Neighbor{{Term: terms[(i+1)%len(terms)], Similarity: 0.5}}})
		}
		check.OK(t, cli.WriteMatrix(t.Context(), path, matrixOf(t, simmatrix.Meta{Source: "test"}, rows...)))
	}
	// expect loads: a matrix of so many terms, nothing new where it is 0, or an error.
	expect := func(ctx context.Context, what string, terms int, failure error) {
		t.Helper()
		m, written, err := load(ctx)
		if check.Error(t, failure, err, what); written.IsZero() != (terms == 0) || terms > 0 && m.Len() != terms {
			t.Errorf("%s: written %v", what, written)
		}
	}
	expect(t.Context(), "no file", 0, os.ErrNotExist)
	put("a", "b")
	expect(t.Context(), "first", 2, nil)
	expect(t.Context(), "unchanged", 0, nil)
	put("a", "b", "c")
	expect(t.Context(), "second", 3, nil)
	check.OK(t, os.WriteFile(path, []byte("garbage"), 0o600))
	for range 2 { // the error stays for as long as the file is bad
		expect(t.Context(), "bad file", 0, simmatrix.ErrFormat)
	}
	put("a", "b")
	ended, end := context.WithCancel(t.Context())
	end()
	expect(ended, "interrupted", 0, context.Canceled)
	expect(t.Context(), "after an interruption", 2, nil)
}
