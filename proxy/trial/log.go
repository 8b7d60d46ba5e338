package trial

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/akin-search/akin/evaluate/clicks"
	"github.com/akin-search/akin/internal/lines"
	"github.com/akin-search/akin/internal/recovery"
)

// maxText is how many bytes are kept of a text in a line, and maxLog the size
// of the file: a million pages and more.
const maxText, maxLog = 512, 1 << 30

// A Log appends interleaved pages to a file in the background: who adds one
// never waits. Its methods may be called at the same time; a nil Log takes
// nothing.
type Log struct{ to *lines.Writer }

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
	return &Log{lines.New(lines.Options{To: file, Room: maxLog - old.Size(), Guard: guard, What: "logging impressions", Count: count})}, nil
}

// Add has a page written, unless too many wait.
func (l *Log) Add(i clicks.Impression) {
	if l == nil {
		return
	}
	if len(i.Query) > maxText {
		i.Query = strings.ToValidUTF8(i.Query[:maxText], "")
	}
	line, _ := json.Marshal(i)            // texts always encode
	_, _ = l.to.Write(append(line, '\n')) // it returns no error
}

// Close writes what waits, for a second at most, and closes the file.
func (l *Log) Close() {
	if l != nil {
		l.to.Close()
	}
}
