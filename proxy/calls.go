package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/proxy/answer"
)

// markSafe marks a read as one that may be sent twice, unless it leaves
// something behind in the cluster or advances a scroll.
func markSafe(out *http.Request, upstream *nodes.Pool, search bool) *http.Request {
	safe := upstream.Several() && (search || out.Method == http.MethodGet || out.Method == http.MethodHead) &&
		!strings.Contains(out.URL.Path, "scroll") && !strings.Contains(out.URL.Path, "_async_search")
	if !safe || answer.Has(out.URL.RawQuery, "scroll") {
		return out
	}
	return out.WithContext(nodes.Safe(out.Context()))
}

// A sender calls the cluster with a client's credentials.
type sender func(ctx context.Context, request esapi.Request) (status int, answer []byte, err error)

// A caller identifies a client to the cluster.
type caller struct {
	header   http.Header // for the cluster, read-only
	rawQuery string      // without akin's own parameters
}

// later returns a copy that does not keep the request alive.
func (c caller) later() caller { return caller{c.header.Clone(), strings.Clone(c.rawQuery)} }

// parameters are those that no search has: the cluster may know a client by
// them.
func (c caller) parameters() string { return answer.Unknown(c.rawQuery) }

// calls makes akin's own calls for a client's search.
type calls struct {
	upstream *nodes.Pool
	memory   *limits.Budget
	secured  atomic.Bool // the cluster has security; it stays true, also after reloads
}

// as returns a sender with a client's credentials: its headers except those
// about body, connection and answer, and on a secured cluster its parameters.
// Answers are read into hold, or for nil into one that ends with the call.
func (c *calls) as(client caller, hold *limits.Hold) sender {
	return func(ctx context.Context, request esapi.Request) (status int, text []byte, err error) {
		t := &asClient{calls: c, caller: client}
		res, err := request.Do(ctx, t)
		if err != nil {
			return 0, nil, err
		}
		defer res.Body.Close()
		hold := hold
		if hold == nil {
			hold = c.memory.Hold(limits.SearchBody, "")
			defer hold.Release()
		}
		if text, err = limits.Read(res.Body, hold, t.length, limits.MaxAnswer); errors.Is(err, limits.ErrTooLarge) {
			err = fmt.Errorf("%s: the answer is larger than %d bytes: %w", t.path, limits.MaxAnswer, err)
		}
		return res.StatusCode, text, err
	}
}

// asClient sends one call with a client's credentials. It implements
// [esapi.Transport].
type asClient struct {
	*calls
	caller

	path   string // what was asked
	length int64  // of the answer, negative if unknown
}

// Perform completes a call and sends it to the pool.
func (a *asClient) Perform(out *http.Request) (*http.Response, error) {
	a.path = out.URL.EscapedPath()
	if a.secured.Load() {
		out.URL.RawQuery = strings.Trim(out.URL.RawQuery+"&"+a.parameters(), "&")
	}
	out.Header.Set("Accept", "application/json")
	for name, values := range a.header {
		if !slices.Contains(notAsked[:], name) {
			out.Header[name] = values
		}
	}
	// Elasticsearch 8 answers a client of version 7 as 7 does. Accept and
	// Content-Type must have the same version.
	if accept := a.header["Accept"]; len(accept) == 1 && strings.Contains(accept[0], "compatible-with") && answer.IsJSON(accept) {
		out.Header["Accept"] = accept
		if out.Body != nil {
			out.Header["Content-Type"] = accept
		}
	}
	res, err := a.upstream.RoundTrip(markSafe(out, a.upstream, true)) // they only read, or close a scroll
	if err == nil {
		a.length = res.ContentLength
	}
	return res, err
}

// notAsked are the client's headers that akin's own calls omit. Other headers
// of the connection do not reach the cluster anyway.
var notAsked = [...]string{
	"Accept", "Accept-Charset", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Te", "Upgrade",
}
