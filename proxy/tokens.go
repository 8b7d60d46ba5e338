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

	mu    sync.Mutex
	count int       // since the last line
	from  string    // who sent the last one
	next  time.Time // when there may be another line
}

// note counts a wrong token that an address sent.
func (w *wrongTokens) note(from string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count, w.from = w.count+1, from
	if wait := time.Until(w.next); wait <= 0 {
		w.write()
	} else if w.count == 1 {
		time.AfterFunc(wait, w.flush)
	}
}

// flush logs what was counted since the last line.
func (w *wrongTokens) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write()
}

// write is flush while the lock is held.
func (w *wrongTokens) write() {
	if w.count > 0 {
		w.log.Warn("wrong tokens on the admin port", "count", w.count, "last_from", w.from)
		w.count, w.next = 0, time.Now().Add(tokenLogEvery)
	}
}
