//go:build unix

package configs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

// readAll reads a whole file, and fails the test where that does not end.
func readAll(ctx context.Context, t *testing.T, path string) (string, error) {
	t.Helper()
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		f, err := Open(ctx, path)
		if err != nil {
			done <- result{nil, err}
			return
		}
		data, err := io.ReadAll(f)
		f.Close()
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return string(r.data), r.err
	case <-time.After(20 * time.Second):
		t.Fatal("it waits")
		return "", nil
	}
}

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p")
	check.OK(t, syscall.Mkfifo(path, 0o600))
	return path
}

func TestANamedPipeWithoutAWriterEndsWithTheContext(t *testing.T) {
	for name, open := range map[string]bool{"nobody": false, "a silent writer": true, "nobody, through a link": false} {
		path := fifo(t)
		if strings.Contains(name, "link") {
			link := path + ".link"
			check.OK(t, os.Symlink(path, link))
			path = link
		}
		if open {
			w := check.Got(os.OpenFile(path, os.O_RDWR, 0))(t)
			defer w.Close()
		}
		cause := errors.New("the end")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, cause)
		check.Error(t, cause, check.ErrOf(readAll(ctx, t, path)), name)
		cancel()
	}
}

func TestANamedPipeIsReadFromItsLateWriter(t *testing.T) {
	path := fifo(t)
	want := strings.Repeat("0123456789", 20_000) // more than a pipe holds
	go func() {
		for t.Context().Err() == nil { // A pipe cannot be opened so before a reader is there.
			w, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err == nil {
				io.WriteString(w, want)
				w.Close()
				return
			}
			time.Sleep(time.Millisecond) // No event tells that the reader is there.
		}
	}()
	check.Equal(t, want, check.Got(readAll(t.Context(), t, path))(t))
}

func TestProcessSubstitutionsAreRead(t *testing.T) {
	for _, want := range []string{"", "x", "content"} {
		r, w, err := os.Pipe()
		check.OK(t, err)
		go func() {
			time.Sleep(10 * time.Millisecond) // The reader has to come first, and no event tells that it waits.
			io.WriteString(w, want)
			w.Close()
		}()
		path := fmt.Sprintf("/dev/fd/%d", r.Fd())
		if got, err := readAll(t.Context(), t, path); err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
		runtime.KeepAlive(r)
		r.Close()
	}
}

func TestFilesAreReadAndMissingOnesReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	check.Error(t, os.ErrNotExist, check.ErrOf(readAll(t.Context(), t, path)))
	for _, want := range []string{"", "content"} {
		check.OK(t, os.WriteFile(path, []byte(want), 0o600))
		check.Equal(t, want, check.Got(readAll(t.Context(), t, path))(t))
	}
}
