//go:build unix

package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
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
		if err := writeFile(t.Context(), path, func(w io.Writer) error { _, err := w.Write([]byte("x")); return err }); err != nil {
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
