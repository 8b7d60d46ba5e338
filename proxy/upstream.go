package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/akin-search/akin/esclient"
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

// as makes calls of akin's own with the credentials of a client: its headers
// but those about body, connection and answer, and where the cluster has
// security its parameters. A call reads at most MaxBody bytes into hold, with
// nil into one that ends with the call.
func (s *Server) as(client caller, hold *limits.Hold) sender {
	return func(ctx context.Context, c esclient.Call) (status int, text []byte, err error) {
		out, err := c.Request(ctx, "")
		if err != nil {
			return 0, nil, err
		}
		if s.access.secured.Load() {
			out.URL.RawQuery = strings.Trim(out.URL.RawQuery+"&"+client.parameters(), "&")
		}
		for name, values := range client.header {
			if !slices.Contains(notAsked[:], name) {
				out.Header[name] = values
			}
		}
		// Elasticsearch 8 answers a client of version 7 as 7 does. The versions in
		// Accept and Content-Type have to be the same.
		if accept := client.header["Accept"]; len(accept) == 1 && strings.Contains(accept[0], "compatible-with") && answer.IsJSON(accept) {
			out.Header["Accept"] = accept
			if c.Body != nil {
				out.Header["Content-Type"] = accept
			}
		}
		res, err := s.upstream.RoundTrip(markSafe(out, s.upstream, true)) // all calls here read
		if err != nil {
			return 0, nil, err
		}
		defer res.Body.Close()
		hold := hold
		if hold == nil {
			hold = s.opts.Memory.Hold(limits.SearchBody, "")
			defer hold.Release()
		}
		if text, err = limits.Read(res.Body, hold, res.ContentLength, s.opts.MaxBody); errors.Is(err, limits.ErrTooLarge) {
			err = fmt.Errorf("%s: the answer is larger than %d bytes: %w", c.Path, s.opts.MaxBody, err)
		}
		return res.StatusCode, text, err
	}
}

// notAsked are the headers of a client that a call made for it has not. Others
// that are only for the connection do not reach the cluster.
var notAsked = [...]string{
	"Accept", "Accept-Charset", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Te", "Upgrade",
}

// clearScroll has the cluster close, with the client's credentials, a scroll
// whose first answer the client does not get, as the original opens another. If
// that fails the scroll ends when its time is over.
func (s *Server) clearScroll(id string, ask sender) {
	if !s.clearing.reserve() {
		return
	}
	s.clearing.start(func(ctx context.Context) {
		err := s.guard.Do("clearing scrolls", func() error {
			body := map[string][]string{"scroll_id": {id}}
			_, _, err := ask(ctx, esclient.Call{Method: http.MethodDelete, Path: "/_search/scroll", Body: body})
			return err
		})
		if err != nil {
			s.log.DebugContext(ctx, "a scroll that nobody reads was not cleared", "err", err)
		}
	}, func() {})
}
