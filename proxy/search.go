package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/akin-search/akin/expand"
)

// controlHeader and controlParameter let a client switch akin off for a search,
// with the value "off". Neither reaches the cluster.
const (
	controlHeader    = "X-Akin"
	controlParameter = "akin"
)

// Reasons of the proxy's own to leave a search alone; the expander has more.
const (
	reasonOff      = "off"           // the client asked for it
	reasonDisabled = "disabled"      // there is no expander
	reasonNothing  = "nothing_added" // the expander gave no reason
)

// errPanic stands for a panic of the expander.
var errPanic = errors.New("panic")

// An exchange is what the proxy knows of a search while it is forwarded.
type exchange struct {
	index string
	// rawQuery is the query string without akin's own parameter.
	rawQuery string
	// read says that original is the whole body as it came; else the body is
	// still to be read from the request.
	read     bool
	original []byte
	// rewritten is what is sent first, nil for the original.
	rewritten *expand.Result
}

type exchangeKey struct{}

// exchangeOf returns the exchange of a search, nil for other requests.
func exchangeOf(ctx context.Context) *exchange {
	ex, _ := ctx.Value(exchangeKey{}).(*exchange)
	return ex
}

// search forwards a search, rewritten where that is possible.
func (s *Server) search(w http.ResponseWriter, r *http.Request, m match) {
	ex := &exchange{index: m.index}
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, ex))
	var off bool
	ex.rawQuery, off = cutControl(r.URL.RawQuery, r.Header)
	if off || s.opts.Expander == nil {
		reason := reasonDisabled
		if off {
			reason = reasonOff
		}
		s.metrics.unchanged(reason)
		s.send(w, r)
		return
	}
	body, reason, err := s.readBody(r, ex)
	if err != nil { // the request itself is broken: there is nothing to forward
		writeError(w, http.StatusBadRequest, "akin_request_exception", "the body of the request broke off")
		return
	}
	if reason != "" {
		s.metrics.unchanged(reason)
	} else {
		s.expandSearch(r, m, ex, body)
	}
	s.send(w, r)
}

// cutControl returns the raw query without akin's own parameter, all else byte
// for byte, and whether parameter or header switch akin off.
func cutControl(rawQuery string, h http.Header) (rest string, off bool) {
	for _, v := range h[controlHeader] {
		off = off || isOff(v)
	}
	if !strings.Contains(rawQuery, controlParameter) {
		return rawQuery, off
	}
	kept := make([]string, 0, strings.Count(rawQuery, "&")+1)
	for part := range strings.SplitSeq(rawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		if name != controlParameter {
			kept = append(kept, part)
			continue
		}
		off = off || isOff(value)
	}
	return strings.Join(kept, "&"), off
}

func isOff(value string) bool { return strings.EqualFold(strings.TrimSpace(value), "off") }

// expandSearch has the search rewritten within the budget and counts what came
// of it. Where it fails ex.rewritten stays nil.
func (s *Server) expandSearch(r *http.Request, m match, ex *exchange, body []byte) {
	ctx, cancel := context.WithTimeout(r.Context(), s.opts.Budget)
	defer cancel()
	in := &expand.Request{Endpoint: m.endpoint, Index: m.index, RawQuery: ex.rawQuery, Body: body}
	start := time.Now()
	res, err := s.callExpander(ctx, in)
	s.metrics.expand.Observe(time.Since(start).Seconds())
	switch {
	case err != nil:
		cause := s.cause(err)
		s.metrics.failedOpen(cause)
		s.log.DebugContext(ctx, "search was not expanded", "index", m.index, "cause", cause, "err", err)
	case !res.Rewritten:
		s.metrics.unchanged(reasonOf(res))
	default:
		ex.rewritten = res
		s.metrics.rewritten.Inc()
		s.metrics.addedTerms.Add(float64(res.AddedTerms()))
	}
	if s.opts.LogQueries && err == nil {
		s.log.InfoContext(ctx, "search", "index", m.index, "query", ex.rawQuery, "body", string(body),
			"rewritten", res.Rewritten, "rewritten_query", res.RawQuery, "rewritten_body", string(res.Body))
	}
}

