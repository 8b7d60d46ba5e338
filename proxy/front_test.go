package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/internal/limits"
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
		if err := <-ended; err != nil {
			tb.Errorf("Serve: %v", err)
		}
	})
	return f, listeners[0].Addr().String(), listeners[1].Addr().String()
}

func listenOn(tb testing.TB, addr string) net.Listener {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// A toyBalancer sends requests in turn to those of its backends whose /readyz
// answered 200 when it was last asked, and sends none twice.
type toyBalancer struct {
	backends [2]struct {
		addr, admin string
		proxy       *httputil.ReverseProxy
		ready       atomic.Bool
	}
	turn atomic.Uint64
}

func (b *toyBalancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	turn := b.turn.Add(1)
	for i := range uint64(len(b.backends)) {
		if n := &b.backends[(turn+i)%uint64(len(b.backends))]; n.ready.Load() {
			n.proxy.ServeHTTP(w, r)
			return
		}
	}
	w.WriteHeader(http.StatusServiceUnavailable)
}

// check asks all backends.
func (b *toyBalancer) check(ctx context.Context) {
	for i := range b.backends {
		n := &b.backends[i]
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.admin+"/readyz", nil)
		res, err := client.Do(req)
		n.ready.Store(err == nil && res.StatusCode == http.StatusOK)
		if err == nil {
			res.Body.Close()
		}
	}
}

// Two processes are restarted one after the other while clients search through
// a balancer. Without the delay some requests meet a listener that is closed.
func TestRollingRestartLosesNoRequest(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }))
	t.Cleanup(node.Close)
	balancer := &toyBalancer{}
	start := func(i int, addr, admin string) (stop func()) {
		s := build(Options{Nodes: nodesAt(node.URL), ShutdownDelay: 2 * time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		l, a := listenOn(t, addr), listenOn(t, admin)
		go func() { ended <- NewFront(s, nil).Serve(ctx, l, a) }()
		n := &balancer.backends[i]
		if n.proxy == nil { // the first time: later the addresses are the same
			n.addr, n.admin = l.Addr().String(), a.Addr().String()
			n.proxy = httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: l.Addr().String()})
			n.proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 100}
			n.proxy.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
		}
		return func() {
			cancel()
			if err := receive(t, "the end", ended); err != nil {
				t.Errorf("Serve: %v", err)
			}
		}
	}
	var stops [2]func()
	for i := range stops {
		stops[i] = start(i, "127.0.0.1:0", "127.0.0.1:0")
	}
	balancer.check(t.Context())
	front := httptest.NewServer(balancer)
	t.Cleanup(front.Close)

	watch, unwatch := context.WithCancel(t.Context())
	var watcher, all sync.WaitGroup
	watcher.Go(func() {
		for ; watch.Err() == nil; time.Sleep(20 * time.Millisecond) {
			balancer.check(watch)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var sent, failed atomic.Int64
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				res, err := client.Get(front.URL + "/a/_doc/1")
				if err == nil {
					_, err = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
				if sent.Add(1); err != nil || res.StatusCode != http.StatusOK {
					failed.Add(1)
				}
				time.Sleep(5 * time.Millisecond) // the balancer has to get its turn on a machine with one processor
			}
		})
	}
	for i := range stops {
		stops[i]()
		n := &balancer.backends[i]
		await := func(ready bool) {
			for deadline := time.Now().Add(patience); n.ready.Load() != ready && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
		}
		await(false) // it takes a while until a process is there again
		stops[i] = start(i, n.addr, n.admin)
		await(true)
	}
	for deadline := time.Now().Add(patience); sent.Load() < 1000 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	cancel()
	all.Wait() // before the last look, which would find nothing ready
	unwatch()
	watcher.Wait()
	for _, stop := range stops {
		stop()
	}
	if failed.Load() > 0 || sent.Load() < 1000 {
		t.Errorf("%d of %d requests failed", failed.Load(), sent.Load())
	}
}

// While a process leaves it takes requests, and closes each connection behind
// them; the log tells of every step.
func TestLeavingTellsBalancersBeforeTheListenerCloses(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }))
	defer node.Close()
	var log bytes.Buffer
	s := build(Options{
		Nodes: nodesAt(node.URL), ShutdownDelay: 500 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	proxy, _, stop := startServe(t, s)
	c := dial(t, proxy)
	reader := bufio.NewReader(c)
	ask := func() (status int, closes bool) {
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		res, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		io.Copy(io.Discard, res.Body)
		return res.StatusCode, res.Close
	}
	if _, closes := ask(); closes {
		t.Error("a connection closes before the end")
	}
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	for deadline := time.Now().Add(patience); !s.draining.Load() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if status, closes := ask(); !closes || status != http.StatusOK {
		t.Errorf("while it leaves: status %d, close %t", status, closes)
	}
	if err := receive(t, "the end", ended); err != nil {
		t.Errorf("Serve: %v", err)
	}
	for _, want := range []string{`msg="shutting down: `, "delay=500ms", `msg="draining: `, "in_flight=0", "msg=drained aborted=0"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in\n%s", want, log.String())
		}
	}
}

