package limits

import (
	"container/list"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// ShortSilence is how long a connection may always be silent: enough for a TLS
	// handshake and a request from another continent.
	ShortSilence = 500 * time.Millisecond
	// LateAfter is how long a client with more than its share of connections may
	// keep one waiting.
	LateAfter = time.Second
	// rebalanceEvery is the pause between two fairness scans: scanning all
	// connections for each request would delay other requests.
	rebalanceEvery = LateAfter / 10
	// warnEvery is the pause between two log lines that all connections are in
	// use, and that a client has more than its share.
	warnEvery = time.Minute
)

// A Listener limits its open connections. At the limit, a new one replaces the
// one that has been silent longest, because clients keep connections idle for
// minutes; if all have requests in flight, it waits.
//
// A request keeps akin waiting while its body arrives, or while its client does
// not read. Each of n clients may do that with 1/(n+1) of all connections:
// beyond that, the oldest request of the client with most of them is cut off.
type Listener struct {
	net.Listener

	open   prometheus.Gauge
	closed prometheus.Counter  // by those that made room
	log    func() *slog.Logger // of the current configuration
	refuse Refuse

	end   chan struct{}
	once  sync.Once
	freed chan struct{} // has room for one: a connection closed or fell silent

	max    int // connections, 0 for no limit
	mu     sync.Mutex
	count  int
	silent list.List // of *connection, longest silent first
	active list.List // of *connection, oldest request first
	fair   time.Time // when no client was found with more than its share
	full   time.Time // last log line that all are in use
	greedy time.Time // last log line that a client has more than its share
}

// A connection is a client's connection.
type connection struct {
	net.Conn

	of     *Listener
	client string
	// write and arriving are when the current write and the request whose body
	// arrives began, in Unix nanoseconds; 0 for none.
	write, arriving atomic.Int64
	// handling says that all writes belong to a request until the next one begins.
	handling atomic.Bool
	// heads has what was read, decrypted if isTLS is true.
	heads heads
	isTLS bool

	// Guarded by the listener's lock:
	closed bool
	list   *list.List    // silent, active, or nil
	place  *list.Element // in list
	since  time.Time     // when it came into list
}

// Listen returns l with at most limit connections, 0 for no limit. closed
// counts those that made room; log returns the current log. All requests must
// go through [Handler].
func Listen(l net.Listener, limit int, open prometheus.Gauge, closed prometheus.Counter, log func() *slog.Logger, refuse Refuse) *Listener {
	return &Listener{
		Listener: l, open: open, closed: closed, log: log, refuse: refuse, end: make(chan struct{}), freed: make(chan struct{}, 1), max: limit,
	}
}

// Accept returns the next connection as soon as there is room.
func (l *Listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if !l.awaitPlace() {
		_ = accepted.Close() // nothing was read
		return nil, net.ErrClosed
	}
	c := &connection{Conn: accepted, of: l, client: Client(accepted.RemoteAddr().String())}
	l.open.Inc()
	l.State(c, http.StateIdle)
	return c, nil
}

// awaitPlace takes a place as soon as there is one, or returns false if the
// listener is closed.
func (l *Listener) awaitPlace() bool {
	for {
		victim, wait, ok := l.takePlace()
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
		case <-time.After(wait):
		case <-l.end:
			return false
		}
	}
}

// takePlace counts one more connection, or returns which one to close for it,
// or how long to wait at most.
func (l *Listener) takePlace() (victim *connection, wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.max == 0 || l.count < l.max {
		l.count++
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

// isDue reports whether to warn again, and records that.
func isDue(last *time.Time, now time.Time) bool {
	due := now.Sub(*last) > warnEvery
	if due {
		*last = now
	}
	return due
}

// unfair returns the connection with the oldest request of the client that has
// most of them waiting, or nil if no client has more than its share.
func (l *Listener) unfair(now time.Time) *connection {
	if now.Sub(l.fair) < rebalanceEvery {
		return nil
	}
	late := now.Add(-LateAfter).UnixNano()
	oldest, count := map[string]*connection{}, map[string]int{}
	most := ""
	for e := l.active.Front(); e != nil; e = e.Next() {
		c := e.Value.(*connection)
		if !c.keepsWaiting(late) {
			continue
		}
		if count[c.client] == 0 {
			oldest[c.client] = c
		}
		if count[c.client]++; count[c.client] > count[most] {
			most = c.client
		}
	}
	if count[most]*(len(count)+1) <= l.max {
		l.fair = now
		return nil
	}
	return oldest[most]
}

// keepsWaiting reports whether akin has waited for the client since that time.
func (c *connection) keepsWaiting(since int64) bool {
	for _, began := range []int64{c.arriving.Load(), c.write.Load()} {
		if began != 0 && began <= since {
			return true
		}
	}
	return false
}

// Close stops listening. Connections stay open.
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
	case http.StateNew, http.StateClosed: // handled by Accept and Close
	case http.StateIdle:
		c.arriving.Store(0)
		c.handling.Store(false)
		c.move(&l.silent)
		l.wake()
	case http.StateActive:
		c.move(&l.active)
	case http.StateHijacked:
		c.heads.lose()
		c.move(nil)
	}
}

