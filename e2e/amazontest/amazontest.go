// Package amazontest stands in for what is in front of a managed cluster on
// Amazon: it verifies the signature of each request (AWS Signature Version 4),
// with code of its own, and gives credentials as the container endpoint does.
package amazontest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Key is an access key. Until is the end of its session, zero for none.
type Key struct {
	ID, Secret, Token string
	Until             time.Time
}

// A Front verifies requests before next gets them.
type Front struct {
	Region, Service string
	Next            http.Handler
	Now             func() time.Time // nil is time.Now

	mu     sync.Mutex
	keys   map[string]Key
	passed int
	failed []string
}

// Accept accepts signatures of keys.
func (f *Front) Accept(keys ...Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys == nil {
		f.keys = map[string]Key{}
	}
	for _, k := range keys {
		f.keys[k.ID] = k
	}
}

// Passed returns how many requests were signed well, and Failed why others were
// not.
func (f *Front) Passed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.passed
}

// Failed returns why requests were refused.
func (f *Front) Failed() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.failed)
}

func (f *Front) now() time.Time {
	if f.Now == nil {
		return time.Now()
	}
	return f.Now()
}

// ServeHTTP verifies a request. A HEAD of / may be unsigned: it is refused,
// too, but not counted.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	wrong := "the body broke off"
	body, err := io.ReadAll(r.Body)
	if err == nil {
		wrong = f.verify(r, body)
	}
	f.mu.Lock()
	switch {
	case wrong == "":
		f.passed++
	case r.Method != http.MethodHead || r.RequestURI != "/" || r.Header.Get("Authorization") != "":
		f.failed = append(f.failed, r.Method+" "+r.RequestURI+": "+wrong)
	}
	f.mu.Unlock()
	if wrong != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"message":%q}`, wrong)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.Next.ServeHTTP(w, r)
}

// verify returns what is wrong with the signature of a request, or "".
func (f *Front) verify(r *http.Request, body []byte) string {
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=")
	if !ok || len(r.Header["Authorization"]) != 1 {
		return "Missing Authentication Token"
	}
	credential, rest, _ := strings.Cut(rest, ", SignedHeaders=")
	list, signature, _ := strings.Cut(rest, ", Signature=")
	id, scope, _ := strings.Cut(credential, "/")
	names := strings.Split(list, ";")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	f.mu.Lock()
	key, known := f.keys[id]
	f.mu.Unlock()
	sum := sha256.Sum256(body)
	switch {
	case err != nil:
		return "no valid X-Amz-Date"
	case f.now().Sub(at).Abs() > 5*time.Minute:
		return "Signature expired: " + at.Format(time.RFC3339) + " is not within 5 minutes of the server's time"
	case !known:
		return "The security token included in the request is invalid"
	case !key.Until.IsZero() && f.now().After(key.Until):
		return "The security token included in the request is expired"
	case r.Header.Get("X-Amz-Security-Token") != key.Token:
		return "the session token is not that of the key"
	case scope != at.Format("20060102")+"/"+f.Region+"/"+f.Service+"/aws4_request":
		return "Credential should be scoped to a valid region: " + scope
	case r.Header.Get("X-Amz-Content-Sha256") != hex.EncodeToString(sum[:]):
		return "X-Amz-Content-Sha256 is not the hash of the body"
	}
	if wrong := covers(r.Header, names); wrong != "" {
		return wrong
	}
	canonical, err := Canonical(r, names, hex.EncodeToString(sum[:]))
	switch {
	case err != nil:
		return err.Error()
	case signature != Signature(key.Secret, scope, at, canonical):
		return fmt.Sprintf("The request signature we calculated does not match the signature you provided: %q", canonical)
	}
	return ""
}

// covers returns which header is not signed, or should not be.
func covers(h http.Header, names []string) string {
	if !slices.Contains(names, "host") || !slices.IsSorted(names) {
		return "the signed headers are not sorted or lack the host"
	}
	for name := range h {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") && !slices.Contains(names, lower) {
			return "not signed: " + name
		}
	}
	for _, name := range names {
		if name != "host" && name != "content-type" && !strings.HasPrefix(name, "x-amz-") {
			return "signed, although proxies change it: " + name
		}
	}
	return ""
}

// Canonical returns the canonical request of what arrived.
func Canonical(r *http.Request, names []string, sum string) (string, error) {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	if strings.ContainsAny(query, "+;") {
		return "", errors.New("verifiers differ in how they read the query string " + query)
	}
	var pairs [][]string
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.PathUnescape(name)
		if err != nil {
			return "", err
		}
		if value, err = url.PathUnescape(value); err != nil {
			return "", err
		}
		pairs = append(pairs, []string{encode(name, ""), encode(value, "")})
	}
	slices.SortFunc(pairs, slices.Compare) // by name, then by value: "a" is before "a-b", "a=" is not before "a-b="
	var sorted []string
	for _, pair := range pairs {
		sorted = append(sorted, strings.Join(pair, "="))
	}
	var headers strings.Builder
	for _, name := range names {
		values := r.Header.Values(name)
		if name == "host" {
			values = []string{r.Host}
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.Join(strings.Fields(strings.Join(values, ",")), " "))
	}
	return strings.Join([]string{
		r.Method, encode(normalize(path), "/"), strings.Join(sorted, "&"), headers.String(), strings.Join(names, ";"), sum,
	}, "\n"), nil
}

// normalize removes empty elements, . and .. of a path.
func normalize(path string) string {
	var kept []string
	for element := range strings.SplitSeq(path, "/") {
		switch {
		case element == "..":
			kept = kept[:max(0, len(kept)-1)]
		case element != "" && element != ".":
			kept = append(kept, element)
		}
	}
	clean := "/" + strings.Join(kept, "/")
	if strings.HasSuffix(path, "/") && len(kept) > 0 {
		clean += "/"
	}
	return clean
}

// encode escapes all bytes but those that RFC 3986 calls unreserved and keep.
func encode(s, keep string) string {
	const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	var out strings.Builder
	for i := range len(s) {
		if strings.IndexByte(unreserved+keep, s[i]) >= 0 {
			out.WriteByte(s[i])
		} else {
			fmt.Fprintf(&out, "%%%02X", s[i])
		}
	}
	return out.String()
}

// Signature returns the signature of a canonical request.
func Signature(secret, scope string, at time.Time, canonical string) string {
	key := []byte("AWS4" + secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	sum := sha256.Sum256([]byte(canonical))
	text := "AWS4-HMAC-SHA256\n" + at.UTC().Format("20060102T150405Z") + "\n" + scope + "\n" + hex.EncodeToString(sum[:])
	return hex.EncodeToString(mac(key, text))
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	_, _ = m.Write([]byte(text)) // a hash never fails
	return m.Sum(nil)
}

// Credentials answers as the endpoint in AWS_CONTAINER_CREDENTIALS_FULL_URI
// does: each time with a new key that is accepted for life.
func (f *Front) Credentials(life time.Duration) http.Handler {
	given := 0
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		given++
		until := f.now().Add(life)
		k := Key{fmt.Sprintf("ASIA%016d", given), fmt.Sprintf("secret-%d", given), fmt.Sprintf("token-%d/+=", given), until}
		f.mu.Unlock()
		f.Accept(k)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"AccessKeyId":%q,"SecretAccessKey":%q,"Token":%q,"Expiration":%q}`, k.ID, k.Secret, k.Token, until.UTC().Format(time.RFC3339Nano))
	})
}
