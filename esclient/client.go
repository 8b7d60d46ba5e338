// Package esclient makes akin's own calls to the search cluster: how a field is
// mapped, how a text is analyzed, how frequent a term is, how the engine
// scores. It works with Elasticsearch 7 and later and with OpenSearch.
//
// [Client] makes calls; [Cached] answers the questions of searches from memory.
package esclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/internal/recovery"
)

const (
	defaultTimeout = 5 * time.Second // of a call
	maxAnswer      = 32 << 20        // default: the mappings of some thousand indices fit
	smallAnswer    = 1 << 20         // some numbers for each of at most termChunk
	maxErrorAnswer = 64 << 10
)

// Options configure a [Client].
type Options struct {
	// Transport, unless nil, sends the calls to a node of its choice, in place of
	// URL and CA. It may change the requests.
	Transport http.RoundTripper
	// Sign, unless nil, wraps what sends the calls to URL, to sign them.
	Sign func(next http.RoundTripper) http.RoundTripper
	// URL is a node of the cluster, http or https, without credentials.
	URL string
	// TLS, unless nil, says which certificates are trusted and shown, in place of
	// CA.
	TLS *tls.Config
	// CA has the PEM certificates of the authorities that sign the cluster's;
	// empty means the system's.
	CA []byte
	// Outside says that URL may be outside the own network: it is reached through
	// the environment's proxy (HTTPS_PROXY, NO_PROXY), and the system's
	// authorities are trusted besides CA.
	Outside bool
	// Username and Password are sent as basic authentication if both are set;
	// APIKey, base64 as the cluster issued it, is sent instead of them.
	Username, Password, APIKey string
	Timeout                    time.Duration   // of a call that sets none; 0 means 5 s
	Guard                      *recovery.Guard // counts panics in goroutines; may be nil
	// Memory limits what answers take while they are read and decoded; may be nil.
	Memory Memory
}

// Memory limits the bytes in use. Take returns false if n are not available,
// Give gives them back. Both may be called concurrently.
type Memory interface {
	Take(n int64) bool
	Give(n int64)
}

// A Client calls a cluster. It makes every call once, within its context and
// timeout, and reads a limited answer. Its methods may be called concurrently.
// Errors wrap an [*Error] if the cluster refused the call, the transport's
// error if no answer came, and context errors. They name the call and contain
// no credentials.
type Client struct {
	transport     http.RoundTripper
	node          *url.URL // without trailing slash
	authorization string   // the header, or ""
	timeout       time.Duration
	guard         *recovery.Guard
	memory        Memory // may be nil
}

// New returns a client, or an error that names a wrong option. It makes no
// call.
func New(o Options) (*Client, error) {
	c := &Client{transport: o.Transport, timeout: cmp.Or(max(o.Timeout, 0), defaultTimeout), guard: o.Guard, memory: o.Memory}
	var err error
	if o.Transport != nil {
		o.URL = "http://cluster" // replaced by Transport
	} else if c.transport, err = newTransport(&o); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if o.Sign != nil {
		c.transport = o.Sign(c.transport)
	}
	if c.node, err = o.node(); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	switch {
	case o.APIKey != "":
		c.authorization = "APIKey " + o.APIKey
	case o.Username != "":
		c.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(o.Username+":"+o.Password))
	}
	return c, nil
}

// node returns the node's URL, or what is wrong with the options. Errors do not
// quote the URL, which may contain a password.
func (o *Options) node() (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(o.URL, "/"))
	switch {
	case !strings.Contains(o.URL, "://"):
		return nil, errors.New("want http://HOST:PORT or https://HOST:PORT")
	case err != nil:
		return nil, errors.New("not a URL")
	case u.User != nil:
		return nil, errors.New("give credentials apart from the URL")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, errors.New("want http://HOST:PORT or https://HOST:PORT")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("want a URL without a query or fragment")
	case (o.Username == "") != (o.Password == ""):
		return nil, errors.New("user name and password: want both or neither")
	case o.Username != "" && o.APIKey != "":
		return nil, errors.New("user name and API key: want one of them")
	}
	return u, nil
}

