package trial

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/akin-search/akin/evaluate/clicks"
)

// A counter counts what became of lines.
type counter struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counter) count(result string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[result]++
}

func (c *counter) get(result string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[result]
}

func TestImpressionsAreAppendedAsLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pages.jsonl")
	for range 2 { // as after a reload
		var c counter
		l, err := OpenLog(path, nil, c.count)
		if err != nil {
			t.Fatal(err)
		}
		l.Add(clicks.Impression{
			QueryID: "1", Query: "a\n<b>" + strings.Repeat("é", maxText), Shown: []string{"d1"}, Trial: "t", Between: []string{"a", "b"}, Arms: []string{"a"},
			Clicked: []string{},
		})
		l.Close()
		l.Close()
		if c.get(Written) != 1 {
			t.Errorf("counted %v", c.of)
		}
	}
	data, err := os.ReadFile(path)
	info, _ := os.Stat(path)
	if err != nil || strings.Count(string(data), "\n") != 2 || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: %s", err, info.Mode(), data)
	}
	if j := judge(t, string(data), `{"query_id":"1","clicked":["d"]}`); j.Unreadable > 0 || len(j.Preferences) != 1 {
		t.Errorf("%+v", j)
	}
}

func TestWhatIsNoRegularFileIsRefused(t *testing.T) {
	for _, path := range []string{t.TempDir(), os.DevNull, filepath.Join(t.TempDir(), "none", "pages.jsonl")} {
		if l, err := OpenLog(path, nil, nil); err == nil {
			l.Close()
			t.Errorf("%s is taken", path)
		}
	}
}

// A disk is a file that a test can stop.
type disk struct {
	release chan error
	lines   []string
}

func (d *disk) Write(p []byte) (int, error) {
	d.lines = append(d.lines, string(p))
	return len(p), <-d.release
}

func (*disk) Close() error { return nil }

func TestASlowDiskDropsLinesAndHoldsNobodyUp(t *testing.T) {
	var c counter
	d := &disk{release: make(chan error)}
	l := newLog(d, maxLog, nil, c.count)
	for range 2*maxWaiting + 10 {
		l.Add(clicks.Impression{QueryID: "1"})
	}
	if c.get(Dropped) < maxWaiting {
		t.Errorf("%v", c.of)
	}
	close(d.release)
	l.Close()
	if c.get(Written)+c.get(Dropped) != 2*maxWaiting+10 {
		t.Errorf("counted %v", c.of)
	}
	var none *Log
	none.Add(clicks.Impression{})
	none.Close()
}

func TestAHangingDiskDoesNotHoldTheEndUp(t *testing.T) {
	var c counter
	d := &disk{release: make(chan error)}
	l := newLog(d, maxLog, nil, c.count)
	l.Add(clicks.Impression{QueryID: "1"})
	l.Close()
	close(d.release)
	select {
	case <-l.ended:
	case <-time.After(20 * time.Second):
		t.Error("the writer does not end with the disk's answer")
	}
}

func TestAFullDiskOrFileLosesLinesOnly(t *testing.T) {
	var c counter
	d := &disk{release: make(chan error, 2)}
	d.release <- errors.New("no space left")
	d.release <- nil
	l := newLog(d, 150, nil, c.count)
	for range 3 {
		l.Add(clicks.Impression{QueryID: "1"})
	}
	l.Close()
	if len(d.lines) != 2 || !strings.HasPrefix(d.lines[1], "\n{") || c.get(Failed) != 1 || c.get(Written) != 1 || c.get(Dropped) != 1 {
		t.Errorf("%v, %q", c.of, d.lines)
	}
}

var _ io.WriteCloser = (*disk)(nil)
