package nodes

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/akin-search/akin/e2e/check"
)

// serve starts a node.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// named returns a node that answers with its name and the body it got.
func named(t *testing.T, name string) *httptest.Server {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		io.WriteString(w, name+string(body))
	})
}

// deadURL returns the URL of a node that refuses connections.
func deadURL() string {
	s := httptest.NewServer(nil)
	defer s.Close()
	return s.URL
}

// breaking returns a node that reads requests and hangs up, and their number.
func breaking(t *testing.T) (s *httptest.Server, arrived *atomic.Int32) {
	t.Helper()
	arrived = new(atomic.Int32)
	s = serve(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		arrived.Add(1)
		panic(http.ErrAbortHandler)
	})
	return s, arrived
}

func testPool(t *testing.T, urls ...string) *Pool { t.Helper(); return poolOf(t, Options{URLs: urls}) }

func poolOf(t *testing.T, o Options) *Pool {
	t.Helper()
	p := check.Got(New(o))(t)
	t.Cleanup(p.Close)
	return p
}

// onceBody is a body like that of a server's request: it can be read once, and
// not after it is closed.
type onceBody struct {
	io.Reader
	closed bool
}

func (b *onceBody) Read(p []byte) (int, error) {
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.Reader.Read(p)
}

func (b *onceBody) Close() error {
	b.closed = true
	return nil
}

// metricsOf returns the metrics as Prometheus reads them.
func metricsOf(t *testing.T, g prometheus.Gatherer) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(g, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	return w.Body.String()
}

// counted fails the test where a counter of p has not this line.
func counted(t *testing.T, p *Pool, line string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(p.metrics.failures, p.metrics.retries)
	text := metricsOf(t, registry)
	check.That(t, strings.Contains(text, line+"\n"), "no %s in\n%s", line, text)
}

// do sends req through p and returns the answer.
func do(p *Pool, req *http.Request) (string, error) {
	res, err := p.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return string(got), err
}

// write returns a request that must not be sent twice.
func write(ctx context.Context, body string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://ignored/i/_doc", &onceBody{Reader: strings.NewReader(body)})
	if err != nil {
		panic(err)
	}
	return req
}

// read returns a request that may be sent twice.
func read(ctx context.Context, body string) *http.Request {
	req, err := http.NewRequestWithContext(Safe(ctx), http.MethodPost, "http://ignored/i/_search", bytes.NewReader([]byte(body)))
	if err != nil {
		panic(err)
	}
	return req
}

func TestNodesShareTheRequests(t *testing.T) {
	p := testPool(t, named(t, "a").URL, named(t, "b").URL, named(t, "c").URL)
	got := map[string]int{}
	for range 300 {
		answer := check.Got(do(p, write(t.Context(), "")))(t)
		got[answer]++
	}
	for _, name := range []string{"a", "b", "c"} {
		if got[name] < 50 { // of 100, with a deviation of 8
			t.Errorf("requests by node: %v", got)
		}
	}
}

// wantPassedOver wants writes to be answered by the node b until a is down.
func wantPassedOver(t *testing.T, a string) *Pool {
	t.Helper()
	p := testPool(t, a, named(t, "b").URL)
	for stateOf(p, 0) == up {
		began := time.Now()
		if got, err := do(p, write(t.Context(), "{}")); got != "b{}" || err != nil || time.Since(began) > 4*time.Second { // a second is meant
			t.Fatalf("got %q, %v after %v", got, err, time.Since(began))
		}
	}
	return p
}

// A SYN that is not answered costs a second, once.
func TestNodeThatDropsConnectionsIsPassedOver(t *testing.T) {
	fd := check.Got(syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0))(t)
	defer syscall.Close(fd)
	check.OK(t, errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)))
	name := check.Got(syscall.Getsockname(fd))(t)
	addr := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*syscall.SockaddrInet4).Port}).String()
	full := false
	for range 10 { // fills the queue of connections that nobody accepts
		conn, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
		if err != nil {
			full = true
			break
		}
		defer conn.Close()
	}
	if !full {
		t.Skip("the system drops no SYN")
	}
	wantPassedOver(t, "http://"+addr)
}

func TestNodeThatCannotBeReachedIsPassedOverByWrites(t *testing.T) {
	breaksOff := startNode(t, func(conn net.Conn) { conn.Read(make([]byte, 1)) }) // of the handshake
	untrusted := httptest.NewUnstartedServer(nil)
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	untrusted.StartTLS()
	defer untrusted.Close()
	for url, kind := range map[string]string{
		deadURL(): "connect", untrusted.URL: "tls",
		strings.Replace(breaksOff, "http:", "https:", 1):             "tls",
		strings.Replace(named(t, "plain").URL, "http:", "https:", 1): "tls",
	} {
		counted(t, wantPassedOver(t, url), `akin_node_failures_total{kind="`+kind+`",node="`+url+`"} 1`)
	}
}

