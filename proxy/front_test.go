package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/e2e/check"
)

// startFront serves o on free ports until the test ends.
func startFront(tb testing.TB, o Options) (f *Front, proxy, admin string) {
	tb.Helper()
	return startFrontTLS(tb, o, nil)
}

// startFrontTLS is startFront, with TLS unless c is nil.
func startFrontTLS(tb testing.TB, o Options, c *tls.Config) (f *Front, proxy, admin string) {
	tb.Helper()
	s := build(o)
	f = NewFront(s, c)
	listeners := [2]net.Listener{listenOn(tb, "127.0.0.1:0"), listenOn(tb, "127.0.0.1:0")}
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Serve(ctx, listeners[0], listeners[1]) }()
	tb.Cleanup(func() {
		cancel()
		err := <-ended
		check.That(tb, err == nil, "Serve: %v", err)
	})
	return f, listeners[0].Addr().String(), listeners[1].Addr().String()
}

func listenOn(tb testing.TB, addr string) net.Listener {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", addr)
	check.OK(tb, err)
	return l
}

// While a process leaves it takes requests, and closes each connection behind
// them; the log tells of every step. A request in flight gets its answer, /readyz
// tells of the draining meanwhile, and then both ports are closed.
func TestLeavingTellsBalancersBeforeTheListenerCloses(t *testing.T) {
	reached, proceed := make(chan struct{}), make(chan struct{})
	node := startNode(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(reached)
			<-proceed
		}
		io.WriteString(w, "{}")
	})
	var book logBook
	s := build(Options{Nodes: nodesAt(node), ShutdownDelay: 500 * time.Millisecond, Logger: book.logger()})
	proxy, admin, stop := startServe(t, s)
	answers, ended := make(chan string, 1), make(chan error, 1)
	go func() { answers <- exchangeRaw(t, proxy, "GET /slow HTTP/1.1\nHost: a\nConnection: close\n\n") }()
	receive(t, "the request at the node", reached)
	c := dial(t, proxy)
	reader := bufio.NewReader(c)
	asks := func(closes bool) {
		t.Helper()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		res, err := http.ReadResponse(reader, nil)
		check.OK(t, err)
		defer res.Body.Close()
		if _, _ = io.Copy(io.Discard, res.Body); res.Close != closes || res.StatusCode != http.StatusOK {
			t.Errorf("status %d, close %t, want %t", res.StatusCode, res.Close, closes)
		}
	}
	asks(false)
	go func() { ended <- stop() }()
	waitFor(t, "it to leave", s.draining.Load)
	asks(true)
	check.Equal(t, `{"status":"not ready","reasons":["shutting down"]}`, bodyOf(exchangeRaw(t, admin, "GET /readyz HTTP/1.1\nHost: a\nConnection: close\n\n")), "/readyz says")
	waitFor(t, "the drain", func() bool { return strings.Contains(book.text(), `"draining: `) })
	close(proceed)
	check.Equal(t, "{}", bodyOf(receive(t, "the answer", answers)), "the client")
	check.Error(t, nil, receive(t, "the end", ended))
	for _, addr := range []string{proxy, admin} {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			t.Errorf("%s still answers", addr)
		}
	}
	for _, want := range []string{`"shutting down: `, `"delay":"500ms"`, `"in_flight":1`, `"msg":"drained","aborted":0`} {
		check.That(t, strings.Contains(book.text(), want), "no %s in\n%s", want, book.text())
	}
}

