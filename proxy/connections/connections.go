// Package connections bounds how many connections a listener keeps open.
package connections

import (
	"container/list"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// ShortSilence is how long a connection may always be silent: enough for a TLS
	// handshake and a request from another continent.
	ShortSilence = 500 * time.Millisecond
	// fullEvery is how often the log says that all connections are in use.
	fullEvery = time.Minute
)

// A Listener keeps a bounded number of connections open. Where that is reached,
// a new one takes the place of the one that has been silent for longest, and
// waits where requests are in flight on all of them. Clients keep connections
// idle for minutes: new ones left in the backlog would be shut out by those.
type Listener struct {
	net.Listener

	max    int // 0 is no bound
	open   prometheus.Gauge
	closed prometheus.Counter  // those that made room
	log    func() *slog.Logger // that of the configuration in use

	end   chan struct{}
	once  sync.Once
	freed chan struct{} // has room for one: a connection went, or fell silent

	mu     sync.Mutex
	count  int
	silent list.List // of *connection, the longest silent one first
	warned time.Time // when the log said that all are in use
}

// A connection is one that a client has opened.
type connection struct {
	net.Conn

	of    *Listener
	once  sync.Once
	place *list.Element // in silent, nil while a request is in flight
	since time.Time     // when it fell silent
}

// Listen returns l with at most limit connections; 0 is no bound. closed counts
// those that made room; log returns the log in use.
func Listen(l net.Listener, limit int, open prometheus.Gauge, closed prometheus.Counter, log func() *slog.Logger) *Listener {
	return &Listener{
		Listener: l, max: limit, open: open, closed: closed, log: log, end: make(chan struct{}), freed: make(chan struct{}, 1),
	}
}

// Accept returns the next connection, when there is room for it.
func (l *Listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for {
		victim, wait, ok := l.takePlace()
		if ok {
			break
		}
		if victim != nil {
			l.closed.Inc()
			_ = victim.Close() // nobody reads or writes it
			continue
		}
		select {
		case <-l.freed:
		case <-time.After(wait):
		case <-l.end:
			_ = accepted.Close() // nothing was read
			return nil, net.ErrClosed
		}
	}
	c := &connection{Conn: accepted, of: l}
	l.open.Inc()
	l.State(c, http.StateIdle)
	return c, nil
}

// takePlace counts one more connection, or returns which one to close for that,
// or how long to wait at most.
func (l *Listener) takePlace() (victim *connection, wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.max == 0 || l.count < l.max {
		l.count++
		return nil, 0, true
	}
	if now := time.Now(); now.Sub(l.warned) > fullEvery {
		l.warned = now
		l.log().Warn("all connections are taken: those that are idle are closed for new ones", "listen.max_connections", l.max)
	}
	first := l.silent.Front()
	if first == nil {
		return nil, ShortSilence, false
	}
	c := first.Value.(*connection)
	if silence := time.Since(c.since); silence < ShortSilence {
		return nil, ShortSilence - silence, false
	}
	l.remove(c)
	return c, 0, false
}

// Close ends the listening. Connections stay open.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.end) })
	return l.Listener.Close()
}

// State is for [http.Server.ConnState].
func (l *Listener) State(c net.Conn, state http.ConnState) {
	if state == http.StateNew || state == http.StateClosed {
		return // known to Accept and Close
	}
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	client := c.(*connection)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(client)
	if state == http.StateIdle {
		client.since = time.Now()
		client.place = l.silent.PushBack(client)
		l.wake()
	}
}

// remove takes c from the silent ones. The lock is held.
func (l *Listener) remove(c *connection) {
	if c.place != nil {
		l.silent.Remove(c.place)
		c.place = nil
	}
}

// wake wakes the one that waits for room.
func (l *Listener) wake() {
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// Close closes the connection and gives its place to the next one.
func (c *connection) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.of.open.Dec()
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.of.remove(c)
		c.of.count--
		c.of.wake()
	})
	return err
}
