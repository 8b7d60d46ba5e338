package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
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
	s.metrics.front.largeHeads.Inc()
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

// clientOf returns what stands for the client at an address, host and port: the
// host, of IPv6 the network of 64 bits that one customer has.
func clientOf(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	host := at.Addr().Unmap().WithZone("")
	if host.Is4() {
		return host.String()
	}
	network, _ := host.Prefix(64) // a length that every address has
	return network.String()
}

// ClientOf returns the client of the search in whose context the expander or
// the reranker was called, "" for none.
func ClientOf(ctx context.Context) string {
	if x := searchIn(ctx); x != nil {
		return x.client.Name
	}
	return ""
}
