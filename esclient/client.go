package esclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/elastic/elastic-transport-go/v8/elastictransport"
	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient/answers"
	"github.com/akin-search/akin/internal/recovery"
)

const (
	// defaultTimeout bounds a call whose options name no other time.
	defaultTimeout = 5 * time.Second
	// maxAnswer bounds an answer in bytes where nothing else is said. The
	// mappings of some thousand indices fit.
	maxAnswer = 32 << 20
	// smallAnswer bounds an answer that has a few numbers for each thing that was
	// asked for, at most termChunk.
	smallAnswer = 1 << 20
	// maxErrorAnswer bounds what is read of an answer that is an error.
	maxErrorAnswer = 64 << 10
)

// Options say how to reach a cluster.
type Options struct {
	// Transport, unless nil, sends the calls in place of URLs, CA and
	// InsecureSkipVerify: to a node of its choice. The requests belong to it.
	Transport http.RoundTripper
	// URLs are the cluster's nodes, at least one, http or https and without
	// credentials; calls go round among them.
	URLs []string
	// CA has the certificates, as PEM, that sign the cluster's; empty is the
	// system's.
	CA []byte
	// InsecureSkipVerify leaves the cluster's certificate unchecked.
	InsecureSkipVerify bool
	// Username and Password are sent as basic authentication where both are set;
	// APIKey, base64 as the cluster gave it out, instead of them.
	Username, Password string
	APIKey             string
	// Timeout bounds every single call, pages of a scan apart; 0 is 5 s.
	Timeout time.Duration
	// Guard counts what panics in goroutines of the package; it may be nil.
	Guard *recovery.Guard
	// Memory bounds what answers take while they are read and decoded; nil is no
	// bound for all together.
	Memory Memory
}

// Memory bounds what is held at a time. Its methods may be called at the same
// time.
type Memory interface {
	// Take takes n bytes, or reports false where they are not to be had.
	Take(n int64) bool
	// Give gives n bytes back.
	Give(n int64)
}

// A Client calls a cluster. Every call is made once, without a second try, ends
// with its context or its timeout, and reads a bounded answer. Its methods may
// be called at the same time.
//
// Their errors wrap an [*answers.Error] where the cluster refused the call, the
// transport's error where no answer came, and context errors. They name the
// call and hold no credentials.
type Client struct {
	api       *elastictransport.Client
	transport http.RoundTripper
	timeout   time.Duration
	guard     *recovery.Guard
	memory    Memory // may be nil
}

// New returns a client. It makes no call. It returns an error that names the
// option at fault.
func New(o Options) (*Client, error) {
	if o.Transport != nil {
		o.URLs = []string{"http://cluster"} // replaced by Transport
	}
	nodes, err := checkOptions(o)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	transport, err := newTransport(o)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	api, err := elastictransport.NewClient(
		elastictransport.WithURLs(nodes...),
		elastictransport.WithBasicAuth(o.Username, o.Password),
		elastictransport.WithAPIKey(o.APIKey),
		elastictransport.WithUserAgent("akin"),
		elastictransport.WithDisableRetry(),
		elastictransport.WithTransport(transport),
		elastictransport.WithInterceptors(keepEscapes),
	)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	c := &Client{api: api, transport: transport, timeout: o.Timeout, guard: o.Guard, memory: o.Memory}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	return c, nil
}

// checkOptions returns the nodes of o, or what is wrong with it. It quotes no
// URL, since a URL may hold a password.
func checkOptions(o Options) ([]*url.URL, error) {
	if len(o.URLs) == 0 {
		return nil, errors.New("no URL")
	}
	nodes := make([]*url.URL, len(o.URLs))
	for i, s := range o.URLs {
		u, err := url.Parse(strings.TrimRight(s, "/"))
		switch {
		case err != nil:
			return nil, fmt.Errorf("urls[%d]: not a URL", i)
		case u.User != nil:
			return nil, fmt.Errorf("urls[%d]: give credentials apart from the URL", i)
		case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
			return nil, fmt.Errorf("urls[%d]: want http://HOST:PORT or https://HOST:PORT", i)
		case u.RawQuery != "" || u.Fragment != "":
			return nil, fmt.Errorf("urls[%d]: want no query or fragment", i)
		}
		nodes[i] = u
	}
	if (o.Username == "") != (o.Password == "") {
		return nil, errors.New("user name and password: want both or neither")
	}
	if o.Username != "" && o.APIKey != "" {
		return nil, errors.New("user name and API key: want one of them")
	}
	return nodes, nil
}

