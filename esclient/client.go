// Package esclient asks the search cluster on akin's own account: how a field
// is mapped, how a text is analyzed, how frequent a term is, how the engine
// scores. It works with Elasticsearch 7 and later and with OpenSearch.
//
// [Client] asks at once; [Cached] answers the questions of searches from
// memory.
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

	"github.com/akin-search/akin/internal/recovery"
)

const (
	defaultTimeout = 5 * time.Second // of a call
	maxAnswer      = 32 << 20        // by default: the mappings of some thousand indices fit
	smallAnswer    = 1 << 20         // of a few numbers for each of at most termChunk
	maxErrorAnswer = 64 << 10
)

// Options say how to reach a cluster.
type Options struct {
	// Transport, unless nil, sends the calls in place of URL and CA: to a node of
	// its choice. The requests belong to it.
	Transport http.RoundTripper
	// URL is a node of the cluster, http or https and without credentials.
	URL string
	// CA has the certificates, as PEM, that sign the cluster's; empty is the
	// system's.
	CA []byte
	// Username and Password are sent as basic authentication where both are set;
	// APIKey, base64 as the cluster gave it out, instead of them.
	Username, Password, APIKey string
	Timeout                    time.Duration   // of a call that sets none; 0 is 5 s
	Guard                      *recovery.Guard // counts what panics in goroutines; may be nil
	// Memory bounds what answers take while they are read and decoded; nil is no
	// bound for all together.
	Memory Memory
}

// Memory bounds the bytes in use at a time: Take reports false where n are not
// to be had, Give gives them back. Both may be called at the same time.
type Memory interface {
	Take(n int64) bool
	Give(n int64)
}

// A Client calls a cluster. Every call is made once, ends with its context or
// its timeout, and reads a bounded answer. Its methods may be called at the
// same time. Their errors wrap an [*Error] where the cluster refused
// the call, the transport's error where no answer came, and context errors.
// They name the call and have no credentials in them.
type Client struct {
	api       *elastictransport.Client
	transport http.RoundTripper
	timeout   time.Duration
	guard     *recovery.Guard
	memory    Memory // may be nil
}

// New returns a client, or an error that names the option at fault. It makes no
// call.
func New(o Options) (*Client, error) {
	c, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return c, nil
}

func open(o Options) (_ *Client, err error) {
	transport := o.Transport
	if transport != nil {
		o.URL = "http://cluster" // replaced by Transport
	} else if transport, err = newTransport(o.CA); err != nil {
		return nil, err
	}
	node, err := o.node()
	if err != nil {
		return nil, err
	}
	api, err := elastictransport.NewClient(
		elastictransport.WithURLs(node),
		elastictransport.WithBasicAuth(o.Username, o.Password),
		elastictransport.WithAPIKey(o.APIKey),
		elastictransport.WithUserAgent("akin"),
		elastictransport.WithDisableRetry(),
		elastictransport.WithTransport(transport),
		elastictransport.WithInterceptors(keepEscapes),
	)
	timeout := cmp.Or(max(o.Timeout, 0), defaultTimeout)
	return &Client{api: api, transport: transport, timeout: timeout, guard: o.Guard, memory: o.Memory}, err
}

// node returns the node, or what is wrong with the options. It quotes no URL:
// there may be a password in it.
func (o *Options) node() (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(o.URL, "/"))
	switch {
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

// Close ends the client; later calls fail, and those under way may.
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
	// API says the call by a type of the Elasticsearch client, in place of Method,
	// Path (escaped, with the query) and Body, which is marshaled as JSON unless it
	// is [Lines]; nil is none.
	API          esapi.Request
	Method, Path string
	Body         any
	// Timeout bounds the call with the reading of its answer; 0 is the client's
	// own. Limit bounds the answer in bytes; 0 is 32 MiB.
	Timeout time.Duration
	Limit   int64
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

// Send makes a call and hands the body of its answer to read, if it is a
// success. Where ctx or the time of the call ends meanwhile, the error wraps
// that, too: read may see only a closed connection.
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
		return ParseError(resp.StatusCode, b)
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
		if err := Decode(b, out); err != nil {
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

// Errors that end the reading of an answer: it is larger than its bound, or
// [Options.Memory] gives no more.
var (
	ErrTooLarge = errors.New("the answer is larger than its bound")
	ErrNoMemory = errors.New("no memory is left for the answer")
)

// decodedSize is how often the bytes of an answer are counted: as they came and
// as what they are decoded into.
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
	idlePerHost      = 32 // for the calls of a burst of cold searches; net/http keeps 2
)

// newTransport returns the HTTP transport of a client that trusts ca.
func newTransport(ca []byte) (http.RoundTripper, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("the CA file holds no PEM certificate")
		}
	}
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: handshakeTimeout,
		MaxIdleConnsPerHost: idlePerHost,
		IdleConnTimeout:     idleTimeout,
		DisableCompression:  true, // inflating what comes from near by costs more than it saves
	}, nil
}

