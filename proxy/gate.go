package proxy

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Gate guards the admin port. The zero Gate lets every program in.
type Gate struct {
	// Hosts are allowed in the Host header, besides localhost and IP addresses.
	Hosts []string
	// Token is the token that callers must send; "" requires none.
	Token string
	// Exposed says that other machines reach the port. Then without a Token every
	// request is refused.
	Exposed bool
}

// Refuses returns the status and reason of a refusal, or 0. It sets what else
// the answer needs in h.
//
// A web page in an operator's browser can send requests under a name that
// resolves to akin's address (DNS rebinding), and posts to akin's own address.
// The browser adds the operator's token.
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

// knowsToken reports whether a request has the token, as a bearer or, as
// browsers send it, as the password of any user.
func (g *Gate) knowsToken(r *http.Request) bool {
	given, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !isBearer {
		_, given, _ = r.BasicAuth()
	}
	want, got := sha256.Sum256([]byte(g.Token)), sha256.Sum256([]byte(given)) // of equal length, so that the time reveals nothing
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// knowsHost reports whether the Host header is allowed. IP addresses always
// are, because DNS rebinding needs a name.
func (g *Gate) knowsHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || strings.EqualFold(host, "localhost") ||
		slices.ContainsFunc(g.Hosts, func(name string) bool { return strings.EqualFold(host, name) })
}

// tokenLogEvery is the minimum pause between two log lines about wrong tokens.
const tokenLogEvery = time.Minute

// wrongTokens logs wrong tokens sent to the admin port: the first one at once,
// then once a minute how many more there were.
type wrongTokens struct {
	log *slog.Logger

	mu    sync.Mutex
	count int       // since the last line
	from  string    // who sent the last one
	next  time.Time // when the next line may follow
}

// note counts a wrong token sent from an address.
func (w *wrongTokens) note(from string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count, w.from = w.count+1, from
	if wait := time.Until(w.next); wait <= 0 {
		w.write()
	} else if w.count == 1 {
		time.AfterFunc(wait, w.flush)
	}
}

// flush logs the count since the last line.
func (w *wrongTokens) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write()
}

// write is flush with the lock held.
func (w *wrongTokens) write() {
	if w.count > 0 {
		w.log.Warn("wrong tokens on the admin port", "count", w.count, "last_from", w.from)
		w.count, w.next = 0, time.Now().Add(tokenLogEvery)
	}
}
