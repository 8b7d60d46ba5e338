package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// named returns a node that answers with its name and the body it got.
func named(t *testing.T, name string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		io.WriteString(w, name+string(body))
	}))
	t.Cleanup(s.Close)
	return s
}

// deadURL returns the URL of a node that refuses connections.
func deadURL() string {
	s := httptest.NewServer(nil)
	defer s.Close()
	return s.URL
}

func testUpstream(t *testing.T, urls ...string) *upstream {
	t.Helper()
	u, err := newUpstream(urls, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.transport.CloseIdleConnections)
	return u
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

// ask sends a request through u.
func ask(t *testing.T, u *upstream, body string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://ignored/a", &onceBody{Reader: strings.NewReader(body)})
	if err != nil {
		t.Fatal(err)
	}
	res, err := u.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return string(got), err
}

func TestNodesTakeTurns(t *testing.T) {
	u := testUpstream(t, named(t, "a").URL, named(t, "b").URL, named(t, "c").URL)
	got := map[string]int{}
	for range 9 {
		answer, err := ask(t, u, "")
		if err != nil {
			t.Fatal(err)
		}
		got[answer]++
	}
	if diff := cmp.Diff(map[string]int{"a": 3, "b": 3, "c": 3}, got); diff != "" {
		t.Errorf("requests by node (-want +got):\n%s", diff)
	}
}

func TestUnreachableNodeIsPassedOver(t *testing.T) {
	u := testUpstream(t, deadURL(), named(t, "b").URL)
	for range 6 {
		if got, err := ask(t, u, "{}"); got != "b{}" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

func TestRestOfUnreachableNodeGrowsAndEnds(t *testing.T) {
	alive := named(t, "a")
	u := testUpstream(t, deadURL(), alive.URL)
	now := time.Unix(1, 0)
	u.now = func() time.Time { return now }
	n := u.nodes[0]
	for _, seconds := range []int{1, 2, 4, 8, 16, 30, 30} {
		want := time.Duration(seconds) * time.Second
		for range 4 { // more failures than one in the same rest do not count
			ask(t, u, "")
		}
		if got := time.Duration(n.resume.Load() - now.UnixNano()); got != want {
			t.Fatalf("the node rests %v, want %v", got, want)
		}
		now = now.Add(want)
	}
	*n.base = *u.nodes[1].base // the node is back
	ask(t, u, "")
	ask(t, u, "")
	if n.resume.Load() != 0 || n.rest != 0 {
		t.Errorf("the node still rests after an answer")
	}
}

// Where all nodes rest, one request asks one node, so that a cluster that is
// back is noticed at once.
func TestOneNodeIsAskedWhereAllRest(t *testing.T) {
	u := testUpstream(t, deadURL(), deadURL())
	if _, err := ask(t, u, ""); err == nil {
		t.Fatal("dead nodes answered")
	}
	for i, n := range u.nodes {
		if !n.resting(u) {
			t.Errorf("node %d was not tried", i)
		}
	}
	later := u.nodes[0]
	if u.firstToResume() == later {
		later = u.nodes[1]
	}
	*u.firstToResume().base = *testUpstream(t, named(t, "back").URL).nodes[0].base
	if got, err := ask(t, u, ""); got != "back" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if !later.resting(u) {
		t.Error("the other node lost its rest")
	}
}

// A request that may have reached a node is not sent to another.
func TestRequestThatWasSentIsNotRepeated(t *testing.T) {
	var arrived atomic.Int32
	breaks := startRawNode(t, func(int, rawRequest) string { arrived.Add(1); return hangUp })
	alsoBreaks := startRawNode(t, func(int, rawRequest) string { arrived.Add(1); return hangUp })
	u := testUpstream(t, breaks.URL, alsoBreaks.URL)
	if got, err := ask(t, u, "{}"); err == nil {
		t.Fatalf("got %q, want an error", got)
	}
	if n := arrived.Load(); n != 1 {
		t.Errorf("the request arrived %d times, want once", n)
	}
	for i, n := range u.nodes {
		if n.resting(u) {
			t.Errorf("node %d rests although it can be connected to", i)
		}
	}
}

func TestClientThatLeavesSaysNothingOfTheNode(t *testing.T) {
	u := testUpstream(t, deadURL())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://ignored/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := u.RoundTrip(req)
	if err == nil {
		res.Body.Close()
	}
	if !errors.Is(err, context.Canceled) || u.nodes[0].resting(u) {
		t.Errorf("error %v, resting %v", err, u.nodes[0].resting(u))
	}
}

func TestCertificatesAreVerified(t *testing.T) {
	node := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "secret") }))
	node.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	node.StartTLS()
	defer node.Close()
	roots := x509.NewCertPool()
	roots.AddCert(node.Certificate())
	for name, tt := range map[string]struct {
		config *tls.Config
		want   int
	}{
		"by default":   {nil, http.StatusBadGateway},
		"with a root":  {&tls.Config{RootCAs: roots}, http.StatusOK},
		"switched off": {&tls.Config{InsecureSkipVerify: true}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := startProxy(t, Options{Upstreams: []string{node.URL}, TLS: tt.config})
			res, err := client.Get("http://" + addr + "/")
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != tt.want {
				t.Errorf("status %d, want %d", res.StatusCode, tt.want)
			}
		})
	}
}

// A node with a wrong certificate is one that cannot be connected to.
func TestNodeThatIsNotTrustedIsPassedOver(t *testing.T) {
	untrusted := httptest.NewUnstartedServer(nil)
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	untrusted.StartTLS()
	defer untrusted.Close()
	u := testUpstream(t, untrusted.URL, named(t, "b").URL)
	for range 4 {
		if got, err := ask(t, u, "{}"); got != "b{}" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	if !u.nodes[0].resting(u) {
		t.Error("the node does not rest")
	}
}

func TestNewRefusesUnusableURLs(t *testing.T) {
	tests := map[string]struct {
		urls []string
		want string
	}{
		"none":        {nil, "proxy: no URL of a cluster node"},
		"no scheme":   {[]string{"es:9200"}, `proxy: cluster URL 1: scheme "es" is not http or https`},
		"no host":     {[]string{"http:///es"}, "proxy: cluster URL 1: it has no host"},
		"second":      {[]string{"http://a", "ftp://b"}, `proxy: cluster URL 2: scheme "ftp" is not http or https`},
		"credentials": {[]string{"http://me:hunter2@a"}, "proxy: cluster URL 1: it holds credentials; those of the clients are passed on"},
		"broken":      {[]string{"http://me:hunter2@a:%zz"}, "proxy: cluster URL 1: not a URL"},
		"query":       {[]string{"http://a/?b"}, "proxy: cluster URL 1: it has a query or a fragment"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(Options{Upstreams: tt.urls})
			if err == nil || err.Error() != tt.want {
				t.Errorf("New = %v, want %s", err, tt.want)
			}
		})
	}
}
