package trial

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/akin-search/akin/evaluate/clicks"
	"github.com/akin-search/akin/internal/lines"
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
		if c.get(lines.Written) != 1 {
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

func TestNoLogTakesNothing(*testing.T) {
	var none *Log
	none.Add(clicks.Impression{})
	none.Close()
}