// A request that may have reached a node is sent to another only where it is
// marked and its body can be had again, and only once.
func TestWhatIsRepeatedAfterANodeBrokeOff(t *testing.T) {
	tests := map[string]struct {
		req  func(context.Context) *http.Request
		want int32 // arrivals at the nodes, which all break off
	}{
		"write": {func(ctx context.Context) *http.Request { return write(ctx, "{}") }, 1},
		"write with a body that can be had again": {func(ctx context.Context) *http.Request {
			req := read(ctx, "{}")
			return req.WithContext(ctx)
		}, 1},
		"search with a body that streams": {func(ctx context.Context) *http.Request { return write(Safe(ctx), "{}") }, 1},
		"search":                          {func(ctx context.Context) *http.Request { return read(ctx, "{}") }, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a, toA := breaking(t)
			b, toB := breaking(t)
			c, toC := breaking(t)
			p := testPool(t, a.URL, b.URL, c.URL)
			got, err := do(p, tt.req(t.Context()))
			check.Must(t, err != nil, "got %q, want an error", got)
			check.Equal(t, tt.want, toA.Load()+toB.Load()+toC.Load())
		})
	}
}

func TestRepetitionsKeepToTheBudget(t *testing.T) {
	broken, _ := breaking(t)
	p := testPool(t, broken.URL, named(t, "b").URL)
	p.budget = newRetryBudget(0)
	failed := 0
	for range 100 {
		setState(p, 0, up)
		if _, err := do(p, read(t.Context(), "")); err != nil {
			failed++
		}
	}
	counted(t, p, `akin_node_retries_total{reason="unanswered"} 10`)
	check.That(t, failed != 0, "the 10 of the start sufficed for all")
}

func TestClientThatLeavesSaysNothingOfTheNode(t *testing.T) {
	p := testPool(t, deadURL())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := do(p, write(ctx, ""))
	check.That(t, errors.Is(err, context.Canceled) && stateOf(p, 0) == up, "error %v, state %v", err, stateOf(p, 0))
}

func TestHeadersOfAnAnswerAreBounded(t *testing.T) {
	for size, want := range map[int]bool{maxAnswerHead / 2: true, 2 * maxAnswerHead: false} {
		node := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Warning", strings.Repeat("w", size)) })
		_, err := do(testPool(t, node.URL), read(t.Context(), ""))
		check.That(t, (err == nil) == want, "%d bytes: %v", size, err)
	}
}

// startNode returns the address of a node that serves each connection and then
// closes it.
func startNode(t *testing.T, serve func(conn net.Conn)) (url string) {
	t.Helper()
	l := check.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// serveHeads answers status to heads of more than limit bytes and then, like
// Elasticsearch after its 400, ignores the connection without closing it. To
// HEAD, which is a ping, it sends no body.
func serveHeads(conn net.Conn, limit, status int) {
	head, body, r := 0, "{}", bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		if strings.HasPrefix(line, http.MethodHead+" ") {
			body = ""
		}
		if head += len(line); line != "\r\n" {
			continue
		}
		if head > limit {
			fmt.Fprintf(conn, "HTTP/1.1 %d No\r\nContent-Length: 2\r\n\r\n%s", status, body)
			io.Copy(io.Discard, conn)
			return
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"+body)
		head, body = 0, "{}"
	}
}

func TestConnectionThatTheNodeIgnoresIsNotReused(t *testing.T) {
	for name, tt := range map[string]struct{ limit, status, header, query int }{
		"headers larger than OpenSearch takes": {8 << 10, http.StatusBadRequest, 9 << 10, 0},
		"line longer than the engines take":    {4 << 10, http.StatusRequestURITooLong, 0, 5 << 10},
		"more than a cluster with low limits":  {2 << 10, http.StatusRequestHeaderFieldsTooLarge, 3 << 10, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := testPool(t, startNode(t, func(conn net.Conn) { serveHeads(conn, tt.limit, tt.status) }))
			for i := range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://ignored/", http.NoBody)
				check.OK(t, err)
				want := http.StatusOK
				if i%2 == 0 {
					want = tt.status
					req.Header.Set("X-Large", strings.Repeat("x", tt.header))
					req.URL.RawQuery = strings.Repeat("q", tt.query)
				}
				res, err := p.RoundTrip(req)
				check.Must(t, err == nil, "request %d: %v", i, err)
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
				cancel()
				check.Must(t, res.StatusCode == want, "request %d: status %d, want %d", i, res.StatusCode, want)
			}
		})
	}
}

func TestConnectionsAreReused(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		var connections atomic.Int32
		node := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }))
		node.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				connections.Add(1)
			}
		}
		var trusted *tls.Config
		if encrypted {
			node.StartTLS()
			trusted = node.Client().Transport.(*http.Transport).TLSClientConfig
		} else {
			node.Start()
		}
		defer node.Close()
		p := poolOf(t, Options{URLs: []string{node.URL}, TLS: trusted})
		for _, size := range []int{0, 0, 3 << 10, 3 << 10, 0} {
			req := write(t.Context(), "{}")
			req.Header.Set("Authorization", strings.Repeat("x", size))
			check.OK(t, check.ErrOf(do(p, req)))
		}
		check.Equal(t, 1, connections.Load(), encrypted)
	}
}

