package esclient

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

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

// A translator makes go-elasticsearch and OpenSearch understand each other. It
// sends plain JSON types, because OpenSearch answers 406 to the vendor types
// that the client sends in its compatibility mode, and it says on every
// response that the product is Elasticsearch, because the client refuses a
// server that does not: OpenSearch, Elasticsearch before 7.14, and some proxies
// in front of any.
type translator struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t translator) RoundTrip(in *http.Request) (*http.Response, error) {
	req := in.Clone(in.Context())
	req.Header.Set("Accept", "application/json")
	if req.Body != nil && req.Body != http.NoBody {
		req.Header.Set("Content-Type", "application/json")
	}
	req.URL.RawPath = rawPath(req.URL)
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Header.Set("X-Elastic-Product", "Elasticsearch")
	return resp, nil
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
