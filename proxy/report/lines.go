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
	Dropped = "dropped" // too many wait, or there is no more room
	Failed  = "failed"  // it could not be written
)

// Options say where lines go.
type Options struct {
	// To gets each line in one Write, and is closed at the end.
	To io.WriteCloser
	// Room is how many bytes are written at most.
	Room int64
	// Guard recovers what panics; what is done is What.
	Guard *recovery.Guard
	What  string
	// Count is called with what became of each line, by several goroutines.
	Count func(result string)
}

// A Writer takes lines. Its methods may be called at the same time; a nil
// Writer takes nothing.
type Writer struct {
	mu    sync.Mutex  // held to add and to close
	lines chan []byte // nil once it is closed
	ended chan struct{}
	count func(result string)
}

// NewWriter returns a writer, which [Writer.Close] ends.
func NewWriter(o Options) *Writer {
	lines := make(chan []byte, maxWaiting)
	w := &Writer{lines: lines, ended: make(chan struct{}), count: o.Count}
	go func() {
		defer close(w.ended)
		_ = o.Guard.Do(o.What, func() error {
			var torn []byte
			for line := range lines {
				result := Dropped
				if o.Room -= int64(len(line)); o.Room >= 0 {
					_, err := o.To.Write(append(torn, line...))
					torn, result = nil, Written
					if err != nil {
						torn, result = []byte{'\n'}, Failed
					}
				}
				o.Count(result)
			}
			return o.To.Close()
		})
	}()
	return w
}

// Write has a line written, which ends with a line break, unless too many wait.
// It returns no error.
func (w *Writer) Write(line []byte) (int, error) {
	if w == nil {
		return len(line), nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.lines <- bytes.Clone(line):
	default:
		w.count(Dropped)
	}
	return len(line), nil
}

// Close writes what waits, for a second at most, and closes what it writes to.
func (w *Writer) Close() {
	if w == nil {
		return
	}
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
