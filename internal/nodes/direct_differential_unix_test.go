//go:build unix

package nodes

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// hangUp at the end of an answer closes the connection.
const hangUp = "\x00hang up"

// startHostile returns the address of a node that calls serve for each
// request, and closes the connection where that reports false.
func startHostile(t *testing.T, serve func(conn net.Conn, req *http.Request, body string) bool) string {
	t.Helper()
	return startNode(t, func(conn net.Conn) {
		for r := bufio.NewReader(conn); ; {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			body, err := io.ReadAll(req.Body)
			if err != nil || !serve(conn, req, string(body)) {
				return
			}
		}
	})
}

// A seen answer is what a client sees of one.
type seen struct {
	Status          int
	Proto           string
	Length          int64
	Encoding        []string
	Header, Trailer http.Header
	Body            string
	Failed, Broken  bool // there is no answer; its body broke off
}

func see(transport http.RoundTripper, req *http.Request) seen {
	ctx, cancel := context.WithTimeout(req.Context(), 2*time.Second) // both wait for an answer that does not end
	defer cancel()
	req = req.WithContext(ctx)
	res, err := transport.RoundTrip(req)
	if err != nil {
		return seen{Failed: true}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if n, again := res.Body.Read(make([]byte, 1)); n != 0 || again == nil || (err == nil) != errors.Is(again, io.EOF) {
		return seen{Body: fmt.Sprintf("ended with %v, then read %d bytes, %v", err, n, again)}
	}
	return seen{res.StatusCode, res.Proto, res.ContentLength, res.TransferEncoding, res.Header, res.Trailer, string(body), false, err != nil}
}

// Whatever a node answers, a client sees what it would see through net/http,
// and so does the next one.
func TestAnswersAreReadAsNetHTTPReadsThem(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
	for name, answer := range map[string]string{
		"length":                    okAnswer,
		"lengths that agree":        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
		"lengths that differ":       "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
		"a length below zero":       "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}",
		"a length with a sign":      "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}",
		"a length and chunks":       chunked + "Content-Length: 9\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"chunks":                    chunked + "\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n",
		"chunks, truncated":         chunked + "\r\n2\r\n{}\r\n" + hangUp,
		"a chunk, truncated":        chunked + "\r\n9\r\n{}" + hangUp,
		"a chunk with a bad length": chunked + "\r\nxyz\r\n{}\r\n0\r\n\r\n",
		"an endless chunk length":   chunked + "\r\n" + strings.Repeat("0", 1<<14) + "2\r\n{}\r\n0\r\n\r\n",
		"trailers":                  chunked + "Trailer: A, B\r\n\r\n2\r\n{}\r\n0\r\nA: 1\r\nB: 2\r\n\r\n",
		"unannounced trailers":      chunked + "\r\n2\r\n{}\r\n0\r\nA: 1\r\n\r\n",
		"broken trailers":           chunked + "Trailer: A\r\n\r\n2\r\n{}\r\n0\r\nA: 1" + hangUp,
		"another encoding":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n{}" + hangUp,
		"encodings":                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"truncated":                 "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}" + hangUp,
		"to the end":                "HTTP/1.1 200 OK\r\n\r\n{}" + hangUp,
		"answer and close":          okAnswer + hangUp,
		"close":                     "HTTP/1.1 200 OK\r\nConnection: cLoSe\r\nContent-Length: 2\r\n\r\n{}" + hangUp,
		"close, said among others":  "HTTP/1.1 200 OK\r\nConnection: x, CLOSE\r\nContent-Length: 2\r\n\r\n{}" + hangUp,
		"HTTP/1.0":                  "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}" + hangUp,
		"HTTP/1.0 to the end":       "HTTP/1.0 200 OK\r\n\r\n{}" + hangUp,
		"HTTP/1.0, kept":            "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.0 in chunks":        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + hangUp,
		"no content":                "HTTP/1.1 204 No Content\r\n\r\n",
		"no content with a length":  "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}",
		"not modified":              "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n",
		"nothing":                   "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"interim answers":           "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + okAnswer,
		"interim, then the end":     "HTTP/1.1 103 Early Hints\r\n\r\n" + hangUp,
		"more than was asked for":   okAnswer + okAnswer,
		"garbage after it":          okAnswer + "garbage",
		"no reason":                 "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}",
		"an empty reason":           "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\n{}",
		"an odd status":             "HTTP/1.1 799 Odd\r\nContent-Length: 2\r\n\r\n{}",
		"a status below 100":        "HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\n{}",
		"a status of four digits":   "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\n{}",
		"plain lines":               "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}",
		"a folded header":           "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
		"a header without a colon":  "HTTP/1.1 200 OK\r\nX\r\nContent-Length: 2\r\n\r\n{}",
		"a space before the colon":  "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n{}" + hangUp,
		"headers, twice and odd":    "HTTP/1.1 200 OK\r\nx-a: 1\r\nX-A: 2\r\nETag: z\r\nContent-Length: 2\r\n\r\n{}",
		"half a head":               "HTTP/1.1 200 OK\r\nContent-Le" + hangUp,
		"a head that is too large":  "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxAnswerHead) + "\r\n\r\n",
		"HTTP/2":                    "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
		"no HTTP":                   "hello\r\n\r\n" + hangUp,
		"only the end":              hangUp,
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
			node := startHostile(t, func(conn net.Conn, req *http.Request, body string) bool {
				if req.URL.Path == "/next" {
					_, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
					return err == nil
				}
				text, end := strings.CutSuffix(answer, hangUp)
				_, err := io.WriteString(conn, text)
				return err == nil && !end
			})
			theirs := newTransport(nil)
			t.Cleanup(theirs.CloseIdleConnections)
			send := func(transport http.RoundTripper) (got [2]seen) {
				got[0] = see(transport, request(t, method, node, map[bool]string{true: "{}"}[method == http.MethodPost]))
				// net/http sees only a moment later what comes after an answer.
				time.Sleep(time.Millisecond)
				got[1] = see(transport, request(t, http.MethodPost, node+"/next", "next"))
				return got
			}
			want, got := send(theirs), send(newTestDirect(t))
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s %s:\n got %+v\nwant %+v", method, name, got, want)
			}
			if got[1].Body != "next" {
				t.Errorf("%s %s: the next one got %+v", method, name, got[1])
			}
		}
	}
}

