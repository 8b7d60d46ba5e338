package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

// A logBook keeps what is logged at info and above.
type logBook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBook) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(b, nil)) }

// lines returns the records since the last call, decoded.
func (b *logBook) lines(t *testing.T) (all []map[string]any) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for dec := json.NewDecoder(&b.buf); ; {
		line := map[string]any{}
		if err := dec.Decode(&line); errors.Is(err, io.EOF) {
			b.buf.Reset()
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		delete(line, "time")
		all = append(all, line)
	}
}

func TestFailingOpenIsToldAtOnceThenOnceAMinuteAndAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book logBook
		h := NewHealth(nil, book.logger(), map[string]string{"rows": "look at Redis"})
		fail := func() { h.FailedOpen(t.Context(), "search", "rows", "i") }
		expect := func(when string, want ...map[string]any) {
			t.Helper()
			check.Equal(t, want, book.lines(t), when)
		}
		fail()
		expect("the first", map[string]any{
			"level": "WARN", "msg": "failing open", "what": "search", "cause": "rows", "index": "i", "hint": "look at Redis",
		})
		for range 59 {
			check.Elapse(time.Second)
			fail()
			h.Over(t.Context())
		}
		expect("the first minute")
		check.Elapse(time.Second)
		fail()
		still := map[string]any{"level": "WARN", "msg": "still failing open", "what": "search", "cause": "rows", "count": 60.0}
		expect("after a minute", still)
		h.FailedOpen(t.Context(), "ranking", "budget", "i")
		if lines := book.lines(t); len(lines) != 1 || lines[0]["cause"] != "budget" || lines[0]["what"] != "ranking" {
			t.Errorf("another cause is not logged at once: %v", lines)
		}
		check.Elapse(time.Second)
		fail()
		check.Elapse(failWindow - time.Second)
		h.Over(t.Context())
		still["count"] = 1.0
		expect("the end of a cause, and what was not logged of the other",
			still,
			map[string]any{
				"level": "INFO", "msg": "no longer failing open", "what": "ranking", "cause": "budget", "count": 1.0, "duration": 0.0,
			})
		check.Elapse(time.Second)
		h.Over(t.Context())
		expect("the end", map[string]any{
			"level": "INFO", "msg": "no longer failing open", "what": "search", "cause": "rows", "count": 62.0,
			"duration": float64(61 * time.Second),
		})
		fail()
		if lines := book.lines(t); len(lines) != 1 || lines[0]["msg"] != "failing open" {
			t.Errorf("it is not logged that it begins again: %v", lines)
		}
	})
}

func TestManyFailingSearchesAreADegradationForAMinute(t *testing.T) {
	for _, c := range []struct {
		name           string
		searches, open int
		degraded       bool
	}{
		{"too few to tell", 19, 19, false},
		{"one in ten", 20, 2, false},
		{"more than one in ten", 20, 3, true},
		{"all", 50, 50, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := NewHealth(nil, slog.New(slog.DiscardHandler), nil)
				for k := range c.searches {
					if k < c.open {
						h.FailedOpen(t.Context(), "search", "rows", "i")
					}
					h.Searched(k < c.open)
				}
				check.Elapse(failWindow - time.Second)
				got := h.degraded()
				check.That(t, len(got) > 0 == c.degraded, "%d of %d: %v", c.open, c.searches, got)
				check.That(t, !c.degraded || got[0].Reason == FailingOpen && strings.Contains(got[0].Detail, "rows"), "got %v", got)
				check.Elapse(time.Second)
				if got := h.degraded(); got != nil {
					t.Errorf("a minute later: %v", got)
				}
			})
		})
	}
}

func TestACauseNamedLikeADegradationIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHealth(nil, slog.New(slog.DiscardHandler), nil)
		h.FailedOpen(t.Context(), "search", Credentials, "i")
		got := h.degraded()
		check.That(t, len(got) == 1 && got[0].Reason == Credentials, "got %v", got)
		check.Elapse(failWindow)
		got = h.degraded()
		check.That(t, got == nil, "a minute later: %v", got)
	})
}
