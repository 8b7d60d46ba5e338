// Package connections bounds how many connections a listener keeps open.
package connections

import (
	"container/list"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// ShortSilence is how long a connection may always be silent: enough for a TLS
	// handshake and a request from another continent.
	ShortSilence = 500 * time.Millisecond
	// LateAfter is how long a client with more than its share of the connections
	// may keep one waiting.
	LateAfter = time.Second
	// lookEvery is how long nobody has more than his share once that was seen: to
	// look at all connections for each request that ends would hold up the others.
	lookEvery = LateAfter / 10
	// maxWaiting is how many requests over HTTP/2 may wait for a place, if there
	// are not more places than that.
	maxWaiting = 1000
	// warnEvery is how often the log says that all connections are in use, and that
	// a client has more than its share.
	warnEvery = time.Minute
)

// A Listener keeps a bounded number of connections open, and of requests on
// them: over HTTP/2 each one beside the first of its connection takes the place
// of a connection. Where that is reached, a new
// one takes the place of the connection that has been silent for longest, and
// waits where requests are in flight on all of them. Clients keep connections
// idle for minutes: new ones left in the backlog would be shut out by those.
//
// A request keeps akin waiting while its body arrives, or while its client does
// not read. One client may have half of all connections
// do that, each of n clients 1/(n+1): above that the oldest request of the
// client with the most of them makes room.
type Listener struct {
	net.Listener

	open   prometheus.Gauge
	closed prometheus.Counter  // those that made room
	log    func() *slog.Logger // that of the configuration in use

	end   chan struct{}
	once  sync.Once
	freed chan struct{} // has room for one: a connection went, or fell silent

	waiting atomic.Int64 // requests over HTTP/2

	mu sync.Mutex
	places
	full   time.Time // when the log said that all are in use
	greedy time.Time // and that a client has more than its share
}

// places are the connections of a listener.
type places struct {
	max    int // 0 is no bound
	count  int
	silent list.List // of *connection, the longest silent one first
	active list.List // of *connection, the one with the oldest request first
	fair   time.Time // when no client was seen to have more than its share
}

// A connection is one that a client has opened.
type connection struct {
	net.Conn

	of     *Listener
	client string
	freed  chan struct{} // has room for one: no request has the connection's own place
	write  atomic.Int64  // when the write in progress began, in Unix nanoseconds, 0 for none

	mu    sync.Mutex
	waits map[any]int64 // since when bodies arrive, and answers wait to be read over HTTP/2

	// Guarded by the listener's lock:
	closed bool
	list   *list.List    // silent, active, or nil
	place  *list.Element // in list
	since  time.Time     // when it came into list

	requests int // that have a place over HTTP/2, one of them that of the connection
}

// Listen returns l with at most limit connections; 0 is no bound. closed counts
// those that made room; log returns the log in use.
func Listen(l net.Listener, limit int, open prometheus.Gauge, closed prometheus.Counter, log func() *slog.Logger) *Listener {
	return &Listener{
		Listener: l, open: open, closed: closed, log: log, end: make(chan struct{}), freed: make(chan struct{}, 1),
		places: places{max: limit},
	}
}

// Accept returns the next connection, when there is room for it.
func (l *Listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if !l.awaitPlace(nil, l.end) {
		_ = accepted.Close() // nothing was read
		return nil, net.ErrClosed
	}
	c := &connection{Conn: accepted, of: l, client: Client(accepted.RemoteAddr().String()), waits: map[any]int64{}, freed: make(chan struct{}, 1)}
	l.open.Inc()
	l.State(c, http.StateIdle)
	return c, nil
}

// awaitPlace takes a place as soon as there is one, for a request of a
// connection or, with nil, for a connection. It reports false where end comes
// first.
func (l *Listener) awaitPlace(c *connection, end <-chan struct{}) bool {
	var own <-chan struct{}
	if c != nil {
		own = c.freed
	}
	for {
		victim, wait, ok := l.takePlace(c)
		if ok {
			return true
		}
		if victim != nil {
			l.closed.Inc()
			_ = victim.Close() // its client does nothing
			continue
		}
		select {
		case <-l.freed:
		case <-own:
		case <-time.After(wait):
		case <-end:
			return false
		}
	}
}

// enter begins a request over HTTP/2, as soon as there is a place for it;
// [connection.leave] ends it. It reports false where its client left before, or
// too many wait: each keeps its headers in memory.
func (c *connection) enter(ctx context.Context) bool {
	l := c.of
	if l.waiting.Add(1) > int64(max(l.max, maxWaiting)) {
		l.waiting.Add(-1)
		return false
	}
	defer l.waiting.Add(-1)
	return l.awaitPlace(c, ctx.Done())
}

// leave gives the place of a request back: to its connection, if that has no
// other one.
func (c *connection) leave() {
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.requests--; c.requests > 0 {
		l.count--
		l.wake()
	} else {
		signal(c.freed)
	}
}

// takePlace counts one more connection, or request of one, or returns which
// connection to close for that, or how long to wait at most.
func (l *Listener) takePlace(c *connection) (victim *connection, wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := c != nil && c.requests == 0
	if own || l.max == 0 || l.count < l.max {
		if c != nil {
			c.requests++
		}
		if !own {
			l.count++
		}
		if l.count < l.max {
			l.wake() // the next one that waits
		}
		return nil, 0, true
	}
	now := time.Now()
	if isDue(&l.full, now) {
		l.log().Warn("all connections are taken: those that are idle are closed for new ones", "listen.max_connections", l.max)
	}
	wait = ShortSilence
	if first := l.silent.Front(); first != nil {
		victim = first.Value.(*connection)
		wait -= now.Sub(victim.since)
	}
	if wait > 0 {
		if victim = l.unfair(now); victim == nil {
			return nil, wait, false
		}
		if isDue(&l.greedy, now) {
			l.log().Warn("a client keeps more than its share of all connections waiting: its oldest request is cut off for a new one",
				"client", victim.client, "listen.max_connections", l.max)
		}
	}
	victim.move(nil)
	return victim, 0, false
}