// Requests that were under way end with the server that they began with; those
// after it go to the new one, and all are counted in the same place.
func TestReplacedServerEndsItsRequests(t *testing.T) {
	reached, proceed := make(chan struct{}), make(chan struct{})
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(reached)
		<-proceed
		io.WriteString(w, "old")
	}))
	defer old.Close()
	next := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "new") }))
	defer next.Close()
	registry := prometheus.NewRegistry()
	f, proxy, admin := startFront(t, Options{Nodes: nodesAt(old.URL), Registry: registry})
	get := func(addr string) string {
		res, err := client.Get("http://" + addr)
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return string(body)
	}
	first := make(chan string, 1)
	go func() { first <- get(proxy + "/a") }()
	receive(t, "the request at the node", reached)

	before := f.server()
	s := build(Options{Nodes: nodesAt(next.URL), Previous: before})
	f.Replace(s)
	if got := get(proxy + "/a"); got != "new" {
		t.Errorf("after the change the answer is %q", got)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if before.Wait(short); short.Err() == nil {
		t.Error("the old server seems to have ended, with a request under way")
	}
	before.Close()
	close(proceed)
	if got := receive(t, "the answer", first); got != "old" {
		t.Errorf("the request under way got %q", got)
	}
	before.Wait(t.Context())
	if n := counter(t, registry, "akin_requests_total", "outcome", "passed_through"); n != 2 {
		t.Errorf("%v requests are counted", n)
	}
	if !strings.Contains(get(admin+"/metrics"), `akin_requests_total{effort="",outcome="passed_through",reason=""} 2`) {
		t.Error("/metrics does not go on")
	}
}