// Close closes connections that no call uses.
func (c *Client) Close() { (&http.Client{Transport: c.transport}).CloseIdleConnections() }

// A Call is one call to the cluster.
type Call struct {
	Request esapi.Request // what is asked, or an [HTTPRequest]
	// Timeout limits the call, reading the answer included; 0 means the client's.
	// Limit limits the answer in bytes; 0 means 32 MiB.
	Timeout time.Duration
	Limit   int64
}

// An HTTPRequest is a request to an API that package esapi lacks.
type HTTPRequest struct {
	Method string      // "" means GET
	Path   string      // escaped, with the query
	Header http.Header // besides the headers of every call; may be nil
	Body   io.Reader   // JSON; may be nil
}

// Do implements [esapi.Request].
func (r HTTPRequest) Do(ctx context.Context, transport esapi.Transport) (*esapi.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, r.Path, r.Body)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, r.Header)
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := transport.Perform(req) //nolint:bodyclose // the caller closes it
	if err != nil {
		return nil, err
	}
	return &esapi.Response{StatusCode: res.StatusCode, Header: res.Header, Body: res.Body}, nil
}

// Name returns an index expression or another name as part of the path of a
// request: package esapi escapes nothing. "" means all indices.
func Name(name string) string { return url.PathEscape(cmp.Or(name, "_all")) }

// JSON returns v as the body of a request, nil for none. Reading it fails if v
// is no JSON.
func JSON(v any) io.Reader {
	if v == nil {
		return nil
	}
	text, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
	if err != nil {
		r, w := io.Pipe()
		_ = w.CloseWithError(fmt.Errorf("encode the request: %w", err)) // always nil
		return r
	}
	return bytes.NewReader(text)
}

// Do makes a call and decodes its JSON answer into out; nil discards it.
func (c *Client) Do(ctx context.Context, call Call, out any) error {
	return c.Send(ctx, call, func(_ http.Header, body io.Reader) error {
		if out == nil {
			return nil
		}
		if err := json.UnmarshalRead(body, out, Lenient()); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		return nil
	})
}

// Send makes a call and passes header and body of a successful answer to read.
// If ctx or the timeout ends meanwhile, the error wraps that, too: read may see
// only a closed connection.
func (c *Client) Send(ctx context.Context, call Call, read func(h http.Header, body io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(call.Timeout, c.timeout))
	defer cancel()
	p := &performer{Client: c, call: fmt.Sprintf("%T", call.Request)}
	err := c.send(ctx, p, call, read)
	if err == nil {
		return nil
	}
	if end := ctx.Err(); end != nil && !errors.Is(err, end) {
		err = fmt.Errorf("%w: %w", end, err)
	}
	return fmt.Errorf("%s: %w", p.call, err)
}

// A performer sends one call to the client's node. It implements
// [esapi.Transport].
type performer struct {
	*Client

	call string // method and path, for errors
}

// Perform adds URL, credentials and the client's headers. All engines accept
// plain JSON types, OpenSearch no others.
func (p *performer) Perform(req *http.Request) (*http.Response, error) {
	p.call = req.Method + " " + req.URL.EscapedPath()
	own := *p.node
	own.Path, own.RawPath = own.Path+req.URL.Path, own.EscapedPath()+req.URL.EscapedPath()
	own.RawQuery = req.URL.RawQuery
	if strings.HasSuffix(req.URL.Path, "/_analyze") { // package esapi puts the index there, too, where it is escaped twice
		query := req.URL.Query()
		query.Del("index")
		own.RawQuery = query.Encode()
	}
	req.URL, req.Host = &own, own.Host
	req.Header = req.Header.Clone() // it may be the caller's
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "akin")
	if p.authorization != "" {
		req.Header.Set("Authorization", p.authorization)
	}
	return p.transport.RoundTrip(req)
}

func (c *Client) send(ctx context.Context, p *performer, call Call, read func(h http.Header, body io.Reader) error) error {
	resp, err := call.Request.Do(ctx, p)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // nothing to learn from closing a body that was read
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		b, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorAnswer))
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		refused := ParseError(resp.StatusCode, b)
		refused.RetryAfter = retryAfter(resp.Header)
		return refused
	}
	answer := &boundedReader{r: resp.Body, left: cmp.Or(call.Limit, maxAnswer), memory: c.memory}
	defer func() { // by then the answer is decoded
		if c.memory != nil {
			c.memory.Give(answer.taken)
		}
	}()
	return read(resp.Header, answer)
}

