package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"

	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/proxy/answer"
)

// markSafe marks a search or another read as one that may be sent twice, unless
// it leaves something behind in the cluster or moves a scroll on.
func markSafe(out *http.Request, upstream *nodes.Pool, search bool) *http.Request {
	safe := upstream.Several() && (search || out.Method == http.MethodGet || out.Method == http.MethodHead) &&
		!strings.Contains(out.URL.Path, "scroll") && !strings.Contains(out.URL.Path, "_async_search")
	if !safe || answer.Has(out.URL.RawQuery, "scroll") {
		return out
	}
	return out.WithContext(nodes.Safe(out.Context()))
}

// sentHeader returns the headers that the cluster gets, not to be modified.
func (s *Server) sentHeader(r *http.Request) http.Header {
	if !s.opts.ForwardedHeaders || r.RemoteAddr == "" { // without an address they are here already
		return r.Header
	}
	pr := httputil.ProxyRequest{In: r, Out: &http.Request{Header: r.Header.Clone()}}
	pr.SetXForwarded()
	return pr.Out.Header
}

// ask makes a call of akin's own with the credentials of the client that sent
// r: its headers but those about body, connection and answer, and where the
// cluster has security the parameters that no search has. It reads at most
// MaxBody bytes into hold, with nil into one that ends with the call.
func (s *Server) ask(ctx context.Context, r *http.Request, method, path string, body []byte, hold *limits.Hold) (status int, text []byte, err error) {
	out, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if s.access.secured.Load() {
		out.URL.RawQuery = strings.Trim(out.URL.RawQuery+"&"+answer.Unknown(r.URL.RawQuery), "&")
	}
	out.Header = s.sentHeader(r).Clone()
	for name := range out.Header {
		if slices.Contains(notAsked[:], name) || slices.Contains(tokens(r.Header["Connection"]), name) {
			delete(out.Header, name)
		}
	}
	out.Header["Accept"] = []string{"application/json"}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = []string{""} // else net/http makes one up
	}
	if len(body) > 0 {
		out.Header["Content-Type"] = []string{"application/json"}
	}
	res, err := s.upstream.RoundTrip(markSafe(out, s.upstream, true)) // all calls here read
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	if hold == nil {
		hold = s.opts.Memory.Hold(limits.SearchBody, "")
		defer hold.Release()
	}
	if text, err = limits.Read(res.Body, hold, res.ContentLength, s.opts.MaxBody); errors.Is(err, limits.ErrTooLarge) {
		err = fmt.Errorf("%s: the answer is larger than %d bytes", path, s.opts.MaxBody)
	}
	return res.StatusCode, text, err
}

// asking has calls made as the client that sent the search x.
func (s *Server) asking(r *http.Request, x *search) askFunc {
	return func(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
		return s.ask(ctx, r, method, path, body, x.hold)
	}
}

// notAsked are the headers of a client that a call made for it has not.
var notAsked = [...]string{
	"Accept", "Accept-Charset", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect",
	"Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding",
	"Upgrade", controlHeader, profileHeader,
}
