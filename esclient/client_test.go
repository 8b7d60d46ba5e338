package esclient

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
)

// serve starts a server and returns a client of it.
func serve(t *testing.T, h http.HandlerFunc, change func(*Options)) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	o := Options{URL: s.URL}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	check.OK(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestNewNamesTheOptionAtFault(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"no URL", Options{}, "want http"},
		{"no scheme", Options{URL: "localhost:9200"}, "want http"},
		{"an address", Options{URL: "127.0.0.1:9200"}, "want http"},
		{"other scheme", Options{URL: "ftp://a"}, "want http"},
		{"no URL at all", Options{URL: "http://a b:secret/%zz"}, "not a URL"},
		{"credentials in the URL", Options{URL: "http://user:secret@a:1"}, "credentials"},
		{"a query", Options{URL: "http://a:1/?x=1"}, "query"},
		{"a user without a password", Options{URL: "http://a:1", Username: "u"}, "both"},
		{"a password without a user", Options{URL: "http://a:1", Password: "secret"}, "both"},
		{"user and key", Options{URL: "http://a:1", Username: "u", Password: "secret", APIKey: "secret"}, "one of them"},
		{"no certificate", Options{URL: "https://a:1", CA: []byte("secret")}, "PEM"},
	} {
		_, err := New(tt.o)
		check.That(t, err != nil && strings.Contains(err.Error(), tt.want) && !strings.Contains(err.Error(), "secret"), "%s: error %v, want one with %q and no secret", tt.name, err, tt.want)
	}
}

func TestPlainJSONTypesAreSent(t *testing.T) {
	var h http.Header
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		h = r.Header
		_, _ = io.WriteString(w, "{}")
	}, nil)
	_, err := c.analyze(t.Context(), "i", analyzeBody{Text: []string{"x"}}, 0)
	check.OK(t, err)
	for _, name := range []string{"Accept", "Content-Type"} {
		check.Equal(t, []string{"application/json"}, h[name], name)
	}
	check.That(t, h.Get("X-Elastic-Client-Meta") == "" && h.Get("User-Agent") == "akin", "sent %v", h)
}

func TestServerWithoutProductHeaderIsAccepted(t *testing.T) {
	for _, r := range clustertest.Engines(t, "testdata") {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(r.Body(t, "info")) }, nil)
		info, err := c.Info(t.Context())
		got := info.Distribution + "-" + info.Version
		check.That(t, err == nil && got == r.Engine, "Info = %s, %v, want %s", got, err, r.Engine)
	}
}

func TestClusterThatHidesItsVersionAnswersOtherCalls(t *testing.T) {
	for _, status := range []int{403, 404, 405, 410} {
		f := clustertest.New().Reply("HEAD /", status, "").Reply("GET /", status, `{"message":"no"}`)
		c := client(t, f)
		_, err := c.Info(t.Context())
		check.That(t, err != nil && c.Ping(t.Context()) != nil, "%d: a server that answers nothing else is a cluster", status)
		f.Reply("GET /_resolve/index/akin-*", http.StatusOK, `{"indices":[]}`)
		info, err := c.Info(t.Context())
		check.That(t, err == nil && info == Info{} && c.Ping(t.Context()) == nil, "%d: %v, %v", status, info, err)
	}
}

func TestCallIsMadeOnce(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter){
		"502": func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		"503": func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"429": func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"connection closed": func(w http.ResponseWriter) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				answer(w)
			}, nil)
			_, err := c.analyze(t.Context(), "i", analyzeBody{}, 0)
			check.That(t, err != nil && calls.Load() == 1, "%d calls, error %v, want one call and an error", calls.Load(), err)
		})
	}
}

func TestCredentialsAreSent(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"":            nil,
		"Basic dTpw":  func(o *Options) { o.Username, o.Password = "u", "p" }, // base64 of u:p
		"APIKey a2V5": func(o *Options) { o.APIKey = "a2V5" },
	} {
		var got string
		c := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }, change)
		err := c.Ping(t.Context())
		check.That(t, err == nil && got == want, "sent %q, %v, want %q", got, err, want)
	}
}

func TestHeaderOfACallGetsNoCredentials(t *testing.T) {
	var got http.Header
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header }, func(o *Options) { o.APIKey = "a2V5" })
	own := http.Header{"X-Akin": {"off"}}
	check.OK(t, c.Do(t.Context(), Call{Request: esapi.PingRequest{Header: own}}, nil))
	check.That(t, got.Get("X-Akin") == "off" && got.Get("Authorization") != "" && len(own) == 1, "sent %v; the caller's header is now %v", got, own)
}

func TestBodyThatIsNoJSONIsAnError(t *testing.T) {
	c := serve(t, says("{}"), nil)
	err := c.Do(t.Context(), Call{Request: esapi.SearchRequest{Body: JSON(math.NaN())}}, nil)
	check.That(t, err != nil && strings.HasPrefix(err.Error(), "POST /_search: ") && strings.Contains(err.Error(), "encode"), "error %v", err)
}

