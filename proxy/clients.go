package proxy

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/akin-search/akin/proxy/answer"
)

// Clients are akin's own credentials for its clients: a user name and password,
// or an API key. The zero Clients admits everybody.
type Clients struct{ Username, Password, APIKey string }

// admit reports whether a client may use akin, and takes the credentials off
// its request: they are not for the cluster.
func (c *Clients) admit(r *http.Request) bool {
	want := c.APIKey
	if c.Username != "" {
		want = base64.StdEncoding.EncodeToString([]byte(c.Username + ":" + c.Password))
	}
	if want == "" {
		return true
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	// Sums have one length, so that the time reveals nothing.
	wanted, got := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(strings.TrimLeft(given, " ")))
	if !strings.EqualFold(scheme, c.scheme()) || subtle.ConstantTimeCompare(wanted[:], got[:]) != 1 {
		return false
	}
	delete(r.Header, "Authorization")
	return true
}

func (c *Clients) scheme() string {
	if c.Username != "" {
		return "Basic"
	}
	return "ApiKey"
}

// challenge returns what to answer those who are not admitted.
func (c *Clients) challenge() []string {
	return []string{c.scheme() + ` realm="akin", charset="UTF-8"`}
}

// takeSignature takes a client's signature for Amazon off its request, from the
// headers and the query string, and reports whether there was one.
func takeSignature(r *http.Request) (found bool) {
	const algorithm, prefix = "AWS4-", "x-amz-"
	for name, values := range r.Header {
		switch {
		case strings.HasPrefix(strings.ToLower(name), prefix):
		case name == "Authorization" && strings.HasPrefix(values[0], algorithm):
			found = true
		default:
			continue
		}
		delete(r.Header, name)
	}
	r.URL.RawQuery = answer.CutParameters(r.URL.RawQuery, func(name, _ string) bool {
		name = strings.ToLower(name)
		found = found || name == "x-amz-signature"
		return strings.HasPrefix(name, prefix)
	})
	return found
}
