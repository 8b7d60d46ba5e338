package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/akin-search/akin/internal/limits"
)

// Limits of the listeners. Requests and answers have no time limit, because
// bulk loads and scrolls take long.
const (
	readHeaderTimeout = 10 * time.Second
	// maxHeaderBytes is the largest head of a request; a larger one gets 431.
	// Clusters accept less by default and answer 400 themselves.
	maxHeaderBytes = 64 << 10
	// adminConnections are for probes and scrapes, in addition to
	// Options.MaxConnections.
	adminConnections = 32
	// waitEvery is the poll interval of Wait. watchEvery is how often log and
	// metrics report the state if nobody asks for /readyz.
	waitEvery  = 10 * time.Millisecond
	watchEvery = 10 * time.Second
)

// A Front owns the two listeners of a process and passes their requests to a
// [Server], which can be replaced. Its methods may be called concurrently.
type Front struct {
	tls      *tls.Config // nil for plain HTTP
	inFlight atomic.Int64

	mu      sync.RWMutex // held to replace the server
	current *Server
}

// NewFront returns a front for s, with the MaxConnections and IdleTimeout of s
// for its whole life. If c is not nil, clients must use TLS; c must not change.
func NewFront(s *Server, c *tls.Config) *Front { return &Front{current: s, tls: c} }

// Replace passes all further requests to s. It does not close the previous
// server: [Server.Wait] returns when its last request has ended.
func (f *Front) Replace(s *Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.draining.Store(f.current.draining.Load())
	s.health.SetLog(s.log) // health may be that of the previous server
	f.current = s
}

func (f *Front) server() *Server {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.current
}

// enter returns the current server and counts a request in flight for it. The
// lock ensures that whoever replaces the server sees the count.
func (f *Front) enter() *Server {
	f.mu.RLock()
	defer f.mu.RUnlock()
	f.current.inFlight.Add(1)
	return f.current
}

func (f *Front) serveProxy(w http.ResponseWriter, r *http.Request) {
	s := f.enter()
	defer s.inFlight.Add(-1)
	f.inFlight.Add(1)
	defer f.inFlight.Add(-1)
	if s.draining.Load() {
		w.Header().Set("Connection", "close") // the next request opens a connection to another process
	}
	s.proxy.ServeHTTP(w, r)
}

// refuse returns the answer to a request that net/http cannot parse.
func (f *Front) refuse(status int, reason string) []byte {
	if status == http.StatusRequestHeaderFieldsTooLarge {
		f.server().metrics.LargeHeads.Inc()
		return errorBody(status, "akin_too_long_header_exception", fmt.Sprintf("the head of the request is larger than %d bytes", maxHeaderBytes))
	}
	return errorBody(status, "akin_request_exception", "akin cannot read the request: "+reason)
}

// Wait waits until s has no request in flight, or ctx ends.
func (s *Server) Wait(ctx context.Context) {
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	for s.inFlight.Load() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Serve serves both listeners until ctx ends. Then /readyz answers 503 while
// requests are still accepted for Options.ShutdownDelay, each with Connection:
// close. After that, requests in flight have Options.ShutdownTimeout, and the
// rest are cut off. The admin listener closes last. Serve returns nil after a
// complete drain; listeners and server are closed when it returns.
func (f *Front) Serve(ctx context.Context, proxy, admin net.Listener) error {
	watching, stopWatching := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	defer watcher.Wait()
	defer stopWatching()
	watcher.Go(func() { f.watch(watching) })

	servers := f.newServers(&proxy, &admin)
	ended := make(chan error, len(servers))
	go func() { ended <- servers[0].Serve(proxy) }()
	go func() { ended <- servers[1].Serve(admin) }()

	var errs []error
	running := len(servers)
	failed := func(err error) {
		errs = append(errs, fmt.Errorf("proxy: listener: %w", err))
		running--
	}
	select {
	case <-ctx.Done():
		if err := f.delay(ctx, ended); err != nil {
			failed(err)
		}
	case err := <-ended:
		failed(err)
	}
	errs = append(errs, f.drain(ctx, servers))
	for range running {
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			errs = append(errs, fmt.Errorf("proxy: listener: %w", err))
		}
	}
	f.server().Close()
	return errors.Join(errs...)
}