// callExpander calls the expander. This is the one place where a panic is
// caught: a search must not be lost to a mistake of ours.
func (s *Server) callExpander(ctx context.Context, in *expand.Request) (res *expand.Result, err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		res, err = nil, errPanic
		what := fmt.Sprintf("%T", v) // the value may hold query text
		if e, ok := v.(runtime.Error); ok {
			what = e.Error()
		}
		s.log.ErrorContext(ctx, "panic while a search was expanded", "panic", what, "stack", string(debug.Stack()))
	}()
	return s.opts.Expander.Expand(ctx, in)
}

func (s *Server) cause(err error) string {
	if errors.Is(err, errPanic) {
		return "panic"
	}
	return s.opts.Cause(err)
}

// reasonOf returns why nothing was rewritten: the reason of the whole, else
// that of the first clause that has one.
func reasonOf(res *expand.Result) string {
	if res.Reason != "" {
		return string(res.Reason)
	}
	for i := range res.Clauses {
		if reason := res.Clauses[i].Reason; reason != "" {
			return string(reason)
		}
	}
	return reasonNothing
}

// A searchTransport sends the rewritten form of a search and, where the cluster
// refuses it, the original.
type searchTransport struct {
	server *Server
	next   http.RoundTripper
}

// RoundTrip sends out. A rewritten search that is answered with any 4xx or 5xx
// is followed once by the original, whose answer counts; one that is not
// answered is not.
func (t *searchTransport) RoundTrip(out *http.Request) (*http.Response, error) {
	ex := exchangeOf(out.Context())
	if ex == nil {
		return t.next.RoundTrip(out)
	}
	start := time.Now()
	defer func() { t.server.metrics.upstream.Observe(time.Since(start).Seconds()) }()
	if ex.rewritten == nil {
		return t.sendOriginal(out, ex)
	}
	res, err := t.next.RoundTrip(ex.rewrite(out))
	if err != nil || res.StatusCode < http.StatusBadRequest {
		return res, err
	}
	status := res.StatusCode
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10) // to its end, if that is near: the connection can be used again
	_ = res.Body.Close()
	res, err = t.sendOriginal(out, ex)
	t.server.refused(out.Context(), ex, status, err == nil && res.StatusCode < http.StatusBadRequest)
	return res, err
}

func (t *searchTransport) sendOriginal(out *http.Request, ex *exchange) (*http.Response, error) {
	if ex.read {
		setBody(out, ex.original)
	}
	return t.next.RoundTrip(out)
}

// rewrite returns a copy of out with the rewritten search. It keeps the method
// and the media type of the original.
func (ex *exchange) rewrite(out *http.Request) *http.Request {
	rewritten := out.Clone(out.Context())
	rewritten.URL.RawQuery = ex.rewritten.RawQuery
	rewritten.TransferEncoding = nil
	rewritten.ContentLength = int64(len(ex.rewritten.Body))
	setBody(rewritten, ex.rewritten.Body)
	h := rewritten.Header
	h.Del("Content-Encoding")
	if len(ex.original) == 0 || !isJSON(h["Content-Type"]) {
		// There was no body to have a type. Elasticsearch 8 wants the versions
		// in Accept and Content-Type to be the same.
		h["Content-Type"] = []string{"application/json"}
		if isJSON(h["Accept"]) {
			h["Content-Type"] = h["Accept"]
		}
	}
	return rewritten
}

// setBody sets the body, not its announced length: a chunked original stays
// chunked. GetBody lets a connection that was closed while idle be replaced.
func setBody(out *http.Request, body []byte) {
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Body = io.NopCloser(bytes.NewReader(body))
}

// refused notes that the cluster did not take a rewritten search, and whether
// it took the original. Where it did not, the mistake is the client's.
func (s *Server) refused(ctx context.Context, ex *exchange, status int, originalTaken bool) {
	s.metrics.refusedSearch(originalTaken)
	s.log.DebugContext(ctx, "the cluster refused a rewritten search", "index", ex.index, "status", status,
		"original_taken", originalTaken)
	if originalTaken && s.opts.OnRefused != nil {
		s.opts.OnRefused(ex.index)
	}
}
