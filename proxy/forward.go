package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
)

// copyBufferSize is the size of the buffers for copying answers.
const copyBufferSize = 32 << 10

// A trip is a request on its way to the cluster. It passes on 1xx answers until
// the final answer comes.
//
// While an answer is written net/http reads and closes the rest of the body.
// The transport may still read it, as a node may answer early; then the
// upstream connection breaks in the middle of the answer (seen once in 60,000
// POSTs). Full duplex leaves the body to the transport.
type trip struct {
	out     *http.Request
	interim interimAnswers
	lent    lentBody
}

// depart prepares r for the cluster, without akin's own headers and hop-by-hop
// headers. The caller must call [trip.end].
func (s *Server) depart(w http.ResponseWriter, r *http.Request) *trip {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).EnableFullDuplex() // fails only for recorders in tests
	}
	t := &trip{interim: interimAnswers{w: w}}
	t.out = s.outgoing(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: t.interim.pass}), r)
	if t.out.Body != nil {
		t.lent.Reader = t.out.Body
		t.out.Body = &t.lent
	}
	return t
}

// end stops reading the client's body.
func (t *trip) end() {
	t.interim.end()
	t.lent.end()
}

// answer copies the cluster's answer to the client, or reports the error. If
// the answer breaks off, so does the client's connection.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, t *trip, res *http.Response, err error) {
	t.interim.end()
	if err != nil {
		s.failed(w, r, err)
		return
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusSwitchingProtocols { // then bytes go both ways, which ReverseProxy handles
		again := &httputil.ReverseProxy{Transport: sentAlready{res}, Rewrite: func(pr *httputil.ProxyRequest) { pr.Out = t.out }}
		again.ErrorHandler = s.failed
		again.ErrorLog = slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)
		again.ServeHTTP(w, r)
		return
	}
	h := w.Header()
	copyEndToEnd(h, res.Header)
	if slices.Contains(res.TransferEncoding, "chunked") { // else net/http would give a short complete answer a length
		h["Transfer-Encoding"] = []string{"chunked"}
	}
	announced := len(res.Trailer)
	for name := range res.Trailer {
		h.Add("Trailer", name)
	}
	w.WriteHeader(res.StatusCode)
	if err := s.copyBody(w, res.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	if len(res.Trailer) == 0 {
		return
	}
	_ = http.NewResponseController(w).Flush() // else net/http would give a short answer a length
	for name, values := range res.Trailer {
		if len(res.Trailer) != announced {
			name = http.TrailerPrefix + name
		}
		h[name] = values
	}
}

// sentAlready is a transport that returns an answer received before.
type sentAlready struct{ res *http.Response }

// RoundTrip returns the answer.
func (a sentAlready) RoundTrip(*http.Request) (*http.Response, error) { return a.res, nil }

// copyBody copies a body piece by piece, as it arrives.
func (s *Server) copyBody(w http.ResponseWriter, body io.Reader) error {
	buf := s.buffers.Get().(*[copyBufferSize]byte)
	defer s.buffers.Put(buf)
	conn := http.NewResponseController(w)
	for {
		n, err := body.Read(buf[:])
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		_ = conn.Flush() // a moment later; if it fails, so does the next write
	}
}

// interimAnswers passes on 1xx answers until the final answer comes; net/http's
// transport may read more. It drops 100: net/http's server sends one when the
// body is first read, as the node grants it, and the client would get two.
type interimAnswers struct {
	mu sync.Mutex
	w  http.ResponseWriter // nil after the end
}

func (i *interimAnswers) pass(status int, header textproto.MIMEHeader) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.w != nil && status != http.StatusContinue {
		maps.Copy(i.w.Header(), http.Header(header))
		i.w.WriteHeader(status)
		clear(i.w.Header())
	}
	return nil
}

func (i *interimAnswers) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.w = nil
}

// A lentBody is a client's body that the transport must not close, nor read
// once the request is answered.
type lentBody struct {
	io.Reader

	over atomic.Bool
}

// Read reads from the body.
func (b *lentBody) Read(p []byte) (int, error) {
	if b.over.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", nodes.ErrBody, err)
	}
	return n, err
}

// Close stops reading.
func (b *lentBody) Close() error {
	b.end()
	return nil
}

func (b *lentBody) end() { b.over.Store(true) }