func TestCertificateOfTheClusterIsVerified(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	signed := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for _, ca := range [][]byte{nil, signed} {
		c, err := New(Options{URL: s.URL, CA: ca})
		check.OK(t, err)
		if err := c.Ping(t.Context()); (err == nil) != (ca != nil) {
			t.Errorf("with the authority %t: error %v", ca != nil, err)
		}
		c.Close()
	}
}

func TestErrorsHoldNoCredentials(t *testing.T) {
	const secret = "c2VjcmV0"
	change := func(o *Options) { o.APIKey = secret }
	for name, h := range map[string]http.HandlerFunc{
		"closed":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"refused": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"garbage": says("<html>"),
	} {
		_, err := serve(t, h, change).Info(t.Context())
		check.That(t, err != nil && !strings.Contains(err.Error(), secret) && strings.HasPrefix(err.Error(), "GET /: "), "%s: error %v, want one that names the call and no secret", name, err)
	}
}

func TestErrorTellsTheRootCause(t *testing.T) {
	for _, r := range clustertest.Engines(t, "testdata") {
		t.Run(r.Engine, func(t *testing.T) {
			for answer, want := range map[string]Error{
				"no index":   {Type: "index_not_found_exception", Reason: "no such index [nowhere]"},
				"no handler": {Reason: "no handler found for uri [/_nowhere/x/y/z] and method [GET]"},
				"scripts barred": {
					Type:   "exception",
					Reason: "[script score] queries cannot be executed when 'search.allow_expensive_queries' is set to false.",
				},
			} {
				want.Status = r.Answers[answer].Status
				c := client(t, clustertest.New().Replay(t, "POST /i/_count", r, answer))
				_, err := count(t.Context(), c, "i")
				var got *Error
				check.That(t, errors.As(err, &got) && *got == want, "%s: error %v, want %+v", answer, err, want)
				barred := answer == "scripts barred"
				check.That(t, IsBarred(err) == barred && IsUnknown(err) != barred, "%s: barred %t, unknown to the cluster %t", answer, IsBarred(err), IsUnknown(err))
			}
		})
	}
}

func TestErrorOfSomethingElseThanTheClusterHasItsStatus(t *testing.T) {
	for _, body := range []string{"", "<html>Bad gateway</html>", `{"error":7}`, `{"error":{"type":{}}}`, `[]`, "{"} {
		c := client(t, clustertest.New().Reply("POST /i/_count", http.StatusBadGateway, body))
		_, err := count(t.Context(), c, "i")
		var got *Error
		check.That(t, errors.As(err, &got) && *got == (Error{Status: http.StatusBadGateway}), "%q: error %v", body, err)
	}
}

func TestLongReasonIsCut(t *testing.T) {
	body := `{"error":{"type":"t","reason":"` + strings.Repeat("é", 10_000) + `"}}`
	e := ParseError(http.StatusBadRequest, []byte(body))
	check.That(t, len(e.Reason) <= 310 && strings.HasSuffix(e.Reason, "é…"), "reason of %d bytes", len(e.Reason))
}

func TestReasonsOfAmazonAreRead(t *testing.T) {
	for _, name := range []string{"message", "Message"} {
		e := ParseError(http.StatusForbidden, []byte(`{"`+name+`":"no identity-based policy allows the es:ESHttpGet action"}`))
		check.Equal(t, "the cluster answered 403: no identity-based policy allows the es:ESHttpGet action", e.Error(), name)
	}
}

func TestAnswerIsBounded(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"count":"`)
		block := strings.Repeat("x", 1<<16)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
	}, nil)
	check.Error(t, ErrTooLarge, check.ErrOf(count(t.Context(), c, "i")))
}

