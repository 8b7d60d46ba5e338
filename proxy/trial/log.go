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

	"github.com/akin-search/akin/internal/recovery"
)

// An Impression is a page that somebody saw, a line of the log.
type Impression struct {
	QueryID string   `json:"query_id"`
	Query   string   `json:"query"`
	Shown   []string `json:"shown"` // ids of documents, best first
	// Trial is the name of the trial, Between those of its two arms, and Arms that
	// of the one that each of Shown counts for, "" for neither; all are empty where
	// the page is of one arm.
	Trial   string   `json:"trial,omitempty"`
	Between []string `json:"between,omitempty"`
	Arms    []string `json:"arms,omitempty"`
	Clicked []string `json:"clicked"`
}

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

// A Log appends impressions to a file in the background: who adds one never
// waits. Its methods may be called at the same time; a nil Log takes nothing.
type Log struct {
	lines chan []byte
	quit  func()
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
	over := make(chan struct{})
	l := &Log{lines: make(chan []byte, maxWaiting), quit: sync.OnceFunc(func() { close(over) }), ended: make(chan struct{}), count: count}
	go func() {
		defer close(l.ended)
		_ = guard.Do("logging impressions", func() error {
			l.run(file, room, over)
			return file.Close()
		})
	}()
	return l
}

// run writes lines until there are no more after the end.
func (l *Log) run(file io.Writer, room int64, over <-chan struct{}) {
	torn := false
	write := func(line []byte) {
		if room -= int64(len(line)); room < 0 {
			l.count(Dropped)
			return
		}
		if torn {
			line = append([]byte{'\n'}, line...)
		}
		result := Written
		if _, err := file.Write(line); err != nil {
			result = Failed
		}
		torn = result == Failed
		l.count(result)
	}
	for {
		select {
		case line := <-l.lines:
			write(line)
		case <-over:
			for len(l.lines) > 0 {
				write(<-l.lines)
			}
			return
		}
	}
}

// Add has an impression written, unless too many wait.
func (l *Log) Add(i Impression) {
	if l == nil {
		return
	}
	if len(i.Query) > maxText {
		i.Query = strings.ToValidUTF8(i.Query[:maxText], "")
	}
	line, _ := json.Marshal(i) // texts always encode
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
	l.quit()
	select {
	case <-l.ended:
	case <-time.After(closing): // the disk hangs, and with it that goroutine
	}
}
