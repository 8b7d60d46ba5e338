//go:build unix

package nodes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A scriptedNode answers each request on a connection with the next answer, as
// it is written, and closes the connection where that is "".
type scriptedNode struct {
	url         string
	connections atomic.Int32
}

func startScripted(t *testing.T, answers ...string) *scriptedNode {
	t.Helper()
	n := &scriptedNode{}
	var next atomic.Int32
	n.url = startNode(t, func(conn net.Conn) {
		n.connections.Add(1)
		for r := bufio.NewReader(conn); ; {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			answer := answers[min(int(next.Add(1)), len(answers))-1]
			if answer == "" {
				return
			}
			fmt.Fprint(conn, answer)
		}
	})
	return n
}

// newTestDirect returns a transport whose idle connections are closed at the end.
func newTestDirect(t *testing.T) *direct {
	t.Helper()
	p := newDirect(newTransport(nil)).(*direct)
	t.Cleanup(p.CloseIdleConnections)
	return p
}

func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// exchange sends a request and returns the body of the answer.
func exchange(t *testing.T, p *direct, r *http.Request) (string, error) {
	t.Helper()
	res, err := p.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return string(got), err
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

func TestDirectConnectionsAreUsedAgain(t *testing.T) {
	chunked := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
	for name, tt := range map[string]struct {
		answer, body string
		connections  int32
	}{
		"with a length":            {okAnswer, "{}", 1},
		"in chunks":                {chunked, "{}", 1},
		"without a body":           {"HTTP/1.1 204 No Content\r\n\r\n", "", 1},
		"the node closes":          {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", "{}", 3},
		"more than was asked for":  {okAnswer + "HTTP/1.1 200 OK", "{}", 3},
		"something before it is":   {"HTTP/1.1 103 Early Hints\r\n\r\n" + okAnswer, "{}", 1},
		"a refusal of a good head": {"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}", "{}", 1},
	} {
		t.Run(name, func(t *testing.T) {
			n, p := startScripted(t, tt.answer), newTestDirect(t)
			for range 3 {
				if got, err := exchange(t, p, request(t, http.MethodPost, n.url, "{}")); err != nil || got != tt.body {
					t.Fatalf("got %q, %v, want %q", got, err, tt.body)
				}
			}
			if got := n.connections.Load(); got != tt.connections {
				t.Errorf("%d connections, want %d", got, tt.connections)
			}
		})
	}
}

// A node may end an idle connection at any time: nobody reads from it meanwhile.
// A connection is free once an answer without a body is there: another request
// may be on it before the first one has returned. For the race detector.
func TestConnectionsOfAnswersWithoutABodyAreFreeAtOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	transport := newTestDirect(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodHead, server.URL, http.NoBody)
				res, err := transport.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				res.Body.Close()
			}
		})
	}
	all.Wait()
}

func TestRequestsOnConnectionsThatTheNodeClosedAreSentOnOthers(t *testing.T) {
	var node *httptest.Server
	var closing atomic.Bool
	node = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if closing.CompareAndSwap(true, false) { // with this request
			conn, _, _ := http.NewResponseController(w).Hijack()
			conn.Close()
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	}))
	defer node.Close()
	p := newTestDirect(t)
	for _, method := range []string{http.MethodPost, http.MethodPost, http.MethodGet} {
		if got, err := exchange(t, p, request(t, method, node.URL, "text")); got != "text" {
			t.Errorf("%s got %q, %v", method, got, err)
		}
		node.CloseClientConnections()
	}
	exchange(t, p, request(t, http.MethodGet, node.URL, "text"))
	closing.Store(true)
	if got, err := exchange(t, p, request(t, http.MethodGet, node.URL, "text")); got != "text" {
		t.Errorf("a read that the node did not answer got %q, %v", got, err)
	}
	closing.Store(true)
	if got, err := exchange(t, p, request(t, http.MethodPost, node.URL, "text")); err == nil {
		t.Errorf("a write that the node did not answer got %q: it was sent twice", got)
	}
}

