package e2e

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// A relay passes the bytes of TCP connections on to a server and back, and
// keeps a copy: it shows how a client uses its connections.
type relay struct {
	url string

	mu             sync.Mutex
	connections    int
	sent, received bytes.Buffer // by the clients
}

// A traffic is what went through a relay.
type traffic struct {
	Connections    int
	Requests       int
	ZippedRequests int
	ZippedAnswers  int
}

// startRelay starts a relay before the server at base that ends with the
// test.
func startRelay(t *testing.T, base string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{url: "http://" + listener.Addr().String()}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			running.Go(func() { r.serve(conn, strings.TrimPrefix(base, "http://")) })
		}
	})
	t.Cleanup(func() { // the clients have ended, and their connections with them
		listener.Close()
		running.Wait()
	})
	return r
}

// serve relays one connection until either side closes it.
func (r *relay) serve(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	r.mu.Lock()
	r.connections++
	r.mu.Unlock()
	var answers sync.WaitGroup
	answers.Go(func() {
		_, _ = io.Copy(io.MultiWriter(&lockedWriter{&r.mu, &r.received}, client), server)
		client.Close()
	})
	_, _ = io.Copy(io.MultiWriter(&lockedWriter{&r.mu, &r.sent}, server), client)
	server.Close()
	answers.Wait()
}

// A lockedWriter lets one goroutine at a time write to w.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// traffic counts what has gone through so far. Where several connections are
// used at a time a line can be torn, so that a count may be a little low.
func (r *relay) traffic() traffic {
	r.mu.Lock()
	defer r.mu.Unlock()
	const zipped = "\r\ncontent-encoding: gzip\r\n"
	sent := strings.ToLower(r.sent.String())
	return traffic{
		Connections:    r.connections,
		Requests:       strings.Count(sent, " http/1.1\r\n"),
		ZippedRequests: strings.Count(sent, zipped),
		ZippedAnswers:  strings.Count(strings.ToLower(r.received.String()), zipped),
	}
}
