package report

import (
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/akin-search/akin/internal/recovery"
)

const (
	// maxWaiting is how many lines wait to be written.
	maxWaiting = 512
	// closing is how long the last lines have.
	closing = time.Second
)

// What became of a line.
const (
	Written = "written"
	Dropped = "dropped" // too many wait
	Failed  = "failed"  // it could not be written
)

// A Writer takes lines. Its methods may be called at the same time.
type Writer struct {
	mu    sync.Mutex  // held to add and to close
	lines chan []byte // nil once it is closed
	ended chan struct{}
	count func(result string)
}

// NewWriter returns a writer to an access log, which gets each line in one
// Write; [Writer.Close] ends it. count is called with what became of each line,
// by several goroutines.
func NewWriter(to io.Writer, guard *recovery.Guard, count func(result string)) *Writer {
	lines := make(chan []byte, maxWaiting)
	w := &Writer{lines: lines, ended: make(chan struct{}), count: count}
	go func() {
		defer close(w.ended)
		_ = guard.Do("writing the access log", func() error {
			var torn []byte
			for line := range lines {
				_, err := to.Write(append(torn, line...))
				if torn = nil; err != nil {
					torn = []byte{'\n'}
					count(Failed)
				} else {
					count(Written)
				}
			}
			return nil
		})
	}()
	return w
}

// Write has a line written, which ends with a line break, unless too many wait.
// It returns no error.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.lines <- bytes.Clone(line):
	default:
		w.count(Dropped)
	}
	return len(line), nil
}

// Close writes what waits, for a second at most.
func (w *Writer) Close() {
	w.mu.Lock()
	if w.lines != nil {
		close(w.lines)
	}
	w.lines = nil
	w.mu.Unlock()
	select {
	case <-w.ended:
	case <-time.After(closing): // the disk hangs, and with it that goroutine
	}
}