// isDue reports whether to warn again, and notes that.
func isDue(last *time.Time, now time.Time) bool {
	due := now.Sub(*last) > warnEvery
	if due {
		*last = now
	}
	return due
}

// unfair returns the connection with the oldest request of the client that has
// most of them waiting, nil where no client has more than its share.
func (p *places) unfair(now time.Time) *connection {
	if now.Sub(p.fair) < lookEvery {
		return nil
	}
	late := now.Add(-LateAfter).UnixNano()
	oldest, count := map[string]*connection{}, map[string]int{}
	most := ""
	for e := p.active.Front(); e != nil; e = e.Next() {
		c := e.Value.(*connection)
		waiting := c.waiting(late)
		if waiting == 0 {
			continue
		}
		if count[c.client] == 0 {
			oldest[c.client] = c
		}
		if count[c.client] += waiting; count[c.client] > count[most] {
			most = c.client
		}
	}
	if count[most]*(len(count)+1) <= p.max {
		p.fair = now
		return nil
	}
	return oldest[most]
}

// waiting returns how many requests keep akin waiting since a time, or longer.
func (c *connection) waiting(since int64) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, began := range c.waits {
		if began <= since {
			n++
		}
	}
	if write := c.write.Load(); n == 0 && write != 0 && write <= since {
		n = 1
	}
	return n
}

// begin notes that akin waits for what, until [connection.over].
func (c *connection) begin(what any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits[what] = time.Now().UnixNano()
}

// over notes that akin does not wait for what, or with nil for anything.
func (c *connection) over(what any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if what == nil {
		clear(c.waits)
	}
	delete(c.waits, what)
}

// Close ends the listening. Connections stay open.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.end) })
	return l.Listener.Close()
}

// State is for [http.Server.ConnState].
func (l *Listener) State(conn net.Conn, state http.ConnState) {
	c := of(conn)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateNew, http.StateClosed: // known to Accept and Close
	case http.StateIdle:
		c.over(nil)
		c.move(&l.silent)
		l.wake()
	case http.StateActive:
		c.move(&l.active)
	case http.StateHijacked:
		c.move(nil)
	}
}

// of returns the connection below TLS.
func of(conn net.Conn) *connection {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	return conn.(*connection)
}

// move puts c at the end of a list, nil for none, unless it is closed. The lock
// is held.
func (c *connection) move(to *list.List) {
	if c.list != nil {
		c.list.Remove(c.place)
	}
	if c.list = to; c.closed {
		c.list = nil
	}
	if c.list != nil {
		c.since, c.place = time.Now(), c.list.PushBack(c)
	}
}

// wake wakes one that waits for room.
func (l *Listener) wake() { signal(l.freed) }

func signal(freed chan<- struct{}) {
	select {
	case freed <- struct{}{}:
	default:
	}
}

// Close closes the connection and gives its place to the next one.
func (c *connection) Close() error {
	err := c.Conn.Close()
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.closed {
		c.move(nil)
		c.closed = true
		l.open.Dec()
		l.count--
		l.wake()
	}
	return err
}

// Write is [net.Conn.Write]. It notes when it began.
func (c *connection) Write(p []byte) (int, error) {
	c.write.Store(time.Now().UnixNano())
	defer c.write.Store(0)
	return c.Conn.Write(p)
}

// connectionKey is the key of a connection in the contexts of its requests.
type connectionKey struct{}

// Context is for [http.Server.ConnContext] where [Handler] is used.
func Context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, of(conn))
}

// Handler is h, and notes while bodies of requests arrive, and over HTTP/2
// while answers wait to be read: there a client can stop the answer to one
// request.
func Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connectionKey{}).(*connection)
		several := ok && r.ProtoMajor > 1
		var answered *answer
		if several {
			if !c.enter(r.Context()) {
				panic(http.ErrAbortHandler) // resets the stream
			}
			defer c.leave()
			answered = &answer{ResponseWriter: w, of: c}
			w = answered
		}
		if ok && r.ContentLength != 0 {
			arriving := &body{r.Body, c}
			c.begin(arriving)
			if several {
				defer c.over(arriving) // what is left of it is not read
			}
			r.Body = arriving
		}
		h.ServeHTTP(w, r)
		if several {
			answered.end()
		}
	})
}

// An answer is one over HTTP/2. It notes while it waits for its client.
type answer struct {
	http.ResponseWriter

	of      *connection
	pending bool // something is written that is not flushed
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Write is that of the answer.
func (a *answer) Write(p []byte) (int, error) {
	a.of.begin(a)
	defer a.of.over(a)
	a.pending = true
	return a.ResponseWriter.Write(p)
}

// FlushError is that of the answer.
func (a *answer) FlushError() error {
	a.of.begin(a)
	defer a.of.over(a)
	a.pending = false
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// end sends what is left. net/http does that, too, but only when the request
// has left its place and nobody notes that it waits.
func (a *answer) end() {
	if a.pending {
		_ = a.FlushError() // the client may be gone
	}
}

// A body is that of a request while it arrives.
type body struct {
	io.ReadCloser

	of *connection
}

// Read is that of the body. It notes its end.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.of.over(b)
	}
	return n, err
}

// Client returns the host of an address, of IPv6 the network of 64 bits that
// one customer has.
func Client(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	host := at.Addr().Unmap().WithZone("")
	if host.Is4() {
		return host.String()
	}
	network, _ := host.Prefix(64) // a length that every address has
	return network.String()
}