// Requests that were under way end with the server that they began with; those
// after it go to the new one, and all are counted in the same place.
func TestReplacedServerEndsItsRequests(t *testing.T) {
	reached, proceed := make(chan struct{}), make(chan struct{})
	old := startNode(t, func(w http.ResponseWriter, _ *http.Request) {
		close(reached)
		<-proceed
		io.WriteString(w, "old")
	})
	next := startNode(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "new") })
	registry := prometheus.NewRegistry()
	f, proxy, admin := startFront(t, Options{Nodes: nodesAt(old), Registry: registry})
	get := func(addr, path string) string {
		return bodyOf(exchangeRaw(t, addr, "GET "+path+" HTTP/1.1\nHost: 127.0.0.1\nConnection: close\n\n"))
	}
	first := make(chan string, 1)
	go func() { first <- get(proxy, "/a") }()
	receive(t, "the request at the node", reached)

	before := f.server()
	s := build(Options{Nodes: nodesAt(next), Previous: before})
	f.Replace(s)
	check.Equal(t, "new", get(proxy, "/a"), "after the change the answer")
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if before.Wait(short); short.Err() == nil {
		t.Error("the old server seems to have ended, with a request under way")
	}
	before.Close()
	close(proceed)
	check.Equal(t, "old", receive(t, "the answer", first), "the request under way")
	before.Wait(t.Context())
	check.Equal(t, 2, counter(t, registry, "akin_requests_total", "outcome", "passed_through"), "requests are counted")
	metrics := exchangeRaw(t, admin, "GET /metrics HTTP/1.0\n\n") // whose answers have no chunks
	check.That(t, strings.Contains(metrics, `akin_requests_total{effort="",outcome="passed_through",reason=""} 2`), "/metrics does not go on")
}

// Whether a head is too large, the cluster says, up to what akin can read.
func TestLargeHeadsReachTheCluster(t *testing.T) {
	long := strings.Repeat("x", 60<<10)
	node := startRawNode(t, nil)
	_, addr, _ := startFront(t, Options{Nodes: nodesAt(node.URL)})
	for _, request := range []string{"GET /a/_doc/1 HTTP/1.1\nHost: a\nX-A: " + long, "GET /a/_doc/" + long + " HTTP/1.1\nHost: a"} {
		answer := exchangeRaw(t, addr, request+"\nConnection: close\n\n")
		check.That(t, strings.HasPrefix(answer, "HTTP/1.1 200 "), "got %s", answer)
	}
	for _, r := range node.all() {
		check.That(t, strings.Contains(r.line+strings.Join(r.header, ""), long), "the node got %.100s %.100s", r.line, r.header)
	}
}

// secure connects with TLS to a server that has the certificate of httptest.
func secure(certified *httptest.Server, c net.Conn, protocols ...string) *tls.Conn {
	config := certified.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName, config.NextProtos = "example.com", protocols // the name of that certificate
	return tls.Client(c, config)
}

