package report

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

const line = `{"query_id":"1"}` + "\n"

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

// A disk is a file that a test can stop.
type disk struct {
	release chan error
	lines   []string
}

func (d *disk) Write(p []byte) (int, error) {
	d.lines = append(d.lines, string(p))
	return len(p), <-d.release
}

func TestASlowDiskDropsLinesAndHoldsNobodyUp(t *testing.T) {
	var c counter
	d := &disk{release: make(chan error)}
	l := NewWriter(d, nil, c.count)
	for range 2*maxWaiting + 10 {
		io.WriteString(l, line)
	}
	check.That(t, c.get(Dropped) >= maxWaiting, "%v", c.of)
	close(d.release)
	l.Close()
	check.Equal(t, 2*maxWaiting+10, c.get(Written)+c.get(Dropped), c.of)
}

func TestAHangingDiskDoesNotHoldTheEndUp(t *testing.T) {
	var c counter
	d := &disk{release: make(chan error)}
	l := NewWriter(d, nil, c.count)
	io.WriteString(l, line)
	l.Close()
	close(d.release)
	select {
	case <-l.ended:
	case <-time.After(20 * time.Second):
		t.Error("the writer does not end with the disk's answer")
	}
}

func TestAFullDiskLosesLinesOnly(t *testing.T) {
	var c counter
	d := &disk{release: make(chan error, 2)}
	d.release <- errors.New("no space left")
	d.release <- nil
	l := NewWriter(d, nil, c.count)
	for range 2 {
		io.WriteString(l, line)
	}
	l.Close()
	check.That(t, len(d.lines) == 2 && strings.HasPrefix(d.lines[1], "\n{") && c.get(Failed) == 1 && c.get(Written) == 1, "%v, %q", c.of, d.lines)
}