// Close ends the client; calls made later fail. Calls under way may end with an
// error.
func (c *Client) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	err := c.api.Close(ctx)
	(&http.Client{Transport: c.transport}).CloseIdleConnections()
	if err != nil {
		return fmt.Errorf("close the cluster client: %w", err)
	}
	return nil
}

// A Request is one call to the cluster.
type Request struct {
	// API is the call in a type of the Elasticsearch client, nil where Method,
	// Path and Body say it.
	API    esapi.Request
	Method string
	// Path has the escaped path and the query.
	Path string
	// Body is marshaled as JSON, [Lines] are sent as they are; nil is none.
	Body any
	// Timeout bounds the call with the reading of its answer; 0 is the client's
	// own.
	Timeout time.Duration
	// Limit bounds the answer in bytes; 0 is 32 MiB.
	Limit int64
}

// Lines are JSON values, each with an end of line.
type Lines []byte

// Append appends a value.
func (l *Lines) Append(v any) error {
	b, err := encode(v)
	*l = append(append(*l, b...), '\n')
	return err
}

// An Object is a JSON object of a request.
type Object = map[string]any

// Do implements [esapi.Request].
func (r Request) Do(ctx context.Context, transport esapi.Transport) (*esapi.Response, error) {
	if r.API != nil {
		return r.API.Do(ctx, transport)
	}
	var body io.Reader
	if lines, ok := r.Body.(Lines); ok {
		body = bytes.NewReader(lines)
	} else if r.Body != nil {
		b, err := encode(r.Body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.Path, body)
	if err != nil {
		return nil, err
	}
	resp, err := transport.Perform(req) //nolint:bodyclose // the caller closes it
	if err != nil {
		return nil, err
	}
	return &esapi.Response{StatusCode: resp.StatusCode, Header: resp.Header, Body: resp.Body}, nil
}

// A named transport sends plain JSON types, since OpenSearch answers 406 to
// those of Elastic, and notes the method and the path for errors.
type named struct {
	*elastictransport.Client
	name string
}

// Perform implements [esapi.Transport].
func (n *named) Perform(req *http.Request) (*http.Response, error) {
	n.name = req.Method + " " + req.URL.EscapedPath()
	req.Header.Set("Accept", "application/json")
	if req.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return n.Client.Perform(req)
}

// Send makes a call and hands the body of its answer, if that is a success, to
// read. Where ctx or the time of the call ends meanwhile, the error wraps the
// cause of that, too: read may see only a closed connection.
func (c *Client) Send(ctx context.Context, r Request, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.Timeout, c.timeout))
	defer cancel()
	transport := &named{Client: c.api, name: r.Method + " " + r.Path}
	if err := c.perform(ctx, r, transport, read); err != nil {
		if end := ctx.Err(); end != nil && !errors.Is(err, end) {
			err = fmt.Errorf("%w: %w", end, err)
		}
		return fmt.Errorf("%s: %w", transport.name, err)
	}
	return nil
}

func (c *Client) perform(ctx context.Context, r Request, transport esapi.Transport, read func(io.Reader) error) error {
	resp, err := r.Do(ctx, transport)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // closing what was read tells nothing
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		b, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorAnswer))
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		return answers.ParseError(resp.StatusCode, b)
	}
	answer := &boundedReader{r: resp.Body, left: cmp.Or(r.Limit, maxAnswer), memory: c.memory}
	defer answer.release() // what is read of it is decoded by then
	return read(answer)
}

// Call makes a call and decodes its JSON answer into out; nil drops it.
func (c *Client) Call(ctx context.Context, r Request, out any) error {
	return c.Send(ctx, r, func(body io.Reader) error {
		if out == nil {
			return nil
		}
		b, err := io.ReadAll(body)
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		if err := answers.Decode(b, out); err != nil {
			return fmt.Errorf("decode the answer: %w", err)
		}
		return nil
	})
}

