package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

// readMatrix reads a matrix file.
func readMatrix(path string) (*simmatrix.Matrix, error) {
	f, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	m, err := simmatrix.Decode(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// writeFile writes a file so that path never holds half of it: into a file
// beside it that takes its place at the end and is removed on failure. It does
// not begin to replace once ctx has ended.
func writeFile(ctx context.Context, path string, write func(w io.Writer) error) (err error) {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved // the file that a link names is replaced, not the link
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	err = errors.Join(write(w), w.Flush(), f.Chmod(0o644), f.Sync(), f.Close(), ctx.Err())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// checkTarget reports why a file could not be written to path in the end, so
// that it is known before the work begins.
func checkTarget(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is there and is no regular file", path)
	case err == nil:
		return nil
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("%s: %s is no folder", path, folder)
	}
	return nil
}

// followFile returns a loader that reads the matrix file again whenever its
// time or size has changed.
func followFile(path string) rowstore.Loader {
	var seen time.Time
	var size int64
	var failed error
	return func(context.Context) (*simmatrix.Matrix, bool, error) {
		info, err := os.Stat(path)
		if err != nil {
			seen = time.Time{}
			return nil, false, err
		}
		if info.ModTime().Equal(seen) && info.Size() == size {
			return nil, false, failed
		}
		seen, size = info.ModTime(), info.Size()
		var m *simmatrix.Matrix
		m, failed = readMatrix(path)
		return m, failed == nil, failed
	}
}