// Under load, with clients that leave and nodes that close, break off and say
// too much, nobody gets a byte of another one's answer, and nothing stays open.
func TestNobodyGetsTheAnswerOfAnother(t *testing.T) {
	var open, sent, twice atomic.Int32
	var arrived sync.Map
	node := startHostile(t, func(conn net.Conn, req *http.Request, _ string) bool {
		if _, again := arrived.LoadOrStore(req.URL.Path, true); again && req.Method == http.MethodPost {
			twice.Add(1)
		}
		text := strings.Repeat(req.URL.Path+";", 1+rand.IntN(4000))
		answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		chunks := fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(text), text)
		keep := true
		switch rand.IntN(10) {
		case 0:
			answer, keep = answer[:len(answer)/2], false
		case 1:
			answer, keep = chunks[:len(chunks)-5], false
		case 2:
			answer += "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"
		case 3:
			keep = false
		case 4:
			time.Sleep(time.Duration(rand.IntN(int(2 * time.Millisecond))))
		case 5, 6, 7:
			answer = chunks
		}
		_, err := io.WriteString(conn, answer)
		return err == nil && keep
	})
	p := newTestDirect(t)
	dial := p.DialContext
	p.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err == nil {
			open.Add(1)
			c := conn.(*nodeConn)
			c.Conn = &countedConn{TCPConn: c.Conn.(*net.TCPConn), open: &open}
		}
		return conn, err
	}
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for range 60 {
				path := fmt.Sprintf("/%d", sent.Add(1))
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(3) == 0 {
					time.AfterFunc(time.Duration(rand.IntN(int(2*time.Millisecond))), cancel)
				}
				method := []string{http.MethodGet, http.MethodPost}[rand.IntN(2)]
				res, err := p.RoundTrip(request(t, method, node+path, "{}").WithContext(ctx))
				if err != nil {
					cancel()
					continue
				}
				if rand.IntN(4) == 0 { // another one closes it
					go res.Body.Close()
				}
				body, _ := io.ReadAll(io.LimitReader(res.Body, int64(rand.IntN(1<<16))))
				if whole := strings.Repeat(path+";", len(body)/len(path)+1); !strings.HasPrefix(whole, string(body)) {
					t.Errorf("%s got %.60q", path, body)
				}
				res.Body.Close()
				cancel()
			}
		})
	}
	clients.Wait()
	if n := twice.Load(); n > 0 {
		t.Errorf("%d writes were sent twice", n)
	}
	p.CloseIdleConnections()
	for began := time.Now(); open.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%d connections stay open", open.Load())
		}
	}
}

// A countedConn counts down when it is closed.
type countedConn struct {
	*net.TCPConn
	once sync.Once
	open *atomic.Int32
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.TCPConn.Close()
}

// What follows an answer on an encrypted connection is not the next answer.
func TestTLSKeepsNothingForTheNextRequest(t *testing.T) {
	l := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		plain := conn.(*tls.Conn).NetConn().(*corked)
		plain.cork()
		io.WriteString(conn, okAnswer) // two records, which arrive in one piece
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad")
		plain.uncork()
		_, _ = rw.ReadByte()
	}))
	l.Listener = corkListener{l.Listener}
	l.StartTLS()
	defer l.Close()
	p := newDirect(newTransport(l.Client().Transport.(*http.Transport).TLSClientConfig)).(*direct)
	defer p.CloseIdleConnections()
	for range 5 {
		if got, err := exchange(t, p, request(t, http.MethodPost, l.URL, "{}")); got != "{}" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

type corkListener struct{ net.Listener }

func (l corkListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return &corked{Conn: conn}, err
}

// A corked connection sends what is written to it at once at the end.
type corked struct {
	net.Conn
	kept   []byte
	closed bool
}

func (c *corked) cork() { c.closed = true }

func (c *corked) uncork() {
	c.closed = false
	c.Conn.Write(c.kept)
}

func (c *corked) Write(p []byte) (int, error) {
	if c.closed {
		c.kept = append(c.kept, p...)
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// Nothing of a request is sent whose context has ended, and its body is closed.
func TestRequestsWhoseContextHasEndedAreNotSent(t *testing.T) {
	var arrived atomic.Int32
	node := startHostile(t, func(conn net.Conn, _ *http.Request, _ string) bool {
		arrived.Add(1)
		io.WriteString(conn, okAnswer)
		return true
	})
	p := newTestDirect(t)
	exchange(t, p, request(t, http.MethodGet, node, ""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		r := request(t, http.MethodPost, node, "{}").WithContext(ctx)
		body := &onceBody{Reader: r.Body}
		r.Body = body
		if _, err := exchange(t, p, r); !errors.Is(err, context.Canceled) || !body.closed {
			t.Fatalf("%v, the body is closed: %v", err, body.closed)
		}
	}
	if _, err := exchange(t, p, request(t, http.MethodGet, node, "")); err != nil || arrived.Load() != 2 {
		t.Errorf("%v, %d requests arrived", err, arrived.Load())
	}
}
