package e2e

import (
	"crypto/hmac"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tokenOf returns a token that the secured engine takes for a user.
func tokenOf(user string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS512","typ":"JWT"}`)) + "." + encode([]byte(`{"sub":"`+user+`"}`))
	mac := hmac.New(sha512.New, []byte(tokenKey))
	_, _ = mac.Write([]byte(text)) // a hash takes all
	return text + "." + encode(mac.Sum(nil))
}

// TestSecuredTokenInTheURL has users whom the cluster knows by a parameter of the
// URL.
func TestSecuredTokenInTheURL(t *testing.T) {
	t.Parallel()
	e := securedEngine(t)
	makeSecured(t, e)
	config := securedConfig(t, e, section{"feedback": section{"documents": 5}}, nil)
	config["log"] = section{"level": "debug", "queries": true, "access": true}
	a := setupSecured(t, e, config)
	nobody := a.as("")
	const path = "/" + securedIndex + "/_search?size=50&"
	with := func(user string) string { return path + tokenParameter + "=" + tokenOf(user) }
	body := `{"query":{"match":{"body":"car"}}}`
	search := func(path string, hits int) {
		t.Helper()
		if got, err := nobody.search(t.Context(), path, body); err != nil || len(got.ids()) != hits {
			t.Errorf("%v, hits %v, want %d", err, got.ids(), hits)
		}
	}
	denied := func(path string, want int) {
		t.Helper()
		if status, answer, err := nobody.call(t.Context(), http.MethodPost, path, body); err != nil || status != want {
			t.Errorf("%v, %d, want %d: %.300s", err, status, want, answer)
		}
	}
	denied(path, http.StatusUnauthorized)
	search(with(userToken), 12)
	denied(with(userNone), http.StatusForbidden) // though the headers are the same
	denied(with(userToken)+"x", http.StatusUnauthorized)
	denied(path+"no_such_parameter=1", http.StatusUnauthorized)
	search(with(userToken), 12)
	if n := a.metric(t, requestsMetric, rewrittenOutcome); n != 2 {
		t.Errorf("%v searches were rewritten, want 2", n)
	}
	if n := a.metric(t, requestsMetric, `reason="not_authorized"`); n != 4 {
		t.Errorf("%v searches were not authorized, want 4", n)
	}
	// What the cluster refuses for a parameter is no failure of akin's.
	denied(with(userToken)+"&no_such_parameter=1", http.StatusBadRequest)
	if n := a.metric(t, "akin_failed_open_total"); n != 0 {
		t.Errorf("%v searches failed open", n)
	}
	template := strings.Replace(with(userToken), "/_search?size=50&", "/_search/template?", 1)
	answer := nobody.must(t, http.MethodPost, template, `{"source":{"size":50,`+body[1:len(body)-1]+`}}`)
	if n := strings.Count(string(answer), `"_id"`); n != 12 {
		t.Errorf("a template finds %d documents, want 12: %.500s", n, answer)
	}
	if used := a.metric(t, feedbackMetric, `result="used"`) + a.metric(t, feedbackMetric, `result="no_terms"`); used == 0 {
		t.Error("no search got feedback")
	}
	for _, secret := range []string{tokenOf(userToken), tokenOf(userNone)} {
		for what, text := range map[string]string{
			"log": readFile(t, a.proc.stderr), "access log": readFile(t, a.proc.stdout),
			"list of explanations": string(a.admin.must(t, http.MethodGet, "/_akin/explanations?limit=100", "")),
		} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s has a token", what)
			}
		}
	}
}

// TestSecuredCertificateOfAkin has akin known to the cluster by its certificate.
// Requests of clients go without it, else those without credentials would be
// taken for akin's.
func TestSecuredCertificateOfAkin(t *testing.T) {
	t.Parallel()
	e := securedEngine(t)
	makeSecured(t, e)
	dir := certificates(t, userCert, userNone)
	shown, key := filepath.Join(dir, "shown.crt"), filepath.Join(dir, "shown.key")
	show := func(user string) {
		for from, to := range map[string]string{user + ".crt": shown, user + ".key": key} {
			if err := os.WriteFile(to, []byte(readFile(t, filepath.Join(dir, from))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	show(userNone)
	config := securedConfig(t, e, nil, section{"tls": section{"ca_file": filepath.Join(dir, "ca.crt"), "certificate": shown, "key": key}})
	a := setupSecured(t, e, config)
	body := `{"size":50,"query":{"match":{"body":"car"}}}`
	hits := func() int {
		return len(a.as(userReader).find(t, securedIndex, body).ids())
	}
	if n := hits(); n != 9 {
		t.Errorf("with the certificate of a user without rights: %d hits, want the 9 of the original", n)
	}
	show(userCert)
	a.proc.signal(t, syscall.SIGHUP)
	waitFor(t, 20*time.Second, "a search that is expanded", func() error {
		if n := hits(); n != 12 {
			return fmt.Errorf("%d hits", n)
		}
		return nil
	})
	for what, path := range map[string]string{"a search": "/" + securedIndex + "/_search", "another request": "/"} {
		if status, answer, err := a.as("").call(t.Context(), http.MethodGet, path, ""); err != nil || status != http.StatusUnauthorized {
			t.Errorf("%s without credentials: %v, %d %s; want 401", what, err, status, answer)
		}
	}
	r := runAkin(t, "check", "--config", a.config)
	if r.status != 0 || !strings.Contains(r.stdout, "certificate of CN="+userCert) || !strings.Contains(r.stdout, "searches are expanded for clients that may search") {
		t.Errorf("check: status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
}
