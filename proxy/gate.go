package proxy

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// A Gate says who may come in. The zero Gate lets every program in.
type Gate struct {
	// Hosts are the names, with localhost and any address, by which the port may be
	// called.
	Hosts []string
	// Token is what callers have to know; "" is nothing.
	Token string
	// Exposed says that other machines reach the port: without a Token nobody may.
	Exposed bool
}

// Refuses returns the status and the reason of a refusal, 0 for none. It sets
// what else the answer needs in h.
//
// A web page in an operator's browser may send requests by a name that is not
// akin's, which it can have resolved to akin's address (DNS rebinding), and
// posts to akin's own address. The browser adds the operator's token.
func (g *Gate) Refuses(r *http.Request, h http.Header) (status int, why string) {
	switch {
	case !g.knowsHost(r.Host):
		return http.StatusForbidden, "the host of the request is neither an address nor localhost nor one of admin.hosts"
	case new(http.CrossOriginProtection).Check(r) != nil:
		return http.StatusForbidden, "the request comes from a web page of another site"
	case g.Token == "" && g.Exposed:
		return http.StatusForbidden, "other machines reach this port: it shows searches only with a token, set AKIN_ADMIN_TOKEN or admin.token_file"
	case g.Token != "" && !g.knowsToken(r):
		h.Set("WWW-Authenticate", `Basic realm="akin", charset="UTF-8"`)
		return http.StatusUnauthorized, "the admin port asks for its token, as a bearer or as the password of any user"
	}
	return 0, ""
}

// knowsToken reports whether a request has the token, as a bearer or, which
// browsers ask for, as the password of any user.
func (g *Gate) knowsToken(r *http.Request) bool {
	given, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !isBearer {
		_, given, _ = r.BasicAuth()
	}
	want, got := sha256.Sum256([]byte(g.Token)), sha256.Sum256([]byte(given)) // of one length, so that the time says nothing
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// knowsHost reports whether the port may be called by a header Host. An address
// is never rebound: that takes a name.
func (g *Gate) knowsHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || strings.EqualFold(host, "localhost") ||
		slices.ContainsFunc(g.Hosts, func(name string) bool { return strings.EqualFold(host, name) })
}