// keepEscapes puts the prefix of the node, which elastictransport puts before
// u.Path only, before u.RawPath, too. Else the two disagree, net/url drops
// RawPath, and an escaped slash (date math in the name of an index) becomes a
// plain one.
func keepEscapes(next elastictransport.RoundTripFunc) elastictransport.RoundTripFunc {
	return func(req *http.Request) (*http.Response, error) {
		u := req.URL
		if plain, err := url.PathUnescape(u.RawPath); err == nil && plain != "" {
			if prefix, ok := strings.CutSuffix(u.Path, plain); ok {
				u.RawPath = (&url.URL{Path: prefix}).EscapedPath() + u.RawPath
			}
		}
		return next(req)
	}
}

// A found is the answer to a search: hits with members H, and aggregations A.
type found[H, A any] struct {
	Shards struct {
		Successful int `json:"successful"`
		Failed     int `json:"failed"`
	} `json:"_shards"`
	Hits struct {
		Hits []H `json:"hits"`
	} `json:"hits"`
	Aggregations A `json:"aggregations"`
}

// none is what a search is not asked for.
type none struct{}

// documents is how many documents an aggregation counts.
type documents struct {
	DocCount int64 `json:"doc_count"`
}

// errShards says that an answer is not of all shards.
var errShards = errors.New("shards failed")

// search searches the indices for what filter lets through of the answer.
func search[H, A any](ctx context.Context, c *Client, indices Indices, filter string, body Object) (found[H, A], error) {
	body["track_total_hits"], body["_source"] = false, false
	var answer found[H, A]
	err := c.Call(ctx, Request{
		Method: http.MethodPost, Path: indices.path("/_search", url.Values{"filter_path": {filter}}), Body: body, Limit: smallAnswer,
	}, &answer)
	if n := answer.Shards.Failed; err == nil && n > 0 {
		err = fmt.Errorf("%d %w", n, errShards)
	}
	return answer, err
}

// An explained hit has the explanation of its score.
type explained struct {
	Explanation ScoreExplanation `json:"_explanation"`
}

// firstScale returns the scale of the first score that tells it, 0 for none.
func firstScale(hits []explained) float64 {
	for i := range hits {
		if scale, ok := hits[i].Explanation.Scale(); ok {
			return scale
		}
	}
	return 0
}

// TermQuery returns the query for one term of a field.
func TermQuery(field, term string) Object {
	return Object{"term": Object{field: Object{"value": term}}}
}

// ExistsQuery returns the query for the documents that have a field.
func ExistsQuery(field string) Object { return Object{"exists": Object{"field": field}} }

// IsUnknown reports whether the cluster refused a call of akin's own for an
// index that is missing, closed or blocked, or for an analyzer that it does not
// have.
func IsUnknown(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && !IsBarred(err) &&
		(refused.Status == http.StatusBadRequest || refused.Status == http.StatusNotFound ||
			refused.Status == http.StatusForbidden && isBlocked(refused))
}

// IsBarred reports whether the cluster refused a call for its setting
// search.allow_expensive_queries, which bars the queries that count terms of
// nested fields, too. All engines say it in the same words.
func IsBarred(err error) bool {
	const words = "queries cannot be executed when 'search.allow_expensive_queries' is set to false"
	var refused *Error
	return errors.As(err, &refused) && refused.Type == "exception" && strings.Contains(refused.Reason, words)
}
