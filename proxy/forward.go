package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
)

const (
	// copyBufferSize is the size of the pieces in which answers are copied.
	copyBufferSize = 32 << 10
	// ownHeaders is the room for headers of rewritten requests that akin writes.
	ownHeaders = 128
)

// forwardingHeaders are those that ReverseProxy takes away before Rewrite runs.
var forwardingHeaders = [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// refuseHead answers a request whose headers or first line are too large for
// the cluster, and reports whether it did. A node would answer, too, but read
// nothing more from the connection, which other requests share.
func (s *Server) refuseHead(w http.ResponseWriter, r *http.Request) bool {
	line := len(r.Method) + len(r.RequestURI) + len("  HTTP/1.1\r\n")
	if line <= s.opts.MaxHeader && s.headerSize(r) <= s.opts.MaxHeader {
		return false
	}
	s.metrics.largeHeads.Inc()
	w.Header().Set("Connection", "close")
	writeError(w, http.StatusRequestHeaderFieldsTooLarge, "akin_too_long_header_exception",
		fmt.Sprintf("the headers of the request, or its first line, are larger than %d bytes (listen.max_header)", s.opts.MaxHeader))
	return true
}

// headerSize returns how many bytes the headers of r take in the cluster at
// most.
func (s *Server) headerSize(r *http.Request) int {
	const colonAndBreak = len(": \r\n")
	n := ownHeaders + s.upstream.HostBytes()
	for name, values := range r.Header {
		if name == controlHeader || name == profileHeader {
			continue
		}
		for _, v := range values {
			n += len(name) + len(v) + colonAndBreak
		}
	}
	if s.opts.ForwardedHeaders {
		n += len("X-Forwarded-For: , \r\nX-Forwarded-Host: \r\nX-Forwarded-Proto: https\r\n") + len(r.RemoteAddr) + len(r.Host)
	}
	return n
}

// ClientOf returns the client of the search that a call is made for, "" for
// none.
func ClientOf(ctx context.Context) string {
	if x := searchIn(ctx); x != nil {
		return x.client.Name
	}
	return ""
}

// newForward returns the handler that sends a request on and copies the answer
// back. What breaks off on one side breaks off on the other.
func newForward(s *Server) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:       s.rewrite,
		Transport:     &searchTransport{Server: s, next: s.upstream},
		FlushInterval: -1, // the relay waits a moment
		ModifyResponse: func(res *http.Response) error { // net/http would give a short complete answer a length
			if slices.Contains(res.TransferEncoding, "chunked") {
				res.Header["Transfer-Encoding"] = []string{"chunked"}
			}
			return nil
		},
		BufferPool:   &bufferPool{},
		ErrorHandler: s.failed,
		ErrorLog:     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// send forwards r. While an answer is written net/http reads and closes what is
// left of the body, which the transport may still read, as a node may answer
// early. That would break the upstream connection in the middle of the answer
// (seen once in 60,000 POSTs). Full duplex leaves the body to the transport.
func (s *Server) send(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/1 servers have it, others need none
	}
	s.forward.ServeHTTP(w, r)
}

// rewrite undoes what ReverseProxy does beyond RFC 9110's hop-by-hop headers.
func (s *Server) rewrite(pr *httputil.ProxyRequest) {
	in, out := pr.In, pr.Out
	for _, name := range forwardingHeaders {
		if v, ok := in.Header[name]; ok {
			out.Header[name] = v
		}
	}
	if s.opts.ForwardedHeaders {
		pr.SetXForwarded()
	}
	delete(out.Header, controlHeader)
	delete(out.Header, profileHeader)
	out.Host = ""                      // the node's own name, as a client that talks to it would send
	out.URL.RawQuery = in.URL.RawQuery // `a=b;c=%zz` was cut; nothing here decides by the query
	if raw := in.URL.RawPath; raw != "" && !strings.HasPrefix(raw, "//") && in.URL.EscapedPath() != raw {
		// A path like /<logs-{now/d}>/_search would be escaped. Opaque is sent as it
		// is, except that one with two leading slashes is taken for an authority.
		out.URL.Opaque = raw
	}
	if x := searchIn(in.Context()); x != nil {
		out.URL.RawQuery = x.rawQuery
		if x.body.whole {
			out.Header.Del("Expect") // met already: the body is here
		}
	}
}

// failed answers for a cluster that did not answer.
func (s *Server) failed(w http.ResponseWriter, r *http.Request, err error) {
	if x := searchIn(r.Context()); x != nil && x.body.arriving.IsLate() {
		s.brokenBody(w, x)
		return
	}
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client is gone, or is being cut off at shutdown
	}
	s.metrics.errors.Inc()
	s.log.DebugContext(r.Context(), "no answer from the cluster", "method", r.Method, "err", err)
	writeError(w, http.StatusBadGateway, "akin_upstream_exception", "no node of the cluster answered the request")
}

// brokenBody answers a search whose body did not come, or came too slowly.
func (s *Server) brokenBody(w http.ResponseWriter, x *search) {
	if !x.body.arriving.IsLate() {
		writeError(w, http.StatusBadRequest, "akin_request_exception", "the body of the request broke off")
		return
	}
	s.metrics.slowBodies.Inc()
	w.Header().Set("Connection", "close")
	writeError(w, http.StatusRequestTimeout, "akin_request_exception", "the body of the search came too slowly")
}

// An errorCause is the part of an Elasticsearch error that says what happened.
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

// writeError writes an error in the format of Elasticsearch and OpenSearch.
func writeError(w http.ResponseWriter, status int, kind, reason string) {
	answer := errorAnswer{Status: status}
	answer.Error.errorCause = errorCause{Type: kind, Reason: reason}
	answer.Error.RootCause = []errorCause{answer.Error.errorCause}
	body, _ := json.Marshal(answer) // strings and numbers always encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // nobody is left to tell
}

// A bufferPool lends the buffers that answers are copied through.
type bufferPool struct{ pool sync.Pool }

// Get returns a buffer of copyBufferSize bytes.
func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[copyBufferSize]byte); ok {
		return b[:]
	}
	return make([]byte, copyBufferSize)
}

// Put takes a buffer of Get back.
func (p *bufferPool) Put(b []byte) { p.pool.Put((*[copyBufferSize]byte)(b)) }
