// Package sign signs requests for Amazon OpenSearch Service (AWS Signature
// Version 4): sign.go the request, body.go reads and hashes its body first,
// credentials.go has the credentials. The signature itself is the SDK's.
package sign

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
)

// Options configure a [Signer].
type Options struct {
	// Region and Service are what requests are signed for: "es" or "aoss".
	Region, Service string
	// Profile is one of the SDK's shared files, "" for that of the environment.
	// RoleARN is a role to assume with its credentials, "" for none.
	Profile, RoleARN string
	// Spool is a folder for bodies that are too large for memory; "" refuses them.
	Spool string
	// Memory limits the bodies in memory.
	Memory *limits.Budget
	// Logger gets the loss and the return of credentials and of the spool; nil
	// discards that.
	Logger *slog.Logger
}

// A Signer signs requests. Its methods may be called concurrently.
type Signer struct {
	region, service string
	credentials     aws.CredentialsProvider
	signer          *v4.Signer
	bodies          bodies
	now             func() time.Time
}

// New returns a signer. It makes no call.
func New(o Options) *Signer {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Signer{
		region: o.Region, service: o.Service, credentials: newCredentials(o), signer: v4.NewSigner(),
		bodies: bodies{memory: o.Memory, spooled: limits.New(maxSpooled), folder: o.Spool, log: o.Logger}, now: time.Now,
	}
}

// Transport returns a transport that signs each request on the host of its URL
// and sends it by next. It reads the body first. What cannot be signed is not
// sent: the error is then a [nodes.NotSentError], or that of the body.
func (s *Signer) Transport(next http.RoundTripper) http.RoundTripper { return &transport{s, next} }

type transport struct {
	signer *Signer
	next   http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	b, err := t.signer.bodies.read(req)
	if err != nil {
		return nil, err
	}
	defer b.release()
	signed, err := t.signer.sign(req, b.sum)
	if err != nil {
		return nil, err
	}
	b.attach(signed)
	return t.next.RoundTrip(signed)
}

// CloseIdleConnections closes connections that no request uses.
func (t *transport) CloseIdleConnections() { (&http.Client{Transport: t.next}).CloseIdleConnections() }

const (
	prefix   = "X-Amz-"
	sumField = prefix + "Content-Sha256"
)

// sign returns a signed copy of req, whose body has the SHA-256 sum.
func (s *Signer) sign(req *http.Request, sum string) (*http.Request, error) {
	credentials, err := s.credentials.Retrieve(req.Context())
	if err != nil {
		return nil, &nodes.NotSentError{
			Status: http.StatusServiceUnavailable, Type: "akin_credentials_exception",
			Reason: "akin has no credentials to sign the request with", Err: err,
		}
	}
	query, err := canonicalQuery(req.URL.RawQuery)
	if err != nil {
		return nil, &nodes.NotSentError{
			Status: http.StatusBadRequest, Type: "akin_request_exception", Reason: "akin cannot sign the request: " + err.Error(), Err: err,
		}
	}
	covered := cover(req, query)
	covered.Header[sumField] = []string{sum}
	if err := s.signer.SignHTTP(req.Context(), credentials, covered, sum, s.service, s.region, s.now()); err != nil {
		return nil, fmt.Errorf("sign the request: %w", err)
	}
	if len(covered.URL.RawQuery) != len(query) { // the order may differ
		return nil, errors.New("sign the request: not all of the query string was signed")
	}
	signed, target := *req, *req.URL
	target.RawQuery = query
	signed.URL, signed.Host = &target, covered.Host
	signed.Header = req.Header.Clone()
	for _, name := range []string{"Authorization", prefix + "Date", prefix + "Security-Token", sumField} {
		signed.Header.Del(name)
		if values := covered.Header[name]; len(values) > 0 {
			signed.Header[name] = values
		}
	}
	return &signed, nil
}

// cover returns what the signature of req covers. Of the headers these are the
// host, Content-Type and X-Amz-*: what is between akin and Amazon changes or
// removes others.
func cover(req *http.Request, query string) *http.Request {
	covered := &http.Request{Method: req.Method, Host: req.Host, Header: http.Header{}, URL: &url.URL{
		Scheme: req.URL.Scheme, Host: req.URL.Host, Opaque: "//" + req.URL.Host + canonicalPath(req.URL), RawQuery: query,
	}}
	for name, values := range req.Header {
		if name == "Content-Type" || strings.HasPrefix(name, prefix) {
			covered.Header[name] = values
		}
	}
	return covered
}

// canonicalQuery returns a query string with every name and value escaped as
// the signature wants it, and all else in place. Whoever verifies it may read
// other forms differently: a plus sign, or the semicolon, which separates in
// the engines.
func canonicalQuery(raw string) (string, error) {
	var all []string
	for part := range strings.FieldsFuncSeq(raw, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(part, "=")
		name, errName := escapeAgain(name)
		value, errValue := escapeAgain(value)
		if errName != nil || errValue != nil {
			return "", errors.New("its query string has a % without two hexadecimal digits")
		}
		all = append(all, name+"="+value)
	}
	return strings.Join(all, "&"), nil
}

// escapeAgain escapes a part of a query string as RFC 3986 has it.
func escapeAgain(s string) (string, error) {
	plain, err := url.QueryUnescape(s)
	return strings.ReplaceAll(url.QueryEscape(plain), "+", "%20"), err
}

// canonicalPath returns the path of u as it is sent, without empty elements, .
// and .., which the signature leaves out.
func canonicalPath(u *url.URL) string {
	sent := u.Opaque
	if sent == "" {
		sent = u.EscapedPath()
	}
	clean := path.Clean("/" + sent)
	if strings.HasSuffix(sent, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}