func TestHangingClusterEndsWithTheTimeout(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"no header": clustertest.Hang,
		"half a body": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"count":`)
			_ = http.NewResponseController(w).Flush()
			clustertest.Hang(w, r)
		},
	} {
		c := serve(t, h, func(o *Options) { o.Timeout = 20 * time.Millisecond })
		check.Error(t, context.DeadlineExceeded, check.ErrOf(count(t.Context(), c, "i")), name)
	}
}

func TestGarbageIsAnError(t *testing.T) {
	for _, body := range []string{"", "x", `{"count":"1"}`, `{"count":1}{`, `{"count":1`, "\x00"} {
		c := client(t, clustertest.New().Reply("POST /i/_count", http.StatusOK, body))
		n, err := count(t.Context(), c, "i")
		check.That(t, err != nil, "%q: count %d, want an error", body, n)
	}
}

func TestEscapedSlashSurvivesAPathBeforeTheAPI(t *testing.T) {
	for _, prefix := range []string{"", "/es", "/a/b c"} {
		var got string
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			got = r.URL.EscapedPath()
			_, _ = io.WriteString(w, `{"count":1}`)
		}, func(o *Options) { o.URL += prefix })
		check.OK(t, check.ErrOf(count(t.Context(), c, "<logs-{now/d}>,a*")))
		plain, err := url.PathUnescape(got)
		check.That(t, err == nil && strings.HasSuffix(plain, "/<logs-{now/d}>,a*/_count") && strings.Contains(got, "%2Fd"), "prefix %q: sent %q", prefix, got)
		check.Equal(t, 2+strings.Count(prefix, "/"), strings.Count(got, "/"), prefix, got)
	}
}

// A connection is closed when the context of its call ends, and a reader of the
// answer may see just that.
func TestCallsThatTheirContextEndsSaySo(t *testing.T) {
	c := client(t, clustertest.New().Reply("GET /", http.StatusOK, "{}"))
	ctx, cancel := context.WithCancel(t.Context())
	err := c.Send(ctx, Call{Request: esapi.InfoRequest{}}, func(http.Header, io.Reader) error {
		cancel()
		return net.ErrClosed
	})
	check.That(t, errors.Is(err, context.Canceled) && errors.Is(err, net.ErrClosed), "error %v", err)
	err = c.Send(t.Context(), Call{Request: esapi.InfoRequest{}}, func(http.Header, io.Reader) error { return net.ErrClosed })
	check.That(t, !errors.Is(err, context.Canceled) && errors.Is(err, net.ErrClosed), "error of a call that nothing ended: %v", err)
}

// ledger is a Memory that notes what it gives.
type ledger struct {
	mu          sync.Mutex
	limit       int64
	taken, most int64
}

func (m *ledger) Take(n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken+n > m.limit {
		return false
	}
	m.taken += n
	m.most = max(m.most, m.taken)
	return true
}

func (m *ledger) Give(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken -= n
}

// What answers take is counted while they are read and decoded, and bounded for
// all together.
func TestAnswersAreReadWithinTheMemory(t *testing.T) {
	const padding = 100_000
	for name, c := range map[string]struct {
		limit int64
		want  error
	}{
		"enough":  {2*padding + 1000, nil},
		"too few": {2*padding - 1000, ErrNoMemory},
	} {
		t.Run(name, func(t *testing.T) {
			m := &ledger{limit: c.limit}
			client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"count":7,"x":"`+strings.Repeat("x", padding)+`"}`)
			}, func(o *Options) { o.Memory = m })
			_, err := count(t.Context(), client, "i")
			check.That(t, errors.Is(err, c.want) && (err == nil || c.want != nil), "error %v, want %v", err, c.want)
			check.That(t, m.taken == 0 && m.most != 0 && m.most <= c.limit, "%d bytes were counted, %d are at the end", m.most, m.taken)
		})
	}
}

// A search whose text makes the cluster answer with megabytes is not worth that.
func TestAnswersToAnalyzeAreSmall(t *testing.T) {
	m := &ledger{limit: 1 << 40}
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"tokens":[`)
		token := `{"token":"` + strings.Repeat("x", 1000) + `","start_offset":0,"end_offset":1,"position":0},`
		for range 60_000 { // 60 MB
			if _, err := io.WriteString(w, token); err != nil {
				return
			}
		}
	}, func(o *Options) { o.Memory = m })
	check.Error(t, ErrTooLarge, check.ErrOf(client.analyzeText(t.Context(), "i", analyzeBody{Text: []string{"x"}})))
	check.That(t, m.most <= decodedSize*textTokens && m.taken == 0, "%d bytes were counted, %d are at the end", m.most, m.taken)
}

// count makes some call.
func count(ctx context.Context, c *Client, index string) (int64, error) {
	var answer struct {
		Count int64 `json:"count"`
	}
	err := c.Do(ctx, Call{Request: esapi.CountRequest{Index: []string{Name(index)}}}, &answer)
	return answer.Count, err
}

// TestOutsideServersAreReachedAsTheEnvironmentSays runs itself in a process of
// its own: the environment is read once.
func TestOutsideServersAreReachedAsTheEnvironmentSays(t *testing.T) {
	if signed := os.Getenv("AKIN_TEST_SIGNED"); signed != "" {
		for _, outside := range []bool{true, false} {
			for _, server := range []string{signed, "http://behind-the-proxy.invalid"} {
				c, err := New(Options{URL: server, CA: []byte(os.Getenv("AKIN_TEST_CA")), Outside: outside})
				check.OK(t, err)
				if err := c.Ping(t.Context()); (err == nil) != outside {
					t.Errorf("%s, outside %v: %v", server, outside, err)
				}
				c.Close()
			}
		}
		return
	}
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	signed, proxy := httptest.NewTLSServer(ok), httptest.NewServer(ok)
	defer signed.Close()
	defer proxy.Close()
	signed.Config.ErrorLog = log.New(io.Discard, "", 0)
	asPEM := func(der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}) }
	system := filepath.Join(t.TempDir(), "system.pem")
	check.OK(t, os.WriteFile(system, asPEM(signed.Certificate().Raw), 0o600))
	public, private, _ := ed25519.GenerateKey(nil)
	another := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(nil, another, another, public, private)
	check.OK(t, err)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = []string{"HTTP_PROXY=" + proxy.URL, "SSL_CERT_FILE=" + system, "AKIN_TEST_SIGNED=" + signed.URL, "AKIN_TEST_CA=" + string(asPEM(der))}
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
