package configs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// askEvery is how often a named pipe is checked for a writer.
const askEvery = 20 * time.Millisecond

// A pipe is a file that may be a pipe. Its reads end with a context.
type pipe struct {
	*os.File
	ctx  context.Context //nolint:containedctx // Read has no context parameter
	stop func() bool
	// waiting says that a named pipe has had no byte yet. Until a writer opens it,
	// reads return the end of the file.
	waiting bool
}

// Open opens a file to read, without waiting. Its Read waits for the data of a
// pipe until ctx ends, and then returns the cause.
func Open(ctx context.Context, path string) (io.ReadCloser, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	// The path of a process substitution is below /dev, and its writer already
	// exists.
	info, err := os.Stat(path)
	named := err == nil && info.Mode()&fs.ModeNamedPipe != 0 && !strings.HasPrefix(path, "/dev/")
	stop := context.AfterFunc(ctx, func() { _ = f.Close() }) // ends a waiting Read
	return &pipe{f, ctx, stop, named}, nil
}

// Read reads like [os.File.Read].
func (f *pipe) Read(p []byte) (int, error) {
	for {
		n, err := f.File.Read(p)
		if f.ctx.Err() != nil {
			return n, context.Cause(f.ctx)
		}
		if !f.waiting || n > 0 || !errors.Is(err, io.EOF) {
			f.waiting = false
			return n, err
		}
		select {
		case <-f.ctx.Done():
		case <-time.After(askEvery):
		}
	}
}

// Close closes the file.
func (f *pipe) Close() error {
	f.stop()
	return f.File.Close()
}