// outgoing returns the request to the cluster for r.
func (s *Server) outgoing(ctx context.Context, r *http.Request) *http.Request {
	out, to := r.WithContext(ctx), *r.URL
	out.URL, out.Header = &to, make(http.Header, len(r.Header)+2)
	copyEndToEnd(out.Header, r.Header)
	delete(out.Header, controlHeader)
	delete(out.Header, profileHeader)
	if slices.Contains(tokens(r.Header["Te"]), "Trailers") {
		out.Header["Te"] = []string{"trailers"}
	}
	if upgrade := r.Header["Upgrade"]; upgrade != nil && slices.Contains(tokens(r.Header["Connection"]), "Upgrade") {
		out.Header["Connection"], out.Header["Upgrade"] = []string{"Upgrade"}, upgrade
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = []string{""} // else net/http adds its own
	}
	if s.opts.ForwardedHeaders {
		(&httputil.ProxyRequest{In: r, Out: out}).SetXForwarded()
	}
	out.Close = false
	if out.ContentLength == 0 {
		out.Body = nil
	}
	out.Host = "" // the node's own name, as a client that talks to it would send
	if raw := r.URL.RawPath; raw != "" && !strings.HasPrefix(raw, "//") && r.URL.EscapedPath() != raw {
		// A path like /<logs-{now/d}>/_search would be escaped. Opaque is sent as it
		// is, but one with two leading slashes is taken for an authority.
		out.URL.Opaque = raw
	}
	return out
}

// copyEndToEnd copies all but hop-by-hop headers (RFC 9110, section 7.6.1).
func copyEndToEnd(to, from http.Header) {
	options := tokens(from["Connection"])
	for name, values := range from {
		switch name {
		case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
			"Transfer-Encoding", "Upgrade":
		default:
			if !slices.Contains(options, name) {
				to[name] = values
			}
		}
	}
}

// tokens returns the members of a list header, in canonical form.
func tokens(values []string) (names []string) {
	for _, list := range values {
		for name := range strings.SplitSeq(list, ",") {
			names = append(names, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	return names
}

// failed answers for a cluster that did not answer. [limits.ErrSlow] means that
// it waited for the client, [nodes.ErrBody] that the client's body is broken, a
// [nodes.NotSentError] that the request was not sent.
func (s *Server) failed(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, limits.ErrSlow) {
		s.brokenBody(w, true)
		return
	}
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client is gone, or is cut off at shutdown
	}
	if errors.Is(err, nodes.ErrBody) {
		s.brokenBody(w, false)
		return
	}
	if refusal, ok := errors.AsType[*nodes.NotSentError](err); ok {
		s.log.DebugContext(r.Context(), "request not sent", "method", r.Method, "err", err)
		writeError(w, refusal.Status, refusal.Type, refusal.Reason)
		return
	}
	s.metrics.Errors.Inc()
	s.log.DebugContext(r.Context(), "no answer from the cluster", "method", r.Method, "err", err)
	writeError(w, http.StatusBadGateway, "akin_upstream_exception", "no node of the cluster answered the request")
}

// brokenBody answers a request whose body is broken or, of a search, came too
// slowly.
func (s *Server) brokenBody(w http.ResponseWriter, late bool) {
	if !late {
		writeError(w, http.StatusBadRequest, "akin_request_exception", "the body of the request broke off")
		return
	}
	s.metrics.SlowBodies.Inc()
	w.Header().Set("Connection", "close")
	writeError(w, http.StatusRequestTimeout, "akin_request_exception", "the body of the search came too slowly")
}

// An errorCause is the cause in an Elasticsearch error.
type errorCause struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// An errorAnswer is the body of an Elasticsearch error.
type errorAnswer struct {
	Error struct {
		RootCause []errorCause `json:"root_cause"`
		errorCause
	} `json:"error"`
	Status int `json:"status"`
}

// errorBody returns an error in the format of Elasticsearch and OpenSearch.
func errorBody(status int, kind, reason string) []byte {
	answer := errorAnswer{Status: status}
	answer.Error.errorCause = errorCause{Type: kind, Reason: reason}
	answer.Error.RootCause = []errorCause{answer.Error.errorCause}
	body, _ := json.Marshal(answer) // strings and numbers always encode
	return body
}

// writeError writes an error in the format of Elasticsearch and OpenSearch.
func writeError(w http.ResponseWriter, status int, kind, reason string) {
	w.Header().Set("Content-Type", "application/json")
	body := errorBody(status, kind, reason)
	if client, ok := w.(*relay); ok {
		client.writeWhole(status, body)
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // on error the client is gone
}