// newServers returns servers for the listeners and limits their connections.
func (f *Front) newServers(proxy, admin *net.Listener) []*http.Server {
	s := f.server()
	bounded := func(l net.Listener, limit int, port string) *limits.Listener {
		return limits.Listen(l, limit, s.metrics.Connections.WithLabelValues(port), s.metrics.ClosedIdle.WithLabelValues(port),
			func() *slog.Logger { return f.server().log.With("port", port) }, f.refuse)
	}
	clients := bounded(*proxy, s.opts.MaxConnections, "proxy")
	operators := bounded(*admin, adminConnections, "admin")
	*proxy, *admin = clients, operators
	if f.tls != nil {
		encrypted := f.tls.Clone()
		encrypted.NextProtos = []string{"http/1.1"}
		*proxy = limits.TLS(clients, encrypted)
	}
	servers := []*http.Server{
		newHTTPServer(limits.Handler(http.HandlerFunc(f.serveProxy)), s.opts.IdleTimeout, s.log),
		newHTTPServer(limits.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s := f.enter()
			defer s.inFlight.Add(-1)
			s.admin.ServeHTTP(w, r)
		})), s.opts.IdleTimeout, s.log),
	}
	servers[0].ConnState, servers[1].ConnState = clients.State, operators.State
	servers[0].ConnContext, servers[1].ConnContext = limits.Context, limits.Context
	// Requests to the admin port are small and short.
	servers[1].ReadTimeout, servers[1].WriteTimeout = 15*time.Second, 30*time.Second
	return servers
}

func newHTTPServer(h http.Handler, idle time.Duration, log *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:           h,
		Protocols:         protocols,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idle,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		// Forward OPTIONS * like any other request.
		DisableGeneralOptionsHandler: true,
	}
}

// watch checks the state every watchEvery until ctx ends.
func (f *Front) watch(ctx context.Context) {
	ticks := time.NewTicker(watchEvery)
	defer ticks.Stop()
	for {
		s := f.server()
		bounded, cancel := context.WithTimeout(ctx, readyTimeout)
		_ = s.guard.Do("watching the state", func() error {
			s.condition(bounded)
			s.health.Over(ctx)
			return nil
		})
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// delay marks the server as not ready and waits for ShutdownDelay. It returns
// the error of a listener that fails meanwhile.
func (f *Front) delay(ctx context.Context, ended <-chan error) error {
	f.mu.Lock() // so that a server that replaces this one is draining, too
	s := f.current
	s.draining.Store(true)
	f.mu.Unlock()
	if s.opts.ShutdownDelay == 0 {
		return nil
	}
	s.log.InfoContext(ctx, "shutting down: not ready any more, requests are still served", "delay", s.opts.ShutdownDelay.String())
	select {
	case <-time.After(s.opts.ShutdownDelay):
		return nil
	case err := <-ended:
		return err
	}
}

// drain accepts no more requests and waits for those in flight.
func (f *Front) drain(ctx context.Context, servers []*http.Server) error {
	s := f.server()
	s.draining.Store(true) // not set yet if a listener failed
	began, limit := time.Now(), s.opts.ShutdownTimeout
	s.log.InfoContext(ctx, "draining: no new requests are accepted", "in_flight", f.inFlight.Load(), "timeout", limit.String())
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	var errs []error
	aborted, level := int64(0), slog.LevelInfo
	for _, server := range servers {
		if err := server.Shutdown(stop); err != nil {
			aborted = max(aborted, f.inFlight.Load())
			errs = append(errs, fmt.Errorf("proxy: requests were cut off after %v: %w", limit, err), server.Close())
		}
	}
	if aborted > 0 {
		level = slog.LevelWarn
	}
	s.log.Log(ctx, level, "drained", "aborted", aborted, "took", time.Since(began).Round(time.Millisecond).String())
	return errors.Join(errs...)
}
