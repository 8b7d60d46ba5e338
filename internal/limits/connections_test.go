package limits

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/e2e/check"
)

func TestFullListenersSayToTheLogInUseThatAllAreTaken(t *testing.T) {
	var before, after bytes.Buffer
	used := &before
	l := Listen(nil, 1, nil, nil, func() *slog.Logger { return slog.New(slog.NewTextHandler(used, nil)) }, nil)
	l.count = 1
	used = &after
	if _, _, ok := l.takePlace(); ok || before.Len() > 0 || !strings.Contains(after.String(), "all connections are taken") {
		t.Errorf("logged %q and %q", before.String(), after.String())
	}
}

// pipes is a listener of connections in memory, each from an address.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error { close(p); return nil }
func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

type pipe struct {
	net.Conn

	from string
}

func (p *pipe) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(p.from), Port: 1}
}

// connect returns the client's end of a new connection.
func (p pipes) connect(from string) net.Conn {
	client, server := net.Pipe()
	p <- &pipe{server, from}
	return client
}

// served starts a server for at most limit connections, in a bubble of synctest.
func served(t *testing.T, limit int, h http.HandlerFunc) (p pipes, log *bytes.Buffer) {
	t.Helper()
	p, log = make(pipes, 100), new(bytes.Buffer)
	l := Listen(p, limit, prometheus.NewGauge(prometheus.GaugeOpts{}), prometheus.NewCounter(prometheus.CounterOpts{}),
		func() *slog.Logger { return slog.New(slog.NewTextHandler(log, nil)) }, nil)
	server := &http.Server{Handler: Handler(h), ConnState: l.State, ConnContext: Context}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		check.Error(t, http.ErrServerClosed, <-ended)
	})
	return p, log
}

// send sends a part of a request and reports whether the connection is open.
func send(c net.Conn, request string) bool {
	_, err := io.WriteString(c, strings.ReplaceAll(request, "\n", "\r\n"))
	return err == nil
}

const whole = "POST / HTTP/1.1\nHost: a\nContent-Length: 2\n\n{}"

// answered reports whether an answer comes, and not the end of the connection.
func answered(c net.Conn) bool {
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err == nil
}

func TestConnectionThatIsSilentForLongestMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := served(t, 3, func(http.ResponseWriter, *http.Request) {})
		var idle [3]net.Conn
		for i := range idle {
			idle[i] = p.connect("10.0.0.1")
		}
		for _, i := range []int{0, 1, 2, 0} {
			check.Must(t, send(idle[i], whole) && answered(idle[i]), "connection %d got no answer", i)
			synctest.Wait() // until the server takes it as idle
		}
		other := p.connect("10.0.0.2")
		check.That(t, send(other, whole) && answered(other), "a new client got no answer")
		for i, c := range idle {
			check.Equal(t, i != 1, send(c, whole) && answered(c), "connection", i)
		}
	})
}

// A client takes all connections. Another one gets the oldest of them, where
// those keep akin waiting for their client.
func TestConnectionsThatOneClientHoldsMakeRoomForAnother(t *testing.T) {
	half := func(_ int, c net.Conn) { send(c, whole[:len(whole)-1]) }
	long := func(_ int, c net.Conn) {
		send(c, strings.Replace(whole, "/", "/long", 1))
		answered(c)
	}
	one := []string{"10.0.0.1"}
	for name, tt := range map[string]struct {
		from   []string // addresses, in turn
		hold   func(i int, c net.Conn)
		greedy string // who has more than his share
	}{
		"half a request": {one, half, "10.0.0.1"},
		"a drip": {one, func(_ int, c net.Conn) {
			send(c, "POST / HTTP/1.1\nHost: a\nContent-Length: 1000\n\n")
			for send(c, " ") {
				time.Sleep(ShortSilence / 10) // The client is slow.
			}
		}, "10.0.0.1"},
		"an answer that is not read": {one, func(_ int, c net.Conn) { send(c, whole) }, "10.0.0.1"},
		"a network of IPv6":          {[]string{"2001:db8::1", "2001:db8::2"}, half, "2001:db8::/64"},
		"two clients":                {[]string{"10.0.0.1", "10.0.0.2", "10.0.0.1"}, half, "10.0.0.1"},
		"no more than a share": {one, func(i int, c net.Conn) {
			if i < 3 {
				half(i, c)
			} else {
				long(i, c)
			}
		}, ""},
		"long searches": {one, long, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const limit, length = 6, 10 * time.Second // of a long search
				p, log := served(t, limit, func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if r.URL.Path == "/long" {
						time.Sleep(length) // The search is long.
					}
				})
				var held [limit]net.Conn
				var holding sync.WaitGroup
				for i := range held {
					held[i] = p.connect(tt.from[i%len(tt.from)])
					holding.Go(func() { tt.hold(i, held[i]) })
					check.Elapse(time.Millisecond)
				}
				other, got := p.connect("10.0.0.9"), make(chan bool, 1)
				go func() { send(other, whole); got <- answered(other) }()
				check.Elapse(length / 2)
				served := len(got) > 0
				check.Equal(t, tt.greedy != "", served, "another client is served")
				for i, c := range held {
					_ = c.SetDeadline(time.Now())
					_, err := c.Read(make([]byte, 1))
					check.That(t, errors.Is(err, io.EOF) == (tt.greedy != "" && i == 0), "connection %d: %v", i, err)
					_ = c.Close()
				}
				check.That(t, <-got, "another client got no answer in the end")
				holding.Wait()
				check.Elapse(length) // which handlers may still take
				text := log.String()
				check.That(t, strings.Contains(text, "client=") == (tt.greedy != "") && strings.Contains(text, tt.greedy), "the log says %s", text)
			})
		})
	}
}

func TestClientsAreToldApartByTheirAddresses(t *testing.T) {
	for remote, want := range map[string]string{
		"10.0.0.1:1234":            "10.0.0.1",
		"[::ffff:10.0.0.1]:1234":   "10.0.0.1",
		"[2001:db8:1:2:3:4:5:6]:1": "2001:db8:1:2::/64",
		"[2001:db8:1:2:ff::1]:1":   "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1":         "fe80::/64",
		"@":                        "@", // a Unix socket
	} {
		check.Equal(t, want, Client(remote), remote)
	}
}

// Where all connections are busy and one waits for room, each request that ends
// wakes it: it must not look at all connections each time.
func TestBusyConnectionsAreNotLookedAtForEachRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen(nil, 4, nil, nil, func() *slog.Logger { return slog.New(slog.DiscardHandler) }, nil)
		var all []*connection
		for range 4 {
			l.count++
			all = append(all, &connection{of: l, client: "10.0.0.1"})
			l.State(all[len(all)-1], http.StateActive)
		}
		isFair := func() bool {
			victim, _, _ := l.takePlace()
			return victim == nil
		}
		check.Must(t, isFair(), "a connection on which nothing is late is closed")
		for _, c := range all {
			c.arriving.Store(time.Now().Add(-2 * LateAfter).UnixNano())
		}
		check.That(t, isFair(), "they are looked at again at once")
		check.Elapse(rebalanceEvery)
		check.That(t, !isFair(), "they are not looked at again")
	})
}
