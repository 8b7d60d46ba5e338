package cli

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/store"
)

// Read calls read with the content of a file. Errors name the file.
func Read[T any](ctx context.Context, path string, read func(r io.Reader) (T, error)) (result T, err error) {
	r, err := configs.Open(ctx, path)
	if err != nil {
		return result, err
	}
	defer r.Close() // nothing was written
	if result, err = read(r); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return result, err
}

// ReadMatrix reads a matrix file.
func ReadMatrix(ctx context.Context, path string) (*simmatrix.Matrix, error) {
	return Read(ctx, path, func(r io.Reader) (*simmatrix.Matrix, error) {
		return simmatrix.Decode(bufio.NewReaderSize(r, 1<<20))
	})
}

// WriteMatrix writes a matrix file.
func WriteMatrix(ctx context.Context, path string, m *simmatrix.Matrix) error {
	return Write(ctx, path, func(w io.Writer) error { return simmatrix.Encode(w, m) })
}

// Stdout as --out means standard output.
const Stdout = "-"

// Write is [Replace] for a file with the permissions of the umask.
func Write(ctx context.Context, path string, write func(w io.Writer) error) error {
	return Replace(ctx, path, 0o666, write)
}

// Replace writes a file so that path never holds half of it: it writes a file
// next to it, which replaces path at the end or is removed on failure. It
// replaces nothing once ctx has ended. An existing file keeps its mode; a new
// one gets mode less the umask.
func Replace(ctx context.Context, path string, mode fs.FileMode, write func(w io.Writer) error) (err error) {
	path = resolve(path)
	before, err := os.Stat(path)
	if err == nil {
		mode = before.Mode().Perm()
	}
	f, err := createBeside(path, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	err = errors.Join(write(w), w.Flush())
	if before != nil {
		err = errors.Join(err, f.Chmod(mode)) // the umask may have taken from it
	}
	if err = errors.Join(err, f.Sync(), f.Close(), ctx.Err()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// resolve returns the file behind the links of path.
func resolve(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	return path
}

// createBeside creates a file with mode less the umask in path's folder. Its
// name begins with a dot and the first bytes of path's.
func createBeside(path string, mode fs.FileMode) (*os.File, error) {
	const most = 40 // keeps the name short enough where path's is
	dir, name := filepath.Split(path)
	name = strings.ToValidUTF8(name[:min(len(name), most)], "")
	name = filepath.Join(dir, "."+name+"."+rand.Text())
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode) //nolint:gosec // the user names the folder
}

// CheckTarget returns why a file could not be written to path, so that it is
// known before the work begins.
func CheckTarget(path string) error {
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("%s: %s is no folder", path, folder)
	}
	switch info, err := os.Stat(path); {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is there and is no regular file", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err := createBeside(resolve(path), 0o600)
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// CheckOut is [CheckTarget] for the file of --out.
func CheckOut(path string) error {
	if path == "" {
		return errors.New("give --out FILE")
	}
	return CheckTarget(path)
}

// Same reports whether two paths name the same file, which need not exist.
func Same(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(infoA, infoB)
	}
	absA, errA := filepath.Abs(a)
	absB, errB := filepath.Abs(b)
	return errA == nil && errB == nil && absA == absB
}

// ErrNotRegular says that a file cannot be followed, such as a pipe.
var ErrNotRegular = errors.New("not a regular file: a matrix is followed in a file, not in a folder, pipe, socket or device")

// Follow returns a loader that reads the matrix file again when its time or
// size has changed. It never opens anything but a regular file.
func Follow(path string) store.Loader {
	var seen time.Time
	var size int64
	var failed error
	return func(ctx context.Context) (*simmatrix.Matrix, time.Time, error) {
		info, err := os.Stat(path)
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s: %w", path, ErrNotRegular)
		}
		if err != nil {
			seen = time.Time{}
			return nil, time.Time{}, err
		}
		if info.ModTime().Equal(seen) && info.Size() == size {
			return nil, time.Time{}, failed
		}
		seen, size = info.ModTime(), info.Size()
		var m *simmatrix.Matrix
		m, failed = ReadMatrix(ctx, path)
		if ctx.Err() != nil {
			seen = time.Time{} // nothing about the file
		}
		if failed != nil {
			return nil, time.Time{}, failed
		}
		return m, seen, nil
	}
}
