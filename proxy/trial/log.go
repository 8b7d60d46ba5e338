package trial

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/akin-search/akin/evaluate/clicks"
	"github.com/akin-search/akin/internal/recovery"
)

const (
	// maxWaiting is how many lines wait for the disk, maxText what is kept of a
	// text in one, and maxLog the size of a file: a million pages and more.
	maxWaiting, maxText, maxLog = 512, 512, 1 << 30
	// closing is how long the last lines have.
	closing = time.Second
)

// What became of a line.
const (
	Written = "written"
	Dropped = "dropped" // too many wait for the disk, or the file is full
	Failed  = "failed"  // it could not be written
)

// A Log appends interleaved pages to a file in the background: who adds one
// never waits. Its methods may be called at the same time; a nil Log takes
// nothing.
type Log struct {
	mu    sync.Mutex  // held to add and to close
	lines chan []byte // nil once it is closed
	ended chan struct{}
	count func(result string)
}

// OpenLog opens a regular file, and creates one that is not there. count is
// called with what became of each line, by several goroutines.
func OpenLog(path string, guard *recovery.Guard, count func(result string)) (*Log, error) {
	if old, err := os.Stat(path); err == nil && !old.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // The operator's choice.
	if err != nil {
		return nil, err
	}
	old, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return newLog(file, maxLog-old.Size(), guard, count), nil
}

// newLog returns a log that writes to file up to room bytes.
func newLog(file io.WriteCloser, room int64, guard *recovery.Guard, count func(result string)) *Log {
	lines := make(chan []byte, maxWaiting)
	l := &Log{lines: lines, ended: make(chan struct{}), count: count}
	go func() {
		defer close(l.ended)
		_ = guard.Do("logging impressions", func() error {
			var torn []byte
			for line := range lines {
				result := Dropped
				if room -= int64(len(line)); room >= 0 {
					_, err := file.Write(append(torn, line...))
					torn, result = nil, Written
					if err != nil {
						torn, result = []byte{'\n'}, Failed
					}
				}
				count(result)
			}
			return file.Close()
		})
	}()
	return l
}

// Add has a page written, unless too many wait.
func (l *Log) Add(i clicks.Impression) {
	if l == nil {
		return
	}
	if len(i.Query) > maxText {
		i.Query = strings.ToValidUTF8(i.Query[:maxText], "")
	}
	line, _ := json.Marshal(i) // texts always encode
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.lines <- append(line, '\n'):
	default:
		l.count(Dropped)
	}
}

// Close writes what waits, for a second at most, and closes the file.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	if l.lines != nil {
		close(l.lines)
	}
	l.lines = nil
	l.mu.Unlock()
	select {
	case <-l.ended:
	case <-time.After(closing): // the disk hangs, and with it that goroutine
	}
}