// What net/http refuses gets an answer in the cluster's format, although it has
// not sent all of its request, and the connection ends.
func TestRequestsThatCannotBeReadAreRefusedInJSON(t *testing.T) {
	node := startRawNode(t, nil)
	certified := httptest.NewTLSServer(nil)
	certified.Close()
	for _, config := range []*tls.Config{nil, {Certificates: certified.TLS.Certificates}} {
		registry := prometheus.NewRegistry()
		_, addr, admin := startFrontTLS(t, Options{Nodes: nodesAt(node.URL), Registry: registry}, config)
		const good, twoHosts = "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"
		for name, tt := range map[string]struct {
			addr, request string
			plain         bool // in place of TLS
			statuses      []int
		}{
			"a broken escape":         {addr, "GET /a%zz HTTP/1.1\r\nHost: a\r\n\r\n", false, []int{400}},
			"two hosts":               {addr, twoHosts, false, []int{400}},
			"no host":                 {addr, "POST /a/_search HTTP/1.1\r\nContent-Length: 5\r\n\r\n", false, []int{400}},
			"no HTTP":                 {addr, "hello\r\n\r\n", false, []int{400}},
			"another version":         {addr, "GET / HTTP/3.0\r\nHost: a\r\n\r\n", false, []int{505}},
			"another transfer":        {addr, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n", false, []int{501}},
			"a large head":            {addr, "GET / HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("x", 70<<10) + "\r\n\r\n", false, []int{431}},
			"the second request":      {addr, good + "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", false, []int{200, 400}},
			"two hosts, of operators": {admin, twoHosts, true, []int{400}},
			"plain text":              {addr, good, true, []int{map[bool]int{false: 200, true: 400}[config != nil]}},
		} {
			t.Run(fmt.Sprint(name, ", TLS ", config != nil), func(t *testing.T) {
				var c io.ReadWriter = dial(t, tt.addr)
				if config != nil && !tt.plain {
					c = secure(certified, c.(net.Conn))
				}
				io.WriteString(c, tt.request)
				r := bufio.NewReader(c)
				for _, status := range tt.statuses {
					res, err := http.ReadResponse(r, nil)
					check.OK(t, err)
					body, _ := io.ReadAll(res.Body)
					res.Body.Close()
					var got errorAnswer
					if res.StatusCode != status || status != 200 && (json.Unmarshal(body, &got) != nil || got.Status != status || len(got.Error.RootCause) != 1 || got.Error.Reason == "" ||
						!res.Close || res.ContentLength < 0 || res.Header.Get("Content-Type") != "application/json") {
						t.Errorf("got %+v, %s, want %d", res, body, status)
					}
				}
			})
		}
		check.Equal(t, 1, counter(t, registry, "akin_large_headers_total"), "large heads are counted")
	}
	if n := len(node.all()); n != 3 { // those that are good
		t.Errorf("%d requests reached the node", n)
	}
}

// A node may say the same as net/http's server.
func TestPlainTextOfTheClusterIsNotReplaced(t *testing.T) {
	const body = "400 Bad Request"
	node := startRawNode(t, func(int, rawRequest) string {
		return "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" + body + hangUp
	})
	_, addr, _ := startFront(t, Options{Nodes: nodesAt(node.URL)})
	for _, protocol := range []string{"HTTP/1.0", "HTTP/1.1"} {
		got := exchangeRaw(t, addr, "GET /a "+protocol+"\nHost: a\nConnection: close\n\n")
		check.That(t, strings.Contains(got, body) && strings.Contains(got, "text/plain"), "got %q", got)
	}
}

func TestConnectionsThatAreIdleForTooLongAreClosed(t *testing.T) {
	_, proxy, admin := startFront(t, Options{Nodes: nodesAt(startRawNode(t, nil).URL), IdleTimeout: 50 * time.Millisecond})
	for name, address := range map[string]string{"proxy": proxy, "admin": admin} {
		c := dial(t, address)
		io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
		got, err := io.ReadAll(c)
		check.That(t, err == nil && strings.HasPrefix(string(got), "HTTP/1.1 200 "), "%s: %q, %v", name, got, err)
	}
}

// Which connection makes room for a new one is tested in package limits.
func TestIdleConnectionsMakeRoomForNewOnes(t *testing.T) {
	registry := prometheus.NewRegistry()
	_, proxy, admin := startFront(t, Options{Nodes: nodesAt(startRawNode(t, nil).URL), MaxConnections: 1, Registry: registry})
	idle := dial(t, proxy)
	io.WriteString(idle, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
	check.OK(t, check.ErrOf(io.ReadFull(idle, make([]byte, len(emptyAnswer)))))
	for _, addr := range []string{admin, proxy} { // operators have connections of their own
		answer := exchangeRaw(t, addr, "GET /healthz HTTP/1.1\nHost: a\nConnection: close\n\n")
		check.That(t, strings.HasPrefix(answer, "HTTP/1.1 200 "), "got %s", answer)
	}
	check.Error(t, io.EOF, check.ErrOf(idle.Read(make([]byte, 1))), "the idle connection")
	check.Equal(t, 1, counter(t, registry, "akin_idle_connections_closed_total", "port", "proxy"), "connections are counted")
}

// Clients that offer HTTP/2, or begin with it, are told that akin speaks HTTP/1.1.
func TestClientsSpeakHTTP1(t *testing.T) {
	node := startRawNode(t, nil)
	certified := httptest.NewTLSServer(nil)
	certified.Close()
	_, addr, _ := startFrontTLS(t, Options{Nodes: nodesAt(node.URL)}, &tls.Config{Certificates: certified.TLS.Certificates})
	c := secure(certified, dial(t, addr), "h2", "http/1.1")
	check.OK(t, check.ErrOf(io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")))
	answer, err := io.ReadAll(c)
	agreed := c.ConnectionState().NegotiatedProtocol
	check.That(t, agreed == "http/1.1" && err == nil && strings.HasPrefix(string(answer), "HTTP/1.1 200 OK"), "agreed on %q and got %q, %v", agreed, answer, err)
	_, plain, _ := startFront(t, Options{Nodes: nodesAt(node.URL)})
	if answer := exchangeRaw(t, plain, "PRI * HTTP/2.0\n\nSM\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 505 ") || len(node.all()) != 1 {
		t.Errorf("got %q, and the node %q", answer, node.all())
	}
}