// What the node says on an encrypted connection while it is idle, such as that
// it closes it, is not part of an answer.
func TestEncryptedConnectionsAreUsedAgain(t *testing.T) {
	var connections atomic.Int32
	node := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	node.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	node.StartTLS()
	defer node.Close()
	trusted := node.Client().Transport.(*http.Transport).TLSClientConfig
	p := newDirect(newTransport(trusted)).(*direct)
	defer p.CloseIdleConnections()
	send := func(want int32) {
		t.Helper()
		for range 3 {
			if got, err := exchange(t, p, request(t, http.MethodPost, node.URL, "text")); got != "text" {
				t.Fatalf("got %q, %v", got, err)
			}
		}
		if got := connections.Load(); got != want {
			t.Errorf("%d connections, want %d", got, want)
		}
	}
	send(1)
	node.CloseClientConnections()
	send(2)
}

func TestDirectRequestsEndWithTheirContext(t *testing.T) {
	for name, answer := range map[string]string{"no answer": "HTTP/1.1 200", "half a body": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbody"} {
		t.Run(name, func(t *testing.T) {
			n, p := startScripted(t, answer, okAnswer), newTestDirect(t)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if got, err := exchange(t, p, request(t, http.MethodGet, n.url, "").WithContext(ctx)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %q, %v", got, err)
			}
			if got, err := exchange(t, p, request(t, http.MethodGet, n.url, "")); got != "{}" || n.connections.Load() != 2 {
				t.Errorf("the next one got %q, %v, on %d connections", got, err, n.connections.Load())
			}
		})
	}
}

func TestAnAnswerThatIsNotReadToItsEndEndsItsConnection(t *testing.T) {
	n, p := startScripted(t, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbody", okAnswer), newTestDirect(t)
	res, err := p.RoundTrip(request(t, http.MethodGet, n.url, ""))
	if err != nil {
		t.Fatal(err)
	}
	if IsHere(res) {
		t.Error("half a body is here")
	}
	res.Body.Close()
	if n, err := res.Body.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("read %d bytes of a closed body, %v", n, err)
	}
	if got, err := exchange(t, p, request(t, http.MethodGet, n.url, "")); got != "{}" || n.connections.Load() != 2 {
		t.Errorf("the next one got %q, %v, on %d connections", got, err, n.connections.Load())
	}
}

func TestAnswersThatNobodyAskedForAreErrors(t *testing.T) {
	for name, answer := range map[string]string{
		"another protocol": "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
		"a head of 2 MiB":  "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
		"no HTTP":          "hello\r\n\r\n",
	} {
		n, p := startScripted(t, answer), newTestDirect(t)
		if got, err := exchange(t, p, request(t, http.MethodPost, n.url, "{}")); err == nil {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestInterimAnswersAreTold(t *testing.T) {
	n, p := startScripted(t, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+okAnswer), newTestDirect(t)
	var got []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			got = append(got, fmt.Sprint(code, h["Link"]))
			return nil
		},
	})
	res, err := p.RoundTrip(request(t, http.MethodGet, n.url, "").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if !IsHere(res) || len(got) != 1 || got[0] != "103 [x]" {
		t.Errorf("it is here: %v; got %q", IsHere(res), got)
	}
}

func TestIdleDirectConnectionsAreBoundedAndClosed(t *testing.T) {
	n, p := startScripted(t, okAnswer), newTestDirect(t)
	p.MaxIdleConns, p.IdleConnTimeout = 2, 100*time.Millisecond
	var bodies []io.ReadCloser
	for range 4 {
		res, err := p.RoundTrip(request(t, http.MethodGet, n.url, ""))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		bodies = append(bodies, res.Body)
	}
	for _, body := range bodies {
		_, _ = io.Copy(io.Discard, body)
	}
	idle := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.count
	}
	if got := idle(); got != 2 {
		t.Errorf("%d idle connections, want 2", got)
	}
	for began := time.Now(); idle() > 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%d connections stay open", idle())
		}
	}
}
