package proxy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/akin-search/akin/proxy/connections"
)

// A front2 is a Front, and a client of it that speaks HTTP/2 only.
type front2 struct {
	*http.Client

	front  *Front
	addr   string
	url    string
	config *tls.Config // nil for plain HTTP
}

func startHTTP2(t *testing.T, o Options, encrypted bool) *front2 {
	t.Helper()
	o.HTTP2 = true
	f := &front2{}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(!encrypted)
	protocols.SetHTTP2(encrypted)
	transport, scheme := &http.Transport{Protocols: protocols}, "http://"
	if encrypted {
		certified := httptest.NewTLSServer(nil)
		certified.Close()
		f.config = &tls.Config{Certificates: certified.TLS.Certificates}
		transport.TLSClientConfig = certified.Client().Transport.(*http.Transport).TLSClientConfig
		scheme = "https://"
	}
	f.front, f.addr, _ = startFrontTLS(t, o, f.config)
	f.url = scheme + f.addr
	f.Client = &http.Client{Transport: transport, Timeout: patience}
	t.Cleanup(transport.CloseIdleConnections)
	return f
}

// both are the ways in which clients come to speak HTTP/2: whether with TLS.
var both = map[string]bool{"h2c": false, "TLS": true}

// A got is what a client got besides the body.
type got struct {
	status          int
	header, trailer http.Header
}

func get(t *testing.T, f *front2, req *http.Request) (g got, body string) {
	t.Helper()
	res, err := f.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.ProtoMajor != 2 {
		t.Errorf("the client speaks %s", res.Proto)
	}
	return got{res.StatusCode, res.Header, res.Trailer}, string(all)
}

