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

// A pipe is a file that may be one. It ends its reads with a context.
type pipe struct {
	*os.File
	ctx  context.Context //nolint:containedctx // a Reader is not given one
	stop func() bool
	// waiting is for the first byte of a named pipe: until somebody opens its
	// other end, reads return the end of the file.
	waiting bool
}

// Open opens a file to read. It never waits; its Read waits for what comes
// through a pipe until ctx ends, and then returns the cause.
func Open(ctx context.Context, path string) (io.ReadCloser, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	// A process substitution is a path below /dev whose writer is there already.
	info, err := os.Stat(path)
	named := err == nil && info.Mode()&fs.ModeNamedPipe != 0 && !strings.HasPrefix(path, "/dev/")
	stop := context.AfterFunc(ctx, func() { _ = f.Close() }) // which ends a Read that waits
	return &pipe{f, ctx, stop, named}, nil
}

// Read is [os.File.Read].
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