// of returns the connection below TLS.
func of(conn net.Conn) *connection {
	if c, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = c.NetConn()
	}
	return conn.(*connection)
}

// move puts c, unless it is closed, at the end of a list; nil for none. The
// caller holds the lock.
func (c *connection) move(to *list.List) {
	if c.list != nil {
		c.list.Remove(c.place)
	}
	c.list = to
	if c.closed {
		c.list = nil
	}
	if c.list != nil {
		c.since, c.place = time.Now(), c.list.PushBack(c)
	}
}

// wake wakes one waiting for room.
func (l *Listener) wake() {
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// Close closes the connection and frees its place.
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

// Read is [net.Conn.Read]. It keeps heads of requests.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.isTLS {
		c.heads.add(p[:n])
	}
	return n, err
}

// Write is [net.Conn.Write]. It records when it began.
func (c *connection) Write(p []byte) (int, error) {
	c.write.Store(time.Now().UnixNano())
	defer c.write.Store(0)
	if _, err := c.Conn.Write(c.answered(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// answered returns p, or a refusal in place of net/http's own.
func (c *connection) answered(p []byte) []byte {
	if c.handling.Load() {
		return p
	}
	return c.of.refuse.inPlaceOf(p)
}

// CloseWrite tells the client that nothing more comes. net/http calls it before
// it closes a connection whose client may still be sending.
func (c *connection) CloseWrite() error {
	if conn, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return conn.CloseWrite()
	}
	return nil
}

// connectionKey is the context key of a request's connection.
type connectionKey struct{}

// Context is for [http.Server.ConnContext], together with [Handler].
func Context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, of(conn))
}

// Handler wraps h for requests of a [Listener] and tracks while a request's
// body arrives. If an answer begins before the body has ended, the connection
// closes after it: the rest must not be taken for the next request (RFC 9112,
// section 11.2), and in full duplex net/http does not notice a broken body.
//
// HTTP/1.0 with Transfer-Encoding is refused (RFC 9112, section 6.1).
//
// h gets a copy of each request with a body, because net/http checks the type
// of the body in its own.
func Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(connectionKey{}).(*connection)
		c.handling.Store(true)
		if fault := c.heads.take(r); fault != "" {
			c.of.refuseHead(w, fault)
			return
		}
		if r.ContentLength == 0 {
			h.ServeHTTP(w, r)
			return
		}
		c.arriving.Store(time.Now().UnixNano())
		b := &body{ReadCloser: r.Body, of: c}
		r = r.WithContext(r.Context())
		r.Body = b
		h.ServeHTTP(&answer{ResponseWriter: w, body: b}, r)
	})
}

// An answer is the answer to a request with a body.
type answer struct {
	http.ResponseWriter

	body  *body
	begun bool
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader closes the connection after an answer that begins early.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK && !a.begun {
		a.begun = true
		if !a.body.ended.Load() {
			a.Header().Set("Connection", "close")
		}
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write writes to the answer.
func (a *answer) Write(p []byte) (int, error) {
	if !a.begun {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(p)
}

// A body is a request's body while it arrives.
type body struct {
	io.ReadCloser

	of    *connection
	ended atomic.Bool // all of it has arrived
}

// Read reads the body and records its end.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ended.Store(true)
	}
	if err != nil {
		b.of.arriving.Store(0)
	}
	return n, err
}

// Client returns the host of an address; of IPv6 a customer's network, a /64.
func Client(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	host := at.Addr().Unmap().WithZone("")
	if host.Is4() {
		return host.String()
	}
	network, _ := host.Prefix(64) // every address has this length
	return network.String()
}

// Refuse returns the JSON body of the answer to a request that net/http cannot
// read, for the given reason.
type Refuse func(status int, reason string) []byte

// plainText is in net/http's answers to request heads that it rejects. It has
// no hook for them, but writes each such answer in one piece.
const plainText = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// inPlaceOf returns p, which net/http writes before there is a request, or the
// refusal that replaces net/http's.
func (f Refuse) inPlaceOf(p []byte) []byte {
	line, reason, refused := strings.Cut(string(p), plainText)
	if !refused {
		return p
	}
	_, line, _ = strings.Cut(line, " ")
	status, err := strconv.Atoi(line[:min(len(line), len("400"))])
	if err != nil {
		return p
	}
	return f.answer(status, reason)
}

// answer returns the answer to a rejected head.
func (f Refuse) answer(status int, reason string) []byte {
	body := f(status, reason)
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), len(body), body)
}