func newRequest(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// TestPassthroughHTTP2 sends the same requests over HTTP/1.1 and HTTP/2: a node
// cannot tell them apart.
func TestPassthroughHTTP2(t *testing.T) {
	header := http.Header{
		"Authorization": {"ApiKey a2V5OnNlY3JldA=="}, "X-Twice": {"b", "a"}, "X-Opaque-Id": {"spaced, \"quoted\""}, "User-Agent": {""},
		"Traceparent": {clientParent}, "Accept-Encoding": {"br"}, "Te": {"trailers"},
	}
	for way, encrypted := range both {
		t.Run(way, func(t *testing.T) {
			for name, test := range map[string]struct {
				method, target, body string
				length               int64
			}{
				"odd path and query": {"GET", "/<logs-{now%2Fd}>/a%2Fb//c?b=1;c=%zz&a", "", 0},
				"body":               {"PUT", "/a/_doc/1", `{"a": 1.0}`, 10},
				"body of no length":  {"POST", "/_bulk", "{}\n", -1},
				"no body":            {"DELETE", "/a", "", 0},
				"own method":         {"PROPFIND", "/a", "", 0},
				"search":             {"POST", "/a/_search?akin=off", `{"query": {}}`, 13},
			} {
				t.Run(name, func(t *testing.T) {
					node := startRawNode(t, nil)
					f := startHTTP2(t, Options{Upstreams: []string{node.URL}, Expander: expander(leaveAlone)}, encrypted)
					_, plain, _ := startFront(t, Options{Upstreams: []string{node.URL}, Expander: expander(leaveAlone)})
					for _, of := range []struct {
						*http.Client

						url, host string
					}{{f.Client, f.url, "//" + f.addr}, {client, "http://" + plain, "//" + plain}} {
						req := newRequest(t, test.method, of.url, nil)
						req.URL.Opaque = of.host + test.target
						if req.Header = header.Clone(); test.length != 0 {
							req.Body, req.ContentLength = io.NopCloser(strings.NewReader(test.body)), test.length
						}
						res, err := of.Do(req)
						if err != nil {
							t.Fatal(err)
						}
						res.Body.Close()
					}
					got := node.all()
					for i := range got {
						slices.Sort(got[i].header)
					}
					if len(got) != 2 || !cmp.Equal(got[0], got[1], cmp.AllowUnexported(rawRequest{})) {
						t.Errorf("over HTTP/2 and HTTP/1.1 the node got\n%q", got)
					}
				})
			}
		})
	}
}

func TestPassthroughAnswersOverHTTP2(t *testing.T) {
	for way, encrypted := range both {
		t.Run(way, func(t *testing.T) {
			for name, test := range map[string]struct {
				answer, body    string
				status          int
				header, trailer http.Header
			}{
				"bare":       {"200 OK\r\nContent-Length: 2\r\n\r\n{}", "{}", 200, http.Header{"Content-Length": {"2"}}, nil},
				"two":        {"404 Not Found\r\nContent-Length: 0\r\nWarning: 299 b\r\nWarning: 299 a\r\n\r\n", "", 404, http.Header{"Content-Length": {"0"}, "Warning": {"299 b", "299 a"}}, nil},
				"hop":        {"200 OK\r\nConnection: x-private\r\nX-Private: 1\r\nKeep-Alive: timeout=5\r\nContent-Length: 0\r\n\r\n", "", 200, http.Header{"Content-Length": {"0"}}, nil},
				"no content": {"204 No Content\r\n\r\n", "", 204, http.Header{}, nil},
				"trailer":    {"200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n", "{}", 200, http.Header{}, http.Header{"X-Sum": {"1"}}},
			} {
				t.Run(name, func(t *testing.T) {
					node := startRawNode(t, func(int, rawRequest) string { return "HTTP/1.1 " + test.answer })
					f := startHTTP2(t, Options{Upstreams: []string{node.URL}}, encrypted)
					res, body := get(t, f, newRequest(t, "GET", f.url+"/a", nil))
					if body != test.body || res.status != test.status {
						t.Errorf("got %d %q", res.status, body)
					}
					if test.trailer != nil {
						res.header.Del("Content-Length") // net/http may give a short answer a length
					}
					if diff := cmp.Diff(test.header, res.header); diff != "" {
						t.Errorf("headers (-want +got):\n%s", diff)
					}
					if diff := cmp.Diff(test.trailer, res.trailer); diff != "" {
						t.Errorf("trailers (-want +got):\n%s", diff)
					}
				})
			}
		})
	}
}

// TestBrokenAnswerBreaksOffOneStream has another request of the same connection
// under way, which is answered all the same.
func TestBrokenAnswerBreaksOffOneStream(t *testing.T) {
	for way, encrypted := range both {
		t.Run(way, func(t *testing.T) {
			proceed := make(chan struct{})
			node := startRawNode(t, func(_ int, r rawRequest) string {
				if strings.Contains(r.line, "/broken") {
					return "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf" + hangUp
				}
				<-proceed
				return emptyAnswer
			})
			f := startHTTP2(t, Options{Upstreams: []string{node.URL}}, encrypted)
			whole := make(chan error, 1)
			go func() {
				res, err := f.Get(f.url + "/whole")
				if err == nil {
					_, err = io.ReadAll(res.Body)
					res.Body.Close()
				}
				whole <- err
			}()
			for len(node.all()) == 0 {
				time.Sleep(time.Millisecond)
			}
			res, err := f.Get(f.url + "/broken")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if got, err := io.ReadAll(res.Body); string(got) != "half" || err == nil {
				t.Errorf("read %q, %v, want half and an error", got, err)
			}
			close(proceed)
			if err := receive(t, "the other answer", whole); err != nil {
				t.Errorf("the other request: %v", err)
			}
			if n := testutil.ToFloat64(f.front.server().metrics.Connections.WithLabelValues("proxy")); n != 1 {
				t.Errorf("%v connections", n)
			}
		})
	}
}

func TestSearchOverHTTP2IsRewritten(t *testing.T) {
	for way, encrypted := range both {
		t.Run(way, func(t *testing.T) {
			node := startRawNode(t, nil)
			f := startHTTP2(t, Options{Upstreams: []string{node.URL}, Expander: rewriteTo(`{"rewritten":1}`)}, encrypted)
			req := newRequest(t, "POST", f.url+"/a/_search", strings.NewReader(`{"query":{}}`))
			req.Header.Set("Content-Type", "application/json")
			if _, body := get(t, f, req); body != "{}" || node.only(t).body != `{"rewritten":1}` {
				t.Errorf("the node got %q, the client %q", node.only(t).body, body)
			}
		})
	}
}

// TestHTTP2StreamsBothWays sends halves that wait for one another, larger than
// all buffers.
func TestHTTP2StreamsBothWays(t *testing.T) {
	const half = 2 << 20
	content := make([]byte, 2*half)
	rand.NewChaCha8([32]byte{1}).Read(content)
	for way, encrypted := range both {
		t.Run(way, func(t *testing.T) {
			nodeHas, clientHas := make(chan struct{}), make(chan struct{})
			node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sum := sha256.New()
				io.CopyN(sum, r.Body, half)
				close(nodeHas)
				io.Copy(sum, r.Body)
				if [32]byte(sum.Sum(nil)) != sha256.Sum256(content) {
					t.Error("the node got other bytes")
				}
				w.Write(content[:half])
				<-clientHas
				w.Write(content[half:])
			}))
			defer node.Close()
			f := startHTTP2(t, Options{Upstreams: []string{node.URL}, Expander: expander(leaveAlone)}, encrypted)
			body, feed := io.Pipe()
			go func() {
				feed.Write(content[:half])
				<-nodeHas
				feed.Write(content[half:])
				feed.Close()
			}()
			res, err := f.Post(f.url+"/_bulk", "application/x-ndjson", body)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			got := make([]byte, half)
			io.ReadFull(res.Body, got)
			close(clientHas)
			rest, err := io.ReadAll(res.Body)
			if err != nil || !bytes.Equal(append(got, rest...), content) {
				t.Errorf("the client got other bytes (%v)", err)
			}
		})
	}
}

