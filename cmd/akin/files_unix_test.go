//go:build unix

package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
)

func TestFilesKeepTheirModeAndNewOnesFollowTheUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	for name, mode := range map[string]fs.FileMode{"new": 0, "private": 0o600, "open": 0o666, "read only": 0o440} {
		path, want := filepath.Join(t.TempDir(), "file"), fs.FileMode(0o640)
		if mode != 0 {
			want = mode
			check.OK(t, os.WriteFile(path, nil, 0o600))
			check.OK(t, os.Chmod(path, mode))
		}
		check.OK(t, cli.Write(t.Context(), path, func(w io.Writer) error { _, err := w.Write([]byte("x")); return err }))
		if info, err := os.Stat(path); err != nil || info.Mode() != want || info.Size() != 1 {
			t.Errorf("%s: %+v, want %v, %v", name, info, want, err)
		}
	}
}

// TestANamedPipeIsNotFollowedAndBlocksNothing puts what is no regular file in
// the place of a matrix file: the matrix read before is served on, the trouble
// is told, and the end of the context ends it all at once.
func TestANamedPipeIsNotFollowedAndBlocksNothing(t *testing.T) {
	m := matrixOf(t, simmatrix.Meta{Source: "test"}, simmatrix.TermRow{Term: "car"})
	for name, put := range map[string]func(path string) error{
		"named pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder":     func(path string) error { return os.Mkdir(path, 0o700) },
		"device":     func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.akin")
			check.OK(t, cli.WriteMatrix(t.Context(), path, m))
			follow := cli.Follow(path)
			if got, written, err := follow(t.Context()); err != nil || written.IsZero() || got.Checksum() != m.Checksum() {
				t.Fatalf("the file: written %v, %v", written, err)
			}
			check.OK(t, os.Remove(path))
			check.OK(t, put(path))
			for range 2 {
				within(t, func() {
					_, written, err := follow(t.Context())
					if check.Error(t, cli.ErrNotRegular, err); !written.IsZero() {
						t.Errorf("written %v", written)
					}
				})
			}
			check.OK(t, os.Remove(path))
			check.OK(t, cli.WriteMatrix(t.Context(), path, m))
			if _, written, err := follow(t.Context()); err != nil || written.IsZero() {
				t.Errorf("a file again: written %v, %v", written, err)
			}
		})
	}
}

// within calls f and fails the test where it does not come back.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits")
	}
}
