package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	LockWait    = 10 * time.Second      // for another command that edits the same file
	lockPoll    = 10 * time.Millisecond // between two looks
	maxLockName = 200                   // bytes; files whose names begin with the same ones share a lock
)

// Lock keeps others that call it from the file until unlock is called, by a
// file beside it that only one can make. It waits for a while, or until ctx
// ends. A process that is killed leaves its lock behind.
func Lock(ctx context.Context, path string, wait time.Duration) (unlock func() error, err error) {
	dir, name := filepath.Split(resolve(path)) // so that all links to a file have one lock
	lock := filepath.Join(dir, "."+name[:min(len(name), maxLockName)]+".lock")
	for deadline := time.Now().Add(wait); ; {
		f, err := os.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // beside the file that the user names
		if err == nil {
			return func() error { return os.Remove(lock) }, f.Close()
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s is being edited by another akin, as %s says: try again, or remove that file if no other akin is running", path, lock)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}