func TestResetOfAStreamReachesTheNode(t *testing.T) {
	for way, encrypted := range both {
		t.Run(way, func(t *testing.T) {
			reached, canceled := make(chan struct{}), make(chan struct{})
			node := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(reached)
				<-r.Context().Done()
				close(canceled)
			}))
			defer node.Close()
			f := startHTTP2(t, Options{Upstreams: []string{node.URL}}, encrypted)
			ctx, cancel := context.WithCancel(t.Context())
			go f.Do(newRequest(t, "GET", f.url+"/a", nil).WithContext(ctx))
			receive(t, "the request at the node", reached)
			cancel()
			receive(t, "the end of the request at the node", canceled)
		})
	}
}

func TestLargeHeadsOverHTTP2AreRefused(t *testing.T) {
	for way, encrypted := range both {
		t.Run(way, func(t *testing.T) {
			node := startRawNode(t, nil)
			f := startHTTP2(t, Options{Upstreams: []string{node.URL}}, encrypted)
			for _, size := range []int{9 << 10, 60 << 10} {
				req := newRequest(t, "GET", f.url+"/a", nil)
				for range size >> 10 {
					req.Header.Add("X-Long", strings.Repeat("x", 1000))
				}
				if res, body := get(t, f, req); res.status != http.StatusRequestHeaderFieldsTooLarge || !strings.Contains(body, "akin_too_long_header_exception") {
					t.Errorf("%d bytes: %d %s", size, res.status, body)
				}
			}
			if res, _ := get(t, f, newRequest(t, "GET", f.url+"/a", nil)); res.status != http.StatusOK {
				t.Errorf("after that: %d", res.status)
			}
			if got := len(node.all()); got != 1 {
				t.Errorf("%d requests reached the node", got)
			}
		})
	}
}

// TestHTTP2IsOffWhereConfigured asks with prior knowledge, and in a handshake.
func TestHTTP2IsOffWhereConfigured(t *testing.T) {
	node := startRawNode(t, nil)
	_, addr, _ := startFront(t, Options{Upstreams: []string{node.URL}})
	c := dial(t, addr)
	io.WriteString(c, http2.ClientPreface)
	if answer, _ := io.ReadAll(c); !strings.HasPrefix(string(answer), "HTTP/1.1 ") {
		t.Errorf("h2c is answered with %q", answer)
	}
	f := startHTTP2(t, Options{Upstreams: []string{node.URL}}, true)
	_, addr, _ = startFrontTLS(t, Options{Upstreams: []string{node.URL}}, f.config)
	secure, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer secure.Close()
	if got := secure.ConnectionState().NegotiatedProtocol; got == "h2" {
		t.Error("HTTP/2 is agreed on")
	}
}

// TestRequestsOverHTTP2TakePlaces has three requests on one connection where
// there are two places.
func TestRequestsOverHTTP2TakePlaces(t *testing.T) {
	for way, encrypted := range both {
		t.Run(way, func(t *testing.T) {
			reached, proceed := make(chan struct{}, 3), make(chan struct{})
			node := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/a" {
					reached <- struct{}{}
					<-proceed
				}
			}))
			defer node.Close()
			f := startHTTP2(t, Options{Upstreams: []string{node.URL}, MaxConnections: 2}, encrypted)
			get(t, f, newRequest(t, "GET", f.url+"/first", nil)) // then there is one connection
			done := make(chan error, 3)
			for range 3 {
				go func() {
					res, err := f.Get(f.url + "/a")
					if err == nil {
						res.Body.Close()
					}
					done <- err
				}()
			}
			receive(t, "a request at the node", reached)
			receive(t, "another one", reached)
			select {
			case <-reached:
				t.Error("a third request reached the node")
			case <-time.After(2 * connections.ShortSilence):
			}
			close(proceed)
			for range 3 {
				if err := receive(t, "an answer", done); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A rawClient2 is a client over HTTP/2 that does what it likes.
type rawClient2 struct {
	net.Conn
	*http2.Framer

	pack    *hpack.Encoder
	block   bytes.Buffer
	streams uint32
}

// dial2 connects with prior knowledge.
func dial2(t *testing.T, addr string, settings ...http2.Setting) *rawClient2 {
	t.Helper()
	c := &rawClient2{Conn: dial(t, addr)}
	c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, http2.ClientPreface)
	c.Framer = http2.NewFramer(c, c)
	c.pack = hpack.NewEncoder(&c.block)
	c.WriteSettings(settings...)
	return c
}

