package proxy

import (
	"log/slog"
	"sync"
	"time"
)

// tokenLogEvery is the least time between two lines about wrong tokens.
const tokenLogEvery = time.Minute

// wrongTokens logs that the admin port was sent wrong tokens: the first one at
// once, and then once a minute how many more there were.
type wrongTokens struct {
	log *slog.Logger

	mu     sync.Mutex
	count  int         // since the last line
	from   string      // who sent the last one
	timer  *time.Timer // until there may be another line; nil where there may be one now
	closed bool
}

// note counts a wrong token that an address sent.
func (w *wrongTokens) note(from string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count, w.from = w.count+1, from
	if w.timer == nil {
		w.write()
	}
}

// write logs what was counted, and writes again in a minute; with nothing
// counted it waits for the next one. The lock is held.
func (w *wrongTokens) write() {
	if w.timer = nil; w.count == 0 {
		return
	}
	w.log.Warn("wrong tokens on the admin port", "count", w.count, "last_from", w.from)
	if w.count = 0; w.closed {
		return
	}
	w.timer = time.AfterFunc(tokenLogEvery, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.write()
	})
}

// close logs what was counted since the last line.
func (w *wrongTokens) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.write()
}