// Whether a head is too large, the cluster says, up to what akin can read.
func TestLargeHeadsReachTheCluster(t *testing.T) {
	long := strings.Repeat("x", 60<<10)
	node := startRawNode(t, nil)
	_, addr, _ := startFront(t, Options{Nodes: nodesAt(node.URL)})
	for _, request := range []string{"GET /a/_doc/1 HTTP/1.1\nHost: a\nX-A: " + long, "GET /a/_doc/" + long + " HTTP/1.1\nHost: a"} {
		if answer := exchangeRaw(t, addr, request+"\nConnection: close\n\n"); !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
			t.Errorf("got %s", answer)
		}
	}
	for _, r := range node.all() {
		if !strings.Contains(r.line+strings.Join(r.header, ""), long) {
			t.Errorf("the node got %.100s %.100s", r.line, r.header)
		}
	}
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
		for name, tt := range map[string]struct {
			addr, request string
			status        int
		}{
			"a broken escape":          {addr, "GET /a%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
			"two hosts":                {addr, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
			"no host":                  {addr, "POST /a/_search HTTP/1.1\r\nContent-Length: 5\r\n\r\n", 400},
			"no HTTP":                  {addr, "hello\r\n\r\n", 400},
			"another version":          {addr, "GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505},
			"another transfer":         {addr, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n", 501},
			"a large head":             {addr, "GET / HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("x", 70<<10) + "\r\n\r\n", 431},
			"the second request":       {addr, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
			"two hosts, of operators":  {admin, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
			"plain text in place TLS ": {addr, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
		} {
			t.Run(fmt.Sprint(name, ", TLS ", config != nil), func(t *testing.T) {
				var c io.ReadWriter = dial(t, tt.addr)
				switch {
				case tt.status == 0 && config == nil:
					return
				case tt.status == 0:
					tt.status = 400
				case config != nil && tt.addr == addr:
					trusting := certified.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
					trusting.ServerName = "example.com" // that of httptest's certificate
					c = tls.Client(c.(net.Conn), trusting)
				}
				if _, err := io.WriteString(c, tt.request); err != nil {
					t.Fatal(err)
				}
				r := bufio.NewReader(c)
				if name == "the second request" {
					res, err := http.ReadResponse(r, nil)
					if err != nil {
						t.Fatal(err)
					}
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
				res, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				var got errorAnswer
				if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
					t.Fatal(err)
				}
				if res.StatusCode != tt.status || got.Status != tt.status || len(got.Error.RootCause) != 1 || got.Error.Reason == "" ||
					!res.Close || res.ContentLength < 0 || res.Header.Get("Content-Type") != "application/json" {
					t.Errorf("got %+v, %+v", res, got)
				}
			})
		}
		if n := counter(t, registry, "akin_large_headers_total"); n != 1 {
			t.Errorf("%v large heads are counted", n)
		}
	}
	if n := len(node.all()); n != 2 {
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
		if !strings.Contains(got, body) || !strings.Contains(got, "text/plain") {
			t.Errorf("got %q", got)
		}
	}
}

// Idle clients hold all connections that are allowed. A new client gets the
// place of the one that has been idle for longest, and the admin port answers.
func TestConnectionsThatAreIdleForTooLongAreClosed(t *testing.T) {
	_, proxy, admin := startFront(t, Options{Nodes: nodesAt(startRawNode(t, nil).URL), IdleTimeout: 50 * time.Millisecond})
	for name, address := range map[string]string{"proxy": proxy, "admin": admin} {
		c := dial(t, address)
		r := bufio.NewReader(c)
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIdleConnectionsMakeRoomForNewOnes(t *testing.T) {
	node := startRawNode(t, nil)
	registry := prometheus.NewRegistry()
	_, proxy, admin := startFront(t, Options{Nodes: nodesAt(node.URL), MaxConnections: 3, Registry: registry})
	var idle [3]net.Conn
	var readers [3]*bufio.Reader
	ask := func(i int) error {
		if _, err := io.WriteString(idle[i], "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			return err
		}
		res, err := http.ReadResponse(readers[i], nil)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
	for i := range idle {
		idle[i] = dial(t, proxy)
		readers[i] = bufio.NewReader(idle[i])
		if err := ask(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask(0); err != nil { // now the others are silent for longer
		t.Fatal(err)
	}
	if answer := exchangeRaw(t, admin, "GET /healthz HTTP/1.1\nHost: a\nConnection: close\n\n"); !strings.Contains(answer, `"ok"`) {
		t.Errorf("/healthz: %s", answer)
	}
	if answer := exchangeRaw(t, proxy, "GET /b HTTP/1.1\nHost: a\nConnection: close\n\n"); !strings.Contains(answer, "200 OK") {
		t.Errorf("a new client got %s", answer)
	}
	if err := ask(0); err != nil {
		t.Errorf("the connection that spoke last: %v", err)
	}
	// Which of the others fell silent first is known to the server alone: it sends
	// an answer before it takes the connection as idle.
	if first, second := ask(1), ask(2); (first == nil) == (second == nil) {
		t.Errorf("of the two others one makes room, got %v and %v", first, second)
	}
	if n := counter(t, registry, "akin_idle_connections_closed_total", "port", "proxy"); n != 1 {
		t.Errorf("%v connections are counted", n)
	}
}

// Requests whose bodies do not come hold all connections: the oldest one makes
// room, and not all wait until the time for bodies is over.
func TestHalfSentRequestsOfOneClientLeaveRoomForNewOnes(t *testing.T) {
	node := startRawNode(t, nil)
	_, proxy, _ := startFront(t, Options{Nodes: nodesAt(node.URL), MaxConnections: 3, BodyTimeout: time.Hour})
	for i, path := range []string{"/a/_search", "/_bulk", "/a/_search"} {
		c := dial(t, proxy)
		if _, err := fmt.Fprintf(c, "POST %s?n=%d HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", path, i); err != nil {
			t.Fatal(err)
		}
	}
	if answer := exchangeRaw(t, proxy, "GET /b HTTP/1.1\nHost: a\nConnection: close\n\n"); !strings.Contains(answer, "200 OK") {
		t.Errorf("a new client got %s", answer)
	}
}

// Requests are under way on all connections: a new client waits for one to end.
func TestBusyConnectionsAreNotClosedForNewOnes(t *testing.T) {
	reached, proceed := make(chan struct{}, 2), make(chan struct{})
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			reached <- struct{}{}
			<-proceed
		}
		io.WriteString(w, r.URL.Path)
	}))
	defer node.Close()
	_, proxy, _ := startFront(t, Options{Nodes: nodesAt(node.URL), MaxConnections: 2})
	answers := make(chan string, 3)
	ask := func(path string) {
		answers <- exchangeRaw(t, proxy, "GET "+path+" HTTP/1.1\nHost: a\nConnection: close\n\n")
	}
	for range 2 {
		go ask("/slow")
		receive(t, "the request at the node", reached)
	}
	go ask("/late")
	select {
	case answer := <-answers:
		t.Errorf("got %s", answer)
	case <-time.After(2 * limits.ShortSilence): // what is idle for so long would be closed
	}
	close(proceed)
	got := map[string]int{}
	for range 3 {
		answer := receive(t, "an answer", answers)
		got[answer[strings.LastIndexByte(answer, '\n')+1:]]++
	}
	if diff := cmp.Diff(map[string]int{"/slow": 2, "/late": 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Clients that offer HTTP/2, or begin with it, are told that akin speaks HTTP/1.1.
func TestClientsSpeakHTTP1(t *testing.T) {
	node := startRawNode(t, nil)
	certified := httptest.NewTLSServer(nil)
	certified.Close()
	_, addr, _ := startFrontTLS(t, Options{Nodes: nodesAt(node.URL)}, &tls.Config{Certificates: certified.TLS.Certificates})
	trusting := certified.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	trusting.ServerName = "example.com" // that of httptest's certificate
	trusting.NextProtos = []string{"h2", "http/1.1"}
	c := tls.Client(dial(t, addr), trusting)
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if agreed := c.ConnectionState().NegotiatedProtocol; agreed != "http/1.1" || err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 OK") {
		t.Errorf("agreed on %q and got %q, %v", agreed, answer, err)
	}
	_, plain, _ := startFront(t, Options{Nodes: nodesAt(node.URL)})
	if answer := exchangeRaw(t, plain, "PRI * HTTP/2.0\n\nSM\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 505 ") || len(node.all()) != 1 {
		t.Errorf("got %q, and the node %q", answer, node.all())
	}
}