// head returns the header block of the next request.
func (c *rawClient2) head(path string) []byte {
	c.streams++
	c.block.Reset()
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", path}} {
		c.pack.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	return c.block.Bytes()
}

// ask sends a request and returns its stream.
func (c *rawClient2) ask() (stream uint32, err error) {
	block := c.head("/a")
	stream = 2*c.streams - 1
	return stream, c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block, EndStream: true, EndHeaders: true})
}

// ends reads until the server closes the connection.
func (c *rawClient2) ends() error {
	_, err := io.Copy(io.Discard, c)
	return err
}

// TestHostileClientsOverHTTP2 floods one connection, while another is served.
func TestHostileClientsOverHTTP2(t *testing.T) {
	const flood = 30_000
	for name, attack := range map[string]struct {
		act  func(c *rawClient2) error
		ends bool // the server ends the connection, or reads no more of it
	}{
		"rapid reset": {func(c *rawClient2) error {
			for range flood {
				stream, err := c.ask()
				if err == nil {
					err = c.WriteRSTStream(stream, http2.ErrCodeCancel)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}, false},
		"header flood": {func(c *rawClient2) error {
			err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.head("/a")})
			for err == nil {
				c.block.Reset()
				c.pack.WriteField(hpack.HeaderField{Name: "x-long", Value: strings.Repeat("x", 4<<10), Sensitive: true})
				err = c.WriteContinuation(1, false, c.block.Bytes())
			}
			return err
		}, true},
		"pings that are not read": {func(c *rawClient2) (err error) {
			for err == nil {
				err = c.WritePing(false, [8]byte{})
			}
			return err
		}, true},
		"settings that are not read": {func(c *rawClient2) (err error) {
			for err == nil {
				err = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
			}
			return err
		}, true},
		"headers that do not end": {func(c *rawClient2) error {
			return c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.head("/a")})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			node := startRawNode(t, nil)
			f := startHTTP2(t, Options{Upstreams: []string{node.URL}, MaxConnections: 200}, false)
			c := dial2(t, f.addr)
			c.SetDeadline(time.Now().Add(3 * time.Second)) // of what the server does not read
			if strings.Contains(name, "rapid") {
				go c.ends() // it reads all that comes
			}
			if err := attack.act(c); (err != nil) != attack.ends && !strings.Contains(name, "rapid") {
				t.Errorf("the attack ended with %v", err)
			}
			if res, body := get(t, f, newRequest(t, "GET", f.url+"/b", nil)); res.status != http.StatusOK || body != "{}" {
				t.Errorf("another client gets %d %s", res.status, body)
			}
			c.Close()
			for f.front.inFlight.Load() > 0 {
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// TestClientThatStopsStreamsMakesRoom asks for long answers on one connection
// and reads none: with all places taken, it makes room.
func TestClientThatStopsStreamsMakesRoom(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long) }))
	defer node.Close()
	f := startHTTP2(t, Options{Upstreams: []string{node.URL}, MaxConnections: 4}, false)
	c := dial2(t, f.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	ended := make(chan error, 1)
	go func() { ended <- c.ends() }()
	for range 4 {
		if _, err := c.ask(); err != nil {
			t.Fatal(err)
		}
	}
	for f.front.inFlight.Load() < 4 {
		time.Sleep(time.Millisecond)
	}
	if res, body := get(t, f, newRequest(t, "GET", f.url+"/b", nil)); res.status != http.StatusOK || body != long {
		t.Errorf("another client gets %d", res.status)
	}
	if err := receive(t, "the end of the connection", ended); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the connection ended with %v", err)
	}
}

// TestDrainEndsHTTP2 has one request under way and one connection idle.
func TestDrainEndsHTTP2(t *testing.T) {
	for way, encrypted := range both {
		t.Run(way, func(t *testing.T) {
			reached, proceed := make(chan struct{}), make(chan struct{})
			node := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					close(reached)
					<-proceed
				}
			}))
			defer node.Close()
			f := startHTTP2(t, Options{Upstreams: []string{node.URL}}, encrypted)
			servers := make(chan error, 1)
			get(t, f, newRequest(t, "GET", f.url+"/a", nil))
			go func() {
				res, err := f.Get(f.url + "/slow")
				if err == nil {
					res.Body.Close()
				}
				servers <- err
			}()
			receive(t, "the request at the node", reached)
			f.front.server().draining.Store(true)
			if res, _ := get(t, f, newRequest(t, "GET", f.url+"/last", nil)); res.status != http.StatusOK { // closes the connection behind it
				t.Errorf("while draining: %d", res.status)
			}
			close(proceed)
			if err := receive(t, "the answer", servers); err != nil {
				t.Errorf("the request under way: %v", err)
			}
		})
	}
}
