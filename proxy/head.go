package proxy

import (
	"fmt"
	"net/http"
)

// ownHeaders is the room for the headers that akin writes itself:
// Content-Length, Content-Type and Accept of what it rewrites.
const ownHeaders = 128

// refuseHead answers a request whose headers or first line are larger than the
// cluster takes, and reports whether it did. A node would answer it, too, but
// read nothing more from the connection, which other requests share.
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

// headerSize returns how many bytes the headers of r take at most when they are
// sent to the cluster.
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
