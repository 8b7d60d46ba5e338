package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A frontNode is in front of a real engine as one of its nodes would, and can
// fall sick.
type frontNode struct {
	address string
	handler http.Handler
	server  *http.Server
	// refuses, unless nil, returns the status that it answers to a request, 0 for
	// the engine's answer.
	refuses atomic.Pointer[refusal]
	// hung, unless nil, is closed when it goes on.
	hung atomic.Pointer[chan struct{}]
	// calls counts the requests.
	calls atomic.Int64
}

// A refusal decides what is refused.
type refusal func(r *http.Request, body string) (status int)

// onceForLargeHeads does not use a connection again after a large head: engines
// answer 400 to one that is too large and then ignore the connection, on which
// the search of another client would hang.
type onceForLargeHeads struct{ *http.Transport }

func (o onceForLargeHeads) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("X-Large") != "" {
		r = r.Clone(r.Context())
		r.Close = true
	}
	return o.Transport.RoundTrip(r)
}

func startFrontNode(t *testing.T, e *engine) *frontNode {
	t.Helper()
	proxy := forwardTo(t, e.url)
	proxy.Transport = onceForLargeHeads{&http.Transport{MaxIdleConnsPerHost: 64}}
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	n := &frontNode{address: "127.0.0.1:0"}
	n.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.calls.Add(1)
		if hung := n.hung.Load(); hung != nil {
			select {
			case <-*hung:
			case <-r.Context().Done():
				return
			}
		}
		status := 0
		if refuses := n.refuses.Load(); refuses != nil {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			status = (*refuses)(r, string(body))
		}
		if status == 0 {
			proxy.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"error":{"type":"stand_in","reason":"as ordered"},"status":%d}`, status)
	})
	n.listen(t)
	t.Cleanup(func() { n.resume(); n.server.Close() })
	return n
}

// listen serves, again after kill at the same address.
func (n *frontNode) listen(t *testing.T) {
	t.Helper()
	var listener net.Listener
	waitFor(t, 5*time.Second, "the node's address", func() (err error) {
		listener, err = new(net.ListenConfig).Listen(context.Background(), "tcp", n.address)
		return err
	})
	n.address = listener.Addr().String()
	n.server = &http.Server{Handler: n.handler, ReadHeaderTimeout: time.Minute}
	go func(server *http.Server) { _ = server.Serve(listener) }(n.server)
}

// kill cuts all connections and refuses new ones.
func (n *frontNode) kill() { n.server.Close() }

// hang takes requests and answers none, as a stopped process does.
func (n *frontNode) hang() {
	hung := make(chan struct{})
	n.hung.Store(&hung)
}

func (n *frontNode) resume() {
	if hung := n.hung.Swap(nil); hung != nil {
		close(*hung)
	}
}

// dropSYN cuts all connections and lets new ones wait for ever: it listens with
// a queue that is full and takes none from it. The function that it returns
// closes that.
func (n *frontNode) dropSYN(t *testing.T) (closeQueue func()) {
	t.Helper()
	n.kill()
	_, port, err := net.SplitHostPort(n.address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	address := &syscall.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}}
	waitFor(t, 5*time.Second, "the node's address", func() error { return syscall.Bind(fd, address) })
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	var filling sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	for range 4 {
		filling.Go(func() {
			if conn, err := new(net.Dialer).DialContext(ctx, "tcp", n.address); err == nil {
				<-ctx.Done()
				_ = conn.Close()
			}
		})
	}
	return func() {
		cancel()
		filling.Wait()
		_ = syscall.Close(fd)
	}
}