// get asks for path.
func (c *Client) get(ctx context.Context, path string, out any) error {
	return c.Call(ctx, Request{Method: http.MethodGet, Path: path}, out)
}

// asking is what the metric of panics says of all that the package does.
const asking = "asking the cluster"

// guarded returns f such that a panic of it is an error: for goroutines.
func (c *Client) guarded(f func() error) func() error {
	return func() error { return c.guard.Do(asking, f) }
}

// encode returns v as JSON.
func encode(v any) ([]byte, error) {
	return json.Marshal(v, jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
}

// Errors that end the reading of an answer.
var (
	// ErrTooLarge says that it is larger than its bound.
	ErrTooLarge = errors.New("the answer is larger than its bound")
	// ErrNoMemory says that [Options.Memory] gives no more.
	ErrNoMemory = errors.New("no memory is left for the answer")
)

// decodedSize is what an answer is counted as, in its own length: once as it
// came and once as what it is decoded into.
const decodedSize = 2

// A boundedReader reads left bytes of r and fails on one more, where
// [io.LimitReader] would make a cut answer look like a whole one.
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

func (b *boundedReader) release() {
	if b.memory != nil {
		b.memory.Give(b.taken)
	}
}

// Info tells what a cluster runs.
type Info struct {
	// Distribution is "elasticsearch" or "opensearch", Version such as "8.19.2".
	Distribution, Version string
}

// Info asks a node what it runs.
func (c *Client) Info(ctx context.Context) (Info, error) {
	var answer struct {
		Version struct {
			Distribution string `json:"distribution"`
			Number       string `json:"number"`
		} `json:"version"`
	}
	if err := c.Call(ctx, Request{API: esapi.InfoRequest{}, Limit: smallAnswer}, &answer); err != nil {
		return Info{}, err
	}
	if answer.Version.Number == "" {
		return Info{}, errors.New("GET /: the answer names no version")
	}
	// Elasticsearch says nothing of its distribution.
	return Info{cmp.Or(answer.Version.Distribution, "elasticsearch"), answer.Version.Number}, nil
}

// Ping reports by a nil error that a node answers.
func (c *Client) Ping(ctx context.Context) error {
	return c.Call(ctx, Request{API: esapi.PingRequest{}}, nil)
}

const (
	dialTimeout      = 2 * time.Second
	handshakeTimeout = 5 * time.Second
	idleTimeout      = 90 * time.Second
	// idlePerHost keeps a connection for every call that a burst of cold
	// searches makes at once; net/http keeps 2.
	idlePerHost = 32
)

// newTransport returns the HTTP transport of a client with these options.
func newTransport(o Options) (http.RoundTripper, error) {
	if o.Transport != nil {
		return o.Transport, nil
	}
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: o.InsecureSkipVerify, //nolint:gosec // off unless the operator asks for it by name
	}
	if len(o.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(o.CA) {
			return nil, errors.New("the CA file holds no PEM certificate")
		}
	}
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: handshakeTimeout,
		MaxIdleConnsPerHost: idlePerHost,
		IdleConnTimeout:     idleTimeout,
		// The answers are small or come from near by: inflating them costs
		// more than it saves.
		DisableCompression: true,
	}, nil
}

// keepEscapes sends the path as it was escaped, with the prefix of the node.
func keepEscapes(next elastictransport.RoundTripFunc) elastictransport.RoundTripFunc {
	return func(req *http.Request) (*http.Response, error) {
		req.URL.RawPath = rawPath(req.URL)
		return next(req)
	}
}

// rawPath returns u.RawPath with the prefix that elastictransport has put
// before u.Path only. Without it the two disagree, net/url drops RawPath, and
// an escaped slash, as date math in an index name has it, becomes a plain one.
func rawPath(u *url.URL) string {
	plain, err := url.PathUnescape(u.RawPath)
	if err != nil || plain == "" {
		return u.RawPath
	}
	prefix, ok := strings.CutSuffix(u.Path, plain)
	if !ok {
		return u.RawPath
	}
	return (&url.URL{Path: prefix}).EscapedPath() + u.RawPath
}
