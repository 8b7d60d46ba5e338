//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/store"
)

func TestFilesKeepTheirModeAndNewOnesFollowTheUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	dir := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"new": 0, "private": 0o600, "open": 0o666, "read only": 0o440} {
		path := filepath.Join(dir, name)
		want := fs.FileMode(0o640)
		if mode != 0 {
			want = mode
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		if err := cli.Write(t.Context(), path, func(w io.Writer) error { _, err := w.Write([]byte("x")); return err }); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want || info.Size() != 1 {
			t.Errorf("%s: %v of %d bytes, want %v", name, info.Mode(), info.Size(), want)
		}
	}
}

func works(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestANamedPipeIsNotFollowedAndBlocksNothing puts what is no regular file in
// the place of a matrix file: the matrix read before is served on, the trouble
// is told, and the end of the context ends it all at once.
func TestANamedPipeIsNotFollowedAndBlocksNothing(t *testing.T) {
	m, err := simmatrix.New(simmatrix.Meta{Source: "test"}, []simmatrix.TermRow{{Term: "car"}})
	works(t, err)
	var file bytes.Buffer
	works(t, simmatrix.Encode(&file, m))
	for name, put := range map[string]func(path string) error{
		"named pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder":     func(path string) error { return os.Mkdir(path, 0o700) },
		"device":     func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.akin")
			works(t, os.WriteFile(path, file.Bytes(), 0o600))
			follow := cli.Follow(path)
			if got, written, err := follow(t.Context()); err != nil || written.IsZero() || got.Checksum() != m.Checksum() {
				t.Fatalf("the file: written %v, %v", written, err)
			}
			works(t, os.Remove(path))
			works(t, put(path))
			for range 2 {
				if _, written, err := within(t, func() (*simmatrix.Matrix, time.Time, error) { return follow(t.Context()) }); !written.IsZero() || !errors.Is(err, cli.ErrNotRegular) {
					t.Errorf("written %v, %v", written, err)
				}
			}
			works(t, os.Remove(path))
			works(t, os.WriteFile(path, file.Bytes(), 0o600))
			if _, written, err := follow(t.Context()); err != nil || written.IsZero() {
				t.Errorf("a file again: written %v, %v", written, err)
			}
		})
	}
}

// within calls f and fails the test where it does not come back.
func within[A, B any](t *testing.T, f func() (A, B, error)) (a A, b B, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); a, b, err = f() }()
	select {
	case <-done:
		return a, b, err
	case <-time.After(20 * time.Second):
		t.Fatal("it waits")
		return a, b, err
	}
}

func TestAStoreThatFollowsANamedPipeCloses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.akin")
	works(t, syscall.Mkfifo(path, 0o600))
	ctx, stop := context.WithCancel(t.Context())
	s, _, err := within(t, func() (*store.Store, bool, error) {
		s, err := store.Open(ctx, store.Options{
			Bindings:   []store.Binding{{Name: "m", Indices: []string{"*"}, Fields: []string{"*"}}},
			Files:      map[string]store.Loader{"m": cli.Follow(path)},
			CacheBytes: 1 << 20,
		})
		return s, true, err
	})
	works(t, err)
	if problem := s.State()[0].Problem; !strings.Contains(problem, "not a regular file") {
		t.Errorf("problem %q", problem)
	}
	stop()
	_, _, err = within(t, func() (bool, bool, error) { return true, true, s.Close() })
	works(t, err)
}

func TestReadingANamedPipeThatNobodyWritesEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.akin")
	works(t, syscall.Mkfifo(path, 0o600))
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, _, err := within(t, func() (*simmatrix.Matrix, bool, error) {
		m, err := cli.ReadMatrix(ctx, path)
		return m, true, err
	}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