// asking is the operation that panics here are counted for.
const asking = "asking the cluster"

// Errors that end the reading of an answer: it is larger than its limit, or
// [Options.Memory] has no more.
var (
	ErrTooLarge = errors.New("the answer is larger than its bound")
	ErrNoMemory = errors.New("no memory is left for the answer")
)

// decodedSize is how often an answer's bytes count: as they came, and decoded.
const decodedSize = 2

// A boundedReader reads left bytes of r and fails on one more; with
// [io.LimitReader] a cut answer would look complete.
type boundedReader struct {
	r      io.Reader
	left   int64
	memory Memory // may be nil
	taken  int64
}

// Read implements [io.Reader].
func (b *boundedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, ErrTooLarge
	}
	if b.memory != nil && n > 0 {
		if !b.memory.Take(decodedSize * int64(n)) {
			return 0, ErrNoMemory
		}
		b.taken += decodedSize * int64(n)
	}
	return n, err
}

// Info says what a cluster runs.
type Info struct {
	// Distribution is "elasticsearch" or "opensearch", Version such as "8.19.2".
	// Both are "" if the cluster does not tell.
	Distribution, Version string
}

// String returns distribution and version.
func (i Info) String() string {
	if i == (Info{}) {
		return "a cluster that does not tell its version"
	}
	return i.Distribution + " " + i.Version
}

// Info asks a node for its distribution and version.
func (c *Client) Info(ctx context.Context) (Info, error) {
	var answer struct {
		Version struct {
			Distribution string `json:"distribution"`
			Number       string `json:"number"`
		} `json:"version"`
	}
	if err := c.Do(ctx, Call{Request: esapi.InfoRequest{}, Limit: smallAnswer}, &answer); err != nil {
		return Info{}, c.unlessHidden(ctx, err)
	}
	if answer.Version.Number == "" {
		return Info{}, errors.New("GET /: the answer names no version")
	}
	// Elasticsearch does not name its distribution.
	return Info{cmp.Or(answer.Version.Distribution, "elasticsearch"), answer.Version.Number}, nil
}

// Ping returns nil if a node answers.
func (c *Client) Ping(ctx context.Context) error {
	return c.unlessHidden(ctx, c.Do(ctx, Call{Request: esapi.PingRequest{}}, nil))
}

// unlessHidden returns err, what became of a call to /, or nil if the cluster
// refuses that call and answers another.
func (c *Client) unlessHidden(ctx context.Context, err error) error {
	if !IsUnavailable(err) {
		return err
	}
	other := esapi.IndicesResolveIndexRequest{Name: []string{"akin-*"}}
	if c.Do(ctx, Call{Request: other, Limit: smallAnswer}, nil) != nil {
		return err
	}
	return nil
}

const (
	dialTimeout      = 2 * time.Second
	handshakeTimeout = 5 * time.Second
	idleTimeout      = 90 * time.Second
	idlePerHost      = 32 // for a burst of cold searches; net/http keeps 2
)

func newTransport(o *Options) (http.RoundTripper, error) {
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: handshakeTimeout,
		MaxIdleConnsPerHost: idlePerHost,
		IdleConnTimeout:     idleTimeout,
		DisableCompression:  true, // in a local network compression costs more than it saves
	}
	if o.TLS != nil {
		t.TLSClientConfig = o.TLS
		return t, nil
	}
	pool := x509.NewCertPool()
	if o.Outside {
		t.Proxy = http.ProxyFromEnvironment
		if system, err := x509.SystemCertPool(); err == nil {
			pool = system
		}
	}
	if len(o.CA) > 0 {
		t.TLSClientConfig.RootCAs = pool
		if !pool.AppendCertsFromPEM(o.CA) {
			return nil, errors.New("the CA file holds no PEM certificate")
		}
	}
	return t, nil
}
