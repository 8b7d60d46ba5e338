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

	"github.com/elastic/elastic-transport-go/v8/elastictransport"
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