func TestMetricsTellOfTheNodes(t *testing.T) {
	registry := prometheus.NewRegistry()
	dead := deadURL()
	p := poolOf(t, Options{URLs: []string{dead, dead}, Registerer: registry})
	do(p, write(t.Context(), ""))
	text := metricsOf(t, registry)
	for _, want := range []string{
		`akin_node_failures_total{kind="connect",node="` + dead + `"} 1`,
		`akin_node_requests_in_flight{node="` + dead + `"} 0`,
		`akin_node_up{node="` + dead + `"} 0`,
	} {
		check.That(t, strings.Contains(text, want+"\n"), "no %s in\n%s", want, text)
	}
}

func TestReachIsContentWithOneAnswer(t *testing.T) {
	hangs, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	check.OK(t, err)
	t.Cleanup(func() { hangs.Close() })
	refuses := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	hanging := "http://" + hangs.Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	check.OK(t, testPool(t, hanging, refuses.URL).Reach(ctx))
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := testPool(t, hanging).Reach(soon); err == nil {
		t.Error("nobody answers: no error")
	}
}

// trickle gives out a piece at each Read.
type trickle struct {
	net.Conn

	pieces []string
}

func (c *trickle) Read(p []byte) (int, error) {
	if len(c.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.pieces[0])
	c.pieces = c.pieces[1:]
	return n, nil
}

func TestRefusalsOfLargeHeadsSayThatTheyAreTheLastAnswer(t *testing.T) {
	const refusal = "HTTP/1.1 431 Too Large\r\nContent-Length: 2\r\n\r\n{}"
	const said = "HTTP/1.1 431 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
	const goes = "HTTP/1.1 100 Continue\r\n\r\n"
	for name, c := range map[string]struct {
		pieces []string
		want   string
	}{
		"whole":              {[]string{refusal}, said},
		"in pieces":          {[]string{refusal[:3], refusal[3:20], refusal[20:]}, said},
		"after a 100":        {[]string{goes, refusal}, goes + said},
		"another status":     {[]string{"HTTP/1.1 200 OK\r\n\r\n"}, "HTTP/1.1 200 OK\r\n\r\n"},
		"no HTTP at all":     {[]string{strings.Repeat("x", 300)}, strings.Repeat("x", 300)},
		"it breaks off":      {[]string{"HTTP/1.1 4"}, "HTTP/1.1 4"},
		"nothing comes":      {nil, ""},
		"a 400 and its body": {[]string{"HTTP/1.1 400 Bad\r\n\r\nx", "y"}, "HTTP/1.1 400 Bad\r\nConnection: close\r\n\r\nxy"},
	} {
		conn := newNodeConn(&trickle{pieces: c.pieces})
		conn.large.Store(true)
		got, err := io.ReadAll(conn)
		check.That(t, err == nil && string(got) == c.want, "%s: got %q, %v, want %q", name, got, err, c.want)
	}
}

// A node refuses a body while that is sent, and closes the connection. Its
// answer counts, not that the rest cannot be sent.
func TestAnswersThatComeBeforeTheBodyIsSentCount(t *testing.T) {
	const reason = `{"error":"too large"}`
	node := startNode(t, func(conn net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(conn))
		switch {
		case err != nil:
		case req.Method == http.MethodHead: // a ping
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
		default:
			fmt.Fprintf(conn, "HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: %d\r\n\r\n%s", len(reason), reason)
		}
	})
	registry := prometheus.NewRegistry()
	p := poolOf(t, Options{URLs: []string{node}, Registerer: registry})
	for range 20 {
		req := write(t.Context(), strings.Repeat("x", 8<<20))
		res, err := p.RoundTrip(req)
		check.OK(t, err)
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		check.Must(t, res.StatusCode == http.StatusRequestEntityTooLarge && string(got) == reason && err == nil, "got %s %q, %v", res.Status, got, err)
	}
	check.Equal(t, 0, p.nodes[0].failed)
}

func TestNewRefusesUnusableURLs(t *testing.T) {
	const first = "cluster URL 1: must be http:// or https://, a host, and perhaps :port and /prefix"
	tests := map[string]struct {
		urls []string
		want string
	}{
		"none":        {nil, "no URL of a cluster node"},
		"no scheme":   {[]string{"es:9200"}, first},
		"no host":     {[]string{"http:///es"}, first},
		"second":      {[]string{"http://a", "ftp://b"}, strings.Replace(first, "1", "2", 1)},
		"credentials": {[]string{"http://me:hunter2@a"}, first},
		"broken":      {[]string{"http://me:hunter2@a:%zz"}, first},
		"query":       {[]string{"http://a/?b"}, first},
	}
	for name, tt := range tests {
		_, err := New(Options{URLs: tt.urls})
		check.That(t, err != nil && err.Error() == tt.want, "%s: New = %v, want %s", name, err, tt.want)
	}
}
